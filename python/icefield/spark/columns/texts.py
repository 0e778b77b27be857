"""Which string columns Spark's Parquet reader reads as bytes.

Spark creates an object for each string that it reads from a dictionary. The bytes of the dictionary it returns without
a copy, and the cast from bytes to strings is compiled into the loop over the rows: four string columns take two thirds
of the time. But a condition on a cast is not pushed to the files. So this is for columns where a
condition would skip nothing, according to metadata: the table is not partitioned or sorted by them and has no Bloom
filters for them, the filter of the scan does not name them, and the ranges of all files overlap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield.metadata import TableMetadata
    from icefield.types import NestedField

__all__ = ["texts_without_order"]

_BLOOM_FILTER = "write.parquet.bloom-filter-enabled.column."


def texts_without_order(
    metadata: TableMetadata, fields: Iterable[NestedField], named: Collection[str]
) -> dict[str, int]:
    """Return the top-level string columns, with their ids, that no filter, spec, sort order or Bloom filter refers to.

    Parameters
    ----------
    metadata
        The metadata of the table.
    fields
        The columns that are read.
    named
        Columns that the filter names.

    """
    arranged = _arranged(metadata)
    filtered = {name.removeprefix(_BLOOM_FILTER) for name in metadata.properties if _BLOOM_FILTER in name}
    return {
        field.name: field.field_id
        for field in fields
        if str(field.field_type) == "string"
        and field.field_id not in arranged
        and field.name not in filtered
        and field.name not in named
    }


def _arranged(metadata: TableMetadata) -> set[int]:
    """Return the ids of columns by which rows are or were partitioned or sorted."""
    of_specs = {id for spec in metadata.partition_specs for field in spec.fields for id in field.source_ids}
    return of_specs | {id for order in metadata.sort_orders for field in order.fields for id in field.source_ids}
