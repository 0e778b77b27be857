"""Metadata tables as DataFrames, read by executors: a task a group of manifests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from icefield._core import Inspect, Storage, TableState
from icefield.expressions import from_json, parse
from icefield.moments import milliseconds_of
from icefield.scan import fields_of
from icefield.spark.failures import sentence
from icefield.spark.opening import Moment, moment_of, opened
from icefield.spark.types import arrow_schema, spark_schema
from icefield.spark.workers import drivers_python

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as st

    from icefield.table import Table

__all__ = ["InspectTask", "inspect_tasks", "read_inspect"]

#: Manifests that one task reads; a Python task costs Spark more than decoding one.
_MANIFESTS_A_TASK = 8


@dataclass(frozen=True)
class InspectTask:
    """Some of the rows of a metadata table, and all that an executor must know to read them."""

    metadata_location: str
    storage: Storage
    name: str
    row_filter: str | None
    moment: Moment
    part: tuple[int, int]

    def rows(self, schema: st.StructType) -> Iterator[pa.RecordBatch]:
        """Read the rows, in the exact Arrow types that Spark takes for a schema."""
        import pyarrow as pa

        # As for rows of tables: Spark runs a worker a core.
        os.environ.setdefault("ICEFIELD_THREADS", "1")
        inspect = Inspect(TableState.load(self.storage, self.metadata_location))
        wanted = arrow_schema(schema)
        own = inspect.schema(self.name, selected_fields=wanted.names)
        stream = inspect.stream(
            self.name,
            row_filter=None if self.row_filter is None else from_json(self.row_filter, inspect.schema(self.name)),
            selected_fields=wanted.names,
            part=self.part,
            schema=pa.schema([wanted.field(field.name) for field in own.fields]),
            **_arguments(self.moment),
        )
        for batch in stream.to_pyarrow():
            yield batch if batch.schema.names == wanted.names else batch.select(wanted.names)


def inspect_tasks(table: Table, name: str, row_filter: str | None, moment: Moment) -> list[InspectTask]:
    """Cut a metadata table into tasks.

    Parameters
    ----------
    table
        The table; tasks are about it as it is now.
    name
        Name of the metadata table.
    row_filter
        Rows to read, as REST expression JSON.
    moment
        The snapshot, where the metadata table is about one.

    """
    most = Inspect(table._state).most_parts(name, **_arguments(moment))  # noqa: SLF001
    count = -(-most // _MANIFESTS_A_TASK)
    location, storage = table.metadata_location, table.storage
    return [InspectTask(location, storage, name, row_filter, moment, (number, count)) for number in range(count)]


def _arguments(moment: Moment) -> dict[str, Any]:
    return {
        "snapshot_id": moment.get("snapshot_id"),
        "as_of_ms": milliseconds_of(moment.get("as_of")),
        "reference": moment.get("ref"),
    }


def read_inspect(
    spark: SparkSession,
    table: Table | str,
    name: str,
    *,
    filter: Any = None,
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
        A table, or ``"namespace.name"`` in ``catalog``. What it is now is what the DataFrame tells of.
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
    open_table = opened(table, catalog, properties)
    inspect = Inspect(open_table._state)  # noqa: SLF001
    names = ("*",) if columns is None else fields_of(columns)
    whole = inspect.schema(name)
    schema = spark_schema(inspect.schema(name, selected_fields=names))
    row_filter = None
    if filter is not None:
        expression = parse(filter) if isinstance(filter, str) else filter
        row_filter = expression.bind(whole).to_json()
    tasks = inspect_tasks(open_table, name, row_filter, moment_of(spark, as_of))

    @sentence
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from tasks[place].rows(schema)

    with drivers_python():
        return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(rows, schema)
