"""Expressions: predicates on the rows of a table, as text, as JSON and as objects ("Scan Planning").

An expression names columns. Bound to a schema it refers to field ids, and its literals have the columns' types::

    >>> import icefield as ice
    >>> expr = ice.expressions.parse("id > 5 AND name IS NOT NULL")
    >>> schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "name", "string"))
    >>> expr.bind(schema).to_json()
    '{"type":"and","left":{"type":"gt","term":"id","value":5},"right":{"type":"not-null","term":"name"}}'

The classes have the names of PyIceberg's. Every expression is an instance of the class of its kind, whichever way it
was made, and ``&``, ``|``, ``~`` combine them::

    >>> str(GreaterThan("id", 5) & ~StartsWith("name", "a"))
    "id > 5 AND NOT (name LIKE 'a%')"
    >>> both = parse("id > 5 AND name IS NOT NULL")
    >>> isinstance(both, And), both.left.term.name, both.left.literal.value, type(both.right).__name__
    (True, 'id', 5, 'NotNull')

On rows, null matches ``IS NULL``, ``!=``, ``NOT IN``, ``NOT LIKE`` and ``IS NOT NAN`` and nothing else; NaN matches no
comparison but ``!=``; -0.0 lies below 0.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from icefield._core import (
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
    BoundReference,
    BoundSetPredicate,
    BoundStartsWith,
    BoundStDisjoint,
    BoundStIntersects,
    BoundTerm,
    BoundUnaryPredicate,
    EqualTo,
    Expression,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNaN,
    IsNull,
    LessThan,
    LessThanOrEqual,
    LiteralPredicate,
    Not,
    NotEqualTo,
    NotIn,
    NotNaN,
    NotNull,
    NotStartsWith,
    Or,
    Reference,
    SetPredicate,
    StartsWith,
    StDisjoint,
    StIntersects,
    Term,
    UnaryPredicate,
    UnboundPredicate,
    expression_from_json,
    parse_expression,
)

if TYPE_CHECKING:
    from icefield._core import Transform, _Json
    from icefield.schema import Schema
    from icefield.types import Type

#: A row filter: an expression or its text.
RowFilter: TypeAlias = Expression | str

#: The names that PyIceberg has for `Expression` and `Term`.
BooleanExpression = Expression
UnboundTerm = Term

__all__ = [
    "AlwaysFalse",
    "AlwaysTrue",
    "And",
    "BooleanExpression",
    "BoundAlwaysFalse",
    "BoundAlwaysTrue",
    "BoundAnd",
    "BoundEqualTo",
    "BoundExpression",
    "BoundGreaterThan",
    "BoundGreaterThanOrEqual",
    "BoundIn",
    "BoundIsNaN",
    "BoundIsNull",
    "BoundLessThan",
    "BoundLessThanOrEqual",
    "BoundLiteralPredicate",
    "BoundNot",
    "BoundNotEqualTo",
    "BoundNotIn",
    "BoundNotNaN",
    "BoundNotNull",
    "BoundNotStartsWith",
    "BoundOr",
    "BoundPredicate",
    "BoundReference",
    "BoundSetPredicate",
    "BoundStDisjoint",
    "BoundStIntersects",
    "BoundStartsWith",
    "BoundTerm",
    "BoundUnaryPredicate",
    "EqualTo",
    "Expression",
    "GreaterThan",
    "GreaterThanOrEqual",
    "In",
    "IsNaN",
    "IsNull",
    "LessThan",
    "LessThanOrEqual",
    "LiteralPredicate",
    "Not",
    "NotEqualTo",
    "NotIn",
    "NotNaN",
    "NotNull",
    "NotStartsWith",
    "Or",
    "Reference",
    "RowFilter",
    "SetPredicate",
    "StDisjoint",
    "StIntersects",
    "StartsWith",
    "Term",
    "UnaryPredicate",
    "UnboundPredicate",
    "UnboundTerm",
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
