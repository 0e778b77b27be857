"""The logs of a table: which snapshot and which metadata file were current, and when."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["MetadataLogEntry", "SnapshotLogEntry"]


@dataclass(frozen=True, slots=True)
class SnapshotLogEntry:
    """When a snapshot became current."""

    snapshot_id: int
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class MetadataLogEntry:
    """A previous metadata file of the table."""

    metadata_file: str
    timestamp_ms: int
