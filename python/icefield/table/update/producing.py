"""The base class of changes of a table's files: each makes one snapshot."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from icefield.table.update.change import Change, Staging

if TYPE_CHECKING:
    from icefield._core import SnapshotKind
    from icefield._core import Transaction as CoreTransaction

__all__ = ["SnapshotChange", "SnapshotOptions"]


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """What all changes of files take: the branch, entries of the summary, whether the snapshot is only staged."""

    branch: str = "main"
    snapshot_properties: Mapping[str, str] = field(default_factory=dict)
    stage_only: bool = False


class SnapshotChange(Change):
    """A change of files, in one snapshot.

    In a transaction the snapshot is made when the change is committed to it. A change on its own is applied to the
    table as the catalog then has it, and applied again if another commit was faster.
    """

    def __init__(self, transaction: Staging, options: SnapshotOptions, *, standalone: bool, merge: bool = True) -> None:
        super().__init__(transaction, standalone=standalone)
        self._kind: SnapshotKind = {
            "branch": options.branch,
            "snapshot_properties": dict(options.snapshot_properties),
            "stage_only": options.stage_only,
            "merge": merge,
            "make": not standalone,
        }

    @abstractmethod
    def _add_to(self, changes: CoreTransaction) -> None:
        """Add the change to a transaction of the core."""

    def _prepared(self) -> Callable[[], None]:
        return lambda: self._transaction.produce(self._add_to, make=self._kind["make"])
