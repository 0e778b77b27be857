"""Snapshots and logs, under the name of PyIceberg's module; see `icefield.metadata`."""

from __future__ import annotations

from icefield.metadata import (
    MetadataLogEntry,
    Operation,
    Snapshot,
    SnapshotLogEntry,
    Summary,
)

__all__ = [
    "MetadataLogEntry",
    "Operation",
    "Snapshot",
    "SnapshotLogEntry",
    "Summary",
]
