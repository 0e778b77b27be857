"""A cluster in processes of its own: executors are killed, tasks overtaken, and the driver is lost.

``make test`` kills executors in appends only; all of it, by ``ICEFIELD_CLUSTER=all``, is in ``make test-random``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")

SCRIPT = Path(__file__).with_name("on_cluster.py")


@pytest.mark.skipif(not Path("/proc").exists(), reason="the executor of a worker is found in /proc")
def test_rows_are_neither_lost_nor_doubled(spark: SparkSession, tmp_path: Path) -> None:
    path = os.pathsep.join(one for one in sys.path if one)
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, SCRIPT, tmp_path], env=environment, capture_output=True, text=True, check=False
    )
    # Its driver was lost between the tasks of a change and the commit.
    assert (done.returncode, done.stdout) == (7, "all of it\n"), done.stdout + done.stderr
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"{tmp_path}/wh")
    table = catalog.load_table(max(catalog.list_tables("db"), key=lambda name: int(name[1][1:])))
    left = left_over(table)
    assert left
    known = {snapshot.summary["icefield.write-id"] for snapshot in table.snapshots()}
    assert not any(write in path for write in known for path in left), "no snapshot is of the write that left them"
    # What was committed is not made again by its key, and what was not is made once.
    first = {0: "old", 1: "new", 2: "old"}
    second = {number: f"{text}!" for number, text in first.items()}
    for value, condition, key, expected in (
        ("'new'", "id = 1", "before", first),
        ("concat(s, '!')", "id < 3", "lost", second),
        ("concat(s, '!')", "id < 3", "lost", second),
    ):
        ice_spark.update(spark, table, {"s": value}, condition, idempotency_key=key)
        found = table.refresh().scan("id < 3").to_arrow()
        assert dict(zip(found["id"].to_pylist(), found["s"].to_pylist(), strict=True)) == expected
        assert table.scan().count() == 400
    assert left_over(table) == left


def left_over(table: ice.Table) -> set[str]:
    named = set(table.refresh().inspect.all_files()["file_path"].to_pylist())
    return {path for path, _ in table.storage.list(f"{table.location()}/data")} - named
