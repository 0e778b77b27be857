"""Names and values in the text of Spark's expressions: taken exactly, whatever is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ice_spark = pytest.importorskip("icefield.spark")
ON_ARROW = pytest.importorskip("icefield.spark.functions").ON_ARROW
STREAM_READER = pytest.importorskip("icefield.spark.reads.streaming").STREAM_READER
spark_schema = ice_spark.spark_schema

#: Names that Spark's text of a column does not take for the name of this column.
NAMES = [
    "*",
    "a.*",
    "`",
    "``",
    "a`.`b",
    ".",
    "..",
    ".a",
    "a.",
    " ",
    "  x ",
    "'",
    '"',
    "a b",
    "größe",
    "n",
    "N",
    "表",
    "\t",
    "()",
]
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


def test_odd_names_on_all_roads(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    """Appended and read by both roads, read by a stream, as changes and as metadata."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        row = tuple(f"{number}" for number in range(len(NAMES)))
        df = spark.createDataFrame([row], NAMES)
        partitioned = [f"truncate(1, {quoted(name)})" for name in NAMES[:2]]
        table = catalog.create_table("db.t", ice_spark.schema_of(df), partition_by=partitioned)
        ice_spark.append(df, table)
        df.write.format("icefield").options(**options).mode("append").save("db.t")
        expected = [dict(zip(NAMES, row, strict=True))] * 2
        assert table.refresh().scan().to_arrow().to_pylist() == expected

        def rows(frame: DataFrame) -> list[dict[str, str]]:
            return [dict(zip(frame.columns, found, strict=True)) for found in frame.collect()]

        assert rows(ice_spark.read(spark, table)) == expected
        assert rows(ice_spark.read(spark, table, native=False)) == expected
        assert rows(spark.read.format("icefield").options(**options).load("db.t")) == expected
        # A filter that Spark's own reader does not test, so that tasks are sent with what is left of it.
        chosen = rows(ice_spark.read(spark, table, columns=NAMES[2:5], filter=ice.expressions.EqualTo("*", "0")))
        assert chosen == [{name: one[name] for name in NAMES[2:5]} for one in expected]
        changed = ice_spark.changes(spark, table)
        assert [{name: found[name] for name in NAMES} for found in rows(changed)] == expected
        metrics = ice_spark.read_inspect(spark, table, "files", columns=["readable_metrics"]).first()
        assert sorted(metrics["readable_metrics"].__fields__) == sorted(NAMES)
        schema = spark_schema(table.schema())
        reader = STREAM_READER({"path": "db.t", **options}, schema, None)
        last = table.current_snapshot().snapshot_id
        end = {"version": 1, "snapshot_id": last, "position": 1, "scan_all_files": False}
        parts = reader.partitions(reader.initialOffset(), end)
        assert [found for part in parts for batch in reader.read(part) for found in batch.to_pylist()] == expected
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
