"""Appends from the executors: one Rust writer a task, one commit in the driver.

Rows of a partitioned table are brought together by the table's own transforms first, so that a task writes few files.
The names of all files of a write hold its id, with the numbers of task and attempt, so that retries never collide, and
what a failed write has left behind can be found.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from icefield._core import Storage, TaskWriter, WritePlan
from icefield.errors import CommitStateUnknownException, InvalidArgumentError
from icefield.spark.audit import session_audit, write_target
from icefield.spark.keys import PartitionKey, with_keys
from icefield.spark.opening import opened
from icefield.spark.types import arrow_schema, spark_schema
from icefield.spark.workers import drivers_python

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from icefield.table import Table

__all__ = ["WRITE_ID", "Write", "append", "write_task"]

#: Entry of the snapshot's summary that tells which write it is.
WRITE_ID = "icefield.write-id"
_KEY = "_icefield_key_"
#: Files that a task keeps open at once.
_OPEN_FILES = 64
#: Seconds that the tasks of a failed job get to end: Spark kills Python workers some four seconds after it stops them.
_LAST_TASKS = 10
_RESULT = "files binary, file_count int, row_count bigint, byte_count bigint"


def append(
    df: DataFrame,
    table: Table | str,
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    distribution: Literal["hash", "range", "none"] | None = None,
    catalog: str | None = None,
    **properties: str,
) -> Table:
    """Append the rows of a DataFrame to a table, in one snapshot.

    Parameters
    ----------
    df
        The rows. Columns are found by name, in any order; optional columns may be missing.
    table
        A table, which becomes its newest self, or ``"namespace.name"`` in ``catalog``.
    branch
        The branch that the snapshot goes to: ``main`` if none is named, or that of ``spark.wap.branch`` where the
        table has ``write.wap.enabled=true``. There ``spark.wap.id`` stages the snapshot: no branch shows it.
    snapshot_properties
        Entries of the snapshot's summary.
    distribution
        ``"hash"`` brings the rows of a partition together in one task, ``"range"`` does so with neighbouring partitions
        in the same task, ``"none"`` leaves rows where they are, and each task writes a file a partition. By default
        the table property ``write.distribution-mode`` says, else ``hash``.
    catalog, **properties
        The catalog of a name, as `icefield.load_catalog` takes it.

    Raises
    ------
    ValidationError
        If a column does not fit; it names the column. No job was started.
    CommitFailedException
        If other commits won every race; the files written are gone.
    CommitStateUnknownException
        If nobody knows whether it was committed; nothing was deleted.

    """
    target = opened(table, catalog, properties).refresh()
    where, staged = write_target(target, branch, session_audit(df.sparkSession))
    write = Write.into(target, df)
    rows, clustered = distributed(df, target, distribution)
    names = rows.columns
    # PySpark hands columns over by names that it parses as paths.
    sent = rows.toDF(*(f"c{n}" for n in range(len(names)))) if any("." in n or "`" in n for n in names) else rows
    with drivers_python():
        payload = sent.mapInArrow(_tasks_of(write.plan, write.storage, names, clustered=clustered), _RESULT)
    try:
        # Collected once: a second action would write everything again.
        written = [row["files"] for row in payload.collect()]
    except BaseException:
        _await_tasks(df)
        write.clean_up(target)
        raise
    write.commit(target, written, where, {**(snapshot_properties or {}), **staged})
    return target


@dataclass(frozen=True)
class Write:
    """A write into a table, as it can be sent to executors."""

    plan: bytes
    write_id: str
    storage: Storage

    @classmethod
    def into(cls, table: Table, df: DataFrame) -> Write:
        """Begin a write of a DataFrame; columns that do not fit are told here."""
        return cls.of_schema(table, arrow_schema(df.schema))

    @classmethod
    def of_schema(cls, table: Table, schema: pa.Schema, properties: Mapping[str, str] | None = None) -> Write:
        """Begin a write of rows with these columns; ``properties`` set some of the table's otherwise."""
        plan = WritePlan(table._state, properties=dict(properties or {}))  # noqa: SLF001
        plan.check(table.storage, schema)
        return cls(plan.to_bytes(), plan.write_id, table.storage)

    def commit(
        self, table: Table, written: Iterable[bytes], branch: str, snapshot_properties: Mapping[str, str] | None
    ) -> None:
        """Commit what the tasks wrote; if that certainly failed, their files are deleted."""
        properties = {**(snapshot_properties or {}), WRITE_ID: self.write_id}
        try:
            table._commit_files(WritePlan.from_bytes(self.plan), list(written), properties, branch)  # noqa: SLF001
        except CommitStateUnknownException:
            raise
        except Exception:
            self.clean_up(table)
            raise

    def clean_up(self, table: Table) -> None:
        """Delete the files of this write, which was certainly not committed; as far as the store lets us."""
        root = table.properties.get("write.data.path") or f"{table.location().rstrip('/')}/data"
        with suppress(Exception):
            for path, _ in self.storage.list(root):
                if self.write_id in path.rpartition("/")[2]:
                    self.storage.delete(path)


def _tasks_of(plan: bytes, storage: Storage, names: list[str], *, clustered: bool) -> Any:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        named = (pa.RecordBatch.from_arrays(batch.columns, names) for batch in batches)
        files = write_task(plan, storage, named, clustered=clustered)
        if files is not None:
            types = (pa.binary(), pa.int32(), pa.int64(), pa.int64())
            arrays = [pa.array([value], kind) for value, kind in zip(files, types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, ["files", "file_count", "row_count", "byte_count"])

    return write


def write_task(
    plan: bytes, storage: Storage, batches: Iterator[pa.RecordBatch], *, clustered: bool
) -> tuple[bytes, int, int, int] | None:
    """Write the rows of one Spark task.

    Returns
    -------
    tuple or None
        The files for the commit, their number, their rows and their bytes; None if there were no rows.

    """
    from pyspark import TaskContext

    os.environ.setdefault("ICEFIELD_THREADS", "1")
    context = TaskContext.get()
    task, attempt = (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())
    writer: TaskWriter | None = None
    try:
        for batch in batches:
            if writer is None:
                opened_plan = WritePlan.from_bytes(plan)
                writer = TaskWriter(opened_plan, storage, batch.schema, task=task, attempt=attempt, clustered=clustered)
            writer.write(batch)
    except BaseException:
        if writer is not None:
            writer.abort()
        raise
    return None if writer is None else writer.close()


def _await_tasks(df: DataFrame) -> None:
    """Wait until the last job of this thread's group has ended with all its tasks.

    A job fails with the first task that fails for good; the others write on until Spark has stopped them.
    """
    with suppress(Exception):  # Spark Connect tells nothing of tasks
        context = df.sparkSession.sparkContext
        tracker = context.statusTracker()
        last = max(tracker.getJobIdsForGroup(context.getLocalProperty("spark.jobGroup.id")))
        until = time.monotonic() + _LAST_TASKS
        while time.monotonic() < until:
            job = tracker.getJobInfo(last)
            stages = () if job is None else map(tracker.getStageInfo, job.stageIds)
            active = any(stage is not None and stage.numActiveTasks for stage in stages)
            if not active and (job is None or job.status != "RUNNING"):
                return
            time.sleep(0.05)


def distributed(df: DataFrame, table: Table, distribution: str | None = None) -> tuple[DataFrame, bool]:
    """Bring the rows of each partition together; say whether they come partition after partition."""
    mode = distribution or table.properties.get("write.distribution-mode", "hash")
    if mode not in {"hash", "range", "none"}:
        raise InvalidArgumentError(f"distribution is 'hash', 'range' or 'none', not {mode!r}")
    keys = _keys(df, table) if mode != "none" else []
    if not keys:
        return df, False
    prefix = _KEY
    while any(column.lower().startswith(prefix) for column in df.columns):
        prefix = f"_{prefix}"
    names = [f"{prefix}{place}" for place in range(len(keys))]
    # No number of partitions: Spark then joins small ones to what is worth a task.
    keyed = with_keys(df, keys, names)
    shuffled = keyed.repartitionByRange(*names) if mode == "range" else keyed.repartition(*names)
    if _is_small(table):
        # A task can keep a file open for each of so few partitions, and that costs less than to sort its rows.
        return shuffled.drop(*names), False
    return shuffled.sortWithinPartitions(*names).drop(*names), True


def _is_small(table: Table) -> bool:
    """Say whether the partition spec itself bounds the number of partitions, and by how few."""
    partitions = 1
    for field in table.spec().fields:
        kind, _, number = str(field.transform).rstrip("]").partition("[")
        if kind == "bucket":
            partitions *= int(number) + 1  # one for null
        elif kind != "void":
            return False
    return partitions <= _OPEN_FILES


def _keys(df: DataFrame, table: Table) -> list[PartitionKey]:
    """Give the partition values to be added; none where a source column is nested, missing or of another type."""
    schema = table.schema()
    types = {field.name: field.dataType.simpleString() for field in spark_schema(schema).fields}
    given = {field.name: field.dataType.simpleString() for field in df.schema.fields}
    keys = []
    for field in table.spec().fields:
        transform = str(field.transform)
        name = None if field.source_id is None else schema.find_column_name(field.source_id)
        if transform == "void" or name is None or name not in given:
            continue
        if transform == "identity" or given[name] == types.get(name):
            keys.append(PartitionKey(transform, name, given[name]))
    return keys
