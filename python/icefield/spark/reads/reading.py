"""Scans as DataFrames: Spark's own Parquet reader for the files that it reads correctly, the Rust reader for the rest.

Spark's reader is as fast as any, so it reads Parquet files without deletes, of columns whose types it supports.
`icefield.scan.ScanPlan.obstacles` decides which files, and under which names columns are requested;
`icefield.spark.columns.texts` which strings are read as bytes. All other files are read through `mapInArrow`, by one
Python task per group of files. `icefield.spark.explain` shows which file is read how.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from icefield.distributed import EngineRead, ReadTask, Storage
from icefield.incremental import IncrementalChangelogScan
from icefield.scan import ScanPlan, TableScan
from icefield.scan.moments import Moment
from icefield.scan.options import expression_of, fields_of
from icefield.spark.columns import filters
from icefield.spark.columns.names import quoted
from icefield.spark.columns.texts import texts_without_order
from icefield.spark.columns.types import arrow_schema, spark_schema
from icefield.spark.sessions.audit import read_branch, session_audit
from icefield.spark.sessions.failures import sentence
from icefield.spark.sessions.packed import PackedTasks
from icefield.spark.sessions.session import ReaderSession, adopted, at_once, is_classic, reads_scheme
from icefield.spark.sessions.workers import begin_task, drivers_python
from icefield.spark.tables.opening import keywords_of, moment_of, opened

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from icefield.expressions import RowFilter
    from icefield.schema import Schema
    from icefield.table import Table

__all__ = ["Ways", "chosen", "compares_rows", "decided", "decoded", "of_scan", "read", "task_rows"]


def read(
    spark: SparkSession,
    table: Table | str,
    *,
    filter: RowFilter | None = None,
    columns: Iterable[str] | str | None = None,
    as_of: int | str | datetime | None = None,
    limit: int | None = None,
    native: bool = True,
    memory_limit: int | None = None,
    catalog: str | None = None,
    **properties: str,
) -> DataFrame:
    """Read a table as a DataFrame.

    The snapshot is chosen now; later commits do not change the DataFrame.

    Parameters
    ----------
    spark
        The session.
    table
        A table, or ``"namespace.name"`` in ``catalog``.
    filter
        Rows to read, as text (``"distance > 500 AND carrier = 'UA'"``) or as an expression; with Iceberg's meaning of
        null: ``!=`` and ``NOT IN`` match it. Files that hold no such rows are skipped, row groups too. A ``where`` that
        comes later skips row groups only, and none by strings that the table is not sorted by.
    columns
        Columns to read, all by default.
    as_of
        Id of a snapshot, a moment (without a zone: in ``spark.sql.session.timeZone``), or the name of a branch or tag.
        Without it ``spark.wap.branch`` of the session is read where the table has ``write.wap.enabled=true`` and that
        branch.
    limit
        Maximum number of rows.
    native
        Whether Spark's own reader may be used.
    memory_limit
        Bytes that a task of icefield's reader decodes at a time, about; 512 MiB by default. It is memory of a Python
        worker, outside of the JVM: ``spark.executor.memoryOverhead`` has to hold it for each core.
    catalog, **properties
        The catalog of a name, as `icefield.load_catalog` takes it.

    """
    scan = chosen(spark, table, filter, columns, as_of, limit=limit, catalog=catalog, properties=properties)
    return of_scan(spark, scan, native=native, memory_limit=memory_limit)


def chosen(
    spark: SparkSession,
    table: Table | str,
    row_filter: RowFilter | None,
    columns: Iterable[str] | str | None,
    as_of: int | str | datetime | None,
    *,
    limit: int | None = None,
    catalog: str | None,
    properties: Mapping[str, str],
) -> TableScan:
    """Return the scan of a table in a session; arguments are those of `read`."""
    fields = ("*",) if columns is None else fields_of(columns)
    source = opened(table, catalog, properties, keywords_of(read))
    moment = moment_of(spark, as_of)
    if not moment and (branch := read_branch(source, session_audit(spark))) is not None:
        moment = Moment(ref=branch)
    return source.scan(row_filter, fields, limit=limit, **moment)


def of_scan(spark: SparkSession, scan: TableScan, *, native: bool = True, memory_limit: int | None = None) -> DataFrame:
    """Return a scan as a DataFrame; arguments are those of `read`."""
    if compares_rows(scan):
        return _compared(spark, scan)
    way = decided(spark, scan, native=native)
    parts: list[DataFrame] = []
    if way.reader and way.native:
        parts.append(way.reader.frame(way.files["file_path"].take(way.native).to_pylist()))
    if way.rest or not parts:
        parts.append(decoded(spark, way.tasks(spark), way.plan.storage, way.schema, memory_limit))
    frame = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
    return frame if scan.limit is None else frame.limit(scan.limit)


def compares_rows(scan: TableScan) -> bool:
    """Return whether a scan is read by one task, as the compared rows of a changelog are."""
    return isinstance(scan, IncrementalChangelogScan) and scan.compares_rows


def _compared(spark: SparkSession, scan: TableScan) -> DataFrame:
    """Read a changelog whose rows are compared: one task reads all of them."""
    # Pinned: Spark plans more than once, and must find the same snapshots.
    schema = spark_schema(scan.projection())
    wanted = arrow_schema(schema)

    @sentence
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for _ in range(batch.num_rows):
                for found in scan.to_arrow_batch_reader(schema=wanted):
                    yield from _pieces(found)

    with drivers_python():
        return spark.range(0, 1, 1, 1).mapInArrow(rows, schema)


@dataclass(frozen=True)
class Ways:
    """Which files of a scan are read by Spark's Parquet reader and which by ours, by their places in the plan."""

    schema: st.StructType
    plan: ScanPlan
    files: pa.Table
    #: Why files are read by ours: in a word, and in full; null for the others.
    kinds: list[str | None]
    reasons: list[str | None]
    reader: _NativeReader | None

    def tasks(self, spark: SparkSession) -> list[ReadTask]:
        """Return the tasks of the files that are ours, for a session."""
        return self.plan.tasks(files=self.rest, parallelism=at_once(spark))

    @property
    def native(self) -> list[int]:
        """The files that Spark reads."""
        return [place for place, kind in enumerate(self.kinds) if kind is None]

    @property
    def rest(self) -> list[int]:
        """The files that are ours."""
        return [place for place, kind in enumerate(self.kinds) if kind is not None]


def decided(spark: SparkSession, scan: TableScan, *, native: bool = True) -> Ways:
    """Decide which reader reads which file of a scan."""
    # Pinned: Spark plans more than once, and must find the same snapshot.
    schema = spark_schema(scan.projection())
    read = scan.engine_read()
    reader, against = None, _against(spark, native=native)
    if against is None and scan.is_planned_by_server:
        against = ("planning", "planning: the server plans the scan, and may give filters and credentials of its own")
    if against is None and not read.columns:
        against = ("columns", "columns: none is read")
    if against is None and read.obstacle is None:
        reader = _NativeReader.of(spark, scan, schema, read)
        against = None if reader else _FILTER
    texts = reader.texts if reader else {}
    metrics = (*texts, *read.partition_columns) if reader else ()
    plan = replace(scan, limit=None).plan_files(metrics=metrics or False)
    files = plan.to_arrow()
    if against is not None:
        return Ways(schema, plan, files, [against[0]] * len(plan), [against[1]] * len(plan), None)
    found = plan.obstacles(read)
    kinds, reasons = found["kind"].to_pylist(), found["obstacle"].to_pylist()
    if reader:
        skipping = plan.skippable_by(texts.values())
        reader.as_bytes = {name for name, field_id in texts.items() if field_id not in skipping}
        for place, path in enumerate(files["file_path"].to_pylist()):
            if kinds[place] is None and (other := reader.against(path)) is not None:
                kinds[place], reasons[place] = other
    return Ways(schema, plan, files, kinds, reasons, reader)


#: Why Spark's reader is not used for a whole scan, or a file of it: a word or two, and the same in full.
_FILTER = ("filter", "filter: Spark cannot test it as Iceberg does")


def _against(spark: SparkSession, *, native: bool) -> tuple[str, str] | None:
    if not native:
        return "native=False", "native=False"
    return None if is_classic(spark) else ("Spark Connect", "Spark Connect: the session is not in this process")


def decoded(
    spark: SparkSession, tasks: list[ReadTask], storage: Storage, schema: st.StructType, memory_limit: int | None = None
) -> DataFrame:
    """Read tasks in Rust, one per Spark task."""
    if not tasks:
        return spark.createDataFrame([], schema)
    packed = PackedTasks(tasks)

    @sentence
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from task_rows(packed[place], storage, schema, memory_limit)

    with drivers_python():
        return _numbers(spark, len(packed), sum(task.size_in_bytes for task in tasks)).mapInArrow(rows, schema)


#: Bytes of a number in Spark's estimates.
_NUMBER = 8
#: Tables of this size or more have the same estimate: no session broadcasts them.
_LARGE = 1 << 30


def _numbers(spark: SparkSession, tasks: int, size: int) -> DataFrame:
    """Return a number for each task, one a partition, that Spark takes for so many bytes.

    Spark estimates the rows of a Python function by what it is called with, and would broadcast a whole table that it
    takes for some numbers. So these are chosen from as many numbers as the rows have bytes, which costs a task at most
    a tenth of a second.
    """
    each = 1 + min(size, _LARGE) // (_NUMBER * tasks)
    numbers = spark.range(0, tasks * each, 1, tasks)
    if each == 1:
        return numbers
    return numbers.where(f"id % {each} = 0").selectExpr(f"id div {each} AS id")


def task_rows(
    task: ReadTask, storage: Storage, schema: st.StructType, memory_limit: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Read a task in an executor, in the exact Arrow types that Spark takes for a schema."""
    begin_task()
    wanted = arrow_schema(schema)
    # The task has the table's order of columns, Spark asks for its own.
    ordered = pa.schema([wanted.field(name) for name in task.column_names])
    for batch in task.rows(storage, schema=ordered, memory_limit=memory_limit or _MEMORY).to_pyarrow():
        yield from _pieces(batch if ordered.names == wanted.names else batch.select(wanted.names))


#: Maximum size of a batch for Spark, unless one row is larger, and of what a task decodes at a time; in bytes.
_BATCH = 32 << 20
_MEMORY = 512 << 20


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Cut a batch that is too large for the buffers by which Spark takes it."""
    rows = max(1, batch.num_rows * _BATCH // max(batch.nbytes, 1))
    return (batch.slice(start, rows) for start in range(0, max(batch.num_rows, 1), rows))


class _NativeReader:
    """Spark's Parquet reader, for one scan."""

    def __init__(self, spark: SparkSession, scan: TableScan, schema: st.StructType, read: EngineRead) -> None:
        self._spark = spark
        self._scan = scan
        self._schema = schema
        self._columns = read.columns
        self.condition: Callable[[], Column] | None = None
        #: String columns that may be read as bytes, with their ids; and those that are.
        self.texts: dict[str, int] = {}
        self.as_bytes: set[str] = set()
        self._schemes: dict[str, bool] = {"": True, "file": True}

    @classmethod
    def of(cls, spark: SparkSession, scan: TableScan, schema: st.StructType, read: EngineRead) -> _NativeReader | None:
        """Return the reader of a scan; None if Spark cannot evaluate its filter exactly."""
        table_schema = replace(scan, selected_fields=("*",), row_filter=None).projection()
        condition = _condition(scan, table_schema)
        if condition is None:
            return None
        reader = cls(spark, scan, schema, read)
        reader.condition, used = condition
        names = {name for name, _, _ in read.columns}
        fields = (field for field in table_schema.fields if field.name in names)
        reader.texts = texts_without_order(scan.metadata, fields, used)
        return reader

    def against(self, path: str) -> tuple[str, str] | None:
        """Return why Spark does not read a file, if it does not."""
        resolved = self._scan.storage.resolve(path)
        scheme = urlsplit(resolved).scheme if "://" in resolved else ""
        if scheme not in self._schemes:
            self._schemes[scheme] = reads_scheme(self._spark, scheme)
        if not self._schemes[scheme]:
            return "path", f"path: this Spark has no file system for {scheme}://"
        # Spark treats paths as patterns, and ignores files with such names.
        hidden = resolved.rpartition("/")[2].startswith(("_", "."))
        if hidden or any(char in resolved for char in "{}[]*?\\"):
            return "path", "path: Spark takes it for a pattern, or for a hidden file"
        return None

    def frame(self, paths: list[str]) -> DataFrame:
        """Read the files."""
        storage = self._scan.storage
        resolved = [storage.resolve(path) for path in paths]
        urls = [path if "://" in path else f"file://{path}" for path in resolved]
        names = {name: asked_by for name, _, asked_by in self._columns}
        whole = spark_schema(replace(self._scan, selected_fields=tuple(names)).projection())
        asked = []
        for field in whole.fields:
            name = names[field.name]
            kind = st.BinaryType() if field.name in self.as_bytes else field.dataType
            # Every column is nullable to the reader: a file may be older than a column.
            asked.append(st.StructField(name, kind, True, field.metadata))
        frame = ReaderSession.of(self._spark).parquet(st.StructType(asked), urls)
        # Each column costs several calls into the JVM: only where something changes.
        if [field.name for field in asked] != whole.names:
            frame = frame.toDF(*whole.names)
        if self.as_bytes:
            frame = frame.to(whole.toNullable())
        if self.condition is not None:
            frame = frame.where(self.condition())
        if whole.simpleString() != self._schema.simpleString():
            frame = frame.select(*(F.col(quoted(name)) for name in self._schema.names))
            if frame.schema.simpleString() != self._schema.simpleString():
                # Fields of structs that are omitted or in another order.
                frame = frame.to(self._schema.toNullable())
        return adopted(self._spark, frame)


def _condition(scan: TableScan, schema: Schema) -> tuple[Callable[[], Column] | None, set[str]] | None:
    """Return the filter as a column, and the top-level columns it names; None if Spark cannot evaluate it exactly."""
    if scan.row_filter is None:
        return None, set()
    bound = expression_of(scan.row_filter).bind(schema, scan.case_sensitive).rewrite_not()
    document = json.loads(bound.to_json())
    types = filters.leaf_types(schema)
    try:
        filters.column(document, types)
    except filters.NotInSpark:
        return None
    named = (schema.find_column_name(field_id) or "" for field_id in bound.field_ids)
    used = {name.partition(".")[0] for name in named}
    return (lambda: filters.column(document, types)), used
