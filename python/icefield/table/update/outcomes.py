"""What changes of rows did, and what became of a commit whose outcome was unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from icefield._outputs.layout import size_of

__all__ = ["CommitResolution"]


@dataclass(frozen=True, slots=True)
class CommitResolution:
    """What became of a commit."""

    #: ``"committed"``; ``"not committed"`` if it certainly never will be; ``"unknown"`` if it may still be on its way,
    #: if the catalog writes metadata files itself, or if the table's log of metadata files does not go back so far.
    state: Literal["committed", "not committed", "unknown"]
    #: The snapshot of the commit, if it makes one.
    snapshot_id: int | None
    #: Locations of the files that were deleted.
    deleted_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class RowsChanged:
    """What a change of rows did, or would do with ``dry_run=True``."""

    #: Rows removed. In files that were removed unread, these include rows that equality deletes had deleted already.
    rows_removed: int
    #: Rows added.
    rows_added: int
    #: Data files removed with all of their rows.
    files_removed: int
    #: Data files written again without the rows.
    files_rewritten: int
    #: Data files that got a delete file or a deletion vector.
    files_marked: int
    #: Size of the data files written again.
    bytes_rewritten: int
    #: Data files written for the rows added.
    files_added: int = 0
    #: Size of these files.
    bytes_added: int = 0
    #: Size of the data files removed.
    bytes_removed: int = 0

    def __str__(self) -> str:
        rows = f"{self.rows_removed:,} rows removed, {self.rows_added:,} added"
        added = f"{self.files_added:,} added ({size_of(self.bytes_added)})"
        rewritten = f"{self.files_rewritten:,} rewritten ({size_of(self.bytes_rewritten)})"
        removed = f"{self.files_removed:,} removed ({size_of(self.bytes_removed)}), {rewritten}"
        return f"{rows}; data files: {added}, {removed}, {self.files_marked:,} marked"


#: The result of a call whose idempotency key shows that an earlier call made the change.
NOTHING_CHANGED = RowsChanged(0, 0, 0, 0, 0, 0)
