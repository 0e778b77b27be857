"""Print the examples of README.md and of the guides as one program, for a type checker: ``make lint``."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def program() -> str:
    """Return the examples, those of each page in a function of its own."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = {"readme": "".join(re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE))}
    for page in sorted((ROOT / "docs").glob("*.md")):
        examples = doctest.DocTestParser().get_examples(page.read_text(encoding="utf-8"))
        pages[re.sub(r"\W", "_", page.stem)] = "".join(example.source for example in examples)
    lines = ["import icefield as ice"]
    for name, source in pages.items():
        # The guides are about a table that their tests make.
        lines += ["", f"def {name}(table: ice.Table) -> None:", "    pass"]
        lines += [f"    {_checked(line)}" for line in source.splitlines()]
    return "\n".join(lines) + "\n"


def _checked(line: str) -> str:
    # pyarrow makes most functions of `pyarrow.compute` when it is imported, where pyright does not see them.
    return f"{line}  # pyright: ignore[reportAttributeAccessIssue]" if re.search(r"\bpc\.\w+\(", line) else line


if __name__ == "__main__":
    sys.stdout.write(program())
