"""Filters between Spark and Iceberg: pushed filters become expressions, expressions become Spark columns.

Expressions are exchanged as the JSON of the REST protocol, so this module is independent of ``icefield.expressions``.
A column keeps Iceberg's meaning of the row filter: null matches ``not-eq``, ``not-in`` and
``not-starts-with`` and nothing else, and NaN matches no comparison but ``not-eq``.
"""

from __future__ import annotations

import datetime as dt
import math
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import functions as F  # noqa: N812

from icefield.spark.columns.names import quoted_path

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.datasource import Filter

    from icefield.schema import Schema
    from icefield.types import NestedField

Json = Any

_COMPARISONS = {
    "EqualTo": "eq",
    "GreaterThan": "gt",
    "GreaterThanOrEqual": "gt-eq",
    "LessThan": "lt",
    "LessThanOrEqual": "lt-eq",
}


_NEGATED = {
    "EqualTo": "not-eq",
    "EqualNullSafe": "not-eq",
    "GreaterThan": "lt-eq",
    "GreaterThanOrEqual": "lt",
    "LessThan": "gt-eq",
    "LessThanOrEqual": "gt",
}


def leaf_types(schema: Schema) -> dict[str, str]:
    """Return full names and types of primitive columns; names with a dot look like paths and are left out."""
    return dict(_leaves(schema.fields, ""))


def _leaves(fields: Iterable[NestedField], path: str) -> Iterator[tuple[str, str]]:
    for field in fields:
        if "." in field.name:
            continue
        name, kind = path + field.name, field.field_type
        if kind.is_struct:
            yield from _leaves(kind.fields, f"{name}.")
        elif not (kind.is_list or kind.is_map):
            yield name, str(kind)


def pushed(spark_filter: Filter, types: Mapping[str, str]) -> Json | None:
    """Return the Iceberg expression that keeps at least the rows of a filter that Spark pushes, or None.

    Parameters
    ----------
    spark_filter
        One of the filters of ``pyspark.sql.datasource`` (4.1 and later).
    types
        Iceberg types of columns, as `leaf_types` returns them.

    Returns
    -------
    dict or None
        REST expression JSON; None where Iceberg has no such predicate (``EndsWith``, ``Contains``), so that the
        filter stays Spark's alone.

    """
    name = type(spark_filter).__name__
    if name == "Not":
        return _negated(spark_filter.child, types)  # type: ignore[attr-defined]
    column = _Column.of(spark_filter, types)
    value: object = getattr(spark_filter, "value", None)
    if name in ("IsNull", "IsNotNull"):
        return column.is_null(name == "IsNull")
    if name == "EqualNullSafe":
        return column.is_null(True) if value is None else column.compared("eq", value)
    if name in _COMPARISONS:
        return column.compared(_COMPARISONS[name], value)
    if name == "In":
        return column.member("in", value)
    if name == "StringStartsWith":
        return column.compared("starts-with", value)
    return None


def _negated(child: Filter, types: Mapping[str, str]) -> Json | None:
    """Negate a pushed filter. SQL's NOT drops nulls and Iceberg's negations keep them: more rows, never fewer."""
    name = type(child).__name__
    if name == "Not":
        return pushed(child.child, types)  # type: ignore[attr-defined]
    column = _Column.of(child, types)
    value: object = getattr(child, "value", None)
    if name in ("IsNull", "IsNotNull"):
        return column.is_null(name == "IsNotNull")
    if name == "EqualNullSafe" and value is None:
        return column.is_null(False)
    if name in _NEGATED:
        return column.compared(_NEGATED[name], value)
    if name == "In":
        return column.member("not-in", value)
    if name == "StringStartsWith":
        return column.compared("not-starts-with", value)
    return None


@dataclass(frozen=True)
class _Column:
    """A column that Spark compares, whose values may differ between Spark and Iceberg."""

    term: str
    type: str | None

    @classmethod
    def of(cls, spark_filter: Filter, types: Mapping[str, str]) -> _Column:
        term = ".".join(spark_filter.attribute)  # type: ignore[attr-defined]
        return cls(term, types.get(term))

    def is_null(self, wanted: bool) -> Json:
        return {"type": "is-null" if wanted else "not-null", "term": self.term}

    def compared(self, kind: str, value: object) -> Json | None:
        literal = self._literal(kind, value)
        if literal is None:
            return None
        made = {"type": kind, "term": self.term, "value": literal}
        if self.type in ("float", "double") and kind in ("gt", "gt-eq"):
            # NaN is the largest value in Spark, and not comparable in Iceberg.
            return {"type": "or", "left": made, "right": {"type": "is-nan", "term": self.term}}
        return made

    def member(self, kind: str, values: object) -> Json | None:
        given = list(cast("Iterable[object]", values))
        literals = [self._literal(kind, value) for value in given if value is not None]
        if None in literals or (kind == "not-in" and len(literals) != len(given)):
            return None
        return {"type": kind, "term": self.term, "values": literals}

    def _literal(self, kind: str, value: object) -> Json | None:
        if self.type == "uuid" and value != str(value).lower():
            # Spark compares strings: in upper case another string, but the same UUID.
            return None
        if self.type in ("timestamp_ns", "timestamptz_ns") and kind in ("eq", "in", "lt-eq"):
            # Spark sees whole microseconds, so that later nanoseconds are equal.
            return None
        return _literal(value)


def _literal(value: object) -> Json | None:
    """Return the single-value JSON of a value of Spark; None if it has no such form."""
    if isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        # In Spark, NaN is a value and both zeros are equal; in Iceberg, NaN matches nothing.
        return value if math.isfinite(value) and value != 0 else None
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.isoformat(timespec="microseconds")
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex().upper()
    if isinstance(value, uuid.UUID):
        return str(value)
    return None


class NotInSpark(Exception):
    """An expression that Spark's own expressions cannot evaluate as Iceberg does."""


def column(expression: Json, types: dict[str, str]) -> Column:
    """Return the Spark column by which ``where`` keeps exactly the rows that a REST expression matches for Iceberg.

    Where nothing matches because of a null the column may be null, so that Spark can push its parts to the files: it
    pushes comparisons, and nothing that has ``coalesce`` around it.

    Parameters
    ----------
    expression
        REST expression JSON, literals in single-value form of the column's type.
    types
        Iceberg type, as text, of each column that may be named.

    Raises
    ------
    NotInSpark
        For expressions that Spark evaluates differently: transform terms, types without an equal in Spark, literal
        zeros and NaN of floats. The caller then lets Rust filter.

    """
    if isinstance(expression, bool):
        return F.lit(expression)
    kind = expression["type"]
    if kind in ("true", "false"):
        return F.lit(kind == "true")
    if kind in ("and", "or"):
        left, right = column(expression["left"], types), column(expression["right"], types)
        return left & right if kind == "and" else left | right
    if kind == "not":
        return ~F.coalesce(column(expression["child"], types), F.lit(False))
    return _column_predicate(kind, expression, types)


_SAFE_TYPES = ("boolean", "int", "long", "date", "string", "timestamp", "timestamptz")


def _column_predicate(kind: str, expression: Json, types: dict[str, str]) -> Column:
    term = expression["term"]
    type_name = types.get(term) if isinstance(term, str) else None
    if type_name is None:
        raise NotInSpark
    values = F.col(quoted_path(term.split(".")))
    if kind in ("is-null", "not-null"):
        return values.isNull() if kind == "is-null" else values.isNotNull()
    if type_name not in _SAFE_TYPES and not type_name.startswith("decimal("):
        raise NotInSpark
    if kind in ("in", "not-in"):
        found = values.isin([_spark_literal(value, type_name) for value in expression["values"]])
        return found if kind == "in" else ~found | values.isNull()
    answer = _comparison(kind, values, _spark_literal(expression["value"], type_name))
    return answer | values.isNull() if kind in ("not-eq", "not-starts-with") else answer


def _comparison(kind: str, values: Any, literal: Any) -> Column:
    compared: dict[str, Callable[[], Column]] = {
        "eq": lambda: values == literal,
        "not-eq": lambda: values != literal,
        "lt": lambda: values < literal,
        "lt-eq": lambda: values <= literal,
        "gt": lambda: values > literal,
        "gt-eq": lambda: values >= literal,
        "starts-with": lambda: values.startswith(literal),
        "not-starts-with": lambda: ~values.startswith(literal),
    }
    if kind not in compared:
        raise NotInSpark
    return compared[kind]()


def _spark_literal(value: Json, type_name: str) -> Any:
    """Return what ``Column`` takes for a single-value JSON literal of a type."""
    if type_name == "date":
        return dt.date.fromisoformat(value)
    if type_name in ("timestamp", "timestamptz"):
        # A cast from text, not a datetime: PySpark would read a naive one in the session's zone.
        return F.lit(value).cast("timestamp_ntz" if type_name == "timestamp" else "timestamp")
    if type_name.startswith("decimal("):
        return Decimal(value)
    return value
