"""Statistics files, under the name of PyIceberg's module; see `icefield.metadata`."""

from __future__ import annotations

from icefield.metadata import (
    BlobMetadata,
    PartitionStatisticsFile,
    StatisticsFile,
)

__all__ = [
    "BlobMetadata",
    "PartitionStatisticsFile",
    "StatisticsFile",
]
