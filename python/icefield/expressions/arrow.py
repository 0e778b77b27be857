"""Filters as expressions of PyArrow, for tables and datasets that are not read by a scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefield._core import filter_expression
from icefield._support.optional import require
from icefield.errors import UnsupportedFeatureError
from icefield.expressions import BoundExpression, BoundReference
from icefield.expressions.visitors import BoundBooleanExpressionVisitor, visit
from icefield.schema import Schema
from icefield.types import NestedField, StructType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    import pyarrow.compute as pc

    from icefield.expressions import BoundTerm, RowFilter
    from icefield.expressions.literals import Literal

__all__ = ["to_pyarrow"]


def to_pyarrow(
    row_filter: RowFilter | BoundExpression, schema: Schema, *, case_sensitive: bool = True
) -> pc.Expression:
    """Return a filter as an expression of PyArrow that matches the same rows.

    The result is true or false for each row and never null; null, NaN and -0.0 are tested as by `Expression.evaluate`::

        rows.filter(to_pyarrow("id > 5", table.schema()))

    Parameters
    ----------
    row_filter
        An expression, or its text, as for `icefield.Table.scan`; a bound one is of this schema.
    schema
        The schema of the rows. Their columns have its names, and types that Arrow compares with those of `to_arrow`.
    case_sensitive
        Whether column names are case-sensitive.

    Raises
    ------
    InvalidArgumentError
        If the filter does not fit the schema.
    UnsupportedFeatureError
        If it tests a transform of a column, a value within a variant, or a box.

    """
    require("pyarrow")
    if not isinstance(row_filter, BoundExpression):
        row_filter = filter_expression(row_filter).bind(schema, case_sensitive)
    # Of rows, NOT (x < 1) is x >= 1, which neither null nor NaN is.
    return visit(row_filter.rewrite_not(), _ToPyArrow(schema))


def _paths(fields: Iterable[NestedField], above: tuple[str, ...] = ()) -> Iterator[tuple[int, tuple[str, ...]]]:
    for field in fields:
        path = (*above, field.name)
        yield field.field_id, path
        if isinstance(field.field_type, StructType):
            yield from _paths(field.field_type.fields, path)


class _Column:
    """A column of the rows, and the type that it is compared in."""

    def __init__(self, term: BoundTerm, paths: dict[int, tuple[str, ...]]) -> None:
        import pyarrow as pa
        import pyarrow.compute as pc

        if not isinstance(term, BoundReference):
            raise UnsupportedFeatureError(
                f"{term} cannot be an expression of PyArrow, which tests columns only: use Expression.evaluate(rows)"
            )
        path = paths[term.ref().field.field_id]
        self.field: pc.Expression = pc.field(path if len(path) > 1 else path[0])
        self.type: pa.DataType = Schema(NestedField(1, "x", term.type)).to_arrow().field(0).type
        self.is_uuid = str(term.type) == "uuid"
        if self.is_uuid:
            # Arrow compares no extension types.
            self.type = pa.binary(16)
            self.field = self.field.cast(self.type)

    def value(self, value: Any) -> pa.Scalar[Any]:
        """Return a value of a literal as one of the column."""
        import pyarrow as pa

        return pa.scalar(value.bytes if self.is_uuid else value, self.type)

    def compared(self, operation: str, value: Any) -> pc.Expression:
        """Compare the column: ``==``, ``<`` or ``>``; null if it is null."""
        import pyarrow as pa
        import pyarrow.compute as pc

        value = self.value(value)
        compare = {"==": pc.equal, "<": pc.less, ">": pc.greater}[operation]
        found = compare(self.field, value)
        if isinstance(value.as_py(), float) and value.as_py() == 0:
            # For Arrow -0.0 equals 0.0. Their reciprocals have a sign that it sees.
            is_negative = str(value.as_py()).startswith("-")
            zero, reciprocal = pc.equal(self.field, value), pc.divide(pc.scalar(pa.scalar(1.0, self.type)), self.field)
            if operation == "==":
                return zero & (reciprocal < 0 if is_negative else reciprocal > 0)
            if (operation == "<") != is_negative:
                return found | (zero & (reciprocal < 0 if operation == "<" else reciprocal > 0))
        return found


class _ToPyArrow(BoundBooleanExpressionVisitor["pc.Expression"]):
    """Makes expressions that are never null, so that AND and OR mean what they mean for rows."""

    def __init__(self, schema: Schema) -> None:
        self._of = dict(_paths(schema.fields))

    def visit_true(self) -> pc.Expression:
        import pyarrow.compute as pc

        return pc.scalar(value=True)

    def visit_false(self) -> pc.Expression:
        return ~self.visit_true()

    def visit_not(self, child_result: pc.Expression) -> pc.Expression:
        return ~child_result

    def visit_and(self, left_result: pc.Expression, right_result: pc.Expression) -> pc.Expression:
        return left_result & right_result

    def visit_or(self, left_result: pc.Expression, right_result: pc.Expression) -> pc.Expression:
        return left_result | right_result

    def visit_is_null(self, term: BoundTerm) -> pc.Expression:
        return self._column(term).field.is_null()

    def visit_not_null(self, term: BoundTerm) -> pc.Expression:
        return self._column(term).field.is_valid()

    def visit_is_nan(self, term: BoundTerm) -> pc.Expression:
        import pyarrow.compute as pc

        field = self._column(term).field
        return field.is_valid() & pc.is_nan(field)

    def visit_not_nan(self, term: BoundTerm) -> pc.Expression:
        return ~self.visit_is_nan(term)

    def visit_equal(self, term: BoundTerm, literal: Literal) -> pc.Expression:
        return self._compared(term, "==", literal.value)

    def visit_not_equal(self, term: BoundTerm, literal: Literal) -> pc.Expression:
        return ~self.visit_equal(term, literal)

    def visit_less_than(self, term: BoundTerm, literal: Literal) -> pc.Expression:
        return self._compared(term, "<", literal.value)

    def visit_less_than_or_equal(self, term: BoundTerm, literal: Literal) -> pc.Expression:
        return self.visit_less_than(term, literal) | self.visit_equal(term, literal)

    def visit_greater_than(self, term: BoundTerm, literal: Literal) -> pc.Expression:
        return self._compared(term, ">", literal.value)

    def visit_greater_than_or_equal(self, term: BoundTerm, literal: Literal) -> pc.Expression:
        return self.visit_greater_than(term, literal) | self.visit_equal(term, literal)

    def visit_in(self, term: BoundTerm, literals: set[Any]) -> pc.Expression:
        import pyarrow as pa

        column = self._column(term)
        zeros = [value for value in literals if isinstance(value, float) and value == 0]
        others = [column.value(value) for value in literals if value not in zeros]
        found = column.field.isin(pa.array(others, column.type))
        for zero in zeros:
            found |= self._compared(term, "==", zero)
        return found

    def visit_not_in(self, term: BoundTerm, literals: set[Any]) -> pc.Expression:
        return ~self.visit_in(term, literals)

    def visit_starts_with(self, term: BoundTerm, literal: Literal) -> pc.Expression:
        import pyarrow.compute as pc

        field = self._column(term).field
        return field.is_valid() & pc.starts_with(field, literal.value)

    def visit_not_starts_with(self, term: BoundTerm, literal: Literal) -> pc.Expression:
        return ~self.visit_starts_with(term, literal)

    def visit_st_intersects(self, term: BoundTerm, envelope: tuple[float, float, float, float]) -> pc.Expression:
        msg = f"a box of {term} cannot be tested by PyArrow, got {envelope}: use Expression.evaluate(rows)"
        raise UnsupportedFeatureError(msg)

    def visit_st_disjoint(self, term: BoundTerm, envelope: tuple[float, float, float, float]) -> pc.Expression:
        return self.visit_st_intersects(term, envelope)

    def _column(self, term: BoundTerm) -> _Column:
        return _Column(term, self._of)

    def _compared(self, term: BoundTerm, operation: str, value: Any) -> pc.Expression:
        column = self._column(term)
        return column.field.is_valid() & column.compared(operation, value)
