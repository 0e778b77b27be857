"""What is in a data file or a table, read by pyarrow, by field id: plain rows that predicates are tried on."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import icefield as ice

from .values import from_array

FIELD_ID = b"PARQUET:field_id"


def rows_of_file(path: str, schema: ice.Schema) -> list[dict[int, Any]]:
    """Give the rows of a Parquet file: the value of each column, those inside of structs too, by field id.

    Columns on top that the file has not are there with their default, if it is a number, a text or a boolean.
    """
    return rows_of_table(pq.ParquetFile(path.removeprefix("file://").removeprefix("file:")).read(), schema)


def rows_of_table(table: pa.Table, schema: ice.Schema) -> list[dict[int, Any]]:
    """Give the rows of a table with field ids, as `rows_of_file` does."""
    defaults = {field["id"]: field.get("initial-default") for field in json.loads(schema.to_json())["fields"]}
    columns: dict[int, list[Any]] = {}

    def visit(field: pa.Field, array: pa.Array) -> None:
        number = int((field.metadata or {}).get(FIELD_ID, -1))
        if pa.types.is_struct(field.type):
            columns[number] = [True if valid else None for valid in array.is_valid().to_pylist()]
            for place in range(field.type.num_fields):
                # `flatten` of an array gives the children with the nulls of their parent.
                visit(field.type.field(place), array.flatten()[place])
        elif pa.types.is_list(field.type) or pa.types.is_map(field.type):
            columns[number] = [True if valid else None for valid in array.is_valid().to_pylist()]
        else:
            columns[number] = from_array(array)

    for field, column in zip(table.schema, table.columns, strict=True):
        chunks = column.combine_chunks()
        visit(field, chunks.combine_chunks() if isinstance(chunks, pa.ChunkedArray) else chunks)
    rows = range(table.num_rows)
    return [defaults | {number: values[row] for number, values in columns.items()} for row in rows]
