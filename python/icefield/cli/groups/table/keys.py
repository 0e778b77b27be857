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
@click.option("--plain", is_flag=True, help="List what is not encrypted instead, of all snapshots.")
@click.pass_context
def table_keys(context: click.Context, name: str, plain: bool) -> None:
    """List the key encryption keys of a table, or its files that are not encrypted; no key is shown."""
    opened = table_of(context, name)
    if plain:
        print_grid(["kind", "file"], _plain_files(opened), whole=True)
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


def _plain_files(table: Table) -> list[tuple[str, str]]:
    """Return the kinds and names of the files of all snapshots that are not encrypted: each has values of rows."""
    document = json.loads(table.metadata.to_json())
    found = {
        ("manifest list", snapshot["manifest-list"])
        for snapshot in document.get("snapshots", [])
        if "manifest-list" in snapshot and snapshot.get("key-id") is None
    }
    for name, path, kinds in (
        ("all_manifests", "path", ("manifest", "manifest")),
        ("all_files", "file_path", ("data file", "delete file")),
    ):
        for batch in table.inspect.stream(name, selected_fields=["content", path, "key_metadata"]):
            rows = batch.to_pylist()
            found |= {(kinds[bool(row["content"])], row[path]) for row in rows if row["key_metadata"] is None}
    # The key of an encrypted statistics file has the name of the file.
    keys = {key["key-id"] for key in document.get("encryption-keys", [])}
    for kind in ("statistics", "partition-statistics"):
        paths = {one["statistics-path"] for one in document.get(kind, [])}
        found |= {(kind.replace("-", " "), path) for path in paths if path.rsplit("/", 1)[-1] not in keys}
    return sorted(found)


COMMANDS = (table_keys,)
