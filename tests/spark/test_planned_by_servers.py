"""Scans that a REST server plans, in Spark: rows that the server hides are seen in no way of reading."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice
from worlds.servers.plans import Plans
from worlds.servers.rest import served

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")

ROWS = pa.table({"id": range(6), "region": ["eu", "us"] * 3})
ROUTES = [
    ("GET", "/tables/{table}"),
    ("POST", "/tables/{table}"),
    ("POST", "/tables/{table}/plan"),
    ("GET", "/tables/{table}/plan/{plan-id}"),
    ("DELETE", "/tables/{table}/plan/{plan-id}"),
    ("POST", "/tables/{table}/tasks"),
]


def test_rows_that_the_server_hides(spark: SparkSession, tmp_path: Path) -> None:
    with served(tmp_path) as server:
        server.namespaces["n",] = {}
        table = ice.load_catalog("c", uri=server.uri).create_table("n.t", ROWS.schema)
        table.append(ROWS)
        table.append(pa.table({"id": range(6, 10), "region": ["eu", "us"] * 2}))
        table.delete("id = 2", mode="merge-on-read")
        server.config["endpoints"] = [
            f"{method} /v1/{{prefix}}/namespaces/{{namespace}}{path}" for method, path in ROUTES
        ]
        plans = Plans(server)
        plans.page, plans.policy = 1, {"type": "eq", "term": "region", "value": "eu"}
        catalog = ice.load_catalog("c", uri=server.uri)
        table = catalog.load_table("n.t")
        assert set(ice_spark.explain(spark, table).counts) == {"planning"}
        source = spark.read.format("icefield").options(catalog="c", uri=server.uri)
        session = ice_spark.session(spark, {"c": catalog})
        for frame in (
            ice_spark.read(spark, table, filter="id > 1", columns=["id"]),
            source.load("n.t").where("id > 1").select("id"),
            session.sql("SELECT id FROM c.n.t WHERE id > 1"),
        ):
            assert sorted(row.id for row in frame.collect()) == [4, 6, 8]
        session.close()
        assert plans.open == {}, "plans are cancelled when they are no longer needed"
