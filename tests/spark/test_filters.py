"""Filters that Spark pushes to the data source: files are skipped, and the rows are those found without it."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.spark import functions
from icefield.spark.columns.filters import pushed
from worlds.sample import ALL_CASES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.skipif(not functions.ON_ARROW, reason="PySpark 4.0 pushes no filters to Python sources")

ENABLED = "spark.sql.python.filterPushdown.enabled"
TYPES = {"n": "int", "f": "float", "u": "uuid", "ns": "timestamp_ns", "st.x": "long", "s": "string", "b": "binary"}
NAN = float("nan")


def translations() -> list[tuple[Any, Any]]:
    """Pair filters of Spark with expressions, or None where Spark must filter alone."""
    from pyspark.sql import datasource as spark_filters

    made = {name: getattr(spark_filters, name) for name in dir(spark_filters)}

    def of(name: str, column: str, *value: Any) -> Any:
        return made[name](tuple(column.split(".")), *value)

    def negated(child: Any) -> Any:
        return made["Not"](child)

    def predicate(kind: str, term: str, **value: Any) -> dict[str, Any]:
        return {"type": kind, "term": term, **value}

    compared = {
        "EqualTo": ("eq", "not-eq"),
        "EqualNullSafe": ("eq", "not-eq"),
        "GreaterThan": ("gt", "lt-eq"),
        "GreaterThanOrEqual": ("gt-eq", "lt"),
        "LessThan": ("lt", "gt-eq"),
        "LessThanOrEqual": ("lt-eq", "gt"),
    }
    pairs: list[tuple[Any, Any]] = []
    for name, (plain, opposite) in compared.items():
        pairs.append((of(name, "n", 3), predicate(plain, "n", value=3)))
        pairs.append((negated(of(name, "n", 3)), predicate(opposite, "n", value=3)))
        pairs.append((negated(negated(of(name, "st.x", 3))), predicate(plain, "st.x", value=3)))
        # Neither zero nor NaN means the same to both.
        pairs += [(of(name, "f", 0.0), None), (of(name, "f", NAN), None)]
    with_nan = {"type": "or", "left": predicate("gt", "f", value=1.5), "right": predicate("is-nan", "f")}
    now = dt.datetime(2024, 1, 2, 3, 4, 5, 6)
    key = uuid.uuid4()
    return [
        *pairs,
        (of("GreaterThan", "f", 1.5), with_nan),
        (negated(of("LessThanOrEqual", "f", 1.5)), with_nan),
        (of("LessThan", "f", 1.5), predicate("lt", "f", value=1.5)),
        (of("EqualNullSafe", "n", None), predicate("is-null", "n")),
        (negated(of("EqualNullSafe", "n", None)), predicate("not-null", "n")),
        (of("IsNull", "st.x"), predicate("is-null", "st.x")),
        (of("IsNotNull", "st.x"), predicate("not-null", "st.x")),
        (negated(of("IsNull", "n")), predicate("not-null", "n")),
        (negated(of("IsNotNull", "n")), predicate("is-null", "n")),
        (of("In", "n", (1, 2)), predicate("in", "n", values=[1, 2])),
        (of("In", "n", (1, None)), predicate("in", "n", values=[1])),
        (negated(of("In", "n", (1, 2))), predicate("not-in", "n", values=[1, 2])),
        (negated(of("In", "n", (1, None))), None),
        (of("In", "f", (1.5, NAN)), None),
        (of("StringStartsWith", "s", "a"), predicate("starts-with", "s", value="a")),
        (negated(of("StringStartsWith", "s", "a")), predicate("not-starts-with", "s", value="a")),
        (of("StringEndsWith", "s", "a"), None),
        (of("StringContains", "s", "a"), None),
        (negated(of("StringContains", "s", "a")), None),
        (of("EqualTo", "b", b"\x0a"), predicate("eq", "b", value="0A")),
        (of("EqualTo", "s", Decimal("1.50")), predicate("eq", "s", value="1.50")),
        (of("EqualTo", "s", dt.date(2024, 1, 2)), predicate("eq", "s", value="2024-01-02")),
        (of("EqualTo", "s", now), predicate("eq", "s", value="2024-01-02T03:04:05.000006")),
        # Spark sees whole microseconds, and the text of a uuid.
        (of("EqualTo", "ns", now), None),
        (of("LessThanOrEqual", "ns", now), None),
        (of("In", "ns", (now,)), None),
        (of("LessThan", "ns", now), predicate("lt", "ns", value="2024-01-02T03:04:05.000006")),
        (of("EqualTo", "u", str(key)), predicate("eq", "u", value=str(key))),
        (negated(of("EqualTo", "u", str(key).upper())), None if str(key).upper() != str(key) else ...),
    ]


def test_every_filter_of_spark_is_translated_or_left() -> None:
    for spark_filter, expected in translations():
        assert pushed(spark_filter, TYPES) == expected, spark_filter


def test_every_class_of_filter_is_known() -> None:
    from pyspark.sql import datasource as spark_filters

    classes = {
        name
        for name, value in vars(spark_filters).items()
        if isinstance(value, type) and issubclass(value, spark_filters.Filter) and value is not spark_filters.Filter
    } - {"ColumnFilter", "ColumnPath"}
    tested = {type(spark_filter).__name__ for spark_filter, _ in translations()}
    assert classes <= tested, classes - tested


KEYS = [uuid.UUID(int=number << 100) for number in range(5)]
ROWS = pa.table(
    {
        "part": pa.array([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], pa.int32()),
        "n": pa.array([1, None, 3, 4, 5, None, 7, 8, 9, 10], pa.int64()),
        "f": pa.array([1.0, NAN, 2.0, None, -0.0, 0.0, 3.5, 4.0, NAN, NAN], pa.float64()),
        "s": ["apple", None, "april", "bee", "", "éa", "Apple", "z", "zz", "ap"],
        "d": pa.array([19_000 + number for number in range(10)], pa.date32()),
        "ts": pa.array([10**15 + number for number in range(10)], pa.timestamp("us")),
        "tz": pa.array([10**15 + number * 10**9 for number in range(10)], pa.timestamp("us", "UTC")),
        "ns": pa.array([10**18 + number * 500 for number in range(10)], pa.timestamp("ns")),
        "dec": pa.array([Decimal(number) / 4 for number in range(10)], pa.decimal128(9, 2)),
        "u": pa.array([KEYS[number // 2].bytes for number in range(10)], pa.uuid()),
        "b": [bytes([number, 255]) for number in range(10)],
        "t": [True, None, False, False, True, True, None, None, True, False],
        "st": pa.array(
            [None, {"x": 1, "y": {"z": "q"}}, *({"x": n if n % 3 else None, "y": {"z": f"z{n}"}} for n in range(8))],
            pa.struct([("x", pa.int64()), ("y", pa.struct([("z", pa.string())]))]),
        ),
    }
)

QUERIES = [
    "n = 3", "3 = n", "n <=> 3", "n <=> NULL", "NOT (n <=> NULL)", "NOT (n <=> 3)", "n < 4", "n <= 4",
    "n > 4", "n >= 4",
    "n BETWEEN 3 AND 5", "n IN (1, 3)", "n NOT IN (1, 3)", "n IN (1, NULL)", "n != 3", "NOT (n > 4)", "n IS NULL",
    "n IS NOT NULL", "n = 3.0", "n > 3.5", "n = 1 OR s = 'z'", "n + 1 = 4",
    "f > 2", "f >= 2", "f < 2", "NOT (f < 2)", "f = 0", "f > 0", "f != 2", "f = double('NaN')",
    "f IN (2, double('NaN'))",
    "f > double('Infinity')", "f NOT IN (1, 2)", "isnan(f)", "f >= -0.0",
    "s LIKE 'ap%'", "s NOT LIKE 'ap%'", "s LIKE '%e'", "s LIKE '%p%'", "s = ''", "s > 'apple'", "s >= 'é'",
    "length(s) = 2",
    "d = date'2022-01-10'", "d < date'2022-01-10'", "d NOT IN (date'2022-01-10')", "year(d) = 2022",
    "ts = timestamp_ntz'2001-09-09 01:46:40.000003'", "ts > timestamp_ntz'2001-09-09 01:46:40.000003'",
    "tz >= timestamp'2001-09-09 02:30:00 UTC'", "tz < timestamp'2001-09-09 02:30:00 UTC'",
    "ns = timestamp_ntz'2001-09-09 01:46:40.000001'", "ns <= timestamp_ntz'2001-09-09 01:46:40.000001'",
    "ns > timestamp_ntz'2001-09-09 01:46:40.000001'", "ns < timestamp_ntz'2001-09-09 01:46:40.000002'",
    "ns != timestamp_ntz'2001-09-09 01:46:40'", "ns IN (timestamp_ntz'2001-09-09 01:46:40.000003')",
    "dec = 1.25", "dec > 1.2", "dec IN (0.25, 2)", "dec = 1.251",
    f"u = '{KEYS[2]}'", f"u > '{KEYS[2]}'", f"u != '{KEYS[1]}'", f"u = '{str(KEYS[4]).upper()}'", "u > 'A'",
    "u LIKE '0%'",
    "b = X'03FF'", "b > X'03'", "t", "NOT t", "t IS NULL", "t = true",
    "st.x = 1", "st.x > 2", "st.x IS NULL", "st.x IS NOT NULL", "st IS NULL", "st.y.z = 'q'", "st.y.z LIKE 'z%'",
    "st.y.z NOT IN ('q')", "part = 3", "part IN (1, 2) AND n > 3", "part != 3 AND s IS NOT NULL",
]  # fmt: skip

#: `make test` asks every third, with every column, because each is planned in its own process; `make test-random` all.
ASKED = QUERIES if ALL_CASES else QUERIES[2::3]
#: Queries of one job.
TOGETHER = 16


@pytest.fixture
def load(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> Callable[..., DataFrame]:
    """Give what reads a table of a file for every two rows."""
    made = catalog.create_table("db.t", schema=ROWS.schema, partition_by="part", properties={"format-version": "3"})
    for number in range(5):
        made.append(ROWS.slice(2 * number, 2))

    def load(**more: str) -> DataFrame:
        return spark.read.format("icefield").options(**options).options(**more).load("db.t")

    return load


def test_rows_are_the_same_with_and_without(spark: SparkSession, load: Callable[..., DataFrame]) -> None:
    without = load().selectExpr("d", *(f"({query}) AS q{number}" for number, query in enumerate(ASKED))).collect()
    spark.conf.set(ENABLED, "true")
    try:
        # Each is planned by itself; the jobs are fewer.
        for first in range(0, len(ASKED), TOGETHER):
            frames = [
                load(**{"push-filters": "true"}).where(query).selectExpr("d", f"{number} AS number")
                for number, query in enumerate(ASKED[first : first + TOGETHER], first)
            ]
            found = reduce(lambda one, other: one.unionAll(other), frames).collect()
            for number, query in enumerate(ASKED[first : first + TOGETHER], first):
                expected = sorted(row.d for row in without if row[f"q{number}"])
                assert sorted(row.d for row in found if row.number == number) == expected, query
    finally:
        spark.conf.unset(ENABLED)


def test_a_frame_of_many_queries_keeps_no_filter(spark: SparkSession, load: Callable[..., DataFrame]) -> None:
    """Spark would plan the second query with the filters of the first, and one side of a join with the other's."""
    spark.conf.set(ENABLED, "true")
    try:
        frame = load()
        assert frame.where("n > 8").count() == 2
        assert frame.where("n = 1 OR s = 'z'").count() == 2
        assert frame.count() == 10
        low, high = frame.where("part < 2").select("t"), frame.where("part > 2").select("t")
        assert low.crossJoin(high).count() == 16
        with pytest.raises(
            Exception, match="InvalidArgumentError: option push-filters: expected true or false, got 'yes'"
        ):
            load(**{"push-filters": "yes"}).where("n = 1").count()
    finally:
        spark.conf.unset(ENABLED)


def test_files_without_such_rows_are_not_read(
    spark: SparkSession, catalog: ice.Catalog, load: Callable[..., DataFrame]
) -> None:
    table = catalog.load_table("db.t")
    files = {file["partition"]["part"]: file["file_path"] for file in table.scan().plan_files().files}
    # Reading any other file than that of partition 3 fails.
    for part in (0, 1, 2, 4):
        table.storage.delete(files[part])
    spark.conf.set(ENABLED, "true")
    try:
        queries = (
            "n BETWEEN 7 AND 8", "n IN (7, 8)", "n <=> 7", "s = 'Apple' AND n > 5", "st.y.z = 'z5'",
            "st.x = 5", "part = 3",
            "d IN (date'2022-01-14')", f"u = '{KEYS[3]}'", "dec = 1.5", "b = X'06FF'", "f = 3.5",
            "s LIKE 'App%' AND n > 5",
            "ts = timestamp_ntz'2001-09-09 01:46:40.000006'", "tz = timestamp'2001-09-09 03:26:40 UTC'",
        )  # fmt: skip
        frames = [
            load(**{"push-filters": "true"}).where(query).selectExpr(f"{number} AS number")
            for number, query in enumerate(queries)
        ]
        found = {row.number for row in reduce(lambda one, other: one.unionAll(other), frames).collect()}
        assert [query for number, query in enumerate(queries) if number not in found] == []
    finally:
        spark.conf.unset(ENABLED)
