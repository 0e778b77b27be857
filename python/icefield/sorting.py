"""Sort orders: the order of rows in a file ("Sorting")."""

from __future__ import annotations

from enum import Enum

from icefield._core import SortField, SortOrder

__all__ = ["NullOrder", "SortDirection", "SortField", "SortOrder"]


class SortDirection(str, Enum):
    """How rows are sorted; members equal their text."""

    ASC = "asc"
    DESC = "desc"

    def __str__(self) -> str:
        return self.value


class NullOrder(str, Enum):
    """Where nulls are sorted; members equal their text."""

    NULLS_FIRST = "nulls-first"
    NULLS_LAST = "nulls-last"

    def __str__(self) -> str:
        return self.value
