"""Names and values that a first user may have, and nobody expected: written and read by every way."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ice_spark = pytest.importorskip("icefield.spark")


def reads(spark: SparkSession, table: ice.Table, options: dict[str, str]) -> list[DataFrame]:
    loaded = spark.read.format("icefield").options(**options).load(".".join(table.name()))
    return [ice_spark.read(spark, table), ice_spark.read(spark, table, native=False), loaded]


@pytest.mark.parametrize(
    "name", ["a.b", "a`b", " ", "select", "a/b", "ü😀", "_file", "_metadata", "_icefield_key_0", "a,b;{}()\n\t="]
)
def test_names_of_columns(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], name: str) -> None:
    df = spark.range(3).toDF(name)
    quoted = '"' + name.replace('"', '""') + '"'
    table = catalog.create_table("db.t", ice_spark.schema_of(df), partition_by=f"bucket(2, {quoted})")
    ice_spark.append(df, table)
    for found in reads(spark, table, options):
        assert found.columns == [name]
        assert sorted(row[0] for row in found.collect()) == [0, 1, 2]
    assert ice_spark.read(spark, table, filter=f"{quoted} > 1", columns=[name]).collect()[0][0] == 2


def test_floats_as_partition_values(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    df = spark.sql("SELECT * FROM VALUES (double('nan'), 1), (-0.0D, 2), (double('-inf'), 3), (NULL, 4) v(f, n)")
    table = catalog.create_table("db.t", ice_spark.schema_of(df), partition_by="f")
    ice_spark.append(df, table)
    for found in reads(spark, table, options):
        values = {row.n: row.f for row in found.collect()}
        assert math.isnan(values.pop(1))
        assert math.copysign(1, values.pop(2)) == -1
        assert values == {3: -math.inf, 4: None}


def test_columns_of_nothing(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    df = spark.sql("SELECT NULL AS nothing, 1 AS n")
    table = catalog.create_table("db.t", ice_spark.schema_of(df), properties={"format-version": "3"})
    ice_spark.append(df, table)
    for found in reads(spark, table, options):
        assert [(row.nothing, row.n) for row in found.collect()] == [(None, 1)]
