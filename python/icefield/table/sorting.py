"""Sort orders, under the name of PyIceberg's module; see `icefield.sorting`."""

from __future__ import annotations

from icefield.sorting import (
    NullOrder,
    SortDirection,
    SortField,
    SortOrder,
)

__all__ = [
    "UNSORTED_SORT_ORDER",
    "NullOrder",
    "SortDirection",
    "SortField",
    "SortOrder",
]

#: The order of tables that are not sorted.
UNSORTED_SORT_ORDER = SortOrder()
