"""What a query needs of each table: rows that pass filters, and columns, so that files and columns are left unread.

Spark's optimizer runs over rows that stand for those of the tables and are never read. What it then filters right above
them, and which columns it takes, is what the real read is asked for: the result of the query does not depend on the
rest. A query with the current time reads everything, as the optimizer puts the time at which it runs in its place.
Through Spark Connect the optimizer is in another process, and everything is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icefield.expressions import AlwaysTrue, Or
from icefield.spark.changing.conditions import items_of, kind_of, usable_of
from icefield.spark.columns.types import spark_schema
from icefield.spark.sessions.workers import drivers_python

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

    from icefield.expressions import Expression
    from icefield.schema import Schema

__all__ = ["Needed", "needed", "stand_in"]


@dataclass(frozen=True)
class Needed:
    """What a query needs of a table."""

    #: A filter that every row matches that the result depends on.
    filter: Expression
    #: The columns that it depends on; None for all.
    columns: frozenset[str] | None


def stand_in(spark: SparkSession, schema: Schema, number: int) -> DataFrame:
    """Return rows with the columns of a table that the optimizer knows nothing of but their number."""
    with drivers_python():
        return spark.range(0, number, 1, 1).mapInArrow(_nothing, spark_schema(schema).toNullable())


def _nothing(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def needed(frame: DataFrame, schemas: Mapping[int, Schema]) -> dict[int, Needed]:
    """Return what a query over rows of `stand_in` needs of each, by their numbers; what it does not use is missing."""
    found: dict[int, list[Needed]] = {}
    spark = frame.sparkSession
    if _has_current_time(frame):
        # The optimizer has put the time of now in its place, and the rows may be read later.
        return {}
    for node, above in _nodes(frame._jdf.queryExecution().optimizedPlan(), ()):  # noqa: SLF001
        number = _number(node)
        if number is not None and number in schemas:
            found.setdefault(number, []).append(_of(above, schemas[number], spark))
    return {number: _either(uses) for number, uses in found.items()}


def _has_current_time(frame: DataFrame) -> bool:
    """Return whether a query depends on when it runs: on the current time or date, user or namespace."""
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    patterns = frame.sparkSession._jvm.org.apache.spark.sql.catalyst.trees.TreePattern  # type: ignore[union-attr]  # noqa: SLF001
    return bool(plan.containsPattern(patterns.CURRENT_LIKE()))


def _of(above: tuple[JavaObject, ...], schema: Schema, spark: SparkSession) -> Needed:
    parents = list(reversed(above))
    condition: Expression = AlwaysTrue()
    taken: set[str] = set()
    if parents and kind_of(parents[0]) == "Filter":
        condition = usable_of(parents[0].condition(), schema, spark)[0]
        taken = _references(parents.pop(0))
    if not parents or kind_of(parents[0]) != "Project":
        return Needed(condition, None)
    return Needed(condition, frozenset(taken | _references(parents[0])))


def _references(node: JavaObject) -> set[str]:
    return {str(one.name()) for one in items_of(node.references())}


def _either(uses: list[Needed]) -> Needed:
    """Return what is needed where a table is used several times, as that of a WITH can be."""
    first, *others = uses
    row_filter, columns = first.filter, first.columns
    for other in others:
        either = AlwaysTrue() in (row_filter, other.filter)
        row_filter = AlwaysTrue() if either else Or(row_filter, other.filter)
        columns = None if columns is None or other.columns is None else columns | other.columns
    return Needed(row_filter, columns)


def _number(node: JavaObject) -> int | None:
    """Return the number of rows of `stand_in`; None of others."""
    if kind_of(node) != "MapInArrow" or kind_of(node.child()) != "Range":
        return None
    return int(node.child().end())


def _nodes(plan: JavaObject, above: tuple[JavaObject, ...]) -> Iterator[tuple[JavaObject, tuple[JavaObject, ...]]]:
    """Return the nodes of a plan with those above them, those of its subqueries too."""
    yield plan, above
    for child in items_of(plan.children()):
        yield from _nodes(child, (*above, plan))
    for subquery in items_of(plan.subqueries()):
        yield from _nodes(subquery, ())
