"""A table and the catalog that has it: how its state is refreshed, and how changes are committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock
from typing import TYPE_CHECKING, Any

from icefield._core import Transaction as CoreTransaction
from icefield._core import resolve_commit
from icefield.errors import (
    CommitStateUnknownException,
    UnsupportedFeatureError,
    ValidationError,
    ValidationException,
)
from icefield.table.description import TableDescription
from icefield.table.update.outcomes import CommitResolution

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield._core import TableState
    from icefield._inputs.identifiers import Identifier
    from icefield.metadata import TableMetadata
    from icefield.scan import PlanReporter, ScanPlanner
    from icefield.table.catalog import TableCatalog

__all__ = ["TableHandle"]


class TableHandle(TableDescription):
    """A table that can be refreshed and changed, by any number of threads."""

    def __init__(self, identifier: Identifier, state: TableState, catalog: TableCatalog[Self, Any, Any] | None) -> None:
        super().__init__(identifier, state)
        self._catalog = catalog
        self._lock = Lock()

    @property
    def _plan_reporter(self) -> PlanReporter | None:
        # A catalog of one's own need not be derived from ours.
        reporter = getattr(self._catalog, "_plan_reporter", None)
        return None if reporter is None else reporter(self._identifier)

    @property
    def _scan_planner(self) -> ScanPlanner | None:
        planner = getattr(self._catalog, "_scan_planner", None)
        return None if planner is None else planner(self._identifier)

    def refresh(self) -> Self:
        """Refresh this table to its newest metadata.

        Returns
        -------
        Table
            This one.

        Raises
        ------
        NoSuchTableError
            If the table was dropped.
        TableReplacedError
            If another table has its name now. Tables of version 1 without a uuid cannot be distinguished.

        """
        with self._lock:
            self._state = self._refreshed(self._held)
        return self

    def commit(self, requirements: Iterable[Mapping[str, object]], updates: Iterable[Mapping[str, object]]) -> Self:
        """Apply updates of the REST protocol to the current table, if it meets the requirements.

        Raises
        ------
        CommitFailedException
            If it does not meet them, or every attempt lost to another commit.
        CommitStateUnknownException
            If the outcome is unknown.

        """
        base = self._state
        state = base.commit(self._require_catalog(), self._identifier, list(requirements), list(updates))
        self._advance(state, base)
        return self

    def commit_changes(self, changes: CoreTransaction) -> None:
        """Commit the changes of a transaction of this table; `Transaction.commit_transaction` calls it."""
        base = self._state
        try:
            state = changes.commit(self._require_catalog(), self._identifier)
        except ValidationException as error:
            if type(error) is not ValidationException or "again" in str(error):
                raise
            msg = f"{error}; nothing was changed: refresh() the table, and run the change again"
            raise ValidationException(msg) from error
        self._advance(state, base)

    def resolve_commit(self, commit: CommitStateUnknownException | int, *, clean_up: bool = False) -> CommitResolution:
        """Refresh the table, and find out what became of a commit whose outcome was unknown.

        Parameters
        ----------
        commit
            The exception, or the id of the snapshot; by the id alone a commit can be found, but not ruled out.
        clean_up
            Delete the files that were written for it, if it is certain that it never will be part of the table.

        """
        self.refresh()
        if isinstance(commit, CommitStateUnknownException):
            snapshot_id, files, base, location = commit.snapshot_id, commit.files, commit.base, commit.location
        else:
            snapshot_id, files, base, location = commit, (), None, None
        state, deleted = resolve_commit(self._state, snapshot_id, list(files), base, location, clean_up=clean_up)
        return CommitResolution(state, snapshot_id, tuple(deleted))

    def create(self, changes: CoreTransaction) -> None:
        """Add this new table to its catalog; `CreateTableTransaction.commit_transaction` calls it."""
        state = changes.create(self._require_catalog(), self._identifier)
        with self._lock:
            self._state = state

    def _advance(self, state: TableState, base: TableState) -> None:
        """Take over the result of an operation on ``base``, or the newest state if another thread changed it."""
        with self._lock:
            if self._state is not base:
                # The commit has succeeded, even if the catalog cannot be read now.
                with suppress(Exception):
                    state = self._refreshed(state)
            self._state = state

    def _is_behind(self) -> bool:
        """Whether the catalog has a newer state of the table."""
        known = self._state
        with suppress(Exception):
            return self._refreshed(known).metadata_location != known.metadata_location
        return False

    def _refreshed(self, known: TableState) -> TableState:
        return known.refresh(self._require_catalog(), self._identifier)

    def _require_catalog(self) -> TableCatalog[Self, Any, Any]:
        if self._catalog is None:
            msg = (
                "this table was opened by its metadata file, without a catalog: it is read-only and cannot be refreshed"
            )
            raise UnsupportedFeatureError(msg)
        return self._catalog

    @property
    def _changed_metadata(self) -> TableMetadata:
        return self.metadata

    @contextmanager
    def _changing(self) -> Iterator[CoreTransaction]:
        self._require_catalog()
        changes = CoreTransaction(self._state)
        try:
            yield changes
        except BaseException as error:
            changes.abort()
            if isinstance(error, ValidationError) and "not in the table" in str(error) and self._is_behind():
                msg = f"{error}; this table object is older than the table in its catalog: refresh() it"
                raise ValidationError(msg) from error
            raise
        # Without changes there is nothing to commit.
        if not changes.is_empty:
            self.commit_changes(changes)
