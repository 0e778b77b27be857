"""The commands about one table."""

from __future__ import annotations

import json
from typing import Any

import click

from icefield._outputs.layout import contents_of, partition_texts, size_of, sort_texts, time_of
from icefield.cli.moments import at_snapshot
from icefield.cli.names import complete_metadata_tables, table_argument
from icefield.cli.opening import table_of
from icefield.cli.options import CommandGroup, limited, wants_json
from icefield.cli.output import print_done, print_grid, print_json, print_records, print_text
from icefield.cli.partitions import PartitionTexts
from icefield.scan import DataScan
from icefield.scan.moments import Moment
from icefield.schema import Schema
from icefield.table import Snapshot, Table

__all__ = ["table"]

#: Columns of metadata tables that are too wide for a page.
_METRICS = frozenset(
    {
        "column_sizes",
        "value_counts",
        "null_value_counts",
        "nan_value_counts",
        "lower_bounds",
        "upper_bounds",
        "readable_metrics",
        "key_metadata",
        "split_offsets",
        "data_file",
    }
)


@click.group(cls=CommandGroup)
def table() -> None:
    """One table."""


@table.command("show")
@table_argument
@at_snapshot
@click.pass_context
def table_show(context: click.Context, name: str, moment: Moment) -> None:
    """Show what a table is: columns, partitioning, order, properties, state.

    With --snapshot-id, --ref or --as-of: the columns and the state of that snapshot.
    """
    opened = table_of(context, name)
    scan = opened.scan(**moment)
    shown = scan.snapshot()
    if wants_json():
        document = {"name": ".".join(opened.name()), "metadata-location": opened.metadata_location}
        chosen = {"snapshot": json.loads(shown.to_json())} if moment and shown else {}
        print_json({**document, **chosen, **json.loads(opened.metadata_json())})
        return
    facts = [
        ("location", opened.location()),
        ("metadata", opened.metadata_location),
        ("format version", opened.format_version),
        ("uuid", opened.table_uuid),
        ("partitioned by", ", ".join(partition_texts(opened.spec(), opened.schema())) or "nothing"),
        ("sorted by", ", ".join(sort_texts(opened.sort_order(), opened.schema())) or "nothing"),
        ("snapshots", len(opened.snapshots())),
        ("snapshot" if moment else "current snapshot", _line(shown) if shown else "none"),
        *contents_of(shown).items(),
    ]
    print_grid(["", ".".join(opened.name()) or "table"], facts, whole=True)
    _print_schema(scan.projection())
    if opened.properties:
        print_grid(["property", "value"], sorted(opened.properties.items()), whole=True)


@table.command("schema")
@table_argument
@at_snapshot
@click.pass_context
def table_schema(context: click.Context, name: str, moment: Moment) -> None:
    """Show the columns of a table, now or at the snapshot that is chosen."""
    opened = table_of(context, name)
    schema = opened.scan(**moment).projection() if moment else opened.schema()
    if wants_json():
        print_json(json.loads(schema.to_json()))
    else:
        _print_schema(schema)


@table.command("history")
@table_argument
@click.pass_context
def table_history(context: click.Context, name: str) -> None:
    """Draw the snapshots of a table with its branches and tags, oldest first.

    JSON is the log of snapshots: which one became current when.
    """
    history = table_of(context, name).history()
    if wants_json():
        print_json([{"snapshot-id": entry.snapshot_id, "timestamp-ms": entry.timestamp_ms} for entry in history])
    else:
        print_text(str(history))


@table.command("snapshots")
@table_argument
@at_snapshot
@limited("snapshots, the newest")
@click.pass_context
def table_snapshots(context: click.Context, name: str, moment: Moment, limit: int | None) -> None:
    """List the snapshots of a table, oldest first, with the branches and tags that name them.

    With --snapshot-id, --ref or --as-of: that snapshot and its ancestors.
    """
    opened = table_of(context, name)
    names: dict[int, list[str]] = {}
    for ref, target in opened.refs().items():
        names.setdefault(target.snapshot_id, []).append(ref)
    snapshots = opened.snapshots()
    if moment:
        last = opened.scan(**moment).snapshot()
        snapshots = [] if last is None else opened.metadata.ancestors(last.snapshot_id)[::-1]
    if limit is not None:
        snapshots = snapshots[max(len(snapshots) - limit, 0) :]
    wanted = ("added-records", "deleted-records", "total-records", "total-data-files")
    rows = [
        (
            snapshot.snapshot_id,
            time_of(snapshot.timestamp_ms),
            snapshot.operation,
            *(snapshot.summary[key] if snapshot.summary else None for key in wanted),
            ", ".join(sorted(names.get(snapshot.snapshot_id, []))),
        )
        for snapshot in snapshots
    ]
    print_grid(["snapshot", "committed", "operation", "added", "deleted", "rows", "files", "refs"], rows, whole=True)


@table.command("inspect")
@table_argument
@click.argument("what", metavar="WHAT", shell_complete=complete_metadata_tables)
@at_snapshot
@limited("rows")
@click.option("--columns", "-c", multiple=True, help="A column to print, nested ones with dots; repeatable.")
@click.pass_context
def table_inspect(
    context: click.Context, name: str, what: str, moment: Moment, limit: int | None, columns: tuple[str, ...]
) -> None:
    """Print a metadata table: files, partitions, history and others.

    WHAT is one of snapshots, history, metadata_log_entries, refs, entries, files, data_files, delete_files, manifests,
    partitions, position_deletes, all_files, all_data_files, all_delete_files, all_entries, all_manifests. People see
    all columns but metrics, unless columns are given; JSON has all.
    """
    opened = table_of(context, name)
    inspect = opened.inspect
    note = None
    if not columns and not wants_json():
        every = [field.name for field in inspect.schema(what).fields]
        columns = tuple(column for column in every if column not in _METRICS)
        left_out = ", ".join(column for column in every if column in _METRICS)
        note = f"not shown: {left_out}; name them with --columns, or pass --json" if left_out else None
    reader = inspect.stream(what, selected_fields=columns or ("*",), **moment)
    names = reader.schema.names
    rows: list[list[Any]] = []
    for batch in reader:
        left = batch.num_rows if limit is None else limit - len(rows)
        rows += (list(row.values()) for row in batch.slice(0, left).to_pylist())
        if len(rows) == limit:
            break
    if not wants_json() and "partition" in names:
        _with_partition_texts(opened, names, rows)
    print_records(names, rows, note)


def _with_partition_texts(table: Table, names: list[str], rows: list[list[Any]]) -> None:
    texts, at = PartitionTexts(table), names.index("partition")
    spec = names.index("spec_id") if "spec_id" in names else None
    for row in rows:
        row[at] = texts.text(row[at], None if spec is None else row[spec])


@table.command("files")
@table_argument
@at_snapshot
@limited("files")
@click.pass_context
def table_files(context: click.Context, name: str, moment: Moment, limit: int | None) -> None:
    """List the data files of a snapshot, the current one by default."""
    opened = table_of(context, name)
    _print_files(opened, opened.scan(**moment), limit)


@table.command("plan")
@table_argument
@click.argument("row_filter", metavar="[FILTER]", required=False)
@at_snapshot
@limited("files")
@click.pass_context
def table_plan(context: click.Context, name: str, row_filter: str | None, moment: Moment, limit: int | None) -> None:
    """Show which files a scan with this filter reads, and what it skips."""
    opened = table_of(context, name)
    scan = opened.scan(row_filter, **moment)
    if wants_json():
        plan = scan.plan_files()
        print_json({"report": plan.report, "files": plan.files[:limit]})
        return
    print_text(scan.explain())
    _print_files(opened, scan, limit)


@table.command("head")
@table_argument
@click.argument("row_filter", metavar="[FILTER]", required=False)
@at_snapshot
@limited("rows", default=10)
@click.option("--columns", "-c", multiple=True, help="A column to print, or several with commas; repeatable.")
@click.pass_context
def table_head(
    context: click.Context,
    name: str,
    row_filter: str | None,
    moment: Moment,
    limit: int,
    columns: tuple[str, ...],
) -> None:
    """Print some rows of a table."""
    opened = table_of(context, name)
    selected = _asked_columns(opened, columns)
    scan = opened.scan(row_filter, selected_fields=selected or ("*",), limit=limit, **moment)
    found = scan.to_arrow()
    print_grid(found.column_names, (list(row.values()) for row in found.to_pylist()))


@table.command("count")
@table_argument
@click.argument("row_filter", metavar="[FILTER]", required=False)
@at_snapshot
@click.pass_context
def table_count(context: click.Context, name: str, row_filter: str | None, moment: Moment) -> None:
    """Count the rows of a table, all or those that a filter matches."""
    rows = table_of(context, name).scan(row_filter, **moment).count()
    print_done(str(rows), {"table": name, "rows": rows})


def _asked_columns(table: Table, given: tuple[str, ...]) -> list[str]:
    """Return the columns that were asked for; a list with commas is several, unless a column has that name."""
    known = set(table.schema().column_names)
    return [part.strip() for text in given for part in ([text] if text in known else text.split(","))]


def _print_files(table: Table, scan: DataScan, limit: int | None) -> None:
    """List files: for people by what follows the location of the table, which is long and that of all."""
    columns = ["file_path", "file_format", "spec_id", "partition", "record_count", "file_size_in_bytes"]
    shown = scan.plan_files().to_arrow().slice(0, limit)
    counts = [len(deletes) for chunk in shown["deletes"].chunks for deletes in chunk]
    files = zip(shown.select(columns).to_pylist(), counts, strict=True)
    rows: list[list[Any]] = [[*file.values(), count] for file, count in files]
    headings = ["file", "format", "spec", "partition", "rows", "bytes", "deletes"]
    size = headings.index("bytes")
    if wants_json():
        print_grid(headings, rows)
        return
    texts, below = PartitionTexts(table), table.location().rstrip("/") + "/"
    for row in rows:
        row[0], row[3] = str(row[0]).removeprefix(below), texts.text(row[3], row[2])
        row[size] = size_of(row[size])
    headings[size] = "size"
    print_grid(headings, rows, f"below {below}", whole=True)


def _print_schema(schema: Schema) -> None:
    rows = [
        (field.field_id, field.name, str(field.field_type), "required" if field.required else "optional", field.doc)
        for field in schema.fields
    ]
    print_grid(["id", "column", "type", "required", "doc"], rows)


def _line(snapshot: Snapshot) -> str:
    return f"{snapshot.snapshot_id}, {snapshot.operation}, {time_of(snapshot.timestamp_ms)}"
