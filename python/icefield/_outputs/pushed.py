"""Conditions of other libraries as filters of scans that keep at least the same rows.

They only skip files and row groups: the library tests the rows itself afterwards, so a condition without an equivalent
is left out. The rules of others differ: for some NaN is the greatest number, and -0.0 equals 0.0.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from datetime import date, datetime
from typing import TYPE_CHECKING, Protocol

from icefield.errors import IcefieldError
from icefield.expressions import (
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    LessThan,
    LessThanOrEqual,
    NotEqualTo,
    Or,
    Reference,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from typing_extensions import Self

    from icefield._core import ArrowTable
    from icefield.expressions import Expression, Term
    from icefield.schema import Schema

__all__ = ["Columns", "PushableScan"]

_COMPARISONS = {
    "==": EqualTo,
    "!=": NotEqualTo,
    "<": LessThan,
    "<=": LessThanOrEqual,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
}


class PushableScan(Protocol):
    """What other libraries need of a scan: to read less of it."""

    @property
    def limit(self) -> int | None:
        """The number of rows, if it is limited."""

    @property
    def case_sensitive(self) -> bool:
        """Whether column names are case-sensitive."""

    def projection(self) -> Schema:
        """Return the schema of the selected columns."""

    def only(self, names: Iterable[str], /) -> Self:
        """Read only some of the selected columns."""

    def at_most(self, rows: int, /) -> Self:
        """Read at most this many rows."""

    def filter(self, row_filter: Expression, /) -> Self:
        """Also apply this filter."""

    def empty(self) -> ArrowTable:
        """Return an Arrow table of the columns that are read, without rows."""

    def count(self) -> int:
        """Return the number of rows."""

    def to_arrow_batch_reader(self, *, batch_size: int | None = None) -> pa.RecordBatchReader:
        """Read the rows as batches."""


class Columns:
    """The columns of a scan that conditions can be about."""

    def __init__(self, schema: Schema, case_sensitive: bool = True) -> None:
        self._schema = schema
        self._case_sensitive = case_sensitive
        # A dot leads into structs, so a name with one is no name of a column.
        self._types = {field.name: str(field.field_type) for field in schema.fields if "." not in field.name}

    def term(self, name: str) -> Term | None:
        """Return a reference to a top-level column, if there is such a column."""
        return Reference(name) if name in self._types else None

    def compared(self, name: str, operation: str, value: object) -> Expression | None:
        """Compare a column with a value: ``==``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``."""
        kind = self._types.get(name)
        if kind is None or not _fits(kind, value):
            return None
        found: Expression = _COMPARISONS[operation](Reference(name), value)
        if kind in {"float", "double"} and operation in {">", ">="}:
            # For Polars and DuckDB NaN is greater than all numbers.
            found = Or(found, IsNaN(Reference(name)))
        return self.bound(found)

    def one_of(self, name: str, values: Iterable[object]) -> Expression | None:
        """Compare a column with several values; null is none of them."""
        kind = self._types.get(name)
        wanted = [value for value in values if value is not None]
        if kind is None or not all(_fits(kind, value) for value in wanted):
            return None
        return self.bound(In(Reference(name), wanted))

    def bound(self, expression: Expression) -> Expression | None:
        """Return the expression if it fits the columns."""
        try:
            expression.bind(self._schema, self._case_sensitive)
        except IcefieldError:
            return None
        return expression


def _fits(kind: str, value: object) -> bool:
    """Whether a value is one of a type, and compares alike everywhere."""
    match kind, value:
        case "boolean", bool():
            return True
        case _, bool():
            return False
        case "int" | "long", int():
            return True
        case "float" | "double", int() | float():
            return _is_ordinary_number(kind, value)
        case "string", str():
            return True
        case "date", datetime():
            return False
        case "date", date():
            return True
        case "timestamp" | "timestamptz", datetime():
            return (value.tzinfo is not None) == (kind == "timestamptz")
        case _:
            return False


def _is_ordinary_number(kind: str, value: float) -> bool:
    """Whether a number is no zero and no NaN, and a value of the type."""
    try:
        number = float(value)
        narrow: float = struct.unpack("<f", struct.pack("<f", number))[0] if kind == "float" else number
    except OverflowError:
        return False
    return number != 0 and math.isfinite(number) and narrow == value
