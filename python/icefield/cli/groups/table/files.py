"""The commands that take data files into tables, as they are, and that copy the files of tables."""

from __future__ import annotations

from typing import Literal

import click

from icefield._outputs.layout import counted, size_of
from icefield.cli.names import table_argument
from icefield.cli.opening import catalog_of, location_of, table_of
from icefield.cli.options import Command, keyed, pairs
from icefield.cli.output import print_done
from icefield.distributed import made_before

__all__ = ["COMMANDS"]


@click.command("migrate", cls=Command)
@table_argument
@click.argument("folder", metavar="FOLDER")
@click.option("--format", type=click.Choice(["parquet", "orc", "avro"]), help="The format of all files.")
@click.option(
    "--partition-type", "types", multiple=True, metavar="NAME=TYPE", help="Type of a partition column; repeatable."
)
@click.option("--set", "properties", multiple=True, metavar="KEY=VALUE", help="A property of the table; repeatable.")
@click.option("--location", help="Folder of the table, if it is another one than that of the files.")
@click.option("--dry-run", is_flag=True, help="Only look at the files, and print what would be created.")
@click.pass_context
def table_migrate(
    context: click.Context,
    name: str,
    folder: str,
    format: Literal["parquet", "orc", "avro"] | None,
    types: tuple[str, ...],
    properties: tuple[str, ...],
    location: str | None,
    dry_run: bool,
) -> None:
    """Create a table of a folder with data files, also below folders NAME=VALUE; the files stay as they are."""
    done = catalog_of(context).migrate(
        name,
        folder,
        format=format,
        partitioning=pairs(types),
        location=location,
        properties=pairs(properties),
        dry_run=dry_run,
    )
    what = f"{counted(done.files, 'file')}, {counted(done.rows, 'row')}, {size_of(done.bytes)}"
    columns = ", ".join(f"{field.name} {field.field_type}" for field in done.schema.fields)
    parts = f"; partitioned by {', '.join(done.partition_columns)}" if done.partition_columns else ""
    document = {
        "table": name,
        "dry-run": dry_run,
        "files": done.files,
        "rows": done.rows,
        "bytes": done.bytes,
        "columns": done.schema.column_names,
        "partition-columns": list(done.partition_columns),
    }
    verb = "would create" if dry_run else "created"
    print_done(f"{verb} table {name} of {what}; columns: {columns}{parts}", document)


@click.command("add-files", cls=Command)
@table_argument
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--branch", default="main", show_default=True, help="The branch to which they are added.")
@click.option("--dry-run", is_flag=True, help="Only look at the files.")
@keyed
@click.pass_context
def table_add_files(
    context: click.Context, name: str, files: tuple[str, ...], branch: str, dry_run: bool, key: str | None
) -> None:
    """Add Parquet, ORC or Avro files to a table, as they are; they belong to the table from then on."""
    opened = table_of(context, name)
    if made_before(opened.metadata, branch, key):
        document = {"table": name, "dry-run": dry_run, "files": 0, "rows": 0}
        print_done(f"nothing was done: table {name} has a change with the key {key}", document)
        return
    paths = [location_of(path) for path in files]
    if dry_run:
        rows = opened.add_files(paths, branch=branch, dry_run=True).rows_added
    else:
        made = opened.add_files(paths, branch=branch, idempotency_key=key).snapshot_by_name(branch)
        summary = made.summary if made else None
        rows = int(summary.get("added-records", 0)) if summary is not None else 0
    verb = "would add" if dry_run else "added"
    sentence = f"{verb} {counted(len(files), 'file')} with {counted(rows, 'row')} to table {name}"
    print_done(sentence, {"table": name, "dry-run": dry_run, "files": len(files), "rows": rows})


@click.command("copy", cls=Command)
@table_argument
@click.argument("location", metavar="LOCATION")
@click.option("--register", "copy_name", metavar="NAME", help="Take the copy into the catalog by this name.")
@click.option("--source-prefix", help="The prefix of all paths of the table, if it is not its location.")
@click.option("--dry-run", is_flag=True, help="Only print what would be copied.")
@click.pass_context
def table_copy(
    context: click.Context,
    name: str,
    location: str,
    copy_name: str | None,
    source_prefix: str | None,
    dry_run: bool,
) -> None:
    """Copy a table with its history to another location; if there is an earlier copy, only what is new."""
    opened = table_of(context, name)
    known = None
    if copy_name is not None and catalog_of(context).table_exists(copy_name):
        known = catalog_of(context).load_table(copy_name)
        of_both = (opened.metadata.table_uuid, known.metadata.table_uuid)
        if of_both[0] != of_both[1] or known.location() == opened.location():
            raise click.UsageError(f"--register: {copy_name} is a table at {known.location()}, not an earlier copy")
    done = opened.copy_to(location, source_prefix=source_prefix, dry_run=dry_run)
    if copy_name is not None and not dry_run:
        catalog_of(context).register_table(copy_name, done.metadata_location, overwrite=known is not None)
    there = f", {counted(done.present_files, 'file')} there already" if done.present_files else ""
    what = f"{counted(done.files, 'file')} of {size_of(done.bytes)}{there}"
    sentence = f"{'would copy' if dry_run else 'copied'} {what} of table {name}: {done.metadata_location}"
    document = {
        "table": name,
        "dry-run": dry_run,
        "metadata-location": done.metadata_location,
        "start-version": done.start_version,
        "files": done.files,
        "bytes": done.bytes,
        "present-files": done.present_files,
        "rewritten-manifests": done.rewritten_manifests,
        "rewritten-delete-files": done.rewritten_delete_files,
    }
    print_done(sentence, document)


#: Of the group `table`.
COMMANDS = (table_copy, table_migrate, table_add_files)
