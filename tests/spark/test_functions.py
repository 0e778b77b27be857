"""The transforms as Spark functions give what `icefield.transforms` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")
functions = ice_spark.functions

#: Columns that PySpark 4.0 cannot hand to functions.
TIMES = {"tz", "ts"}

SOURCE = """
    SELECT id AS l, cast(id AS INT) AS i, concat('ä', id) AS s, cast(concat('x', id) AS BINARY) AS b,
        cast(id / 7 AS DECIMAL(9, 2)) AS dec, date_add(DATE'1969-12-25', cast(id AS INT)) AS day,
        timestamp_micros(id * 3600000000 - 1) AS tz, TIMESTAMP_NTZ'1969-12-31 23:00:00' + make_interval(0, id) AS ts
    FROM range(-5, 20) UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
"""

CASES = [
    *(
        (f"bucket[{n}]", column, f"icefield_bucket({n}, {column})")
        for n in (1, 16)
        for column in ["l", "i", "s", "b", "dec", "day", "tz", "ts"]
    ),
    *(
        (name, column, f"icefield_{name}({column})")
        for name in ("year", "month", "day")
        for column in ("day", "tz", "ts")
    ),
    *(
        (name, column, f"icefield_{name}s({column})")
        for name in ("year", "month", "day", "hour")
        for column in ("tz", "ts")
    ),
    ("truncate[2]", "s", "icefield_truncate(2, s)"),
    ("truncate[10]", "i", "icefield_truncate_int(10, i)"),
    ("truncate[10]", "l", "icefield_truncate_long(10, l)"),
    ("truncate[1]", "b", "icefield_truncate_binary(1, b)"),
]


def test_sql_functions_equal_the_transforms(spark: SparkSession) -> None:
    cases = [case for case in CASES if functions.ON_ARROW or case[1] not in TIMES]
    answers = spark.sql(SOURCE).selectExpr("*", *(f"{sql} AS f{n}" for n, (_, _, sql) in enumerate(cases))).toArrow()
    for n, (transform, column, sql) in enumerate(cases):
        expected = ice.transforms.parse(transform)(answers[column].combine_chunks()).to_pylist()
        assert answers[f"f{n}"].to_pylist() == expected, sql


def test_columns_equal_the_transforms(spark: SparkSession) -> None:
    f = functions
    made = [
        ("bucket[8]", "s", f.bucket(8, "s")),
        ("truncate[50]", "dec", f.truncate(50, "dec", "decimal(9,2)")),
        ("truncate[3]", "l", f.truncate(3, "l", "bigint")),
        ("year", "day", f.year("day")),
        ("month", "tz", f.of_type("month", "tz", "timestamp", "int")),
        ("day", "ts", f.of_type("day", "ts", "timestamp_ntz", "date")),
        ("hour", "tz", f.of_type("hour", "tz", "timestamp", "int")),
    ]
    answers = (
        spark.sql(SOURCE).select("*", *(made_of.alias(f"f{n}") for n, (_, _, made_of) in enumerate(made))).toArrow()
    )
    for n, (transform, column, _) in enumerate(made):
        expected = ice.transforms.parse(transform)(answers[column].combine_chunks()).to_pylist()
        assert answers[f"f{n}"].to_pylist() == expected, transform


@pytest.mark.parametrize("name", ["bucket[16]", "year", "month", "day", "hour"])
def test_without_arrow_functions_times_are_exact(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """As on PySpark 4.0: times from their microseconds, in a session whose zone is not UTC, far from 1970 and near."""
    monkeypatch.setattr(functions, "ON_ARROW", False)
    functions._function.cache_clear()
    result = functions.RESULTS[name.partition("[")[0]]
    times = """
        SELECT timestamp_micros(m) AS tz, to_timestamp_ntz(text) AS ts
        FROM VALUES (-1, '1969-12-31 23:59:59.999999'), (1710053999999999, '2024-03-10 02:30:00'), (NULL, NULL),
            (-62135596800000000, '0001-01-01 00:00:00'), (253402300799999999, '9999-12-31 23:59:59.999999') v(m, text)
    """
    kinds = {"tz": "timestamp", "ts": "timestamp_ntz"}
    columns = [functions.of_type(name, column, kind, result) for column, kind in kinds.items()]
    answers = spark.sql(times).select("*", *(made.alias(f"f{n}") for n, made in enumerate(columns))).toArrow()
    functions._function.cache_clear()
    for n, column in enumerate(kinds):
        expected = ice.transforms.parse(name)(answers[column].combine_chunks()).to_pylist()
        assert answers[f"f{n}"].to_pylist() == expected, column


def test_without_arrow_functions_numbers_are_exact(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "ON_ARROW", False)
    functions._function.cache_clear()
    numbers = "SELECT * FROM VALUES (9007199254740993, 5), (NULL, NULL), (-9223372036854775808, -7) v(l, i)"
    columns = [
        functions.of_type("bucket[100]", "l", "bigint", "int"),
        functions.of_type("truncate[3]", "i", "int", "int"),
    ]
    answers = spark.sql(numbers).select("*", *(made.alias(f"f{n}") for n, made in enumerate(columns))).toArrow()
    assert answers["f0"].to_pylist() == ice.transforms.bucket(100)(answers["l"].combine_chunks()).to_pylist()
    assert answers["f1"].to_pylist() == [3, None, -9]
    functions._function.cache_clear()


def test_without_arrow_functions_times_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "ON_ARROW", False)
    functions._function.cache_clear()
    with pytest.raises(Exception, match=r"UnsupportedFeatureError.*without their zone: bucket takes unix_micros"):
        spark.sql(SOURCE).select(functions.bucket(7, "tz")).collect()
    functions._function.cache_clear()


@pytest.mark.parametrize("call", ["icefield_bucket(l, l)", "icefield_bucket(0, l)", "icefield_truncate(-1, s)"])
def test_numbers_must_be_one_positive_constant(spark: SparkSession, call: str) -> None:
    with pytest.raises(Exception, match="must be one positive constant"):
        spark.sql(SOURCE).selectExpr(call).collect()


def test_numbers_of_columns() -> None:
    with pytest.raises(ice.errors.InvalidArgumentError):
        functions.bucket(0, "l")
