"""Expressions: predicates on the rows of a table, as text, as JSON and as objects ("Scan Planning").

An expression names columns. Bound to a schema it refers to field ids, and its literals have the columns' types::

    >>> import icefield as ice
    >>> expr = ice.expressions.parse("id > 5 AND name IS NOT NULL")
    >>> schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "name", "string"))
    >>> expr.bind(schema).to_json()
    '{"type":"and","left":{"type":"gt","term":"id","value":5},"right":{"type":"not-null","term":"name"}}'

The classes of PyIceberg are here as constructors of the same objects, and ``&``, ``|``, ``~`` combine them::

    >>> str(GreaterThan("id", 5) & ~StartsWith("name", "a"))
    "id > 5 AND NOT (name LIKE 'a%')"

On rows, null matches ``IS NULL``, ``!=``, ``NOT IN``, ``NOT LIKE`` and ``IS NOT NAN`` and nothing else; NaN matches no
comparison but ``!=``; -0.0 lies below 0.0.
"""

# The names are PyIceberg's, where they are classes.
# ruff: noqa: N802

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from icefield._core import (
    BoundExpression,
    Expression,
    Term,
    constant_expression,
    expression_from_json,
    joined_expression,
    parse_expression,
    predicate_expression,
)
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from icefield._core import Transform, _Json
    from icefield.schema import Schema
    from icefield.types import Type

#: A row filter: an expression or its text.
RowFilter: TypeAlias = Expression | str

__all__ = [
    "AlwaysFalse",
    "AlwaysTrue",
    "And",
    "BoundExpression",
    "EqualTo",
    "Expression",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IsNaN",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "Not",
    "NotEqualTo",
    "NotIn",
    "NotNaN",
    "NotNull",
    "NotStartsWith",
    "Or",
    "Reference",
    "RowFilter",
    "StDisjoint",
    "StIntersects",
    "StartsWith",
    "Term",
    "extract",
    "from_json",
    "parse",
    "transform",
]


def parse(text: str) -> Expression:
    """Parse SQL-like text.

    Parameters
    ----------
    text
        Comparisons, ``IS [NOT] NULL``, ``IS [NOT] NAN``, ``[NOT] IN``, ``[NOT] BETWEEN``, ``[NOT] LIKE 'prefix%'``, of
        columns (``a.b``, ``"odd name"``), transforms of columns (``bucket(16, id)``, ``day(ts)``) and values inside of
        variants (``v:a.b[0]::long``, see `extract`), combined by ``AND``, ``OR``, ``NOT`` and parentheses. Literals may
        name their type: ``DATE '2020-01-01'``, ``TIMESTAMP '2020-01-01 10:00:00'``, ``X'00ff'``, ``UUID '…'``,
        ``CAST(1.5 AS FLOAT)``.

    Raises
    ------
    InvalidArgumentError
        If the text is not valid; the message names the character.

    """
    return parse_expression(text)


def from_json(json: _Json | bool, schema: Schema | None = None) -> Expression:
    """Read the JSON of the REST protocol.

    Parameters
    ----------
    json
        A str, bytes, or the object that ``json.loads`` returns.
    schema
        If given, literals are single values of the types of their columns; else they are numbers, strings and
        booleans that binding converts.

    """
    return expression_from_json(json, schema)


def Reference(name: str) -> Term:
    """Name a column; dots lead into structs."""
    return Term(name)


def transform(transform: Transform | str, name: str) -> Term:
    """Name a transform of a column: ``transform("bucket[16]", "id")``."""
    return Term(name, transform)


def extract(name: str, path: str, type: Type | str) -> Term:
    """Name a value inside of a column of variants: ``extract("v", "$.a.b", "long")``, in text ``v:a.b::long``.

    The term is null where the variant has no such value, and where the value cannot be read as the type: integers are
    read as wider ones, ``float`` as ``double``, timestamps as dates and the other way round; decimals need the same
    scale, and text is never a number. Files are skipped by the bounds of variants that their writers stored.

    Parameters
    ----------
    name
        The column; dots lead into structs.
    path
        ``$``, then any of ``.name``, ``['name']`` and ``[number]``.
    type
        Any primitive type but ``unknown``, ``geometry`` and ``geography``.

    """
    return Term(name, None, (path, type))


def AlwaysTrue() -> Expression:
    """Match every row."""
    return constant_expression(value=True)


def AlwaysFalse() -> Expression:
    """Match no row."""
    return constant_expression(value=False)


def And(left: Expression | str, right: Expression | str, *rest: Expression | str) -> Expression:
    """Match rows that all match."""
    return joined_expression([_expression(expr) for expr in (left, right, *rest)], conjunction=True)


def Or(left: Expression | str, right: Expression | str, *rest: Expression | str) -> Expression:
    """Match rows that any matches."""
    return joined_expression([_expression(expr) for expr in (left, right, *rest)], conjunction=False)


def Not(child: Expression | str) -> Expression:
    """Match rows that the child does not match."""
    return ~_expression(child)


def IsNull(term: Term | str) -> Expression:
    """Match null."""
    return predicate_expression("is-null", term)


def NotNull(term: Term | str) -> Expression:
    """Match values that are not null."""
    return predicate_expression("not-null", term)


def IsNaN(term: Term | str) -> Expression:
    """Match NaN."""
    return predicate_expression("is-nan", term)


def NotNaN(term: Term | str) -> Expression:
    """Match values that are not NaN."""
    return predicate_expression("not-nan", term)


def EqualTo(term: Term | str, literal: object) -> Expression:
    """Match what equals the literal."""
    return predicate_expression("eq", term, [literal])


def NotEqualTo(term: Term | str, literal: object) -> Expression:
    """Match what does not equal the literal, null included."""
    return predicate_expression("not-eq", term, [literal])


def LessThan(term: Term | str, literal: object) -> Expression:
    """Match values less than the literal."""
    return predicate_expression("lt", term, [literal])


def LessThanOrEqual(term: Term | str, literal: object) -> Expression:
    """Match values less than or equal to the literal."""
    return predicate_expression("lt-eq", term, [literal])


def GreaterThan(term: Term | str, literal: object) -> Expression:
    """Match values greater than the literal."""
    return predicate_expression("gt", term, [literal])


def GreaterThanOrEqual(term: Term | str, literal: object) -> Expression:
    """Match values greater than or equal to the literal."""
    return predicate_expression("gt-eq", term, [literal])


def In(term: Term | str, literals: Iterable[object]) -> Expression:
    """Match values equal to one of the literals."""
    return predicate_expression("in", term, list(literals))


def NotIn(term: Term | str, literals: Iterable[object]) -> Expression:
    """Match values equal to none of the literals, including null."""
    return predicate_expression("not-in", term, list(literals))


def StartsWith(term: Term | str, literal: str) -> Expression:
    """Match strings that start with the literal."""
    return predicate_expression("starts-with", term, [literal])


def NotStartsWith(term: Term | str, literal: str) -> Expression:
    """Match strings that do not start with the literal, and null."""
    return predicate_expression("not-starts-with", term, [literal])


def StIntersects(term: Term | str, envelope: tuple[float, float, float, float]) -> Expression:
    """Match geometries that have a point in a box, given as ``(xmin, ymin, xmax, ymax)``; its edges belong to it."""
    return predicate_expression("st-intersects", term, list(envelope))


def StDisjoint(term: Term | str, envelope: tuple[float, float, float, float]) -> Expression:
    """Match geometries that have no point in a box, given as ``(xmin, ymin, xmax, ymax)``, empty ones too."""
    return predicate_expression("st-disjoint", term, list(envelope))


def _expression(expr: object) -> Expression:
    if not isinstance(expr, Expression | str):
        msg = f"expected an Expression or str, got {type(expr).__name__}"
        raise InvalidArgumentError(msg)
    return parse_expression(expr) if isinstance(expr, str) else expr
