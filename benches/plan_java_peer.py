"""Java's planner behind a pipe, run in the environment of ``tests/interop/java_peer.py``; it must not import icefield.

Requests and answers are JSON, one a line: ``{"table": metadata file, "filter": REST expression or null}`` gives
``{"seconds": …, "files": …, "links": …}``. The table is opened before the clock starts; its manifests are not cached.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"


def plan(jvm: Any, conf: Any, asked: dict[str, Any]) -> dict[str, Any]:
    """Plan one scan and walk over its tasks inside of the virtual machine."""
    iceberg = jvm.org.apache.iceberg
    operations = iceberg.StaticTableOperations(asked["table"], iceberg.hadoop.HadoopFileIO(conf))
    table = iceberg.BaseTable(operations, "bench")
    reporter = iceberg.metrics.InMemoryMetricsReporter()
    scan = table.newScan().metricsReporter(reporter)
    if asked["filter"] is not None:
        text = json.dumps(asked["filter"])
        scan = scan.filter(iceberg.expressions.ExpressionParser.fromJson(text, table.schema()))
    started = time.perf_counter()
    tasks = scan.planFiles()
    files = iceberg.relocated.com.google.common.collect.Iterables.size(tasks)
    seconds = time.perf_counter() - started
    tasks.close()
    links = reporter.scanReport().scanMetrics().resultDeleteFiles()
    return {"seconds": seconds, "files": int(files), "links": 0 if links is None else int(links.value())}


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
            answer = plan(jvm, conf, json.loads(line))
        except Exception as error:  # noqa: BLE001 - the bench prints what the peer cannot do
            answer = {"error": str(error).splitlines()[0]}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
