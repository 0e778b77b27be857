"""How the statistics files that metadata list for snapshots change ("Table Statistics", "Partition Statistics")."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from icefield.errors import ArgumentTypeError, InvalidArgumentError
from icefield.metadata import PartitionStatisticsFile, StatisticsFile
from icefield.table.update.change import MetadataChange, Staging

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["UpdateStatistics"]

File = TypeVar("File", StatisticsFile, PartitionStatisticsFile)


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
        return self._set("statistics", StatisticsFile, statistics_file)

    def remove_statistics(self, snapshot_id: int) -> Self:
        """Remove the statistics file of a snapshot from the metadata.

        Raises
        ------
        InvalidArgumentError
            If the snapshot has none.

        """
        return self._remove("statistics", self._base.statistics, snapshot_id)

    def set_partition_statistics(self, partition_statistics_file: PartitionStatisticsFile) -> Self:
        """Set the partition statistics file of its snapshot, in place of the one that the snapshot has.

        Raises
        ------
        InvalidArgumentError
            If the table does not have the snapshot.

        """
        return self._set("partition-statistics", PartitionStatisticsFile, partition_statistics_file)

    def remove_partition_statistics(self, snapshot_id: int) -> Self:
        """Remove the partition statistics file of a snapshot from the metadata.

        Raises
        ------
        InvalidArgumentError
            If the snapshot has none.

        """
        return self._remove("partition-statistics", self._base.partition_statistics, snapshot_id)

    def updates(self) -> list[str]:
        """Return the updates of the REST protocol, as JSON."""
        return self._updates

    def _set(self, name: str, kind: type[File], file: File) -> Self:
        if not isinstance(file, kind):
            raise ArgumentTypeError(f"expected a {kind.__name__}, got {file!r}")
        if self._base.snapshot_by_id(file.snapshot_id) is None:
            raise InvalidArgumentError(f"there is no snapshot {file.snapshot_id}")
        self._updates.append(json.dumps({"action": f"set-{name}", name: file.to_dict()}))
        return self

    def _remove(self, name: str, files: Iterable[StatisticsFile | PartitionStatisticsFile], snapshot_id: int) -> Self:
        if all(file.snapshot_id != snapshot_id for file in files):
            raise InvalidArgumentError(f"snapshot {snapshot_id} has no {name.replace('-', ' ')} file")
        self._updates.append(json.dumps({"action": f"remove-{name}", "snapshot-id": snapshot_id}))
        return self
