"""Values, names and texts as SQL, written by sqlglot from trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from sqlglot import expressions as exp

from icefield.errors import ArgumentTypeError

if TYPE_CHECKING:
    from sqlglot.expressions import Expr

__all__ = ["literal", "quoted_name", "quoted_text"]


def quoted_name(*parts: str) -> str:
    """Return a name as SQL."""
    return ".".join(exp.to_identifier(part, quoted=True).sql(dialect="spark") for part in parts)


def quoted_text(text: str) -> str:
    """Return a string as SQL."""
    return exp.Literal.string(text).sql(dialect="spark")


def literal(value: object) -> str:
    """Return a value of an argument as SQL, of the type that Spark gives it.

    Raises
    ------
    ArgumentTypeError
        If there is no literal for it, such as a column.

    """
    return _tree(value).sql(dialect="spark")


def _tree(value: object) -> Expr:
    for kinds, tree in _TREES:
        if isinstance(value, kinds):
            return tree(value)
    raise ArgumentTypeError(f"args: expected a value, a list or a dict of values, got {value!r}")


def _cast(text: str, kind: str) -> Expr:
    return exp.cast(exp.Literal.string(text), kind, dialect="spark")


def _integer(value: int) -> Expr:
    number = exp.Literal.number(abs(value))
    return exp.Paren(this=exp.Neg(this=number)) if value < 0 else number


def _double(value: float) -> Expr:
    names = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return _cast(repr(value) if math.isfinite(value) else names.get(value, "NaN"), "double")


def _decimal(value: Decimal) -> Expr:
    if not value.is_finite():
        raise ArgumentTypeError(f"args: {value} is no decimal of Spark")
    digits, exponent = len(value.as_tuple().digits), cast("int", value.as_tuple().exponent)
    scale = max(-exponent, 0)
    return _cast(format(value, "f"), f"decimal({max(digits + max(exponent, 0), scale, 1)}, {scale})")


def _map(value: Mapping[object, object]) -> Expr:
    return exp.Anonymous(this="map", expressions=[_tree(one) for pair in value.items() for one in pair])


#: Trees of values by their types; subclasses before those that they are of.
_TREES: tuple[tuple[Any, Callable[[Any], Expr]], ...] = (
    (type(None), lambda _: exp.Null()),
    (bool, lambda value: exp.Boolean(this=value)),
    (int, _integer),
    (str, exp.Literal.string),
    (float, _double),
    (Decimal, _decimal),
    # As Spark takes it: without a zone it is of Python's.
    (datetime, lambda value: _cast(value.astimezone().isoformat(), "timestamp_ltz")),
    (date, lambda value: _cast(value.isoformat(), "date")),
    ((bytes, bytearray), lambda value: exp.HexString(this=bytes(value).hex())),
    (Mapping, _map),
    (Sequence, lambda value: exp.Anonymous(this="array", expressions=[_tree(one) for one in value])),
)
