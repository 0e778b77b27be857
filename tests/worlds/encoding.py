"""Rows as values that compare, whichever engine they come from: Arrow tables of Spark, of Java and of ours."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa


def number(value: float) -> str:
    return repr(value)


def pairs(entries: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return sorted(entries, key=repr)


def encoded_table(table: pa.Table) -> list[dict[str, Any]]:
    """Give rows as values that compare: integers for times, texts for floats and decimals, hexadecimal digits."""
    columns = [encoded(table.column(place).combine_chunks()) for place in range(table.num_columns)]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def encoded(array: pa.Array) -> list[Any]:
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in encoded(chunk)]
    kind = array.type
    if isinstance(array, pa.ExtensionArray):
        return [None if value is None else str(value) for value in array.to_pylist()]
    if pa.types.is_struct(kind):
        children = [encoded(child) for child in array.flatten()]
        fields = [dict(zip((field.name for field in kind), row, strict=True)) for row in zip(*children, strict=True)]
        return [row if valid else None for row, valid in zip(fields, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_map(kind):
        bounds = pairwise(array.offsets.to_pylist())
        items = list(zip(encoded(array.keys), encoded(array.items), strict=True))
        valid = array.is_valid().to_pylist()
        return [pairs(items[first:last]) if there else None for there, (first, last) in zip(valid, bounds, strict=True)]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return [None if not scalar.is_valid else encoded(scalar.values) for scalar in array]
    if pa.types.is_date32(kind):
        return array.cast(pa.int32()).to_pylist()
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        factor = 1000 if kind.unit == "ns" else 1
        return [None if value is None else value // factor for value in array.cast(pa.int64()).to_pylist()]
    values = array.to_pylist()
    if pa.types.is_floating(kind):
        return [None if value is None else number(value) for value in values]
    if pa.types.is_decimal(kind):
        return [None if value is None else format(value, "f") for value in values]
    return [value.hex() if isinstance(value, bytes | bytearray) else value for value in values]
