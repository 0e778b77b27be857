"""INSERT, DELETE, UPDATE and MERGE: their parts, which Spark evaluates."""

from __future__ import annotations

from typing import Literal

from icefield.spark.sql.grammar.statements import Assignment, Delete, Insert, Merge, MergeClause, Update
from icefield.spark.sql.grammar.text import Cursor, Name, Piece

__all__ = ["delete", "insert", "merge", "update"]

_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")


def insert(cursor: Cursor) -> Insert:
    """Return INSERT, after this word."""
    overwrite = cursor.one_of("INTO", "OVERWRITE") == "OVERWRITE"
    if cursor.ahead("DIRECTORY") or cursor.ahead("LOCAL", "DIRECTORY"):
        raise cursor.statement.refusal(
            cursor.place, "INSERT OVERWRITE DIRECTORY is not supported with icefield's tables"
        )
    cursor.take("TABLE")
    name = cursor.name("a table")
    if cursor.ahead("REPLACE", "WHERE"):
        if overwrite:
            raise cursor.error("REPLACE WHERE follows INSERT INTO")
        cursor.expect("REPLACE", "WHERE")
        starts = [(word,) for word in _QUERIES if word != "("]
        where = cursor.piece("a condition", words=starts)
        return Insert(name, True, _query(cursor), replace_where=where)
    partition = _partition(cursor) if cursor.take("PARTITION") else ()
    if cursor.ahead("IF", "NOT", "EXISTS"):
        raise cursor.statement.refusal(cursor.place, "IF NOT EXISTS of a partition is not supported: Iceberg has none")
    by_name = cursor.take("BY", "NAME")
    columns = () if by_name else _columns_of_insert(cursor)
    return Insert(name, overwrite, _query(cursor), columns, by_name, partition)


def _partition(cursor: Cursor) -> tuple[tuple[Name, Piece | None], ...]:
    found: list[tuple[Name, Piece | None]] = []
    cursor.expect("(")
    while True:
        column = cursor.name("a partition column")
        found.append((column, cursor.piece("a value", ",", ")") if cursor.take("=") else None))
        if not cursor.take(","):
            cursor.expect(")")
            return tuple(found)


def _columns_of_insert(cursor: Cursor) -> tuple[Name, ...]:
    """Return the list of columns in front of a query, which may be in parentheses itself."""
    if not cursor.ahead("(") or any(cursor.ahead("(", word) for word in _QUERIES):
        return ()
    cursor.expect("(")
    names = [cursor.name("a column")]
    while cursor.take(","):
        names.append(cursor.name("a column"))
    cursor.expect(")")
    return tuple(names)


def _query(cursor: Cursor) -> Piece:
    if not any(map(cursor.ahead, _QUERIES)):
        raise cursor.error("expected a query: SELECT, VALUES, TABLE, WITH or FROM")
    return cursor.piece("a query")


def delete(cursor: Cursor) -> Delete:
    """Return DELETE, after this word."""
    cursor.expect("FROM")
    name = cursor.name("a table")
    alias = _alias(cursor, "WHERE")
    condition = cursor.piece("a condition") if cursor.take("WHERE") else None
    cursor.finish()
    return Delete(name, alias, condition)


def update(cursor: Cursor) -> Update:
    """Return UPDATE, after this word."""
    name = cursor.name("a table")
    alias = _alias(cursor, "SET")
    cursor.expect("SET")
    assignments = _assignments(cursor, ("WHERE",))
    condition = cursor.piece("a condition") if cursor.take("WHERE") else None
    cursor.finish()
    return Update(name, alias, assignments, condition)


def _alias(cursor: Cursor, *before: str) -> str | None:
    if cursor.take("AS"):
        return cursor.part("an alias")
    if cursor.at_end() or any(map(cursor.ahead, before)):
        return None
    return cursor.part("an alias") if cursor.token.kind in ("word", "quoted") else None


def _assignments(cursor: Cursor, *ends: tuple[str, ...]) -> tuple[Assignment, ...]:
    found: list[Assignment] = []
    while True:
        column = cursor.name("a column")
        if any(one.column.parts == column.parts for one in found):
            raise cursor.statement.error(column.start, f"column {column} is set twice")
        cursor.expect("=")
        value = cursor.piece("a value", ",", words=ends)
        found.append(Assignment(column, None if cursor.statement.of(value).upper() == "DEFAULT" else value))
        if not cursor.take(","):
            return tuple(found)


def merge(cursor: Cursor) -> Merge:
    """Return MERGE, after this word."""
    start = cursor.place
    evolve = cursor.take("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    name = cursor.name("a table")
    alias = _alias(cursor, "USING")
    cursor.expect("USING")
    source = _source(cursor)
    source_alias = _alias(cursor, "ON")
    cursor.expect("ON")
    condition = cursor.piece("a condition", words=[("WHEN",)])
    clauses = []
    while cursor.take("WHEN"):
        clauses.append(_clause(cursor))
    if not clauses:
        raise cursor.error("expected WHEN MATCHED or WHEN NOT MATCHED")
    cursor.finish()
    return Merge(name, alias, source, source_alias, condition, tuple(clauses), evolve, start)


def _source(cursor: Cursor) -> Piece:
    """Return a table, or a query in parentheses."""
    start = cursor.place
    if cursor.ahead("("):
        cursor.group("a query")
        return Piece(start, cursor.last_end)
    cursor.name("a table or a query")
    return Piece(start, cursor.last_end)


def _clause(cursor: Cursor) -> MergeClause:
    match = _match(cursor)
    condition = cursor.piece("a condition", words=[("THEN",)]) if cursor.take("AND") else None
    cursor.expect("THEN")
    if match == "not matched":
        cursor.expect("INSERT")
        return MergeClause(match, condition, "insert", _inserted(cursor))
    if cursor.take("DELETE"):
        return MergeClause(match, condition, "delete")
    if not cursor.take("UPDATE", "SET"):
        raise cursor.error("expected UPDATE SET or DELETE")
    if match == "matched" and cursor.take("*"):
        return MergeClause(match, condition, "update")
    return MergeClause(match, condition, "update", _assignments(cursor, ("WHEN",)))


def _match(cursor: Cursor) -> Literal["matched", "not matched", "not matched by source"]:
    if cursor.take("MATCHED"):
        return "matched"
    cursor.expect("NOT", "MATCHED")
    if cursor.take("BY", "SOURCE"):
        return "not matched by source"
    cursor.take("BY", "TARGET")
    return "not matched"


def _inserted(cursor: Cursor) -> tuple[Assignment, ...] | None:
    if cursor.take("*"):
        return None
    at = cursor.place
    cursor.expect("(")
    columns = [cursor.name("a column")]
    while cursor.take(","):
        columns.append(cursor.name("a column"))
    cursor.expect(")")
    cursor.expect("VALUES")
    cursor.expect("(")
    values = [cursor.piece("a value", ",", ")")]
    while cursor.take(","):
        values.append(cursor.piece("a value", ",", ")"))
    cursor.expect(")")
    if len(columns) != len(values):
        raise cursor.statement.error(at, f"{len(columns)} columns, but {len(values)} values")
    of = cursor.statement.of
    return tuple(
        Assignment(column, None if of(value).upper() == "DEFAULT" else value)
        for column, value in zip(columns, values, strict=True)
    )
