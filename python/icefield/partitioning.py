"""Partition specs: how the files of a table are partitioned ("Partitioning").

A spec names columns by their ids, so it outlives their renaming::

    >>> import icefield as ice
    >>> spec = ice.PartitionSpec(ice.PartitionField(1, 1000, "bucket[16]", "id_bucket"))
    >>> print(spec)
    [
      1000: id_bucket: bucket[16](1)
    ]
"""

from __future__ import annotations

from icefield._core import PartitionField, PartitionSpec

__all__ = ["UNPARTITIONED_PARTITION_SPEC", "PartitionField", "PartitionSpec"]

UNPARTITIONED_PARTITION_SPEC = PartitionSpec()
"""The spec of tables without partitions."""
