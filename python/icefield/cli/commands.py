"""The commands."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from icefield._core import __version__
from icefield._secrets import redacted
from icefield.catalog import load_catalog
from icefield.catalog.configuration import catalog_names, catalog_properties
from icefield.cli.output import instant, print_grid, print_json, print_records, print_text, wants_json
from icefield.errors import InvalidArgumentError
from icefield.orc import ORCFile
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


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, package_name="icefield")
@click.option("--catalog", "catalog_name", help="Name of the catalog; the configured default without it.")
@click.option("--uri", help="Where the catalog is, for example sqlite:///warehouse/catalog.db")
@click.option("--warehouse", help="Where new tables lie.")
@click.option("--property", "-p", "more", multiple=True, metavar="KEY=VALUE", help="Any other property; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def icefield(
    context: click.Context,
    catalog_name: str | None,
    uri: str | None,
    warehouse: str | None,
    more: tuple[str, ...],
    as_json: bool,
) -> None:
    """Look at Apache Iceberg tables.

    TABLE is NAMESPACE.NAME in the catalog, or the path of a metadata file.
    """
    del as_json  # read where something is printed
    given = {"uri": uri, "warehouse": warehouse, **dict(_pair(text) for text in more)}
    context.obj = (catalog_name, {key: value for key, value in given.items() if value is not None})


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        msg = f"a property is given as KEY=VALUE, not {text!r}"
        raise InvalidArgumentError(msg)
    return key, value


def _table(context: click.Context, name: str) -> Table:
    catalog_name, properties = context.obj
    if name.endswith((".json", ".json.gz")):
        return Table.from_metadata(name, **properties)
    return load_catalog(catalog_name, **properties).load_table(name)


# --- catalog


@icefield.group()
def catalog() -> None:
    """Catalogs and what they hold."""


@catalog.command("list")
@click.argument("namespace", required=False)
@click.pass_context
def catalog_list(context: click.Context, namespace: str | None) -> None:
    """List the tables of a catalog, of one namespace or of all."""
    name, properties = context.obj
    opened = load_catalog(name, **properties)
    todo = [tuple(namespace.split("."))] if namespace else opened.list_namespaces()
    rows = []
    while todo:
        here = todo.pop(0)
        todo[:0] = opened.list_namespaces(here)
        rows += [(".".join(here), table[-1]) for table in opened.list_tables(here)]
    print_grid(["namespace", "table"], rows)


@catalog.command("show")
def catalog_show() -> None:
    """Show which catalogs are configured, and how; secrets are left out."""
    rows = [(name, key, value) for name in catalog_names() for key, value in redacted(catalog_properties(name)).items()]
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
        ("partitioned by", _fields(document, "partition-specs", "spec-id", document.get("default-spec-id", 0))),
        ("sorted by", _fields(document, "sort-orders", "order-id", document.get("default-sort-order-id", 0))),
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
@click.pass_context
def table_snapshots(context: click.Context, name: str) -> None:
    """List the snapshots of a table, oldest first, with the branches and tags that name them."""
    opened = _table(context, name)
    names: dict[int, list[str]] = {}
    for ref, target in opened.refs().items():
        names.setdefault(target.snapshot_id, []).append(ref)
    wanted = ("added-records", "deleted-records", "total-records", "total-data-files")
    rows = [
        (
            snapshot.snapshot_id,
            instant(snapshot.timestamp_ms),
            snapshot.operation,
            *((snapshot.summary or {}).get(key) for key in wanted),
            ", ".join(sorted(names.get(snapshot.snapshot_id, []))),
        )
        for snapshot in opened.snapshots()
    ]
    print_grid(["snapshot", "committed", "operation", "added", "deleted", "rows", "files", "refs"], rows, whole=True)


@table.command("inspect")
@click.argument("name", metavar="TABLE")
@click.argument("what", metavar="WHAT")
@click.option("--snapshot", "snapshot_id", type=int, help="Look into this snapshot; by its id.")
@click.option("--limit", "-n", type=click.IntRange(min=0), help="Rows to print at the most.")
@click.option("--columns", "-c", multiple=True, help="A column to print, nested ones with dots; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def table_inspect(
    context: click.Context,
    name: str,
    what: str,
    snapshot_id: int | None,
    limit: int | None,
    columns: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print a metadata table: files, partitions, history and others.

    WHAT is one of snapshots, history, metadata_log_entries, refs, entries, files, data_files, delete_files, manifests,
    partitions, position_deletes, all_files, all_data_files, all_delete_files, all_entries, all_manifests. People see
    all columns but metrics, unless columns are given; JSON has all.
    """
    context.find_root().params["as_json"] |= as_json
    inspect = _table(context, name).inspect
    if not columns and not wants_json():
        columns = tuple(field.name for field in inspect.schema(what).fields if field.name not in _METRICS)
    reader = inspect.stream(what, selected_fields=columns or ("*",), snapshot_id=snapshot_id)
    rows: list[list[Any]] = []
    for batch in reader:
        left = batch.num_rows if limit is None else limit - len(rows)
        rows += (list(row.values()) for row in batch.slice(0, left).to_pylist())
        if len(rows) == limit:
            break
    print_records(reader.schema.names, rows)


@table.command("files")
@click.argument("name", metavar="TABLE")
@click.pass_context
def table_files(context: click.Context, name: str) -> None:
    """List the data files of the current snapshot."""
    opened = _table(context, name)
    _print_files(opened.scan(), opened.location())


@table.command("plan")
@click.argument("name", metavar="TABLE")
@click.argument("row_filter", metavar="[FILTER]", required=False)
@click.option("--snapshot-id", type=int, help="Plan for this snapshot.")
@click.pass_context
def table_plan(context: click.Context, name: str, row_filter: str | None, snapshot_id: int | None) -> None:
    """Show which files a scan with this filter reads, and what it skips."""
    opened = _table(context, name)
    scan = opened.scan(row_filter, snapshot_id=snapshot_id)
    if wants_json():
        plan = scan.plan_files()
        print_json({"report": plan.report, "files": plan.files})
        return
    print_text(scan.explain())
    _print_files(scan, opened.location())


@table.command("head")
@click.argument("name", metavar="TABLE")
@click.argument("row_filter", metavar="[FILTER]", required=False)
@click.option(
    "--rows", "-n", type=click.IntRange(min=0), default=10, show_default=True, help="Rows to print at the most."
)
@click.option("--columns", "-c", multiple=True, help="A column to print; repeatable.")
@click.pass_context
def table_head(context: click.Context, name: str, row_filter: str | None, rows: int, columns: tuple[str, ...]) -> None:
    """Print some rows of a table."""
    scan = _table(context, name).scan(row_filter, selected_fields=columns or ("*",), limit=rows)
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


# --- orc


@icefield.group()
def orc() -> None:
    """ORC files."""


@orc.command("inspect")
@click.argument("path", metavar="FILE.orc")
@click.option("--runs", is_flag=True, help="Also read every stream, and count its chunks and runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def orc_inspect(context: click.Context, path: str, runs: bool, as_json: bool) -> None:
    """Show what an ORC file is made of: columns, statistics, stripes, streams."""
    context.find_root().params["as_json"] |= as_json
    _, properties = context.obj
    opened = ORCFile(path, storage=properties)
    document = opened.inspect(runs=runs)
    if wants_json():
        print_json(document)
        return
    facts = [
        ("rows", document["rows"]),
        ("bytes", document["length"]),
        ("type", document["schema"]),
        ("file version", document["fileVersion"]),
        ("written by", f"{document['writer']}, {opened.writer_version}"),
        ("compression", f"{opened.compression} in blocks of {opened.compression_size}"),
        ("rows of an index entry", opened.row_index_stride or "no index"),
        *((f"metadata {name}", value.decode(errors="replace")) for name, value in opened.metadata.items()),
    ]
    print_grid(["", path], facts)
    columns = zip(document["footer"].get("types", []), document["statistics"], strict=False)
    shown = [
        (number, kind["kind"], document["attributes"].get(str(number)), *_statistics(statistics))
        for number, (kind, statistics) in enumerate(columns)
    ]
    print_grid(["column", "type", "attributes", "values", "null", "statistics"], shown)
    for number, stripe in enumerate(document["stripes"]):
        _print_stripe(number, stripe, document["footer"]["stripes"][number])


def _print_stripe(number: int, stripe: dict[str, Any], place: dict[str, Any]) -> None:
    encodings = stripe["footer"].get("columns", [])
    rows = []
    for stream in stripe["streams"]:
        column = stream["column"]
        encoding = encodings[column].get("kind") if column < len(encodings) else None
        rows.append((column, stream["kind"], encoding, stream["offset"], stream["length"], stream.get("runs")))
    title = f"stripe {number}: {place.get('number_of_rows', 0)} rows from byte {place.get('offset', 0)}"
    print_grid(["column", "stream", "encoding", "offset", "bytes", "runs"], rows, title)


def _statistics(statistics: dict[str, Any]) -> tuple[Any, ...]:
    own = {key: value for key, value in statistics.items() if key.endswith("_statistics")}
    return statistics.get("number_of_values"), statistics.get("has_null"), next(iter(own.values()), None)


def _print_files(scan: DataScan, location: str) -> None:
    """List files: for people by what follows the location of the table, which is long and that of all."""
    columns = ["file_path", "file_format", "spec_id", "partition", "record_count", "file_size_in_bytes", "deletes"]
    rows = [
        [len(file[column] or ()) if column == "deletes" else file[column] for column in columns]
        for file in scan.plan_files().files
    ]
    headings, below = ["file", "format", "spec", "partition", "rows", "bytes", "deletes"], location.rstrip("/") + "/"
    if wants_json():
        print_grid(headings, rows)
    else:
        print_grid(
            headings, ([str(row[0]).removeprefix(below), *row[1:]] for row in rows), f"below {below}", whole=True
        )


def _print_schema(opened: Table) -> None:
    rows = [
        (field.field_id, field.name, str(field.field_type), "required" if field.required else "", field.doc)
        for field in opened.schema().fields
    ]
    print_grid(["id", "column", "type", "", "doc"], rows)


def _fields(document: dict[str, Any], part: str, key: str, current: int) -> str:
    """Give partition or sort fields in the text form that `create_table` takes."""
    columns = {
        field["id"]: field["name"]
        for schema in document.get("schemas", [document.get("schema", {})])
        for field in schema.get("fields", [])
    }
    chosen: dict[str, Any] = next((entry for entry in document.get(part, []) if entry.get(key) == current), {})
    texts = []
    for field in chosen.get("fields", []):
        sources = field.get("source-ids", [field.get("source-id")])
        names = ", ".join(str(columns.get(source, source)) for source in sources)
        transform, bracket, width = str(field["transform"]).partition("[")
        call = f"{transform}({width.rstrip(']')}, {names})" if bracket else f"{transform}({names})"
        direction = " ".join(
            str(field[word]).replace("-", " ") for word in ("direction", "null-order") if word in field
        )
        texts.append(f"{names if transform == 'identity' else call} {direction}".strip())
    return ", ".join(texts) or "nothing"


def _line(snapshot: Snapshot) -> str:
    return f"{snapshot.snapshot_id}, {snapshot.operation}, {instant(snapshot.timestamp_ms)}"
