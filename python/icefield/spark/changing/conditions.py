"""What Iceberg can use of a condition of Spark: filters that skip files, and tell which other commits conflict.

The condition is Spark's and stays so. Spark's optimizer resolves it over rows that are never read, and what it would
push to a source of rows is translated. Where all of it can be translated exactly, Rust finds the rows, and no row
comes to Spark. Through Spark Connect the optimizer is in another process, and nothing is translated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as F  # noqa: N812
from pyspark.sql import Column
from pyspark.sql import types as st

from icefield.errors import ArgumentTypeError, CorruptDataError, InvalidArgumentError
from icefield.expressions import AlwaysFalse, AlwaysTrue, And, Expression, from_json
from icefield.spark.columns.filters import leaf_types
from icefield.spark.columns.types import readable_columns
from icefield.spark.sessions.session import is_classic
from icefield.spark.sessions.workers import drivers_python

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

    from icefield.schema import Schema

__all__ = ["TARGET", "Condition", "Found", "as_column", "filter_of_join", "found", "items_of", "kind_of", "usable_of"]

Json = Any

#: The name of the table in conditions and values.
TARGET = "target"
#: A column of the rows that stand for those of the table.
_MARK = "_icefield_target"

#: A condition: Spark SQL, a column, or a filter of icefield.
Condition = str | Column | Expression


@dataclass(frozen=True)
class Found:
    """What is known of a condition."""

    #: A filter that every row matches for which the condition holds.
    filter: Expression
    #: The condition; None if it holds for every row that matches the filter.
    column: Column | None = None
    #: The columns that the condition is about; None if unknown.
    columns: frozenset[str] | None = None


def as_column(condition: object, what: str) -> Column:
    """Return a condition or a value as a column: text is Spark SQL.

    Raises
    ------
    ArgumentTypeError
        If it is nothing that Spark evaluates; ``what`` names it.

    """
    if isinstance(condition, str):
        return F.expr(condition)
    # The classes of classic sessions and of Spark Connect have this one above them.
    if isinstance(condition, Column):
        return condition
    raise ArgumentTypeError(f"{what}: expected text of Spark SQL or a Column, got {type(condition).__name__}")


def found(spark: SparkSession, condition: Condition | None, schema: Schema) -> Found:
    """Find out what Iceberg can use of a condition about the rows of a table alone."""
    if condition is None:
        return Found(AlwaysTrue(), columns=frozenset())
    if isinstance(condition, Expression):
        return Found(condition, columns=frozenset())
    column = as_column(condition, "condition")
    rows = _unread(spark, schema).alias(TARGET).where(column)
    if not is_classic(spark):
        return Found(AlwaysTrue(), column)
    execution = rows._jdf.queryExecution()  # noqa: SLF001
    names = frozenset(str(one.name()) for one in items_of(execution.analyzed().references()))
    plan = execution.optimizedPlan()
    kind = kind_of(plan)
    if kind == "LocalRelation":
        return Found(AlwaysFalse())
    if kind == "Filter" and _is_unread(plan.child()):
        usable, is_all = usable_of(plan.condition(), schema, spark)
        return Found(usable, None if is_all else column, names)
    if _is_unread(plan):
        return Found(AlwaysTrue(), columns=frozenset())
    return Found(AlwaysTrue(), column)


def filter_of_join(source: DataFrame, condition: Column, schema: Schema) -> Expression:
    """Return a filter that each row of the table matches which a join with a source finds a partner for.

    A condition about the current time has none: the join is planned again, later. By the time of the filter, a row of
    the table could be left out that the join has to find, and its partner would be added beside it.
    """
    spark = source.sparkSession
    if not is_classic(spark):
        return AlwaysTrue()
    joined = _unread(spark, schema).alias(TARGET).join(source, condition)
    execution = joined._jdf.queryExecution()  # noqa: SLF001
    current = spark._jvm.org.apache.spark.sql.catalyst.trees.TreePattern.CURRENT_LIKE()  # type: ignore[union-attr]  # noqa: SLF001
    if execution.analyzed().containsPattern(current):
        return AlwaysTrue()
    plan = execution.optimizedPlan()
    if kind_of(plan) == "LocalRelation":
        return AlwaysFalse()
    usable: Expression = AlwaysTrue()
    for node in _nodes(plan):
        # The optimizer moves what is about one side alone to that side.
        if kind_of(node) == "Filter" and _is_unread(node.child()):
            usable = _both(usable, usable_of(node.condition(), schema, spark)[0])
    return usable


def _unread(spark: SparkSession, schema: Schema) -> DataFrame:
    """Return rows with the columns of the table, which the optimizer knows nothing of."""
    # A column that this PySpark has no type for cannot be named, and is in nobody's way.
    columns = st.StructType([*readable_columns(schema).toNullable().fields, st.StructField(_MARK, st.BooleanType())])
    with drivers_python():
        return spark.range(1).mapInArrow(_nothing, columns)


def _nothing(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def kind_of(plan: JavaObject) -> str:
    """Return what a node of a plan is."""
    return str(plan.getClass().getSimpleName())


def _is_unread(plan: JavaObject) -> bool:
    return kind_of(plan) == "MapInArrow" and any(str(one.name()) == _MARK for one in items_of(plan.output()))


def items_of(collection: JavaObject) -> Iterator[JavaObject]:
    """Return the items of a collection of Scala."""
    items = collection.iterator()
    while items.hasNext():
        yield items.next()


def _nodes(plan: JavaObject) -> Iterator[JavaObject]:
    yield plan
    for child in items_of(plan.children()):
        yield from _nodes(child)


def _both(left: Expression, right: Expression) -> Expression:
    return right if isinstance(left, AlwaysTrue) else And(left, right)


def usable_of(condition: JavaObject, schema: Schema, spark: SparkSession) -> tuple[Expression, bool]:
    """Return what can be translated of conditions that all hold, and whether that is all of them."""
    sources = spark._jvm.org.apache.spark.sql.execution.datasources  # type: ignore[union-attr]  # noqa: SLF001
    strategy = getattr(getattr(sources, "DataSourceStrategy$"), "MODULE$")  # the object, which has a class beside it
    types = leaf_types(schema)
    usable: Expression = AlwaysTrue()
    exact = True
    for one in _conjuncts(condition):
        pushed = strategy.translateFilter(one, True)
        document = _document(pushed.get(), types) if pushed.isDefined() else None
        expression = None if document is None else _expression(document, schema)
        if expression is None:
            exact = False
        else:
            usable = _both(usable, expression)
    return usable, exact


def _conjuncts(condition: JavaObject) -> Iterator[JavaObject]:
    if condition.getClass().getSimpleName() == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition


def _expression(document: Json, schema: Schema) -> Expression | None:
    try:
        expression = from_json(document, schema)
        expression.bind(schema)
    except (CorruptDataError, InvalidArgumentError):
        return None  # a literal that the type of the column has no value for
    return expression


#: Filters of Spark, the predicate for rows that pass, and that for rows that do not.
_COMPARISONS = {
    "EqualTo": ("eq", "not-eq"),
    "LessThan": ("lt", "gt-eq"),
    "LessThanOrEqual": ("lt-eq", "gt"),
    "GreaterThan": ("gt", "lt-eq"),
    "GreaterThanOrEqual": ("gt-eq", "lt"),
    "StringStartsWith": ("starts-with", "not-starts-with"),
}

_OF_COLUMNS = frozenset({"IsNull", "IsNotNull", "In", "EqualNullSafe", *_COMPARISONS})


def _document(pushed: JavaObject, types: dict[str, str], *, negated: bool = False) -> Json | None:
    """Return the REST expression of a filter that Spark pushes to sources, exactly; None where there is none.

    With ``negated``, for the rows for which the filter is false; it is null for others still, and they match neither.
    """
    kind = kind_of(pushed)
    if kind == "Not":
        return _document(pushed.child(), types, negated=not negated)
    if kind in {"And", "Or"}:
        sides = [_document(side, types, negated=negated) for side in (pushed.left(), pushed.right())]
        if None in sides:
            return None
        # The negation of an AND is the OR of the negations.
        return {"type": "and" if (kind == "And") != negated else "or", "left": sides[0], "right": sides[1]}
    if kind in {"AlwaysTrue", "AlwaysFalse"}:
        return (kind == "AlwaysTrue") != negated
    term = _column(str(pushed.attribute()), types) if kind in _OF_COLUMNS else None
    return None if term is None else _predicate(kind, pushed, term, types[term], negated=negated)


def _column(name: str, types: dict[str, str]) -> str | None:
    """Return the column that a name means, which Spark has as the condition does: maybe in other letter case."""
    if name in types:
        return name
    alike = [one for one in types if one.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None


def _predicate(kind: str, pushed: JavaObject, term: str, type_name: str, *, negated: bool) -> Json | None:
    if kind in {"IsNull", "IsNotNull"}:
        return {"type": "is-null" if (kind == "IsNull") != negated else "not-null", "term": term}
    if kind == "In":
        return _member(term, type_name, list(pushed.values()), negated=negated)
    value = pushed.value()
    if kind == "EqualNullSafe" and value is None:
        return {"type": "not-null" if negated else "is-null", "term": term}
    literal = _literal(value, type_name)
    if literal is None:
        return None
    if kind == "EqualNullSafe":
        return {"type": "not-eq" if negated else "eq", "term": term, "value": literal}
    made = {"type": _COMPARISONS[kind][negated], "term": term, "value": literal}
    return _of_values(made) if negated else made


def _member(term: str, type_name: str, values: list[object], *, negated: bool) -> Json | None:
    literals = [_literal(value, type_name) for value in values if value is not None]
    if None in literals:
        return None
    if negated and len(literals) != len(values):
        return False  # not one of some values and null: null, or false
    made = {"type": "not-in" if negated else "in", "term": term, "values": literals}
    return _of_values(made) if negated else made


def _of_values(document: Json) -> Json:
    """Return a negation without the nulls that Iceberg's own has."""
    return {"type": "and", "left": {"type": "not-null", "term": document["term"]}, "right": document}


def _literal(value: Any, type_name: str) -> Json | None:
    """Return the single-value JSON of a value of Java; None for types that Spark compares otherwise than Iceberg."""
    scale = re.fullmatch(r"decimal\(\d+, ?(\d+)\)", type_name)
    if scale is not None:
        return _decimal(value, int(scale[1]))
    converted = _LITERALS.get(type_name)
    return None if value is None or converted is None else converted(value)


#: More digits than decimals of Spark have, so that none is rounded.
_DIGITS = Context(prec=100)


def _decimal(value: Any, scale: int) -> str | None:
    number = Decimal(str(value))
    exact = number.quantize(Decimal(1).scaleb(-scale), context=_DIGITS)
    return format(exact, "f") if exact == number else None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _date(value: Any) -> str | None:
    # Of days before 1582 Java has two calendars.
    text = str(value)
    return text if re.fullmatch(r"(1[6-9]|[2-9]\d)\d\d-\d\d-\d\d", text) else None


#: The first instant that java.sql.Timestamp tells as Spark has it. Before 1900 Java's older classes have another
#: calendar and other offsets of zones, by which literals near that limit are moved by up to a day.
_FIRST = datetime(1900, 1, 3, tzinfo=timezone.utc)
_LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)


def _instant(value: Any) -> str | None:
    is_older_class = kind_of(value) == "Timestamp"
    instant = value.toInstant() if is_older_class else value
    micros: int = instant.getEpochSecond() * 1_000_000 + instant.getNano() // 1000
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    first = _FIRST if is_older_class else datetime.min.replace(tzinfo=timezone.utc)
    # Python's datetime has the years 1 to 9999 alone.
    if not (first - epoch) // _MICROSECOND <= micros <= (_LAST - epoch) // _MICROSECOND:
        return None
    return (epoch + micros * _MICROSECOND).isoformat(timespec="microseconds")


def _local(value: Any) -> str | None:
    text = str(value)
    # Python has no year 0.
    if re.fullmatch(r"(?!0000)\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{3}(\d{3})?)?)?", text) is None:
        return None
    return datetime.fromisoformat(text).isoformat(timespec="microseconds")


_LITERALS: dict[str, Callable[[Any], Json | None]] = {
    "boolean": lambda value: value if isinstance(value, bool) else None,
    "int": _whole,
    "long": _whole,
    "string": lambda value: value if isinstance(value, str) else None,
    "date": _date,
    "timestamptz": _instant,
    "timestamp": _local,
}
