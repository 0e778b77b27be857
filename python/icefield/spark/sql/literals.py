"""Values, names and texts as SQL, written by sqlglot from trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
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
    return _string_literal(text).sql(dialect="spark")


def literal(value: object) -> str:
    """Return a value of an argument as SQL, of the type that Spark gives it.

    Raises
    ------
    ArgumentTypeError
        If there is no literal for it, such as a column.

    """
    return _tree(value).sql(dialect="spark")


def _tree(value: object) -> Expr:
    if type(value).__module__ == "numpy":
        return _of_numpy(value)
    for kinds, tree in _TREES:
        if isinstance(value, kinds):
            return tree(value)
    raise ArgumentTypeError(f"args: expected a value, a list or a dict of values, got {value!r}")


def _cast(text: str, kind: str) -> Expr:
    return exp.cast(exp.Literal.string(text), kind, dialect="spark")


def _string_literal(value: str) -> Expr:
    if "\0" not in value:
        return exp.Literal.string(value)
    # sqlglot writes \0, which together with digits after it is another character to Spark.
    parts = [exp.Literal.string(part).sql(dialect="spark")[1:-1] for part in value.split("\0")]
    return exp.Var(this="'" + "\\u0000".join(parts) + "'")


def _of_numpy(value: Any) -> Expr:
    """Return a scalar or an array of numpy: numbers are of the type that Spark has for theirs."""
    kind = _OF_NUMPY.get(str(value.dtype))
    plain = value.tolist()
    if isinstance(plain, list):
        return exp.Anonymous(this="array", expressions=[_of_numpy(one) for one in value])
    if kind is None and value.dtype.kind not in "US":
        raise ArgumentTypeError(f"args: pass {value!r} as a value of Python")
    return _tree(plain) if kind is None else exp.cast(_tree(plain), kind, dialect="spark")


def _interval(value: timedelta) -> Expr:
    seconds = Decimal(value.seconds) + Decimal(value.microseconds).scaleb(-6)
    return exp.Anonymous(
        this="make_dt_interval", expressions=[_integer(value.days), _integer(0), _integer(0), _decimal(seconds)]
    )


def _time(value: time) -> Expr:
    if value.tzinfo is not None:
        raise ArgumentTypeError(f"args: {value!r} has a time zone, which times of Spark have not")
    seconds = Decimal(value.second) + Decimal(value.microsecond).scaleb(-6)
    return exp.Anonymous(
        this="make_time", expressions=[_integer(value.hour), _integer(value.minute), _decimal(seconds)]
    )


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


#: The types of Spark that scalars of numpy have.
_OF_NUMPY = {
    "bool": "boolean",
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "int64": "bigint",
    "float32": "float",
    "float64": "double",
}
#: Trees of values by their types; subclasses before those that they are of.
_TREES: tuple[tuple[Any, Callable[[Any], Expr]], ...] = (
    (type(None), lambda _: exp.Null()),
    (bool, lambda value: exp.Boolean(this=value)),
    (int, _integer),
    (str, _string_literal),
    (float, _double),
    (Decimal, _decimal),
    # As Spark takes it: without a zone it is of Python's.
    (datetime, lambda value: _cast(value.astimezone().isoformat(), "timestamp_ltz")),
    (date, lambda value: _cast(value.isoformat(), "date")),
    (time, _time),
    (timedelta, _interval),
    ((bytes, bytearray), lambda value: exp.HexString(this=bytes(value).hex())),
    (Mapping, _map),
    (Sequence, lambda value: exp.Anonymous(this="array", expressions=[_tree(one) for one in value])),
)
