"""Procedures that move the current snapshot and branches, and that look at history."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from icefield.errors import InvalidArgumentError
from icefield.procedures.declared import Arguments, Column, Parameter, Procedure

if TYPE_CHECKING:
    from datetime import datetime

    from icefield.catalog import Catalog
    from icefield.table import Table

__all__ = ["PROCEDURES", "named_table", "own_name"]

_TABLE = Parameter("table", "table", required=True)
_PREVIOUS = (Column("previous_snapshot_id", "long"), Column("current_snapshot_id", "long"))
_PICKED = (Column("source_snapshot_id", "long"), Column("current_snapshot_id", "long"))


def named_table(catalog: Catalog, arguments: Arguments) -> Table:
    """Load the table that a procedure is about; its name may begin with that of the catalog."""
    return catalog.load_table(own_name(catalog, arguments))


def own_name(catalog: Catalog, arguments: Arguments) -> tuple[str, ...]:
    """Return the name of a table within its catalog."""
    parts = cast("tuple[str, ...]", arguments["table"])
    return parts[1:] if len(parts) > 2 and parts[0] == catalog.name else parts  # noqa: PLR2004 - a namespace and a table


def _current(table: Table) -> int | None:
    snapshot = table.current_snapshot()
    return None if snapshot is None else snapshot.snapshot_id


def _required(table: Table) -> int:
    current = _current(table)
    if current is None:
        raise InvalidArgumentError(f"table {'.'.join(table.name())} has no snapshot")
    return current


def _rollback_to_snapshot(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    table = named_table(catalog, arguments)
    before = _required(table)
    table.manage_snapshots().rollback_to_snapshot(cast("int", arguments["snapshot_id"])).commit()
    return [(before, _current(table))]


def _rollback_to_timestamp(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    table = named_table(catalog, arguments)
    before = _required(table)
    table.manage_snapshots().rollback_to_timestamp(cast("datetime", arguments["timestamp"])).commit()
    return [(before, _current(table))]


def _set_current_snapshot(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    snapshot_id, ref = cast("int | None", arguments.get("snapshot_id")), cast("str | None", arguments.get("ref"))
    if (snapshot_id is None) == (ref is None):
        raise InvalidArgumentError("set_current_snapshot: pass either snapshot_id or ref")
    table = named_table(catalog, arguments)
    before = _current(table)
    table.manage_snapshots().set_current_snapshot(snapshot_id, ref).commit()
    return [(before, _current(table))]


def _cherrypick_snapshot(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    table = named_table(catalog, arguments)
    picked = cast("int", arguments["snapshot_id"])
    table.cherry_pick(picked)
    return [(picked, _current(table))]


def _publish_changes(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    table = named_table(catalog, arguments)
    wap_id = cast("str", arguments["wap_id"])
    found = [one for one in table.snapshots() if one.summary is not None and one.summary.get("wap.id") == wap_id]
    if len(found) != 1:
        what = "no snapshot" if not found else f"{len(found)} snapshots"
        raise InvalidArgumentError(f"publish_changes: the table has {what} with wap.id={wap_id!r}, expected one")
    picked = found[0].snapshot_id
    table.cherry_pick(picked)
    return [(picked, _current(table))]


def _fast_forward(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    table = named_table(catalog, arguments)
    branch, to = cast("str", arguments["branch"]), cast("str", arguments["to"])
    before = table.refs().get(branch)
    table.manage_snapshots().fast_forward_branch(branch, to).commit()
    return [(branch, None if before is None else before.snapshot_id, table.refs()[branch].snapshot_id)]


def _ancestors_of(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    table = named_table(catalog, arguments)
    given = cast("int | None", arguments.get("snapshot_id"))
    start = _current(table) if given is None else given
    if start is None:
        return []
    if table.snapshot_by_id(start) is None:
        raise InvalidArgumentError(f"ancestors_of: the table has no snapshot {start}")
    return [(one.snapshot_id, one.timestamp_ms) for one in table.metadata.ancestors(start)]


_SNAPSHOT = Parameter("snapshot_id", "long", required=True)

PROCEDURES = (
    Procedure("rollback_to_snapshot", (_TABLE, _SNAPSHOT), _PREVIOUS, _rollback_to_snapshot, destructive=True),
    Procedure(
        "rollback_to_timestamp",
        (_TABLE, Parameter("timestamp", "timestamp", required=True)),
        _PREVIOUS,
        _rollback_to_timestamp,
        destructive=True,
    ),
    Procedure(
        "set_current_snapshot",
        (_TABLE, Parameter("snapshot_id", "long"), Parameter("ref", "string")),
        (Column("previous_snapshot_id", "long", nullable=True), Column("current_snapshot_id", "long")),
        _set_current_snapshot,
        destructive=True,
    ),
    Procedure("cherrypick_snapshot", (_TABLE, _SNAPSHOT), _PICKED, _cherrypick_snapshot),
    Procedure("publish_changes", (_TABLE, Parameter("wap_id", "string", required=True)), _PICKED, _publish_changes),
    Procedure(
        "fast_forward",
        (_TABLE, Parameter("branch", "string", required=True), Parameter("to", "string", required=True)),
        (
            Column("branch_updated", "string"),
            Column("previous_ref", "long", nullable=True),
            Column("updated_ref", "long"),
        ),
        _fast_forward,
    ),
    Procedure(
        "ancestors_of",
        (_TABLE, Parameter("snapshot_id", "long")),
        (Column("snapshot_id", "long"), Column("timestamp", "long")),
        _ancestors_of,
    ),
)
