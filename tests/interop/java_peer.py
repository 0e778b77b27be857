"""The Java reference library behind a pipe: PySpark 4.1 with the Iceberg runtime jar, run in an environment of its own.

Started by ``conftest.py`` with the Python of that environment; it imports icefield for twins only. Requests and answers
are JSON, one a line, on standard input and on the file descriptor given as the first argument (Spark writes what it
likes to standard output). A request is ``{"do": NAME, ...}``; the answer ``{"ok": ...}`` or ``{"error": text}``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
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
            .config("spark.driver.memory", os.environ.get("ICEFIELD_JAVA_MEMORY", "2g"))
            # A query of a few rows ends before what would be compiled for it.
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
            .config("spark.sql.timeType.enabled", "true")
            .getOrCreate()
        )
        self.spark.sparkContext.setLogLevel("ERROR")
        self.connection: Any = None
        self._twins: Any = None
        self.scratch = scratch

    def sqlite_catalog(self, name: str, uri: str, warehouse: str) -> None:
        """Make ``name`` a Spark catalog over the SQLite file of a SQL catalog."""
        conf = self.spark.conf
        conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
        conf.set(f"spark.sql.catalog.{name}.catalog-impl", "org.apache.iceberg.jdbc.JdbcCatalog")
        conf.set(f"spark.sql.catalog.{name}.uri", f"jdbc:sqlite:{uri}")
        conf.set(f"spark.sql.catalog.{name}.jdbc.schema-version", "V1")
        conf.set(f"spark.sql.catalog.{name}.warehouse", warehouse)
        conf.set(f"spark.sql.catalog.{name}.cache-enabled", "false")

    def catalog(self, name: str, properties: dict[str, str]) -> None:
        """Make ``name`` a Spark catalog with these properties."""
        self.spark.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
        for key, value in {**properties, "cache-enabled": "false"}.items():
            self.spark.conf.set(f"spark.sql.catalog.{name}.{key}", value)

    def compiled(self, source: str, scratch: str) -> None:
        """Compile a class with the jars of this session, which then has it."""
        jvm: Any = self.spark.sparkContext._jvm
        loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
        jars = [url.getPath() for url in loader.getURLs()] + jvm.java.lang.System.getProperty("java.class.path").split(
            ":"
        )
        javac = str(Path(str(jvm.java.lang.System.getProperty("java.home"))) / "bin" / "javac")
        command = [javac, "-nowarn", "-d", scratch, "-cp", ":".join(jars), source]
        compiled = subprocess.run(command, capture_output=True, text=True, check=False)
        if compiled.returncode != 0:
            raise RuntimeError(compiled.stderr)
        loader.addURL(jvm.java.io.File(scratch).toURI().toURL())

    def twins(self, **story: Any) -> Any:
        """Do a story on twin tables, by this connector and by icefield (``twins.py``)."""
        return self._made().story(**story)

    def turns(self, **story: Any) -> Any:
        """Run statements of both on one table."""
        return self._made().turns(**story)

    def _made(self) -> Any:
        if self._twins is None:
            from twins import Twins

            folder = os.path.join(self.scratch, "twins")
            os.mkdir(folder)
            self.sqlite_catalog("jtwin", f"{folder}/jtwin.db", f"file://{folder}/jtwin")
            self._twins = Twins(self.spark, folder)
        return self._twins

    def constants(self, name: str) -> list[str]:
        """Give the public constants of a class that are texts."""
        loader = self.spark.sparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader()
        found = loader.loadClass(name).getFields()
        return [str(one.get(None)) for one in found if one.getType().getSimpleName() == "String"]

    def reports(self, scan: str, commit: str) -> list[str]:
        """Give two reports as Java reads and writes them."""
        metrics = self.spark.sparkContext._jvm.org.apache.iceberg.metrics
        parsers = ((metrics.ScanReportParser, scan), (metrics.CommitReportParser, commit))
        return [str(parser.toJson(parser.fromJson(text))) for parser, text in parsers]

    def scan_report(self, table: str, filter: str) -> str:
        """Give Java's report about a scan that it plans."""
        jvm: Any = self.spark.sparkContext._jvm
        reporter = jvm.org.apache.iceberg.metrics.InMemoryMetricsReporter()
        scan = self._load(table).newScan().metricsReporter(reporter)
        planned = scan.filter(jvm.org.apache.iceberg.expressions.ExpressionParser.fromJson(filter, scan.schema()))
        files = planned.planFiles()
        tasks = files.iterator()
        while tasks.hasNext():
            tasks.next()
        files.close()
        return str(jvm.org.apache.iceberg.metrics.ScanReportParser.toJson(reporter.scanReport()))

    def procedures(self) -> dict[str, list[list[Any]]]:
        """Give name, type and whether it is required of the parameters of all procedures."""
        self._made()
        jvm = self.spark.sparkContext._jvm
        catalog = self.spark._jsparkSession.sessionState().catalogManager().catalog("jtwin")
        found = {}
        for name in list(jvm.org.apache.iceberg.spark.procedures.SparkProcedures.names()):
            made = jvm.org.apache.iceberg.spark.procedures.SparkProcedures.newBuilder(name)
            bound = made.withTableCatalog(catalog).build().bind(None)
            found[str(name)] = [
                [str(one.name()), str(one.dataType().simpleString()), one.defaultValue() is None]
                for one in bound.parameters()
            ]
        return found

    def sql(self, text: str) -> None:
        """Run a statement."""
        self.spark.sql(text).collect()

    def query(self, text: str, path: str) -> int:
        """Run a query, write its rows to an Arrow IPC file, and give their number."""
        return self._save(self.spark.sql(text), path)

    def read(self, table: str, options: dict[str, str], path: str) -> int:
        """Read a table by name, write its rows to an Arrow IPC file, and give their number."""
        return self._save(self.spark.read.format("iceberg").options(**options).load(table), path)

    def duckdb(self, location: str, path: str) -> int:
        """Read a table by its metadata file with DuckDB, write its rows to an Arrow IPC file, and give their number."""
        import duckdb
        import pyarrow as pa

        if self.connection is None:
            # Where packages of extensions put them; DuckDB would download them.
            extensions = Path(duckdb.__file__).parents[1] / "duckdb_ext" / "extensions"
            self.connection = duckdb.connect(config={"extension_directory": str(extensions)})
            self.connection.execute("SET TimeZone = 'UTC'")
            self.connection.execute("LOAD avro")
            self.connection.execute("LOAD iceberg")
        rows = self.connection.sql(f"SELECT * FROM iceberg_scan('{location}')").fetch_arrow_table()
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        return int(rows.num_rows)

    def schema(self, table: str) -> str:
        """Give the schema of a table as Spark's JSON."""
        return str(self.spark.table(table).schema.json())

    def _save(self, frame: Any, path: str) -> int:
        import pyarrow as pa

        rows = frame.toArrow()
        with pa.OSFile(path, "wb") as sink, pa.ipc.new_file(sink, rows.schema) as writer:
            writer.write_table(rows)
        return int(rows.num_rows)

    def insert(self, table: str, path: str) -> None:
        """Append the rows of an Arrow IPC file, matched by name."""
        import pyarrow as pa

        with pa.memory_map(path) as source:
            rows = pa.ipc.open_file(source).read_all()
        self.spark.createDataFrame(rows).writeTo(table).append()

    def write(self, table: str, how: str, **arguments: Any) -> int:
        """Add files by one of the verbs of ``java_writes.Writes``; give how many."""
        from java_writes import Writes

        context = self.spark.sparkContext
        return int(getattr(Writes(context._jvm, context._gateway, self._load(table)), how)(**arguments))

    def _load(self, table: str) -> Any:
        jvm = self.spark.sparkContext._jvm
        return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(self.spark._jsparkSession, table)

    def plan(self, table: str, cases: list[dict[str, Any]]) -> list[Any]:
        """Plan scans with Java's own planner.

        A case has ``filter`` (REST JSON), and may have ``typed`` (false: literals are read without the schema),
        ``case_sensitive``, ``snapshot_id``, ``ref``, and ``split``: ``[size, lookback, open file cost]`` with
        ``order``, the paths of the files in the order in which they are to be packed. The answer has ``files`` with
        their deletes and residuals, and ``tasks``; or the ``error``.
        """
        loaded = self._load(table)
        return [self._plan(loaded, **case) for case in cases]

    def _plan(self, table: Any, filter: str, **case: Any) -> Any:
        try:
            return self._planned(table, filter, **case)
        except Exception as error:  # noqa: BLE001 - any failure of the reference is an answer
            return {"error": str(getattr(error, "java_exception", error))[:500]}

    def _planned(
        self,
        table: Any,
        filter: str,
        typed: bool = True,
        case_sensitive: bool = True,
        snapshot_id: int | None = None,
        ref: str | None = None,
        split: list[int] | None = None,
        order: list[str] | None = None,
    ) -> Any:
        parser = self.spark.sparkContext._jvm.org.apache.iceberg.expressions.ExpressionParser
        scan = table.newScan().caseSensitive(case_sensitive)
        scan = scan.useSnapshot(snapshot_id) if snapshot_id is not None else scan
        scan = scan.useRef(ref) if ref is not None else scan
        scan = scan.filter(parser.fromJson(filter, scan.schema()) if typed else parser.fromJson(filter))
        files, by_path, tasks = [], {}, scan.planFiles().iterator()
        while tasks.hasNext():
            task = tasks.next()
            path = str(task.file().location())
            deletes = [[str(delete.location()), delete.contentOffset()] for delete in task.deletes()]
            residual = parser.toJson(task.residual())
            files.append({"file": path, "deletes": sorted(deletes, key=str), "residual": residual})
            by_path[path] = task
        answer: dict[str, Any] = {"files": sorted(files, key=lambda file: str(file["file"]))}
        if split and set(order or []) == set(by_path):
            answer["tasks"] = self._pack([by_path[path] for path in order or []], *split)
        return answer

    def _pack(self, tasks: list[Any], size: int, lookback: int, cost: int) -> list[Any]:
        """Cut and pack tasks in this order."""
        iceberg = self.spark.sparkContext._jvm.org.apache.iceberg
        listed = self.spark.sparkContext._jvm.java.util.ArrayList()
        for task in tasks:
            listed.add(task)
        every = iceberg.io.CloseableIterable.combine(listed, iceberg.io.CloseableIterable.empty())
        split = iceberg.util.TableScanUtil.splitFiles(every, size)
        packed = iceberg.util.TableScanUtil.planTasks(split, size, lookback, cost).iterator()
        found = []
        while packed.hasNext():
            pieces = packed.next().files()
            found.append([[str(piece.file().location()), piece.start(), piece.length()] for piece in pieces])
        return found

    def ids(self, table: str, filters: list[str]) -> list[list[int]]:
        """Read a table with the library's own reader: the values of its column ``id``, for each filter (REST JSON)."""
        iceberg = self.spark.sparkContext._jvm.org.apache.iceberg
        loaded = self._load(table)
        return [self._ids(iceberg, loaded, text) for text in filters]

    def _ids(self, iceberg: Any, table: Any, text: str) -> list[int]:
        parsed = iceberg.expressions.ExpressionParser.fromJson(text)
        records = iceberg.data.IcebergGenerics.read(table).where(parsed).build()
        found, rows = [], records.iterator()
        while rows.hasNext():
            found.append(int(rows.next().getField("id")))
        records.close()
        return sorted(found)

    def sketches(self, table: str) -> dict[str, float]:
        """Return the estimates of the theta sketches in the statistics files of a table, by field id."""
        loaded = self._load(table)
        jvm = self.spark.sparkContext._jvm
        iceberg, theta = jvm.org.apache.iceberg, jvm.org.apache.iceberg.shaded.org.apache.datasketches
        found = {}
        listed = iceberg.relocated.com.google.common.collect.Lists.newArrayList
        for file in listed(loaded.statisticsFiles()):
            reader = iceberg.puffin.Puffin.read(loaded.io().newInputFile(file.path())).build()
            for pair in listed(reader.readAll(reader.fileMetadata().blobs())):
                memory = theta.memory.Memory.wrap(iceberg.util.ByteBuffers.toByteArray(pair.second()))
                sketch = theta.theta.CompactSketch.wrap(memory)
                found[str(listed(pair.first().inputFields())[0])] = float(sketch.getEstimate())
            reader.close()
        return found

    def metadata_location(self, table: str) -> str:
        """Give where the table's metadata is now."""
        return str(self._load(table).operations().current().metadataFileLocation())


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
            # Behind a long trace stands what it was about.
            causes = [line for line in str(error).splitlines() if line.startswith("Caused by")]
            answer = {"error": "\n".join([f"{type(error).__name__}: {error}"[:4000], *causes[-1:]])}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
