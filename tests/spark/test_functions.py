"""The transforms as Spark functions give what `icefield.transforms` gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
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
    ]
    if f.ON_ARROW:
        made += [("month", "tz", f.month("tz")), ("day", "ts", f.day("ts")), ("hour", "tz", f.hour("tz"))]
    answers = (
        spark.sql(SOURCE).select("*", *(made_of.alias(f"f{n}") for n, (_, _, made_of) in enumerate(made))).toArrow()
    )
    for n, (transform, column, _) in enumerate(made):
        expected = ice.transforms.parse(transform)(answers[column].combine_chunks()).to_pylist()
        assert answers[f"f{n}"].to_pylist() == expected, transform


def test_without_arrow_functions_times_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "ON_ARROW", False)
    functions._function.cache_clear()
    with pytest.raises(Exception, match=r"UnsupportedFeatureError.*without their time zone: pass unix_micros"):
        spark.sql(SOURCE).select(functions.bucket(7, "tz")).collect()
    functions._function.cache_clear()


def test_numbers_must_be_one_positive_constant(spark: SparkSession) -> None:
    with pytest.raises(
        Exception, match="InvalidArgumentError: the first argument of icefield_bucket must be one positive"
    ):
        # One task, and one such query: a worker that has failed is not used again, and a new one takes seconds.
        spark.sql(SOURCE).coalesce(1).selectExpr("icefield_bucket(l, l)").collect()
    for numbers in ([0], ["x"], [-1], [1, 2], [None]):
        with pytest.raises(ice.errors.InvalidArgumentError, match="icefield_truncate must be one positive constant"):
            functions._numbered("truncate", pa.array(numbers))


def test_numbers_of_columns() -> None:
    with pytest.raises(ice.errors.InvalidArgumentError):
        functions.bucket(0, "l")


def test_the_guide_s_functions(spark: SparkSession) -> None:
    """What docs/spark.md shows of transforms in functions runs, and returns the buckets of the table."""
    if not functions.ON_ARROW:
        return  # the page says so
    page = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```py\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    (block,) = (block for block in blocks if "arrow_udf" in block)
    rows = spark.range(100).selectExpr("id", "cast(id % 7 AS STRING) AS kind")
    shown: dict[str, Any] = {"icefield": ice, "rows": rows}
    exec(block, shown)
    bucket = ice.transforms.bucket(16)
    found = rows.select("id", "kind", shown["bucket_of"]("id"), shown["bucket_of_text"]("kind")).collect()
    numbers, kinds = bucket(pa.array(range(100))), bucket(pa.array([row.kind for row in found]))
    expected = zip(numbers.to_pylist(), kinds.to_pylist(), strict=True)
    assert [tuple(row)[2:] for row in found] == list(expected)
    nulls = spark.sql("SELECT CASE WHEN id > 0 THEN id END AS id FROM range(3)")
    with pytest.raises(Exception, match=r"transform bucket\[16\] does not take Arrow type Float64"):
        nulls.select(shown["bucket_of_text"]("id")).collect()
