"""DataFrames of PySpark and their schemas as rows and schemas of tables, in every verb that takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice
import icefield.spark as ice_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = """
    CAST(id AS INT) AS k, id AS l, CAST(id AS TINYINT) AS t, CAST(id AS SMALLINT) AS h, id / 2.0D AS d,
    CAST(id AS FLOAT) AS f, CAST(id AS DECIMAL(9, 2)) AS n, id > 1 AS b, CONCAT('s', id) AS s, CAST('x' AS BINARY) AS x,
    DATE '2024-03-10' AS day, TIMESTAMP '2024-03-10 02:30:00' AS z, TIMESTAMP_NTZ '2024-03-10 02:30:00' AS w,
    NAMED_STRUCT('a', id, 'b', ARRAY(CAST(id AS STRING), NULL)) AS r, MAP('m', id) AS m
"""


@pytest.fixture
def frame(spark: SparkSession) -> DataFrame:
    """Return three rows with a column of each type."""
    return spark.sql(f"SELECT {COLUMNS} FROM range(3)")


def keys(table: ice.Table) -> list[int]:
    return sorted(table.scan(selected_fields="k").to_arrow()["k"].to_pylist())


def test_a_table_is_created_by_a_frame_or_its_schema(catalog: ice.Catalog, frame: DataFrame) -> None:
    wanted = ice_spark.schema_of(frame.schema)
    for number, given in enumerate([frame, frame.schema]):
        table = catalog.create_table(f"db.t{number}", schema=given, partition_by="bucket(2, k)")
        assert table.schema().fields == wanted.fields
        assert catalog.create_table_if_not_exists(f"db.t{number}", given).identifier == table.identifier
    table = catalog.create_table("db.u", pa.schema({"k": pa.int32()}))
    table.update_schema().union_by_name(frame).commit()
    table.update_schema().union_by_name(frame.schema).commit()
    assert table.schema().column_names == wanted.column_names
    catalog.replace_table_transaction("db.u", frame.schema).commit_transaction()
    assert catalog.load_table("db.u").schema().column_names == wanted.column_names


def test_rows_are_those_of_the_frame(spark: SparkSession, catalog: ice.Catalog, frame: DataFrame) -> None:
    table = catalog.create_table("db.t", schema=frame).append(frame)
    assert ice_spark.read(spark, table).sort("k").collect() == frame.sort("k").collect()


def test_every_change_takes_a_frame(spark: SparkSession, catalog: ice.Catalog, frame: DataFrame) -> None:
    properties = {"format-version": "2"}
    table = catalog.create_table("db.t", schema=frame.schema, partition_by="k", properties=properties)
    assert keys(table.append(frame)) == [0, 1, 2]
    table.overwrite(frame, "k = 1")
    assert keys(table) == [0, 0, 1, 2, 2]
    table.overwrite(frame)
    more = spark.sql(f"SELECT {COLUMNS} FROM range(2, 5)")
    table.dynamic_partition_overwrite(more)
    assert keys(table) == [0, 1, 2, 3, 4]
    assert table.upsert(spark.sql(f"SELECT {COLUMNS} FROM range(6)"), "k").rows_inserted == 1
    table.merge(more, on="k").when_matched_delete().when_not_matched_insert_all().execute()
    assert keys(table) == [0, 1, 5]
    with table.upsert_stream("k") as stream:
        stream.upsert(more).delete(frame)
    assert keys(table) == [3, 4, 5]
    with table.transaction() as tx:
        tx.append(frame)
    assert keys(table) == [0, 1, 2, 3, 4, 5]


def test_what_is_no_frame_says_how_to_make_one(spark: SparkSession, catalog: ice.Catalog, frame: DataFrame) -> None:
    table = catalog.create_table("db.t", schema=frame)
    for given, hint in [
        (frame.select("k").collect(), r"spark\.createDataFrame\(rows\)"),
        (frame.schema, "this is a schema; pass the DataFrame itself"),
    ]:
        for change in (table.append, table.overwrite, lambda rows: table.merge(rows, "k")):
            with pytest.raises(ice.errors.ArgumentTypeError, match=hint):
                change(given)
    with pytest.raises(ice.UnsupportedFeatureError, match="column 'i': Iceberg has no type"):
        catalog.create_table("db.i", schema=spark.sql("SELECT INTERVAL '1' DAY AS i"))
