"""Java's expiry behind a pipe, run in the environment of ``tests/interop/java_peer.py``; it must not import icefield.

Requests and answers are JSON, one a line: ``{"table": metadata file, "older_than_ms": …, "threads": …}`` gives
``{"seconds": …, "files": …}``. The table is opened by a catalog of its folder before the clock starts; files are
deleted by as many threads as asked for.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


def expire(jvm: Any, conf: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Expire all snapshots but the last of a table that is registered in a catalog of its own."""
    iceberg = jvm.org.apache.iceberg
    location = Path(asked["table"])
    catalog = iceberg.inmemory.InMemoryCatalog()
    properties = jvm.java.util.HashMap()
    properties.put("warehouse", str(location.parent))
    properties.put("io-impl", "org.apache.iceberg.hadoop.HadoopFileIO")
    catalog.setConf(conf) if hasattr(catalog, "setConf") else None
    catalog.initialize("bench", properties)
    catalog.createNamespace(iceberg.catalog.Namespace.of(_texts(jvm, "n")))
    name = iceberg.catalog.TableIdentifier.of(_texts(jvm, "n", "t"))
    table = catalog.registerTable(name, f"file:{location}")
    before = _count(location.parent.parent)
    pool = jvm.java.util.concurrent.Executors.newFixedThreadPool(asked["threads"])
    started = time.perf_counter()
    change = table.expireSnapshots().expireOlderThan(asked["older_than_ms"]).retainLast(1)
    change.executeDeleteWith(pool).planWith(pool).commit()
    seconds = time.perf_counter() - started
    pool.shutdown()
    return {"seconds": seconds, "files": before - _count(location.parent.parent)}


def _texts(jvm: Any, *texts: str) -> Any:
    from pyspark import SparkContext

    array = SparkContext._active_spark_context._gateway.new_array(jvm.java.lang.String, len(texts))
    for place, text in enumerate(texts):
        array[place] = text
    return array


def _count(folder: Path) -> int:
    return sum(len([name for name in files if not name.endswith(".crc")]) for _, _, files in os.walk(folder))


def main() -> None:
    """Answer requests until standard input ends."""
    from pyspark.sql import SparkSession

    answers = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.jars.packages", RUNTIME)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    jvm, conf = spark.sparkContext._jvm, spark.sparkContext._jsc.hadoopConfiguration()
    print(json.dumps({"ok": "ready"}), file=answers)
    for line in sys.stdin:
        try:
            answer = expire(jvm, conf, json.loads(line))
        except Exception as error:  # noqa: BLE001 - the bench prints what the peer cannot do
            answer = {"error": str(error).splitlines()[0]}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
