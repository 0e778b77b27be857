"""Lists of snapshots, and of branches and tags, that print as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from icefield._outputs.html import html_of
from icefield._outputs.layout import age_of, contents_of, counted, time_of
from icefield._outputs.printable import printable
from icefield.metadata import Snapshot, SnapshotRef

if TYPE_CHECKING:
    from icefield.metadata import TableMetadata

__all__ = ["References", "Snapshots"]

#: A display shows the newest ones.
_MOST = 50


class Snapshots(list[Snapshot]):
    """Snapshots, oldest first: a list that prints as a table of the newest ones."""

    def __init__(self, metadata: TableMetadata) -> None:
        super().__init__(metadata.snapshots)

    def _grid(self) -> tuple[Sequence[str], list[Sequence[object]]]:
        shown = self[max(len(self) - _MOST, 0) :]
        rows: list[Sequence[object]] = [
            (
                snapshot.snapshot_id,
                time_of(snapshot.timestamp_ms),
                snapshot.operation,
                *contents_of(snapshot).values(),
                snapshot.parent_snapshot_id,
            )
            for snapshot in shown
        ]
        return ("snapshot", "committed", "operation", "rows", "files", "parent"), rows

    def _title(self) -> str:
        left_out = max(len(self) - _MOST, 0)
        return counted(len(self), "snapshot") + (f", the newest {_MOST} of them" if left_out else "")

    def __repr__(self) -> str:
        return _text_table(self._title(), *self._grid())

    def _repr_html_(self) -> str:
        return html_of(self._title(), None, self._grid())


class References(dict[str, SnapshotRef]):
    """Branches and tags by their names: a dict that prints as a table."""

    def __init__(self, metadata: TableMetadata) -> None:
        super().__init__(metadata.refs)
        self._metadata = metadata

    def _committed(self, snapshot_id: int) -> str | None:
        snapshot = self._metadata.snapshot_by_id(snapshot_id)
        return None if snapshot is None else time_of(snapshot.timestamp_ms)

    def _grid(self) -> tuple[Sequence[str], list[Sequence[object]]]:
        rows: list[Sequence[object]] = [
            (
                name,
                ref.snapshot_ref_type,
                ref.snapshot_id,
                self._committed(ref.snapshot_id),
                None if ref.max_ref_age_ms is None else age_of(ref.max_ref_age_ms),
            )
            for name, ref in sorted(self.items())[:_MOST]
        ]
        return ("name", "type", "snapshot", "committed", "expires after"), rows

    def _title(self) -> str:
        return counted(len(self), "branch or tag") if len(self) == 1 else f"{len(self):,} branches and tags"

    def __repr__(self) -> str:
        return _text_table(self._title(), *self._grid())

    def _repr_html_(self) -> str:
        return html_of(self._title(), None, self._grid())


def _text_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    cells = [list(headings), *(["" if cell is None else printable(str(cell)) for cell in row] for row in rows)]
    if len(cells) == 1:
        return title
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in cells)
    return "\n".join([title, *(f"  {line}".rstrip() for line in lines)])
