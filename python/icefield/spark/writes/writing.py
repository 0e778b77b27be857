"""Appends from the executors: one Rust writer per task, one commit in the driver.

Rows of a partitioned table are brought together by the table's own transforms first, so that a task writes few files.
The names of all files of a write contain its id and the numbers of task and attempt, so that retries never collide, and
files of a failed write can be found.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, overload

import pyarrow as pa
from pyspark import TaskContext

from icefield.distributed import Committed, FilesLeft, Storage, TaskWriter, WritePlan, WrittenFiles, made_before
from icefield.errors import CommitStateUnknownException, IcefieldError
from icefield.spark.columns.letter_case import named_as_table
from icefield.spark.columns.types import arrow_schema
from icefield.spark.sessions.audit import session_audit, write_target
from icefield.spark.sessions.failures import raised_in_task, sentence
from icefield.spark.sessions.jobs import Jobs
from icefield.spark.sessions.settings import write_defaults
from icefield.spark.sessions.workers import begin_task, drivers_python
from icefield.spark.tables.opening import keywords_of, opened
from icefield.spark.writes.distributing import Distribution, distributed
from icefield.table import RowsChanged
from icefield.table.rows.merging import SchemaMode, written_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from icefield.table import Table
    from icefield.table.rows import Isolation

__all__ = ["RESULT", "Write", "WriteSettings", "append", "counted", "known_loss", "warn_of_left", "write_task"]

#: What a task of a write gives.
RESULT = "files binary, file_count int, row_count bigint, byte_count bigint"


@overload
def append(
    df: DataFrame,
    table: Table | str,
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    distribution: Distribution | None = None,
    schema_mode: SchemaMode = "subset",
    idempotency_key: str | None = None,
    memory_limit: int | None = None,
    dry_run: Literal[False] = False,
    catalog: str | None = None,
    **properties: str,
) -> Table: ...
@overload
def append(
    df: DataFrame,
    table: Table | str,
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    distribution: Distribution | None = None,
    schema_mode: SchemaMode = "subset",
    idempotency_key: str | None = None,
    memory_limit: int | None = None,
    dry_run: Literal[True],
    catalog: str | None = None,
    **properties: str,
) -> RowsChanged: ...
def append(
    df: DataFrame,
    table: Table | str,
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    distribution: Distribution | None = None,
    schema_mode: SchemaMode = "subset",
    idempotency_key: str | None = None,
    memory_limit: int | None = None,
    dry_run: bool = False,
    catalog: str | None = None,
    **properties: str,
) -> Table | RowsChanged:
    """Append the rows of a DataFrame to a table, in one snapshot.

    Parameters
    ----------
    df
        The rows. Columns are found by name, in any order; optional columns may be missing.
    table
        A table, which is refreshed, or ``"namespace.name"`` in ``catalog``.
    branch
        The branch to which the snapshot is added: by default ``main``, or that of ``spark.wap.branch`` if the
        table has ``write.wap.enabled=true``. There ``spark.wap.id`` stages the snapshot: no branch shows it.
    snapshot_properties
        Entries of the snapshot's summary.
    distribution
        ``"hash"`` brings the rows of a partition together in one task, ``"range"`` gives each task a range of the
        partitions and of the table's sort order, ``"none"`` does not move rows, and each task writes one file per
        partition. The default is the table property ``write.distribution-mode``, or else ``hash``.
    schema_mode
        As for `icefield.Table.append`: ``"subset"`` lets optional columns be missing, ``"strict"`` does not, and
        ``"evolve"`` adds columns that the table lacks and widens types, in the same commit.
    idempotency_key
        Makes the append once: if a snapshot in the history of the branch was made with this key, nothing is done, and
        no job runs. After a restart Spark runs the last batch of a stream again: in ``foreachBatch`` pass
        ``**icefield.spark.once(batch, batch_id)``.
    memory_limit
        Bytes that rows of one task that wait to be written may take, about; 512 MiB by default. It is memory of a
        Python worker, outside of the JVM: ``spark.executor.memoryOverhead`` has to hold it for each core.
    dry_run
        Only run the job and count, and return what would be done; nothing is written.
    catalog, **properties
        The catalog of a name, as `icefield.load_catalog` takes it.

    Raises
    ------
    ValidationError
        If a column does not fit, before any job, or a row in a task; it names the column.
    CommitFailedException
        If every attempt lost to another commit; the written files were deleted.
    CommitStateUnknownException
        If the outcome is unknown; nothing was deleted.
    TableReplacedError
        If another table has replaced this one; the written files were deleted.

    """
    target = opened(table, catalog, properties, keywords_of(append)).refresh()
    where, staged = write_target(target, branch, session_audit(df.sparkSession))
    if made_before(target.metadata, where, idempotency_key):
        return counted([]) if dry_run else target
    df = named_as_table(df, target.schema())
    columns = written_columns(schema_mode)
    settings = WriteSettings(memory_limit, allow_missing=columns["allow_missing"], dry_run=dry_run)
    session = write_defaults(df.sparkSession)
    own = session.properties(target)
    write = Write.of_schema(target, arrow_schema(df.schema), own, settings=settings, evolve=columns["evolve"])
    written, jobs = write.run(df, target, distribution)
    if dry_run:
        return counted(written)
    summary = {**session.summary, **(snapshot_properties or {}), **staged}
    write.commit(target, written, where, summary, idempotency_key, jobs.lost_some)
    return target


def counted(written: list[WrittenFiles]) -> RowsChanged:
    """Return what an append of the files does."""
    rows, files, size = (
        sum(getattr(one, name) for one in written) for name in ("row_count", "file_count", "byte_count")
    )
    return RowsChanged(0, rows, 0, 0, 0, 0, files_added=files, bytes_added=size)


@dataclass(frozen=True)
class WriteSettings:
    """How the tasks of a write write."""

    memory_limit: int | None = None
    allow_missing: bool = True
    dry_run: bool = False


@dataclass(frozen=True)
class Write:
    """A write into a table that can be sent to executors."""

    plan: WritePlan
    storage: Storage
    settings: WriteSettings = WriteSettings()

    @property
    def write_id(self) -> str:
        """Id of the write."""
        return self.plan.write_id

    @classmethod
    def of_schema(
        cls,
        table: Table,
        schema: pa.Schema,
        properties: Mapping[str, str] | None = None,
        *,
        settings: WriteSettings | None = None,
        evolve: bool = False,
    ) -> Write:
        """Start a write of rows with these columns, which raises where one does not fit.

        Parameters
        ----------
        table, schema
            The table, and the columns.
        properties
            Table properties for this write only.
        settings
            How the tasks write.
        evolve
            Whether the commit adds columns that the table lacks.

        """
        how = settings or WriteSettings()
        return cls.checked(table.new_write(properties, widened_by=schema if evolve else None), table, schema, how)

    @classmethod
    def checked(cls, plan: WritePlan, table: Table, schema: pa.Schema, settings: WriteSettings) -> Write:
        """Return a write that was planned; raise where a column does not fit."""
        plan.check(table.storage, schema, allow_missing=settings.allow_missing)
        return cls(plan, table.storage, settings)

    def payload(self, df: DataFrame, table: Table, distribution: str | None) -> DataFrame:
        """Return the results of the tasks that write the rows, in the form of `RESULT`."""
        rows, clustered = distributed(df, table, distribution)
        names = rows.columns
        # PySpark parses the names of columns: as paths, and ``*`` as all of them.
        sent = rows.toDF(*(f"c{n}" for n in range(len(names))))
        with drivers_python():
            return sent.mapInArrow(_tasks_of(self, names, clustered=clustered), RESULT)

    def run(self, df: DataFrame, table: Table, distribution: str | None) -> tuple[list[WrittenFiles], Jobs]:
        """Write the rows, and return the results of the tasks and the jobs; if it fails no file is left."""
        payload = self.payload(df, table, distribution)
        jobs = Jobs(df.sparkSession, f"icefield-write-{self.write_id}")
        try:
            with jobs.tagged():
                # Collected once: a second action would write everything again.
                return [WrittenFiles(bytes(row[0]), *row[1:]) for row in payload.collect()], jobs
        except BaseException as error:
            jobs.wait()
            self.clean_up(search=not self.settings.dry_run)
            own = raised_in_task(error) if isinstance(error, Exception) else None
            if own is None:
                raise
            raise own from None

    def commit(
        self,
        table: Table,
        written: Iterable[WrittenFiles],
        branch: str,
        snapshot_properties: Mapping[str, str] | None,
        idempotency_key: str | None = None,
        lost_some: Callable[[], bool] = lambda: False,
        *,
        mode: Literal["append", "dynamic"] = "append",
        isolation: Isolation | None = None,
    ) -> Committed:
        """Commit the files of the tasks; files that are not the table's then are deleted.

        Parameters
        ----------
        table, written, branch, snapshot_properties, idempotency_key, mode, isolation
            As `icefield.Table.commit_files` takes them.
        lost_some
            Whether there were attempts at tasks whose results are not among ``written``, so that files may be left.

        """
        files = list(written)
        try:
            done = table.commit_files(
                self.plan,
                files,
                snapshot_properties,
                branch,
                mode=mode,
                isolation=isolation,
                idempotency_key=idempotency_key,
            )
        except CommitStateUnknownException:
            raise
        except Exception:
            self.clean_up(files)
            raise
        lost = known_loss(lost_some)
        if not done.files_taken:
            self.clean_up(files, search=lost)
        elif lost:
            warn_of_left(self.write_id, lambda: self.plan.discard_lost(self.storage, files))
        return done

    def clean_up(self, written: Iterable[WrittenFiles] = (), *, search: bool = False) -> None:
        """Delete the files of this write, which was certainly not committed; warn of files that could not be deleted.

        Parameters
        ----------
        written
            The results of the tasks.
        search
            Also look for files that no task reported, by the id of the write in their names: this lists the data
            folder of the table.

        """
        warn_of_left(self.write_id, lambda: self.plan.discard(self.storage, written, search=search))


def known_loss(lost_some: Callable[[], bool]) -> bool:
    """Return whether files of lost attempts may be left, after a commit: it stands, even if Spark can tell no more."""
    try:
        return lost_some()
    except Exception as error:  # noqa: BLE001 - py4j, Spark Connect and the network have errors of their own
        msg = f"the commit was made, but not whether attempts at tasks have left files: {error}"
        warnings.warn(msg, RuntimeWarning, stacklevel=3)
        return False


def warn_of_left(write_id: str, delete: Callable[[], FilesLeft]) -> None:
    """Delete files, and warn of those that could not be deleted."""
    try:
        failures, first = delete()
    except IcefieldError as error:
        # The error of the write itself is on its way to the caller, or the write has succeeded.
        failures, first = 1, [str(error)]
    if failures:
        more = [f"and {failures - len(first)} more"] if failures > len(first) else []
        msg = f"some files of the failed write {write_id} could not be deleted: {'; '.join([*first, *more])}"
        warnings.warn(msg, RuntimeWarning, stacklevel=3)


def _tasks_of(
    into: Write, names: list[str], *, clustered: bool
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    @sentence
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = (pa.RecordBatch.from_arrays(batch.columns, names) for batch in batches)
        written = write_task(into, named, clustered=clustered)
        if written is not None:
            row = (written.data, written.file_count, written.row_count, written.byte_count)
            types = (pa.binary(), pa.int32(), pa.int64(), pa.int64())
            arrays = [pa.array([value], kind) for value, kind in zip(row, types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, ["files", "file_count", "row_count", "byte_count"])

    return write


def write_task(into: Write, batches: Iterator[pa.RecordBatch], *, clustered: bool) -> WrittenFiles | None:
    """Write the rows of one Spark task.

    Returns
    -------
    WrittenFiles or None
        What was written, for the commit; None if there were no rows.

    """
    begin_task()
    context = TaskContext.get()
    task, attempt = (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())
    how = into.settings
    writer: TaskWriter | None = None
    try:
        for batch in batches:
            if writer is None:
                writer = TaskWriter(
                    into.plan,
                    into.storage,
                    batch.schema,
                    task=task,
                    attempt=attempt,
                    allow_missing=how.allow_missing,
                    clustered=clustered,
                    memory_limit=how.memory_limit,
                    dry_run=how.dry_run,
                )
            writer.write(batch)
    except BaseException:
        if writer is not None:
            writer.abort()
        raise
    return None if writer is None else writer.close()
