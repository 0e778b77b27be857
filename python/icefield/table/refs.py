"""Branches and tags, under the name of PyIceberg's module; see `icefield.metadata`."""

from __future__ import annotations

from icefield.metadata import (
    MAIN_BRANCH,
    SnapshotRef,
    SnapshotRefType,
)

__all__ = [
    "MAIN_BRANCH",
    "SnapshotRef",
    "SnapshotRefType",
]
