"""Literals of expressions: values of Python, which become values of their columns' types when expressions are bound."""

from __future__ import annotations

from icefield._core import Literal

__all__ = ["Literal", "literal"]


def literal(value: object) -> Literal:
    """Return the literal of a value: a bool, number, str, bytes, date, time, datetime, ``Decimal`` or ``UUID``."""
    return Literal(value)
