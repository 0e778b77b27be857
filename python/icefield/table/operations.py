"""Changes of files by their descriptions: what engines are built on, of a table or in a transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield.table.update import (
        OverwriteFiles,
        ReplacePartitions,
        RewriteFiles,
        RewriteManifests,
        RowDelta,
        UpdateSnapshot,
    )

__all__ = ["ChangesFiles"]


class ChangesFiles(ABC):
    """Changes of files, the same for `icefield.Table` and for its transactions.

    Each is made by `Change.commit` or at the end of the ``with`` block. ``snapshot_properties`` are entries of the
    snapshot's summary; ``stage_only`` adds the snapshot without moving the branch; ``idempotency_key`` makes the change
    once, as in `icefield.Table.append`.
    """

    @abstractmethod
    def update_snapshot(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
        *,
        stage_only: bool = False,
        idempotency_key: str | None = None,
    ) -> UpdateSnapshot:
        """Change the files of the table by their descriptions."""

    def overwrite_files(
        self,
        snapshot_properties: Mapping[str, str] | None = None,
        branch: str = "main",
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
        branch: str = "main",
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
        branch: str = "main",
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
        branch: str = "main",
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
        branch: str = "main",
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
