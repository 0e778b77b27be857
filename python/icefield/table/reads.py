"""What is read of a table: scans of its rows, what snapshots changed, metadata tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from icefield._inputs.arguments import other_names
from icefield._outputs.polars import lazy_frame
from icefield.errors import InvalidArgumentError
from icefield.incremental import IncrementalAppendScan, IncrementalChangelogScan, Start
from icefield.inspect import InspectTable
from icefield.micro_batches import MicroBatches
from icefield.scan import DataScan
from icefield.scan.moments import milliseconds_of
from icefield.scan.options import fields_of, split_of
from icefield.table.description import DescribesTable, TableDescription
from icefield.table.maintenance.checks import CheckLevel, CheckReport, checked

if TYPE_CHECKING:
    import polars as pl

    from icefield.expressions import RowFilter

__all__ = ["ReadsRows", "TableReads"]


class ReadsRows(DescribesTable):
    """Reads, the same for `icefield.Table` and for a branch of one."""

    @property
    def inspect(self) -> InspectTable:
        """The metadata tables, such as ``table.inspect.files()`` and ``table.inspect.partitions()``."""
        return InspectTable(self._now, self._ref)

    @other_names(columns="selected_fields=", filter="row_filter=", where="row_filter=")
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
            Rows to read, as text (``"id > 5 AND name IS NOT NULL"``) or as an expression. Null passes no comparison of
            a text, as in SQL: neither ``x != 5`` nor ``NOT x = 5``; in an expression, as Iceberg has it, null is not
            equal to 5. Against a ``timestamptz``, dates and times without a time zone are UTC.
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
        if self._branch is not None and as_of is not None:
            raise InvalidArgumentError(f"as_of: times are those of main, and this is the branch {self._branch!r}")
        if snapshot_id is None and ref is None:
            ref = self._ref
        seen = self._seen if snapshot_id is None and as_of is None else self._now
        return DataScan(
            seen,
            row_filter=row_filter,
            selected_fields=fields_of(selected_fields),
            case_sensitive=case_sensitive,
            snapshot_id=snapshot_id,
            as_of_ms=milliseconds_of(as_of),
            ref=ref,
            limit=limit,
            split=split_of(options),
            reporter=self._plan_reporter,
            planner=self._scan_planner,
            whole=self._rest_of(seen),
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
            self._now,
            row_filter=row_filter,
            selected_fields=fields_of(selected_fields),
            case_sensitive=case_sensitive,
            limit=limit,
            split=split_of(options),
            start=Start.of(from_snapshot_id_exclusive, from_snapshot_id_inclusive),
            to_snapshot=to_snapshot_id_inclusive,
            branch=self._ref if branch is None else branch,
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
            self._now,
            row_filter=row_filter,
            selected_fields=fields_of(selected_fields),
            case_sensitive=case_sensitive,
            limit=limit,
            start=Start.of(from_snapshot_id_exclusive, from_snapshot_id_inclusive),
            to_snapshot=to_snapshot_id_inclusive,
            branch=self._ref if branch is None else branch,
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
            self._now,
            from_timestamp=from_timestamp,
            skip_delete_snapshots=skip_delete_snapshots,
            skip_overwrite_snapshots=skip_overwrite_snapshots,
            branch=self._ref if branch is None else branch,
        )


class TableReads(ReadsRows, TableDescription):
    """Reads of a table, as it was when it was loaded."""

    def fsck(self, level: CheckLevel = "manifests", *, max_findings: int = 10_000) -> CheckReport:
        """Check the table: metadata against manifests, and these against files. Nothing is changed.

        Parameters
        ----------
        level
            How much is read; each level includes those before it: ``"metadata"`` only the metadata file;
            ``"manifests"`` manifest lists and manifests of all snapshots; ``"files"`` whether the files exist, and
            their sizes (a request a file); ``"footers"`` footers of data files, delete files and statistics files;
            ``"rows"`` all rows and deletion vectors.
        max_findings
            How many findings to return; all are counted.

        Returns
        -------
        CheckReport
            The findings. Each names a file and a field, with the expected and the found value.

        Examples
        --------
        >>> table.fsck("files")  # doctest: +SKIP
        CheckReport(1 error, 0 warnings in 3 snapshots, 3 manifests, 3 files)
          error file-missing: /data/t/data/00000.parquet: expected a file, found nothing

        """
        return checked(self._state, level, max_findings)
