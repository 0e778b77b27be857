"""Snapshots and logs, under the name of PyIceberg's module; see `icefield.metadata`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.errors import InvalidArgumentError
from icefield.metadata import (
    IsolationLevel,
    MetadataLogEntry,
    Operation,
    Snapshot,
    SnapshotLogEntry,
    Summary,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from icefield.metadata import TableMetadata

__all__ = [
    "IsolationLevel",
    "MetadataLogEntry",
    "Operation",
    "Snapshot",
    "SnapshotLogEntry",
    "Summary",
    "ancestors_between",
    "ancestors_between_ids",
    "ancestors_of",
    "is_ancestor_of",
    "is_parent_ancestor_of",
    "latest_ancestor_before_timestamp",
]


def ancestors_of(current_snapshot: Snapshot | None, table_metadata: TableMetadata) -> Iterator[Snapshot]:
    """Return a snapshot and those of its ancestors that have not been expired, newest first."""
    if current_snapshot is not None:
        yield from table_metadata.ancestors(current_snapshot.snapshot_id)


def ancestors_between(
    from_snapshot: Snapshot | None, to_snapshot: Snapshot, table_metadata: TableMetadata
) -> Iterator[Snapshot]:
    """Return a snapshot and its ancestors back to another one, which is the last; without one, all of them."""
    for snapshot in ancestors_of(to_snapshot, table_metadata):
        yield snapshot
        if snapshot == from_snapshot:
            return


def ancestors_between_ids(
    from_snapshot_id_exclusive: int | None, to_snapshot_id_inclusive: int, table_metadata: TableMetadata
) -> Iterator[Snapshot]:
    """Return a snapshot and its ancestors back to another one, which is left out; without one, all of them."""
    for snapshot in table_metadata.ancestors(_known(to_snapshot_id_inclusive, table_metadata)):
        if snapshot.snapshot_id == from_snapshot_id_exclusive:
            return
        yield snapshot


def is_ancestor_of(snapshot_id: int, ancestor_snapshot_id: int, table_metadata: TableMetadata) -> bool:
    """Return whether a snapshot is, or has as its ancestor, the other one."""
    ancestors = table_metadata.ancestors(_known(snapshot_id, table_metadata))
    return any(ancestor.snapshot_id == ancestor_snapshot_id for ancestor in ancestors)


def is_parent_ancestor_of(snapshot_id: int, ancestor_parent_snapshot_id: int, table_metadata: TableMetadata) -> bool:
    """Return whether a snapshot, or an ancestor of it, has the other one as its parent, which may have been expired."""
    ancestors = table_metadata.ancestors(_known(snapshot_id, table_metadata))
    return any(ancestor.parent_snapshot_id == ancestor_parent_snapshot_id for ancestor in ancestors)


def latest_ancestor_before_timestamp(table_metadata: TableMetadata, timestamp_ms: int) -> Snapshot | None:
    """Return the newest ancestor of the current snapshot, or itself, that was committed before a time."""
    before = (
        one
        for one in ancestors_of(table_metadata.current_snapshot(), table_metadata)
        if one.timestamp_ms < timestamp_ms
    )
    return max(before, key=lambda snapshot: snapshot.timestamp_ms, default=None)


def _known(snapshot_id: int, table_metadata: TableMetadata) -> int:
    if table_metadata.snapshot_by_id(snapshot_id) is None:
        raise InvalidArgumentError(f"there is no snapshot {snapshot_id}")
    return snapshot_id
