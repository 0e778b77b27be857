"""Changes of files by their descriptions: what engines are built on, of a table or in a transaction."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Literal, overload

from icefield._inputs.arguments import summary_entries
from icefield._outputs.progress import changing
from icefield.errors import ArgumentTypeError, InvalidArgumentError
from icefield.table.update.outcomes import NOTHING_CHANGED, RowsChanged
from icefield.table.update.target import OWN_BRANCH, ChangesData

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield.table.update import (
        OverwriteFiles,
        ReplacePartitions,
        RewriteFiles,
        RewriteManifests,
        RowDelta,
        UpdateSnapshot,
    )

__all__ = ["ChangesFiles"]


class ChangesFiles(ChangesData):
    """Changes of files, the same for `icefield.Table` and for its transactions.

    Each is made by `Change.commit` or at the end of the ``with`` block. ``snapshot_properties`` are entries of the
    snapshot's summary; ``stage_only`` adds the snapshot without moving the branch; ``idempotency_key`` makes the change
    once, as in `icefield.Table.append`.
    """

    @abstractmethod
    def update_snapshot(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        stage_only: bool = False,
        idempotency_key: str | None = None,
    ) -> UpdateSnapshot:
        """Change the files of the table by their descriptions."""

    def overwrite_files(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        stage_only: bool = False,
        idempotency_key: str | None = None,
    ) -> OverwriteFiles:
        """Replace data files by others (copy-on-write)."""
        return self.update_snapshot(
            snapshot_properties, branch, stage_only=stage_only, idempotency_key=idempotency_key
        ).overwrite()

    def row_delta(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        stage_only: bool = False,
        idempotency_key: str | None = None,
    ) -> RowDelta:
        """Add delete files, and data files beside them (merge-on-read)."""
        return self.update_snapshot(
            snapshot_properties, branch, stage_only=stage_only, idempotency_key=idempotency_key
        ).row_delta()

    def rewrite_files(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        stage_only: bool = False,
        idempotency_key: str | None = None,
    ) -> RewriteFiles:
        """Replace files by others with the same rows (compaction)."""
        return self.update_snapshot(
            snapshot_properties, branch, stage_only=stage_only, idempotency_key=idempotency_key
        ).rewrite_files()

    def replace_partitions(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        stage_only: bool = False,
        idempotency_key: str | None = None,
    ) -> ReplacePartitions:
        """Replace whole partitions by data files."""
        return self.update_snapshot(
            snapshot_properties, branch, stage_only=stage_only, idempotency_key=idempotency_key
        ).replace_partitions()

    def rewrite_manifests(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = OWN_BRANCH,
        *,
        stage_only: bool = False,
        idempotency_key: str | None = None,
    ) -> RewriteManifests:
        """Write manifests of data files again, so that a filter reads few of them.

        The new manifests have the entries of the old ones, grouped by `RewriteManifests.cluster_by`.

        Examples
        --------
        >>> table.rewrite_manifests().cluster_by("month").commit()  # doctest: +SKIP

        """
        return self.update_snapshot(
            snapshot_properties, branch, stage_only=stage_only, idempotency_key=idempotency_key
        ).rewrite_manifests()

    @overload
    def add_files(
        self,
        file_paths: Iterable[str],
        snapshot_properties: Mapping[str, str] | None = None,
        check_duplicate_files: bool = True,
        branch: str = OWN_BRANCH,
        *,
        partitions: Mapping[str, Mapping[str, object]] | None = None,
        validate: Literal["footer", "data"] = "footer",
        idempotency_key: str | None = None,
        dry_run: Literal[False] = False,
        progress: bool = False,
    ) -> Self: ...
    @overload
    def add_files(
        self,
        file_paths: Iterable[str],
        snapshot_properties: Mapping[str, str] | None = None,
        check_duplicate_files: bool = True,
        branch: str = OWN_BRANCH,
        *,
        partitions: Mapping[str, Mapping[str, object]] | None = None,
        validate: Literal["footer", "data"] = "footer",
        idempotency_key: str | None = None,
        dry_run: Literal[True],
        progress: bool = False,
    ) -> RowsChanged: ...
    def add_files(
        self,
        file_paths: Iterable[str],
        snapshot_properties: Mapping[str, str] | None = None,
        check_duplicate_files: bool = True,
        branch: str = OWN_BRANCH,
        *,
        partitions: Mapping[str, Mapping[str, object]] | None = None,
        validate: Literal["footer", "data"] = "footer",
        idempotency_key: str | None = None,
        dry_run: bool = False,
        progress: bool = False,
    ) -> Self | RowsChanged:
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
        idempotency_key
            As in `append`.
        dry_run
            Only look at the files, and return what would be done, as `RowsChanged`.
        progress
            As in `append`.

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
        if isinstance(file_paths, str):
            raise ArgumentTypeError(f"expected a list of paths, got {file_paths!r}")
        if validate not in {"footer", "data"}:
            raise InvalidArgumentError(f"validate must be 'footer' or 'data', got {validate!r}")
        branch = self._on(branch)
        if self._made_before(branch, idempotency_key):
            return NOTHING_CHANGED if dry_run else self
        with changing(progress) as traffic, self._changing() as changes:
            changes.count(traffic)
            counts = changes.add_files(
                list(file_paths),
                branch=branch,
                snapshot_properties=summary_entries(snapshot_properties, idempotency_key),
                check_duplicates=check_duplicate_files,
                partitions=partitions or {},
                read_rows=validate == "data",
                dry_run=dry_run,
            )
        return RowsChanged(*counts) if dry_run else self
