"""Tables: what is in them now, what was in them before, and how they change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Literal, NoReturn

from icefield._arguments import append_options, property_names, property_texts, property_updates
from icefield._arrow_names import without_nul
from icefield._core import Storage, TableState
from icefield._core import Transaction as CoreTransaction
from icefield._hints import MISSING_VERBS
from icefield._metadata_files import newest_metadata
from icefield._secrets import guarded, revealed
from icefield.distributed import WritePlan, WrittenFiles
from icefield.errors import InvalidArgumentError, MissingVerbError, StorageError, UnsupportedFeatureError
from icefield.incremental import IncrementalAppendScan, IncrementalChangelogScan, Start
from icefield.inspect import InspectTable
from icefield.metadata import Snapshot, SnapshotRef
from icefield.moments import milliseconds_of
from icefield.scan import DataScan, fields_of, split_of
from icefield.table.description import TableDescription
from icefield.table.history import MetadataLogEntry, SnapshotLogEntry
from icefield.table.transaction import Transaction
from icefield.table.update import ManageSnapshots, UpdateSchema, UpdateSortOrder, UpdateSpec

if TYPE_CHECKING:
    from icefield.arrow import Rows
    from icefield.catalog.base import Catalog
    from icefield.catalog.identifier import Identifier
    from icefield.expressions import RowFilter

__all__ = ["MetadataLogEntry", "Snapshot", "SnapshotLogEntry", "SnapshotRef", "Table"]


class Table(TableDescription):
    """A table as it was when it was opened; `refresh` takes it to now.

    Opened by a catalog, or without one by `Table.from_metadata`: then it is read-only.
    """

    def __init__(self, identifier: Identifier, state: TableState, catalog: Catalog | None) -> None:
        super().__init__(identifier, state, catalog)
        self._turning = Lock()

    @classmethod
    def from_metadata(
        cls, metadata_location: str, *, relocate: Mapping[str, str] | None = None, **properties: str
    ) -> Table:
        """Open a table without a catalog.

        Parameters
        ----------
        metadata_location
            A metadata file. Of a folder, the error names the newest metadata file.
        relocate
            Old prefixes of paths to new ones, for a table that was moved or copied.
        **properties
            How to reach the storage.

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
            Whether names of columns are.
        snapshot_id, as_of, ref
            The snapshot to read: by id, by time, or by branch or tag. A time is an aware datetime, ISO text with an
            offset (``"2024-01-01T00:00:00Z"``), or milliseconds from the epoch; one without a time zone is refused.
        options
            How `TableScan.plan_tasks` splits the scan: ``split-size``, ``lookback``, ``file-open-cost``.
        limit
            Rows to read at the most.

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
        """Read what ``append`` snapshots added; other snapshots are passed over.

        Parameters
        ----------
        from_snapshot_id_exclusive, from_snapshot_id_inclusive
            The snapshot that the scan begins after or with; a text is the name of a tag. Without one, it begins with
            the oldest ancestor that is there. The one it begins after may have been expired.
        to_snapshot_id_inclusive
            The last snapshot, the current one by default; a text is the name of a tag.
        branch
            The branch that the snapshots lie on; the main one by default.
        row_filter, selected_fields, case_sensitive, limit
            As for `scan`; names are those of the current schema.
        options
            How `TableScan.plan_tasks` splits the scan: ``split-size``, ``lookback``, ``file-open-cost``.

        Raises
        ------
        InvalidArgumentError
            If a snapshot is not there, or the first is no ancestor of the last.

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
    ) -> IncrementalChangelogScan:
        """Read what snapshots added and removed, and in which place; `IncrementalChangelogScan` names the columns.

        Parameters are those of `incremental_append_scan`.

        Raises
        ------
        InvalidArgumentError
            If a snapshot is not there, or the first is no ancestor of the last.

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
        )

    # How it changes

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
            DuckDB relation; or one Arrow batch. Columns are found by name, in any order. A stream is written as it
            comes, in bounded memory.
        snapshot_properties
            Entries of the snapshot's summary.
        branch
            The branch that the snapshot goes to.
        schema_mode
            ``"strict"``: the rows have exactly the table's columns. ``"subset"``: optional columns may be missing, and
            get their write default or null. ``"evolve"``: as that, and columns that the table has not, at any depth,
            are added as optional ones, and types widened where they must be, in the same commit.

        Raises
        ------
        ValidationError
            If a column does not fit; it names the column and what to do.
        CommitFailedException
            If other commits won every race; the files written are gone.
        CommitStateUnknownException
            If nobody knows whether it was committed; nothing was deleted.

        """
        base = self._state
        options = append_options(snapshot_properties, branch, schema_mode)
        state, _, _ = base.append(self._require_catalog(), self._identifier, without_nul(data), **options)
        self._become(state, base)
        return self

    def commit_changes(self, changes: CoreTransaction) -> None:
        """Commit the changes of a transaction of this table; `Transaction.commit_transaction` calls it."""
        base = self._state
        self._become(changes.commit(self._require_catalog(), self._identifier), base)

    def new_write(self, properties: Mapping[str, str] | None = None) -> WritePlan:
        """Plan a write that workers carry out (`icefield.distributed`); nothing is written yet.

        Parameters
        ----------
        properties
            Table properties that are different for this write alone, such as ``write.format.default``.

        """
        return WritePlan.of(self._state, property_texts(properties))

    def commit_files(
        self,
        plan: WritePlan,
        written: Iterable[WrittenFiles],
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
    ) -> Table:
        """Append what the tasks of a write wrote, in one snapshot.

        If it fails the files stay, to be tried again or deleted by `WritePlan.discard`.

        Parameters
        ----------
        plan
            The write, made by `new_write` of this table.
        written
            What the `TaskWriter` of each task returned.
        snapshot_properties
            Entries of the snapshot's summary.
        branch
            The branch that the snapshot goes to.

        Raises
        ------
        CommitFailedException
            If other commits won every race.
        CommitStateUnknownException
            If the outcome is unknown: the files may be part of the table, so keep them.

        """
        base = self._state
        properties = property_texts(snapshot_properties)
        catalog = self._require_catalog()
        state = plan.append(base, catalog, self._identifier, written, branch=branch, snapshot_properties=properties)
        self._become(state, base)
        return self

    def refresh(self) -> Table:
        """Take this table to its newest metadata.

        Returns
        -------
        Table
            This one.

        Raises
        ------
        NoSuchTableError
            If the table was dropped.
        TableReplacedError
            If another table has its name now. Tables of version 1 that lack a uuid cannot be told apart.

        """
        with self._turning:
            self._state = self._newest(self._state)
        return self

    def commit(self, requirements: Iterable[Mapping[str, object]], updates: Iterable[Mapping[str, object]]) -> Table:
        """Apply updates of the REST protocol to the table as it is now, if it meets the requirements.

        Raises
        ------
        CommitFailedException
            If it does not meet them, or other commits won every race.
        CommitStateUnknownException
            If nobody knows whether it was committed.

        """
        base = self._state
        state = base.commit(self._require_catalog(), self._identifier, list(requirements), list(updates))
        self._become(state, base)
        return self

    def update_properties(self, updates: Mapping[str, str] | None = None, removals: Iterable[str] | str = ()) -> Table:
        """Set and remove table properties; ``format-version`` raises the version of the table, as in Java.

        One text in ``removals`` is one name.
        """
        changes = property_updates(updates)
        if names := property_names(removals):
            changes.append({"action": "remove-properties", "removals": names})
        return self.commit([], changes)

    def transaction(self) -> Transaction:
        """Begin changes that are made in one commit.

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
        """Change the schema, in a ``with`` block or up to `Change.commit`.

        Parameters
        ----------
        allow_incompatible_changes
            Allow what old rows may not fit: required columns without a default, optional columns made required.
        case_sensitive
            Whether names of columns are.

        Examples
        --------
        >>> with table.update_schema() as update:  # doctest: +SKIP
        ...     update.add_column("place.country", "string", doc="ISO 3166")
        ...     update.rename_column("time", "departure").move_first("departure")

        """
        return UpdateSchema(
            self.transaction(),
            alone=True,
            allow_incompatible_changes=allow_incompatible_changes,
            case_sensitive=case_sensitive,
        )

    def update_spec(self, case_sensitive: bool = True) -> UpdateSpec:
        """Change the partition spec, in a ``with`` block or up to `Change.commit`.

        Parameters
        ----------
        case_sensitive
            Whether names of columns are.

        Examples
        --------
        >>> with table.update_spec() as update:  # doctest: +SKIP
        ...     update.add_field("bucket(16, id)").remove_field("day")

        """
        return UpdateSpec(self.transaction(), alone=True, case_sensitive=case_sensitive)

    def update_sort_order(self) -> UpdateSortOrder:
        """Replace the sort order, in a ``with`` block or up to `Change.commit`."""
        return UpdateSortOrder(self.transaction(), alone=True)

    def manage_snapshots(self) -> ManageSnapshots:
        """Change branches, tags and the current snapshot, in a ``with`` block or up to `Change.commit`.

        Examples
        --------
        >>> table.manage_snapshots().create_tag(snapshot_id, "audited").commit()  # doctest: +SKIP

        """
        return ManageSnapshots(self.transaction(), alone=True)

    def _become(self, state: TableState, base: TableState) -> None:
        """Take on what an operation on ``base`` has made; where another thread did so meanwhile, what is newest."""
        with self._turning:
            if self._state is not base:
                # The commit stands, whether or not the catalog says now what came after it.
                with suppress(Exception):
                    state = self._newest(state)
            self._state = state

    def _newest(self, known: TableState) -> TableState:
        return known.refresh(self._require_catalog(), self._identifier)

    def _require_catalog(self) -> Catalog:
        if self._catalog is None:
            msg = "this table was opened by its metadata file, without a catalog: it is read-only and never newer"
            raise UnsupportedFeatureError(msg)
        return self._catalog

    def __getattr__(self, name: str) -> NoReturn:
        if meanwhile := MISSING_VERBS.get(name):
            raise MissingVerbError(f"Table.{name} is not supported yet: meanwhile {meanwhile}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)

    def __reduce__(self) -> tuple[object, ...]:
        return Table, (self._identifier, self._state, self._catalog)
