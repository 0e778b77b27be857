"""What to do instead, for the messages of errors; the core calls these when it refuses an object."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from icefield._core import nearest_name

__all__ = [
    "ELSEWHERE",
    "MISSING_VERBS",
    "for_conversion",
    "for_filter",
    "for_rows",
    "for_schema",
    "for_values",
    "nearest_name",
]

#: Methods that PyIceberg's tables have and ours do not yet, and what can be done meanwhile.
MISSING_VERBS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "to_bodo": "use scan().to_arrow()",
        "to_daft": "use scan().to_arrow()",
    }
)


#: Methods that are those of a scan, or of a catalog.
ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        **{name: f"scan().{name}()" for name in ("count", "to_arrow", "to_pandas", "plan_files")},
        **{name: f"scan().{name}(...)" for name in ("select", "to_duckdb", "to_spark")},
        "remove_orphan_files": "maintenance.remove_orphans()",
        "rewrite_data_files": "maintenance.compact()",
        "filter": "scan(row_filter)",
        "head": "scan(limit=10)",
        "drop": "catalog.drop_table(identifier)",
        "rename": "catalog.rename_table(identifier, new_identifier)",
    }
)


#: What to do with an object of a class, by the beginning of its full name.
_ROWS: Final = (
    ("polars.lazyframe.frame.LazyFrame", "call .collect() on it first"),
    ("pyspark.pandas.", "call .to_spark() on it first"),
    ("pyspark.sql.types.StructType", "this is a schema; pass the DataFrame itself"),
    ("pyspark.rdd.", "call .toDF() on it first"),
    ("pyarrow._dataset.", "pass dataset.scanner().to_reader()"),
    (
        "pyarrow.parquet.core.ParquetFile",
        "pass pyarrow.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches())",
    ),
    ("pyarrow.parquet.core.ParquetDataset", "call .read() on it first"),
    ("pyarrow.orc.ORCFile", "call .read() on it first"),
    ("numpy.", "use pyarrow.table({name: array}) to name the columns"),
)


def for_rows(given: object) -> str:
    """Return how to make rows of an object that has none, as the end of a sentence; empty if nothing is known."""
    name = f"{type(given).__module__}.{type(given).__qualname__}"
    known = next((hint for start, hint in _ROWS if name.startswith(start)), "")
    if known:
        return known
    if isinstance(given, str | bytes) or hasattr(given, "__fspath__"):
        return "read the file first, for example with pyarrow.parquet.read_table(path)"
    if isinstance(given, Mapping):
        return "use pyarrow.table(...) for a dict of columns, pyarrow.Table.from_pylist([...]) for one row"
    if isinstance(given, list | tuple) and type(given).__name__ != "Row":
        return _for_items(given)
    if hasattr(given, "__next__"):
        return "use pyarrow.RecordBatchReader.from_batches(schema, batches) for an iterator of batches"
    return ""


def _for_items(given: list[object] | tuple[object, ...]) -> str:
    first = given[0] if given else None
    if type(first).__name__ == "RecordBatch":
        return "use pyarrow.Table.from_batches(batches)"
    if type(first).__name__ == "Row":
        return "use spark.createDataFrame(rows) for rows of PySpark"
    if type(first).__name__ == "Table":
        return "use pyarrow.concat_tables(tables)"
    return "use pyarrow.Table.from_pylist(rows) for a list of dicts"


#: Types of columns whose values another library would hand over as something else, and what to do instead.
_LOST: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Object": "Polars has Python objects as addresses in memory: make values of one of its types of them first",
        "PeriodDtype": "pandas has periods as numbers: convert them with .dt.to_timestamp() or .astype(str)",
        "IntervalDtype": "no Iceberg type has intervals: write .left and .right as two columns, or .astype(str)",
    }
)


def for_conversion(error: BaseException, given: object = None) -> str | None:
    """Return what to say where data could not be converted to Arrow; None for errors of neither pyarrow nor pandas."""
    of_pandas = type(given).__module__.partition(".")[0] == "pandas"
    expected = of_pandas and isinstance(error, (ValueError, TypeError, OverflowError))
    if type(error).__module__.partition(".")[0] != "pyarrow" and not expected:
        return None
    what = ": ".join(str(part) for part in reversed(error.args))
    if "Duplicate column names" in what:
        mend = "rename columns, so that each has a name of its own"
    elif "Sparse" in what:
        mend = "make it dense first, with .sparse.to_dense()"
    else:
        mend = "give each column values of one type, as with .astype(str)"
    return f"the data cannot be converted to Arrow: {what}; {mend}"


def for_values(given: Any) -> str | None:
    """Return why a frame of Polars or pandas has values that Arrow would not have as they are; None if it has none."""
    if hasattr(given, "columns"):
        columns = zip(given.columns, given.dtypes, strict=False)
    else:
        columns = zip([getattr(given, "name", None)], [getattr(given, "dtype", None)], strict=True)
    return next((f"column {name}: {lost}" for name, dtype in columns if (lost := _lost(dtype))), None)


def _lost(dtype: Any) -> str | None:
    """Return what would be lost of the values of a type, and what to do instead."""
    kind = dtype.__name__ if isinstance(dtype, type) else type(dtype).__name__
    if kind == "CategoricalDtype":
        return _lost(dtype.categories.dtype)
    if kind in _LOST:
        return _LOST[kind]
    if not type(dtype).__module__.startswith("polars"):
        return None
    inner = [getattr(dtype, "inner", None), *(field.dtype for field in getattr(dtype, "fields", ()))]
    return next((lost for one in inner if one is not None and (lost := _lost(one))), None)


def for_filter(given: object) -> str:
    """Return how to write a filter, as the end of a sentence."""
    package = type(given).__module__.partition(".")[0]
    if callable(given) and package == "builtins":
        return "a function does not say which files to skip: write the condition as text, as in 'id > 5'"
    if package in {"polars", "pyarrow", "pyspark", "duckdb", "pandas"}:
        return f"expressions of {package} are not taken: write the same as text, as in \"id > 5 AND name = 'a'\""
    if package == "pyiceberg":
        return "use the classes of the same names of icefield.expressions, or text"
    return "write it as text, as in \"id > 5 AND name = 'a'\", or with icefield.expressions"


def for_schema(given: object) -> str:
    """Return how to make a schema of an object, as the end of a sentence."""
    if isinstance(given, str):
        return (
            "use pyarrow.schema({'id': pyarrow.int64()}); only the command icefield table create takes columns as text"
        )
    if isinstance(given, Mapping):
        return "use pyarrow.schema({'id': pyarrow.int64()}), or ice.Schema(ice.NestedField(1, 'id', 'long'))"
    if isinstance(given, list | tuple):
        return "use ice.Schema(*fields) for NestedFields, pyarrow.schema(fields) for fields of pyarrow"
    return "use ice.Schema(ice.NestedField(1, 'id', 'long'), ...) or a pyarrow.Schema"
