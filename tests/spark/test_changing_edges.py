"""Changes of rows by the executors at their edges: odd values, names, clocks, and what Spark does by itself."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError, ValidationError
from icefield.expressions import AlwaysTrue

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")

UTC = dt.timezone.utc
EPOCH = dt.datetime(1970, 1, 1, tzinfo=UTC)


def table_of(catalog: ice.Catalog, *fields: ice.NestedField, rows: list[dict[str, Any]] | None = None) -> ice.Table:
    table = catalog.create_table("db.t", ice.Schema(*fields), properties={"format-version": "3"})
    return table.append(pa.Table.from_pylist(rows, table.schema().to_arrow())) if rows else table


def rows_of(table: ice.Table) -> list[dict[str, Any]]:
    return sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda one: str(one.get("id")))


# What becomes of literals


class Timestamp:
    """A value of Java."""

    def __init__(self, micros: int) -> None:
        self.micros = micros

    def getClass(self) -> Any:  # noqa: N802 - as in Java
        return SimpleNamespace(getSimpleName=lambda: type(self).__name__)

    def toInstant(self) -> Timestamp:  # noqa: N802
        return self

    def getEpochSecond(self) -> int:  # noqa: N802
        return self.micros // 1_000_000

    def getNano(self) -> int:  # noqa: N802
        return self.micros % 1_000_000 * 1000


class Instant(Timestamp):
    """The newer class, which has one calendar."""


def test_literals_of_any_size() -> None:
    from icefield.spark.changing.conditions import _decimal, _instant, _local

    draw = random.Random(5)
    first, last = dt.datetime(1900, 1, 3, tzinfo=UTC), dt.datetime.max.replace(tzinfo=UTC)
    limits = [(at - EPOCH) // dt.timedelta(microseconds=1) for at in (first, last)]
    near = [limit + step for limit in limits for step in (-86_400_000_000, -1, 0, 1)]
    for micros in near + [draw.randint(-(10**17), 3 * 10**17) for _ in range(300)]:
        inside = limits[0] <= micros <= limits[1]
        expected = (EPOCH + dt.timedelta(microseconds=micros)).isoformat(timespec="microseconds") if inside else None
        assert _instant(Timestamp(micros)) == expected
        if inside:
            assert _instant(Instant(micros)) == expected
    assert _instant(Instant(limits[1] + 1)) is None
    assert (_local("0000-01-01T00:00"), _local("+10000-01-01T00:00")) == (None, None)
    for _ in range(200):
        scale, digits = draw.randint(1, 38), draw.randint(1, 38)
        unscaled = draw.randint(-(10**digits) + 1, 10**digits - 1)
        number = Decimal(f"{unscaled}E-{scale}")
        assert Decimal(_decimal(number, scale) or "") == number
        assert Decimal(_decimal(number, 38) or "") == number
        assert (_decimal(number, scale - 1) is None) == (unscaled % 10 != 0)


YEARS = [1, 4, 1000, 1582, 1583, 1700, 1883, 1899, 1900, 1901, 1970, 2026, 9998, 9999]


def test_times_of_any_year(spark: SparkSession, catalog: ice.Catalog) -> None:
    """What Iceberg has of a condition matches the rows that the condition holds for, in any year."""
    from icefield.spark.changing.conditions import found

    rows: list[dict[str, Any]] = []
    for number, year in enumerate(YEARS):
        for month, day in ((1, 1), (3, 1), (12, 31)):
            at = dt.datetime(year, month, day, 12, 34, 56, 789, tzinfo=UTC)
            rows.append({"id": number, "at": at, "l": at.replace(tzinfo=None), "day": at.date()})
    kinds = zip(("id", "at", "l", "day"), ("long", "timestamptz", "timestamp", "date"), strict=True)
    table = table_of(catalog, *(ice.NestedField(n, *one) for n, one in enumerate(kinds, 1)), rows=rows)
    compared: dict[str, Callable[[Any, Any], bool]] = {
        "=": lambda a, b: a == b,
        "<": lambda a, b: a < b,
        ">=": lambda a, b: a >= b,
    }
    draw = random.Random(1)
    for one in rows:
        texts = {
            "at": f"TIMESTAMP'{one['at']:%m-%d %H:%M:%S.%f} UTC'".replace("'", f"'{one['at'].year:04}-", 1),
            "l": f"TIMESTAMP_NTZ'{one['l'].isoformat(' ')}'",
            "day": f"DATE'{one['day']}'",
        }
        for name, text in texts.items():
            sign = draw.choice([*compared])
            known = found(spark, f"{name} {sign} {text}", table.schema())
            expected = [row for row in rows if compared[sign](row[name], one[name])]
            scanned = table.scan(known.filter).to_arrow().to_pylist()
            if known.column is None:
                assert len(scanned) == len(expected), (name, sign, text)
            assert all(row in scanned for row in expected), (name, sign, text)
    wrong = "at = TIMESTAMP'1850-01-01 00:00:00' OR at = TIMESTAMP'0001-01-01 00:00:00' OR at > '9999-12-31 23:59:59'"
    assert ice_spark.delete(spark, table, wrong).rows_removed == 0


def test_the_current_time_is_no_filter_of_a_merge(spark: SparkSession, catalog: ice.Catalog) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    from icefield.spark.changing.conditions import filter_of_join

    fields = [
        ice.NestedField(1, "id", "long"),
        ice.NestedField(2, "at", "timestamptz"),
        ice.NestedField(3, "d", "date"),
    ]
    schema = table_of(catalog, *fields).schema()
    source = spark.range(3).alias("source")
    of_time = ["target.at < now()", "target.at < current_timestamp()", "target.d = current_date()"]
    for text in [*of_time, "target.at < localtimestamp()"]:
        condition = F.expr(f"target.id = source.id AND target.id > 1 AND {text}")
        assert isinstance(filter_of_join(source, condition, schema), AlwaysTrue), text
    late = spark.range(3).withColumn("now", F.current_timestamp()).alias("source")
    assert isinstance(filter_of_join(late, F.expr("target.at < source.now"), schema), AlwaysTrue)
    assert not isinstance(filter_of_join(source, F.expr("target.id = source.id AND target.id > 1"), schema), AlwaysTrue)


# Names and fields


def test_names_in_another_letter_case(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    """A name that differs from one of the table in letter case only is that one, at any depth."""
    inner = ice.types.StructType(ice.NestedField(10, "aB", "int"), ice.NestedField(11, "c", "string"))
    other_inner = ice.types.StructType(ice.NestedField(13, "aB", "int"), ice.NestedField(14, "c", "string"))
    listed = ice.types.ListType(12, other_inner, False)
    fields = [ice.NestedField(n, *one) for n, one in enumerate([("id", "long"), ("sT", inner), ("Ls", listed)], 1)]
    row = {"id": 1, "sT": {"aB": 1, "c": "x"}, "Ls": [{"aB": 1, "c": "x"}]}
    table = table_of(catalog, *fields, rows=[row])
    frame = spark.sql(
        "SELECT 1L AS ID, named_struct('AB', 2, 'C', 'y') AS st, array(named_struct('ab', 3, 'C', 'z')) AS ls, "
        "'n' AS New"
    )
    expected = {"id": 1, "sT": {"aB": 2, "c": "y"}, "Ls": [{"aB": 3, "c": "z"}], "New": "n"}
    other = frame.withColumn("ID", frame["ID"] + 1)
    calls: list[Callable[[], object]] = [
        lambda: ice_spark.append(frame, table, schema_mode="evolve"),
        lambda: ice_spark.write(frame, table, "overwrite", schema_mode="evolve"),
        lambda: ice_spark.upsert(frame, table, "id", schema_mode="evolve"),
        lambda: ice_spark.merge(frame, table, "id", schema_mode="evolve").when_matched_update_all().execute(),
        lambda: ice_spark.merge(other, table, "ID", schema_mode="evolve").when_not_matched_insert_all().execute(),
    ]
    for number, call in enumerate(calls):
        call()
        assert [field.name for field in table.refresh().schema().fields] == ["id", "sT", "Ls", "New"]
        assert {**expected, "id": 1 if number < 4 else 2} in rows_of(table)
        table.overwrite(pa.Table.from_pylist([{**row, "New": None}], table.schema().to_arrow()))
    with pytest.raises(ValidationError, match="columns ID and Id of the data: the names differ in letter case only"):
        ice_spark.append(spark.range(1).toDF("ID").selectExpr("ID", "ID AS Id"), table)

    # The data source is not told whether the session takes them for one.
    before = table.refresh().metadata_location
    for text, name in (("1L AS ID", "ID"), ("1L AS id, named_struct('AB', 2, 'c', 'y') AS sT", "sT.AB")):
        writer = spark.sql(f"SELECT {text}").write.format("icefield").options(**options)
        with pytest.raises(Exception, match=f"column {name}: the table has .* differ in letter case only"):
            writer.option("mergeSchema", "true").mode("append").save("db.t")
    assert table.refresh().metadata_location == before
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        ice_spark.append(spark.sql("SELECT 1L AS ID"), table, schema_mode="evolve")
        assert [field.name for field in table.refresh().schema().fields] == ["id", "sT", "Ls", "New", "ID"]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_new_columns_beside_types_that_spark_lacks(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]
) -> None:
    inner = ice.types.StructType(ice.NestedField(10, "a", "int", required=True), ice.NestedField(11, "b", "uuid"))
    kinds: list[Any] = ["long", "uuid", "fixed[2]", "timestamp_ns", inner, "geometry"]
    table = table_of(catalog, *(ice.NestedField(n, f"c{n}", kind) for n, kind in enumerate(kinds, 1)))
    before = table.schema().fields
    text = str(uuid.uuid4())
    frame = spark.sql(
        f"SELECT 1L AS c1, '{text}' AS c2, X'6162' AS c3, TIMESTAMP_NTZ'2026-01-01 00:00:00' AS c4, "
        f"named_struct('a', 1, 'b', '{text}') AS c5, CAST(NULL AS BINARY) AS c6, 'n' AS more"
    )
    frame.write.format("icefield").options(**options).option("mergeSchema", "true").mode("append").save("db.t")
    assert [*map(str, table.refresh().schema().fields[:6])] == [*map(str, before)]
    merge = ice_spark.merge(frame.withColumnRenamed("more", "other"), table, "c1", schema_mode="evolve")
    assert merge.when_matched_update_all().execute().rows_updated == 1
    assert [*map(str, table.refresh().schema().fields[:6])] == [*map(str, before)]
    [found] = table.scan().to_arrow().to_pylist()
    assert (found["more"], found["other"], found["c5"]["b"]) == ("n", "n", uuid.UUID(text))


def test_upserts_of_rows_that_differ_in_new_columns_only(spark: SparkSession, catalog: ice.Catalog) -> None:
    inner = ice.types.StructType(ice.NestedField(10, "a", "string"), ice.NestedField(11, "b", "string"))
    fields = [ice.NestedField(1, "id", "long"), ice.NestedField(2, "st", inner)]
    row = {"id": 1, "st": {"a": "x", "b": "y"}}
    table = table_of(catalog, *fields, rows=[row, {"id": 2, "st": None}])
    same, swapped = "named_struct('a', 'x', 'b', 'y') AS st", "named_struct('b', 'x', 'a', 'y') AS st"
    cases: list[tuple[str, int, dict[str, Any]]] = [
        (f"1L AS id, {same}", 0, {}),
        (f"1L AS id, {swapped}", 1, {"st": {"a": "y", "b": "x"}}),
        ("1L AS id, named_struct('a', 'y', 'b', 'x') AS st, 'n' AS w", 1, {"st": {"a": "y", "b": "x"}, "w": "n"}),
        ("1L AS id, named_struct('a', 'y', 'b', 'x', 'z', 'n') AS st", 1, {"st": {"a": "y", "b": "x", "z": "n"}}),
    ]
    for text, updated, expected in cases:
        done = ice_spark.upsert(spark.sql(f"SELECT {text}"), table, "id", schema_mode="evolve")
        assert (done.rows_updated, done.rows_inserted) == (updated, 0), text
        found = rows_of(table)[0]
        assert {name: found[name] for name in expected} == expected
    with pytest.raises(ValidationError, match="column more: not in the table"):
        ice_spark.upsert(spark.sql("SELECT 1L AS id, 'n' AS more"), table, "id")


FIELDS = [
    # The new value of a struct of a and b, the latter of which has a list of structs; and what is wrong with it.
    ("named_struct('a', 1)", "column st.b: missing in the new value"),
    ("named_struct('a', 1, 'b', array(named_struct('c', 1)), 'x', 2)", "column st.x: not in the table"),
    ("named_struct('a', 1, 'b', array(named_struct('d', 1)))", "column st.b.element.d: not in the table"),
    ("named_struct('B', array(named_struct('C', 1)), 'A', 7)", None),
    ("NULL", None),
]


@pytest.mark.parametrize(("value", "wrong"), FIELDS)
def test_fields_of_new_values(spark: SparkSession, catalog: ice.Catalog, value: str, wrong: str | None) -> None:
    listed = ice.types.ListType(12, ice.types.StructType(ice.NestedField(13, "c", "int")), False)
    inner = ice.types.StructType(ice.NestedField(10, "a", "int"), ice.NestedField(11, "b", listed))
    row = {"id": 1, "st": {"a": 5, "b": [{"c": 6}]}}
    table = table_of(catalog, ice.NestedField(1, "id", "long"), ice.NestedField(2, "st", inner), rows=[row])
    source = spark.sql(f"SELECT 1L AS id, {value} AS st")
    calls: list[Callable[[], object]] = [
        lambda: ice_spark.update(spark, table, {"st": value}),
        lambda: ice_spark.merge(source, table, "id").when_matched_update({"st": "source.st"}).execute(),
        lambda: ice_spark.merge(source, table, "id").when_matched_update_all().execute(),
        lambda: ice_spark.upsert(source, table, "id"),
    ]
    for call in calls[: 4 if value != "NULL" else 1]:
        if wrong is None:
            call()
            expected = None if value == "NULL" else {"a": 7, "b": [{"c": 1}]}
            assert rows_of(table) == [{"id": 1, "st": expected}]
            continue
        with pytest.raises(ValidationError, match=wrong):
            call()
        assert rows_of(table) == [row]
    # As in an append, a new row may lack what is optional.
    merge = ice_spark.merge(spark.sql("SELECT 2L AS id, named_struct('a', 1) AS st"), table, "id")
    assert merge.when_not_matched_insert_all().execute().rows_inserted == 1


def test_columns_of_a_source_that_are_called_as_those_of_places(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = table_of(catalog, ice.NestedField(1, "id", "long"), ice.NestedField(2, "s", "string"))
    table.append(pa.table({"id": [1, 2], "s": ["a", "b"]}))
    source = spark.sql("SELECT id, 'no' AS _file, -1L AS _pos, 99L AS _row_id, 'new' AS s FROM range(1, 4)")
    merge = ice_spark.merge(source, table, "id", extra_columns="ignore").when_matched_update_all("source.id = 1")
    done = merge.when_matched_delete().when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_deleted, done.rows_inserted) == (1, 1, 1)
    assert [(one["id"], one["s"]) for one in rows_of(table)] == [(1, "new"), (3, "new")]
    merge = ice_spark.merge(source, table, "id", extra_columns="ignore").when_matched_delete()
    assert merge.execute().rows_deleted == 2


# Values


def test_defaults_of_all_types(spark: SparkSession, catalog: ice.Catalog) -> None:
    """A column that new rows lack has in them what it has in rows from before it."""
    from pyspark.sql import types as st

    table = table_of(catalog, ice.NestedField(1, "id", "long"), rows=[{"id": 1}])
    values: dict[str, Any] = {
        "date": dt.date(1500, 1, 2),
        "time": dt.time(1, 2, 3, 4),
        "timestamp": dt.datetime(2026, 3, 8, 2, 30, 0, 5),
        "timestamptz": dt.datetime(1800, 1, 2, 3, tzinfo=UTC),
        "uuid": uuid.UUID(int=5),
        "decimal(38, 2)": Decimal("123456789012345678901234567890123456.78"),
        "binary": b"\x00\xff",
        "fixed[2]": b"ab",
        "string": "x",
        "boolean": True,
        "float": 1.5,
        "int": 3,
    }
    if not hasattr(st, "TimeType"):
        del values["time"]  # PySpark 4.0 has no such type
    with table.update_schema() as change:
        for number, (kind, value) in enumerate(values.items()):
            change.add_column(f"c{number}", kind, default_value=value)
    merge = ice_spark.merge(spark.range(1, 3), table, "id").when_not_matched_insert({"id": "source.id"})
    assert merge.execute().rows_inserted == 1
    first, second = rows_of(table)
    assert {**first, "id": 2} == second
    assert second["c0"] == values["date"]


def test_values_of_clauses_that_do_not_apply(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = table_of(catalog, ice.NestedField(1, "id", "long"), ice.NestedField(2, "n", "int"))
    table.append(pa.table({"id": [1, 2], "n": pa.array([1, 2], pa.int32())}))
    source = spark.sql("SELECT id, if(id = 1, 0, 2) AS d, if(id = 3, 5, 5000000000) AS big FROM range(1, 4)")
    merge = ice_spark.merge(source, table, "id")
    merge.when_matched_update({"n": "cast(10 / source.d AS INT)"}, "source.d <> 0")
    merge.when_matched_update({"n": "source.d - 1"})
    merge.when_not_matched_insert({"id": "source.id", "n": "source.big"})
    merge.execute()
    assert [(one["id"], one["n"]) for one in rows_of(table)] == [(1, -1), (2, 5), (3, 5)]


def test_columns_that_spark_has_no_type_for(
    spark: SparkSession, catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icefield.spark.columns import types

    fields = [ice.NestedField(1, "id", "long"), ice.NestedField(2, "u", "uuid"), ice.NestedField(3, "s", "string")]
    table = table_of(catalog, *fields)
    table.append(pa.table({"id": [1, 2, 3, 4], "s": ["a", "b", "c", "d"]}))
    monkeypatch.delitem(types._CLASSES, "uuid")
    assert ice_spark.delete(spark, table, "id = 1").rows_removed == 1
    assert ice_spark.delete(spark, table, "upper(s) = 'B'").rows_removed == 1
    assert ice_spark.delete(spark, table, "id IN (SELECT max(id) FROM range(4))").rows_removed == 1
    assert ice_spark.merge(spark.range(5), table, "id").when_matched_delete().execute().rows_deleted == 1
    with pytest.raises(ice.errors.UnsupportedFeatureError, match="column 'u'"):
        ice_spark.update(spark, table, {"s": "'x'"})


# What Spark does by itself


def test_rows_that_were_lost_and_came_out_otherwise(
    spark: SparkSession, catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icefield.spark.changing import running

    table = table_of(catalog, ice.NestedField(1, "id", "long"), ice.NestedField(2, "s", "string"))
    table.append(pa.table({"id": list(range(50)), "s": ["a"] * 50}))
    known = {path for path, _ in table.storage.list(f"{table.location()}/data")}
    before, done = table.metadata_location, running._done

    def without_some(rows: Any) -> running.Done:
        found = list(rows)
        found.remove(next(one for one in found if one[0] == "added"))
        return done(found)

    with monkeypatch.context() as patch:
        patch.setattr(running, "_done", without_some)
        with pytest.raises(InvalidArgumentError, match="were not the same as before"):
            ice_spark.update(spark, table, {"s": "concat('b', id)"}, distribution="none")
    assert table.refresh().metadata_location == before
    assert {path for path, _ in table.storage.list(f"{table.location()}/data")} == known
    assert ice_spark.update(spark, table, {"s": "'b'"}).rows_added == 50


def test_errors_after_a_commit_are_warnings(
    spark: SparkSession, catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    from icefield.spark.sessions.jobs import Jobs

    def gone(_jobs: Jobs) -> bool:
        raise RuntimeError("Spark is gone")

    monkeypatch.setattr(Jobs, "lost_some", gone)
    table = table_of(catalog, ice.NestedField(1, "id", "long"))
    with pytest.warns(RuntimeWarning, match="the commit was made, but .* Spark is gone"):
        ice_spark.append(spark.range(3), table)
    with pytest.warns(RuntimeWarning, match="the commit was made, but .* Spark is gone"):
        assert ice_spark.delete(spark, table, "id + 0 = 1").rows_removed == 1
    assert table.refresh().scan().count() == 2


@pytest.mark.parametrize(
    ("given", "inserted", "expected"),
    [("7", None, 7), ("7", 0, 6), ("auto", None, 200), ("200", 1 << 20, 6), ("200", 1 << 32, 64), ("7", 1 << 70, 7)],
)
def test_number_of_tasks(monkeypatch: pytest.MonkeyPatch, given: str, inserted: int | None, expected: int) -> None:
    from icefield.spark.changing import running

    monkeypatch.setattr(running, "at_once", lambda _spark: 3)
    target: Any = SimpleNamespace(spark=SimpleNamespace(conf=SimpleNamespace(get=lambda _name: given)))
    plan: Any = SimpleNamespace(files=1)
    assert running._number_of_tasks(target, plan, inserted) == expected


def test_rows_are_clustered_only_by_all_partition_fields(catalog: ice.Catalog) -> None:
    from pyspark.sql import types as st

    from icefield.spark.writes.distributing import has_all_keys

    inner = ice.types.StructType(ice.NestedField(10, "x", "int"))
    table = table_of(catalog, ice.NestedField(1, "id", "long"), ice.NestedField(2, "st", inner))
    whole = st.StructType().add("id", st.LongType()).add("st", st.StructType().add("x", st.IntegerType()))
    cases: list[tuple[list[str], st.StructType, bool]] = [
        (["id"], whole, True),
        (["id", "bucket(4, id)"], whole, True),
        (["id", "st.x"], whole, False),
        (["id", "st.x"], st.StructType().add("id", st.LongType()), True),
        (["bucket(4, id)"], st.StructType().add("id", st.IntegerType()), False),
        (["st.x"], st.StructType().add("id", st.LongType()), False),
    ]
    for number, (fields, schema, expected) in enumerate(cases):
        partitioned = catalog.create_table(f"db.t{number}", table.schema(), partition_by=fields)
        frame: Any = SimpleNamespace(schema=schema, columns=schema.names)
        assert has_all_keys(frame, partitioned) == expected, fields


def test_files_of_epochs_that_the_table_may_have(catalog: ice.Catalog) -> None:
    from icefield.distributed import TaskWriter
    from icefield.spark.sinks.epochs import epoch, last_epoch, may_have_write

    table = table_of(catalog, ice.NestedField(1, "id", "long"))
    rows, plans = pa.table({"id": [1]}), []
    for number in range(3):
        plan = table.new_write()
        with TaskWriter(plan, table.storage, rows.schema) as writer:
            writer.write(rows)
        assert writer.written is not None
        table.commit_files(plan, [writer.written], epoch("q", number)["snapshot_properties"])
        plans.append(plan)
    other, last = table.new_write(), last_epoch(table, "main", "q")
    assert last is not None
    assert last.number == 2

    def answers(write_id: str) -> list[bool]:
        return [may_have_write(table, "main", write_id, number, last) for number in (0, 2)]

    assert [answers(plan.write_id) for plan in plans] == [[True, True]] * 3
    assert answers(other.write_id) == [False, False]
    table.expire_snapshots(retain_last=1, older_than=dt.datetime.now(UTC))
    assert answers(plans[0].write_id) == [True, False], "an expired snapshot may have been of any write"
    assert answers(plans[2].write_id) == [True, True]


def test_options_of_delete_files() -> None:
    from icefield.spark.tables.options import check, write_properties

    given = {"delete-format": "avro", "delete-granularity": "partition", "target-delete-file-size-bytes": "1000"}
    check(given, "write")
    assert write_properties(given, "parquet") == {
        "write.delete.format.default": "avro",
        "write.delete.granularity": "partition",
        "write.delete.target-file-size-bytes": "1000",
    }
