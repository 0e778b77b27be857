"""What changes of rows have in common: how one is made, and that a key makes it once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from icefield._core import RowChanges as CoreRowChanges
from icefield._inputs.arguments import summary_entries
from icefield._inputs.shredding import Shredding, shredding_properties
from icefield._outputs.progress import changing
from icefield.metadata import IsolationLevel
from icefield.table.update.target import ChangesData

if TYPE_CHECKING:
    from icefield._core import Transaction as CoreTransaction

__all__ = ["Isolation", "RowChange", "RowMode"]

#: How rows are removed from data files.
RowMode: TypeAlias = Literal["copy-on-write", "merge-on-read", "auto"]

#: Which concurrent commits a change tolerates.
Isolation: TypeAlias = Literal["serializable", "snapshot"] | IsolationLevel

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class RowChange:
    """What all changes of rows have: a branch, options, and the key that makes a change once."""

    #: The table, the branch or the transaction that is changed.
    target: ChangesData
    branch: str
    snapshot_properties: Mapping[str, str] | None
    idempotency_key: str | None
    dry_run: bool
    progress: bool
    mode: RowMode | None = None
    isolation: Isolation | None = None
    memory_limit: int | None = None
    shred: Shredding | None = None

    @property
    def summary(self) -> dict[str, str]:
        """The entries of the snapshot's summary, with the key."""
        return summary_entries(self.snapshot_properties, self.idempotency_key)

    @property
    def written(self) -> dict[str, str]:
        """The properties that files are written by, where the change overrides those of the table."""
        return shredding_properties(self.shred, self.target._changed_metadata.properties)  # noqa: SLF001 - its own

    def once(self, make: Callable[[CoreTransaction], _Result], unchanged: _Result) -> _Result:
        """Make the change in a transaction, or return ``unchanged`` if a snapshot was made with the key before."""
        if self.target._made_before(self.branch, self.idempotency_key):  # noqa: SLF001 - its own
            return unchanged
        with changing(self.progress) as traffic, self.target._changing() as changes:  # noqa: SLF001 - its own
            changes.count(traffic)
            return make(changes)

    def rows_once(self, make: Callable[[CoreRowChanges], _Result], unchanged: _Result) -> _Result:
        """Make a change of rows, as `once` does."""
        return self.once(lambda changes: make(self._rows_of(changes)), unchanged)

    def _rows_of(self, changes: CoreTransaction) -> CoreRowChanges:
        return CoreRowChanges(
            changes,
            branch=self.branch,
            snapshot_properties=self.summary,
            mode=self.mode,
            isolation=self.isolation,
            dry_run=self.dry_run,
            memory_limit=self.memory_limit,
            properties=self.written,
        )
