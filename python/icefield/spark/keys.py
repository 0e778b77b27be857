"""Partition values as expressions, to bring rows together by.

Where Spark has an expression of its own that gives the value exactly, no row leaves the virtual machine for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as F  # noqa: N812

from icefield.spark import functions

if TYPE_CHECKING:
    from pyspark.sql import Column

__all__ = ["partition_value"]

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
#: Spark hashes by murmur3 as Iceberg does, but starts from 42, and each column of a call from the hash of the one
#: before: after this number, whose hash is 0, a long has the hash of Appendix B.
_BEFORE = -1_693_959_553


def partition_value(transform: str, name: str, type_name: str) -> Column:
    """Apply a transform to the column of a name and a Spark type (``"bigint"``)."""
    column = F.col(f"`{name.replace('`', '``')}`")
    kind, _, number = transform.rstrip("]").partition("[")
    if kind == "bucket":
        return _bucket(int(number), column, type_name)
    if kind == "truncate":
        if type_name == "string":
            return F.substring(column, 1, int(number))
        return (
            _of_numbers(transform, column, type_name) if type_name in _WHOLE else _applied(transform, column, type_name)
        )
    if type_name not in {"date", "timestamp", "timestamp_ntz"}:
        return _applied(transform, column, type_name)
    if kind == "hour":
        if type_name == "timestamp":
            return _floor_div(F.unix_micros(column), _HOUR)
        return F.datediff(column, _epoch()) * 24 + F.hour(column)
    date = column.cast("date")
    if type_name == "timestamp":
        # Not in the session's zone, which a cast would take, but in UTC.
        date = F.date_add(_epoch(), _floor_div(F.unix_micros(column), _DAY))
    years = F.year(date) - 1970
    return {"day": date, "month": years * 12 + F.month(date) - 1, "year": years}[kind]


def _bucket(number: int, column: Column, type_name: str) -> Column:
    if type_name == "date":
        column = F.unix_date(column)
    elif type_name == "timestamp":
        column = F.unix_micros(column)
    elif type_name == "timestamp_ntz" and not functions.ON_ARROW:
        # A local time is a time of day in no zone: as text with one, it is the instant that Iceberg counts from.
        column = F.unix_micros(F.to_timestamp(F.concat(column.cast("string"), F.lit("Z"))))
    elif type_name not in _WHOLE:
        return _applied(f"bucket[{number}]", column, type_name)
    hashed = F.hash(F.lit(_BEFORE), column.cast("bigint")).bitwiseAND(F.lit(2**31 - 1))
    return F.when(column.isNotNull(), hashed % F.lit(number))


def _applied(transform: str, column: Column, type_name: str) -> Column:
    """Give the value by the kernel."""
    return functions.apply(transform, column, functions.RESULTS.get(transform.partition("[")[0], type_name))


def _of_numbers(transform: str, column: Column, type_name: str) -> Column:
    """Give the value of whole numbers, of which pandas (PySpark 4.0) has no null: those are taken out around it."""
    return F.when(column.isNotNull(), _applied(transform, F.coalesce(column, F.lit(0).cast(type_name)), type_name))


def _epoch() -> Column:
    return F.lit("1970-01-01").cast("date")


def _floor_div(column: Column, by: int) -> Column:
    """Divide whole numbers, downwards; ``/`` would divide doubles."""
    divided: Column = F.call_function("div", column - F.pmod(column, F.lit(by)), F.lit(by)).cast("int")
    return divided
