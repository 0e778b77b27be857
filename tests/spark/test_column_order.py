"""Columns of a Spark read come in the order in which they are selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")


def test_columns_in_the_order_asked_for(spark: SparkSession, catalog: ice.Catalog) -> None:
    df = spark.sql("SELECT 1 AS a, named_struct('x', 2, 'y', 3, 'z', 4) AS st, 'c' AS c")
    table = catalog.create_table("db.t", ice_spark.schema_of(df))
    ice_spark.append(df, table)
    for native in (True, False):
        for wanted, columns, row in (
            (["c", "a"], ["c", "a"], ("c", 1)),
            (["st.z", "c", "st.x"], ["st", "c"], ((4, 2), "c")),
            (["st.y", "a"], ["st", "a"], ((3,), 1)),
        ):
            found = ice_spark.read(spark, table, columns=wanted, filter="a = 1", native=native)
            assert (found.columns, [tuple(one) for one in found.collect()]) == (columns, [row])
