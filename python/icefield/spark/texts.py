"""Which texts Spark's Parquet reader is asked for as bytes.

Spark makes an object for each text that it takes from a dictionary. The bytes of the dictionary it hands out as they
are, and the cast that makes texts of them is compiled into the loop over the rows: four columns of texts take two
thirds of the time. But a condition on a cast is not pushed to the files. So this is for columns of which a condition
would skip nothing, as far as metadata tell: the table is not partitioned or sorted by them and keeps no Bloom filters
of them, the filter of the scan does not name them, and the ranges of all files meet (`Plan.tells_apart`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from icefield.types import NestedField

__all__ = ["texts_without_order"]

_BLOOM_FILTER = "write.parquet.bloom-filter-enabled.column."


def texts_without_order(
    metadata: Mapping[str, Any], fields: Iterable[NestedField], named: Collection[str]
) -> dict[str, int]:
    """Give the top-level texts, with their ids, that no filter names and no spec, sort order or Bloom filter is of.

    Parameters
    ----------
    metadata
        The table's, as JSON.
    fields
        The columns that are read.
    named
        Columns that the filter names.

    """
    arranged = set(_arranged(metadata))
    filtered = {name.removeprefix(_BLOOM_FILTER) for name in metadata.get("properties", {}) if _BLOOM_FILTER in name}
    return {
        field.name: field.field_id
        for field in fields
        if str(field.field_type) == "string"
        and field.field_id not in arranged
        and field.name not in filtered
        and field.name not in named
    }


def _arranged(metadata: Mapping[str, Any]) -> Iterator[int]:
    """Give the ids of columns by which rows are partitioned or sorted, or were."""
    for spec in (*metadata.get("partition-specs", ()), *metadata.get("sort-orders", ())):
        for field in spec["fields"]:
            yield from field.get("source-ids") or [field["source-id"]]
