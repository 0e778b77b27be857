"""How do changes of rows and streams in Spark compare with the Java connector's, in the same session?

The flights out of New York, repeated up to 5 million rows with a number each, in tables of format version 3: a merge
that changes 1 % of the rows and adds a few, deletes of 0.1 % and of 10 %, each as merge-on-read and as copy-on-write,
an overwrite of one day of a table by day, and a stream whose epochs append a thousand rows each. Before every turn the
table is rolled back to its first state, which is not timed.

The floor of a merge is a job that reads the columns from Parquet, joins them and hands the rows that are written to
Python workers, which do nothing with them; of a delete one that finds the numbers; of an overwrite one that hands over
the new rows; of a stream one that writes nowhere.

    make bench WHAT=spark_changes
    python benches/spark_changes.py [--rows N] [--rounds N] [--epochs N] [--only merge,delete,overwrite,stream]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from side_by_side import Row, Target, measure, report

from spark import flights, on_spark_of_java, session

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

#: Changes may take this share of Java's time, an epoch of a stream that one.
CHANGE, EPOCH = 1.5, 1.3
MODES = ("merge-on-read", "copy-on-write")


class Twins:
    """The same rows in a table of each, which go back to their first state before every turn."""

    def __init__(self, spark: SparkSession, folder: Path, source: DataFrame, by: str = "") -> None:
        import icefield as ice
        import icefield.spark as ice_spark

        self.spark = spark
        self.source = source
        self.ice_spark = ice_spark
        name = f"t{len(list(folder.glob('*.db')))}"
        self.java = f"java.nyc.{name}"
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in source.schema.fields)
        parts = f"PARTITIONED BY ({by})" if by else ""
        spark.sql(f"CREATE TABLE {self.java} ({columns}) USING iceberg {parts} TBLPROPERTIES ('format-version'='3')")
        source.writeTo(self.java).append()
        self.options = {"catalog": name, "uri": f"sqlite:///{folder}/{name}.db", "warehouse": str(folder / "ours")}
        catalog = ice.load_catalog(name, uri=self.options["uri"], warehouse=self.options["warehouse"])
        catalog.create_namespace("nyc")
        schema = ice_spark.schema_of(source)
        properties = {"format-version": "3"}
        self.ours = catalog.create_table(f"nyc.{name}", schema, partition_by=[by] if by else [], properties=properties)
        ice_spark.append(source, self.ours)
        self.first = {
            "Java": spark.sql(f"SELECT snapshot_id FROM {self.java}.snapshots").collect()[0][0],
            "icefield": self.ours.current_snapshot().snapshot_id,
        }
        self.files = [path for path, _ in self.ours.storage.list(f"{self.ours.location()}/data")]

    def back(self, peer: str) -> None:
        """Take a table back to its first state."""
        if peer == "Java":
            catalog, table = self.java.split(".", 1)
            self.spark.sql(f"CALL {catalog}.system.rollback_to_snapshot('{table}', {self.first[peer]})")
        elif peer == "icefield":
            self.ours.manage_snapshots().rollback_to_snapshot(self.first[peer]).commit()

    def set(self, command: str, mode: str) -> None:
        """Choose how Java changes rows; we are told with each call."""
        self.spark.sql(f"ALTER TABLE {self.java} SET TBLPROPERTIES ('write.{command}.mode' = '{mode}')")

    def same(self, change: Callable[[], object], of_java: Callable[[], object]) -> None:
        """Let both answer once, and see that their tables have the same rows then."""
        change()
        of_java()
        mine = self.ice_spark.read(self.spark, self.ours.refresh())
        theirs = self.spark.table(self.java)
        count, total = "count(*)", "sum(xxhash64(*) % 1000003)"
        found = [frame.selectExpr(count, total).first() for frame in (mine, theirs)]
        assert found[0] == found[1], found

    def compared(
        self, question: str, rounds: int, ours: Callable[[], object], java: Callable[[], object], floor: Any
    ) -> Row:
        """Time a change."""
        self.same(ours, java)
        peers = {"icefield": ours, "Java": java, "join and transport": floor}
        return measure(question, peers, rounds=rounds, targets=[Target("Java", CHANGE)], before=self.back)


def received(rows: DataFrame) -> None:
    """Hand rows to Python workers that do nothing with them."""

    def nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        yield from ()

    rows.mapInArrow(nothing, "nothing int").collect()


def merging(spark: SparkSession, folder: Path, source: DataFrame, rounds: int) -> Iterator[Row]:
    """Change each hundredth row, and add as many again as a tenth of those."""
    twins = Twins(spark, folder, source)
    rows = source.where("id % 100 = 7").selectExpr("* EXCEPT (arr_delay)", "arr_delay + 1 AS arr_delay")
    more = source.where("id % 1000 = 8").selectExpr("* EXCEPT (id)", "-id - 1 AS id")
    rows.unionByName(more).select(*source.columns).write.parquet(str(folder / "changes"))
    changes = spark.read.parquet(str(folder / "changes"))
    changes.createOrReplaceTempView("changes")
    stored = spark.read.parquet(*twins.files)
    for mode in MODES:
        twins.set("merge", mode)

        def ours(mode: Any = mode) -> object:
            merge = twins.ice_spark.merge(changes, twins.ours, "id", mode=mode)
            return merge.when_matched_update_all().when_not_matched_insert_all().execute()

        def java() -> object:
            return spark.sql(
                f"MERGE INTO {twins.java} t USING changes s ON t.id = s.id "
                "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
            )

        def floor() -> None:
            received(stored.alias("t").join(changes.alias("s"), "id", "right").select("s.*"))

        yield twins.compared(f"merge of 1 %, {mode}", rounds, ours, java, floor)


def deleting(spark: SparkSession, folder: Path, source: DataFrame, rounds: int) -> Iterator[Row]:
    """Delete rows here and there."""
    twins = Twins(spark, folder, source)
    stored = spark.read.parquet(*twins.files)
    for share, condition in (("0.1 %", "id % 1000 = 7"), ("10 %", "id % 10 = 7")):
        for mode in MODES:
            twins.set("delete", mode)
            yield twins.compared(
                f"delete of {share}, {mode}",
                rounds,
                lambda mode=mode, condition=condition: twins.ice_spark.delete(spark, twins.ours, condition, mode=mode),
                lambda condition=condition: spark.sql(f"DELETE FROM {twins.java} WHERE {condition}"),
                lambda condition=condition: received(stored.where(condition).select("id")),
            )


def overwriting(spark: SparkSession, folder: Path, source: DataFrame, rounds: int) -> Iterator[Row]:
    """Replace one day."""
    twins = Twins(spark, folder, source, "day(time)")
    source.where("to_date(time) = '2013-06-01'").write.parquet(str(folder / "one-day"))
    day = spark.read.parquet(str(folder / "one-day"))
    yield twins.compared(
        "overwrite of one day",
        rounds,
        lambda: twins.ice_spark.write(day, twins.ours, "dynamic"),
        lambda: day.writeTo(twins.java).overwritePartitions(),
        lambda: received(day),
    )


def streaming(spark: SparkSession, folder: Path, source: DataFrame, rounds: int, epochs: int) -> Iterator[Row]:
    """Append the epochs of a stream; the time is that of one epoch."""
    twins = Twins(spark, folder, source.limit(0))
    arrivals = str(folder / "arrivals")
    source.limit(1000 * epochs).repartition(epochs).write.parquet(arrivals)
    made = 0

    def run(into: Callable[[Any], Any]) -> None:
        nonlocal made
        made += 1
        stream = spark.readStream.schema(source.schema).option("maxFilesPerTrigger", 1).parquet(arrivals)
        writer = stream.writeStream.option("checkpointLocation", str(folder / f"checkpoint-{made}"))
        query = into(writer.trigger(availableNow=True))
        query.awaitTermination()
        assert query.lastProgress["batchId"] == epochs - 1, query.lastProgress

    name = ".".join(twins.ours.name())
    peers: dict[str, Callable[[], object]] = {
        "icefield": lambda: run(lambda to: to.format("icefield").options(**twins.options, path=name).start()),
        "Java": lambda: run(lambda to: to.format("iceberg").toTable(twins.java)),
        "join and transport": lambda: run(lambda to: to.format("noop").start()),
    }
    twins.same(peers["icefield"], peers["Java"])
    row = measure("epoch of a stream", peers, rounds=rounds, targets=[Target("Java", EPOCH)])
    yield Row(row.question, {peer: took / epochs for peer, took in row.seconds.items()}, None, row.targets)


def main() -> None:
    """Ask the questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--only", default="merge,delete,overwrite,stream")
    options = parser.parse_args()
    on_spark_of_java()
    asked = options.only.split(",")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spark = session(folder)
        (folder / "plain").mkdir()
        flights(spark, folder / "plain", options.rows).selectExpr(
            "monotonically_increasing_id() AS id", "*"
        ).write.parquet(str(folder / "source"))
        source = spark.read.parquet(str(folder / "source"))
        import icefield.spark as ice_spark

        ice_spark.register(spark)
        answers: list[Row] = []
        if "merge" in asked:
            answers += merging(spark, folder, source, options.rounds)
        if "delete" in asked:
            answers += deleting(spark, folder, source, options.rounds)
        if "overwrite" in asked:
            answers += overwriting(spark, folder, source, options.rounds)
        if "stream" in asked:
            answers += streaming(spark, folder, source, options.rounds, options.epochs)
        report(f"PySpark {spark.version}, {options.rows:,} flights", answers, floor="join and transport")
        spark.stop()


if __name__ == "__main__":
    main()
