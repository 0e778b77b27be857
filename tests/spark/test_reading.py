"""What is read: pruned files, earlier snapshots, columns that were renamed, dropped and added again."""

from __future__ import annotations

import datetime as dt
import json
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.metrics import InMemoryMetricsReporter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")


def numbered(catalog: ice.Catalog, files: int = 4) -> ice.Table:
    """Make a table of files of ten rows each: ids 0-9, 10-19, …"""
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("s", pa.string())]))
    for first in range(0, files * 10, 10):
        ids = list(range(first, first + 10))
        table.append(pa.table({"id": ids, "s": [None if n % 5 == 0 else f"n{n % 3}" for n in ids]}))
    return table


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize(
    "row_filter",
    ["id = 25", "id > 7 AND id < 12", "s != 'n1'", "s IS NULL", "s LIKE 'n2%'", "NOT (s = 'n1')"]
    + ["id IN (1, 39)", "s NOT IN ('n0', 'n1')", "id < 0", "truncate(10, id) = 20"],
)
def test_filters_are_exact(spark: SparkSession, catalog: ice.Catalog, native: bool, row_filter: str) -> None:
    table = numbered(catalog)
    expected = sorted(table.scan(row_filter).to_arrow()["id"].to_pylist())
    df = ice_spark.read(spark, table, filter=row_filter, columns="id", native=native)
    assert df.columns == ["id"]
    assert sorted(row.id for row in df.collect()) == expected


def test_native_and_rust_read_the_same_files(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = numbered(catalog)
    native = ice_spark.read(spark, table, filter="id >= 30")
    assert {path.rpartition("/")[2] for path in native.inputFiles()} == {
        file["file_path"].rpartition("/")[2] for file in table.scan("id >= 30").plan_files().files
    }
    assert len(native.inputFiles()) == 1
    plain = ice_spark.read(spark, table, filter="id >= 30", native=False)
    assert plain.inputFiles() == []
    assert native.schema["id"].metadata["parquet.field.id"] == 1


def test_nothing_stands_between_the_reader_and_the_rows(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = numbered(catalog)
    table.update_schema().rename_column("s", "text").commit()
    for columns in (None, ["text"]):
        df = ice_spark.read(spark, table, columns=columns)
        plan = df._jdf.queryExecution().optimizedPlan().toString()
        assert "Union" not in plan, plan
        assert df.schema["text"].metadata["parquet.field.id"] == 2
        assert sorted(row.text or "" for row in df.where("text = 'n1'").collect()) == ["n1"] * 11


def test_frames_belong_to_the_users_session(spark: SparkSession, catalog: ice.Catalog) -> None:
    df = ice_spark.read(spark, numbered(catalog))
    df.createOrReplaceTempView("numbers")
    assert spark.sql("SELECT count(*) AS n FROM numbers JOIN numbers AS other USING (id)").first().n == 40
    assert spark.sql("SELECT max(id) AS n FROM {t}", t=df).first().n == 39
    assert df.limit(3).count() == 3


def test_frames_of_one_table_have_columns_of_their_own(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = numbered(catalog)
    one, two = ice_spark.read(spark, table), ice_spark.read(spark, table)
    joined = one.join(two, one.id == two.id + 1).select(one.id, two.id.alias("before"))
    assert sorted((row.id, row.before) for row in joined.collect()) == [(n, n - 1) for n in range(1, 40)]
    table.append(pa.table({"id": [40], "s": ["new"]}))
    assert ice_spark.read(spark, table).count() == 41
    assert one.count() == ice_spark.read(spark, table, as_of=table.history()[-2].snapshot_id).count() == 40


def test_more_tables_than_relations_are_kept(spark: SparkSession, catalog: ice.Catalog) -> None:
    tables = [catalog.create_table(f"db.many{n}", pa.schema([("id", pa.int64())])) for n in range(20)]
    for n, table in enumerate(tables):
        table.append(pa.table({"id": [n]}))
    for _ in range(2):
        assert [ice_spark.read(spark, table).first().id for table in tables] == list(range(20))


def planned(df: Any) -> str:
    """Give the plan that runs."""
    plan: str = df._jdf.queryExecution().executedPlan().toString()
    return plan


#: How the column ``s`` of a table is arranged, and whether a condition on it reaches the files.
ARRANGED: dict[str, tuple[dict[str, Any], bool]] = {
    "no order": ({}, False),
    "partitioned": ({"partition_by": ["bucket(1, s)"]}, True),
    "sorted": ({"sort_order": ["s"]}, True),
    "Bloom filters": ({"properties": {"write.parquet.bloom-filter-enabled.column.s": "true"}}, True),
    "no bounds": ({"properties": {"write.metadata.metrics.column.s": "none"}}, True),
    "other columns arranged": ({"partition_by": ["bucket(1, id)"], "sort_order": ["id"]}, False),
}


@pytest.mark.parametrize("arranged", ARRANGED)
def test_texts_that_tell_no_files_apart_are_read_as_bytes(
    spark: SparkSession, catalog: ice.Catalog, arranged: str
) -> None:
    made, reaches = ARRANGED[arranged]
    texts = ["", "é", "日本", "z" * 100, None, "a", "\U0001f600", "e\u0301", "\0", "a"]
    schema = pa.schema([("id", pa.int64()), ("s", pa.string())])
    table = catalog.create_table("db.t", schema, **made)
    for first in (0, 10):
        table.append(pa.table({"id": range(first, first + 10), "s": texts}, schema=schema))
    df = ice_spark.read(spark, table)
    assert df.dtypes == [("id", "bigint"), ("s", "string")]
    assert df.schema["s"].metadata["parquet.field.id"] == 2
    assert ("EqualTo(s,é)" in planned(df.where("s = 'é'"))) == reaches
    assert "EqualTo(id,3)" in planned(df.where("id = 3"))
    expected = sorted(zip(range(20), texts * 2, strict=True))
    assert sorted((row.id, row.s) for row in df.collect()) == expected
    for condition in ("s = 'é'", "s > 'y'", "s IS NULL", "length(s) = 1"):
        rust = ice_spark.read(spark, table, native=False).where(condition).collect()
        assert sorted(df.where(condition).collect()) == sorted(rust), condition
    # What the scan's own filter names is a text to the reader.
    assert "EqualTo(s,é)" in planned(ice_spark.read(spark, table, filter="s = 'é'"))


@pytest.mark.parametrize(
    ("row_filter", "pushed"),
    [
        ("id > 7", "GreaterThan(id,7)"),
        ("id IN (1, 39)", "In(id, [1,39])"),
        ("s LIKE 'n2%'", "StringStartsWith(s,n2)"),
        ("s != 'n1'", "Or(Not(EqualTo(s,n1)),IsNull(s))"),
        ("id NOT IN (1, 2)", "Or(Not(In(id, [1,2])),IsNull(id))"),
        ("id < 3 OR s = 'n0'", "Or(LessThan(id,3),EqualTo(s,n0))"),
        (
            "NOT (id < 3 AND s = 'n0')",
            "Or(GreaterThanOrEqual(id,3),And(IsNotNull(s),Or(Not(EqualTo(s,n0)),IsNull(s))))",
        ),
    ],
)
def test_filters_reach_the_files(spark: SparkSession, catalog: ice.Catalog, row_filter: str, pushed: str) -> None:
    df = ice_spark.read(spark, numbered(catalog), filter=row_filter)
    assert pushed in planned(df)


def test_texts_of_ordered_files_are_read_as_texts(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", pa.schema([("day", pa.string()), ("s", pa.string())]))
    for day in ("2026-01-01", "2026-01-02"):
        table.append(pa.table({"day": [day] * 3, "s": ["a", "b", "c"]}))
    df = ice_spark.read(spark, table)
    assert "EqualTo(day,2026-01-02)" in planned(df.where("day = '2026-01-02'"))
    assert "EqualTo(s,b)" not in planned(df.where("s = 'b'"))
    one = ice_spark.read(spark, table, filter="day = '2026-01-01'").where("s = 'b'")
    assert [tuple(row) for row in one.collect()] == [("2026-01-01", "b")]


def test_texts_younger_than_a_file_and_renamed_ones(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("a", pa.string())]))
    table.append(pa.table({"id": [1], "a": ["x"]}))
    table.update_schema().rename_column("a", "b").add_column("c", "string").commit()
    table.append(pa.table({"id": [2], "b": ["x"], "c": ["é"]}))
    rows = [(1, "x", None), (2, "x", "é")]
    df = ice_spark.read(spark, table)
    assert sorted(tuple(row) for row in df.collect()) == rows
    assert sorted(tuple(row) for row in df.where("b = 'x' AND c IS NULL").collect()) == rows[:1]
    assert sorted(tuple(row) for row in ice_spark.read(spark, table, filter="c = 'é'").collect()) == rows[1:]


def test_texts_read_as_bytes_are_not_taken_for_small(spark: SparkSession, catalog: ice.Catalog) -> None:
    """What Spark reckons decides whether it sends a table whole to every executor."""
    table = catalog.create_table("db.t", pa.schema([(name, pa.string()) for name in "abcd"]))
    table.append(pa.table({name: [f"{name}{n}" for n in range(1000)] for name in "abcd"}))
    df = ice_spark.read(spark, table)
    reckoned = int(str(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    assert reckoned >= sum(file["file_size_in_bytes"] for file in table.scan().plan_files().files)


@pytest.mark.parametrize("enabled", ["true", "false"])
def test_pushed_filters_skip_files(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], enabled: str
) -> None:
    from icefield.spark import functions

    if enabled == "true" and not functions.ON_ARROW:
        pytest.skip("PySpark 4.0 pushes no filters to Python sources")
    table = numbered(catalog)
    # Only files that survive pruning are there: a read of any other would fail.
    for file in table.scan("id < 30").plan_files().files if enabled == "true" else []:
        table.storage.delete(file["file_path"])
    spark.conf.set("spark.sql.python.filterPushdown.enabled", enabled)
    try:
        source = spark.read.format("icefield").options(**options).option("push-filters", "true")
        df = source.load("db.t")
        assert [row.id for row in df.where("id >= 35 AND s = 'n1'").collect()] == [37]
        assert source.load("db.t").where("id > 30 AND (s IS NULL OR length(s) = 9)").count() == 1
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_pushed_filters_know_sparks_floats(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    """NaN is above every number for Spark, and both zeros are one; files are still skipped by what is left."""
    values = [float("nan"), 1.5, -0.0, 0.0, float("inf"), float("-inf"), None]
    rows = pa.table({"id": range(7), "d": pa.array(values), "f": pa.array(values, pa.float32())})
    table = catalog.create_table("db.t", rows)
    for at in range(7):
        table.append(rows.slice(at, 1))
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        source = spark.read.format("icefield").options(**options).option("push-filters", "true")
        for column in ("d", "f"):
            for condition, expected in {
                "{} > 1.0D": [0, 1, 4],
                "{} >= 1.5D": [0, 1, 4],
                "{} < 1.0D": [2, 3, 5],
                "{} = 0.0D": [2, 3],
                "{} >= 0.0D": [0, 1, 2, 3, 4],
                "{} != 1.5D": [0, 2, 3, 4, 5],
                "NOT ({} <= 1.5D)": [0, 4],
                "{} = double('nan')": [0],
                "isnan({})": [0],
                "{} IN (0.0D, 1.5D)": [1, 2, 3],
                "{} NOT IN (2.0D, 1.5D)": [0, 2, 3, 4, 5],
            }.items():
                where = condition.format(column)
                found = source.load("db.t").where(where).collect()
                assert sorted(row.id for row in found) == expected, where
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_time_travel(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    table = numbered(catalog, 1)
    first = table.current_snapshot()
    between = dt.datetime.fromtimestamp(first.timestamp_ms / 1000 + 0.002, dt.timezone.utc)
    time.sleep(0.01)
    table.append(pa.table({"id": pa.array([100], pa.int64()), "s": ["new"]}))
    snapshot = {"ref-name": "old", "type": "tag", "snapshot-id": first.snapshot_id}
    table.commit([], [{"action": "set-snapshot-ref", **snapshot}])

    for as_of in (first.snapshot_id, between, "old"):
        assert ice_spark.read(spark, table, as_of=as_of).count() == 10
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for name, offset in (("+05:30", 5.5), ("UTC", 0), ("-08", -8), ("Asia/Tokyo", 9), ("GMT-3", -3)):
            spark.conf.set("spark.sql.session.timeZone", name)
            naive = (between + dt.timedelta(hours=offset)).replace(tzinfo=None)
            assert ice_spark.read(spark, table, as_of=naive).count() == 10, name
            files = ice_spark.read_inspect(spark, table, "files", as_of=naive)
            assert files.groupBy().sum("record_count").first()[0] == 10, name
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)
    assert ice_spark.read(spark, table, as_of="main").count() == 11
    for name, value in (
        ("snapshot-id", str(first.snapshot_id)),
        ("versionAsOf", str(first.snapshot_id)),
        ("versionAsOf", "old"),
        ("tag", "old"),
        ("as-of-timestamp", str(first.timestamp_ms)),
        ("timestampAsOf", between.isoformat()),
    ):
        assert spark.read.format("icefield").options(**options).option(name, value).load("db.t").count() == 10, name


@pytest.mark.parametrize(
    ("name", "meant"),
    [("snapshotId", "snapshot-id"), ("snapshot_id", "snapshot-id"), ("version-as-of", "versionAsOf")],
)
def test_a_misspelt_moment_is_not_passed_over(options: dict[str, str], name: str, meant: str) -> None:
    from icefield.spark.tables.opening import SourceOptions

    with pytest.raises(
        ice.errors.InvalidArgumentError, match=rf"unknown option {name.lower()}; did you mean {meant}\?"
    ):
        SourceOptions.of({**options, "path": "db.t", name: "5"})
    assert SourceOptions.of({**options, "path": "db.t", "s3.region": "x"}).properties["s3.region"] == "x"


def test_a_frame_keeps_its_snapshot(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = numbered(catalog, 1)
    df = ice_spark.read(spark, table)
    table.append(pa.table({"id": pa.array([100], pa.int64()), "s": ["new"]}))
    assert df.count() == 10
    assert df.where("id > 5").count() == 4


def change_schema(table: ice.Table, *fields: tuple[int, str, str]) -> None:
    """Give a table new columns, as (id, name, type)."""
    listed = [{"id": n, "name": name, "type": kind, "required": False} for n, name, kind in fields]
    last = max(json.loads(table.metadata_json())["last-column-id"], *(n for n, _, _ in fields))
    schema = {"type": "struct", "schema-id": 0, "fields": listed}
    added = {"action": "add-schema", "schema": schema, "last-column-id": last}
    table.commit([], [added, {"action": "set-current-schema", "schema-id": -1}])


def evolved(catalog: ice.Catalog, *fields: tuple[int, str, str]) -> ice.Table:
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64()), ("b", pa.int64()), ("n", pa.int32())]))
    table.append(pa.table({"a": [1, 2], "b": [10, 20], "n": pa.array([7, None], pa.int32())}))
    change_schema(table, *fields)
    return table


EVOLUTIONS: dict[str, tuple[list[tuple[int, str, str]], str, list[Any]]] = {
    "renamed": ([(1, "x", "long"), (2, "b", "long"), (3, "n", "int")], "x = 1", [(1, 10, 7)]),
    "swapped": ([(2, "a", "long"), (1, "b", "long"), (3, "n", "int")], "b = 1", [(10, 1, 7)]),
    "added again": ([(1, "a", "long"), (4, "b", "long"), (3, "n", "int")], "b IS NULL AND a = 1", [(1, None, 7)]),
    "other type": ([(1, "a", "long"), (4, "b", "string"), (3, "n", "int")], "b IS NULL AND a = 2", [(2, None, None)]),
    "widened": ([(1, "a", "long"), (2, "b", "long"), (3, "n", "long")], "n < 3000000000", [(1, 10, 7)]),
    "dropped": ([(1, "a", "long"), (3, "n", "int")], "n = 7", [(1, 7)]),
}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("case", EVOLUTIONS)
def test_columns_are_their_ids(spark: SparkSession, catalog: ice.Catalog, case: str, native: bool) -> None:
    fields, condition, expected = EVOLUTIONS[case]
    table = evolved(catalog, *fields)
    df = ice_spark.read(spark, table, native=native)
    # By Spark's own filter, which it may push to the file, and by ours.
    assert [tuple(row) for row in df.where(condition).collect()] == expected
    filtered = ice_spark.read(spark, table, filter=condition, native=native)
    assert [tuple(row) for row in filtered.collect()] == expected


def test_values_inside_of_variants_are_columns(spark: SparkSession, catalog: ice.Catalog) -> None:
    """Executors read them, and Spark's own reader is left out of it."""
    schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "v", "variant"))
    table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
    made = [ice.variant.Variant.from_python({"a": {"b": [number]}, "s": f"s{number}"}) for number in range(6)]
    arrow = table.schema().to_arrow()
    parts = pa.array([{"metadata": one.metadata, "value": one.value} for one in made], arrow.field("v").type)
    table.append(pa.table([pa.array(range(6)), parts], schema=arrow))
    columns = ["v:a.b[0]::long", "id", "v:s::string"]
    df = ice_spark.read(spark, table, filter="v:a.b[0]::long > 2", columns=columns)
    assert df.columns == columns
    assert sorted(map(tuple, df.collect())) == [(number, number, f"s{number}") for number in range(3, 6)]
    assert df.where("`v:a.b[0]::long` = 4").select("`v:s::string`").collect() == [("s4",)]
    explained = ice_spark.explain(spark, table, columns=columns)
    assert explained.files.column("kind").to_pylist() == ["variant path"]


def test_what_the_user_sets_for_files_counts(spark: SparkSession, catalog: ice.Catalog) -> None:
    """Settings of file systems, Parquet and files; but for those that would change rows."""
    from icefield.spark.sessions.session import ReaderSession

    table = numbered(catalog, 2)
    given = {
        "fs.s3a.access.key": ("mine", "mine"),
        "parquet.example": ("mine", "mine"),
        "spark.sql.parquet.columnarReaderBatchSize": ("17", "17"),
        "spark.sql.parquet.filterPushdown": ("false", "false"),
        "spark.sql.files.maxPartitionBytes": ("1000000", "1000000"),
        "spark.sql.session.timeZone": ("Asia/Tokyo", "Asia/Tokyo"),
        # What both readers must do alike.
        "spark.sql.parquet.fieldId.read.enabled": ("false", "true"),
        "spark.sql.parquet.fieldId.read.ignoreMissing": ("true", "false"),
        "spark.sql.files.ignoreMissingFiles": ("true", "false"),
        "spark.sql.files.ignoreCorruptFiles": ("true", "false"),
        # Of no concern to a reader of files.
        "spark.sql.shuffle.partitions": ("77", "2"),
    }
    before = {name: spark.conf.get(name, None) for name in given}
    private = ReaderSession.of(spark)._session
    first = {name: private.conf.get(name, None) for name in given}
    try:
        for name, (value, _) in given.items():
            spark.conf.set(name, value)
        frame = ice_spark.read(spark, table)
        assert {name: private.conf.get(name) for name in given} == {name: there for name, (_, there) in given.items()}
        assert frame.count() == 20
        (path, _) = table.scan().plan_files().to_arrow()["file_path"].to_pylist()
        table.storage.delete(path)
        with pytest.raises(Exception, match="(?i)exist|not found|no such"):
            ice_spark.read(spark, table).collect()
    finally:
        for name, value in before.items():
            spark.conf.unset(name) if value is None else spark.conf.set(name, value)
    ReaderSession.of(spark)
    assert {name: private.conf.get(name, None) for name in given} == first


def test_the_driver_reports_scans_and_commits(spark: SparkSession, catalog: ice.Catalog) -> None:
    reporter = catalog.metrics_reporter = InMemoryMetricsReporter()
    table = catalog.create_table("db.reported", pa.schema([("id", pa.int64()), ("kind", pa.string())]))
    session = ice_spark.session(spark, {"c": catalog})
    session.sql("INSERT INTO c.db.reported VALUES (1, 'a'), (2, 'b')").collect()
    ice_spark.append(spark.createDataFrame([(3, "c")], "id bigint, kind string"), table)
    session.sql("DELETE FROM c.db.reported WHERE id = 2").collect()
    commits = [report for report in reporter.reports if report["report-type"] == "commit-report"]
    assert [report["snapshot-id"] for report in commits] == [one.snapshot_id for one in table.refresh().snapshots()]
    assert [report["metrics"]["total-records"]["value"] for report in commits] == [2, 3, 2]
    reporter.reports.clear()
    read = ice_spark.read(spark, table, filter="id > 1", columns=["id"])
    for frame in (session.sql("SELECT id FROM c.db.reported WHERE id > 1"), read):
        assert [row.id for row in frame.collect()] == [3]
    session.close()
    assert [report["report-type"] for report in reporter.reports] == ["scan-report"] * 2
    assert {report["snapshot-id"] for report in reporter.reports} == {commits[-1]["snapshot-id"]}
