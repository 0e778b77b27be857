"""What the tasks of a read give Spark, and what a session needs for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")


def test_no_jar_is_needed(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    """A session as it is installed reads tables by every way: no jar has to fit other versions."""
    context = spark.sparkContext
    assert context.getConf().get("spark.jars", "") == context.getConf().get("spark.jars.packages", "") == ""
    assert not [name for name, _ in context.getConf().getAll() if name.startswith("spark.sql.catalog.")]
    table = catalog.create_table("db.j", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1, 2]}))
    for native in (True, False):
        assert ice_spark.read(spark, table, native=native).count() == 2
    assert spark.read.format("icefield").options(**options).load("db.j").count() == 2


def test_tasks_give_batches_of_some_bytes(catalog: ice.Catalog) -> None:
    """Wide rows come in batches that Spark's buffers can take, and no row as a tuple of Python."""
    from icefield.spark.reading import _BATCH, task_rows
    from icefield.spark.types import spark_schema

    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    table = catalog.create_table("db.w", schema)
    texts = [chr(97 + n % 26) * 1_000_000 for n in range(100)]
    table.append(pa.table({"id": range(100), "s": texts}))
    scan = table.scan()
    batches = [
        batch for task in scan.tasks() for batch in task_rows(task, scan.storage, spark_schema(scan.projection()))
    ]
    assert len(batches) > 3
    assert all(isinstance(batch, pa.RecordBatch) and batch.nbytes <= _BATCH + 1_000_000 for batch in batches)
    assert pa.Table.from_batches(batches).to_pydict() == {"id": list(range(100)), "s": texts}
    # A row that is larger than a batch is one.
    huge = catalog.create_table("db.h", schema).append(pa.table({"id": [1, 2], "s": ["x" * (_BATCH + 1), "y"]}))
    scan = huge.scan()
    found = [
        batch.num_rows
        for task in scan.tasks()
        for batch in task_rows(task, scan.storage, spark_schema(scan.projection()))
    ]
    assert found == [1, 1]
    empty = catalog.create_table("db.n", schema)
    assert empty.scan().tasks() == []
