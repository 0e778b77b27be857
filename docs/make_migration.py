"""Write docs/migration.md from the comparison with PyIceberg: ``make docs``."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path

from pyiceberg_differences import DELIBERATE, MISSING
from pyiceberg_surface import compared, differences

PAGE = Path(__file__).with_name("migration.md")
HEAD = """# Coming from PyIceberg

Made from the code by `make docs`; do not edit it by hand.

Replace `pyiceberg` by `icefield` in imports. Modules, classes, methods, parameters and defaults are those of PyIceberg
where it has the name: {same} of {all} public names of PyIceberg {version} are used here as they are there, and a test
compares both. Beyond them:

- Types, transforms, partitioning and filters can be written as text everywhere: `"decimal(9, 2)"`, `"bucket(16, id)"`,
  `"id > 5"`. Every type, transform and expression is an instance of the class of its kind all the same.
- `plan_files()` is a sequence of `FileScanTask`, made when they are asked for, and has the files as columns
  (`to_arrow()`). Metrics of files are read with `plan_files(metrics=True)`.
- Enums equal their text: `field.direction == "asc"` and `field.direction == SortDirection.ASC`.
- Methods that change a table return it, or what they did.
- Times without a time zone are refused: `datetime.now(timezone.utc)`, not `datetime.now()`.
- Expressions are neither true nor false: instead of `expr or AlwaysTrue()`, write
  `AlwaysTrue() if expr is None else expr`.
- `scan.use_ref(name).snapshot_id` is `None`, as a branch is read with the current schema and a snapshot with its own:
  `scan.snapshot().snapshot_id` is the id.
- `branch=None` is refused: rows are staged by `snapshot_properties={{"wap.id": ...}}` in a table with
  `write.wap.enabled=true`, files by `update_snapshot(stage_only=True)`.
- Manifests are written by `Table.new_manifest_writer`, and manifest lists by commits alone.
- Deletes, overwrites and upserts make one snapshot each, where PyIceberg makes up to three, and are made again after
  concurrent appends where they may be, instead of failing.
- `dynamic_partition_overwrite` works with every transform. Files of older partition specs are refused, unless
  `on_old_specs="rewrite"` takes the rows out of them, as PyIceberg does.
- `add_files` gives the table a name mapping only where files have no field ids.
- Rows are read as `string`, `binary` and `list`, not as their large forms, with field ids in the metadata of columns.
- `pyarrow_to_schema(schema, name_mapping)`: `Schema.from_arrow` takes the ids that columns have and gives new ones to
  the others; files without ids are read by the mapping of the table.
- `scan.row_filter` of a scan without a filter is `None`, not `AlwaysTrue()`.
- `io.pyarrow.expression_to_pyarrow` is `icefield.expressions.arrow.to_pyarrow(row_filter, schema)`, and takes text and
  expressions that are not bound too. It is also what to use instead of `rewrite_to_dnf` and
  `expression_to_plain_format`, where a library takes expressions of PyArrow.
- `transform.pyarrow_transform(type)` returns one `Array`, of a `ChunkedArray` too.
- `Schema.to_arrow()` always has field ids (`include_field_ids=False`): they are metadata, which
  `pyarrow.Schema.equals` leaves out.
- `conversions.partition_to_py`: `literal(text).to(type)` reads dates, times, decimals and uuids, `int(text)` whole
  numbers. `Table.add_files` and `Catalog.migrate` read the paths of partitions themselves.
- Nanoseconds are refused in versions 1 and 2 (`downcast-ns-timestamp-to-us-on-write`): cast the column to
  `pa.timestamp("us")` before, or make a table of version 3.
- DataFusion takes the rows of a scan: `context.from_arrow(table.scan().to_arrow_batch_reader())`.
- `py-io-impl` is ignored, as files are reached by icefield's own storage, and `write.py-location-provider.impl` is
  refused: `write.data.path` and `write.object-storage.*` say where files lie.
"""


def reason(name: str) -> tuple[str, bool] | None:
    """Return the pattern of a difference, and whether it is missing rather than other on purpose."""
    # An exact name goes before patterns, and longer patterns before shorter ones.
    for patterns, missing in ((DELIBERATE, False), (MISSING, True)):
        if name in patterns:
            return name, missing
    fitting = [
        (len(pattern), pattern, missing)
        for patterns, missing in ((DELIBERATE, False), (MISSING, True))
        for pattern in patterns
        if fnmatchcase(name, pattern)
    ]
    return max(fitting)[1:] if fitting else None


def by_pattern() -> tuple[dict[str, list[str]], list[str]]:
    """Return the differences by their patterns, and those without one."""
    found: dict[str, list[str]] = {}
    unknown: list[str] = []
    for name, what in differences().items():
        if (why := reason(name)) is None:
            unknown.append(f"{name}: {what}")
        else:
            found.setdefault(why[0], []).append(name)
    return found, unknown


def _last(line: tuple[str, list[str]]) -> bool:
    return line[0] == "inside of PyIceberg"


def page() -> str:
    """Return the whole page."""
    found, unknown = by_pattern()
    if unknown:
        sys.exit("no reason is given for:\n" + "\n".join(unknown))
    total = compared()
    same = total - sum(len(names) for names in found.values())
    parts = [HEAD.format(same=same, all=total, version=version("pyiceberg"))]
    for title, patterns in (("Other on purpose", DELIBERATE), ("Not there yet", MISSING)):
        parts += [f"## {title}", "", "| PyIceberg | here |", "| --- | --- |"]
        # One line for each reason, in the order of the first name that has it; what users hardly know comes last.
        by_reason: dict[str, list[str]] = {}
        for pattern, why in patterns.items():
            if pattern in found:
                by_reason.setdefault(why, []).append(f"`{pattern}`")
        parts += [f"| {', '.join(names)} | {why} |" for why, names in sorted(by_reason.items(), key=_last)]
        parts.append("")
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text(encoding="utf-8") == page() else f"{PAGE} is not up to date: make docs")
    PAGE.write_text(page(), encoding="utf-8")
