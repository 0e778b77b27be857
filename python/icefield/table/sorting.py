"""Sort orders, under the name of PyIceberg's module; see `icefield.sorting`."""

from __future__ import annotations

from icefield.sorting import (
    UNSORTED_SORT_ORDER,
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
