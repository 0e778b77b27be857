"""Spark jobs that take longer than the keys of storage that a REST catalog gives are good for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from icefield.catalog.rest import RestCatalog
from worlds.servers.rest import served
from worlds.servers.s3 import lend, s3

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")

ROWS = pa.table({"id": range(120)})
#: Each file is a task of its own.
SMALL = {"read.split.target-size": "1", "read.split.open-file-cost": "1"}


def test_executors_renew_keys(spark: SparkSession, tmp_path: Path) -> None:
    """Keys are good for four seconds: executors ask for others, and no request comes with one that has expired."""
    with s3() as store, served(tmp_path) as server:
        server.namespaces["n",] = {}
        ends = lend(server, store, 4.0)
        table = RestCatalog("c", uri=server.uri).create_table(
            "n.t", ROWS.schema, location="s3://wh/n/t", properties=SMALL
        )
        for start in range(0, 120, 10):
            table.append(ROWS.slice(start, 10))
        store.delay = 0.8
        given = len(ends)
        # In one task after the other.
        frame = ice_spark.read(spark, table, native=False).coalesce(1)
        began = time.monotonic()
        assert sorted(row.id for row in frame.collect()) == ROWS["id"].to_pylist()
        assert time.monotonic() - began > 8
        assert len(ends) > given + 1
        ice_spark.append(spark.range(120, 126), table)
        assert table.refresh().scan().count() == 126
        assert store.refused == []
