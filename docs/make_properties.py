"""Write docs/properties.md from the lists in the code: ``make docs``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from icefield._core import table_properties
from icefield.catalog.known import PROPERTIES
from icefield.spark.options import OPTIONS

PAGE = Path(__file__).with_name("properties.md")
HEAD = """# Properties and options

Made from the code by `make docs`; do not edit it by hand.

What is set counts, or is refused. Each name below is *honoured*, *harmless* (it has no effect here, and why that does
no harm), or *refused* with an error that says why.

- **Properties of tables** are checked when they are set: by `create_table`, `update_properties` and transactions. A
  value that its property cannot have is refused then. A name that nobody knows is your own and is kept, unless it is
  close to a known one (`format_version`, `write.format.defualt`): that is an error that names the known one. Tables
  that other engines made are opened and read whatever their properties are. Writing to them fails where a property that
  the write needs has a bad value, and where it would do something else than was asked for: `encryption.key-id`, and
  encryption keys in the metadata, refuse every write.
- **Properties of catalogs** may come from a configuration that is shared with other libraries: unknown ones are passed
  over. Names close to known ones are refused, and so is what would be missed where it counts.
- **Options of `format("icefield")`** are all known: every other name is refused, except properties of the catalog
  (`uri`, `warehouse`, `s3.*`, ...). Options of reads are refused on writes and the other way round.
- `Table.scan(options=...)` takes `split-size`, `lookback` and `file-open-cost`.
- Settings of a Spark session that begin with `spark.sql.iceberg.` are those of Java's connector and are not read.
  `spark.wap.id` and `spark.wap.branch` are, by `icefield.spark.read` and `append`; `format("icefield")` sees them when
  it writes, and not when it reads: name the branch there.
"""


def escaped(text: str) -> str:
    """Give a text as it may stand in a cell."""
    return text.replace("|", "\\|").replace("[`", "`").replace("`]", "`")


def table(title: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Give a table of Markdown below its title."""
    heads = list(heads)
    lines = [f"## {title}", "", f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(escaped(cell) for cell in row)} |" for row in rows)])


def named(name: str) -> str:
    """Give a name; one that is followed by more says so."""
    return f"`{name}*`" if name.endswith(".") else f"`{name}`"


def page() -> str:
    """Give the whole page."""
    properties = [
        (named(name), about, values, f"`{default}`" if default else "", effect, why)
        for name, default, values, effect, why, about in sorted(table_properties())
    ]
    catalogs = sorted((named(one.name), one.effect, one.why) for one in PROPERTIES)
    options = sorted(
        (named(one.name), one.use, one.effect, one.why + (f" (but for `{one.allowed[0]}`)" if one.allowed else ""))
        for one in OPTIONS
    )
    parts = [
        HEAD,
        table("Properties of tables", ("name", "what it is", "values", "default", "effect", "why"), properties),
        "",
        table("Properties of catalogs and storage", ("name", "effect", "why"), catalogs),
        "",
        table('Options of `format("icefield")`', ("name", "of a", "effect", "why"), options),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is not up to date: make docs")
    PAGE.write_text(page(), encoding="utf-8")
