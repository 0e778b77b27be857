"""How the statistics files that metadata list for snapshots change ("Table Statistics", "Partition Statistics")."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from icefield.errors import ArgumentTypeError, InvalidArgumentError
from icefield.metadata import PartitionStatisticsFile, StatisticsFile
from icefield.table.update.change import MetadataChange, Staging

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["UpdateStatistics"]


class UpdateStatistics(MetadataChange):
    """Statistics files to add for snapshots, or to remove.

    The files themselves are neither read nor deleted: `icefield.table.maintenance.Maintenance.compute_table_stats`
    writes them.
    """

    def __init__(self, transaction: Staging, *, standalone: bool = False) -> None:
        super().__init__(transaction, standalone=standalone)
        self._updates: list[str] = []

    def set_statistics(self, statistics_file: StatisticsFile) -> Self:
        """Set the statistics file of its snapshot, in place of the one that the snapshot has.

        Raises
        ------
        InvalidArgumentError
            If the table does not have the snapshot.

        """
        if not isinstance(statistics_file, StatisticsFile):
            raise ArgumentTypeError(f"expected a StatisticsFile, got {statistics_file!r}")
        self._check_snapshot(statistics_file.snapshot_id)
        return self._add(action="set-statistics", statistics=statistics_file.to_dict())

    def remove_statistics(self, snapshot_id: int) -> Self:
        """Remove the statistics file of a snapshot from the metadata.

        Raises
        ------
        InvalidArgumentError
            If the snapshot has none.

        """
        if all(file.snapshot_id != snapshot_id for file in self._base.statistics):
            raise InvalidArgumentError(f"snapshot {snapshot_id} has no statistics file")
        return self._add(action="remove-statistics", **{"snapshot-id": snapshot_id})

    def set_partition_statistics(self, partition_statistics_file: PartitionStatisticsFile) -> Self:
        """Set the partition statistics file of its snapshot, in place of the one that the snapshot has.

        Raises
        ------
        InvalidArgumentError
            If the table does not have the snapshot.

        """
        if not isinstance(partition_statistics_file, PartitionStatisticsFile):
            raise ArgumentTypeError(f"expected a PartitionStatisticsFile, got {partition_statistics_file!r}")
        self._check_snapshot(partition_statistics_file.snapshot_id)
        file = partition_statistics_file.to_dict()
        return self._add(action="set-partition-statistics", **{"partition-statistics": file})

    def remove_partition_statistics(self, snapshot_id: int) -> Self:
        """Remove the partition statistics file of a snapshot from the metadata.

        Raises
        ------
        InvalidArgumentError
            If the snapshot has none.

        """
        if all(file.snapshot_id != snapshot_id for file in self._base.partition_statistics):
            raise InvalidArgumentError(f"snapshot {snapshot_id} has no partition statistics file")
        return self._add(action="remove-partition-statistics", **{"snapshot-id": snapshot_id})

    def updates(self) -> list[str]:
        """Return the updates of the REST protocol, as JSON."""
        return self._updates

    def _check_snapshot(self, snapshot_id: int) -> None:
        if self._base.snapshot_by_id(snapshot_id) is None:
            raise InvalidArgumentError(f"there is no snapshot {snapshot_id}")

    def _add(self, **update: object) -> Self:
        self._updates.append(json.dumps(update))
        return self
