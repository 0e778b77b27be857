"""The commands that change a table: its name, its properties, and that it exists at all."""

from __future__ import annotations

import click

from icefield._outputs.layout import contents_of
from icefield.cli.names import table_argument
from icefield.cli.opening import catalog_of, table_of
from icefield.cli.options import Command, asks, confirm, keyed, pairs
from icefield.cli.output import print_done
from icefield.distributed import made_before
from icefield.errors import CorruptDataError, StorageError

__all__ = ["COMMANDS"]


@click.command("drop", cls=Command)
@table_argument
@click.option("--purge", is_flag=True, help="Also delete the files of the table.")
@asks
@click.pass_context
def table_drop(context: click.Context, name: str, purge: bool, yes: bool) -> None:
    """Drop a table; its files stay unless --purge is passed."""
    catalog = catalog_of(context)
    if not yes:
        confirm(f"drop table {name}{_held(context, name)}, {_files(purge)}", yes=False)
    catalog.drop_table(name, purge_requested=purge)
    print_done(f"dropped table {name}, {_files(purge)}", {"table": name, "dropped": True, "purged": purge})


def _files(purge: bool) -> str:
    return "and delete its files" if purge else "whose files stay"


def _held(context: click.Context, name: str) -> str:
    """Return how many rows and files a table has; nothing where its metadata cannot be read."""
    try:
        snapshot = table_of(context, name).current_snapshot()
    except (CorruptDataError, StorageError):
        return ", whose metadata cannot be read"
    held = contents_of(snapshot)
    return f" ({held['rows']} rows; {held['files']})"


@click.command("delete", cls=Command)
@table_argument
@click.argument("row_filter", metavar="FILTER")
@click.option("--branch", default="main", show_default=True, help="The branch that is changed.")
@click.option("--dry-run", is_flag=True, help="Only print what would be deleted.")
@keyed
@asks
@click.pass_context
def table_delete(
    context: click.Context, name: str, row_filter: str, branch: str, dry_run: bool, key: str | None, yes: bool
) -> None:
    """Delete the rows that a filter matches, in one snapshot; "true" matches all rows."""
    opened = table_of(context, name)
    if made_before(opened.metadata, branch, key):
        document = {"table": name, "branch": branch, "rows": 0, "deleted": False}
        print_done(f"nothing was done: table {name} has a change with the key {key}", document)
        return
    if dry_run or not yes:
        found = opened.delete(row_filter, branch=branch, dry_run=True)
        what = f"delete {found.rows_removed:,} rows of table {name}"
        if dry_run:
            document = {"table": name, "branch": branch, "rows": found.rows_removed, "deleted": False}
            document |= {
                "files-removed": found.files_removed,
                "files-rewritten": found.files_rewritten,
                "files-marked": found.files_marked,
                "bytes-rewritten": found.bytes_rewritten,
            }
            print_done(f"would {what}; {str(found).partition('; ')[2]}", document)
            return
        confirm(what, yes=False)
    done = opened.delete(row_filter, branch=branch, idempotency_key=key)
    document = {"table": name, "branch": branch, "rows": done.rows_removed, "deleted": True}
    print_done(f"deleted {done.rows_removed:,} rows of table {name}", document)


@click.command("rename", cls=Command)
@table_argument
@click.argument("new_name", metavar="NEW")
@click.pass_context
def table_rename(context: click.Context, name: str, new_name: str) -> None:
    """Rename a table, also into another namespace; its files stay where they are."""
    catalog_of(context).rename_table(name, new_name)
    print_done(f"renamed table {name} to {new_name}", {"table": new_name, "renamed-from": name})


@click.command("set-properties", cls=Command)
@table_argument
@click.argument("properties", nargs=-1, required=True, metavar="KEY=VALUE...")
@click.pass_context
def table_set_properties(context: click.Context, name: str, properties: tuple[str, ...]) -> None:
    """Set properties of a table; format-version upgrades it."""
    changed = table_of(context, name).update_properties(pairs(properties))
    keys = list(pairs(properties))
    print_done(f"set {', '.join(keys)} of table {name}", {"table": name, "properties": changed.properties})


@click.command("remove-properties", cls=Command)
@table_argument
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.pass_context
def table_remove_properties(context: click.Context, name: str, keys: tuple[str, ...]) -> None:
    """Remove properties of a table, which then have their defaults."""
    opened = table_of(context, name)
    missing = [key for key in keys if key not in opened.properties]
    changed = opened.update_properties(removals=[key for key in keys if key not in missing])
    parts = [f"removed {', '.join(key for key in keys if key not in missing)}"] if len(missing) < len(keys) else []
    parts += [f"not set: {', '.join(missing)}"] if missing else []
    document = {"table": name, "properties": changed.properties, "missing": missing}
    print_done(f"table {name}: {'; '.join(parts)}", document)


#: Of the group `table`.
COMMANDS = (table_delete, table_drop, table_rename, table_set_properties, table_remove_properties)
