"""What rows are brought together by is the partition value, in every zone and without Arrow functions too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("icefield.spark")
from icefield.spark import functions
from icefield.spark.writes.keys import PartitionKey, with_keys
from icefield.transforms import bucket, parse

#: Far from 1970 and near, an hour that New York does not have, the ends of what fits.
ROWS = """
    SELECT l, cast(i AS INT) AS i, cast(i AS SMALLINT) AS h, cast(dec AS DECIMAL(9, 2)) AS dec,
        s, cast(s AS BINARY) AS b, timestamp_micros(m) AS tz, to_timestamp_ntz(text) AS ts,
        cast(to_timestamp_ntz(text) AS DATE) AS d
    FROM VALUES
        (9007199254740993, 5, 1.25, 'äöü', -1, '1969-12-31 23:59:59.999999'),
        (-9223372036854775808, -7, -1.25, '', 1710053999999999, '2024-03-10 02:30:00'),
        (9223372036854775807, 0, 0, 'x', -62135596800000000, '0001-01-01 00:00:00'),
        (-1, -32768, 99.99, 'longer', 253402300799999999, '9999-12-31 23:59:59.999999'),
        (NULL, NULL, NULL, NULL, NULL, NULL) v(l, i, dec, s, m, text)
"""
TYPES = {
    "l": "bigint",
    "i": "int",
    "h": "smallint",
    "dec": "decimal(9,2)",
    "s": "string",
    "b": "binary",
    "tz": "timestamp",
    "ts": "timestamp_ntz",
    "d": "date",
}
CASES = [
    *((f"bucket[{n}]", column) for n in (1, 16, 1000) for column in TYPES),
    *((f"truncate[{n}]", column) for n in (1, 3) for column in ("l", "i", "dec", "s", "b")),
    *((name, column) for name in ("year", "month", "day") for column in ("tz", "ts", "d")),
    *(("hour", column) for column in ("tz", "ts")),
]


@pytest.fixture(params=[True, False], ids=["arrow", "pandas"])
def on_arrow(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if request.param and not functions.ON_ARROW:
        pytest.skip("Arrow functions need PySpark 4.1")
    monkeypatch.setattr(functions, "ON_ARROW", request.param)
    functions._function.cache_clear()
    yield
    functions._function.cache_clear()


@pytest.mark.usefixtures("on_arrow")
def test_keys_are_partition_values(spark: SparkSession) -> None:
    keys = [PartitionKey(parse(transform), column, TYPES[column]) for transform, column in CASES]
    answers = with_keys(spark.sql(ROWS), keys, [f"f{n}" for n in range(len(keys))]).toArrow()
    for n, (transform, column) in enumerate(CASES):
        expected = ice.transforms.parse(transform)(answers[column].combine_chunks()).to_pylist()
        assert answers[f"f{n}"].to_pylist() == expected, f"{transform} of {column}"


def test_buckets_of_bytes(spark: SparkSession) -> None:
    # Every length around whole words, and every byte there, as Spark hashes bytes with a sign.
    binaries = [bytes((n * 37 + k) % 256 for k in range(n % 23)) for n in range(2_000)]
    texts = ["".join(chr(0x61 + (n * k) % 0x3FF) for k in range(n % 11)) for n in range(2_000)]
    rows = spark.createDataFrame(list(zip(binaries, texts, strict=True)), "`a b` binary, `c.d` string")
    number = 2**31 - 1
    keys = [PartitionKey(bucket(number), "a b", "binary"), PartitionKey(bucket(number), "c.d", "string")]
    answers = with_keys(rows, keys, ["x", "y"])
    assert answers.columns == ["a b", "c.d", "x", "y"]
    plan = answers._jdf.queryExecution().toString()
    assert "Python" not in plan
    found = answers.toArrow()
    for source, key in (("a b", "x"), ("c.d", "y")):
        expected = ice.transforms.bucket(number)(found[source].combine_chunks()).to_pylist()
        assert found[key].to_pylist() == expected
