"""The commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from icefield import __version__
from icefield._layout import iso_of, partition_texts, sort_texts
from icefield._secrets import redacted
from icefield.catalog import Catalog, load_catalog
from icefield.catalog.configuration import catalog_names, catalog_properties, default_catalog
from icefield.catalog.sql import SqlCatalog
from icefield.cli.options import CommandGroup, at_snapshot, limited, wants_json
from icefield.cli.orc import orc
from icefield.cli.output import print_grid, print_json, print_records, print_text
from icefield.cli.partitions import PartitionTexts
from icefield.errors import InvalidArgumentError
from icefield.moments import Moment
from icefield.scan import DataScan
from icefield.table import Snapshot, Table

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


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, package_name="icefield")
@click.option("--catalog", "catalog_name", help="Name of the catalog; by default the one that is configured.")
@click.option("--uri", help="Where the catalog is, for example sqlite:///warehouse/catalog.db")
@click.option("--warehouse", help="Where new tables lie.")
@click.option("--property", "-p", "more", multiple=True, metavar="KEY=VALUE", help="Any other property; repeatable.")
@click.pass_context
def icefield(
    context: click.Context,
    catalog_name: str | None,
    uri: str | None,
    warehouse: str | None,
    more: tuple[str, ...],
) -> None:
    """Look at Apache Iceberg tables.

    TABLE is NAMESPACE.NAME in the catalog, or the path of a metadata file.
    """
    given = {"uri": uri, "warehouse": warehouse, **dict(_pair(text) for text in more)}
    context.obj = (catalog_name, {key: value for key, value in given.items() if value is not None})


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        msg = f"expected a property as KEY=VALUE, got {text!r}"
        raise InvalidArgumentError(msg)
    return key, value


def _table(context: click.Context, name: str) -> Table:
    if name.endswith((".json", ".json.gz")):
        return Table.from_metadata(name, **context.obj[1])
    return _catalog(context).load_table(name)


def _catalog(context: click.Context) -> Catalog:
    """Open the catalog that is named; without a name the configured one, or the one that the database holds."""
    name, properties = context.obj
    if name is not None:
        return load_catalog(name, **properties)
    if not {"uri", "type"} & properties.keys():
        return load_catalog(_configured(), **properties)
    opened = load_catalog(None, **properties)
    held = opened.catalog_names() if isinstance(opened, SqlCatalog) else []
    if not held or opened.name in held:
        return opened
    if len(held) > 1:
        raise InvalidArgumentError(f"this database contains the catalogs {', '.join(held)}: choose one with --catalog")
    opened.close()
    return load_catalog(held[0], **properties)


def _configured() -> str:
    """Return the name of the default catalog, or that of the only one that is configured."""
    default, known = default_catalog(), catalog_names()
    return known[0] if len(known) == 1 and default.lower() not in known else default


# --- catalog


@icefield.group()
def catalog() -> None:
    """Catalogs and what they hold."""


@catalog.command("list")
@click.argument("namespace", required=False)
@click.pass_context
def catalog_list(context: click.Context, namespace: str | None) -> None:
    """List the tables of a catalog, of one namespace or of all."""
    opened = _catalog(context)
    todo = [tuple(namespace.split("."))] if namespace else opened.list_namespaces()
    rows = []
    while todo:
        here = todo.pop(0)
        todo[:0] = opened.list_namespaces(here)
        rows += [(".".join(here), table[-1]) for table in opened.list_tables(here)]
    print_grid(["namespace", "table"], rows)


@catalog.command("show")
@click.pass_context
def catalog_show(context: click.Context) -> None:
    """Show which catalogs are configured, and how; secrets are left out.

    With --catalog, --uri or properties: the catalog that these mean.
    """
    name, given = context.obj
    if name is None and not given:
        shown = {known: catalog_properties(known) for known in catalog_names()}
    else:
        opened = _catalog(context)
        shown = {opened.name: opened.properties}
    rows = [(known, key, value) for known, properties in shown.items() for key, value in redacted(properties).items()]
    print_grid(["catalog", "property", "value"], rows)


# --- table


@icefield.group()
def table() -> None:
    """One table."""


@table.command("show")
@click.argument("name", metavar="TABLE")
@click.pass_context
def table_show(context: click.Context, name: str) -> None:
    """Show what a table is: columns, partitioning, order, properties, state."""
    opened = _table(context, name)
    document = json.loads(opened.metadata_json())
    if wants_json():
        print_json({"name": ".".join(opened.name()), "metadata-location": opened.metadata_location, **document})
        return
    current = opened.current_snapshot()
    facts = [
        ("location", opened.location()),
        ("metadata", opened.metadata_location),
        ("format version", opened.format_version),
        ("uuid", opened.table_uuid),
        ("partitioned by", ", ".join(partition_texts(opened.spec(), opened.schema())) or "nothing"),
        ("sorted by", ", ".join(sort_texts(opened.sort_order(), opened.schema())) or "nothing"),
        ("snapshots", len(opened.snapshots())),
        ("current snapshot", _line(current) if current else "none"),
    ]
    print_grid(["", ".".join(opened.name()) or "table"], facts, whole=True)
    _print_schema(opened)
    if opened.properties:
        print_grid(["property", "value"], sorted(opened.properties.items()), whole=True)


@table.command("schema")
@click.argument("name", metavar="TABLE")
@click.pass_context
def table_schema(context: click.Context, name: str) -> None:
    """Show the columns of a table."""
    opened = _table(context, name)
    if wants_json():
        print_json(json.loads(opened.schema().to_json()))
    else:
        _print_schema(opened)


@table.command("snapshots")
@click.argument("name", metavar="TABLE")
@at_snapshot
@limited("snapshots, the newest")
@click.pass_context
def table_snapshots(context: click.Context, name: str, moment: Moment, limit: int | None) -> None:
    """List the snapshots of a table, oldest first, with the branches and tags that name them.

    With --snapshot-id, --ref or --as-of: that snapshot and its ancestors.
    """
    opened = _table(context, name)
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
            iso_of(snapshot.timestamp_ms),
            snapshot.operation,
            *((snapshot.summary or {}).get(key) for key in wanted),
            ", ".join(sorted(names.get(snapshot.snapshot_id, []))),
        )
        for snapshot in snapshots
    ]
    print_grid(["snapshot", "committed", "operation", "added", "deleted", "rows", "files", "refs"], rows, whole=True)


@table.command("inspect")
@click.argument("name", metavar="TABLE")
@click.argument("what", metavar="WHAT")
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
    opened = _table(context, name)
    inspect = opened.inspect
    if not columns and not wants_json():
        columns = tuple(field.name for field in inspect.schema(what).fields if field.name not in _METRICS)
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
    print_records(names, rows)


def _with_partition_texts(table: Table, names: list[str], rows: list[list[Any]]) -> None:
    texts, at = PartitionTexts(table), names.index("partition")
    spec = names.index("spec_id") if "spec_id" in names else None
    for row in rows:
        row[at] = texts.text(row[at], None if spec is None else row[spec])


@table.command("files")
@click.argument("name", metavar="TABLE")
@at_snapshot
@limited("files")
@click.pass_context
def table_files(context: click.Context, name: str, moment: Moment, limit: int | None) -> None:
    """List the data files of a snapshot, the current one by default."""
    opened = _table(context, name)
    _print_files(opened, opened.scan(**moment), limit)


@table.command("plan")
@click.argument("name", metavar="TABLE")
@click.argument("row_filter", metavar="[FILTER]", required=False)
@at_snapshot
@limited("files")
@click.pass_context
def table_plan(context: click.Context, name: str, row_filter: str | None, moment: Moment, limit: int | None) -> None:
    """Show which files a scan with this filter reads, and what it skips."""
    opened = _table(context, name)
    scan = opened.scan(row_filter, **moment)
    if wants_json():
        plan = scan.plan_files()
        print_json({"report": plan.report, "files": plan.files[:limit]})
        return
    print_text(scan.explain())
    _print_files(opened, scan, limit)


@table.command("head")
@click.argument("name", metavar="TABLE")
@click.argument("row_filter", metavar="[FILTER]", required=False)
@at_snapshot
@limited("rows", default=10)
@click.option("--columns", "-c", multiple=True, help="A column to print; repeatable.")
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
    scan = _table(context, name).scan(row_filter, selected_fields=columns or ("*",), limit=limit, **moment)
    found = scan.to_arrow()
    print_grid(found.column_names, (list(row.values()) for row in found.to_pylist()))


# --- metadata


@icefield.group()
def metadata() -> None:
    """Metadata files."""


@metadata.command("show")
@click.argument("path", metavar="FILE.json")
@click.pass_context
def metadata_show(context: click.Context, path: str) -> None:
    """Check a metadata file and print it as JSON."""
    _, properties = context.obj
    local = Path(path)
    opened = Table.from_metadata(str(local.absolute()) if local.exists() else path, **properties)
    print_text(json.dumps(json.loads(opened.metadata_json()), indent=2, ensure_ascii=False))


icefield.add_command(orc)


def _print_files(table: Table, scan: DataScan, limit: int | None) -> None:
    """List files: for people by what follows the location of the table, which is long and that of all."""
    columns = ["file_path", "file_format", "spec_id", "partition", "record_count", "file_size_in_bytes", "deletes"]
    rows: list[list[Any]] = [
        [len(file[column] or ()) if column == "deletes" else file[column] for column in columns]
        for file in scan.plan_files().files[:limit]
    ]
    headings = ["file", "format", "spec", "partition", "rows", "bytes", "deletes"]
    if wants_json():
        print_grid(headings, rows)
        return
    texts, below = PartitionTexts(table), table.location().rstrip("/") + "/"
    for row in rows:
        row[0], row[3] = str(row[0]).removeprefix(below), texts.text(row[3], row[2])
    print_grid(headings, rows, f"below {below}", whole=True)


def _print_schema(opened: Table) -> None:
    rows = [
        (field.field_id, field.name, str(field.field_type), "required" if field.required else "optional", field.doc)
        for field in opened.schema().fields
    ]
    print_grid(["id", "column", "type", "required", "doc"], rows)


def _line(snapshot: Snapshot) -> str:
    return f"{snapshot.snapshot_id}, {snapshot.operation}, {iso_of(snapshot.timestamp_ms)}"
