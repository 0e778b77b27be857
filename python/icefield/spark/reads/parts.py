"""Partitions of the data source, and checks that a table has not changed since Spark got its columns."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition

from icefield.errors import TableReplacedError, ValidationError
from icefield.spark.columns.types import FIELD_ID
from icefield.spark.reads.inspecting import inspect_rows
from icefield.spark.reads.reading import task_rows

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import types as st

    from icefield.distributed import InspectTask, ReadTask, Storage
    from icefield.scan import TableScan
    from icefield.table import Table

__all__ = ["InspectPart", "Part", "parts", "require_columns", "require_same"]


def require_same(table: Table, table_uuid: str | None) -> None:
    """Refuse a table that has taken the place of the one that Spark has the columns of."""
    if table_uuid is not None and str(table.table_uuid) != table_uuid:
        raise TableReplacedError(
            f"the table was replaced: it was loaded with uuid {table_uuid}, but the catalog now has a table with uuid "
            f"{table.table_uuid} in its place; load it again"
        )


def require_columns(asked: st.StructType, current: st.StructType) -> None:
    """Refuse columns that are no longer what they were when Spark was given them; a user's own have no ids."""
    for column in asked.fields:
        field_id = column.metadata.get(FIELD_ID)
        if field_id is None:
            continue
        now = next((other for other in current.fields if other.name == column.name), None)
        if now is None:
            change = "is gone"
        elif now.metadata[FIELD_ID] != field_id:
            change = "became another column"
        elif now.dataType.simpleString() != column.dataType.simpleString():
            change = f"became {now.dataType.simpleString()}, from {column.dataType.simpleString()},"
        elif now.nullable and not column.nullable:
            change = "became optional"
        else:
            continue
        raise ValidationError(f"column {column.name} {change} after the table was loaded: load it again")


@dataclass(frozen=True)
class Part(InputPartition):
    """One task: pieces of data files, and the storage that they lie in."""

    task: ReadTask
    storage: Storage
    memory_limit: int | None = None

    def rows(self, schema: st.StructType) -> Iterator[pa.RecordBatch]:
        """Read the task."""
        yield from task_rows(self.task, self.storage, schema, self.memory_limit)


def parts(scan: TableScan, split: Mapping[str, int], memory_limit: int | None = None) -> list[Part]:
    """Return the tasks of a scan, split as the options say.

    Spark plans in a process that knows nothing of the session: the processors here stand for the tasks at a time.
    """
    tasks = scan.tasks(**split, parallelism=os.cpu_count())
    return [Part(task, scan.storage, memory_limit) for task in tasks]


@dataclass(frozen=True)
class InspectPart(InputPartition):
    """One task: some of the rows of a metadata table."""

    task: InspectTask
    storage: Storage

    def rows(self, schema: st.StructType) -> Iterator[pa.RecordBatch]:
        """Read the task."""
        yield from inspect_rows(self.task, self.storage, schema)
