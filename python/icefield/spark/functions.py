"""Partition transforms as Spark functions, by the kernels of `icefield.transforms`.

As columns: ``functions.bucket(16, "id")``. In SQL, once `icefield.spark.register` was called::

    SELECT icefield_bucket(16, id), icefield_truncate(3, name), icefield_month(time) FROM flights

A SQL function has one type of result, so truncation has one function per type: ``icefield_truncate`` for strings, and
``icefield_truncate_int``, ``_long``, ``_binary``; decimals are truncated by ``functions.truncate(width, column,
"decimal(9,2)")``. ``icefield_years`` etc. are aliases of ``icefield_year`` etc.

From PySpark 4.1 on they are Arrow functions, exact for every type. PySpark 4.0 has only functions over pandas Series,
which do not distinguish timestamps from local times and lose the precision of large integers beside nulls: there they
refuse both and accept everything else (``bucket`` of ``unix_micros(time)`` is that of the time).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark.sql.functions as F  # noqa: N812

from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.spark.sessions.failures import sentence
from icefield.spark.sessions.workers import drivers_python
from icefield.transforms import Transform, parse

if TYPE_CHECKING:
    from typing import TypeAlias

    import pandas as pd
    from pyspark.sql import Column, SparkSession

    _Series: TypeAlias = pd.Series[Any]

__all__ = ["apply", "bucket", "day", "hour", "month", "truncate", "year"]

#: Whether this PySpark passes values as Arrow (from 4.1 on), or as pandas Series.
ON_ARROW = hasattr(F, "arrow_udf")

#: From here on, a float may represent several integers.
_EXACT = 2**53

#: Result types of the transforms whose results have another type than their source.
RESULTS = {"bucket": "int", "year": "int", "month": "int", "day": "date", "hour": "int"}


def bucket(num_buckets: int, column: Column | str) -> Column:
    """Hash of a column, modulo the number of buckets; an ``int``."""
    return apply(f"bucket[{num_buckets}]", column, "int")


def truncate(width: int, column: Column | str, result: str = "string") -> Column:
    """Truncate numbers to multiples of ``width``, strings to that many code points, binaries to that many bytes.

    Parameters
    ----------
    width
        From 1 on.
    column
        The column.
    result
        The type of the column and of the result, as Spark writes it: ``"string"``, ``"bigint"``, ``"decimal(9,2)"``.

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
    """Apply a transform, given as text, to a column; ``result`` is the type of the result."""
    if not parse(transform).is_known:
        raise InvalidArgumentError(f"invalid transform {transform!r}: its number must be positive")
    with drivers_python():
        made: Column = _function(transform, result)(column)
    return made


def register(spark: SparkSession) -> None:
    """Register the SQL functions in a session."""
    with drivers_python():
        _register(spark)


def _register(spark: SparkSession) -> None:
    for name in ("year", "month", "day", "hour"):
        for sql_name in (f"icefield_{name}", f"icefield_{name}s"):
            spark.udf.register(sql_name, _function(name, RESULTS[name]))
    spark.udf.register("icefield_bucket", _with_number("bucket", "int"))
    for suffix, result in (("", "string"), ("_int", "int"), ("_long", "bigint"), ("_binary", "binary")):
        spark.udf.register(f"icefield_truncate{suffix}", _with_number("truncate", result))


@lru_cache(maxsize=256)
def _function(transform: str, result: str) -> Callable[..., Column]:
    """Make a vectorised function of one column."""

    def values_of(values: pa.Array) -> pa.Array:
        return parse(transform)(values)

    return _vectorised(values_of, 1, result)


@lru_cache(maxsize=8)
def _with_number(transform: str, result: str) -> Callable[..., Column]:
    """Make a vectorised function whose first argument is the transform's number, as a column of one value."""

    def values_of(numbers: pa.Array, values: pa.Array) -> pa.Array:
        if transform == "truncate":
            _require_truncated(values.type, result)
        return _numbered(transform, numbers)(values)

    return _vectorised(values_of, 2, result)


#: The SQL function that truncates each kind of values, by its result.
_TRUNCATING = {
    "string": "icefield_truncate",
    "int": "icefield_truncate_int",
    "bigint": "icefield_truncate_long",
    "binary": "icefield_truncate_binary",
}


def _require_truncated(kind: pa.DataType, result: str) -> None:
    """Refuse values whose truncation is not of the type that the SQL function was registered with."""
    fitting = {
        "string": pa.types.is_string(kind) or pa.types.is_large_string(kind),
        "int": pa.types.is_integer(kind) and kind.bit_width <= 32,  # noqa: PLR2004
        "bigint": pa.types.is_integer(kind),
        "binary": pa.types.is_binary(kind) or pa.types.is_large_binary(kind),
    }
    if not ON_ARROW and result == "int":
        fitting["int"] = fitting["bigint"]  # pandas has no narrower integers with nulls
    if pa.types.is_null(kind) or fitting[result]:
        return
    meant = next((name for other, name in _TRUNCATING.items() if fitting[other]), None)
    hint = f"use {meant}" if meant else "use icefield.spark.functions.truncate(width, column, type)"
    raise InvalidArgumentError(f"{_TRUNCATING[result]} is for values of type {result}, not {kind}: {hint}")


def _numbered(transform: str, numbers: pa.Array) -> Transform:
    import pyarrow.compute as pc  # not at the top: every worker of a session imports this module

    distinct = pc.unique(numbers).to_pylist() or [1]
    if len(distinct) > 1 or not isinstance(distinct[0], int) or distinct[0] < 1:
        raise InvalidArgumentError(f"the first argument of icefield_{transform} must be one positive constant")
    return parse(f"{transform}[{distinct[0]}]")


def _vectorised(function: Callable[..., pa.Array], arguments: int, result: str) -> Callable[..., Column]:
    """Make a function of Spark from one of Arrow arrays."""
    kind: type[pa.Array | _Series] = pa.Array
    if not ON_ARROW:
        import pandas as pd

        kind, function = pd.Series, _of_series(function, arguments)
    # PySpark takes the kind of the function from its hints, which must be objects and not text.
    names = ("numbers", "values")[-arguments:]
    function.__annotations__ = {**dict.fromkeys(names, kind), "return": kind}
    made: Callable[..., Column] = getattr(F, "arrow_udf" if ON_ARROW else "pandas_udf")(sentence(function), result)
    return made


def _of_series(function: Callable[..., pa.Array], arguments: int) -> Callable[..., _Series]:
    """Make a function of pandas Series, as PySpark 4.0 passes them, from one of Arrow arrays."""

    def arrow_of(series: _Series) -> pa.Array:
        if series.dtype.kind in "mM":
            raise UnsupportedFeatureError(
                "PySpark 4.0 passes timestamps to functions without their time zone: pass unix_micros(...) to bucket, "
                "or use PySpark 4.1 or later"
            )
        if series.dtype.kind == "f" and series.hasnans:
            # Integers with nulls arrive as floats.
            given = series.dropna()
            if (given.abs() >= _EXACT).any():
                raise UnsupportedFeatureError(
                    "PySpark 4.0 passes nullable integers to functions as floats, and these would lose precision: "
                    "replace the nulls with coalesce, or use PySpark 4.1 or later"
                )
            if (given % 1 == 0).all():
                series = series.astype("Int64")
        return pa.Array.from_pandas(series)

    def series_of(values: _Series, *numbers: _Series) -> _Series:
        array = arrow_of(values)
        if not pa.types.is_null(array.type):
            array = function(*map(arrow_of, numbers), array)
        found: _Series = array.to_pandas(integer_object_nulls=True)
        return found

    def one(values: _Series) -> _Series:
        return series_of(values)

    def two(numbers: _Series, values: _Series) -> _Series:
        return series_of(values, numbers)

    return one if arguments == 1 else two
