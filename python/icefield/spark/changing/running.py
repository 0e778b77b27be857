"""The job of a change: rows with actions become places to take out and rows to write, in one stage after one shuffle.

Each row of a change carries everything that is done for it: the place of the old row, the values of the new one. Spark
computes these rows once; one shuffle sends places to the task of their file, and new rows to the task of their
partition, and the same tasks do both. So a source that is not the same whenever it is computed still gives, for each
old row, its own new row; where Spark loses a part of the shuffle and computes it again, others may come out, which is
found before the commit (`_require_pairs`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyspark.sql.functions as F  # noqa: N812
from pyspark import TaskContext

from icefield.distributed import RowRemover, TaskWriter, WrittenFiles
from icefield.errors import InvalidArgumentError
from icefield.spark.changing.committing import commit
from icefield.spark.changing.planned import FILE, POSITION
from icefield.spark.columns.names import quoted
from icefield.spark.sessions.failures import raised_in_task, sentence
from icefield.spark.sessions.jobs import Jobs
from icefield.spark.sessions.packed import PackedTasks
from icefield.spark.sessions.session import at_once
from icefield.spark.sessions.workers import begin_task, drivers_python
from icefield.spark.writes.distributing import distribution_of, free_names, has_all_keys, is_small, partition_keys
from icefield.spark.writes.keys import with_keys
from icefield.spark.writes.writing import warn_of_left

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from icefield.distributed import Committed, RowChangePlan, Storage
    from icefield.spark.changing.planned import Target

__all__ = ["ACTION", "COUNTS", "DELETE", "INSERT", "RESULT", "TWICE", "UPDATE", "Done", "Removals", "run"]

#: The column that says what is done with a row.
ACTION = "_icefield_action"
UPDATE, DELETE, INSERT, TWICE = 1, 2, 3, 4
#: Whether a row after the shuffle is a place to take out, or a row to write.
_KIND = "_icefield_kind"
_TAKE_OUT, _WRITE = 0, 1
#: A number for the place of a row that is updated, which both its old and its new row have.
_PLACE = "_icefield_place"
#: Places are numbers below this one, and so are sums of them, so that no sum of those of a batch overflows.
_PLACES = 2**40
#: Tasks of a shuffle where the session has no number of them (``auto``): Spark's own default.
_SHUFFLE_PARTITIONS = 200
#: Bytes of inserted rows for a task, as Spark's own ``spark.sql.adaptive.advisoryPartitionSizeInBytes``.
_TASK_BYTES = 64 << 20

#: Bytes of files out of which the driver takes rows itself, by the mode: files are written again, or only the columns
#: of the filter are read. And how many files: on an object store each takes a while.
OWN_BYTES = {"copy-on-write": 16 << 20, "auto": 16 << 20, "merge-on-read": 256 << 20}
_OWN_FILES = 100

#: What a task of a change gives: what it took out or added, how many rows it updated, deleted and inserted, and the sum
#: of the places of rows that it updated.
_ARROW = pa.schema(
    [
        ("part", pa.string()),
        ("files", pa.binary()),
        ("file_count", pa.int32()),
        ("row_count", pa.int64()),
        ("byte_count", pa.int64()),
        *((name, pa.int64()) for name in ("updated", "deleted", "inserted", "places")),
    ]
)
#: The names of its columns, and of those of them that are 0 for rows that are added alone.
RESULT = tuple(_ARROW.names)
COUNTS = RESULT[5:]
_TYPES = (
    "part string, files binary, file_count int, row_count bigint, byte_count bigint, "
    "updated bigint, deleted bigint, inserted bigint, places bigint"
)


@dataclass
class Done:
    """What the tasks of a change did, and what the commit says of it."""

    removed: list[WrittenFiles] = field(default_factory=list)
    added: list[WrittenFiles] = field(default_factory=list)
    updated: int = 0
    deleted: int = 0
    inserted: int = 0
    #: Sums of the places of old rows that were taken out to be updated, and of new rows for them.
    places: tuple[int, int] = (0, 0)
    committed: Committed | None = None

    @property
    def bytes_rewritten(self) -> int:
        """Size of the data files that were written again, unless delete files are counted with them."""
        if self.committed is None or not self.committed.files_rewritten or self.committed.files_marked:
            return 0
        return sum(one.byte_count for one in self.removed)


@dataclass(frozen=True)
class _Tasks:
    """What the tasks of a change need."""

    plan: RowChangePlan
    storage: Storage
    #: Whether a row that is taken out twice is an error.
    unique: bool = False
    allow_missing: bool = True
    memory_limit: int | None = None
    #: What is said of a key that a source has twice.
    twice: str = ""
    #: The columns that they are sent.
    names: tuple[str, ...] = ()
    clustered: bool = False


def run(
    target: Target,
    plan: RowChangePlan,
    actions: DataFrame | None,
    *,
    unique: bool = False,
    allow_missing: bool = True,
    twice: str = "",
    inserted_bytes: int | None = 0,
    others: Iterable[DataFrame] = (),
    removals: Removals | None = None,
) -> Done:
    """Carry a change out, and commit it.

    Parameters
    ----------
    target, plan
        The table, and the plan of the change.
    actions
        Rows with new values, `FILE` and `POSITION` of old ones, and `ACTION`.
    unique
        Whether a row that is taken out twice is an error.
    allow_missing
        Whether optional columns may be missing.
    twice
        What is said of rows with the action `TWICE`.
    inserted_bytes
        About the bytes of rows that may be added, of which the files of the plan say nothing; None if unknown.
    others
        Other results of tasks that belong to the change, in the form of these.
    removals
        What the filter of an exact plan takes out.

    """
    storage = target.table.storage
    frames = list(others)
    is_here = removals is not None and removals.is_small
    if removals is not None and not is_here:
        frames += removals.frames()
    if actions is not None:
        how = _Tasks(
            plan,
            storage,
            unique=unique,
            allow_missing=allow_missing,
            memory_limit=target.options.get("memory_limit"),
            twice=twice,
        )
        frames.append(_payload(target, how, actions, _number_of_tasks(target, plan, inserted_bytes)))
    jobs = Jobs(target.spark, f"icefield-change-{plan.write_id}")
    try:
        with jobs.tagged():
            # Collected once, in one job: a second action would do everything again.
            done = _done(_union(frames).collect() if frames else [])
        if removals is not None and is_here:
            removals.take_out(done)
        _require_pairs(done)
    except BaseException as error:
        jobs.wait()
        warn_of_left(plan.write_id, lambda: plan.discard(storage, search=True))
        own = raised_in_task(error) if isinstance(error, Exception) else None
        if own is None:
            raise
        raise own from None
    key = target.options.get("idempotency_key")
    done.committed = commit(target.table, plan, done.removed, done.added, target.summary, key, jobs.lost_some)
    return done


def _union(frames: list[DataFrame]) -> DataFrame:
    whole = frames[0]
    for frame in frames[1:]:
        whole = whole.union(frame)
    return whole


def _done(rows: Iterable[tuple[Any, ...]]) -> Done:
    done = Done()
    for part, data, file_count, row_count, byte_count, updated, deleted, inserted, places in rows:
        files = WrittenFiles(bytes(data), file_count, row_count, byte_count)
        (done.removed if part == "removed" else done.added).append(files)
        done.updated += updated
        done.deleted += deleted
        done.inserted += inserted
        gone, new = done.places
        done.places = ((gone + places) % _PLACES, new) if part == "removed" else (gone, (new + places) % _PLACES)
    return done


def _require_pairs(done: Done) -> None:
    """Refuse a change in which rows were taken out to be updated, and others were written.

    Raises
    ------
    InvalidArgumentError
        If places that were taken out are not those of new rows.

    """
    gone, new = done.places
    if gone != new:
        raise InvalidArgumentError(
            "Spark lost rows of the change and computed them again, and they were not the same as before, so that rows "
            "would be removed without their new values: nothing was changed. Give a source that is the same each time, "
            "or one that is kept: DataFrame.checkpoint()"
        )


def _payload(target: Target, how: _Tasks, actions: DataFrame, number: int) -> DataFrame:
    """Return the results of so many tasks, which carry out the actions."""
    data = [name for name in actions.columns if name not in {FILE, POSITION, ACTION}]
    plain = actions.toDF(*actions.columns)
    action = F.col(ACTION)
    kinds = (
        F.when(action == UPDATE, F.array(F.lit(_TAKE_OUT), F.lit(_WRITE)))
        .when(action == DELETE, F.array(F.lit(_TAKE_OUT)))
        .otherwise(F.array(F.lit(_WRITE)))
    )
    sent = plain.select("*", F.explode(kinds).alias(_KIND)) if data else plain.withColumn(_KIND, F.lit(_TAKE_OUT))
    writes = F.col(_KIND) == _WRITE
    places = F.xxhash64(FILE, POSITION).bitwiseAND(F.lit(_PLACES - 1))
    sent = sent.select(
        # As text: each call of a Column is several to the Java machine, and there are many columns.
        *(F.expr(f"CASE WHEN {_KIND} = {_WRITE} THEN {quoted(name)} END").alias(name) for name in data),
        *(F.expr(f"CASE WHEN {_KIND} = {_TAKE_OUT} THEN {name} END").alias(name) for name in (FILE, POSITION)),
        ACTION,
        _KIND,
        F.when(action == UPDATE, places).alias(_PLACE),
    )
    keys = partition_keys(sent, target.table) if data else []
    names = free_names(sent.columns, len(keys))
    keyed = with_keys(sent, keys, names)
    none = distribution_of(target.spark, target.table, target.options.get("distribution")) == "none"
    spread = F.spark_partition_id().cast("bigint") if none or not keys else F.xxhash64(*names)
    shuffled = keyed.repartition(number, F.when(writes, spread).otherwise(F.xxhash64(FILE)))
    clustered = bool(keys) and has_all_keys(sent, target.table) and not none and not is_small(target.table)
    if clustered:
        shuffled = shuffled.sortWithinPartitions(_KIND, *names)
    columns = (*data, FILE, POSITION, ACTION, _KIND, _PLACE)
    rows = shuffled.drop(*names) if names else shuffled
    tasks = replace(how, names=columns, clustered=clustered)
    with drivers_python():
        # PySpark parses the names of columns: as paths, and ``*`` as all of them.
        return rows.toDF(*(f"c{n}" for n in range(len(columns)))).mapInArrow(_function_of(tasks), _TYPES)


def _number_of_tasks(target: Target, plan: RowChangePlan, inserted_bytes: int | None) -> int:
    """Return into how many tasks a change is shuffled.

    Spark would join small partitions, and places are small, whatever the work of writing their files again. So there is
    a task for each file, or two for each place that a task can run at, up to the session's number. Rows that are
    inserted may be any number, whatever the files: they have a task for each 64 MiB, as in Spark.
    """
    given = str(target.spark.conf.get("spark.sql.shuffle.partitions"))
    most = int(given) if given.isdecimal() else _SHUFFLE_PARTITIONS
    if inserted_bytes is None:
        return max(1, most)
    wanted: int = max(plan.files, 2 * (at_once(target.spark) or most), inserted_bytes // _TASK_BYTES)
    return max(1, min(most, wanted))


def _function_of(tasks: _Tasks) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    @sentence
    def change(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = (pa.RecordBatch.from_arrays(batch.columns, list(tasks.names)) for batch in batches)
        yield from _change_task(tasks, named)

    return change


def _change_task(tasks: _Tasks, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Carry out the rows of one Spark task."""
    begin_task()
    worker = _Worker(tasks)
    try:
        for batch in batches:
            worker.take(batch)
        results = worker.close()
    except BaseException:
        worker.abort()
        raise
    yield from results


class _Worker:
    """A remover and a writer, each if there is anything for it."""

    def __init__(self, tasks: _Tasks) -> None:
        self._tasks = tasks
        context = TaskContext.get()
        self._task, self._attempt = (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())
        self._remover: RowRemover | None = None
        self._writer: TaskWriter | None = None
        #: Rows by kind and action.
        self._counts: Counter[tuple[int, int]] = Counter()
        #: Sums of places by kind.
        self._places: Counter[int] = Counter()

    def take(self, batch: pa.RecordBatch) -> None:
        """Take out places, and write rows."""
        kinds, actions = batch.column(_KIND), batch.column(ACTION)
        for number in pc.unique(actions).to_pylist():
            if number == TWICE:
                raise InvalidArgumentError(self._tasks.twice)
            for kind in (_TAKE_OUT, _WRITE):
                both = pc.and_(pc.equal(kinds, kind), pc.equal(actions, number))
                self._counts[kind, number] += pc.sum(both).as_py() or 0
        gone, new = (batch.filter(pc.equal(kinds, kind)) for kind in (_TAKE_OUT, _WRITE))
        if _PLACE in batch.schema.names:
            for kind, rows in ((_TAKE_OUT, gone), (_WRITE, new)):
                self._places[kind] += pc.sum(rows.column(_PLACE)).as_py() or 0
        if gone.num_rows:
            self._removing().remove(gone.select([FILE, POSITION]))
        if new.num_rows:
            others = {FILE, POSITION, ACTION, _KIND, _PLACE}
            data = new.select([name for name in new.schema.names if name not in others])
            self._writing(data.schema).write(data)

    def _removing(self) -> RowRemover:
        if self._remover is None:
            tasks = self._tasks
            self._remover = RowRemover(
                tasks.plan,
                tasks.storage,
                task=self._task,
                attempt=self._attempt,
                memory_limit=tasks.memory_limit,
                unique=tasks.unique,
            )
        return self._remover

    def _writing(self, schema: pa.Schema) -> TaskWriter:
        if self._writer is None:
            tasks = self._tasks
            self._writer = TaskWriter(
                tasks.plan.write,
                tasks.storage,
                schema,
                task=self._task,
                attempt=self._attempt,
                allow_missing=tasks.allow_missing,
                clustered=tasks.clustered,
                memory_limit=tasks.memory_limit,
            )
        return self._writer

    def close(self) -> list[pa.RecordBatch]:
        """Return the results."""
        updated, inserted = self._counts[_WRITE, UPDATE], self._counts[_WRITE, INSERT]
        results = []
        if self._writer is not None:
            places = self._places[_WRITE]
            results.append(_result("added", self._writer.close(), updated, inserted=inserted, places=places))
        if self._remover is not None:
            removed = self._remover.close()
            # A row that is deleted for several rows of a source is one.
            deleted = removed.row_count - self._counts[_TAKE_OUT, UPDATE]
            results.append(_result("removed", removed, deleted=deleted, places=self._places[_TAKE_OUT]))
        return results

    def abort(self) -> None:
        """Delete what was written."""
        for one in (self._writer, self._remover):
            if one is not None:
                one.abort()


def _result(
    part: str, files: WrittenFiles, updated: int = 0, *, deleted: int = 0, inserted: int = 0, places: int = 0
) -> pa.RecordBatch:
    counts = (updated, deleted, inserted, places % _PLACES)
    row = (part, files.data, files.file_count, files.row_count, files.byte_count, *counts)
    arrays = [pa.array([value], column.type) for value, column in zip(row, _ARROW, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ARROW)


class Removals:
    """What the filter of an exact plan takes out of files that have to be read, whole files each.

    So nothing has to be shuffled, and of small files the driver takes it out sooner than Spark starts a task.
    """

    def __init__(self, target: Target, plan: RowChangePlan) -> None:
        self._spark = target.spark
        self._plan = plan
        self._storage = target.table.storage
        self._memory_limit = target.options.get("memory_limit")
        self._tasks = plan.tasks([], whole_files=True, parallelism=at_once(target.spark))

    @property
    def is_small(self) -> bool:
        """Whether the driver takes it out."""
        size = sum(task.size_in_bytes for task in self._tasks)
        return size <= OWN_BYTES[self._plan.mode] and sum(map(len, self._tasks)) <= _OWN_FILES

    def take_out(self, done: Done) -> None:
        """Take it out in this process."""
        if not self._tasks:
            return
        with RowRemover(self._plan, self._storage, memory_limit=self._memory_limit) as remover:
            for task in self._tasks:
                remover.remove(task.rows(self._storage, memory_limit=self._memory_limit))
        if remover.written is not None:
            done.removed.append(remover.written)
            done.deleted += remover.written.row_count

    def frames(self) -> list[DataFrame]:
        """Return the results of tasks that take it out."""
        packed = PackedTasks(self._tasks)
        names = (FILE, POSITION, ACTION, _KIND)
        needed = _Tasks(self._plan, self._storage, memory_limit=self._memory_limit, names=names)

        def found(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for batch in batches:
                for place in batch.column(0).to_pylist():
                    for rows in packed[place].rows(needed.storage, memory_limit=needed.memory_limit).to_pyarrow():
                        places = [rows.column(FILE), rows.column(POSITION)]
                        codes = [pa.repeat(code, rows.num_rows) for code in (DELETE, _TAKE_OUT)]
                        yield pa.RecordBatch.from_arrays([*places, *codes], list(needed.names))

        @sentence
        def change(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from _change_task(needed, found(batches))

        with drivers_python():
            return [self._spark.range(0, len(packed), 1, len(packed)).mapInArrow(change, _TYPES)]
