"""Reads, writes and changes on a cluster whose executors are killed in the middle; run by `test_clusters.py`.

    python on_cluster.py FOLDER

At the end the driver itself is lost, between the tasks of an update and its commit: it exits with `LOST`.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tarfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

import pyspark
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import icefield as ice
import icefield.spark as ice_spark
from icefield.spark.changing import running

LOST = 7
ROWS = 400


def spark_home(folder: Path) -> str:
    """Return a Spark of links: workers keep what executors print in a folder of it."""
    home = folder / "spark"
    home.mkdir()
    for entry in Path(pyspark.__path__[0]).iterdir():
        (home / entry.name).symlink_to(entry)
    return str(home)


def archive(folder: Path) -> str:
    """Pack icefield as `pip install --target` lays it out, for executors that have it not."""
    package = Path(ice.__file__).parent
    packed = folder / "deps.tar"
    with tarfile.open(packed, "w") as into:
        into.add(package, package.name, filter=lambda one: None if "__pycache__" in one.name else one)
    return f"{packed}#deps"


def python_without_us(folder: Path) -> str:
    """Return a Python that does not look into its environment by itself, where icefield is installed."""
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    script.chmod(0o755)
    return str(script)


def cluster(folder: Path, **settings: str) -> SparkSession:
    """Start two executors of a core each."""
    # Of this environment they have what stands in its folder, and not what is linked there.
    path = os.pathsep.join(["deps", str(Path(__file__).parent), sysconfig.get_path("purelib")])
    builder = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.executorEnv.PYTHONPATH", path)
        .config("spark.executorEnv.FAULTS", str(folder / "faults"))
        .config("spark.archives", archive(folder))
        .config("spark.python.daemon.module", "faulty_daemon")
        .config("spark.deploy.maxExecutorRetries", "-1")
        .config("spark.task.maxFailures", "2")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
    )
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


class Trial:
    """A session, tables, and faults."""

    def __init__(self, folder: Path) -> None:
        self.faults = folder / "faults"
        self.options = {"catalog": "c", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"{folder}/wh"}
        self.catalog = ice.load_catalog("c", uri=self.options["uri"], warehouse=self.options["warehouse"])
        self.catalog.create_namespace("db")
        self.folder = folder
        self.number = 0

    def start(self, **settings: str) -> None:
        """Start the cluster."""
        self.spark = cluster(self.folder, **settings)

    def table(self, rows: int = ROWS, **properties: str) -> ice.Table:
        """Make a table of four files."""
        self.number += 1
        properties = {"format-version": "3", **{name.replace("_", "."): value for name, value in properties.items()}}
        schema = ice_spark.schema_of(self.rows(0))
        made = self.catalog.create_table(f"db.t{self.number}", schema, properties=properties)
        if rows:
            ice_spark.append(self.rows(rows), made)
        return made

    def rows(self, count: int, start: int = 0) -> DataFrame:
        """Give rows in four tasks."""
        frame = self.spark.range(start, start + count, 1, 4)
        return frame.selectExpr("id", "id % 7 AS k", "'old' AS s")

    def struck(self, place: str, call: Callable[[], Any], *others: str, what: str = "kill") -> Any:
        """Call while faults wait at places, and see that they have struck."""
        for one in self.faults.iterdir():
            one.unlink()
        for one in (place, *others):
            (self.faults / one).write_text(what)
        try:
            return call()
        finally:
            for one in (place, *others):
                assert list(self.faults.glob(f"{one}-*")), f"no worker came to {one}"

    def same(self, table: ice.Table, expected: dict[int, str], snapshots: int) -> None:
        """See that a table has these rows once, and its folder only files of it."""
        found = table.refresh().scan().to_arrow()
        ids = found["id"].to_pylist()
        assert len(ids) == len(set(ids)) == len(expected), (len(ids), len(set(ids)), len(expected))
        assert dict(zip(ids, found["s"].to_pylist(), strict=True)) == expected
        assert len(table.snapshots()) == snapshots
        assert left_over(table) == set()


def left_over(table: ice.Table) -> set[str]:
    """Return the files in the folder of a table that no snapshot has."""
    named = set(table.refresh().inspect.all_files()["file_path"].to_pylist())
    return {path for path, _ in table.storage.list(f"{table.location()}/data")} - named


def set_up(trial: Trial) -> None:
    """Executors import what was sent."""
    found = trial.spark.sparkContext.parallelize([0], 1).map(lambda _: import_module("icefield").__file__).collect()
    assert "/deps/icefield/" in str(found[0]), found
    assert str(trial.folder) in str(found[0]), found


def reads(trial: Trial) -> None:
    """An executor dies behind the first rows of a task that reads."""
    table = trial.table()
    for frame in (
        ice_spark.read(trial.spark, table, native=False),
        trial.spark.read.format("icefield").options(**trial.options).load("db.t1"),
    ):
        found = trial.struck("read", frame.collect)
        assert sorted(row.id for row in found) == list(range(ROWS))


def writes(trial: Trial) -> None:
    """An executor dies when a task has written its files, before anybody has its result."""
    old = dict.fromkeys(range(ROWS), "old")
    table = trial.table(0)
    trial.struck("written", lambda: ice_spark.append(trial.rows(ROWS), table))
    trial.same(table, old, 1)
    save = trial.rows(ROWS, ROWS).write.format("icefield").options(**trial.options).mode("append")
    trial.struck("written", lambda: save.save(f"db.t{trial.number}"))
    trial.same(table, old | dict.fromkeys(range(ROWS, 2 * ROWS), "old"), 2)


def changes(trial: Trial) -> None:
    """The same in changes of both modes: where rows are taken out and where new ones are written."""
    old = dict.fromkeys(range(ROWS), "old")
    for mode in ("merge-on-read", "copy-on-write"):
        for place in ("removed", "written"):
            table = trial.table()
            source = trial.rows(ROWS, ROWS // 2).selectExpr("id", "k", "'new' AS s")
            merge = ice_spark.merge(source, table, "id", mode=mode)
            merge.when_matched_update_all().when_not_matched_insert_all()
            done = trial.struck(place, merge.execute)
            assert (done.rows_updated, done.rows_inserted) == (ROWS // 2, ROWS // 2)
            trial.same(table, old | dict.fromkeys(range(ROWS // 2, 3 * ROWS // 2), "new"), 2)
            if mode == "merge-on-read":
                assert stage_attempts(trial.spark, table) > 0, "lost shuffle files are made again"
        trial.struck("removed", lambda: ice_spark.delete(trial.spark, table, "id % 2 = 0 AND k < 7", mode=mode))  # noqa: B023
        kept = {number: text for number, text in (old | dict.fromkeys(range(200, 600), "new")).items() if number % 2}
        trial.same(table, kept, 3)
    # Found by icefield itself, without a shuffle; the driver does this alone where files are as small as these.
    running.OWN_BYTES = dict.fromkeys(running.OWN_BYTES, -1)
    trial.struck("removed", lambda: ice_spark.delete(trial.spark, table, "k = 3", mode="merge-on-read"))
    trial.same(table, {number: text for number, text in kept.items() if number % 7 != 3}, 4)


def stage_attempts(spark: SparkSession, table: ice.Table) -> int:
    """Return how many stages of the last change Spark has tried again."""
    context = spark.sparkContext
    tag = f"icefield-change-{table.current_snapshot().summary['icefield.write-id']}"  # type: ignore[union-attr,index]
    tracker = context.statusTracker()
    jobs = context._jsc.sc().statusTracker().getJobIdsForTag(tag)
    infos = [tracker.getStageInfo(stage) for job in jobs for stage in tracker.getJobInfo(job).stageIds]  # type: ignore[union-attr]
    return sum(info.currentAttemptId for info in infos if info is not None)


def epochs(trial: Trial) -> None:
    """The same in a batch of a stream."""
    source, copy = trial.table(), trial.table(0)
    stream = trial.spark.readStream.format("icefield").options(**trial.options).load(f"db.t{trial.number - 1}")
    for number, place in enumerate(("written", "read"), 1):
        writer = stream.writeStream.format("icefield").options(**trial.options).option("path", f"db.t{trial.number}")
        writer = writer.option("checkpointLocation", str(trial.folder / "checkpoint")).trigger(availableNow=True)
        trial.struck(place, lambda: writer.start().awaitTermination())  # noqa: B023
        trial.same(copy, dict.fromkeys(range(number * ROWS), "old"), number)
        ice_spark.append(trial.rows(ROWS, number * ROWS), source)


def failures(trial: Trial) -> None:
    """A task whose executor dies as often as Spark tries it: the table stays, and so does its folder."""
    table = trial.table()

    def kill(batches: Any) -> Any:
        from faulty_daemon import strike

        yield from batches
        for place in ("first", "second"):
            strike(place)

    rows = trial.rows(ROWS, ROWS).coalesce(1).mapInArrow(kill, "id BIGINT, k BIGINT, s STRING")
    try:
        trial.struck("first", lambda: ice_spark.append(rows, table), "second")
    except (PySparkException, Py4JJavaError) as error:
        assert "ExecutorLostFailure" in str(error), error
    else:
        raise AssertionError("the append did not fail")
    trial.same(table, dict.fromkeys(range(ROWS), "old"), 1)


def speculation(trial: Trial) -> None:
    """The slower one of two attempts at a task has written its files too."""
    old = dict.fromkeys(range(ROWS), "old")
    table = trial.table(0)
    trial.struck("written", lambda: ice_spark.append(trial.rows(ROWS), table), what="wait")
    trial.same(table, old, 1)
    trial.struck("removed", lambda: ice_spark.update(trial.spark, table, {"s": "'new'"}, "k + 0 = 1"), what="wait")
    trial.same(table, {number: "new" if number % 7 == 1 else text for number, text in old.items()}, 2)


def lost_driver(trial: Trial) -> NoReturn:
    """The driver is gone before the commit, after another change was committed with its key."""
    table = trial.table()
    ice_spark.update(trial.spark, table, {"s": "'new'"}, "id = 1", idempotency_key="before")

    def lost(*arguments: Any, **more: Any) -> NoReturn:
        sys.stdout.write("all of it\n")
        sys.stdout.flush()
        os._exit(LOST)

    ice.Table.commit_rows = lost  # type: ignore[method-assign]
    ice_spark.update(trial.spark, table, {"s": "concat(s, '!')"}, "id < 3", idempotency_key="lost")
    raise AssertionError("the change was committed")


def main(folder: Path) -> NoReturn:
    """Run all of it if ``ICEFIELD_CLUSTER`` says so, which takes minutes; else appends and a lost driver."""
    is_whole = os.environ.get("ICEFIELD_CLUSTER") == "all"
    os.environ["SPARK_HOME"] = spark_home(folder)
    os.environ["PYSPARK_PYTHON"] = python_without_us(folder)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))  # the driver plans by such a Python too
    (folder / "faults").mkdir()
    trial = Trial(folder)
    trial.start()
    for step in (set_up, reads, writes, changes, epochs, failures) if is_whole else (set_up, writes):
        started = time.monotonic()
        step(trial)
        sys.stderr.write(f"{step.__name__}: {time.monotonic() - started:.1f} s\n")
    if is_whole:
        trial.spark.stop()
        trial.start(
            **{
                "speculation": "true",
                "speculation.interval": "50ms",
                "speculation.quantile": "0.1",
                "speculation.multiplier": "1.0",
                "speculation.minTaskRuntime": "1ms",
            }
        )
        speculation(trial)
    lost_driver(trial)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
