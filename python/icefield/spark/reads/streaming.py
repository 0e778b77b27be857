"""Streams: ``spark.readStream.format("icefield").load("db.t")``.

A micro-batch holds the files that snapshots with the operation ``append`` added, as in Java's connector, whose options
have the same names and meanings here: ``stream-from-timestamp``, ``streaming-max-files-per-micro-batch``,
``streaming-max-rows-per-micro-batch``, ``streaming-skip-delete-snapshots``, ``streaming-skip-overwrite-snapshots``.
Which files a batch has is decided by `icefield.micro_batches`; Spark carries the offsets.

From PySpark 4.2 on Spark asks for a batch by its start and a limit, and ``Trigger.AvailableNow`` reads in limited
batches what the table has when the query starts. Before, the reader remembers what it has planned, and
``Trigger.AvailableNow`` is one batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from icefield.errors import InvalidArgumentError
from icefield.micro_batches import StreamOffset
from icefield.spark.columns.types import spark_schema
from icefield.spark.reads.parts import Part, parts, require_columns, require_same
from icefield.spark.sessions.failures import sentence
from icefield.spark.tables.opening import SourceOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import types as st

    from icefield.table import Table

__all__ = ["STREAM_READER", "StreamReader"]

#: An offset as Spark keeps it, in JSON.
Offset = dict[str, int]

_START = StreamOffset(-1, -1)


class StreamReader(DataSourceStreamReader):
    """Reads what is appended to a table; all calls but `read` come in one process, one reader a query."""

    def __init__(self, options: Mapping[str, str], schema: st.StructType, table_uuid: str | None) -> None:
        self._given = options
        self._schema = schema
        self._table_uuid = table_uuid
        self._table: Table | None = None
        #: The snapshot at which the stream ends, of a query that reads what there is and stops.
        self._last_snapshot_id: int | None = None
        #: Up to where batches were planned, where Spark does not say.
        self._read_up_to: StreamOffset | None = None

    def __getstate__(self) -> dict[str, object]:
        # What tasks need is in their partitions; the options may hold credentials of the catalog.
        return {"_schema": self._schema}

    def _options(self) -> SourceOptions:
        return SourceOptions.of(self._given).reading()

    def _refreshed(self) -> Table:
        if self._table is None:
            self._table = self._options().open()
        else:
            self._table.refresh()
        require_same(self._table, self._table_uuid)
        return self._table

    @sentence
    def initialOffset(self) -> Offset:  # noqa: N802
        """Return where a query begins that has no checkpoint."""
        return self._options().stream(self._refreshed()).initial().to_dict()

    def _latest(self, start: StreamOffset, limits: tuple[int | None, int | None]) -> StreamOffset:
        files, rows = limits
        stream = self._options().stream(self._refreshed())
        return stream.latest(start, max_files=files, max_rows=rows, last_snapshot_id=self._last_snapshot_id)

    @sentence
    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Plan a batch from its offsets alone: after a restart Spark asks for the last one again."""
        first, last = StreamOffset.from_dict(start), StreamOffset.from_dict(end)
        self._read_up_to = last
        if last in (first, _START):
            return []
        options = self._options()
        table = self._refreshed() if self._table is None else self._table
        scan = options.stream(table).scan(first, last, selected_fields=self._schema.names)
        require_columns(self._schema, spark_schema(scan.projection()))
        return [*parts(scan, options.split, options.memory_limit)]

    @sentence
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task of a batch."""
        # For a batch without files Spark calls this too, with another partition.
        if isinstance(partition, Part):
            yield from partition.rows(self._schema)

    def commit(self, end: Offset) -> None:
        """Do nothing: the table keeps what a batch has read, for as long as its snapshots are kept."""

    def stop(self) -> None:
        """Do nothing: nothing is held open."""


class _Unlimited(StreamReader):
    """For PySpark 4.0 and 4.1, which ask without telling where the next batch begins."""

    @sentence
    def latestOffset(self) -> Offset:  # type: ignore[override]  # noqa: N802
        """Return up to where the next batch goes."""
        if self._read_up_to is None:
            self._read_up_to = self._options().stream(self._refreshed()).initial()
        self._read_up_to = self._latest(self._read_up_to, self._options().stream_limits)
        return self._read_up_to.to_dict()


try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxFiles,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:
    #: The reader of streams for this PySpark.
    STREAM_READER: type[StreamReader] = _Unlimited
else:

    class _Limited(StreamReader, SupportsTriggerAvailableNow):
        """For PySpark 4.2 and later."""

        @sentence
        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
            """Return the limit of a batch; where there are two, `latestOffset` knows both."""
            files, rows = self._options().stream_limits
            if files is not None:
                return ReadMaxFiles(files)
            return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

        @sentence
        def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
            """Return up to where the batch goes that begins at ``start``."""
            limits: tuple[int | None, int | None] = (None, None)
            if not isinstance(limit, ReadAllAvailable):
                if not isinstance(limit, ReadMaxFiles | ReadMaxRows):
                    raise InvalidArgumentError(f"a stream of a table cannot be limited by {limit}")
                limits = self._options().stream_limits
            return self._latest(StreamOffset.from_dict(start), limits).to_dict()

        @sentence
        def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
            """Take the snapshot of now for the last one."""
            table, branch = self._refreshed(), self._options().branch
            snapshot = table.current_snapshot() if branch is None else table.snapshot_by_name(branch)
            self._last_snapshot_id = _START.snapshot_id if snapshot is None else snapshot.snapshot_id

    STREAM_READER = _Limited
