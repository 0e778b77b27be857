"""What statements about tables are made of: columns, types, transforms, orders, properties."""

from __future__ import annotations

from typing import Literal

from icefield.spark.sql.grammar.statements import ColumnDefinition, PartitionTerm, SortTerm
from icefield.spark.sql.grammar.text import Cursor, Name, Piece

__all__ = [
    "column_definition",
    "partition_term",
    "position",
    "properties",
    "property_key",
    "property_keys",
    "sort_terms",
    "type_piece",
]

#: Functions of transforms, as Spark and Iceberg call them, and the transform.
_TRANSFORMS = {
    "identity": "identity",
    "void": "void",
    "year": "year",
    "years": "year",
    "month": "month",
    "months": "month",
    "day": "day",
    "days": "day",
    "date": "day",
    "hour": "hour",
    "hours": "hour",
    "date_hour": "hour",
    "bucket": "bucket",
    "truncate": "truncate",
}
_AFTER_TYPE = (("NOT", "NULL"), ("COMMENT",), ("DEFAULT",), ("FIRST",), ("AFTER",), ("GENERATED",))


def type_piece(cursor: Cursor) -> Piece:
    """Return the text of a type."""
    start = cursor.place
    first = cursor.part("a type")
    end = cursor.last_end
    if first.upper() == "INTERVAL":
        return Piece(start, cursor.piece("a unit", ",", ")", words=_AFTER_TYPE).end)
    if cursor.ahead("("):
        cursor.group("the size of the type")
        end = cursor.last_end
    if cursor.take("<>"):
        return Piece(start, cursor.last_end)
    if cursor.take("<"):
        depth = 1
        while depth:
            if cursor.at_end():
                raise cursor.error("expected >")
            token = cursor.next()
            if token.kind == "symbol":
                depth += (token.text == "<") - (token.text == ">")
        end = cursor.last_end
    if cursor.take("COLLATE"):
        cursor.name("a collation")
        end = cursor.last_end
    return Piece(start, end)


def column_definition(cursor: Cursor) -> ColumnDefinition:
    """Return a column of CREATE TABLE or ADD COLUMNS."""
    path = cursor.name("a column")
    kind = type_piece(cursor)
    required = False
    comment: str | None = None
    default: Piece | None = None
    where: tuple[str, ...] = ()
    while True:
        if cursor.take("NOT", "NULL"):
            required = True
        elif comment is None and cursor.take("COMMENT"):
            comment = cursor.string("a comment in quotes")
        elif default is None and cursor.take("DEFAULT"):
            default = cursor.piece("a value", ",", ")", words=_AFTER_TYPE)
        elif not where and (where := position(cursor)):
            pass
        elif cursor.ahead("GENERATED"):
            raise cursor.statement.refusal(cursor.place, "generated columns are not supported: Iceberg has none")
        else:
            return ColumnDefinition(path, kind, required, comment, default, where)


def position(cursor: Cursor) -> tuple[str, ...]:
    """Return where a column goes: ``("first",)``, ``("after", "x")``, or nothing."""
    if cursor.take("FIRST"):
        return ("first",)
    return ("after", cursor.part("a column")) if cursor.take("AFTER") else ()


def partition_term(cursor: Cursor, *, named: bool = True) -> PartitionTerm:
    """Return a column or a transform of one, and the name that it gets."""
    start = cursor.place
    column = cursor.name("a column or a transform")
    transform = "identity"
    if cursor.ahead("("):
        function = str(column).lower()
        if function not in _TRANSFORMS or len(column.parts) > 1:
            known = "identity, bucket, truncate, year, month, day, hour"
            raise cursor.statement.error(start, f"unknown transform {str(column)!r}: expected one of {known}")
        column, transform = _transformed(cursor, _TRANSFORMS[function])
    name = cursor.part() if named and cursor.take("AS") else None
    return PartitionTerm(column, transform, name)


def _transformed(cursor: Cursor, kind: str) -> tuple[Name, str]:
    cursor.expect("(")
    width: int | None = None
    needs = kind in ("bucket", "truncate")
    if needs and cursor.token.kind == "number":
        width = cursor.integer("an integer")
        cursor.expect(",")
    column = cursor.name("a column")
    if needs and width is None:
        cursor.expect(",")
        width = cursor.integer("an integer")
    cursor.expect(")")
    return column, f"{kind}[{width}]" if needs else kind


def sort_terms(cursor: Cursor) -> tuple[SortTerm, ...]:
    """Return the fields of a sort order, in parentheses or not."""
    wrapped = cursor.take("(")
    found = [_sort_term(cursor)]
    while cursor.take(","):
        found.append(_sort_term(cursor))
    if wrapped:
        cursor.expect(")")
    return tuple(found)


def _sort_term(cursor: Cursor) -> SortTerm:
    term = partition_term(cursor, named=False)
    direction: Literal["asc", "desc"] = "desc" if cursor.one_of("DESC", "ASC") == "DESC" else "asc"
    nulls: Literal["nulls-first", "nulls-last"] = "nulls-first" if direction == "asc" else "nulls-last"
    if cursor.take("NULLS"):
        which = cursor.one_of("FIRST", "LAST")
        if which is None:
            raise cursor.error("expected FIRST or LAST")
        nulls = "nulls-first" if which == "FIRST" else "nulls-last"
    return SortTerm(term, direction, nulls)


def properties(cursor: Cursor) -> dict[str, str]:
    """Return properties: ``('a' = 'b', c.d = 3)``."""
    found: dict[str, str] = {}
    cursor.expect("(")
    while True:
        at = cursor.place
        key = property_key(cursor)
        cursor.take("=")
        if key in found:
            raise cursor.statement.error(at, f"property {key!r} is set twice")
        found[key] = _value(cursor)
        if not cursor.take(","):
            cursor.expect(")")
            return found


def property_keys(cursor: Cursor) -> tuple[str, ...]:
    """Return keys of properties: ``('a', c.d)``."""
    cursor.expect("(")
    keys = [property_key(cursor)]
    while cursor.take(","):
        keys.append(property_key(cursor))
    cursor.expect(")")
    return tuple(keys)


def property_key(cursor: Cursor) -> str:
    """Return the key of a property, a string or a name."""
    if cursor.token.kind == "string":
        return cursor.string("a key")
    return str(cursor.name("the key of a property"))


def _value(cursor: Cursor) -> str:
    token = cursor.token
    if token.kind == "string":
        return cursor.string("a value")
    sign = "-" if cursor.take("-") else ""
    if cursor.token.kind == "number":
        return sign + cursor.next().text
    flag = None if sign else cursor.one_of("TRUE", "FALSE")
    if flag is None:
        raise cursor.error("expected the value of a property: a string, a number, true or false")
    return flag.lower()
