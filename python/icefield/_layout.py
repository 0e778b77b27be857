"""Partition specs and sort orders in the text form that ``create_table`` takes, for people."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield.partitioning import PartitionField, PartitionSpec
    from icefield.schema import Schema
    from icefield.sorting import SortField, SortOrder

__all__ = ["iso_of", "partition_texts", "sort_texts"]


def partition_texts(spec: PartitionSpec, schema: Schema) -> list[str]:
    """Write the fields of a spec: ``month(time)``, ``bucket(8, carrier)``."""
    return [_call(field, schema) for field in spec.fields]


def sort_texts(order: SortOrder, schema: Schema) -> list[str]:
    """Write the fields of an order: ``time desc nulls last``."""
    return [
        f"{_call(field, schema)} {field.direction} {str(field.null_order).replace('-', ' ')}" for field in order.fields
    ]


def _call(field: PartitionField | SortField, schema: Schema) -> str:
    sources = ", ".join(schema.find_column_name(source) or f"column {source}" for source in field.source_ids)
    transform = field.transform
    if transform.is_identity:
        return sources
    number = transform.num_buckets or transform.width
    return f"{transform.name}({sources})" if number is None else f"{transform.name}({number}, {sources})"


def iso_of(milliseconds: int) -> str:
    """Write a moment in UTC; as milliseconds where no calendar has it."""
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, timezone.utc)
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
    return moment.isoformat(sep=" ", timespec="milliseconds")
