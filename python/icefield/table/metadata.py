"""Table metadata, under the name of PyIceberg's module; see `icefield.metadata`."""

from __future__ import annotations

from icefield.metadata import (
    TableMetadata,
)

__all__ = [
    "TableMetadata",
]
