"""Tables: their current and previous contents, and changes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Literal, NoReturn

from icefield._arguments import append_options, property_names, property_texts, property_updates
from icefield._arrow_names import without_nul
from icefield._core import Storage, TableState, expire_snapshots
from icefield._core import Transaction as CoreTransaction
from icefield._hints import MISSING_VERBS
from icefield._metadata_files import newest_metadata
from icefield._polars import lazy_frame
from icefield._secrets import guarded, revealed
from icefield.distributed import WritePlan, WrittenFiles
from icefield.errors import InvalidArgumentError, MissingVerbError, StorageError, UnsupportedFeatureError
from icefield.incremental import IncrementalAppendScan, IncrementalChangelogScan, Start
from icefield.inspect import InspectTable
from icefield.metadata import Snapshot, SnapshotRef
from icefield.micro_batches import MicroBatches
from icefield.moments import milliseconds_of
from icefield.scan import DataScan, fields_of, split_of
from icefield.table.description import TableDescription
from icefield.table.history import MetadataLogEntry, SnapshotLogEntry
from icefield.table.maintenance import ExpiredSnapshots, Maintenance
from icefield.table.rows import TableRows
from icefield.table.transaction import CreateTableTransaction, Transaction
from icefield.table.update import (
    ManageSnapshots,
    RewriteManifests,
    UpdateSchema,
    UpdateSnapshot,
    UpdateSortOrder,
    UpdateSpec,
)
from icefield.table.update.producing import SnapshotOptions

if TYPE_CHECKING:
    import polars as pl

    from icefield._core import ExpiryRequest
    from icefield.arrow import Rows
    from icefield.catalog.base import Catalog
    from icefield.catalog.identifier import Identifier
    from icefield.expressions import RowFilter
    from icefield.manifests import DataFile
    from icefield.table.maintenance import Expired

__all__ = ["CreateTableTransaction", "MetadataLogEntry", "Snapshot", "SnapshotLogEntry", "SnapshotRef", "Table"]


class Table(TableDescription, TableRows):
    """A table as it was when it was loaded; `refresh` loads its current state.

    Loaded by a catalog, or without one by `Table.from_metadata`; then it is read-only.
    """

    def __init__(self, identifier: Identifier, state: TableState, catalog: Catalog | None) -> None:
        super().__init__(identifier, state, catalog)
        self._lock = Lock()

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

    @property
    def inspect(self) -> InspectTable:
        """The metadata tables, such as ``table.inspect.files()`` and ``table.inspect.partitions()``."""
        return InspectTable(self._state)

    def scan(
        self,
        row_filter: RowFilter | None = None,
        selected_fields: Iterable[str] | str = ("*",),
        case_sensitive: bool = True,
        snapshot_id: int | None = None,
        options: Mapping[str, str] | None = None,
        limit: int | None = None,
        *,
        as_of: datetime | str | int | None = None,
        ref: str | None = None,
    ) -> DataScan:
        """Read the table.

        Parameters
        ----------
        row_filter
            Rows to read, as text (``"id > 5 AND name IS NOT NULL"``) or as an expression. Against a ``timestamptz``,
            dates and times without a time zone are UTC.
        selected_fields
            Columns to read.
        case_sensitive
            Whether column names are case-sensitive.
        snapshot_id, as_of, ref
            The snapshot to read: by id, by time, or by branch or tag. A time is an aware datetime, ISO text with an
            offset (``"2024-01-01T00:00:00Z"``), or milliseconds from the epoch; one without a time zone is refused.
        options
            How `TableScan.plan_tasks` splits the scan: ``split-size``, ``lookback``, ``file-open-cost``.
        limit
            Maximum number of rows.

        """
        return DataScan(
            self._state,
            row_filter=row_filter,
            selected_fields=fields_of(selected_fields),
            case_sensitive=case_sensitive,
            snapshot_id=snapshot_id,
            as_of_ms=milliseconds_of(as_of),
            ref=ref,
            limit=limit,
            split=split_of(options),
        )

    def to_polars(self) -> pl.LazyFrame:
        """Return a lazy frame of Polars; it reads the state of this object at the time when it is collected.

        No more columns, files and row groups are read than a query needs.
        """
        return lazy_frame(self.scan)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Read all rows as a stream of batches."""
        return self.scan().__arrow_c_stream__(requested_schema)

    def incremental_append_scan(
        self,
        *,
        from_snapshot_id_exclusive: int | str | None = None,
        to_snapshot_id_inclusive: int | str | None = None,
        row_filter: RowFilter | None = None,
        selected_fields: Iterable[str] | str = ("*",),
        case_sensitive: bool = True,
        options: Mapping[str, str] | None = None,
        limit: int | None = None,
        from_snapshot_id_inclusive: int | str | None = None,
        branch: str | None = None,
    ) -> IncrementalAppendScan:
        """Read the rows that ``append`` snapshots added; other snapshots are skipped.

        Parameters
        ----------
        from_snapshot_id_exclusive, from_snapshot_id_inclusive
            The snapshot that the scan starts after or with; a str is the name of a tag. Without one, it starts with the
            oldest existing ancestor. The snapshot that it starts after may have expired.
        to_snapshot_id_inclusive
            The last snapshot, the current one by default; a str is the name of a tag.
        branch
            The branch of the snapshots; ``main`` by default.
        row_filter, selected_fields, case_sensitive, limit
            As for `scan`; names are those of the current schema.
        options
            How `TableScan.plan_tasks` splits the scan: ``split-size``, ``lookback``, ``file-open-cost``.

        Raises
        ------
        InvalidArgumentError
            If a snapshot does not exist, or the first is not an ancestor of the last.

        """
        return IncrementalAppendScan(
            self._state,
            row_filter=row_filter,
            selected_fields=fields_of(selected_fields),
            case_sensitive=case_sensitive,
            limit=limit,
            split=split_of(options),
            start=Start.of(from_snapshot_id_exclusive, from_snapshot_id_inclusive),
            to_snapshot=to_snapshot_id_inclusive,
            branch=branch,
        )

    def incremental_changelog_scan(
        self,
        *,
        from_snapshot_id_exclusive: int | str | None = None,
        to_snapshot_id_inclusive: int | str | None = None,
        row_filter: RowFilter | None = None,
        selected_fields: Iterable[str] | str = ("*",),
        case_sensitive: bool = True,
        limit: int | None = None,
        from_snapshot_id_inclusive: int | str | None = None,
        branch: str | None = None,
        remove_carryovers: bool = False,
        net_changes: bool = False,
        compute_updates: bool | None = None,
        identifier_columns: Iterable[str] | str | None = None,
    ) -> IncrementalChangelogScan:
        """Read the rows that snapshots added and removed, in order; see `IncrementalChangelogScan` for the columns.

        Parameters
        ----------
        from_snapshot_id_exclusive, to_snapshot_id_inclusive, from_snapshot_id_inclusive, branch
            As in `incremental_append_scan`.
        row_filter, selected_fields, case_sensitive, limit
            As in `scan`. Rows are compared before they are filtered and projected.
        remove_carryovers
            Leave out rows that a snapshot deleted and inserted again as they were. Implied by the following.
        net_changes
            Leave out what one snapshot did and another undid as well.
        compute_updates
            Make ``UPDATE_BEFORE`` and ``UPDATE_AFTER`` of a deleted and an inserted row of one identifier; by default
            where identifier columns are given. With net changes: of the row before the first snapshot and after the
            last.
        identifier_columns
            Columns that identify rows. By default ``_row_id`` if all files have row ids (version 3), otherwise the
            identifier fields of the schema.

        Raises
        ------
        InvalidArgumentError
            If a snapshot does not exist, or the first is not an ancestor of the last; if there is no identifier.
        ValidationException
            While reading, if a snapshot deleted several rows of one identifier.

        """
        return IncrementalChangelogScan(
            self._state,
            row_filter=row_filter,
            selected_fields=fields_of(selected_fields),
            case_sensitive=case_sensitive,
            limit=limit,
            start=Start.of(from_snapshot_id_exclusive, from_snapshot_id_inclusive),
            to_snapshot=to_snapshot_id_inclusive,
            branch=branch,
            remove_carryovers=remove_carryovers,
            net_changes=net_changes,
            compute_updates=compute_updates,
            identifier_columns=None if identifier_columns is None else fields_of(identifier_columns),
        )

    def micro_batches(
        self,
        *,
        from_timestamp: int | None = None,
        skip_delete_snapshots: bool = False,
        skip_overwrite_snapshots: bool = False,
        branch: str | None = None,
    ) -> MicroBatches:
        """Read the table as a stream: what ``append`` snapshots add, some files at a time.

        Parameters
        ----------
        from_timestamp
            Begin with the first snapshot of this time or later, in milliseconds from the epoch; otherwise with the
            oldest one that is there.
        skip_delete_snapshots, skip_overwrite_snapshots
            Pass over snapshots with these operations; otherwise they are errors, as a stream cannot show their changes.
        branch
            The branch whose snapshots are read; the main one by default.

        """
        return MicroBatches(
            self._state,
            from_timestamp=from_timestamp,
            skip_delete_snapshots=skip_delete_snapshots,
            skip_overwrite_snapshots=skip_overwrite_snapshots,
            branch=branch,
        )

    # Changes

    def append(
        self,
        data: Rows,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
        *,
        schema_mode: Literal["strict", "subset", "evolve"] = "subset",
    ) -> Table:
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

        Raises
        ------
        ValidationError
            If a column does not fit; it names the column and what to do.
        CommitFailedException
            If every attempt lost to another commit; the written files were deleted.
        CommitStateUnknownException
            If the outcome is unknown; nothing was deleted.

        """
        base = self._state
        options = append_options(snapshot_properties, branch, schema_mode)
        state, _, _ = base.append(self._require_catalog(), self._identifier, without_nul(data), **options)
        self._advance(state, base)
        return self

    def append_files(
        self,
        files: Iterable[DataFile],
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
        *,
        stage_only: bool = False,
    ) -> Table:
        """Append data files that are written already, in one snapshot.

        The files are not opened: what is said of them must be true. If the append fails, they stay where they are.

        Parameters
        ----------
        files
            The files; their partition values are those of the partition spec that each names.
        snapshot_properties, branch
            As in `append`.
        stage_only
            Only add the snapshot to the table, without moving the branch.

        Raises
        ------
        InvalidArgumentError
            If a file does not fit the table's partition specs.

        """
        update = self.update_snapshot(snapshot_properties, branch, stage_only=stage_only).merge_append()
        for file in files:
            update.append_data_file(file)
        update.commit()
        return self

    def update_snapshot(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
        *,
        stage_only: bool = False,
    ) -> UpdateSnapshot:
        """Change the files of the table by their descriptions, in a ``with`` block or with `Change.commit`.

        Examples
        --------
        >>> with table.update_snapshot().fast_append() as append:  # doctest: +SKIP
        ...     append.append_data_file(ice.DataFile(file_path=path, file_format="parquet", record_count=3, ...))

        """
        return UpdateSnapshot(
            self.transaction(),
            snapshot_properties=snapshot_properties,
            branch=branch,
            stage_only=stage_only,
            standalone=True,
        )

    def add_files(
        self,
        file_paths: Iterable[str],
        snapshot_properties: Mapping[str, str] | None = None,
        check_duplicate_files: bool = True,
        branch: str = "main",
        *,
        partitions: Mapping[str, Mapping[str, object]] | None = None,
        validate: Literal["footer", "data"] = "footer",
    ) -> Table:
        """Take Parquet, ORC and Avro files that others have written into the table, in one snapshot.

        The files stay where they are and belong to the table from then on. Their columns are found by the field ids
        that they store, else by name; for that the table gets a name mapping if it has none. Partition values come
        from ``partitions``, else from folders ``name=value`` with the name of the partition field, else from the
        bounds in the footer, else from the rows.

        Parameters
        ----------
        file_paths
            Locations of the files.
        snapshot_properties
            Entries of the snapshot's summary.
        check_duplicate_files
            Refuse files that the branch already has.
        branch
            The branch to which the snapshot is added.
        partitions
            Values of partition fields by name, for each path.
        validate
            ``"data"`` also compares partition values that are given, or stand in the path, with the rows where the
            footer does not prove them.

        Raises
        ------
        InvalidArgumentError
            If a file is given twice or is in the table, if its rows do not belong to one partition, or if its field
            ids, required columns or partition values contradict the table; nothing was changed.
        CorruptDataError
            If it is no data file, or a column cannot be read as the table's type.
        CommitFailedException
            If every attempt lost to another commit.
        CommitStateUnknownException
            If the outcome is unknown.

        """
        with self.transaction() as changes:
            changes.add_files(
                file_paths,
                snapshot_properties,
                check_duplicate_files,
                branch,
                partitions=partitions,
                validate=validate,
            )
        return self

    def rewrite_manifests(self, snapshot_properties: Mapping[str, str] | None = None) -> RewriteManifests:
        """Write manifests of data files again, so that a filter reads few of them.

        The new manifests have the entries of the old ones, grouped by `RewriteManifests.cluster_by`.

        Examples
        --------
        >>> table.rewrite_manifests().cluster_by("month").commit()  # doctest: +SKIP

        """
        options = SnapshotOptions(snapshot_properties=property_texts(snapshot_properties))
        return RewriteManifests(self.transaction(), options, standalone=True)

    def commit_changes(self, changes: CoreTransaction) -> None:
        """Commit the changes of a transaction of this table; `Transaction.commit_transaction` calls it."""
        base = self._state
        self._advance(changes.commit(self._require_catalog(), self._identifier), base)

    def take_over(self, state: TableState) -> None:
        """Become the table of a state; `CreateTableTransaction.commit_transaction` calls it."""
        with self._lock:
            self._state = state

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
    ) -> Table:
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

        Raises
        ------
        CommitFailedException
            If every attempt lost to another commit.
        CommitStateUnknownException
            If the outcome is unknown: the files may be part of the table, so keep them.

        """
        base = self._state
        properties = property_texts(snapshot_properties)
        catalog = self._require_catalog()
        state = plan.append(base, catalog, self._identifier, written, branch=branch, snapshot_properties=properties)
        self._advance(state, base)
        return self

    def refresh(self) -> Table:
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
            self._state = self._refreshed(self._state)
        return self

    def commit(self, requirements: Iterable[Mapping[str, object]], updates: Iterable[Mapping[str, object]]) -> Table:
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

    def update_properties(self, updates: Mapping[str, str] | None = None, removals: Iterable[str] | str = ()) -> Table:
        """Set and remove table properties; ``format-version`` upgrades the table, as in Java.

        A single str in ``removals`` is one name.
        """
        changes, names = property_updates(updates), property_names(removals)
        if both := sorted(set(names) & set(updates or {})):
            raise InvalidArgumentError(f"table property {both[0]!r} cannot be set and removed at once")
        if names:
            changes.append({"action": "remove-properties", "removals": names})
        return self.commit([], changes)

    def transaction(self) -> Transaction:
        """Start a transaction: changes that are committed together.

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
        return Transaction(self)

    def update_schema(self, allow_incompatible_changes: bool = False, case_sensitive: bool = True) -> UpdateSchema:
        """Change the schema, in a ``with`` block or with `Change.commit`.

        Parameters
        ----------
        allow_incompatible_changes
            Allow changes that existing rows may violate: required columns without a default, optional columns made
            required.
        case_sensitive
            Whether column names are case-sensitive.

        Examples
        --------
        >>> with table.update_schema() as update:  # doctest: +SKIP
        ...     update.add_column("place.country", "string", doc="ISO 3166")
        ...     update.rename_column("time", "departure").move_first("departure")

        """
        return UpdateSchema(
            self.transaction(),
            standalone=True,
            allow_incompatible_changes=allow_incompatible_changes,
            case_sensitive=case_sensitive,
        )

    def update_spec(self, case_sensitive: bool = True) -> UpdateSpec:
        """Change the partition spec, in a ``with`` block or with `Change.commit`.

        Parameters
        ----------
        case_sensitive
            Whether column names are case-sensitive.

        Examples
        --------
        >>> with table.update_spec() as update:  # doctest: +SKIP
        ...     update.add_field("bucket(16, id)").remove_field("day")

        """
        return UpdateSpec(self.transaction(), standalone=True, case_sensitive=case_sensitive)

    def update_sort_order(self) -> UpdateSortOrder:
        """Replace the sort order, in a ``with`` block or with `Change.commit`."""
        return UpdateSortOrder(self.transaction(), standalone=True)

    def manage_snapshots(self) -> ManageSnapshots:
        """Change branches, tags and the current snapshot, in a ``with`` block or with `Change.commit`.

        Examples
        --------
        >>> table.manage_snapshots().create_tag(snapshot_id, "audited").commit()  # doctest: +SKIP

        """
        return ManageSnapshots(self.transaction(), standalone=True)

    @property
    def maintenance(self) -> Maintenance:
        """What keeps the table in order: ``table.maintenance.expire_snapshots()``."""
        return Maintenance(self._expire)

    def expire_snapshots(
        self,
        *,
        older_than: datetime | str | int | None = None,
        retain_last: int | None = None,
        snapshot_ids: Iterable[int] = (),
        clean_expired_metadata: bool = False,
        cleanup: Literal["all", "metadata", "nothing"] = "all",
        dry_run: bool = False,
    ) -> ExpiredSnapshots:
        """Expire snapshots, and delete the files that only they name; see `ExpireSnapshots`.

        Parameters
        ----------
        older_than, retain_last, snapshot_ids, clean_expired_metadata, cleanup
            As in `ExpireSnapshots`.
        dry_run
            Change nothing, and return what would be done.

        """
        change = self.maintenance.expire_snapshots().by_ids(snapshot_ids).cleanup(cleanup)
        change.clean_expired_metadata(clean_expired_metadata)
        if older_than is not None:
            change.older_than(older_than)
        if retain_last is not None:
            change.retain_last(retain_last)
        return change.dry_run() if dry_run else change.commit()

    def _expire(self, request: ExpiryRequest) -> Expired:
        base = self._state
        done = expire_snapshots(base, self._require_catalog(), self._identifier, request)
        if done[0] is not None:
            self._advance(done[0], base)
        return done

    def _advance(self, state: TableState, base: TableState) -> None:
        """Take over the result of an operation on ``base``, or the newest state if another thread changed it."""
        with self._lock:
            if self._state is not base:
                # The commit has succeeded, even if the catalog cannot be read now.
                with suppress(Exception):
                    state = self._refreshed(state)
            self._state = state

    def _refreshed(self, known: TableState) -> TableState:
        return known.refresh(self._require_catalog(), self._identifier)

    def _require_catalog(self) -> Catalog:
        if self._catalog is None:
            msg = (
                "this table was opened by its metadata file, without a catalog: it is read-only and cannot be refreshed"
            )
            raise UnsupportedFeatureError(msg)
        return self._catalog

    def __getattr__(self, name: str) -> NoReturn:
        if meanwhile := MISSING_VERBS.get(name):
            raise MissingVerbError(f"Table.{name} is not supported yet; instead, {meanwhile}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __reduce__(self) -> tuple[object, ...]:
        return Table, (self._identifier, self._state, self._catalog)
