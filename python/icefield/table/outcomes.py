"""What became of a commit whose outcome was unknown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
