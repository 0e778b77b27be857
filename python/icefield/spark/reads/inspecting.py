"""Metadata tables as DataFrames, read by executors: a task a group of manifests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from icefield.distributed import InspectTask, Storage
from icefield.spark.columns.types import arrow_schema, spark_schema
from icefield.spark.sessions.failures import sentence
from icefield.spark.sessions.packed import PackedTasks
from icefield.spark.sessions.workers import begin_task, drivers_python
from icefield.spark.tables.opening import keywords_of, moment_of, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as st

    from icefield.expressions import RowFilter
    from icefield.scan.moments import Moment
    from icefield.table import Table

__all__ = ["inspect_rows", "inspect_tasks", "read_inspect"]

#: Manifests that one task reads; a Python task costs Spark more than decoding one.
_MANIFESTS_A_TASK = 8


def inspect_tasks(
    table: Table, name: str, row_filter: RowFilter | None, selected_fields: Iterable[str] | str, moment: Moment
) -> list[InspectTask]:
    """Cut a metadata table into tasks."""
    return table.inspect.tasks(
        name, manifests=_MANIFESTS_A_TASK, row_filter=row_filter, selected_fields=selected_fields, **moment
    )


def inspect_rows(task: InspectTask, storage: Storage, schema: st.StructType) -> Iterator[pa.RecordBatch]:
    """Read a task in an executor, in the exact Arrow types that Spark takes for a schema."""
    # As for rows of tables: Spark runs one worker per core.
    begin_task()
    wanted = arrow_schema(schema)
    # The task has the table's order of columns, Spark asks for its own.
    ordered = pa.schema([wanted.field(name) for name in task.column_names])
    for batch in task.rows(storage, schema=ordered).to_pyarrow():
        yield batch if ordered.names == wanted.names else batch.select(wanted.names)


def read_inspect(
    spark: SparkSession,
    table: Table | str,
    name: str,
    *,
    filter: RowFilter | None = None,
    columns: Iterable[str] | str | None = None,
    as_of: int | str | datetime | None = None,
    catalog: str | None = None,
    **properties: str,
) -> DataFrame:
    """Read a metadata table as a DataFrame; manifests are decoded by the executors.

    Parameters
    ----------
    spark
        The session.
    table
        A table, or ``"namespace.name"`` in ``catalog``. The DataFrame describes its current state.
    name
        Name of the metadata table: one of `icefield.inspect.InspectTable.names`, for example ``"files"``.
    filter
        Rows to read, as text (``"content = 0 AND record_count > 1000"``) or as an expression.
    columns
        Columns to read, all by default; metrics are decoded only for those that need them.
    as_of
        Id of a snapshot, a moment (without a zone: in ``spark.sql.session.timeZone``), or the name of a branch or
        tag; for the metadata tables that are about one snapshot.
    catalog, **properties
        The catalog of a name, as `icefield.load_catalog` takes it.

    Raises
    ------
    InvalidArgumentError
        If there is no such metadata table, column or snapshot.

    """
    open_table = opened(table, catalog, properties, keywords_of(read_inspect))
    storage = open_table.storage
    names = ("*",) if columns is None else columns
    schema = spark_schema(open_table.inspect.schema(name, names))
    packed = PackedTasks(inspect_tasks(open_table, name, filter, names, moment_of(spark, as_of)))

    @sentence
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from inspect_rows(packed[place], storage, schema)

    with drivers_python():
        return spark.range(0, len(packed), 1, len(packed)).mapInArrow(rows, schema)
