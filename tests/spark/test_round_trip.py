"""Rows of every Spark type through each way of writing and each way of reading."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ice_spark = pytest.importorskip("icefield.spark")

DDL = """
    id BIGINT NOT NULL, b BOOLEAN, i8 TINYINT, i16 SMALLINT, i INT, f FLOAT, d DOUBLE, small DECIMAL(9, 2),
    big DECIMAL(38, 10), day DATE, tz TIMESTAMP, ts TIMESTAMP_NTZ, s STRING, bin BINARY, list ARRAY<INT>,
    map MAP<STRING, DOUBLE>, st STRUCT<x: INT, y: STRUCT<z: STRING>>, deep ARRAY<STRUCT<k: STRING, v: MAP<INT, DATE>>>
"""
UTC = dt.timezone.utc


def rows() -> list[tuple[Any, ...]]:
    """Make rows of plain values, of extremes, of empties and of nulls."""
    moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)
    plain = (
        (1, True, 1, 2, 3, 0.5, -0.25, Decimal("1.25"), Decimal("-7.5"), dt.date(2024, 2, 29), moment, moment, "ä")
        + (b"\x00\xff", [1, None, 3], {"a": 1.5, "b": None}, (1, ("z",)), [("k", {1: dt.date(1969, 1, 1)}), None])
    )  # fmt: skip
    extreme = (
        (2**63 - 1, False, -128, 32767, -(2**31), float("inf"), float("-inf"), Decimal("-9999999.99"))
        + (Decimal("9" * 28 + "." + "9" * 10), dt.date(1, 1, 1), dt.datetime(1, 1, 2), dt.datetime(9999, 12, 31))
        + ("\U0001f9ca" * 50, bytes(1000), [2**31 - 1], {"": 0.0}, (None, None), [])
    )  # fmt: skip
    empty = (-1, None, None, None, None, None, None, None, None, None, None, None, "", b"", [], {}, (None, (None,)), [])
    return [plain, extreme, empty, (0, *[None] * 17)]


def frame(spark: SparkSession) -> DataFrame:
    """Make a DataFrame of the rows; timestamps are given in UTC."""
    given = [
        tuple(value.replace(tzinfo=UTC) if n == 10 and value else value for n, value in enumerate(row))
        for row in rows()
    ]
    return spark.createDataFrame(given, DDL)


def collected(df: DataFrame) -> list[str]:
    """Give the rows as text, by id; the text of Spark itself, which tells nulls, nesting and zones apart."""
    columns = [f"to_json(struct(`{name}`)) AS `{name}`" for name in df.columns if name != "bin"]
    plain = df.selectExpr("id AS _id", "hex(bin) AS bin", *columns).orderBy("_id").collect()
    return [str(row) for row in plain]


Way = Callable[["DataFrame", ice.Table], None]


@pytest.fixture(params=["append", "source", "insert"])
def write(request: pytest.FixtureRequest, spark: SparkSession, options: dict[str, str]) -> Way:
    def source(df: DataFrame, table: ice.Table) -> None:
        df.write.format("icefield").options(**options).mode("append").save(".".join(table.name()))

    def insert(df: DataFrame, table: ice.Table) -> None:
        df.createOrReplaceTempView("incoming")
        given = ", ".join(f"{key} '{value}'" for key, value in {**options, "path": ".".join(table.name())}.items())
        spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW target USING icefield OPTIONS ({given})")
        spark.sql("INSERT INTO target SELECT * FROM incoming")

    ways: dict[str, Way] = {"append": ice_spark.append, "source": source, "insert": insert}
    return ways[request.param]


@pytest.mark.parametrize("partition_by", [[], ["bucket(3, s)", "month(tz)", "i"]])
def test_every_type(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], write: Way, partition_by: list[str]
) -> None:
    df = frame(spark)
    table = catalog.create_table("db.t", ice_spark.schema_of(df), partition_by=partition_by)
    write(df, table)
    table.refresh()

    expected = collected(df)
    assert table.scan().count() == len(expected)
    assert collected(ice_spark.read(spark, table)) == expected
    assert collected(ice_spark.read(spark, table, native=False)) == expected
    assert collected(spark.read.format("icefield").options(**options).load("db.t")) == expected
    assert len(table.snapshots()) == 1
    assert table.current_snapshot().summary["added-records"] == "4"


def test_types_that_spark_lacks(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    fields = [
        ("u", "uuid", "f79c3e09-677c-4bbd-a479-3f349cb785e7"),
        ("fx", "fixed[3]", b"abc"),
        ("ns", "timestamp_ns", dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("nstz", "timestamptz_ns", dt.datetime(2024, 1, 1, tzinfo=UTC)),
    ]
    schema = ice.Schema(*(ice.NestedField(n, name, kind) for n, (name, kind, _) in enumerate(fields, 1)))
    table = catalog.create_table("db.odd", schema, properties={"format-version": "3"})
    table.append(
        pa.table(
            {
                "u": pa.array([bytes.fromhex("f79c3e09677c4bbda4793f349cb785e7"), None], pa.binary(16)),
                "fx": pa.array([b"abc", None], pa.binary(3)),
                "ns": pa.array([-1, None], pa.timestamp("ns")),
                "nstz": pa.array([1_704_067_200_000_000_999, None], pa.timestamp("ns", "UTC")),
            }
        )
    )
    for df in (ice_spark.read(spark, table), spark.read.format("icefield").options(**options).load("db.odd")):
        found = df.where("u IS NOT NULL").selectExpr("u", "fx", "ns", "unix_micros(nstz)").collect()
        assert [tuple(row) for row in found] == [(fields[0][2], bytearray(b"abc"), fields[2][2], 1_704_067_200_000_000)]
        assert df.where("u IS NULL AND fx IS NULL AND ns IS NULL AND nstz IS NULL").count() == 1
    # Text becomes a uuid again, microseconds become nanoseconds.
    ice_spark.append(ice_spark.read(spark, table), table)
    assert table.scan(row_filter=f"u = '{fields[0][2]}'").count() == 2


def test_columns_by_name_in_any_order_and_fewer(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.int32())]))
    ice_spark.append(spark.createDataFrame([("x", 1)], "b STRING, a BIGINT"), table)
    assert table.scan().to_arrow().to_pylist() == [{"a": 1, "b": "x", "c": None}]
    assert ice_spark.read(spark, table, columns=["c", "a"]).columns == ["c", "a"]


def test_the_source_reads_the_columns_it_is_asked_for(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]
) -> None:
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64()), ("b", pa.string()), ("c", pa.int64())]))
    table.append(pa.table({"a": [1], "b": ["x"], "c": [3]}))
    reader = spark.read.format("icefield").options(**options)
    assert reader.schema("c BIGINT, a BIGINT").load("db.t").collect()[0].asDict() == {"c": 3, "a": 1}
    assert spark.read.format("icefield").options(**options).load("db.t").count() == 1


def test_tables_without_rows(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    table = catalog.create_table("db.t", pa.schema([("a", pa.int64())]))
    for df in (ice_spark.read(spark, table), spark.read.format("icefield").options(**options).load("db.t")):
        assert df.columns == ["a"]
        assert df.collect() == []
    ice_spark.append(spark.createDataFrame([], "a BIGINT"), table)
    assert table.scan().count() == 0
