"""Write docs/properties.md from the lists in the code: ``make docs``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from icefield._core import table_properties
from icefield.catalog.known import PROPERTIES
from icefield.spark.sessions.settings import SETTINGS
from icefield.spark.tables.options import OPTIONS

PAGE = Path(__file__).with_name("properties.md")
HEAD = """# Properties and options

Made from the code by `make docs`; do not edit it by hand.

Every setting takes effect or is refused. Each name below is *honoured*, *harmless* (it has no effect here, with
the reason), or *refused* with an error that gives the reason.

- **Table properties** are checked when they are set: by `create_table`, `update_properties` and transactions. An
  invalid value is refused. An unknown name is your own and is kept, unless it is close to a known one
  (`format_version`, `write.format.defualt`): that is an error that suggests the known name. Tables of other engines are
  opened and read with any properties. Writing to them fails if a property needed for the write has an invalid value, or
  if the write would not do what the property asks for.
- **Catalog properties** may come from a configuration shared with other libraries, so unknown ones are ignored. Names
  close to known ones are refused, and so are settings that must not be ignored.
- **Options of `format("icefield")`** are all known: any other name is refused, except catalog properties (`uri`,
  `warehouse`, `s3.*`, ...). Read options are refused on writes, and write options on reads.
- `Table.scan(options=...)` takes `split-size`, `lookback` and `file-open-cost`.
- **Settings of a Spark session**, `spark.sql.iceberg.*`, are those of the last table: `session.sql` and the writes of
  `icefield.spark` read them, `format("icefield")` does not. `spark.wap.id` and `spark.wap.branch` are read by both;
  `format("icefield")` sees them only when it writes: name the branch when you read.
"""


def escaped(text: str) -> str:
    """Escape a text for a cell."""
    return text.replace("|", "\\|").replace("[`", "`").replace("`]", "`")


def table(title: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table below its title."""
    heads = list(heads)
    lines = [f"## {title}", "", f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(escaped(cell) for cell in row)} |" for row in rows)])


def named(name: str) -> str:
    """Return a name as code, with a star if it is a prefix."""
    return f"`{name}*`" if name.endswith(".") else f"`{name}`"


def page() -> str:
    """Return the whole page."""
    properties = [
        (named(name), about, values, f"`{default}`" if default else "", effect, why)
        for name, default, values, effect, why, about in sorted(table_properties())
    ]
    catalogs = sorted((named(one.name), one.effect, one.why) for one in PROPERTIES)
    options = sorted(
        (named(one.name), one.use, one.effect, one.why + (f" (except `{one.allowed[0]}`)" if one.allowed else ""))
        for one in OPTIONS
    )
    settings = sorted(
        (
            named(f"spark.sql.iceberg.{one.name}"),
            one.effect,
            one.why + (f" (except `{one.allowed[0]}`)" if one.allowed else ""),
        )
        for one in SETTINGS
    )
    parts = [
        HEAD,
        table("Properties of tables", ("name", "meaning", "values", "default", "effect", "reason"), properties),
        "",
        table("Properties of catalogs and storage", ("name", "effect", "reason"), catalogs),
        "",
        table('Options of `format("icefield")`', ("name", "used in", "effect", "reason"), options),
        "",
        table("Settings of a Spark session", ("name", "effect", "reason"), settings),
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is not up to date: make docs")
    PAGE.write_text(page(), encoding="utf-8")
