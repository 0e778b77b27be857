"""Streams into a table: each batch once, whatever is run again.

A query of Spark takes seconds to start, so what depends on the writer alone is asked of the writer, as Spark asks it.
"""

from __future__ import annotations

import datetime as dt
import pickle
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("icefield.spark")

from pyspark.sql import Row

import icefield.spark as ice_spark
from icefield.spark.sinks import stream
from icefield.spark.sinks.epochs import epoch
from icefield.spark.source import Source
from icefield.spark.tables import opening
from icefield.spark.tables.opening import SourceOptions

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])


@pytest.fixture
def table(catalog: ice.Catalog) -> ice.Table:
    return catalog.create_table("db.t", SCHEMA, partition_by="bucket(2, id)", properties={"write.wap.enabled": "true"})


def rows(*ids: int) -> pa.RecordBatch:
    return pa.record_batch({"id": pa.array(ids, pa.int64()), "s": [f"s{n}" for n in ids]}, schema=SCHEMA)


def ids(table: ice.Table, branch: str = "main") -> list[int]:
    found: list[int] = table.refresh().scan(ref=branch).to_arrow()["id"].to_pylist()
    return sorted(found)


def left_over(table: ice.Table) -> set[str]:
    """Give the data files that no snapshot has."""
    known = set(table.refresh().inspect.all_files()["file_path"].to_pylist()) if table.snapshots() else set()
    return {path for path, _ in table.storage.list(f"{table.location()}/data")} - known


class Query:
    """A streaming query as the processes of Spark see it: one plans and is pickled for the tasks, another commits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], query_id: str, **more: str) -> None:
        given = {name.replace("_", "-"): value for name, value in more.items()}
        self.options = {**options, "path": "db.t", "checkpointlocation": "c", **given}
        self.query_id = query_id
        self.monkeypatch = monkeypatch
        self.session: dict[str, str] = {}
        self.complete = False

    def writer(self) -> stream.StreamWriter:
        schema = ice_spark.spark_schema(ice.Schema.from_arrow(SCHEMA))
        return Source(self.options).streamWriter(schema, overwrite=self.complete)

    def tasks(self, *batches: pa.RecordBatch | None) -> list[Any]:
        """Run the tasks; a task without rows has an empty result, one that is killed none."""
        sent, results = pickle.dumps(self.writer()), []
        assert self.options["uri"].encode() not in sent
        for number, batch in enumerate(batches):
            properties = {"sql.streaming.queryId": self.query_id, **self.session}
            context = SimpleNamespace(
                getLocalProperty=properties.get,
                partitionId=lambda number=number: number,
                taskAttemptId=lambda number=number: number,
                attemptNumber=lambda: 0,
            )
            for module in ("sinks.stream", "writes.writing", "sessions.audit"):
                self.monkeypatch.setattr(f"icefield.spark.{module}.TaskContext.get", lambda context=context: context)
            given: list[Any] = [] if batch is None else [batch]
            if stream.STREAM_WRITER is stream.StreamRowWriter:
                given = [Row(**one) for batch in given for one in batch.to_pylist()]
            results.append(pickle.loads(pickle.dumps(pickle.loads(sent).write(iter(given)))))
        return results

    def run(self, number: int, *batches: pa.RecordBatch | None) -> None:
        self.writer().commit(self.tasks(*batches), number)


def test_a_catalog_is_opened_once_for_many_batches(
    options: dict[str, str], table: ice.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, now = [], [1000.0]
    load = opening.load_catalog

    def counted(*args: Any, **properties: str) -> ice.Catalog:
        catalog = load(*args, **properties)
        opened.append(catalog)
        return catalog

    def refuse(name: object) -> None:
        raise ice.errors.UnauthorizedError("the login has expired")

    monkeypatch.setattr(opening, "load_catalog", counted)
    monkeypatch.setattr(opening, "monotonic", lambda: now[0])
    monkeypatch.setattr(opening, "_KEPT", {})
    query = Query(monkeypatch, options, "q")
    for number, expected in enumerate((1, 1, 2, 3, 4)):
        query.run(number, rows(number))
        assert len(opened) == expected
        if number == 1:
            now[0] += 301
        elif number == 2:
            monkeypatch.setattr(opened[-1], "load_table", refuse)
        elif number == 3:
            query.options["warehouse"] += "/"
    assert ids(table) == [0, 1, 2, 3, 4]


def test_batches_are_written_once(options: dict[str, str], table: ice.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two queries with batches of the same numbers; each runs its last batch again, with other rows even."""
    one, two = (Query(monkeypatch, options, name, snapshot_property_x="y") for name in ("q1", "q2"))
    one.options["snapshot-property.made-by"] = one.options.pop("snapshot-property-x")
    one.run(0, rows(1, 2), None, rows(3))
    two.options.pop("snapshot-property-x")
    two.run(0, rows(10))
    one.run(0, rows(1, 2), rows(3, 99))
    assert ids(table) == [1, 2, 3, 10]
    one.run(1, rows(4))
    two.run(0, rows(10))
    one.run(1, rows(4))
    one.run(0, rows(5))  # as in Java, an earlier batch than the last one was written too
    assert ids(table) == [1, 2, 3, 4, 10]
    assert left_over(table) == set()
    summaries = [snapshot.summary for snapshot in table.snapshots()]
    names = ("spark.sql.streaming.queryId", "spark.sql.streaming.epochId")
    assert [tuple(summary[name] for name in names) for summary in summaries] == [("q1", "0"), ("q2", "0"), ("q1", "1")]
    assert summaries[0]["made-by"] == "y"


def test_a_commit_that_took_effect_and_raised(
    options: dict[str, str], table: ice.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark aborts then, and runs the batch again when the query is started again."""
    query = Query(monkeypatch, options, "q")
    results = query.tasks(rows(1), rows(2))
    writer = query.writer()
    writer.commit(results, 0)
    query.writer().abort(results, 0)
    assert ids(table) == [1, 2]
    writer.commit(results, 0)  # the same files
    assert ids(table) == [1, 2]
    query.run(0, rows(1), rows(2))
    assert ids(table) == [1, 2]
    assert left_over(table) == set()


def test_a_batch_that_java_wrote(options: dict[str, str], table: ice.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query keeps its checkpoint, and with it its id, where the format of its sink changes."""
    names = epoch("q", 7)["snapshot_properties"]
    table.append(rows(1), snapshot_properties=names)
    query = Query(monkeypatch, options, "q")
    query.run(7, rows(1))
    query.run(8, rows(2))
    assert ids(table) == [1, 2]
    assert left_over(table) == set()


def test_a_race_is_decided_by_the_commit(
    options: dict[str, str], table: ice.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that was thought dead commits the batch, after this one has looked for it."""
    query = Query(monkeypatch, options, "q")
    results = query.tasks(rows(1))
    looked_for = stream.last_epoch

    def late(*arguments: Any) -> Any:
        found = looked_for(*arguments)
        monkeypatch.setattr(stream, "last_epoch", looked_for)
        query.run(0, rows(1))
        return found

    monkeypatch.setattr(stream, "last_epoch", late)
    query.writer().commit(results, 0)
    assert ids(table) == [1]
    assert left_over(table) == set()


def test_a_batch_that_fails(options: dict[str, str], table: ice.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query(monkeypatch, options, "q")
    results = query.tasks(rows(1), rows(2))
    assert len(left_over(table)) == 2
    query.writer().abort([results[0], None], 0)
    assert left_over(table) == set()
    query.writer().abort([], 0)
    query.writer().abort([None], 0)
    assert table.refresh().current_snapshot() is None


def test_branches_and_audits(options: dict[str, str], table: ice.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query(monkeypatch, options, "q", branch="b")
    for _ in range(2):
        query.run(0, rows(1))
    assert ids(table, "b") == [1]
    assert table.current_snapshot() is None
    of_session = Query(monkeypatch, options, "q")
    of_session.session = {"spark.wap.branch": "audit"}
    for _ in range(2):
        of_session.run(0, rows(2))
    assert ids(table, "audit") == [2]
    of_session.session = {"spark.wap.id": "i"}
    with pytest.raises(ice.errors.IcefieldError, match=r"spark\.wap\.id stages snapshots that no branch has"):
        of_session.run(1, rows(3))
    assert left_over(table) == set()


def test_complete_mode_replaces_all_rows(
    options: dict[str, str], table: ice.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(rows(99))
    query = Query(monkeypatch, options, "q")
    query.complete = True
    query.run(0, rows(1, 2), rows(3))
    assert ids(table) == [1, 2, 3]
    query.run(1, rows(1, 4))
    for _ in range(2):
        query.run(1, rows(5))
        assert ids(table) == [1, 4]
    query.run(2, None)
    assert ids(table) == []
    assert left_over(table) == set()
    query.session = {"spark.wap.branch": "audit"}
    with pytest.raises(ice.errors.IcefieldError, match="pass it as the option branch=audit"):
        query.run(3, rows(1))
    results = query.tasks(rows(1), rows(2), None)
    assert [result.change is not None for result in results] == [True, False, False], "the plan is sent back once"
    with pytest.raises(ice.errors.InvalidArgumentError, match="no result of its first task"):
        query.writer().commit(results[1:], 3)
    query.writer().abort([None, *results[1:]], 3)
    assert left_over(table) == set()
    assert [snapshot.summary["operation"] for snapshot in table.snapshots()][1:] == ["overwrite", "overwrite", "delete"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"idempotency_key": "k"}, "option idempotency-key=k: the batches of a stream have keys of their own"),
        ({"overwrite_mode": "dynamic"}, "option overwrite-mode=dynamic: a stream appends rows, or replaces all"),
        ({"split_size": "1"}, "applies to reads, not to a write"),
        ({"colour": "red"}, "unknown option colour"),
    ],
)
def test_wrong_options(
    options: dict[str, str], table: ice.Table, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], message: str
) -> None:
    del table
    with pytest.raises(ice.errors.InvalidArgumentError, match=message):
        Query(monkeypatch, options, "q", **given).writer()


def test_rows_of_pyspark_4_0(spark: SparkSession, options: dict[str, str], catalog: ice.Catalog) -> None:
    """Rows as that version passes them, with what Python objects cannot hold refused."""
    from pyspark.sql import types as st

    assert spark is not None  # texts of types are parsed by the session
    document = "id BIGINT, b BINARY, d DATE, n TIMESTAMP_NTZ, m DECIMAL(9,2), "
    document += "l ARRAY<STRUCT<timestamp: STRING>>, k MAP<STRING,INT>"
    schema = st.StructType.fromDDL(document)
    table = catalog.create_table("db.t", ice_spark.schema_of(schema))
    moment = dt.datetime(2026, 3, 8, 2, 30)
    row = Row(
        id=1, b=bytearray(b"x"), d=dt.date(2026, 3, 8), n=moment, m=Decimal("1.50"), l=[Row(timestamp="z")], k={"a": 1}
    )
    none = Row(**dict.fromkeys(schema.names))
    given = SourceOptions.of({**options, "path": "db.t"})
    writer = stream.StreamRowWriter(given, table, schema)
    (batch,) = stream.batches_of(iter([row, none]), writer._schema)
    assert batch.to_pylist() == [
        {"id": 1, "b": b"x", "d": row.d, "n": moment, "m": row.m, "l": [{"timestamp": "z"}], "k": [("a", 1)]},
        dict.fromkeys(schema.names),
    ]
    for kind in ("TIMESTAMP", "ARRAY<TIMESTAMP>", "MAP<STRING, VARIANT>"):
        with pytest.raises(ice.errors.UnsupportedFeatureError, match=r"PySpark 4\.0 passes the rows of a stream"):
            stream.StreamRowWriter(given, table, st.StructType.fromDDL(f"t {kind}"))


class Stream:
    """A query of Spark from ``db.s`` to ``db.t``."""

    def __init__(self, spark: SparkSession, options: dict[str, str], folder: Path) -> None:
        self.spark, self.options, self.checkpoint = spark, options, folder / "checkpoint"

    def run(self, each: Any = None, mode: str = "append") -> None:
        source = self.spark.readStream.format("icefield").options(**self.options).load("db.s")
        writer = source.writeStream.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        if each is not None:
            writer = writer.foreachBatch(each)
        else:
            writer = writer.format("icefield").options(**self.options).option("path", "db.t").outputMode(mode)
        writer.start().awaitTermination()

    def forget_the_last_end(self) -> None:
        """Leave on disk what a driver has left that ended before it recorded the end of a batch."""
        last = max((self.checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        last.unlink()
        (last.parent / f".{last.name}.crc").unlink(missing_ok=True)


def test_a_query_that_is_started_again(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], table: ice.Table, tmp_path: Path
) -> None:
    """The batch that ran last runs again, by the format and by ``foreachBatch`` in turn; its rows are there once."""
    source = catalog.create_table("db.s", SCHEMA)
    source.append(rows(1, 2))
    query = Stream(spark, options, tmp_path)
    query.run()
    assert ids(table) == [1, 2]
    query.forget_the_last_end()
    query.run()
    assert ids(table) == [1, 2]
    assert left_over(table) == set()

    keys = []

    def keep(batch: Any, number: int) -> None:
        keys.append(ice_spark.once(batch, number)["idempotency_key"])
        ice_spark.append(batch, table, **ice_spark.once(batch, number))
        table.upsert(batch.toArrow(), "id", **ice_spark.once(batch, number, "again"))

    source.append(rows(3))
    query.run(keep)
    query.forget_the_last_end()
    query.run(keep)
    assert ids(table) == [1, 2, 3]
    first, second = (snapshot.summary for snapshot in table.snapshots()[:2])
    assert keys == [second["icefield.idempotency-key"]] * 2
    assert first["spark.sql.streaming.queryId"] == second["spark.sql.streaming.queryId"]
    assert (first["spark.sql.streaming.epochId"], second["spark.sql.streaming.epochId"]) == ("0", "1")
    with pytest.raises(ice.InvalidArgumentError, match="once: this is not the function of a foreachBatch"):
        ice_spark.once(spark.range(1), 0)
