"""Protocols of the Arrow PyCapsule interface: the data that icefield accepts from other libraries."""

from __future__ import annotations

from typing import Protocol, TypeAlias

__all__ = ["ArrowArrayExportable", "ArrowSchemaExportable", "ArrowStreamExportable", "Rows", "SchemaLike"]


class ArrowSchemaExportable(Protocol):
    """A schema or a type, such as a pyarrow Schema."""

    def __arrow_c_schema__(self) -> object: ...


class ArrowArrayExportable(Protocol):
    """One array or record batch, such as a pyarrow RecordBatch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class ArrowStreamExportable(Protocol):
    """Record batches, such as a pyarrow Table or RecordBatchReader, a pandas or Polars frame, a DuckDB relation."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


#: Rows of a table.
Rows: TypeAlias = ArrowStreamExportable | ArrowArrayExportable

#: A schema, or anything that has one: an `icefield.Schema` too.
SchemaLike: TypeAlias = ArrowSchemaExportable | ArrowStreamExportable
