"""Writes that fail leave the table as it was; tasks that are tried again leave one copy of their rows."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())])


def data_files(table: ice.Table) -> list[str]:
    return sorted(path for path, _ in table.storage.list(f"{table.location()}/data"))


def planned(table: ice.Table) -> list[str]:
    return sorted(file["file_path"] for file in table.scan().plan_files().files)


def test_partitions_come_together_and_files_are_named_for_their_task(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA, partition_by=["bucket(4, id)"])
    df = spark.range(0, 1000, 1, 8).selectExpr("id", "cast(id AS STRING) AS s")
    ice_spark.append(df, table, snapshot_properties={"made-by": "test"})
    files = table.scan().plan_files().files
    assert len(files) == 4, "one file a partition, although eight tasks made the rows"
    assert sum(file["record_count"] for file in files) == 1000
    for file in files:
        bucket = file["partition"]["id_bucket"]
        ids = pa.array(row.id for row in spark.read.parquet(file["file_path"]).select("id").collect())
        assert set(ice.transforms.bucket(4)(ids).to_pylist()) == {bucket}
    summary = table.current_snapshot().summary
    assert summary["made-by"] == "test"
    assert all(summary["icefield.write-id"] in file["file_path"] for file in files)

    ice_spark.append(df, table, distribution="none")
    assert len(table.scan().plan_files()) > 8


@pytest.mark.parametrize("way", ["append", "source"])
def test_a_failing_task_changes_nothing(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], way: str
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    table.append(pa.table({"id": [1], "s": ["x"]}, schema=SCHEMA))
    before, location = data_files(table), table.metadata_location
    folder = Path(table.location().removeprefix("file://"), "data")

    def fail_late(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            if batch.column(0)[0].as_py() >= 500:
                while len(list(folder.glob("*.parquet"))) < 2:  # that of before, and that of the other task
                    time.sleep(0.01)
                raise RuntimeError("this task fails")

    df = spark.range(0, 1000, 1, 2).selectExpr("id", "'y' AS s").mapInArrow(fail_late, "id BIGINT, s STRING")
    with pytest.raises(Exception, match="this task fails"):
        if way == "append":
            ice_spark.append(df, table)
        else:
            df.write.format("icefield").options(**options).mode("append").save("db.t")
    assert catalog.load_table("db.t").metadata_location == location
    assert data_files(table) == before


def test_a_failed_append_outlives_its_tasks(spark: SparkSession, catalog: ice.Catalog, tmp_path: Path) -> None:
    """Spark fails a job without waiting for its other tasks; what they still write would be left behind."""
    table = catalog.create_table("db.t", SCHEMA)
    marks = str(tmp_path)

    def fail_or_dawdle(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        if TaskContext.get().partitionId() == 0:
            while not Path(marks, "failed").exists():
                time.sleep(0.01)
            time.sleep(1)  # less than a task that Spark stops may go on
            Path(marks, "ended").touch()
            return
        if TaskContext.get().attemptNumber() == 1:
            Path(marks, "failed").touch()
        raise RuntimeError("this task fails")

    df = spark.range(0, 1000, 1, 2).selectExpr("id", "'y' AS s").mapInArrow(fail_or_dawdle, "id BIGINT, s STRING")
    with pytest.raises(Exception, match="this task fails"):
        ice_spark.append(df, table)
    assert Path(marks, "ended").exists()
    assert data_files(table) == []


@pytest.mark.parametrize("way", ["append", "source"])
def test_retried_tasks_write_once(
    spark: SparkSession,
    catalog: ice.Catalog,
    options: dict[str, str],
    way: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from icefield.distributed import FilesLeft, WritePlan

    table = catalog.create_table("db.t", SCHEMA)
    marks = str(tmp_path)
    discard_lost, searches = WritePlan.discard_lost, []

    def discarding(plan: WritePlan, storage: Any, committed: Any) -> FilesLeft:
        # What a worker leaves that is killed.
        (path, *_) = planned(table.refresh())
        left = re.sub(r"([^/]*-)(\d+)\.parquet$", r"\g<1>9999\2.parquet", path)
        storage.write(left, b"half of a file")
        assert left in data_files(table)
        searches.append(plan)
        return discard_lost(plan, storage, committed)

    monkeypatch.setattr(WritePlan, "discard_lost", discarding)

    def fail_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        mark = Path(marks) / f"tried-{TaskContext.get().partitionId()}"
        if not mark.exists():
            mark.touch()
            raise RuntimeError("the first attempt fails after its rows")

    df = spark.range(0, 100, 1, 2).selectExpr("id", "'y' AS s").mapInArrow(fail_first, "id BIGINT, s STRING")
    if way == "append":
        ice_spark.append(df, table)
    else:
        df.write.format("icefield").options(**options).mode("append").save("db.t")
    table.refresh()
    assert len(list(tmp_path.glob("tried-*"))) == 2
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(100))
    assert data_files(table) == planned(table), "failed attempts delete their files"
    if way == "append":
        assert len(searches) == 1
        ice_spark.append(spark.range(1).selectExpr("id", "'y' AS s"), table)
        assert len(searches) == 1, "where no attempt failed, the folder is not listed"


@pytest.mark.parametrize(
    ("ddl", "row", "message"),
    [
        ("id BIGINT, other STRING", (1, "x"), "column other: "),
        ("id STRING", ("1",), "column id: "),
        ("s STRING", ("1",), "column id: "),
    ],
)
def test_columns_that_do_not_fit_are_told_before_any_job(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], ddl: str, row: Any, message: str
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    df = spark.createDataFrame([row], ddl)
    with pytest.raises(ice.errors.ValidationError, match=message):
        ice_spark.append(df, table)
    with pytest.raises(Exception, match=rf"icefield\.errors\.ValidationError: {message}"):
        df.write.format("icefield").options(**options).mode("append").save("db.t")
    assert data_files(table) == []


def test_null_in_a_required_column(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    with pytest.raises(ice.errors.ValidationError, match=r"^column id: required, but row \d+ of task \d+ is null$"):
        ice_spark.append(spark.createDataFrame([(1, "x"), (None, "y")], "id BIGINT, s STRING"), table)
    assert data_files(table) == []
    assert table.current_snapshot() is None


def test_options_are_entries_of_the_summary(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    df = spark.createDataFrame([(1, "x")], "id BIGINT NOT NULL, s STRING")
    own = {"snapshot-property.made-by": "me", "branch": "audit"}
    df.write.format("icefield").options(**options, **own).mode("append").save("db.t")
    assert table.refresh().snapshot_by_name("audit").summary["made-by"] == "me"


def test_range_brings_neighbouring_partitions_together(spark: SparkSession, catalog: ice.Catalog) -> None:
    properties = {"write.distribution-mode": "range"}
    table = catalog.create_table("db.t", SCHEMA, partition_by=["truncate(100, id)"], properties=properties)
    df = spark.range(0, 1000, 1, 8).selectExpr("(id * 7919) % 1000 AS id", "'x' AS s")
    ice_spark.append(df, table)
    files = table.scan().plan_files().files
    assert len(files) == 10, "one file a partition, although eight tasks made the rows"
    tasks: dict[str, list[int]] = {}
    for file in files:
        task = file["file_path"].rpartition("/")[2].partition("-")[0]
        tasks.setdefault(task, []).append(file["partition"]["id_trunc"])
    for own in tasks.values():
        assert max(own) - min(own) == 100 * (len(own) - 1), tasks
    with pytest.raises(ice.errors.InvalidArgumentError, match="'hash', 'range' or 'none', got 'random'"):
        ice_spark.append(df, table, distribution="random")


@pytest.mark.parametrize("form", ["orc", "avro"])
def test_options_of_the_connector_count_or_are_refused(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], form: str
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    df = spark.range(0, 100_000, 1, 1).selectExpr("id", "cast(hash(id) AS STRING) AS s")
    write = df.write.format("icefield").options(**options).mode("append")
    write.options(**{"write-format": form, "target-file-size-bytes": "200000", "distribution-mode": "none"}).save(
        "db.t"
    )
    files = table.refresh().scan().plan_files().files
    assert {file["file_format"] for file in files} == {form}
    assert len(files) > 3
    for name, value in (("output-spec-id", "1"), ("split-size", "1"), ("colour", "red")):
        with pytest.raises(Exception, match=rf"icefield\.errors\.\w+: (unknown )?option {name}"):
            df.write.format("icefield").options(**options).option(name, value).mode("append").save("db.t")
    assert table.refresh().scan().count() == 100_000


@pytest.mark.parametrize("way", ["append", "format"])
def test_variants_of_spark_are_shredded(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], way: str
) -> None:
    schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "v", "variant"))
    table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
    df = spark.range(0, 50, 1, 1).selectExpr("id", 'parse_json(\'{"a": \' || id || \', "b": "x"}\') AS v')
    if way == "append":
        spark.conf.set("spark.sql.iceberg.shred-variants", "true")
        try:
            ice_spark.append(df, table)
        finally:
            spark.conf.unset("spark.sql.iceberg.shred-variants")
    else:
        df.write.format("icefield").options(**options).option("shred-variants", "true").mode("append").save("db.t")
    table.refresh()
    # Only the bounds of shredded values tell that no file has this one.
    assert [len(list(table.scan(text).plan_files())) for text in ("v:a::int = 49", "v:a::int = 50")] == [1, 0]
    rows = table.scan().to_arrow().sort_by("id")
    assert ice.variant.to_python(rows["v"]) == [{"a": number, "b": "x"} for number in range(50)]


@pytest.mark.parametrize("way", ["append", "format"])
def test_what_the_session_sets_for_audits(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], way: str
) -> None:
    table = catalog.create_table("db.t", SCHEMA, properties={"write.wap.enabled": "true"})
    df = spark.createDataFrame([(1, "x")], "id BIGINT NOT NULL, s STRING")

    def write() -> None:
        if way == "append":
            ice_spark.append(df, table)
        else:
            df.write.format("icefield").options(**options).mode("append").save("db.t")
        table.refresh()

    try:
        spark.conf.set("spark.wap.id", "audit-1")
        write()
        assert table.current_snapshot() is None
        assert [snapshot.summary["wap.id"] for snapshot in table.snapshots()] == ["audit-1"]
        spark.conf.set("spark.wap.branch", "audit")
        with pytest.raises(Exception, match=r"spark\.wap\.id=audit-1 and spark\.wap\.branch=audit"):
            write()
        spark.conf.unset("spark.wap.id")
        write()
        assert table.current_snapshot() is None
        assert table.snapshot_by_name("audit").summary["added-records"] == "1"
        assert ice_spark.read(spark, table).count() == 1
    finally:
        spark.conf.unset("spark.wap.id")
        spark.conf.unset("spark.wap.branch")
    assert ice_spark.read(spark, table).count() == 0


def test_abort_deletes_nothing_once_a_commit_was_tried(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]
) -> None:
    from icefield.spark.sinks.batch import Writer, Written
    from icefield.spark.tables.opening import SourceOptions
    from icefield.spark.writes.writing import Write, write_task

    del spark
    table = catalog.create_table("db.t", SCHEMA)
    batch = pa.record_batch({"id": [1, 2], "s": ["a", "b"]}, schema=SCHEMA)
    write = Write.of_schema(table, SCHEMA)
    files = write_task(write, iter([batch]), clustered=False)
    assert files is not None
    writer = Writer(SourceOptions.of({**options, "path": "db.t"}), write)
    message = Written(files)
    # Spark calls `abort` with all messages when `commit` raised, even if the snapshot was published.
    writer.commit([message])
    writer.abort([message])
    assert data_files(table.refresh()) == planned(table) != []
    assert table.scan().count() == 2

    other = Write.of_schema(table, SCHEMA)
    lost = write_task(other, iter([batch]), clustered=False)
    assert lost is not None
    assert len(data_files(table)) == 2
    failed = Writer(SourceOptions.of({**options, "path": "db.t"}), other)
    failed.abort([Written(lost), None])
    assert data_files(table) == planned(table)


def test_two_sessions_append_to_one_table(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    stale = catalog.load_table("db.t")
    ice_spark.append(spark.createDataFrame([(1, "x")], "id BIGINT, s STRING"), table)
    ice_spark.append(spark.createDataFrame([(2, "y")], "id BIGINT, s STRING"), stale)
    assert stale.scan().count() == 2
    parents = [snapshot.parent_snapshot_id for snapshot in stale.snapshots()]
    assert parents == [None, stale.snapshots()[0].snapshot_id]


def test_a_sorted_table_stays_sorted(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA, sort_by=["s desc nulls last"])
    ice_spark.append(spark.range(100).selectExpr("id", "cast(id % 7 AS STRING) AS s").coalesce(1), table)
    found = table.scan().to_arrow()["s"].to_pylist()
    assert found == sorted(found, reverse=True)
    assert json.loads(table.metadata_json())["default-sort-order-id"] == 1


@pytest.mark.parametrize("way", ["append", "source"])
def test_a_table_that_is_replaced_while_tasks_write_is_left_alone(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], tmp_path: Path, way: str
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    begun, go_on = tmp_path / "begun", tmp_path / "go-on"

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begun.touch()
        yield from batches
        while not go_on.exists():
            time.sleep(0.01)

    df = spark.range(0, 10, 1, 1).selectExpr("id", "'y' AS s").mapInArrow(slowly, "id BIGINT, s STRING")

    def replace() -> ice.Table:
        for _ in range(3000):
            if begun.exists():
                break
            time.sleep(0.01)
        catalog.drop_table("db.t")
        other = catalog.create_table("db.t", SCHEMA)
        go_on.touch()
        return other

    # Spark finds Python sources in the session's own thread only, so the table is replaced in the other one.
    with ThreadPoolExecutor(1) as pool:
        replacing = pool.submit(replace)
        with pytest.raises(Exception, match="the table was replaced") as raised:
            if way == "append":
                ice_spark.append(df, table)
            else:
                df.write.format("icefield").options(**options).mode("append").save("db.t")
        other = replacing.result()
    found = re.search(f"the table was replaced: .*{table.table_uuid}.*{other.table_uuid}", str(raised.value))
    assert found, raised.value
    assert data_files(table) == []
    assert catalog.load_table("db.t").metadata_location == other.metadata_location


def test_files_that_a_failed_write_leaves_are_told(catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    from icefield.spark.writes.writing import Write, write_task

    table = catalog.create_table("db.t", SCHEMA)
    write = Write.of_schema(table, SCHEMA)
    batch = pa.record_batch({"id": [1], "s": ["a"]}, schema=SCHEMA)
    files = write_task(write, iter([batch]), clustered=False)
    assert files is not None
    (path,) = data_files(table)
    file = Path(table.location().removeprefix("file://"), "data", Path(path).name)
    file.unlink()
    file.mkdir()
    (file / "in-the-way").touch()
    with pytest.warns(
        RuntimeWarning, match=f"some files of the failed write {write.write_id} could not be deleted: .*cannot delete"
    ):
        write.clean_up([files])
    # Another write's files have another id.
    (file / "in-the-way").unlink()
    file.rmdir()
    table.append(pa.table({"id": [1], "s": ["x"]}, schema=SCHEMA))
    write.clean_up(search=True)
    assert data_files(table) == planned(table) != []


@pytest.mark.parametrize(
    ("given", "sort_by", "partition_by"),
    [(None, ["s desc nulls last", "id"], None), ("range", [], ["truncate(10, id)"]), (None, ["bucket(4, id)"], "s")],
)
def test_range_distribution(
    spark: SparkSession, catalog: ice.Catalog, given: Any, sort_by: Any, partition_by: Any
) -> None:
    properties = {} if given else {"write.distribution-mode": "range"}
    table = catalog.create_table("db.t", SCHEMA, sort_by=sort_by, partition_by=partition_by, properties=properties)
    df = spark.range(0, 1000, 1, 4).selectExpr("id", "cast(id % 7 AS STRING) AS s")
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    try:
        ice_spark.append(df, table, distribution=given)
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
        spark.conf.unset("spark.sql.shuffle.partitions")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(1000))
    files = table.inspect.files().to_pylist()
    if partition_by is None:
        # Tasks have ranges of the order: only at a border can two files have the same text.
        texts = [file["readable_metrics"]["s"] for file in files]
        bounds = sorted((text["lower_bound"], text["upper_bound"]) for text in texts)
        assert len(bounds) == 3
        assert all(upper <= lower for (_, upper), (lower, _) in pairwise(bounds))
    else:
        partitions = [json.dumps(file["partition"]) for file in files]
        assert len(partitions) <= len(set(partitions)) + 2  # a partition is in two tasks only at a border
    with pytest.raises(ice.errors.InvalidArgumentError, match="'hash', 'range' or 'none', got 'rnge'"):
        ice_spark.append(df, table, distribution="rnge")  # type: ignore[arg-type]


def test_a_write_waits_for_its_own_jobs_only(
    spark: SparkSession, catalog: ice.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A longer job of the same group goes on beside a write that fails."""
    monkeypatch.setattr("icefield.spark.sessions.jobs._LAST_TASKS", 120)
    table = catalog.create_table("db.t", SCHEMA)
    done = tmp_path / "done"

    def wait(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        while not done.exists():
            time.sleep(0.01)
        yield from batches

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        list(batches)
        raise RuntimeError("this task fails")

    context = spark.sparkContext
    other = spark.range(0, 1, 1, 1).mapInArrow(wait, "id BIGINT")
    failing = spark.range(0, 1, 1, 1).selectExpr("id", "'y' AS s").mapInArrow(fail, "id BIGINT, s STRING")

    def grouped(call: Any) -> Any:
        context.setJobGroup("shared", "both jobs")
        return call()

    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(grouped, other.collect)
        while not context.statusTracker().getJobIdsForGroup("shared") and not waiting.done():
            time.sleep(0.01)
        started = time.monotonic()
        try:
            with pytest.raises(Exception, match="this task fails"):
                pool.submit(grouped, lambda: ice_spark.append(failing, table)).result()
            took = time.monotonic() - started
            assert not waiting.done()
        finally:
            done.touch()
        assert len(waiting.result()) == 1
    assert took < 110  # it waited for the other job as long as for a last task


@pytest.mark.parametrize("way", ["append", "source"])
def test_a_write_with_a_key_is_made_once(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], way: str
) -> None:
    """A job that is run again, by the same road or by the other, adds nothing and leaves no file."""
    table = catalog.create_table("db.t", SCHEMA, partition_by="bucket(2, id)")
    df = spark.range(0, 10, 1, 2).selectExpr("id", "'y' AS s")

    def run(by: str, key: str) -> None:
        if by == "append":
            ice_spark.append(df, table, idempotency_key=key)
        else:
            save = df.write.format("icefield").options(**options).option("idempotency-key", key)
            save.mode("append").save("db.t")

    for by in (way, way, "append", "source"):
        run(by, "Job/1")
        table.refresh()
        assert (table.scan().count(), len(table.snapshots())) == (10, 1), by
        assert data_files(table) == planned(table)
    assert table.current_snapshot().summary["icefield.idempotency-key"] == "Job/1"
    run(way, "Job/2")
    assert table.refresh().scan().count() == 20


def test_a_key_that_another_writer_uses_meanwhile(catalog: ice.Catalog, options: dict[str, str]) -> None:
    """The commit finds it, and deletes what the tasks wrote."""
    from icefield.spark.sinks.batch import Writer, Written
    from icefield.spark.tables.opening import SourceOptions
    from icefield.spark.writes.writing import Write, write_task

    table = catalog.create_table("db.t", SCHEMA)
    batch = pa.record_batch({"id": [1, 2], "s": ["a", "b"]}, schema=SCHEMA)
    given = SourceOptions.of({**options, "path": "db.t", "idempotency-key": "k"})
    writes = [Write.of_schema(table, SCHEMA) for _ in range(2)]
    written = [write_task(write, iter([batch]), clustered=False) for write in writes]
    for write, files in zip(writes, written, strict=True):
        Writer(given, write).commit([Written(files)])
    assert table.refresh().scan().count() == 2
    assert data_files(table) == planned(table)
    # An attempt that was killed has left a file of the write that was committed, and one of the same write.
    write = Write.of_schema(table, SCHEMA)
    write_task(write, iter([batch]), clustered=False)
    writer = ice.distributed.TaskWriter(write.plan, write.storage, SCHEMA, task=0, attempt=1)
    writer.write(batch)
    Writer(SourceOptions.of({**options, "path": "db.t"}), write).commit([Written(writer.close(), attempts_before=1)])
    assert table.refresh().scan().count() == 4
    assert data_files(table) == planned(table)


def test_modes_of_the_schema(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    some = spark.range(0, 2, 1, 1)
    with pytest.raises(ice.errors.ValidationError, match="s"):
        ice_spark.append(some, table, schema_mode="strict")
    with pytest.raises(ice.InvalidArgumentError, match="schema_mode must be 'strict', 'subset' or 'evolve', got 'any'"):
        ice_spark.append(some, table, schema_mode="any")  # type: ignore[call-overload]
    more = some.selectExpr("id", "struct(id AS a, 'x' AS b) AS more")
    counted = ice_spark.append(more, table, schema_mode="evolve", dry_run=True)
    assert (counted.rows_added, counted.files_added) == (2, 1)
    assert table.refresh().current_snapshot() is None
    assert data_files(table) == []
    ice_spark.append(more, table, schema_mode="evolve", memory_limit=1 << 20)
    assert len(table.metadata_log()) == 1, "columns and rows come in one commit"
    assert table.schema().find_field("id").required
    assert sorted(table.scan(selected_fields="more").to_arrow()["more"].to_pylist(), key=str) == [
        {"a": 0, "b": "x"},
        {"a": 1, "b": "x"},
    ]
    ice_spark.append(some, table, schema_mode="subset")
    assert table.scan().count() == 4


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"brnch": "b"}, "brnch is neither an argument nor a catalog property; did you mean branch?"),
        ({"idempotency": "k"}, "idempotency is neither an argument nor a catalog property"),
        ({"catalog": "local"}, "catalog: the catalog and its properties apply only when table is a name, not a Table"),
        ({"uri": "sqlite:///x"}, "uri: the catalog and its properties apply only when table is a name, not a Table"),
    ],
)
def test_mistyped_keywords_are_named(
    spark: SparkSession, catalog: ice.Catalog, given: dict[str, Any], message: str
) -> None:
    table = catalog.create_table("db.t", SCHEMA)
    df = spark.range(1)
    for call in (
        lambda: ice_spark.append(df, table, **given),
        *([lambda: ice_spark.read(spark, table, **given)] if "brnch" not in given else []),
    ):
        with pytest.raises(ice.InvalidArgumentError) as raised:
            call()
        assert str(raised.value).startswith(message)
