"""Scans as DataFrames: Spark's own Parquet reader for the files that it reads correctly, the Rust reader for the rest.

Spark's reader is as fast as any, so it reads Parquet files without deletes, of columns whose types it supports. It
finds columns by field id, but pushes filters down to the file by name; `icefield.spark.history` decides which columns
may keep their names, and `icefield.spark.texts` which strings are read as bytes. All other files are read through
`mapInArrow`, by one Python task per group of files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from icefield.distributed import ReadTask, Storage
from icefield.expressions import parse
from icefield.incremental import IncrementalChangelogScan
from icefield.moments import Moment
from icefield.name_mapping import NAME_MAPPING_PROPERTY
from icefield.scan import TableScan, fields_of
from icefield.spark import filters
from icefield.spark.audit import read_branch, session_audit
from icefield.spark.failures import sentence
from icefield.spark.history import History
from icefield.spark.names import quoted
from icefield.spark.opening import moment_of, opened
from icefield.spark.session import ReaderSession, adopted, is_classic, reads_scheme
from icefield.spark.texts import texts_without_order
from icefield.spark.types import FIELD_ID, arrow_schema, spark_schema
from icefield.spark.workers import drivers_python

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from icefield.expressions import RowFilter
    from icefield.schema import Schema
    from icefield.table import Table

__all__ = ["of_scan", "read", "task_rows"]


def read(
    spark: SparkSession,
    table: Table | str,
    *,
    filter: RowFilter | None = None,
    columns: Iterable[str] | str | None = None,
    as_of: int | str | datetime | None = None,
    limit: int | None = None,
    native: bool = True,
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
    catalog, **properties
        The catalog of a name, as `icefield.load_catalog` takes it.

    """
    chosen = ("*",) if columns is None else fields_of(columns)
    source = opened(table, catalog, properties)
    moment = moment_of(spark, as_of)
    if not moment and (branch := read_branch(source, session_audit(spark))) is not None:
        moment = Moment(ref=branch)
    scan = source.scan(filter, chosen, limit=limit, **moment)
    return of_scan(spark, scan, native=native)


def of_scan(spark: SparkSession, scan: TableScan, *, native: bool = True) -> DataFrame:
    """Return a scan as a DataFrame."""
    # Pinned: Spark plans more than once, and must find the same snapshot.
    schema = spark_schema(scan.projection())
    # Spark's reader returns rows only, not whether they were inserted or deleted.
    native = native and is_classic(spark) and not isinstance(scan, IncrementalChangelogScan)
    reader = _NativeReader.of(spark, scan, schema) if native else None
    texts = reader.texts if reader else {}
    plan = replace(scan, limit=None).plan_files(metrics=tuple(texts) or False)
    files = plan.to_arrow()
    if reader:
        skipping = plan.skippable_by(texts.values())
        reader.as_bytes = {name for name, field_id in texts.items() if field_id not in skipping}
    places = reader.readable(files) if reader else []
    rest = sorted(set(range(files.num_rows)) - set(places))
    parts: list[DataFrame] = []
    if reader and places:
        parts.append(reader.frame(files["file_path"].take(places).to_pylist()))
    if rest or not parts:
        parts.append(_decoded(spark, plan.tasks(files=rest), scan.storage, schema))
    frame = parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1])
    return frame if scan.limit is None else frame.limit(scan.limit)


def _decoded(spark: SparkSession, tasks: list[ReadTask], storage: Storage, schema: st.StructType) -> DataFrame:
    """Read tasks in Rust, one per Spark task."""
    if not tasks:
        return spark.createDataFrame([], schema)

    @sentence
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                yield from task_rows(tasks[place], storage, schema)

    with drivers_python():
        return spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(rows, schema)


def task_rows(task: ReadTask, storage: Storage, schema: st.StructType) -> Iterator[pa.RecordBatch]:
    """Read a task in an executor, in the exact Arrow types that Spark takes for a schema."""
    # Spark runs one worker per core; more threads would only compete with the other workers.
    os.environ.setdefault("ICEFIELD_THREADS", "1")
    wanted = arrow_schema(schema)
    # The task has the table's order of columns, Spark asks for its own.
    ordered = pa.schema([wanted.field(name) for name in task.column_names])
    for batch in task.rows(storage, schema=ordered).to_pyarrow():
        yield batch if ordered.names == wanted.names else batch.select(wanted.names)


class _NativeReader:
    """Spark's Parquet reader, for one scan."""

    def __init__(
        self, spark: SparkSession, scan: TableScan, schema: st.StructType, history: History, names: list[str]
    ) -> None:
        self._spark = spark
        self._scan = scan
        self._schema = schema
        self._history = history
        self._names = names
        self.condition: Callable[[], Column] | None = None
        #: String columns that may be read as bytes, with their ids; and those that are.
        self.texts: dict[str, int] = {}
        self.as_bytes: set[str] = set()
        self._schemes: dict[str, bool] = {"": True, "file": True}

    @classmethod
    def of(cls, spark: SparkSession, scan: TableScan, schema: st.StructType) -> _NativeReader | None:
        """Return the reader of a scan; None if Spark's own cannot read its columns or evaluate its filter exactly."""
        history = History.of(scan.metadata)
        # Imported files have no field ids; Spark would not find their columns.
        if history is None or NAME_MAPPING_PROPERTY in scan.metadata.properties:
            return None
        table_schema = replace(scan, selected_fields=("*",), row_filter=None).projection()
        condition = _condition(scan, table_schema)
        if condition is None:
            return None
        make, used = condition
        names = [name for name in table_schema.column_names if name in schema.names or name in used]
        ids = [field.field_id for field in table_schema.fields if field.name in names]
        if not names or not all(history.is_plain(field_id) for field_id in ids):
            return None
        reader = cls(spark, scan, schema, history, names)
        reader.condition = make
        reader.texts = texts_without_order(scan.metadata, (f for f in table_schema.fields if f.name in names), used)
        return reader

    def readable(self, files: pa.Table) -> list[int]:
        """Return the positions of the files that Spark's own reader can read."""
        paths, formats = files["file_path"].to_pylist(), files["file_format"].to_pylist()
        deletes = files["deletes"].combine_chunks().value_lengths().to_pylist()
        found = zip(paths, formats, deletes, strict=True)
        return [
            place
            for place, (path, kind, count) in enumerate(found)
            if kind == "parquet" and not count and self._reachable(path)
        ]

    def _reachable(self, path: str) -> bool:
        resolved = self._scan.storage.resolve(path)
        scheme = urlsplit(resolved).scheme if "://" in resolved else ""
        if scheme not in self._schemes:
            self._schemes[scheme] = reads_scheme(self._spark, scheme)
        # Spark treats paths as patterns, and ignores files with such names.
        hidden = resolved.rpartition("/")[2].startswith(("_", "."))
        return self._schemes[scheme] and not hidden and not any(char in resolved for char in "{}[]*?\\")

    def frame(self, paths: list[str]) -> DataFrame:
        """Read the files."""
        storage = self._scan.storage
        resolved = [storage.resolve(path) for path in paths]
        urls = [path if "://" in path else f"file://{path}" for path in resolved]
        whole = spark_schema(replace(self._scan, selected_fields=tuple(self._names)).projection())
        asked = []
        for field in whole.fields:
            field_id = field.metadata[FIELD_ID]
            name = field.name if self._history.keeps_name(field_id) else self._history.alias(field_id)
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
    expression = parse(scan.row_filter) if isinstance(scan.row_filter, str) else scan.row_filter
    bound = expression.bind(schema, scan.case_sensitive).rewrite_not()
    document = json.loads(bound.to_json())
    types = filters.leaf_types(schema)
    try:
        filters.column(document, types)
    except filters.NotInSpark:
        return None
    named = (schema.find_column_name(field_id) or "" for field_id in bound.field_ids)
    used = {name.partition(".")[0] for name in named}
    return (lambda: filters.column(document, types)), used
