"""Walks over expressions, bound to a schema or not: a visitor is called for each part, children first.

To turn filters into those of another engine, subclass `BoundBooleanExpressionVisitor`: it sees columns with their
types, and literals as values of these types.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from icefield.errors import ArgumentTypeError, UnsupportedFeatureError
from icefield.expressions import (
    AlwaysFalse,
    AlwaysTrue,
    And,
    BoundAlwaysFalse,
    BoundAlwaysTrue,
    BoundAnd,
    BoundEqualTo,
    BoundExpression,
    BoundGreaterThan,
    BoundGreaterThanOrEqual,
    BoundIn,
    BoundIsNaN,
    BoundIsNull,
    BoundLessThan,
    BoundLessThanOrEqual,
    BoundLiteralPredicate,
    BoundNot,
    BoundNotEqualTo,
    BoundNotIn,
    BoundNotNaN,
    BoundNotNull,
    BoundNotStartsWith,
    BoundOr,
    BoundPredicate,
    BoundSetPredicate,
    BoundStartsWith,
    BoundStDisjoint,
    BoundStIntersects,
    Expression,
    Not,
    Or,
    UnboundPredicate,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from icefield.expressions import BoundTerm
    from icefield.expressions.literals import Literal
    from icefield.partitioning import PartitionSpec
    from icefield.schema import Schema

__all__ = [
    "BooleanExpressionVisitor",
    "BoundBooleanExpressionVisitor",
    "bind",
    "extract_field_ids",
    "inclusive_projection",
    "rewrite_not",
    "strict_projection",
    "visit",
    "visit_bound_predicate",
]

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

    def visit_bound_predicate(self, predicate: BoundPredicate) -> T:
        """Visit a test of one bound term; a visitor without this method raises `ArgumentTypeError`."""
        msg = f"{type(self).__name__} visits unbound expressions, got the bound one {predicate}"
        raise ArgumentTypeError(msg)


class BoundBooleanExpressionVisitor(BooleanExpressionVisitor[T]):
    """What is done with each part of a bound expression: a method for each kind of test.

    Literals are values of the types of their terms. ``term.ref().field`` is the column.
    """

    @abstractmethod
    def visit_in(self, term: BoundTerm, literals: set[Any]) -> T:
        """Visit `BoundIn`, given the values."""

    @abstractmethod
    def visit_not_in(self, term: BoundTerm, literals: set[Any]) -> T:
        """Visit `BoundNotIn`, given the values."""

    @abstractmethod
    def visit_is_nan(self, term: BoundTerm) -> T:
        """Visit `BoundIsNaN`."""

    @abstractmethod
    def visit_not_nan(self, term: BoundTerm) -> T:
        """Visit `BoundNotNaN`."""

    @abstractmethod
    def visit_is_null(self, term: BoundTerm) -> T:
        """Visit `BoundIsNull`."""

    @abstractmethod
    def visit_not_null(self, term: BoundTerm) -> T:
        """Visit `BoundNotNull`."""

    @abstractmethod
    def visit_equal(self, term: BoundTerm, literal: Literal) -> T:
        """Visit `BoundEqualTo`."""

    @abstractmethod
    def visit_not_equal(self, term: BoundTerm, literal: Literal) -> T:
        """Visit `BoundNotEqualTo`."""

    @abstractmethod
    def visit_greater_than_or_equal(self, term: BoundTerm, literal: Literal) -> T:
        """Visit `BoundGreaterThanOrEqual`."""

    @abstractmethod
    def visit_greater_than(self, term: BoundTerm, literal: Literal) -> T:
        """Visit `BoundGreaterThan`."""

    @abstractmethod
    def visit_less_than(self, term: BoundTerm, literal: Literal) -> T:
        """Visit `BoundLessThan`."""

    @abstractmethod
    def visit_less_than_or_equal(self, term: BoundTerm, literal: Literal) -> T:
        """Visit `BoundLessThanOrEqual`."""

    @abstractmethod
    def visit_starts_with(self, term: BoundTerm, literal: Literal) -> T:
        """Visit `BoundStartsWith`."""

    @abstractmethod
    def visit_not_starts_with(self, term: BoundTerm, literal: Literal) -> T:
        """Visit `BoundNotStartsWith`."""

    def visit_st_intersects(self, term: BoundTerm, envelope: tuple[float, float, float, float]) -> T:
        """Visit `BoundStIntersects`; without this method it is an `UnsupportedFeatureError`."""
        msg = f"{type(self).__name__} has no method 'visit_st_intersects' to visit {term} and {envelope}"
        raise UnsupportedFeatureError(msg)

    def visit_st_disjoint(self, term: BoundTerm, envelope: tuple[float, float, float, float]) -> T:
        """Visit `BoundStDisjoint`; without this method it is an `UnsupportedFeatureError`."""
        msg = f"{type(self).__name__} has no method 'visit_st_disjoint' to visit {term} and {envelope}"
        raise UnsupportedFeatureError(msg)

    def visit_unbound_predicate(self, predicate: UnboundPredicate) -> T:
        """Raise `ArgumentTypeError`: the expression is not bound."""
        msg = f"{type(self).__name__} visits bound expressions, got the unbound one {predicate}: bind it to a schema"
        raise ArgumentTypeError(msg)

    def visit_bound_predicate(self, predicate: BoundPredicate) -> T:
        """Call the method for the kind of a test."""
        return visit_bound_predicate(predicate, self)


def visit(obj: Expression | BoundExpression, visitor: BooleanExpressionVisitor[T]) -> T:
    """Visit the parts of an expression, bound or not, children first, and return the result for the whole.

    Raises
    ------
    ArgumentTypeError
        If it is not an expression of these parts.

    """
    if isinstance(obj, UnboundPredicate):
        return visitor.visit_unbound_predicate(obj)
    if isinstance(obj, BoundPredicate):
        return visitor.visit_bound_predicate(obj)
    if isinstance(obj, And | BoundAnd):
        return visitor.visit_and(visit(obj.left, visitor), visit(obj.right, visitor))
    if isinstance(obj, Or | BoundOr):
        return visitor.visit_or(visit(obj.left, visitor), visit(obj.right, visitor))
    if isinstance(obj, Not | BoundNot):
        return visitor.visit_not(visit(obj.child, visitor))
    if isinstance(obj, AlwaysTrue | BoundAlwaysTrue):
        return visitor.visit_true()
    if isinstance(obj, AlwaysFalse | BoundAlwaysFalse):
        return visitor.visit_false()
    msg = f"expected an expression, got {type(obj).__name__}"
    raise ArgumentTypeError(msg)


#: The methods for tests without literals, with one and with several.
_TESTS: dict[type[BoundPredicate], str] = {
    BoundIsNull: "visit_is_null",
    BoundNotNull: "visit_not_null",
    BoundIsNaN: "visit_is_nan",
    BoundNotNaN: "visit_not_nan",
    BoundEqualTo: "visit_equal",
    BoundNotEqualTo: "visit_not_equal",
    BoundLessThan: "visit_less_than",
    BoundLessThanOrEqual: "visit_less_than_or_equal",
    BoundGreaterThan: "visit_greater_than",
    BoundGreaterThanOrEqual: "visit_greater_than_or_equal",
    BoundStartsWith: "visit_starts_with",
    BoundNotStartsWith: "visit_not_starts_with",
    BoundIn: "visit_in",
    BoundNotIn: "visit_not_in",
    BoundStIntersects: "visit_st_intersects",
    BoundStDisjoint: "visit_st_disjoint",
}


def visit_bound_predicate(expr: BoundPredicate, visitor: BoundBooleanExpressionVisitor[T]) -> T:
    """Call the method of a visitor for the kind of a test."""
    method: Callable[..., T] = getattr(visitor, _TESTS[type(expr)])
    if isinstance(expr, BoundLiteralPredicate):
        return method(expr.term, expr.literal)
    if isinstance(expr, BoundSetPredicate):
        return method(expr.term, expr.value_set)
    if isinstance(expr, BoundStIntersects | BoundStDisjoint):
        return method(expr.term, expr.envelope)
    return method(expr.term)


def bind(schema: Schema, expression: Expression, case_sensitive: bool) -> BoundExpression:
    """Return the expression over the field ids of a schema."""
    return expression.bind(schema, case_sensitive)


def rewrite_not(expr: Expression) -> Expression:
    """Return an equal expression without ``NOT``."""
    return expr.rewrite_not()


def extract_field_ids(expr: BoundExpression) -> set[int]:
    """Return the ids of the fields that a bound expression refers to."""
    return set(expr.field_ids)


def inclusive_projection(
    schema: Schema, spec: PartitionSpec, case_sensitive: bool = True
) -> Callable[[Expression], BoundExpression]:
    """Return a function from an expression to one over partition values, true for all that may have matching rows."""
    return lambda expr: expr.project(spec, schema, case_sensitive=case_sensitive)


def strict_projection(
    schema: Schema, spec: PartitionSpec, case_sensitive: bool = True
) -> Callable[[Expression], BoundExpression]:
    """Return a function from an expression to one over partition values, true only for those whose rows all match."""
    return lambda expr: expr.project(spec, schema, inclusive=False, case_sensitive=case_sensitive)
