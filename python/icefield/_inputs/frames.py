"""Rows and schemas as they are given: Arrow data, or DataFrames of PySpark, which are collected through Arrow."""

from __future__ import annotations

from typing import Any

from icefield._inputs.arrow_names import without_nul
from icefield._support.hints import for_rows
from icefield._support.optional import require
from icefield.errors import ArgumentTypeError

__all__ = ["check_rows", "rows_of", "schema_of"]

_STREAM, _ARRAY = "__arrow_c_stream__", "__arrow_c_array__"


def rows_of(given: Any) -> Any:
    """Return rows for the core; those of a DataFrame of PySpark are collected into this process.

    Raises
    ------
    InvalidArgumentError
        If the name of a column contains NUL.

    """
    return without_nul(given.toArrow() if _is_frame(given) else given)


def check_rows(given: Any) -> None:
    """Look at rows that are read later.

    Raises
    ------
    ArgumentTypeError
        If they are not rows.

    """
    # Classes have the methods of their instances.
    if isinstance(given, type) or not (_is_frame(given) or hasattr(given, _STREAM) or hasattr(given, _ARRAY)):
        kind = f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")
        hint = for_rows(given)
        raise ArgumentTypeError(
            f"expected rows with {_STREAM} (pyarrow, pandas, Polars, DuckDB, a RecordBatchReader) or {_ARRAY}, "
            f"not {kind}{f': {hint}' if hint else ''}"
        )


def schema_of(given: Any) -> Any:
    """Return a schema for the core; that of PySpark is converted, with the types of `icefield.spark.schema_of`.

    Raises
    ------
    InvalidArgumentError
        If the name of a column contains NUL.
    UnsupportedFeatureError
        If Iceberg has no type for a column of Spark.

    """
    columns = given.schema if _is_frame(given) else given
    if _is_of_pyspark(columns) and type(columns).__name__ == "StructType":
        # `icefield.spark` imports this module, so it is loaded by name, as any package that may be missing.
        return require("icefield.spark").schema_of(columns)
    return without_nul(given)


def _is_frame(given: object) -> bool:
    """Whether this is a DataFrame of PySpark, a classic one or one of Spark Connect; PySpark is not imported."""
    return _is_of_pyspark(given) and hasattr(type(given), "toArrow")


def _is_of_pyspark(given: object) -> bool:
    return any(kind.__module__.partition(".")[0] == "pyspark" for kind in type(given).__mro__)
