"""Partition transforms as Spark functions, by the kernels of `icefield.transforms`.

As columns: ``functions.bucket(16, "id")``. In SQL, once `icefield.spark.register` was called::

    SELECT icefield_bucket(16, id), icefield_truncate(3, name), icefield_month(time) FROM flights

A SQL function has one type of result, so truncation has one function a type: ``icefield_truncate`` for strings, and
``icefield_truncate_int``, ``_long``, ``_binary``; decimals are truncated by ``functions.truncate(width, column,
"decimal(9,2)")``. ``icefield_years`` and its like are other names of ``icefield_year`` and its like. All of it needs
PySpark 4.1, whose Arrow functions are exact for every type.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as F  # noqa: N812

from icefield._core import Transform
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.transforms import parse

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

__all__ = ["AVAILABLE", "apply", "bucket", "day", "hour", "month", "register", "truncate", "year"]

#: Whether this PySpark has Arrow functions.
AVAILABLE = hasattr(F, "arrow_udf")

#: Results of the transforms that do not give the type of their source.
RESULTS = {"bucket": "int", "year": "int", "month": "int", "day": "date", "hour": "int"}


def bucket(num_buckets: int, column: Column | str) -> Column:
    """Hash of a column, modulo the number of buckets; an ``int``."""
    return apply(f"bucket[{num_buckets}]", column, "int")


def truncate(width: int, column: Column | str, result: str = "string") -> Column:
    """Cut numbers down to multiples of ``width``, texts to as many code points, binaries to as many bytes.

    Parameters
    ----------
    width
        From 1 on.
    column
        The column.
    result
        Its type, which is that of the result, as Spark writes it: ``"string"``, ``"bigint"``, ``"decimal(9,2)"``.

    """
    return apply(f"truncate[{width}]", column, result)


def year(column: Column | str) -> Column:
    """Years from 1970, of dates and timestamps; an ``int``."""
    return apply("year", column, "int")


def month(column: Column | str) -> Column:
    """Months from 1970-01, of dates and timestamps; an ``int``."""
    return apply("month", column, "int")


def day(column: Column | str) -> Column:
    """Days of dates and timestamps; a ``date``."""
    return apply("day", column, "date")


def hour(column: Column | str) -> Column:
    """Hours from 1970-01-01T00, of timestamps; an ``int``."""
    return apply("hour", column, "int")


def apply(transform: str, column: Column | str, result: str) -> Column:
    """Apply a transform, given as text, to a column of which the result has a known type."""
    if not parse(transform).is_known:
        raise InvalidArgumentError(f"no transform {transform!r}: its number must be positive")
    made: Column = _function(transform, result)(column)
    return made


def register(spark: SparkSession) -> None:
    """Make the SQL functions known to a session."""
    for name in ("year", "month", "day", "hour"):
        for sql_name in (f"icefield_{name}", f"icefield_{name}s"):
            spark.udf.register(sql_name, _function(name, RESULTS[name]))
    spark.udf.register("icefield_bucket", _with_number("bucket", "int"))
    for suffix, result in (("", "string"), ("_int", "int"), ("_long", "bigint"), ("_binary", "binary")):
        spark.udf.register(f"icefield_truncate{suffix}", _with_number("truncate", result))


@lru_cache(maxsize=256)
def _function(transform: str, result: str) -> Any:
    """Make an Arrow function of one column."""

    def values_of(values: Any) -> Any:
        return parse(transform)(values)

    return _arrow_function(values_of, 1, result)


@lru_cache(maxsize=8)
def _with_number(transform: str, result: str) -> Any:
    """Make an Arrow function whose first argument is the transform's number, as a column of one value."""

    def values_of(numbers: Any, values: Any) -> Any:
        return _numbered(transform, numbers)(values)

    return _arrow_function(values_of, 2, result)


def _numbered(transform: str, numbers: Any) -> Transform:
    import pyarrow.compute as pc

    distinct = pc.unique(numbers).to_pylist() or [1]
    if len(distinct) > 1 or distinct[0] is None or distinct[0] < 1:
        raise InvalidArgumentError(f"the number of icefield_{transform} must be one positive constant")
    return parse(f"{transform}[{distinct[0]}]")


def _arrow_function(function: Callable[..., Any], arguments: int, result: str) -> Any:
    import pyarrow as pa

    if not AVAILABLE:
        raise UnsupportedFeatureError("transforms as Spark functions need PySpark 4.1 or later")
    # PySpark takes the kind of the function from its hints, which must be objects and not text.
    names = ("numbers", "values")[-arguments:]
    function.__annotations__ = {**dict.fromkeys(names, pa.Array), "return": pa.Array}
    return getattr(F, "arrow_udf")(function, result)  # noqa: B009 - not there in 4.0
