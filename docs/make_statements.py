"""Write docs/statements.md from the statements that tests run beside Java's connector: ``make docs``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "interop"))

from differences import DIFFERENCES
from statements import STORIES

PAGE = Path(__file__).with_name("statements.md")
HEAD = """# Statements of the Java connector

Made from the tests by `make docs`; do not edit it by hand.

Each statement below runs in `tests/interop/test_statements_beside_java.py`, in one Spark session: by the Java
connector on one table, and by `icefield.spark.session(…).sql` (or the functions of `icefield.spark`) on its twin, in
the order of this page. After each, both have answered with the same columns and rows, or both have refused it; and
the tables have the same rows on all branches, the same schema with its ids, partition spec, sort order, properties,
branches and tags, and the same snapshots with equal summaries (but for names of engines and sizes of files). What is
otherwise on purpose is said below the statements. `local.db.t` is the table; `{0}` is the id of its first snapshot,
and `{ts0}` its time.
"""


def text_of(step: Any) -> str:
    """Return a step as code."""
    if isinstance(step, str):
        lines = [line.strip() for line in step.splitlines()]
        return re.sub(r"\bcat\b", "local", re.sub(r"\bdb\.T\b", "db.t", "\n    ".join(lines)))
    kind, arguments = step
    return f"{kind}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for name, story in STORIES.items():
        steps, settings = story if isinstance(story, tuple) else (story, {})
        parts += [f"## {name[0].upper()}{name[1:]}", ""]
        if settings:
            parts += ["With " + ", ".join(f"`{key}={value}`" for key, value in settings.items()) + ":", ""]
        is_sql = all(isinstance(step, str) for step in steps)
        parts += ["```sql" if is_sql else "```text", *map(text_of, steps), "```", ""]
        about = [(step, reason) for stories, step, _, reason in DIFFERENCES if re.fullmatch(stories, name)]
        there = [reason for step, reason in about if any(re.search(step, repr(one)) or step == ".*" for one in steps)]
        parts += [f"- Differs: {reason}." for reason in dict.fromkeys(there)] + ([""] if there else [])
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is not up to date: make docs")
    PAGE.write_text(page(), encoding="utf-8")
