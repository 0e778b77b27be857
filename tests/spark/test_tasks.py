"""What the tasks of a read give Spark, and what a session needs for it."""

from __future__ import annotations

import contextlib
import pickle
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle

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
    from icefield.spark.columns.types import spark_schema
    from icefield.spark.reads.reading import _BATCH, task_rows

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


class Frames:
    """What a read of tasks asks of a session: the function that executors unpickle."""

    def range(self, *_: int) -> Frames:
        return self

    def where(self, _: str) -> Frames:
        return self

    selectExpr = where  # noqa: N815

    def mapInArrow(self, function: Any, _: object) -> bytes:  # noqa: N802
        pickled: bytes = cloudpickle.dumps(function)
        return pickled


@pytest.mark.parametrize("what", ["rows", "files"])
@pytest.mark.parametrize("count", [2, 40])
def test_a_spark_task_makes_its_own_task_and_no_other(
    catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch, what: str, count: int
) -> None:
    """The function goes to each of the Spark tasks: what it makes must not grow with their number."""
    from icefield import distributed
    from icefield.spark.columns.types import spark_schema
    from icefield.spark.reads import inspecting, reading

    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    for number in range(4):
        table.append(pa.table({"id": [number]}))
    made: list[object] = []

    def counted(*args: Any) -> Any:
        made.append(args)
        return distributed_read_task(*args)

    def restored(task: object, state: list[object]) -> None:
        made.append(task)
        restore(task, state)

    distributed_read_task, restore = distributed.ReadTask, distributed.InspectTask.__setstate__
    monkeypatch.setattr(distributed.InspectTask, "__setstate__", restored)
    for module in (reading, inspecting):
        monkeypatch.setattr(module, "drivers_python", contextlib.nullcontext)
    frames: Any = Frames()
    if what == "rows":
        scan = table.scan()
        tasks = (scan.tasks(split_size=1, open_file_cost=1) * count)[:count]
        assert len(tasks) == count
        pickled = reading.decoded(frames, tasks, scan.storage, spark_schema(scan.projection()))
        monkeypatch.setattr(distributed, "ReadTask", counted)
    else:
        tasks_of = inspecting.inspect_tasks
        monkeypatch.setattr(inspecting, "inspect_tasks", lambda *args: (tasks_of(*args) * count)[:count])
        pickled = inspecting.read_inspect(frames, table, "files")
    function = pickle.loads(pickled)
    assert made == []
    rows = list(function([pa.RecordBatch.from_pydict({"id": [count - 1]})]))
    assert len(made) == 1
    assert sum(batch.num_rows for batch in rows) == (1 if what == "rows" else 4)


def test_spark_knows_how_large_a_table_is(spark: SparkSession, catalog: ice.Catalog) -> None:
    """It took tables for the numbers of their tasks, and would have broadcast any of them in a join."""
    from icefield.spark.sessions.session import estimated_bytes

    texts = pa.array([random.randbytes(20).hex() for _ in range(50_000)])
    table = catalog.create_table("db.large", pa.schema([("id", pa.int64()), ("s", pa.string())]))
    for _ in range(2):
        table.append(pa.table({"id": range(50_000), "s": texts}))
    size = sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
    frame = ice_spark.read(spark, table, native=False)
    assert size > 1 << 20
    assert (estimated_bytes(frame) or 0) > 0.99 * size
    assert (frame.count(), frame.select("id").distinct().count()) == (100_000, 50_000)
    small = catalog.create_table("db.small", pa.schema([("id", pa.int64())])).append(pa.table({"id": [1]}))
    assert (estimated_bytes(ice_spark.read(spark, small, native=False)) or 0) < 100_000
