"""Sort orders: the order of rows in a file ("Sorting")."""

from __future__ import annotations

from icefield._core import SortField, SortOrder

__all__ = ["UNSORTED_SORT_ORDER", "SortField", "SortOrder"]

UNSORTED_SORT_ORDER = SortOrder()
"""The order of tables that are not sorted."""
