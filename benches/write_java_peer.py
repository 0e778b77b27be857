"""Java's expiry behind a pipe, run in the environment of ``tests/interop/java_peer.py``; it must not import icefield.

Requests and answers are JSON, one a line: ``{"folder": that of catalog.db, "older_than_ms": …, "threads": …}`` gives
``{"seconds": …, "files": …}``. The table is opened before the clock starts; files are deleted by as many threads as
asked for.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SQLITE = "org.xerial:sqlite-jdbc:3.46.1.3"


def expire(spark: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Expire all snapshots but the last of the table ``bench.n.t``, in a SQL catalog."""
    conf, jvm = spark.conf, spark.sparkContext._jvm
    folder = Path(asked["folder"])
    conf.set("spark.sql.catalog.bench", "org.apache.iceberg.spark.SparkCatalog")
    conf.set("spark.sql.catalog.bench.catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog")
    conf.set("spark.sql.catalog.bench.uri", f"jdbc:sqlite:{folder}/catalog.db")
    conf.set("spark.sql.catalog.bench.jdbc.schema-version", "V1")
    conf.set("spark.sql.catalog.bench.warehouse", str(folder))
    conf.set("spark.sql.catalog.bench.cache-enabled", "false")
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, "bench.n.t")
    before = _count(folder)
    pool = jvm.java.util.concurrent.Executors.newFixedThreadPool(asked["threads"])
    started = time.perf_counter()
    change = table.expireSnapshots().expireOlderThan(asked["older_than_ms"]).retainLast(1)
    change.executeDeleteWith(pool).planWith(pool).commit()
    seconds = time.perf_counter() - started
    pool.shutdown()
    return {"seconds": seconds, "files": before - _count(folder)}


def _count(folder: Path) -> int:
    return sum(len([name for name in files if not name.endswith(".crc")]) for _, _, files in os.walk(folder))


def main() -> None:
    """Answer requests until standard input ends."""
    from pyspark.sql import SparkSession

    answers = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", f"{RUNTIME},{SQLITE}")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    print(json.dumps({"ok": "ready"}), file=answers)
    for line in sys.stdin:
        try:
            answer = expire(spark, json.loads(line))
        except Exception as error:  # noqa: BLE001 - the bench prints what the peer cannot do
            answer = {"error": str(error).splitlines()[0]}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
