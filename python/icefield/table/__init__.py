"""Tables: their current and previous contents, and changes of them."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from icefield._core import Storage, TableState
from icefield._inputs.arguments import property_texts, summary_entries
from icefield._inputs.metadata_files import newest_metadata
from icefield._inputs.secrets import guarded, revealed
from icefield._support.hints import ELSEWHERE, MISSING_VERBS
from icefield.distributed import Committed, RowChangePlan, WritePlan, WrittenFiles
from icefield.encryption.registry import client_of
from icefield.errors import InvalidArgumentError, MissingVerbError, StorageError
from icefield.incremental import IncrementalAppendScan
from icefield.metadata import Snapshot, SnapshotLogEntry, SnapshotRef
from icefield.scan import DataScan, FileScanTask, TableScan
from icefield.table.branches import BranchedTable, BranchWork
from icefield.table.maintenance.copies import CopiesTable
from icefield.table.maintenance.diagnosis import Diagnosis, diagnosed, orphans_of
from icefield.table.maintenance.exports import MetadataExport, exported, extracted
from icefield.table.reads import TableReads
from icefield.table.rows import UpsertResult
from icefield.table.transaction import TableTransaction
from icefield.table.update.outcomes import RowsChanged
from icefield.table.update.target import OWN_BRANCH

if TYPE_CHECKING:
    import os

    from typing_extensions import Self

    from icefield._inputs.identifiers import Identifier
    from icefield.arrow import ArrowSchemaExportable
    from icefield.expressions import RowFilter
    from icefield.table.catalog import TableCatalog
    from icefield.table.rows import Isolation, RowMode

__all__ = [
    "CreateTableTransaction",
    "DataScan",
    "FileScanTask",
    "IncrementalAppendScan",
    "RowsChanged",
    "Snapshot",
    "SnapshotLogEntry",
    "SnapshotRef",
    "StaticTable",
    "Table",
    "TableScan",
    "Transaction",
    "UpsertResult",
]


class Table(TableReads, CopiesTable, BranchedTable):
    """A table as it was when it was loaded; `refresh` loads its current state.

    Loaded by a catalog, or without one by `Table.from_metadata`; then it is read-only.
    """

    @classmethod
    def from_metadata(
        cls, metadata_location: str, *, relocate: Mapping[str, str] | None = None, **properties: str
    ) -> Self:
        """Open a table without a catalog.

        Parameters
        ----------
        metadata_location
            A metadata file. For a folder, the error names its newest metadata file.
        relocate
            Old prefixes of paths to new ones, for a table that was moved or copied.
        **properties
            Properties of the storage, and for an encrypted table ``encryption.kms-type`` or ``encryption.kms-impl``.

        """
        revealed_properties = revealed(guarded(properties))
        storage = Storage(revealed_properties, dict(relocate or {}))
        if (client := client_of(revealed_properties)) is not None:
            storage = storage.with_keys(client)
        try:
            state = TableState.load(storage, metadata_location)
        except StorageError as error:
            newest = newest_metadata(storage, metadata_location)
            if newest is None:
                raise
            msg = f"{metadata_location} is a folder: pass a metadata file; the newest one is {newest}"
            raise InvalidArgumentError(msg) from error
        return cls((), state, None)

    @classmethod
    def from_export(cls, path: str | os.PathLike[str], folder: str | os.PathLike[str] | None = None) -> Self:
        """Open the table of an export (`export_metadata`), to plan scans of it and to inspect it; it has no rows.

        Parameters
        ----------
        path
            The export.
        folder
            Where its files are extracted; by default a temporary folder, which goes with the table.

        Raises
        ------
        InvalidArgumentError
            If the file is no export.

        """
        target, folders = extracted(path, folder)
        table = cls.from_metadata(str(target / "metadata.json"), relocate=folders)
        if folder is None:
            weakref.finalize(table, shutil.rmtree, target, ignore_errors=True)
        return table

    def export_metadata(
        self, path: str | os.PathLike[str], *, snapshot_ids: Iterable[int] = (), values: bool = False
    ) -> MetadataExport:
        """Write what planning reads of the table into one file, for a report of a fault: no rows, and no data files.

        The export has the metadata file, and the manifest lists and manifests of some snapshots; `from_export` opens
        it. By default it has nothing that tells values of rows: bounds and partition values are left out, and paths,
        file names and the location are replaced, as are properties that are not about how tables are written and read.
        Names of columns, default values and comments, counts and sizes stay. Properties with credentials are left out
        in any case.

        Parameters
        ----------
        path
            A new ``.zip`` file.
        snapshot_ids
            The snapshots; by default the current one.
        values
            Keep bounds, partition values, paths and all other properties: manifests are then copied byte for byte. Many
            faults of planning can be seen only so.

        Raises
        ------
        InvalidArgumentError
            If the file exists, or a snapshot is unknown.
        UnsupportedFeatureError
            If the table is encrypted: its metadata would be plain in the export.

        Examples
        --------
        >>> table.export_metadata("flights.zip")  # doctest: +SKIP
        MetadataExport(flights.zip: 1 snapshot, 4 manifests, 6.1 KiB, without values)
        >>> ice.Table.from_export("flights.zip").inspect.files().num_rows  # doctest: +SKIP
        4

        """
        return exported(self._state, path, snapshot_ids, values=values)

    @property
    def catalog(self) -> TableCatalog[Table, Transaction, CreateTableTransaction] | None:
        """The catalog that loaded the table, an `icefield.catalog.Catalog`; None without one."""
        return self._catalog

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

    def branch(self, name: str) -> BranchWork:
        """Make changes on a new branch, and publish them together at the end of a ``with`` block.

        Examples
        --------
        >>> with table.branch("audit") as audit:  # doctest: +SKIP
        ...     audit.append(rows)
        ...     assert audit.scan("amount < 0").count() == 0

        """
        return BranchWork(self, name)

    def doctor(self, *, orphans: bool = False) -> Diagnosis:
        """Find what makes the table slow or large, what that costs, and which call repairs it.

        The manifests are read, and no data file: small files, deletes that scans apply again and again, partitions of
        very different sizes, files that are not sorted or have no bounds, snapshots that could expire, many manifests
        and metadata files, properties that work against each other, and damage (`fsck`).

        Parameters
        ----------
        orphans
            List the table's folder as well, for files that nothing references; see `Maintenance.remove_orphans`.

        Returns
        -------
        Diagnosis
            The findings, those that cost most first.

        Examples
        --------
        >>> for advice in table.doctor():  # doctest: +SKIP
        ...     print(advice.name, advice.bytes, advice.repair)
        small-files 52428800 table.maintenance.compact()

        """
        found = diagnosed(self._state)
        if orphans:
            found += orphans_of(self.maintenance.remove_orphans)
        return Diagnosis(found)

    def new_write(
        self, properties: Mapping[str, str] | None = None, *, widened_by: ArrowSchemaExportable | None = None
    ) -> WritePlan:
        """Plan a write by workers (`icefield.distributed`); nothing is written yet.

        Parameters
        ----------
        properties
            Table properties for this write only, such as ``write.format.default``.
        widened_by
            The Arrow schema of rows whose columns the table may lack: `commit_files` adds them as optional columns and
            widens types, in the same commit, as ``schema_mode="evolve"`` of `append` does.

        """
        return WritePlan.of(self._state, property_texts(properties), widened_by)

    def commit_files(
        self,
        plan: WritePlan,
        written: Iterable[WrittenFiles],
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        mode: Literal["append", "dynamic"] = "append",
        isolation: Isolation | None = None,
        idempotency_key: str | None = None,
    ) -> Committed:
        """Commit the files that the tasks of a write wrote, in one snapshot.

        If it fails, the files are kept: commit them again or delete them with `WritePlan.discard`. This table then
        has the rows, as after `append`.

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
        mode
            ``"append"`` adds the files; ``"dynamic"`` replaces the partitions that they are in, as
            `dynamic_partition_overwrite` does. Nothing happens then without files. An overwrite by a filter is a
            `new_row_change`.
        isolation
            With ``mode="dynamic"``, as for `dynamic_partition_overwrite`, of commits since `new_write`.
        idempotency_key
            As for `append`. If the change was made before, by other files, these are not the table's: the result says
            so, and `WritePlan.discard` deletes them.

        Returns
        -------
        Committed
            The snapshot, the rows, and whether the files are the table's.

        Raises
        ------
        InvalidArgumentError
            With ``mode="dynamic"``, if the table has no partitions, or if two results are of one task.
        ValidationException
            With ``mode="dynamic"``, if there are files of other partition specs, or a conflict with another commit.
        CommitFailedException
            If every attempt lost to another commit.
        CommitStateUnknownException
            If the outcome is unknown: the files may be part of the table, so keep them.

        """
        base, branch = self._state, self._on(branch)
        properties = summary_entries(snapshot_properties, idempotency_key)
        catalog = self._require_catalog()
        if mode == "append":
            if isolation is not None:
                raise InvalidArgumentError(
                    'isolation: an append conflicts with no commit: leave it out, or pass mode="dynamic"'
                )
            state, committed = plan.append(
                base, catalog, self._identifier, written, branch=branch, snapshot_properties=properties
            )
        elif mode == "dynamic":
            state, committed = plan.replace_partitions(
                base,
                catalog,
                self._identifier,
                written,
                branch=branch,
                isolation=isolation,
                snapshot_properties=properties,
            )
        else:
            raise InvalidArgumentError(f"mode: expected 'append' or 'dynamic', got {mode!r}")
        self._advance(state, base)
        return committed

    def new_row_change(
        self,
        command: Literal["delete", "update", "merge", "overwrite"],
        row_filter: RowFilter | None = None,
        *,
        exact: bool = False,
        mode: RowMode | None = None,
        isolation: Isolation | None = None,
        branch: str = OWN_BRANCH,
        case_sensitive: bool = True,
        properties: Mapping[str, str] | None = None,
        widened_by: ArrowSchemaExportable | None = None,
    ) -> RowChangePlan:
        """Plan a change of rows by workers (`icefield.distributed`); only manifests are read.

        Parameters
        ----------
        command
            The kind of the change: which properties count for `mode` and `isolation`, those of ``write.delete``,
            ``write.update`` or ``write.merge``. An overwrite has those of deletes.
        row_filter
            A filter that matches every row that is taken out, as for `delete`; all rows without it. It chooses the
            files and the rows that tasks read, and other commits that add rows it matches are conflicts.
        exact
            Whether every row that the filter matches is taken out: files whose rows all match are then dropped unread,
            and are in no task. The filter must not compare two columns.
        mode, isolation
            As for `delete`.
        branch
            The branch that is changed.
        case_sensitive
            Whether column names in the filter are case-sensitive.
        properties, widened_by
            As for `new_write`.

        Examples
        --------
        >>> plan = table.new_row_change("delete", "amount < 0")  # doctest: +SKIP
        >>> with RowRemover(plan, table.storage) as remover:  # doctest: +SKIP
        ...     for task in plan.tasks([]):
        ...         remover.remove(task.rows(table.storage))
        >>> table.commit_rows(plan, [remover.written])  # doctest: +SKIP

        """
        return RowChangePlan.of(
            self._state,
            command,
            row_filter,
            exact=exact,
            mode=mode,
            isolation=isolation,
            branch=self._on(branch),
            case_sensitive=case_sensitive,
            properties=property_texts(properties),
            widened_by=widened_by,
        )

    def commit_rows(
        self,
        plan: RowChangePlan,
        removed: Iterable[WrittenFiles] = (),
        added: Iterable[WrittenFiles] = (),
        snapshot_properties: Mapping[str, str] | None = None,
        *,
        idempotency_key: str | None = None,
    ) -> Committed:
        """Commit a change of rows by workers, in one snapshot; none if nothing changed.

        If it fails, the files are kept: delete them with `RowChangePlan.discard`. This table then has the change, as
        after `delete`.

        Parameters
        ----------
        plan
            The change, made by `new_row_change` of this table.
        removed
            The result of each `RowRemover`.
        added
            The result of each `TaskWriter` of new rows.
        snapshot_properties
            Entries of the snapshot's summary.
        idempotency_key
            As for `delete`. If the change was made before, by other files, these are not the table's: the result says
            so, and `RowChangePlan.discard` deletes them.

        Raises
        ------
        InvalidArgumentError
            If two results are of one task, or about one data file: one of them is of an attempt that lost.
        ValidationException
            If the change conflicts with another commit; the error names it.
        CommitFailedException
            If every attempt lost to another commit.
        CommitStateUnknownException
            If the outcome is unknown: the files may be part of the table, so keep them.

        """
        base = self._state
        self._on(plan.branch)
        properties = summary_entries(snapshot_properties, idempotency_key)
        catalog = self._require_catalog()
        state, committed = plan.commit(base, catalog, self._identifier, removed, added, snapshot_properties=properties)
        self._advance(state, base)
        return committed

    if not TYPE_CHECKING:  # a type checker would take every misspelt name for one that this returns

        def __getattr__(self, name: str) -> NoReturn:
            if meanwhile := MISSING_VERBS.get(name):
                raise MissingVerbError(f"Table.{name} is not supported yet; instead, {meanwhile}")
            hint = f"; use {ELSEWHERE[name]}" if name in ELSEWHERE else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    def __reduce__(self) -> tuple[object, ...]:
        return _unpickled, (type(self), self._identifier, self._state, self._catalog)


def _unpickled(
    made: type[Table], identifier: Identifier, state: TableState, catalog: TableCatalog[Table, Any, Any] | None
) -> Table:
    # A catalog of one's own need not be derived from ours.
    attached = getattr(catalog, "_attached", None)
    return made(identifier, state if attached is None else attached(identifier, state), catalog)


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

    def commit_transaction(self) -> Table:
        """Add the table to its catalog.

        Raises
        ------
        TableAlreadyExistsError
            If another table of this name was created since; what the transaction has written is deleted.
        CommitStateUnknownException
            If the outcome is unknown; nothing was deleted.

        """
        self._check_open()
        # First, as it raises where a change of this transaction is under way that waits for this call.
        _ = self._changes.is_empty
        self._finished = True
        self._table.create(self._changes)
        return self._table


class StaticTable(Table):
    """A table of a metadata file, without a catalog: it can be read, and neither changed nor refreshed."""

    @classmethod
    def from_metadata(
        cls,
        metadata_location: str,
        properties: Mapping[str, str] | None = None,
        *,
        relocate: Mapping[str, str] | None = None,
        **more: str,
    ) -> Self:
        """Open a table by its metadata file, or by its folder: then by the newest one.

        Parameters
        ----------
        metadata_location
            A metadata file, or the folder of a table.
        properties, **more
            Properties of the storage.
        relocate
            Old prefixes of paths to new ones, for a table that was moved or copied.

        """
        storage = {**(properties or {}), **more}
        if not metadata_location.endswith(".json"):
            opened = Storage(revealed(guarded(storage)), dict(relocate or {}))
            metadata_location = newest_metadata(opened, metadata_location) or metadata_location
        return super().from_metadata(metadata_location, relocate=relocate, **storage)
