"""Walks over expressions: a visitor is called for each part, children first."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, TypeVar

from icefield.errors import ArgumentTypeError
from icefield.expressions import AlwaysFalse, AlwaysTrue, And, Expression, Not, Or, UnboundPredicate

if TYPE_CHECKING:
    from icefield.expressions import BoundExpression
    from icefield.schema import Schema

__all__ = ["BooleanExpressionVisitor", "bind", "extract_field_ids", "rewrite_not", "visit"]

T = TypeVar("T")


class BooleanExpressionVisitor(ABC, Generic[T]):
    """What is done with each part of an expression, given the results of its children."""

    @abstractmethod
    def visit_true(self) -> T:
        """Visit `AlwaysTrue`."""

    @abstractmethod
    def visit_false(self) -> T:
        """Visit `AlwaysFalse`."""

    @abstractmethod
    def visit_not(self, child_result: T) -> T:
        """Visit `Not`, given the result of its child."""

    @abstractmethod
    def visit_and(self, left_result: T, right_result: T) -> T:
        """Visit `And`, given the results of its sides."""

    @abstractmethod
    def visit_or(self, left_result: T, right_result: T) -> T:
        """Visit `Or`, given the results of its sides."""

    @abstractmethod
    def visit_unbound_predicate(self, predicate: UnboundPredicate) -> T:
        """Visit a test of one term."""


def visit(obj: Expression, visitor: BooleanExpressionVisitor[T]) -> T:
    """Visit the parts of an expression, children first, and return the result for the whole.

    Raises
    ------
    ArgumentTypeError
        If it is not an expression of these parts.

    """
    if isinstance(obj, UnboundPredicate):
        return visitor.visit_unbound_predicate(obj)
    if isinstance(obj, And):
        return visitor.visit_and(visit(obj.left, visitor), visit(obj.right, visitor))
    if isinstance(obj, Or):
        return visitor.visit_or(visit(obj.left, visitor), visit(obj.right, visitor))
    if isinstance(obj, Not):
        return visitor.visit_not(visit(obj.child, visitor))
    if isinstance(obj, AlwaysTrue):
        return visitor.visit_true()
    if isinstance(obj, AlwaysFalse):
        return visitor.visit_false()
    msg = f"expected an unbound expression, got {type(obj).__name__}"
    raise ArgumentTypeError(msg)


def bind(schema: Schema, expression: Expression, case_sensitive: bool) -> BoundExpression:
    """Return the expression over the field ids of a schema."""
    return expression.bind(schema, case_sensitive)


def rewrite_not(expr: Expression) -> Expression:
    """Return an equal expression without ``NOT``."""
    return expr.rewrite_not()


def extract_field_ids(expr: BoundExpression) -> set[int]:
    """Return the ids of the fields that a bound expression refers to."""
    return set(expr.field_ids)
