"""The command about the keys of an encrypted table."""

from __future__ import annotations

import json
from collections import Counter

import click

from icefield._outputs.layout import time_of
from icefield.cli.names import table_argument
from icefield.cli.opening import table_of
from icefield.cli.options import Command
from icefield.cli.output import print_grid
from icefield.table import Table

__all__ = ["COMMANDS"]


@click.command("keys", cls=Command)
@table_argument
@click.option("--plain", is_flag=True, help="List the files of the table that are not encrypted instead.")
@click.pass_context
def table_keys(context: click.Context, name: str, plain: bool) -> None:
    """List the key encryption keys of a table, or its files that are not encrypted; no key is shown."""
    opened = table_of(context, name)
    if plain:
        print_grid(["file", "bytes"], _plain_files(opened), whole=True)
    else:
        print_grid(["key", "encrypted by", "made", "snapshots"], _keys(opened), whole=True)


def _keys(table: Table) -> list[tuple[str, str, str, int]]:
    document = json.loads(table.metadata.to_json())
    keys = {key["key-id"]: key for key in document.get("encryption-keys", [])}
    used = (keys.get(snapshot.get("key-id"), {}) for snapshot in document.get("snapshots", []))
    snapshots = Counter(key.get("encrypted-by-id") for key in used)
    found = []
    for key_id, key in keys.items():
        made = key.get("properties", {}).get("KEY_TIMESTAMP", "")
        if made.isdecimal():  # only those that encrypt other keys have it
            found.append((key_id, str(key.get("encrypted-by-id", "")), time_of(int(made)), snapshots[key_id]))
    return found


def _plain_files(table: Table) -> list[tuple[str, int]]:
    columns = ["file_path", "file_size_in_bytes", "key_metadata"]
    rows = table.inspect.stream("files", selected_fields=columns).read_all().to_pylist()
    return sorted((row["file_path"], row["file_size_in_bytes"]) for row in rows if row["key_metadata"] is None)


COMMANDS = (table_keys,)
