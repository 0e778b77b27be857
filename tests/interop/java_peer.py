"""The Java reference library behind a pipe: PySpark 4.1 with the Iceberg runtime jar, run in an environment of its own.

Started by ``conftest.py`` with the Python of that environment; it must not import icefield. Requests and answers are
JSON, one a line, on standard input and on the file descriptor given as the first argument (Spark writes what it likes
to standard output). A request is ``{"do": NAME, ...}``; the answer ``{"ok": ...}`` or ``{"error": text}``.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
SQLITE = "org.xerial:sqlite-jdbc:3.46.1.3"


class Peer:
    """One Spark session with the catalogs that requests add."""

    def __init__(self, scratch: str) -> None:
        from pyspark.sql import SparkSession

        self.spark = (
            SparkSession.builder.master("local[2]")
            .appName("icefield interop")
            .config("spark.jars.packages", f"{RUNTIME},{SQLITE}")
            .config("spark.sql.extensions", "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.session.timeZone", "UTC")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.warehouse.dir", os.path.join(scratch, "spark-warehouse"))
            .config("spark.driver.memory", "2g")
            .config("spark.sql.timeType.enabled", "true")
            .getOrCreate()
        )
        self.spark.sparkContext.setLogLevel("ERROR")

    def sqlite_catalog(self, name: str, uri: str, warehouse: str) -> None:
        """Make ``name`` a Spark catalog over the SQLite file of a SQL catalog."""
        conf = self.spark.conf
        conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
        conf.set(f"spark.sql.catalog.{name}.catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog")
        conf.set(f"spark.sql.catalog.{name}.uri", f"jdbc:sqlite:{uri}")
        conf.set(f"spark.sql.catalog.{name}.jdbc.schema-version", "V1")
        conf.set(f"spark.sql.catalog.{name}.warehouse", warehouse)
        conf.set(f"spark.sql.catalog.{name}.cache-enabled", "false")

    def sql(self, text: str) -> None:
        """Run a statement."""
        self.spark.sql(text).collect()

    def query(self, text: str, path: str) -> int:
        """Run a query, write its rows to an Arrow IPC file, and give their number."""
        import pyarrow as pa

        rows = self.spark.sql(text).toArrow()
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        return int(rows.num_rows)

    def insert(self, table: str, path: str) -> None:
        """Append the rows of an Arrow IPC file, matched by name."""
        import pyarrow as pa

        with pa.memory_map(path) as source:
            rows = pa.ipc.open_file(source).read_all()
        self.spark.createDataFrame(rows).writeTo(table).append()

    def plan(self, table: str, expressions: list[str], case_sensitive: bool = True) -> list[Any]:
        """Plan each REST expression with Java's own planner; give the data files with their deletes."""
        jvm = self.spark.sparkContext._jvm
        loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, table)
        return [self._plan(jvm, loaded, text, case_sensitive) for text in expressions]

    def _plan(self, jvm: Any, table: Any, text: str, case_sensitive: bool) -> Any:
        try:
            expression = jvm.org.apache.iceberg.expressions.ExpressionParser.fromJson(text, table.schema())
            scan = table.newScan().caseSensitive(case_sensitive).filter(expression)
            files, tasks = [], scan.planFiles().iterator()
            while tasks.hasNext():
                task = tasks.next()
                deletes = sorted(str(delete.location()) for delete in task.deletes())
                residual = jvm.org.apache.iceberg.expressions.ExpressionParser.toJson(task.residual())
                files.append({"file": str(task.file().location()), "deletes": deletes, "residual": residual})
            return sorted(files, key=lambda file: file["file"])
        except Exception as error:  # noqa: BLE001 - any failure of the reference is an answer
            return {"error": str(error).splitlines()[0]}

    def metadata_location(self, table: str) -> str:
        """Give where the table's metadata is now."""
        jvm = self.spark.sparkContext._jvm
        loaded = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, table)
        return str(loaded.operations().current().metadataFileLocation())


def main() -> None:
    """Answer requests until standard input ends."""
    answers = os.fdopen(int(sys.argv[1]), "w", buffering=1)
    peer = Peer(sys.argv[2])
    print(json.dumps({"ok": "ready"}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": getattr(peer, request.pop("do"))(**request)}
        except Exception as error:  # noqa: BLE001 - the test decides what an error means
            answer = {"error": f"{type(error).__name__}: {error}"[:4000]}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
