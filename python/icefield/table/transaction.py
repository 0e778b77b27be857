"""Changes of a table that become visible together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from icefield._core import Transaction as CoreTransaction
from icefield._inputs.arguments import property_updates
from icefield.errors import InvalidArgumentError
from icefield.table.rows import ChangesRows
from icefield.table.update import (
    ManageSnapshots,
    UpdateSchema,
    UpdateSnapshot,
    UpdateSortOrder,
    UpdateSpec,
    UpdateStatistics,
)
from icefield.table.update.change import in_lines, warn_of_lost
from icefield.table.update.operations import ChangesFiles
from icefield.table.update.target import OWN_BRANCH

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield._core import TableState
    from icefield.metadata import TableMetadata
    from icefield.table.catalog import TableDefinition
    from icefield.table.update.change import Answer

__all__ = ["TableTransaction"]

TableClass_co = TypeVar("TableClass_co", bound="Committing", covariant=True)


class Committing(Protocol):
    """The target of a transaction: a table, or a branch of one."""

    @property
    def _now(self) -> TableState:
        """The state that the changes start from."""

    def commit_changes(self, changes: CoreTransaction) -> None:
        """Commit the changes of a transaction."""


class TableTransaction(ChangesRows, ChangesFiles, Generic[TableClass_co]):
    """What a `Transaction` of a table of any class collects and commits."""

    def __init__(self, table: TableClass_co, *, idempotency_key: str | None = None) -> None:
        self._table = table
        self._changes = CoreTransaction(table._now, idempotency_key)  # noqa: SLF001
        self._staged = self._changes.metadata
        self._finished = False
        #: What was done so far, for people.
        self._steps: list[str] = []
        #: Whether an exception left its ``with`` block, so that its changes are dropped.
        self.aborted = False

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata with the changes so far."""
        return self._staged

    @property
    def _changed_metadata(self) -> TableMetadata:
        return self._staged

    @property
    def table_metadata(self) -> TableMetadata:
        """The metadata with the changes so far; the name that PyIceberg has for it."""
        return self.metadata

    def update_snapshot(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        stage_only: bool = False,
        idempotency_key: str | None = None,
    ) -> UpdateSnapshot:
        """Change the files of the table with the other changes; see `Table.update_snapshot`."""
        return UpdateSnapshot(
            self,
            snapshot_properties=snapshot_properties,
            branch=self._on(branch),
            stage_only=stage_only,
            idempotency_key=idempotency_key,
        )

    @contextmanager
    def _changing(self) -> Iterator[CoreTransaction]:
        """Make a change of rows on top of the previous changes."""
        self._check_open()
        yield self._changes
        self._steps.append("a change of rows")
        self._staged = self._changes.metadata

    def update_schema(self, allow_incompatible_changes: bool = False, case_sensitive: bool = True) -> UpdateSchema:
        """Change the schema; see `Table.update_schema`."""
        return UpdateSchema(self, allow_incompatible_changes=allow_incompatible_changes, case_sensitive=case_sensitive)

    def update_spec(self, case_sensitive: bool = True) -> UpdateSpec:
        """Change the partition spec; see `Table.update_spec`."""
        return UpdateSpec(self, case_sensitive=case_sensitive)

    def update_sort_order(self, case_sensitive: bool = True) -> UpdateSortOrder:
        """Replace the sort order; see `Table.update_sort_order`."""
        return UpdateSortOrder(self, case_sensitive=case_sensitive)

    def update_statistics(self) -> UpdateStatistics:
        """Set and remove the statistics files of snapshots; see `Table.update_statistics`."""
        return UpdateStatistics(self)

    def manage_snapshots(self) -> ManageSnapshots:
        """Change branches and tags; see `Table.manage_snapshots`."""
        return ManageSnapshots(self)

    def set_properties(self, properties: Mapping[str, object] | None = None, **more: object) -> Self:
        """Set table properties; ``format-version`` upgrades the table, as in Java."""
        return self._stage_objects(*property_updates({**(properties or {}), **more}))

    def remove_properties(self, *removals: str) -> Self:
        """Remove table properties; missing ones are ignored."""
        return self._stage_objects({"action": "remove-properties", "removals": list(removals)})

    def upgrade_table_version(self, format_version: int) -> Self:
        """Upgrade the format version."""
        return self._stage_objects({"action": "upgrade-format-version", "format-version": format_version})

    def update_location(self, location: str) -> Self:
        """Set the base location of new files; existing files stay where they are."""
        return self._stage_objects({"action": "set-location", "location": location})

    def commit_transaction(self) -> TableClass_co:
        """Commit the changes.

        Returns
        -------
        Table
            The table after the commit.

        Raises
        ------
        CommitFailedException
            If other commits changed what these changes depend on, or every attempt lost to another commit.
        CommitStateUnknownException
            If the outcome is unknown.

        """
        self._check_open()
        # First, because it raises if a change of this transaction is under way that waits for this call.
        is_empty = self._changes.is_empty
        self._finished = True
        if not is_empty:
            self._table.commit_changes(self._changes)
        return self._table

    def replace(self, definition: TableDefinition) -> Self:
        """Replace the table by a definition; `Catalog.replace_table_transaction` calls it."""
        self._check_open()
        self._changes.replace(
            definition.schema,
            definition.location,
            definition.partition_spec,
            definition.sort_order,
            definition.properties,
        )
        self._staged = self._changes.metadata
        return self

    def stage(self, updates: Iterable[str], on: TableMetadata) -> None:
        """Add updates of the REST protocol, as JSON, that were created from the metadata ``on``.

        Raises
        ------
        InvalidArgumentError
            If other updates were added since.

        """
        self._check_open()
        if on is not self._staged:
            raise InvalidArgumentError("the transaction changed after this update was created; create the update again")
        given = list(updates)
        self._changes.stage(f"[{','.join(given)}]")
        self._steps += [str(json.loads(update)["action"]) for update in given]
        self._staged = self._changes.metadata

    def produce(self, add: Callable[[CoreTransaction], None], *, make: bool) -> None:
        """Add a change of data to the transaction of the core; with ``make``, the metadata are then those after it."""
        self._check_open()
        add(self._changes)
        self._steps.append("a snapshot")
        if make:
            self._staged = self._changes.metadata

    def preview(self, ask: Callable[[CoreTransaction], Answer]) -> Answer:
        """Return what a change would do to the table with the changes so far; nothing is added."""
        self._check_open()
        return ask(self._changes)

    def _stage_objects(self, *updates: Mapping[str, object]) -> Self:
        self.stage([json.dumps(update) for update in updates], self._staged)
        return self

    def _check_open(self) -> None:
        if self._finished:
            raise InvalidArgumentError("this transaction is already finished; start a new one")

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._changes.abort()
            self._finished = self.aborted = True
        elif not self._finished:
            self.commit_transaction()

    def __repr__(self) -> str:
        state = "given up" if self.aborted else "committed" if self._finished else "not committed"
        return in_lines(f"{type(self).__name__}, {state}", self._steps)

    def __del__(self) -> None:
        if not getattr(self, "_finished", True) and not self._changes.is_empty:
            warn_of_lost(self, "commit_transaction()")
