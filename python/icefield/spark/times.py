"""Changelogs between two moments: the snapshots that lie between them."""

from __future__ import annotations

from collections.abc import Iterator

from icefield.errors import InvalidArgumentError
from icefield.table import Snapshot, Table

__all__ = ["snapshots_between"]

#: The snapshot after which changes are read and the last one that is read, as far as they are given.
Between = tuple[int | None, int | None]


def snapshots_between(
    table: Table,
    branch: str | None,
    start: int | None,
    end: int | None,
    *,
    start_ms: int | None = None,
    end_ms: int | None = None,
) -> Between | None:
    """Give the range of snapshots that moments mean, or None where nothing lies between them, as Java does.

    Parameters
    ----------
    branch
        The branch whose snapshots are looked at; without it, the main one.
    start, end
        Snapshots by id, where they are given in the place of moments.
    start_ms, end_ms
        Milliseconds from the epoch. A snapshot of that very moment is the first that is not read, or the last that is.

    Raises
    ------
    InvalidArgumentError
        If the start is not before the end, or if snapshots after the start have been expired.

    """
    if start_ms is not None and end_ms is not None and start_ms >= end_ms:
        raise InvalidArgumentError("cannot set start-timestamp to be greater than end-timestamp for changelogs")
    newest_first = list(_ancestors(table, branch))
    if start_ms is not None:
        if not newest_first or start_ms > newest_first[0].timestamp_ms:
            return None
        start = _after(newest_first, start_ms)
    if end_ms is not None:
        end = next((snapshot.snapshot_id for snapshot in newest_first if snapshot.timestamp_ms <= end_ms), None)
        if end is None or start == end:
            return None
    return start, end


def _ancestors(table: Table, branch: str | None) -> Iterator[Snapshot]:
    by_id = {snapshot.snapshot_id: snapshot for snapshot in table.snapshots()}
    snapshot = table.current_snapshot() if branch is None else table.snapshot_by_name(branch)
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else by_id.get(parent)


def _after(newest_first: list[Snapshot], start_ms: int) -> int | None:
    """Give the snapshot after which changes are read; none before the first one of the table."""
    oldest = newest_first[-1]
    for snapshot in newest_first:
        if snapshot.timestamp_ms == start_ms:
            return snapshot.snapshot_id
        if snapshot.timestamp_ms < start_ms:
            return oldest.parent_snapshot_id
        oldest = snapshot
    if oldest.parent_snapshot_id is not None:
        raise InvalidArgumentError(f"cannot find a snapshot older than {start_ms} ms: older ones have been expired")
    return None
