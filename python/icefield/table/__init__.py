"""Tables: their current and previous contents, and changes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Literal, NoReturn, overload

from icefield._arguments import append_options, property_texts, summary_entries
from icefield._arrow_names import without_nul
from icefield._core import Storage, TableState
from icefield._core import Transaction as CoreTransaction
from icefield._hints import MISSING_VERBS
from icefield._metadata_files import newest_metadata
from icefield._secrets import guarded, revealed
from icefield.distributed import WritePlan, WrittenFiles
from icefield.errors import (
    InvalidArgumentError,
    MissingVerbError,
    NoSuchNamespaceError,
    StorageError,
    TableAlreadyExistsError,
)
from icefield.metadata import Snapshot, SnapshotRef
from icefield.table.branches import BranchWork
from icefield.table.changes import TableChanges
from icefield.table.history import MetadataLogEntry, SnapshotLogEntry
from icefield.table.reads import TableReads
from icefield.table.rows import RowsChanged, TableRows, UpsertResult
from icefield.table.transaction import TableTransaction

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield.arrow import Rows

__all__ = [
    "CreateTableTransaction",
    "MetadataLogEntry",
    "RowsChanged",
    "Snapshot",
    "SnapshotLogEntry",
    "SnapshotRef",
    "Table",
    "Transaction",
    "UpsertResult",
]


class Table(TableReads, TableRows, TableChanges):
    """A table as it was when it was loaded; `refresh` loads its current state.

    Loaded by a catalog, or without one by `Table.from_metadata`; then it is read-only.
    """

    @classmethod
    def from_metadata(
        cls, metadata_location: str, *, relocate: Mapping[str, str] | None = None, **properties: str
    ) -> Table:
        """Open a table without a catalog.

        Parameters
        ----------
        metadata_location
            A metadata file. For a folder, the error names its newest metadata file.
        relocate
            Old prefixes of paths to new ones, for a table that was moved or copied.
        **properties
            Properties of the storage.

        """
        storage = Storage(revealed(guarded(properties)), dict(relocate or {}))
        try:
            state = TableState.load(storage, metadata_location)
        except StorageError as error:
            newest = newest_metadata(storage, metadata_location)
            if newest is None:
                raise
            msg = f"{metadata_location} is a folder: pass a metadata file; the newest one is {newest}"
            raise InvalidArgumentError(msg) from error
        return cls((), state, None)

    def transaction(self, *, idempotency_key: str | None = None) -> Transaction:
        """Start a transaction: changes that are committed together.

        Parameters
        ----------
        idempotency_key
            Makes the transaction once: if a snapshot of a branch was made with this key, nothing is committed. The
            key is kept in the summary of its first snapshot, and forgotten when that expires.

        Examples
        --------
        >>> with table.transaction() as tx:  # doctest: +SKIP
        ...     with tx.update_schema() as schema:
        ...         schema.add_column("region", "string")
        ...     with tx.update_spec() as spec:
        ...         spec.add_field("region", "identity")
        ...     tx.set_properties({"owner": "me"})

        """
        self._require_catalog()
        return Transaction(self, idempotency_key=idempotency_key)

    @overload
    def append(
        self,
        data: Rows,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
        *,
        schema_mode: Literal["strict", "subset", "evolve"] = "subset",
        idempotency_key: str | None = None,
        dry_run: Literal[False] = False,
    ) -> Self: ...
    @overload
    def append(
        self,
        data: Rows,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
        *,
        schema_mode: Literal["strict", "subset", "evolve"] = "subset",
        idempotency_key: str | None = None,
        dry_run: Literal[True],
    ) -> RowsChanged: ...
    def append(
        self,
        data: Rows,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
        *,
        schema_mode: Literal["strict", "subset", "evolve"] = "subset",
        idempotency_key: str | None = None,
        dry_run: bool = False,
    ) -> Self | RowsChanged:
        """Append rows, in one snapshot.

        Parameters
        ----------
        data
            Anything with ``__arrow_c_stream__``: a pyarrow Table or RecordBatchReader, a pandas or Polars frame, a
            DuckDB relation; or one Arrow batch. Columns are found by name, in any order. A stream is written
            as it arrives, in bounded memory.
        snapshot_properties
            Entries of the snapshot's summary.
        branch
            The branch to which the snapshot is added.
        schema_mode
            ``"strict"``: the rows have exactly the table's columns. ``"subset"``: optional columns may be missing, and
            get their write default or null. ``"evolve"``: in addition, columns that the table lacks, at any
            depth, are added as optional ones, and types are widened where needed, in the same commit.
        idempotency_key
            Makes the append once: if a snapshot in the history of the branch was made with this key, nothing is done.
            The key is kept in the snapshot's summary, and forgotten when that expires.
        dry_run
            Only look at the rows, and return how many there are, as `RowsChanged`.

        Raises
        ------
        ValidationError
            If a column does not fit; it names the column and what to do.
        CommitFailedException
            If every attempt lost to another commit; the written files were deleted.
        CommitStateUnknownException
            If the outcome is unknown; nothing was deleted.

        """
        if self._made_before(branch, idempotency_key):
            return self if not dry_run else RowsChanged(0, 0, 0, 0, 0, 0)
        base = self._state
        options = append_options(snapshot_properties, branch, schema_mode, idempotency_key)
        if dry_run:
            return RowsChanged(0, CoreTransaction(base).append(without_nul(data), **options, dry_run=True), 0, 0, 0, 0)
        state, _, _ = base.append(self._require_catalog(), self._identifier, without_nul(data), **options)
        self._advance(state, base)
        return self

    def branch(self, name: str) -> BranchWork:
        """Make changes on a new branch, and publish them together at the end of a ``with`` block.

        Examples
        --------
        >>> with table.branch("audit") as audit:  # doctest: +SKIP
        ...     audit.append(rows)
        ...     assert audit.scan("amount < 0").count() == 0

        """
        return BranchWork(self, name)

    def new_write(self, properties: Mapping[str, str] | None = None) -> WritePlan:
        """Plan a write by workers (`icefield.distributed`); nothing is written yet.

        Parameters
        ----------
        properties
            Table properties for this write only, such as ``write.format.default``.

        """
        return WritePlan.of(self._state, property_texts(properties))

    def commit_files(
        self,
        plan: WritePlan,
        written: Iterable[WrittenFiles],
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
        *,
        idempotency_key: str | None = None,
    ) -> Self:
        """Append the files that the tasks of a write wrote, in one snapshot.

        If it fails, the files are kept: commit them again or delete them with `WritePlan.discard`.

        Parameters
        ----------
        plan
            The write, made by `new_write` of this table.
        written
            The result of each `TaskWriter`.
        snapshot_properties
            Entries of the snapshot's summary.
        branch
            The branch to which the snapshot is added.
        idempotency_key
            As for `append`; the files are not the table's if it was done before, and can be discarded.

        Raises
        ------
        CommitFailedException
            If every attempt lost to another commit.
        CommitStateUnknownException
            If the outcome is unknown: the files may be part of the table, so keep them.

        """
        base = self._state
        properties = summary_entries(snapshot_properties, idempotency_key)
        catalog = self._require_catalog()
        state = plan.append(base, catalog, self._identifier, written, branch=branch, snapshot_properties=properties)
        self._advance(state, base)
        return self

    def __getattr__(self, name: str) -> NoReturn:
        if meanwhile := MISSING_VERBS.get(name):
            raise MissingVerbError(f"Table.{name} is not supported yet; instead, {meanwhile}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __reduce__(self) -> tuple[object, ...]:
        return Table, (self._identifier, self._state, self._catalog)


class Transaction(TableTransaction[Table]):
    """Changes of one table, committed together at the end of the ``with`` block.

    A block that raises commits nothing. Outside of a block call `commit_transaction`; without it changes are
    lost, with a ``ResourceWarning``. Each change is checked when it is made, on top of the previous ones; the commit
    requires that other commits have not changed what they depend on. A transaction is used once.

    Appended rows are written at once, and deleted if the transaction is not committed. If another commit was first,
    the changes are applied again on top of it.
    """


class CreateTableTransaction(Transaction):
    """A table that is not in its catalog before the transaction is committed; then with all changes.

    The table can be written to within the transaction; it cannot be read before the commit.
    """

    def __init__(self, table: Table, add: Callable[[str], None]) -> None:
        super().__init__(table)
        self._add = add

    def commit_transaction(self) -> Table:
        """Add the table to its catalog.

        Raises
        ------
        TableAlreadyExistsError
            If another table of this name was created since; what the transaction has written is deleted.

        """
        self._check_open()
        self._finished = True
        state = self._changes.create()
        try:
            self._add(state.metadata_location)
        except (TableAlreadyExistsError, NoSuchNamespaceError):
            state.storage.delete(state.metadata_location)
            self._changes.abort()
            raise
        self._changes.created()
        self._table.take_over(state)
        return self._table
