"""Names and values in the text of Spark's expressions: taken exactly, whatever is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")
ON_ARROW = pytest.importorskip("icefield.spark.functions").ON_ARROW

TEXTS = ["a'b", 'a"b', "a`b`", "a`) OR (`c", "a -- b", "a /* b */", "a;b", "a\nb", "a.b.c", "*", "ü😀\u202e", "{0}{c}"]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_names_of_columns_and_values(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    """All names at once, since Spark takes long for each query: as columns, partitions, in filters and in views."""
    rows = [(text, number) for number, text in enumerate(TEXTS)]
    names = [*TEXTS, "n"]
    df = spark.createDataFrame([(*[text] * len(TEXTS), number) for text, number in rows], names)
    by = [f"bucket(4, {quoted(TEXTS[2])})", quoted(TEXTS[3]), f"truncate(2, {quoted(TEXTS[8])})"]
    table = catalog.create_table("db.t", ice_spark.schema_of(df), partition_by=by)
    ice_spark.append(df, table)
    assert sorted(table.scan(selected_fields="n").to_arrow()["n"].to_pylist()) == list(range(len(TEXTS)))
    for text, number in rows:
        asked = ice.expressions.EqualTo(text, text)
        for native in (True, False) if number in (2, 8) else (number % 2 == 0,):
            found = ice_spark.read(spark, table, filter=asked, columns=["n", text], native=native)
            assert [(row["n"], row[text]) for row in found.collect()] == [(number, text)]
    loaded = spark.read.format("icefield").options(**options).load("db.t")
    assert loaded.columns == names
    loaded.createOrReplaceTempView("hostile")
    for text in TEXTS[:4]:
        column, value = text.replace("`", "``"), text.replace("\\", "\\\\").replace("'", "\\'")
        assert spark.sql(f"SELECT n FROM hostile WHERE `{column}` = '{value}'").count() == 1


def test_truncation_of_another_type_is_refused(spark: SparkSession) -> None:
    calls = [
        ("icefield_truncate(10, 27)", "icefield_truncate_int"),
        ("icefield_truncate(10, 27L)", "icefield_truncate_(int|long)"),
    ]
    if ON_ARROW:  # pandas does not tell the widths of integers
        calls.append(("icefield_truncate_int(10, 27L)", "icefield_truncate_long"))
    for call, meant in calls:
        with pytest.raises(Exception, match=f"is for values of type .*: use {meant}"):
            spark.sql(f"SELECT {call}").collect()
    assert spark.sql("SELECT icefield_truncate(1, 'ab'), icefield_truncate_long(10, 27)").first() == ("a", 20)
