"""Lazy frames of Polars over scans: only the columns and row groups that a query needs are read."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from icefield._outputs.pushed import Columns, PushableScan
from icefield._support.optional import require
from icefield.expressions import And, Expression, IsNull, NotNull, Or, StartsWith

if TYPE_CHECKING:
    import polars as pl

__all__ = ["lazy_frame"]

#: A part of an expression, as JSON.
_Node: TypeAlias = Any

_COMPARISONS = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def lazy_frame(of: Callable[[], PushableScan]) -> pl.LazyFrame:
    """Return a lazy frame of the scan that `of` returns whenever the frame is collected."""
    polars = require("polars")
    register = require("polars.io.plugins").register_io_source

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        scan = of()
        if columns is not None:
            needed = [*columns, *(predicate.meta.root_names() if predicate is not None else [])]
            scan = scan.only(dict.fromkeys(needed))
        if rows is not None:
            # A limit is of the rows before the condition.
            scan = scan.at_most(rows)
        elif predicate is not None and scan.limit is None:
            pushed = translated(predicate, Columns(scan.projection(), scan.case_sensitive))
            scan = scan if pushed is None else scan.filter(pushed)
        for batch in scan.to_arrow_batch_reader(batch_size=batch_size):
            frame = polars.DataFrame(batch)
            frame = frame if predicate is None else frame.filter(predicate)
            yield frame if columns is None else frame.select(columns)

    schema = polars.DataFrame(of().empty()).schema
    frame: pl.LazyFrame = register(source, schema=schema, explain_name="icefield", is_pure=False)
    return frame


def translated(predicate: pl.Expr, columns: Columns) -> Expression | None:
    """Return a filter that keeps all rows that a predicate of Polars keeps; None if it is not known."""
    try:
        return _Reader(columns).kept(json.loads(predicate.meta.serialize(format="json")))
    except (RecursionError, ValueError, TypeError, KeyError, IndexError, require("polars").exceptions.PolarsError):
        # The form of expressions belongs to a version of Polars. What is not known is not pushed.
        return None


class _Reader:
    """Reads expressions in the form that Polars writes."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def kept(self, node: _Node, *, negated: bool = False) -> Expression | None:
        """Return a filter that keeps all rows for which a node is true, or for which it is false."""
        kind, body = _only(node)
        if kind == "BinaryExpr":
            return self._binary(body, negated=negated)
        if kind == "Function":
            return self._function(body["function"], body["input"], negated=negated)
        if kind == "Column":
            return self._columns.compared(body, "==", not negated)
        return None

    def _binary(self, body: _Node, *, negated: bool) -> Expression | None:
        operation, sides = body["op"], (body["left"], body["right"])
        if operation in {"And", "LogicalAnd", "Or", "LogicalOr"}:
            left, right = (self.kept(side, negated=negated) for side in sides)
            if operation.endswith("And") != negated:
                if left is None or right is None:
                    return right if left is None else left
                return And(left, right)
            return None if left is None or right is None else Or(left, right)
        comparison = _COMPARISONS.get(operation)
        if comparison is None:
            return None
        (left_kind, left), (right_kind, right) = map(_only, sides)
        if negated:
            comparison = _NEGATED[comparison]
        if left_kind == "Column" and right_kind == "Literal":
            return self._columns.compared(left, comparison, _value(sides[1]))
        if left_kind == "Literal" and right_kind == "Column":
            return self._columns.compared(right, _MIRRORED[comparison], _value(sides[0]))
        return None

    def _function(self, function: _Node, inputs: list[_Node], *, negated: bool) -> Expression | None:
        family, name = _only(function)
        name, options = _only(name)
        if (family, name) == ("Boolean", "Not"):
            return self.kept(inputs[0], negated=not negated)
        kind, column = _only(inputs[0])
        term = self._columns.term(column) if kind == "Column" else None
        if term is None:
            return None
        if family == "Boolean" and name in {"IsNull", "IsNotNull"}:
            return self._columns.bound(IsNull(term) if (name == "IsNull") != negated else NotNull(term))
        if negated:
            return None
        if (family, name) == ("Boolean", "IsBetween"):
            low, high = {"Both": (">=", "<="), "Left": (">=", "<"), "Right": (">", "<="), "None": (">", "<")}[
                options["closed"]
            ]
            above = self._columns.compared(column, low, _value(inputs[1]))
            below = self._columns.compared(column, high, _value(inputs[2]))
            return None if above is None or below is None else And(above, below)
        if (family, name) == ("Boolean", "IsIn") and not options["nulls_equal"]:
            return self._columns.one_of(column, _value(inputs[1]))
        if (family, name) == ("StringExpr", "StartsWith"):
            return self._columns.bound(StartsWith(term, _value(inputs[1])))
        return None


def _only(node: _Node) -> tuple[str, _Node]:
    """Return the only key of a node and its value."""
    if isinstance(node, str):
        return node, None
    ((name, body),) = node.items()
    return name, body


def _value(node: _Node) -> _Node:
    """Return the value of a literal, a list if it has several.

    Raises
    ------
    ValueError
        If it is none.

    """
    if _only(node)[0] != "Literal":
        raise ValueError("not a literal")
    polars = require("polars")
    literal = polars.Expr.deserialize(io.StringIO(json.dumps(node)), format="json")
    value = polars.select(literal).item()
    return value.to_list() if isinstance(value, polars.Series) else value
