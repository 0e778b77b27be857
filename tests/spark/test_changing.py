"""Changes of rows by the executors: each gives what the change of the same name in plain Python gives."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark.sql.functions as F  # noqa: N812
import pytest

import icefield as ice
from icefield.expressions import GreaterThan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

ice_spark = pytest.importorskip("icefield.spark")
running = pytest.importorskip("icefield.spark.changing.running")

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("s", pa.string()),
        ("n", pa.int32()),
        ("st", pa.struct([("a", pa.int32()), ("b", pa.string())])),
    ]
)
DDL = "id BIGINT, day DATE, s STRING, n INT, st STRUCT<a: INT, b: STRING>"
START = dt.date(2026, 1, 1)

Row = tuple[Any, ...]


def row(number: int | None, s: str | None = "", *, day: int = 0, n: int | None = None) -> Row:
    text = f"s{number}" if s == "" else s
    return (number, START + dt.timedelta(day), text, n, {"a": number, "b": text})


def arrow(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [[] for _ in SCHEMA]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


class Twins:
    """Two tables with the same rows: one is changed by Spark, the other by plain Python."""

    def __init__(
        self, spark: SparkSession, catalog: ice.Catalog, version: int, mode: str, partition_by: Any = None
    ) -> None:
        kinds = ("delete", "update", "merge")
        properties = {"format-version": str(version)} | {f"write.{kind}.mode": mode for kind in kinds}
        self.spark = spark
        self.mine, self.plain = (
            catalog.create_table(f"db.{name}", SCHEMA, partition_by=partition_by, properties=properties)
            for name in ("mine", "plain")
        )
        for table in (self.mine, self.plain):
            table.append(arrow([row(n, day=n % 3, n=n * 10) for n in range(12)]))
            table.append(arrow([row(n, day=n % 3) for n in range(12, 20)] + [row(None, "no key"), row(None, None)]))
            table.delete("id = 5")

    def frame(self, rows: list[Row]) -> DataFrame:
        return self.spark.createDataFrame(rows, DDL).repartition(2)

    def same(self) -> None:
        """Check that both have the same rows; rows that were there before have the same ids."""
        found = []
        for table in (self.mine.refresh(), self.plain.refresh()):
            fields = ["*", "_row_id"] if table.metadata.format_version >= 3 else ["*"]
            rows = table.scan(selected_fields=tuple(fields)).to_arrow().to_pylist()
            for one in rows:
                # New rows are numbered as they are written.
                if one.get("_row_id", 0) >= 22:
                    one["_row_id"] = None
            found.append(sorted(map(str, rows)))
        assert found[0] == found[1]
        assert left_over(self.mine) == set()


def left_over(table: ice.Table) -> set[str]:
    """Give the files below the table's data that no snapshot has."""
    known = set(table.refresh().inspect.all_files()["file_path"].to_pylist())
    return {path for path, _ in table.storage.list(f"{table.location()}/data")} - known


def jobs(table: ice.Table, spark: SparkSession) -> int:
    """Count Spark's jobs of the last change."""
    write = table.refresh().current_snapshot().summary["icefield.write-id"]  # type: ignore[union-attr,index]
    tracker = spark.sparkContext._jsc.sc().statusTracker()
    return len(tracker.getJobIdsForTag(f"icefield-change-{write}"))


def counts(changed: Any) -> tuple[int, ...]:
    """Give the rows of a result, and the files where both ways make the same ones."""
    if isinstance(changed, ice.table.RowsChanged):
        return changed.rows_removed, changed.rows_added, changed.files_removed
    if hasattr(changed, "rows_deleted"):
        return changed.rows_updated, changed.rows_inserted, changed.rows_deleted, changed.files_removed
    return changed.rows_updated, changed.rows_inserted


WORLDS = [
    (1, "copy-on-write", None),
    (2, "merge-on-read", ["day"]),
    (3, "merge-on-read", ["bucket(4, id)", "month(day)"]),
    (3, "copy-on-write", ["day"]),
]


@pytest.mark.parametrize(("version", "mode", "partition_by"), WORLDS)
def test_all_changes_one_after_the_other(
    spark: SparkSession,
    catalog: ice.Catalog,
    version: int,
    mode: str,
    partition_by: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_spark = version < 3
    if by_spark:
        monkeypatch.setattr(running, "OWN_BYTES", dict.fromkeys(running.OWN_BYTES, -1))
    twins = Twins(spark, catalog, version, mode, partition_by)
    mine, plain = twins.mine, twins.plain

    # A filter that Iceberg has: rows are found in Rust. Null is neither equal nor unequal.
    done = ice_spark.delete(spark, mine, "id <> 7 AND id IN (1, 2, 7) OR s = 's12'")
    assert counts(done) == counts(plain.delete("id in (1, 2) or s = 's12'"))
    assert done.rows_removed == 3
    assert jobs(mine, spark) == by_spark, "the driver takes rows out of small files itself"
    twins.same()

    # A condition that it does not have, as text and as a column.
    done = ice_spark.delete(spark, mine, F.expr("length(target.s) = 3 AND id > 17") | (F.col("n") / 40 == 1))
    assert counts(done) == counts(plain.delete("id in (18, 19, 4)"))
    assert done.rows_removed == 3
    twins.same()

    done = ice_spark.update(
        spark, mine, {"s": "upper(s)", "n": F.col("n") + 1, "st": "struct(s AS b, 7 AS a)"}, "id < 10"
    )
    new = plain.update(
        lambda rows: pa.RecordBatch.from_pylist(
            [
                {
                    **one,
                    "s": one["s"].upper(),
                    "n": None if one["n"] is None else one["n"] + 1,
                    "st": {"a": 7, "b": one["s"]},
                }
                for one in rows.to_pylist()
            ],
            rows.schema,
        ),
        "id < 10",
    )
    assert counts(done)[:2] == counts(new)[:2] == (6, 6)
    twins.same()

    # Every kind of clause; a key that is null matches nothing.
    source = [
        row(0, "new", n=1),
        row(3, "gone", n=2),
        row(6, "kept", n=3),
        row(30, "added"),
        row(31, "not"),
        row(None, "x"),
    ]
    clauses: list[tuple[str, Row]] = [
        ("when_matched_delete", ("source.s = 'gone'",)),
        ("when_matched_update", ({"s": "source.s", "day": "source.day"}, "source.n < 3 AND target.n >= 0")),
        ("when_not_matched_insert", ({"id": "source.id", "s": "source.s"}, "source.s != 'not'")),
        ("when_not_matched_by_source_update", ({"n": -1}, "target.id = 8")),
        ("when_not_matched_by_source_delete", ("target.id BETWEEN 9 AND 11",)),
    ]
    results = []
    for builder in (ice_spark.merge(twins.frame(source), mine, "id"), plain.merge(arrow(source), "id")):
        for name, arguments in clauses:
            getattr(builder, name)(*arguments)
        results.append(builder.execute())
    assert counts(results[0])[:3] == counts(results[1])[:3] == (2, 2, 4)
    twins.same()

    source = [row(0, "again", n=5), row(13, day=1), row(40, "added"), row(None, "x")]
    rows = twins.frame(source)
    plain.delete("s = 'x' or s = 'no key'")
    ice_spark.delete(spark, mine, "s IN ('x', 'no key')")
    assert counts(ice_spark.upsert(rows, mine, "id")) == counts(plain.upsert(arrow(source), "id")) == (2, 1)
    twins.same()
    # All rows: files are removed unread.
    done = ice_spark.delete(spark, mine, "true")
    assert done.rows_removed == plain.delete().rows_removed
    assert mine.refresh().scan().count() == 0


@pytest.mark.parametrize(("version", "mode", "partition_by"), WORLDS[1:3])
def test_overwrites(spark: SparkSession, catalog: ice.Catalog, version: int, mode: str, partition_by: Any) -> None:
    twins = Twins(spark, catalog, version, mode, partition_by)
    rows = [row(100, day=1), row(101, day=1)]
    for row_filter in ("day = '2026-01-02'", "id >= 6 and id < 9 or s is null"):
        done = ice_spark.write(twins.frame(rows), twins.mine, "overwrite", filter=row_filter)
        assert counts(done) == counts(twins.plain.overwrite(arrow(rows), row_filter))
        twins.same()
    summary = twins.mine.current_snapshot().summary
    assert summary["operation"] == "overwrite"
    done = ice_spark.write(twins.frame(rows), twins.mine, "dynamic")
    assert counts(done) == counts(twins.plain.dynamic_partition_overwrite(arrow(rows)))
    twins.same()
    done = ice_spark.write(twins.frame(rows), twins.mine, "overwrite")
    assert counts(done) == counts(twins.plain.overwrite(arrow(rows)))
    twins.same()
    assert ice_spark.write(twins.frame(rows), twins.mine).rows_added == 2
    assert ice_spark.write(twins.frame(rows), twins.mine, "overwrite", filter=GreaterThan("id", 100), dry_run=True)
    assert twins.mine.refresh().scan().count() == 4
    for arguments, message in (
        ({"mode": "replace"}, "mode must be 'append', 'overwrite' or 'dynamic', got 'replace'"),
        ({"filter": "id = 1"}, "filter does not apply to mode='append', but to 'overwrite'"),
        ({"mode": "dynamic", "row_mode": "auto"}, "row_mode does not apply to mode='dynamic'"),
    ):
        with pytest.raises(ice.InvalidArgumentError, match=message):
            ice_spark.write(twins.frame(rows), twins.mine, **arguments)


CONDITIONS = [
    # The condition, and what Iceberg has of it; None where that is nothing.
    ("id = 3", "id = 3", True),
    ("3 <= id AND id < 7", "id >= 3 and id < 7", True),
    ("NOT (id = 3 OR s = 's4')", "id != 3 and s != 's4'", True),
    ("id NOT IN (3, 4)", "id not in (3, 4)", True),
    ("s LIKE 's1%'", "s like 's1%'", True),
    ("day > '2026-01-01'", "day > '2026-01-01'", True),
    ("day > current_date() - 100000 AND n IS NULL", "n is null", True),
    ("n <=> NULL", "n is null", True),
    ("st.a = 3", "st.a = 3", True),
    # Columns in other letter case are those that the session takes them for.
    ("ID = 4 AND `S` LIKE 's%' AND ST.A = 4", "id = 4", True),
    ("id + 1 = 4", "id is not null", False),
    ("id = 3 AND upper(s) = 'S3'", "id = 3", False),
    ("id = 3 OR upper(s) = 'S4'", None, False),
    ("id IN (SELECT max(id) FROM range(4))", None, False),
]


@pytest.mark.parametrize(("condition", "expected", "exact"), CONDITIONS)
def test_what_iceberg_has_of_a_condition(
    spark: SparkSession, condition: str, expected: str | None, exact: bool
) -> None:
    from icefield.expressions import AlwaysTrue
    from icefield.spark.changing.conditions import found

    schema = ice.Schema.from_arrow(SCHEMA)
    rows = arrow([row(n, day=n % 3, n=n or None) for n in range(20)] + [row(None, None)])
    known = found(spark, condition, schema)
    assert (known.column is None) == exact
    if expected is None:
        assert isinstance(known.filter, AlwaysTrue)
        return
    catalog = ice.load_catalog("m", type="in-memory")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", SCHEMA)
    table.append(rows)
    wanted, ids = ({one["id"] for one in table.scan(of).to_arrow().to_pylist()} for of in (expected, known.filter))
    assert ids == wanted != set()


def test_values_of_all_types_stay_as_they_are(spark: SparkSession, catalog: ice.Catalog) -> None:
    """Rows pass through Spark, which has fewer types: uuid is text there, fixed is binary."""
    from pyspark.sql import types as st

    fields = (ice.NestedField(10, "a", "int"), ice.NestedField(11, "b", "string"))
    listed = ice.types.ListType(12, ice.types.StructType(*fields), False)
    mapped = ice.types.MapType(13, "string", 14, ice.types.ListType(15, "int", False), False)
    kinds: list[tuple[Any, Any]] = [
        ("uuid", uuid.UUID("0123456789abcdef0123456789abcdef").bytes),
        ("fixed[4]", b"abcd"),
        # PySpark 4.0 has no such type.
        *([("time", dt.time(1, 2, 3, 456789))] if hasattr(st, "TimeType") else []),
        ("timestamp", dt.datetime(2026, 3, 8, 2, 30, 0, 1)),
        ("timestamptz", dt.datetime(1900, 1, 1, 0, 0, 0, 1, dt.timezone.utc)),
        ("decimal(38, 10)", Decimal("1234567890123456789012345678.0123456789")),
        ("double", -0.0),
        ("float", math.nan),
        (listed, [{"a": 1, "b": None}, None]),
        (mapped, [("k", [1, None])]),
        ("boolean", True),
    ]
    columns = [ice.NestedField(1, "id", "long", required=True), ice.NestedField(2, "a.b `c`", "string")]
    schema = ice.Schema(*columns)
    table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
    with table.update_schema() as change:
        for number, (kind, _) in enumerate(kinds):
            change.add_column(f"c{number}", kind)
    rows = [{"id": 1, "a.b `c`": "x"}, {"id": 2, "a.b `c`": None}]
    rows[0].update({f"c{number}": value for number, (_, value) in enumerate(kinds)})
    table.append(pa.Table.from_pylist(rows, table.schema().to_arrow()))
    before = {one["id"]: one for one in table.scan().to_arrow().to_pylist()}
    source = spark.createDataFrame([(1, "y"), (2, "z"), (3, "new")], "id BIGINT, `a.b ``c``` STRING")

    def expect(texts: dict[int, str]) -> None:
        found = {one["id"]: one for one in table.refresh().scan().to_arrow().to_pylist()}
        for number, text in texts.items():
            assert found[number]["a.b `c`"] == text
            expected = {**before.get(number, dict.fromkeys(before[1])), "id": number, "a.b `c`": text}
            assert str(found[number]) == str(expected)  # as text, NaN is equal to itself

    ice_spark.update(spark, table, {"a.b `c`": "concat('u', id)"}, "`a.b ``c``` = 'x' OR id = 2")
    expect({1: "u1", 2: "u2"})
    merge = ice_spark.merge(source, table, "id").when_matched_update_all("source.id = 1")
    merge.when_matched_update(
        {"a.b `c`": "concat(source.`a.b ``c```, target.id)"}
    ).when_not_matched_insert_all().execute()
    expect({1: "y", 2: "z2", 3: "new"})
    assert ice_spark.upsert(source, table, "id").rows_updated == 1
    expect({1: "y", 2: "z", 3: "new"})


def test_nanoseconds_are_not_cut(spark: SparkSession, catalog: ice.Catalog) -> None:
    schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "at", "timestamp_ns"))
    table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
    table.append(pa.table({"id": [1, 2], "at": pa.array([1, 1_000_001], pa.timestamp("ns"))}))
    with pytest.raises(ice.errors.UnsupportedFeatureError, match="column at: Spark has no nanoseconds"):
        ice_spark.update(spark, table, {"id": 3}, "id = 1")
    merge = ice_spark.merge(spark.range(3), table, "id").when_matched_update_all()
    with pytest.raises(ice.errors.UnsupportedFeatureError, match="column at: Spark has no nanoseconds"):
        merge.execute()
    assert ice_spark.delete(spark, table, "id + 0 = 2").rows_removed == 1
    assert table.refresh().scan().to_arrow()["at"].cast(pa.int64()).to_pylist() == [1]


@pytest.fixture
def twins(spark: SparkSession, catalog: ice.Catalog) -> Twins:
    return Twins(spark, catalog, 3, "merge-on-read")


def test_nothing_to_do_makes_no_snapshot(spark: SparkSession, twins: Twins) -> None:
    before = twins.mine.refresh().metadata_location
    rows = twins.frame([row(1, n=10, day=1), row(None, "no key")])
    for nothing in (
        ice_spark.delete(spark, twins.mine, "id = 999"),
        ice_spark.delete(spark, twins.mine, "1 = 2"),
        ice_spark.update(spark, twins.mine, {"n": 1}, "upper(s) = 'nobody'"),
        ice_spark.upsert(rows.where("id = 1"), twins.mine, "id"),  # as it is there
        ice_spark.upsert(rows.limit(0), twins.mine, "id"),
        ice_spark.merge(rows, twins.mine, "id").when_matched_delete("source.n = 11").execute(),
    ):
        assert set(counts(nothing)) == {0}
    assert twins.mine.refresh().metadata_location == before


def test_several_rows_of_the_source_for_one_row(twins: Twins) -> None:
    source = [row(1, "a"), row(1, "b"), row(2)]
    before = twins.mine.refresh().metadata_location
    merge = ice_spark.merge(twins.frame(source), twins.mine, "id").when_matched_update({"s": "source.s"})
    with pytest.raises(ice.InvalidArgumentError, match="is matched by more than one row of the source"):
        merge.execute()
    with pytest.raises(ice.InvalidArgumentError, match=r"upsert: a key \(id\) occurs twice in the rows"):
        ice_spark.upsert(twins.frame([*source, row(50), row(50)]), twins.mine, "id")
    assert twins.mine.refresh().metadata_location == before
    assert left_over(twins.mine) == set()
    # It does not matter where only one of them does something, or all do the same.
    one = ice_spark.merge(twins.frame(source), twins.mine, "id").when_matched_update(
        {"s": "source.s"}, "source.s = 'b'"
    )
    assert one.execute().rows_updated == 1
    all_alike = ice_spark.merge(twins.frame(source), twins.mine, "id").when_matched_delete()
    assert all_alike.execute().rows_deleted == 2
    twins.plain.delete("id in (1, 2)")
    twins.same()


def test_conditions_for_the_join(twins: Twins) -> None:
    """Text and columns; what they say of the table alone skips files."""
    from icefield.spark.changing.conditions import filter_of_join

    source = twins.frame([row(1, "x"), row(13, "x"), row(14, "x")]).alias("source")
    on = "target.id = source.id AND target.id < 14"
    found = filter_of_join(source, F.expr(on), twins.mine.schema())
    assert "14" in str(found)
    for condition in (on, F.expr(on)):
        ice_spark.merge(source, twins.mine, condition).when_matched_update(
            {"s": "concat(source.s, target.s)"}
        ).execute()
    twins.plain.update({"s": pa.scalar("xxs1")}, "id = 1")
    twins.plain.update({"s": pa.scalar("xxs13")}, "id = 13")
    twins.same()


def test_columns_that_one_side_lacks(spark: SparkSession, twins: Twins) -> None:
    less = spark.createDataFrame([(1, "x"), (60, "y")], "id BIGINT, s STRING")
    plain = pa.table({"id": [1, 60], "s": ["x", "y"]})
    for builder in (ice_spark.merge(less, twins.mine, "id"), twins.plain.merge(plain, "id")):
        builder.when_matched_update_all().when_not_matched_insert_all().execute()
    twins.same()

    more = spark.createDataFrame([(1, 2**40, "z"), (61, 5, None)], "id BIGINT, n BIGINT, extra STRING")
    plain = pa.table({"id": [1, 61], "n": [2**40, 5], "extra": ["z", None]})
    merge = ice_spark.merge(more.drop("n"), twins.mine, "id").when_matched_update_all()
    with pytest.raises(ice.errors.ValidationError, match="column extra: not in the table"):
        merge.execute()
    strict = ice_spark.merge(less, twins.mine, "id", schema_mode="strict").when_matched_update_all()
    with pytest.raises(ice.errors.ValidationError, match="column day: missing in the data"):
        strict.execute()
    for builder in (
        ice_spark.merge(more, twins.mine, "id", schema_mode="evolve"),
        twins.plain.merge(plain, "id", schema_mode="evolve"),
    ):
        builder.when_matched_update_all().when_not_matched_insert_all().execute()
    twins.same()
    assert str(twins.mine.schema().find_field("n").field_type) == "long"


def test_defaults_of_new_rows(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties={"format-version": "3"})
    table.append(pa.table({"id": [1]}))
    with table.update_schema() as change:
        change.add_column("kind", "string", default_value="usual")
    source = spark.createDataFrame([(1,), (2,)], "id BIGINT")
    merge = ice_spark.merge(source, table, "id").when_matched_update({"kind": "'odd'"})
    merge.when_not_matched_insert({"id": "source.id"}).execute()
    assert sorted(one["kind"] for one in table.refresh().scan().to_arrow().to_pylist()) == ["odd", "usual"]


def test_a_source_that_is_not_the_same_twice(spark: SparkSession, twins: Twins) -> None:
    """Every row is there once, and has its own new value, whatever the source gave."""
    ids = twins.mine.scan().to_arrow()["id"].to_pylist()
    source = spark.range(0, 20, 1, 4).where("rand() < 0.5").selectExpr("id", "uuid() AS s", "rand() AS r")
    merge = ice_spark.merge(source, twins.mine, "id").when_matched_delete("source.r < 0.3")
    done = merge.when_matched_update({"s": "source.s"}).execute()
    rows = twins.mine.refresh().scan().to_arrow().to_pylist()
    found = [one["id"] for one in rows]
    assert len(found) == len(ids) - done.rows_deleted
    assert len(set(found)) == len(found) - 1, "two have no key"
    assert sum(len(one["s"] or "") == 36 for one in rows) == done.rows_updated


@contextmanager
def meanwhile(monkeypatch: pytest.MonkeyPatch, change: Any) -> Iterator[None]:
    """Run a change while the job of another one runs."""
    from icefield.spark.sessions.jobs import Jobs

    tagged = Jobs.tagged

    @contextmanager
    def changing(jobs: Jobs) -> Iterator[None]:
        with tagged(jobs):
            change()
            yield

    with monkeypatch.context() as patch:
        patch.setattr(Jobs, "tagged", changing)
        yield


def test_other_commits_meanwhile(
    spark: SparkSession, catalog: ice.Catalog, twins: Twins, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = catalog.load_table("db.mine")

    def add(number: int) -> None:
        other.refresh().append(arrow([row(number)]))

    with (
        meanwhile(monkeypatch, lambda: add(2)),
        pytest.raises(ice.errors.ValidationException, match="may have rows that match"),
    ):
        ice_spark.delete(spark, twins.mine, "id < 3")
    assert left_over(twins.mine) == set()
    with meanwhile(monkeypatch, lambda: add(70)):
        assert ice_spark.delete(spark, twins.mine, "id < 3 AND upper(s) > 'A'").rows_removed == 4
    with meanwhile(monkeypatch, lambda: add(1)):
        ice_spark.delete(spark, twins.mine, "id < 3", isolation="snapshot")
    assert twins.mine.refresh().scan("id = 1 or id = 70").count() == 2


def test_keywords_of_all_changes(spark: SparkSession, twins: Twins) -> None:
    rows = twins.frame([row(1, "x"), row(80)])
    calls: list[Any] = [
        lambda **more: ice_spark.delete(spark, twins.mine, "id = 3", **more),
        lambda **more: ice_spark.update(spark, twins.mine, {"s": "'x'"}, "id = 4", **more),
        lambda **more: ice_spark.merge(rows, twins.mine, "id", **more).when_not_matched_insert_all().execute(),
        lambda **more: ice_spark.upsert(
            rows.limit(0).unionByName(twins.frame([row(6, "z")])), twins.mine, "id", **more
        ),
        lambda **more: ice_spark.write(rows, twins.mine, "overwrite", filter="id = 1", **more),
    ]
    for number, call in enumerate(calls):
        before = twins.mine.refresh().metadata_location
        assert max(counts(call(dry_run=True))) > 0
        assert twins.mine.refresh().metadata_location == before
        assert left_over(twins.mine) == set()
        more = {"idempotency_key": f"k{number}", "snapshot_properties": {"by": f"me{number}"}, "branch": "b"}
        assert max(counts(call(**more))) > 0
        snapshots = len(twins.mine.refresh().snapshots())
        assert max(counts(call(**more))) == 0
        assert len(twins.mine.refresh().snapshots()) == snapshots
        assert twins.mine.snapshot_by_name("b").summary["by"] == f"me{number}"
        with pytest.raises(ice.InvalidArgumentError, match="isolatoin is neither an argument nor a catalog property"):
            call(isolatoin="snapshot")
    assert twins.mine.scan().count() == 21, "main is as it was"


def test_tasks_that_are_tried_again(twins: Twins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from icefield.distributed import FilesLeft, RowChangePlan

    marks, discard_lost = str(tmp_path), RowChangePlan.discard_lost

    def discarding(plan: RowChangePlan, storage: Any, committed: Any) -> FilesLeft:
        # What a worker leaves that is killed.
        storage.write(f"{twins.mine.location()}/data/00000-9999-{plan.write_id}-00001.parquet", b"half of a file")
        assert len(left_over(twins.mine)) == 1
        return discard_lost(plan, storage, committed)

    monkeypatch.setattr(RowChangePlan, "discard_lost", discarding)

    def fail_first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        mark = Path(marks, f"tried-{TaskContext.get().partitionId()}")
        if not mark.exists():
            mark.touch()
            raise RuntimeError("the first attempt fails after its rows")

    source = twins.frame([row(1, "x"), row(2, "x"), row(90), row(91)]).mapInArrow(fail_first, DDL)
    merge = ice_spark.merge(source, twins.mine, "id").when_matched_update_all().when_not_matched_insert_all()
    done = merge.execute()
    assert (done.rows_updated, done.rows_inserted) == (2, 2)
    assert list(tmp_path.glob("tried-*"))
    assert twins.mine.refresh().scan().count() == 23
    assert left_over(twins.mine) == set()


def test_what_fails_leaves_nothing(spark: SparkSession, twins: Twins) -> None:
    before = twins.mine.refresh().metadata_location
    source = twins.frame([row(1, "x"), row(2, "y")])
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: ice_spark.delete(spark, twins.mine, None), ice.InvalidArgumentError, "condition is None"),  # type: ignore[arg-type]
        (lambda: ice_spark.delete(spark, twins.mine, 5), ice.errors.ArgumentTypeError, "expected text of Spark SQL"),  # type: ignore[arg-type]
        (
            lambda: ice_spark.update(spark, twins.mine, {"no": 1}),
            ice.InvalidArgumentError,
            "the table has no column 'no'",
        ),
        (lambda: ice_spark.update(spark, twins.mine, {}), ice.InvalidArgumentError, "there is no column to change"),
        (lambda: ice_spark.merge(source, twins.mine, []), ice.InvalidArgumentError, "name the columns of the key"),
        (lambda: ice_spark.merge(source, twins.mine, "id").execute(), ice.InvalidArgumentError, "there is no clause"),
        (lambda: ice_spark.upsert(source, twins.mine), ice.InvalidArgumentError, "there is no key"),
        (lambda: ice_spark.upsert(source.drop("id"), twins.mine, "id"), ice.errors.ValidationError, "column id"),
        # Spark's own: a number that does not fit, a text for a number, an error of a value.
        (lambda: ice_spark.update(spark, twins.mine, {"n": 2**40}, "id = 1"), Exception, "OVERFLOW"),
        (lambda: ice_spark.update(spark, twins.mine, {"n": "'x'"}, "id = 1"), Exception, "INT"),
        (lambda: ice_spark.update(spark, twins.mine, {"s": "raise_error('no')"}, "id = 1"), Exception, "no"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message):
            call()
    assert twins.mine.refresh().metadata_location == before
    assert left_over(twins.mine) == set()
