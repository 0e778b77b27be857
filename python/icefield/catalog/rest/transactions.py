"""Changes of several tables, in one commit.

Each table commits its own changes, in a thread of its own: it takes over what others have committed since, checks
conflicts, and tries again after a lost race, as if it were alone. Where it would ask the catalog to commit, it meets
the others, and the last one sends the changes of all.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from icefield.catalog.base import CommitTableResponse
from icefield.catalog.rest.protocol.names import dotted, levels_of, named
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    IcefieldError,
    InvalidArgumentError,
)
from icefield.table import Table, Transaction

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from icefield._inputs.identifiers import Identifier, IdentifierLike
    from icefield.metadata import TableMetadata

__all__ = ["CatalogTransaction", "CommitsTables"]

_LOGGER = logging.getLogger("icefield")


class CommitsTables(Protocol):
    """The methods of a catalog that a transaction of several tables calls."""

    def load_table(self, identifier: IdentifierLike) -> Table:
        """Load the current state of a table."""

    def load_table_metadata(self, identifier: IdentifierLike) -> CommitTableResponse:
        """Return the current metadata of a table."""

    def commit_tables(self, changes: Iterable[Mapping[str, object]]) -> None:
        """Commit changes of several tables, all or none."""

    def _report_commit(
        self, identifier: Identifier, metadata: TableMetadata, snapshot_ids: list[int], attempts: int, nanoseconds: int
    ) -> None:
        """Report the new snapshots of a table."""


class _StoppedError(BaseException):
    """Another table's changes cannot be committed. It is not an `Exception`, so the commit is not tried again."""


class _Round:
    def __init__(self) -> None:
        self.changes: list[dict[str, object]] = []
        self.is_done = False
        self.failure: IcefieldError | None = None


class _Meeting:
    """Where the tables of a transaction wait for each other, and one of them sends the changes of all.

    The core takes it for the catalog of each of them.
    """

    def __init__(self, catalog: CommitsTables, tables: Iterable[Table]) -> None:
        self._catalog = catalog
        #: What is known of each table, by name.
        self._known = {table.name(): CommitTableResponse(table.metadata, table.metadata_location) for table in tables}
        self._expected = len(self._known)
        self._changed = threading.Condition()
        self._round = _Round()
        self._is_stopped = False

    def load_table_metadata(self, identifier: IdentifierLike) -> CommitTableResponse:
        found = self._known[levels_of(identifier)] = self._catalog.load_table_metadata(identifier)
        return found

    def commit_table(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],
        updates: Iterable[Mapping[str, object]],
    ) -> CommitTableResponse:
        updates = list(updates)
        with self._changed:
            now = self._round
            now.changes.append(
                {"identifier": named(identifier), "requirements": list(requirements), "updates": updates}
            )
            self._send_if_all_are_here()
            self._changed.wait_for(lambda: now.is_done or self._is_stopped)
        if not now.is_done:
            raise CommitFailedException("the changes of another table cannot be committed") from _StoppedError()
        if now.failure is not None:
            # Each table raises its own.
            raise type(now.failure)(str(now.failure)) from now.failure
        return self._committed(identifier, updates)

    def _report_commit(
        self, identifier: Identifier, metadata: TableMetadata, snapshot_ids: list[int], attempts: int, nanoseconds: int
    ) -> None:
        self._catalog._report_commit(identifier, metadata, snapshot_ids, attempts, nanoseconds)  # noqa: SLF001

    def _committed(self, identifier: IdentifierLike, updates: list[Mapping[str, object]]) -> CommitTableResponse:
        """Return a table whose changes are committed, even if the server does not answer any more."""
        name = levels_of(identifier)
        base = self._known[name]
        try:
            return self.load_table_metadata(identifier)
        except IcefieldError as error:
            _LOGGER.warning("%s: committed, but it cannot be loaded now: %s", dotted(name), error)
        # Where the server keeps it is learned by the next refresh.
        made = base.metadata.apply(json.dumps(updates), previous_file=base.metadata_location or None)
        return CommitTableResponse(made, "")

    def leave(self, *, failed: bool) -> None:
        """Expect one table fewer; the others stop if it failed."""
        with self._changed:
            self._expected -= 1
            if failed:
                self._is_stopped = True
            else:
                self._send_if_all_are_here()
            self._changed.notify_all()

    def _send_if_all_are_here(self) -> None:
        now = self._round
        if self._is_stopped or not now.changes or len(now.changes) < self._expected:
            return
        self._round = _Round()
        try:
            self._catalog.commit_tables(now.changes)
        except IcefieldError as failure:
            now.failure = failure
        except BaseException as failure:
            now.failure = CommitStateUnknownException(str(failure))
            raise
        finally:
            now.is_done = True
            self._changed.notify_all()


class _JointTable(Table):
    """A table whose changes are committed with those of others."""

    meeting: _Meeting | None = None

    @classmethod
    def of(cls, table: Table) -> _JointTable:
        """Return a table, to be committed with others."""
        catalog: Any = table.catalog
        return cls(table.name(), table._state, catalog)  # noqa: SLF001

    def alone(self) -> Table:
        """Return the table as it is now, by itself."""
        return Table(self._identifier, self._state, self._catalog)

    def _require_catalog(self) -> Any:
        return super()._require_catalog() if self.meeting is None else self.meeting


class CatalogTransaction:
    """Changes of several tables that become visible together, made by `icefield.catalog.rest.RestCatalog.transaction`.

    A block that raises commits nothing. It is used once.

    Examples
    --------
    >>> with catalog.transaction() as several:  # doctest: +SKIP
    ...     several.table("db.orders").append(orders)
    ...     several.table("db.lines").delete("order_id = 7")

    """

    def __init__(self, catalog: CommitsTables) -> None:
        self._catalog = catalog
        self._parts: dict[Identifier, tuple[_JointTable, Transaction]] = {}
        self._is_finished = False

    def table(self, identifier: IdentifierLike) -> Transaction:
        """Return the transaction of a table, which is committed with the others; the same for the same table.

        Raises
        ------
        NoSuchTableError
            If the table does not exist.

        """
        self._check_open()
        loaded = self._catalog.load_table(identifier)
        name = loaded.name()
        if name not in self._parts:
            joint = _JointTable.of(loaded)
            self._parts[name] = joint, joint.transaction()
        return self._parts[name][1]

    def commit_transaction(self) -> list[Table]:
        """Commit the changes of all tables.

        Returns
        -------
        list of Table
            The tables as the commit has left them, in the order in which they were first used.

        Raises
        ------
        CommitFailedException
            If other commits changed what these changes depend on, or every attempt lost; none of them is made.
        ValidationException
            If other commits conflict with these changes; none of them is made.
        CommitStateUnknownException
            If the outcome is unknown; either all of them are made, or none is.

        """
        self._check_open()
        self._is_finished = True
        meeting = _Meeting(self._catalog, [table for table, _ in self._parts.values()])
        failures: list[BaseException] = []

        def commit(table: _JointTable, transaction: Transaction) -> None:
            table.meeting, failed = meeting, True
            try:
                transaction.commit_transaction()
                failed = False
            except BaseException as failure:  # noqa: BLE001 - it is raised by the caller's thread
                failures.append(failure)
            finally:
                table.meeting = None
                meeting.leave(failed=failed)

        threads = [threading.Thread(target=commit, args=part, daemon=True) for part in self._parts.values()]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            # Whoever stops the program learns of it when nothing is under way.
            for thread in threads:
                thread.join()
            raise
        if failures:
            raise min(failures, key=_rank)
        return [table.alone() for table, _ in self._parts.values()]

    def _check_open(self) -> None:
        if self._is_finished:
            raise InvalidArgumentError("this transaction is already finished; start a new one")

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            if not self._is_finished:
                self.commit_transaction()
            return
        self._is_finished = True
        for _, transaction in self._parts.values():
            transaction.__exit__(kind, error, trace)

    def __repr__(self) -> str:
        state = "finished" if self._is_finished else "not committed"
        return f"CatalogTransaction({', '.join(dotted(name) for name in self._parts)}; {state})"


def _rank(failure: BaseException) -> int:
    """Rank a failure by how little it explains: that of a table which another one stopped explains nothing."""
    if isinstance(failure, CommitStateUnknownException):
        return 0
    return 2 if isinstance(failure, _StoppedError) else 1
