"""The logs of a table: which snapshot and which metadata file were current, and when."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from icefield.metadata import SnapshotLogEntry
from icefield.table.description.timeline import svg_of, text_of

if TYPE_CHECKING:
    from icefield.metadata import TableMetadata

__all__ = ["History"]


class History(list[SnapshotLogEntry]):
    """Which snapshot became current when, oldest first: a list.

    A terminal prints it as a graph of the table's snapshots with branches and tags, and a notebook as a picture.
    """

    def __init__(self, entries: Iterable[SnapshotLogEntry], title: str, metadata: TableMetadata) -> None:
        super().__init__(entries)
        self._title = title
        self._metadata = metadata

    def __repr__(self) -> str:
        return text_of(self._title, self._metadata)

    def _repr_html_(self) -> str:
        return svg_of(self._title, self._metadata)
