"""Writes of streams: ``df.writeStream.format("icefield")``, each batch once.

Spark makes a writer for each batch in two processes: one sends it to the tasks, the other commits. So the results of
tasks include the plan of the write and the id of the query, which Spark passes to tasks only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, WriterCommitMessage

from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.spark.changing.committing import commit
from icefield.spark.columns.types import arrow_schema
from icefield.spark.sessions.audit import task_audit, write_target
from icefield.spark.sessions.failures import sentence
from icefield.spark.sinks.epochs import QUERY_ID, epoch, last_epoch, may_have_write
from icefield.spark.sinks.overwrites import merge_schema, require_branch
from icefield.spark.tables.opening import SourceOptions
from icefield.spark.writes.writing import Write, WriteSettings, write_task

if TYPE_CHECKING:
    from pyspark.sql import Row
    from pyspark.sql import types as st

    from icefield.distributed import RowChangePlan, WritePlan, WrittenFiles
    from icefield.table import Table

__all__ = ["STREAM_WRITER", "BatchWritten", "StreamWriter"]


@dataclass(frozen=True)
class BatchWritten(WriterCommitMessage):
    """The files that a task of a batch wrote; None if it had no rows."""

    files: WrittenFiles | None
    #: The write that the files are of.
    plan: WritePlan
    query_id: str
    #: The change that the write is part of, in the result of the first task: it names all files of the table.
    change: RowChangePlan | None = None
    #: What the session says of staging; only a task knows.
    audit: dict[str, str] = field(default_factory=dict)
    #: How often the task was tried before.
    attempts_before: int = 0


class StreamWriter(DataSourceStreamWriter):
    """Writes the batches of a streaming query to a table; this one takes Arrow batches."""

    def __init__(self, options: SourceOptions, table: Table, schema: st.StructType, *, complete: bool = False) -> None:
        self._options: SourceOptions | None = options
        self._table: Table | None = table
        self._schema = arrow_schema(schema)
        if options.says("mergeschema", "merge-schema"):
            merge_schema(table, self._schema)
        settings, properties = WriteSettings(options.memory_limit), options.write_properties(table)
        #: In complete mode, what replaces all rows of the table.
        self._change: RowChangePlan | None = None
        if complete:
            branch = options.branch or "main"
            self._change = table.new_row_change("overwrite", exact=True, branch=branch, properties=properties)
            self._write = Write.checked(self._change.write, table, self._schema, settings)
        else:
            self._write = Write.of_schema(table, self._schema, properties, settings=settings)

    def __getstate__(self) -> dict[str, object]:
        # For the tasks: the options may hold credentials of the catalog.
        return {**self.__dict__, "_options": None, "_table": None}

    @sentence
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return self._written(iterator)

    def _written(self, batches: Iterator[pa.RecordBatch]) -> BatchWritten:
        context = TaskContext.get()
        query_id = context and context.getLocalProperty(QUERY_ID)
        if context is None or not query_id:
            raise InvalidArgumentError(
                "a batch of a stream is written without a query: Spark passes no query id to the tasks"
            )
        files = write_task(self._write, batches, clustered=False)
        change = self._change if context.partitionId() == 0 else None
        return BatchWritten(files, self._write.plan, query_id, change, task_audit(), context.attemptNumber())

    @sentence
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit what all tasks of a batch wrote, in one snapshot, unless that was done before."""
        results = _results(messages)
        options, table = self._options, self._table
        if not results or options is None or table is None:
            raise InvalidArgumentError(f"batch {batchId} of a stream: Spark has no result of any task")
        write, written = self._write_of(results), _files_of(results)
        try:
            change = self._change_of(results, batchId)
            table.refresh()
            audit = next((result.audit for result in results if result.audit), {})
            branch = _branch(table, options.branch, audit)
            if change is not None:
                require_branch(change, branch)
            query_id = results[0].query_id
            last = last_epoch(table, branch, query_id)
        except Exception:
            write.clean_up(written)
            raise
        lost = any(result.attempts_before for result in results)
        if last is not None and batchId <= last.number:
            # The files may be those of a snapshot, if Spark commits the same results again.
            if not may_have_write(table, branch, write.write_id, batchId, last):
                write.clean_up(written, search=lost)
            return
        once = epoch(query_id, batchId)
        properties = {**options.summary, **once["snapshot_properties"]}
        key = once["idempotency_key"]
        if change is not None:
            commit(table, change, [], written, properties, key, lambda: lost)
        else:
            write.commit(table, written, branch, properties, key, lambda: lost)

    @sentence
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Delete the files of a batch that failed before its commit was tried.

        Spark calls this also when the commit itself raised. It may have been published all the same, so then nothing is
        deleted here: a commit that certainly failed has deleted its files itself.
        """
        results = _results(messages)
        if results and None in messages:
            self._write_of(results).clean_up(_files_of(results), search=True)

    def _change_of(self, results: list[BatchWritten], batch_id: int) -> RowChangePlan | None:
        """Return the change that the tasks are part of, in complete mode."""
        change = next((result.change for result in results if result.change is not None), None)
        if self._change is not None and change is None:
            raise InvalidArgumentError(f"batch {batch_id} of a stream: Spark has no result of its first task")
        return change

    def _write_of(self, results: list[BatchWritten]) -> Write:
        """Return the write of the tasks, which another process has planned."""
        return Write(results[0].plan, self._write.storage, self._write.settings)


class StreamRowWriter(StreamWriter):
    """The same for PySpark 4.0, which passes rows."""

    def __init__(self, options: SourceOptions, table: Table, schema: st.StructType, *, complete: bool = False) -> None:
        # As rows, times are naive and of the worker's zone, so that an hour of the year is two; variants are objects.
        if re.search(r'"(type|elementType|keyType|valueType)":"(timestamp|variant)"', schema.json()):
            raise UnsupportedFeatureError(
                "PySpark 4.0 passes the rows of a stream as Python objects, and instants and variants do not survive "
                "that: append the batches in foreachBatch, by icefield.spark.append, or use PySpark 4.1"
            )
        super().__init__(options, table, schema, complete=complete)

    @sentence
    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        """Write the rows of a task."""
        return self._written(batches_of(iterator, self._schema))


#: Rows that are converted at a time.
_ROWS = 10_000


def batches_of(rows: Iterable[Row], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Return rows of Spark as Arrow batches."""
    some: list[dict[str, object]] = []
    for row in rows:
        some.append(row.asDict(recursive=True))
        if len(some) == _ROWS:
            yield pa.RecordBatch.from_pylist(some, schema)
            some = []
    if some:
        yield pa.RecordBatch.from_pylist(some, schema)


try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:
    #: The writer of streams for this PySpark.
    STREAM_WRITER: type[StreamWriter] = StreamRowWriter
else:

    class StreamArrowWriter(StreamWriter, DataSourceStreamArrowWriter):
        """For PySpark 4.1 and later, which asks for this class."""

    STREAM_WRITER = StreamArrowWriter


def _branch(table: Table, branch: str | None, audit: Mapping[str, str]) -> str:
    """Return the branch that is written to."""
    target, staged = write_target(table, branch, audit)
    if staged:
        raise UnsupportedFeatureError(
            "spark.wap.id stages snapshots that no branch has, so that a batch that runs again would not be noticed: "
            "write streams to a branch, by spark.wap.branch or the option branch"
        )
    return target


def _results(messages: Iterable[WriterCommitMessage | None]) -> list[BatchWritten]:
    return [message for message in messages if isinstance(message, BatchWritten)]


def _files_of(results: Iterable[BatchWritten]) -> list[WrittenFiles]:
    return [result.files for result in results if result.files is not None]
