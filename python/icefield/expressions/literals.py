"""Literals of expressions: values of Python, which become values of their columns' types when expressions are bound.

Each is an instance of the class of its kind, whichever way it was made::

    >>> literal(5), literal("2024-01-02").to("date")
    (LongLiteral(5), DateLiteral('2024-01-02'))
"""

from __future__ import annotations

from icefield._core import (
    BinaryLiteral,
    BooleanLiteral,
    DateLiteral,
    DecimalLiteral,
    DoubleLiteral,
    FixedLiteral,
    FloatLiteral,
    Literal,
    LongLiteral,
    StringLiteral,
    TimeLiteral,
    TimestampLiteral,
    UUIDLiteral,
)

__all__ = [
    "BinaryLiteral",
    "BooleanLiteral",
    "DateLiteral",
    "DecimalLiteral",
    "DoubleLiteral",
    "FixedLiteral",
    "FloatLiteral",
    "Literal",
    "LongLiteral",
    "StringLiteral",
    "TimeLiteral",
    "TimestampLiteral",
    "UUIDLiteral",
    "literal",
]


def literal(value: object) -> Literal:
    """Return the literal of a value: a bool, number, str, bytes, date, time, datetime, ``Decimal`` or ``UUID``."""
    return Literal(value)
