"""Protocols of the Arrow PyCapsule interface: the data that icefield accepts from other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "Rows",
    "SchemaLike",
]


class ArrowSchemaExportable(Protocol):
    """A schema or a type, such as a pyarrow Schema."""

    def __arrow_c_schema__(self) -> object: ...


class ArrowArrayExportable(Protocol):
    """One array or record batch, such as a pyarrow RecordBatch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class ArrowStreamExportable(Protocol):
    """Record batches, such as a pyarrow Table or RecordBatchReader, a pandas or Polars frame, a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowCollectable(Protocol):
    """A DataFrame of PySpark, classic or of Spark Connect, whose rows are collected into one Arrow table."""

    def toArrow(self) -> pa.Table:  # noqa: N802
        """Return all rows."""


class SparkSchema(Protocol):
    """A schema of PySpark: ``pyspark.sql.types.StructType``."""

    def fieldNames(self) -> list[str]:  # noqa: N802
        """Return the names of the columns."""


#: Rows of a table.
Rows: TypeAlias = ArrowStreamExportable | ArrowArrayExportable | ArrowCollectable

#: A schema, or anything that has one: an `icefield.Schema` too.
SchemaLike: TypeAlias = ArrowSchemaExportable | ArrowStreamExportable | ArrowCollectable | SparkSchema
