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

Replace `pyiceberg` by `icefield` in imports. Modules, classes, methods, parameters and defaults follow PyIceberg
wherever it has the name: {same} of {all} public names of PyIceberg {version} are used here as they are there, and a
test compares them. Also:

- Types, transforms, partitioning and filters can be written as text everywhere: `"decimal(9, 2)"`, `"bucket(16, id)"`,
  `"id > 5"`. Every type, transform and expression is still an instance of its class.
- `plan_files()` is a sequence of `FileScanTask` objects, created on access, and returns the files as columns with
  `to_arrow()`. Read file metrics with `plan_files(metrics=True)`.
- Enums equal their text: `field.direction == "asc"` and `field.direction == SortDirection.ASC`.
- Methods that change a table return the table or a result.
- Times without a time zone are refused: `datetime.now(timezone.utc)`, not `datetime.now()`.
- Expressions have no truth value: instead of `expr or AlwaysTrue()`, write
  `AlwaysTrue() if expr is None else expr`.
- `scan.use_ref(name).snapshot_id` is `None`, because a branch is read with the current schema and a snapshot with its
  own; `scan.snapshot().snapshot_id` is the id.
- `branch=None` is refused: stage rows with `snapshot_properties={{"wap.id": ...}}` in a table with
  `write.wap.enabled=true`, and files with `update_snapshot(stage_only=True)`.
- `Table.new_manifest_writer` writes manifests; only commits write manifest lists.
- Deletes, overwrites and upserts make one snapshot each, where PyIceberg makes up to three. After concurrent appends
  they are retried if possible, instead of failing.
- `dynamic_partition_overwrite` works with every transform. Files of older partition specs are refused, unless
  `on_old_specs="rewrite"` removes the rows from them, as PyIceberg does.
- `add_files` gives the table a name mapping only if files lack field ids.
- Rows are read as `string`, `binary` and `list`, not as their large forms, with field ids in the column metadata.
- `pyarrow_to_schema(schema, name_mapping)`: `Schema.from_arrow` uses the columns' ids and assigns new ones to
  the others; files without ids are read by the table's name mapping.
- `scan.row_filter` of a scan without a filter is `None`, not `AlwaysTrue()`.
- `io.pyarrow.expression_to_pyarrow` is `icefield.expressions.arrow.to_pyarrow(row_filter, schema)`, which also takes
  text and unbound expressions. Use it instead of `rewrite_to_dnf` and `expression_to_plain_format` for libraries that
  take pyarrow expressions.
- `transform.pyarrow_transform(type)` returns one `Array`, also for a `ChunkedArray`.
- `Schema.to_arrow()` always has field ids (`include_field_ids=False`): they are metadata, which
  `pyarrow.Schema.equals` ignores.
- `conversions.partition_to_py`: `literal(text).to(type)` reads dates, times, decimals and uuids, `int(text)` integers.
  `Table.add_files` and `Catalog.migrate` read partition paths themselves.
- Nanoseconds are refused in versions 1 and 2 (`downcast-ns-timestamp-to-us-on-write`): cast the column to
  `pa.timestamp("us")` first, or create a version 3 table.
- DataFusion reads a scan: `context.from_arrow(table.scan().to_arrow_batch_reader())`.
- REST catalogs: of the 149 tests of the client of PyIceberg 0.12 (`test_rest.py`), 80 pass with the import
  changed, if words of messages and whole `Table` objects are not compared
  (`.ci/pyiceberg-rest` runs them). The others look into PyIceberg's session,
  endpoints and models, or see one of these differences:
    - Nothing is sent before something is asked of the catalog. A wrong credential or certificate is an error then.
    - A route that is not among the server's `endpoints` is not asked for, and the first page of a list is asked for
      with an empty `pageToken`, as from Java.
    - Whether a rename or registration is possible, the server says; namespaces are not looked up before.
    - `header.*` is for the catalog, and not sent to another OAuth2 server. There is no `X-Client-Version`.
    - `auth.impl` names a class with `auth_header()`; one that cannot be imported is `NotInstalledError`.
    - A property that is missing is `NoSuchPropertyException`, a `LookupError`, and no `KeyError`; the root as
      the name of a namespace is `InvalidArgumentError`.
    - `Table.config` and `RestCatalog.load_credentials`: `Table.storage` has what the server sends, and renews it.
- `py-io-impl` is ignored, because icefield has its own storage. `write.py-location-provider.impl` is the name of an
  installed entry point, never imported: see [where data files lie](writing.md#where-data-files-lie).
"""


def reason(name: str) -> tuple[str, bool] | None:
    """Return the pattern of a difference, and whether it is missing rather than intended."""
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
    return line[0] == "internal to PyIceberg"


def page() -> str:
    """Return the whole page."""
    found, unknown = by_pattern()
    if unknown:
        sys.exit("no reason is given for:\n" + "\n".join(unknown))
    total = compared()
    same = total - sum(len(names) for names in found.values())
    parts = [HEAD.format(same=same, all=total, version=version("pyiceberg"))]
    for title, patterns in (("Intended differences", DELIBERATE), ("Not supported yet", MISSING)):
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
