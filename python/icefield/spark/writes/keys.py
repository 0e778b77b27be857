"""Partition values as expressions, by which rows are grouped.

Where Spark has an expression that computes the value exactly, no row leaves the JVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyspark.sql.functions as F  # noqa: N812

from icefield.spark import functions
from icefield.spark.columns.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from icefield.transforms import Transform

__all__ = ["PartitionKey", "with_keys"]

_WHOLE = frozenset({"tinyint", "smallint", "int", "bigint"})
_HOUR = 3_600_000_000
_DAY = 24 * _HOUR
#: Spark hashes by murmur3 as Iceberg does, but starts from 42, and each column of a call from the hash of the one
#: before: after this number, whose hash is 0, a long has the hash of Appendix B.
_BEFORE = -1_693_959_553

#: Types whose bytes are hashed without conversion.
_OF_BYTES = frozenset({"string", "binary"})


class PartitionKey(NamedTuple):
    """A transform of a column, with the name and the Spark type (``"bigint"``) of the column."""

    transform: Transform
    source: str
    type_name: str


def with_keys(df: DataFrame, keys: Sequence[PartitionKey], names: Sequence[str]) -> DataFrame:
    """Add partition values to rows under ``names``; no column may have one of them or a name that begins with one."""
    steps: list[str] = []
    for key, name in zip(keys, names, strict=True):
        number = key.transform.num_buckets
        if number is not None and key.type_name in _OF_BYTES:
            df = _with_bucket_of_bytes(df, number, key.source, name)
            steps += [f"{name}_{step}" for step in range(len(_STEPS))]
        else:
            df = df.withColumn(name, _partition_value(key))
    return df.drop(*steps)


def _partition_value(key: PartitionKey) -> Column:
    transform, name, type_name = key
    column = F.col(quoted(name))
    if transform.is_identity:
        return column
    if transform.num_buckets is not None:
        return _bucket(transform, transform.num_buckets, column, type_name)
    if transform.width is not None:
        if type_name == "string":
            return F.substring(column, 1, transform.width)
        return (
            _of_numbers(transform, column, type_name) if type_name in _WHOLE else _applied(transform, column, type_name)
        )
    if type_name not in {"date", "timestamp", "timestamp_ntz"}:
        return _applied(transform, column, type_name)
    if transform.name == "hour":
        if type_name == "timestamp":
            return _floor_div(F.unix_micros(column), _HOUR)
        return F.datediff(column, _epoch()) * 24 + F.hour(column)
    date = column.cast("date")
    if type_name == "timestamp":
        # Not in the session's zone, which a cast would take, but in UTC.
        date = F.date_add(_epoch(), _floor_div(F.unix_micros(column), _DAY))
    years = F.year(date) - 1970
    return {"day": date, "month": years * 12 + F.month(date) - 1, "year": years}[transform.name]


def _bucket(transform: Transform, number: int, column: Column, type_name: str) -> Column:
    if type_name == "date":
        column = F.unix_date(column)
    elif type_name == "timestamp":
        column = F.unix_micros(column)
    elif type_name == "timestamp_ntz" and not functions.ON_ARROW:
        # A local time has no zone: with a UTC zone it is the instant that Iceberg hashes.
        column = F.unix_micros(F.to_timestamp(F.concat(column.cast("string"), F.lit("Z"))))
    elif type_name not in _WHOLE:
        return _applied(transform, column, type_name)
    hashed = F.hash(F.lit(_BEFORE), column.cast("bigint")).bitwiseAND(F.lit(2**31 - 1))
    return F.when(column.isNotNull(), hashed % F.lit(number))


#: Unsigned 32-bit integers in Spark's bigint, which may refuse to overflow.
_WORD = 2**32 - 1
#: What Appendix B multiplies by at its end, what undoes that, and the addend and the factor of each word of four bytes.
_MIX = (0x85EB_CA6B, 0xC2B2_AE35)
_UNMIX = tuple(pow(factor, -1, 2**32) for factor in _MIX)
_ADDEND, _FIFTH = 0xE654_6B64, pow(5, -1, 2**32)


def _times(text: str, factor: int) -> str:
    halves = f"({text} & 65535) * {factor}L + ((shiftright({text}, 16) * {factor}L & 65535) * 65536)"
    return f"(({halves}) & {_WORD}L)"


#: Spark hashes bytes as Appendix B does but for those after the last whole word. So they are hashed with zeros up to a
#: whole word, all that was done after the last word is undone, and the end is computed again as in Appendix B, which
#: leaves the words' rotation out for such bytes. ``{0}`` is the step before, ``{length}`` the number of bytes.
_ENDED = "(({length} + 3) & -4)"
_FOLDED = _times("({0} ^ shiftright({0}, 16))", _UNMIX[1])
_UNFOLDED = _times(f"({_FOLDED} ^ shiftright({_FOLDED}, 13) ^ shiftright({_FOLDED}, 26))", _UNMIX[0])
_STATE = _times(f"((({{0}} ^ shiftright({{0}}, 16) ^ {_ENDED}) - {_ADDEND}L) & {_WORD}L)", _FIFTH)
_MIXED = _times("({0} ^ shiftright({0}, 16))", _MIX[0])
_STEPS = (
    f"cast(hash({_BEFORE}, rpad(cast({{column}} AS BINARY), {_ENDED}, X'00')) AS BIGINT) & {_WORD}L",
    _UNFOLDED,
    f"(shiftright({_STATE}, 13) | (shiftleft({_STATE}, 19) & {_WORD}L)) ^ {{length}}",
    _times(f"({_MIXED} ^ shiftright({_MIXED}, 13))", _MIX[1]),
)


def _with_bucket_of_bytes(df: DataFrame, number: int, source: str, name: str) -> DataFrame:
    """Add the bucket of strings or binaries, step by step: a single expression would repeat each step many times."""
    column = quoted(source)
    length = f"octet_length({column})"
    for step, text in enumerate(_STEPS):
        df = df.selectExpr("*", f"{text.format(f'{name}_{step - 1}', column=column, length=length)} AS {name}_{step}")
    last = f"{name}_{len(_STEPS) - 1}"
    hashed = f"CASE WHEN {length} & 3 = 0 THEN {name}_0 ELSE {last} ^ shiftright({last}, 16) END"
    bucket = f"cast(({hashed}) & {2**31 - 1} AS INT) % {number}"
    return df.selectExpr("*", f"CASE WHEN {column} IS NOT NULL THEN {bucket} END AS {name}")


def _applied(transform: Transform, column: Column, type_name: str) -> Column:
    """Return the value computed by the kernel."""
    return functions.apply(str(transform), column, functions.RESULTS.get(transform.name, type_name))


def _of_numbers(transform: Transform, column: Column, type_name: str) -> Column:
    """Return the value of integers without passing nulls, which pandas (PySpark 4.0) would turn into floats."""
    return F.when(column.isNotNull(), _applied(transform, F.coalesce(column, F.lit(0).cast(type_name)), type_name))


def _epoch() -> Column:
    return F.lit("1970-01-01").cast("date")


def _floor_div(column: Column, by: int) -> Column:
    """Divide integers, rounding down; ``/`` would divide doubles."""
    divided: Column = F.call_function("div", column - F.pmod(column, F.lit(by)), F.lit(by)).cast("int")
    return divided
