"""Snapshots and logs, under the name of PyIceberg's module; see `icefield.metadata`."""

from __future__ import annotations

from icefield.metadata import (
    IsolationLevel,
    MetadataLogEntry,
    Operation,
    Snapshot,
    SnapshotLogEntry,
    Summary,
    ancestors_between,
    ancestors_between_ids,
    ancestors_of,
    is_ancestor_of,
    is_parent_ancestor_of,
    latest_ancestor_before_timestamp,
)

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
