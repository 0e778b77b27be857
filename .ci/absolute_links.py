"""Make the links of README.md absolute before a release is built: a package index shows it without the files beside it.

``python .ci/absolute_links.py REF`` writes README.md with links to the repository at that tag or branch.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
REPOSITORY = "https://github.com/icefield/icefield"
RAW = "https://raw.githubusercontent.com/icefield/icefield"


def absolute(text: str, ref: str) -> str:
    """Return Markdown whose links and pictures are found from anywhere."""
    text = re.sub(r"(!\[[^\]]*\]\()(?!https?:)([\w./-]+\))", rf"\g<1>{RAW}/{ref}/\2", text)
    return re.sub(
        r"((?<!!)\[[^\]]*\]\()(?!https?:|#)([\w./-]+(?:#[\w-]+)?\))", rf"\g<1>{REPOSITORY}/blob/{ref}/\2", text
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004
        sys.exit(__doc__)
    README.write_text(absolute(README.read_text(encoding="utf-8"), sys.argv[1]), encoding="utf-8")
