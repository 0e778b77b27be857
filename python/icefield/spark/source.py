"""The data source ``icefield``: ``spark.read.format("icefield").load("db.t")``, ``df.write.format("icefield")``, SQL.

The same code as `icefield.spark.read` and `icefield.spark.append`, behind Spark's own interface, which passes less
information: columns are not pruned (give ``.schema("id bigint")`` to read some), filters are pushed only from PySpark
4.1 on, with ``spark.sql.python.filterPushdown.enabled`` and the option ``push-filters``, and rows are not brought
together by partition. Options: `icefield.spark.tables.opening.SourceOptions`.

Every step runs in a process of its own; only what can be pickled goes from one to the next, so the committer opens the
catalog again from the options. What goes to tasks has the storage of the table and no options: they may hold
credentials of the catalog.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from icefield.errors import CorruptDataError, InvalidArgumentError
from icefield.expressions import from_json
from icefield.spark import functions
from icefield.spark.columns.filters import leaf_types, pushed
from icefield.spark.columns.types import arrow_schema, spark_schema
from icefield.spark.reads.inspecting import inspect_tasks
from icefield.spark.reads.parts import InspectPart, Part, parts, require_columns, require_same
from icefield.spark.reads.streaming import STREAM_READER, StreamReader
from icefield.spark.sessions.failures import sentence
from icefield.spark.sessions.session import finds_source
from icefield.spark.sessions.workers import drivers_python
from icefield.spark.sinks.batch import Writer
from icefield.spark.sinks.overwrites import Overwrite, merge_schema
from icefield.spark.sinks.stream import STREAM_WRITER, StreamWriter
from icefield.spark.tables.opening import CHANGES, SourceOptions
from icefield.spark.writes.writing import Write, WriteSettings

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql import types as st
    from pyspark.sql.datasource import Filter

    from icefield.expressions import Expression
    from icefield.schema import Schema
    from icefield.table import Table

__all__ = ["Source", "register"]

# The process that asks for filters; it exists only where pushing them down is enabled.
_FILTER_PLANNER = "pyspark.sql.worker.data_source_pushdown_filters"


class Source(DataSource):
    """The data source of Iceberg tables; Spark creates it, not users."""

    #: The table whose columns Spark has; it keeps this object with them, for every query on a DataFrame or a view.
    table_uuid: str | None = None
    #: Whether a reader was made, so that what is pickled from now on goes to tasks: Spark sends them this object too.
    _has_reader = False

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "options": {}} if self._has_reader else self.__dict__

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "icefield"

    @sentence
    def schema(self) -> st.StructType:
        """Return the columns of the table, field ids in their metadata."""
        options = SourceOptions.of(self.options)
        table, what = options.target()
        self.table_uuid = str(table.table_uuid)
        return spark_schema(readable_schema(options, table, what))

    @sentence
    def reader(self, schema: st.StructType) -> Reader:
        """Return a reader of some columns."""
        # A reader that could take filters is refused by Spark where pushing down is disabled, and the setting itself
        # cannot be seen here.
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        pushing = _FILTER_PLANNER in sys.modules or (spec is not None and spec.name == _FILTER_PLANNER)
        options = SourceOptions.of(self.options).reading()
        self._has_reader = True
        kind = FilteringReader if pushing and options.pushes_filters else Reader
        return kind(options, schema, self.table_uuid)

    def streamReader(self, schema: st.StructType) -> StreamReader:  # noqa: N802
        """Return a reader of appended rows. Its methods check the options, because Spark hides errors raised here."""
        self._has_reader = True
        return STREAM_READER(self.options, schema, self.table_uuid)

    @sentence
    def streamWriter(self, schema: st.StructType, overwrite: bool) -> StreamWriter:  # noqa: N802
        """Return a writer of the batches of a stream."""
        options = SourceOptions.of(self.options).streaming()
        return STREAM_WRITER(options, options.open_again(), schema, complete=overwrite)

    @sentence
    def writer(self, schema: st.StructType, overwrite: bool) -> Writer:
        """Return a writer of rows with these columns."""
        options = SourceOptions.of(self.options).writing()
        table, columns = options.open(), arrow_schema(schema)
        if options.says("mergeschema", "merge-schema"):
            merge_schema(table, columns)
        settings = WriteSettings(options.memory_limit)
        replaced = Overwrite.of(options, table) if overwrite else None
        if replaced is None or replaced.plan is None:
            write = Write.of_schema(table, columns, options.write_properties(table), settings=settings)
        else:
            write = Write.checked(replaced.plan.write, table, columns, settings)
        return Writer(options, write, replaced)


def readable_schema(options: SourceOptions, table: Table, what: str | None) -> Schema:
    """Return the columns of a table as it is read, of its changelog, or of a metadata table."""
    if what in (None, CHANGES):
        return options.scan(table, what, None).projection()
    return table.inspect.schema(what)


class Reader(DataSourceReader):
    """Reads some columns of a table, of its changelog or of a metadata table."""

    def __init__(self, options: SourceOptions, schema: st.StructType, table_uuid: str | None = None) -> None:
        self._options = options
        self._schema = schema
        self._table_uuid = table_uuid
        self._filter: Expression | None = None

    def __getstate__(self) -> dict[str, object]:
        # What tasks need is in their partitions; the options may hold credentials of the catalog.
        return {"_schema": self._schema}

    @sentence
    def partitions(self) -> list[InputPartition]:
        """Plan the scan: one partition for each group of files, or of manifests."""
        options = self._options
        table, what = options.target()
        require_same(table, self._table_uuid)
        if what not in (None, CHANGES):
            require_columns(self._schema, spark_schema(table.inspect.schema(what)))
            moment = options.metadata_moment()
            tasks = inspect_tasks(table, what, self._filter, self._schema.names, moment)
            return [InspectPart(task, table.storage) for task in tasks]
        scan = options.scan(table, what, self._filter, tuple(self._schema.names))
        require_columns(self._schema, spark_schema(scan.projection()))
        return [*parts(scan, options.split, options.memory_limit)]

    @sentence
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read one task."""
        # For a table without rows Spark calls this too, with a partition of its own.
        if isinstance(partition, Part | InspectPart):
            yield from partition.rows(self._schema)


class FilteringReader(Reader):
    """Reads some columns of a table and skips files by the filters of the query."""

    @sentence
    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802
        """Take what Iceberg knows for skipping files; Spark still applies every filter itself."""
        table, what = self._options.target()
        # A changelog is filtered by the columns of the table; those of the change are left to Spark.
        schema = table.schema() if what == CHANGES else readable_schema(self._options, table, what)
        types = leaf_types(schema)
        for one in filters:
            document = pushed(one, types)
            try:
                expression = None if document is None else from_json(document, schema)
                if expression is None:
                    continue
                expression.bind(schema)
            except (CorruptDataError, InvalidArgumentError):
                continue  # a literal that the column's type has no value for: the filter stays Spark's alone
            self._filter = expression if self._filter is None else self._filter & expression
        return filters


def register(spark: SparkSession) -> None:
    """Make the data source ``icefield`` and the SQL functions ``icefield_*`` known to a session.

    On PySpark 4.0 the functions take no timestamps (`icefield.spark.functions`).
    """
    functions.register(spark)
    if finds_source(spark, Source.name()):
        return
    try:
        with drivers_python():
            spark.dataSource.register(Source)
    except AnalysisException as error:
        # PySpark 4.0 refuses a second registration, and may have discovered the source itself.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
