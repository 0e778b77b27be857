"""ALTER TABLE: what Spark's own grammar has, and Iceberg's extensions of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from icefield.spark.sql.grammar.statements import (
    AddColumns,
    AddPartitionField,
    Alter,
    AlterAction,
    AlterColumn,
    AlterColumns,
    ColumnDefinition,
    DropColumns,
    DropPartitionField,
    DropReference,
    IdentifierFields,
    RenameColumn,
    RenameTable,
    ReplacePartitionField,
    SetProperties,
    SetReference,
    UnsetProperties,
    WriteOrder,
)
from icefield.spark.sql.grammar.terms import (
    column_definition,
    partition_term,
    position,
    properties,
    property_keys,
    sort_terms,
    type_piece,
)
from icefield.spark.sql.grammar.text import Cursor, Name

__all__ = ["alter_table", "write_order"]

_MILLISECONDS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}


def alter_table(cursor: Cursor) -> Alter:
    """Return ALTER TABLE, after these words."""
    name = cursor.name("a table")
    for words, action in _ACTIONS:
        if cursor.take(*words):
            found = Alter(name, action(cursor))
            cursor.finish()
            return found
    for words, instead in _REFUSED:
        if cursor.ahead(*words):
            raise cursor.statement.refusal(cursor.place, f"ALTER TABLE … {' '.join(words)} is not supported: {instead}")
    raise cursor.error("expected what ALTER TABLE changes, such as ADD COLUMNS, ADD PARTITION FIELD, WRITE ORDERED BY")


def _add_columns(cursor: Cursor) -> AlterAction:
    wrapped = cursor.take("(")
    columns: list[ColumnDefinition] = [column_definition(cursor)]
    while cursor.take(","):
        columns.append(column_definition(cursor))
    if wrapped:
        cursor.expect(")")
    return AddColumns(tuple(columns))


def _column_list(cursor: Cursor) -> tuple[Name, ...]:
    wrapped = cursor.take("(")
    names = [cursor.name("a column")]
    while cursor.take(","):
        names.append(cursor.name("a column"))
    if wrapped:
        cursor.expect(")")
    return tuple(names)


def _drop_columns(cursor: Cursor) -> AlterAction:
    if_exists = cursor.take("IF", "EXISTS")
    return DropColumns(_column_list(cursor), if_exists)


def _rename_column(cursor: Cursor) -> AlterAction:
    column = cursor.name("a column")
    cursor.expect("TO")
    return RenameColumn(column, cursor.part("a column"))


def _change_columns(cursor: Cursor) -> AlterAction:
    """Return changes as of ALTER COLUMN, or the one of Hive: ``CHANGE COLUMN a a bigint COMMENT 'x' FIRST``."""
    return _alter_columns(cursor, hive=True)


def _alter_columns(cursor: Cursor, *, hive: bool = False) -> AlterAction:
    """Return the changes of columns, each with its name in front."""
    columns = [_alter_column(cursor, hive=hive)]
    while cursor.take(","):
        columns.append(_alter_column(cursor))
    return AlterColumns(tuple(columns))


def _alter_column(cursor: Cursor, *, hive: bool = False) -> AlterColumn:
    column = cursor.name("a column")
    if cursor.take("TYPE"):
        kind = type_piece(cursor)
        # Spark's own grammar has no comment here, but Iceberg's documentation of ALTER TABLE.
        comment = cursor.string("a comment in quotes") if cursor.take("COMMENT") else None
        return AlterColumn(column, type=kind, comment=comment)
    if cursor.take("COMMENT"):
        return AlterColumn(column, comment=cursor.string("a comment in quotes"))
    if cursor.take("SET", "NOT", "NULL"):
        return AlterColumn(column, required=True)
    if cursor.take("DROP", "NOT", "NULL"):
        return AlterColumn(column, required=False)
    if cursor.take("SET", "DEFAULT"):
        return AlterColumn(column, default=cursor.piece("a value", ","))
    if cursor.take("DROP", "DEFAULT"):
        return AlterColumn(column, drops_default=True)
    if where := position(cursor):
        return AlterColumn(column, position=where)
    if hive:
        return _hive_column(cursor, column)
    raise cursor.error("expected TYPE, COMMENT, SET or DROP NOT NULL, SET or DROP DEFAULT, FIRST or AFTER")


def _hive_column(cursor: Cursor, column: Name) -> AlterColumn:
    """Return a change as in Hive, with the name of the column again."""
    start = cursor.place
    if cursor.part("the name of the column again").lower() != column.parts[-1].lower():
        message = "expected the name of the column again, and its type; RENAME COLUMN a TO b renames it"
        raise cursor.statement.error(start, message)
    kind, comment = type_piece(cursor), None
    if cursor.take("COMMENT"):
        comment = cursor.string("a comment in quotes")
    return AlterColumn(column, type=kind, comment=comment, position=position(cursor))


def _set_location(cursor: Cursor) -> AlterAction:
    return SetProperties({"location": cursor.string("a location in quotes")})


def _replace_field(cursor: Cursor) -> AlterAction:
    old = partition_term(cursor, named=False)
    cursor.expect("WITH")
    return ReplacePartitionField(old, partition_term(cursor))


def _write(cursor: Cursor) -> AlterAction:
    return write_order(cursor)


def write_order(cursor: Cursor) -> WriteOrder:
    """Return an order of writes, after WRITE."""
    distributed = ordered = locally = unordered = False
    order = None
    while True:
        if not distributed and cursor.take("DISTRIBUTED", "BY", "PARTITION"):
            distributed = True
        elif not ordered and not unordered and cursor.take("UNORDERED"):
            unordered = True
        elif not ordered and not unordered and (cursor.ahead("LOCALLY", "ORDERED") or cursor.ahead("ORDERED", "BY")):
            locally = cursor.take("LOCALLY")
            cursor.expect("ORDERED", "BY")
            order, ordered = sort_terms(cursor), True
        else:
            break
    if not (distributed or ordered or unordered):
        raise cursor.error("expected ORDERED BY, LOCALLY ORDERED BY, DISTRIBUTED BY PARTITION or UNORDERED")
    mode: Literal["none", "hash", "range"] | None = "hash" if distributed else "none" if unordered else "range"
    return WriteOrder(None if locally and not distributed else mode, order)


def _reference(kind: Literal["branch", "tag"], *, create: bool, replace: bool) -> Callable[[Cursor], AlterAction]:
    def parsed(cursor: Cursor) -> AlterAction:
        if_not_exists = create and not replace and cursor.take("IF", "NOT", "EXISTS")
        name = cursor.part(f"the name of a {kind}")
        snapshot_id = cursor.integer("the id of a snapshot") if cursor.take("AS", "OF", "VERSION") else None
        ref_age = _age(cursor) if cursor.take("RETAIN") else None
        kept, age = _retention(cursor) if kind == "branch" else (None, None)
        return SetReference(kind, name, create, replace, if_not_exists, snapshot_id, ref_age, age, kept)

    return parsed


def _age(cursor: Cursor) -> int:
    count = cursor.integer("a number of days, hours or minutes")
    unit = cursor.one_of(*_MILLISECONDS, *(unit[:-1] for unit in _MILLISECONDS))
    if unit is None:
        raise cursor.error("expected DAYS, HOURS or MINUTES")
    return count * _MILLISECONDS.get(unit, _MILLISECONDS.get(f"{unit}S", 0))


def _retention(cursor: Cursor) -> tuple[int | None, int | None]:
    """Return how many snapshots of a branch are kept, and up to which age."""
    if not cursor.take("WITH", "SNAPSHOT", "RETENTION"):
        return None, None
    if not cursor.ahead("SNAPSHOTS", skip=1):
        return None, _age(cursor)
    kept = cursor.integer("a number of snapshots")
    cursor.expect("SNAPSHOTS")
    return kept, _age(cursor) if cursor.token.kind == "number" else None


def _drop_reference(kind: Literal["branch", "tag"]) -> Callable[[Cursor], AlterAction]:
    def parsed(cursor: Cursor) -> AlterAction:
        if_exists = cursor.take("IF", "EXISTS")
        return DropReference(kind, cursor.part(f"the name of a {kind}"), if_exists)

    return parsed


def _unset(cursor: Cursor) -> AlterAction:
    if_exists = cursor.take("IF", "EXISTS")
    return UnsetProperties(property_keys(cursor), if_exists)


#: The words of each change, longer ones before those that they begin with, and what follows them.
_ACTIONS: tuple[tuple[tuple[str, ...], Callable[[Cursor], AlterAction]], ...] = (
    (("ADD", "PARTITION", "FIELD"), lambda cursor: AddPartitionField(partition_term(cursor))),
    (("DROP", "PARTITION", "FIELD"), lambda cursor: DropPartitionField(partition_term(cursor, named=False))),
    (("REPLACE", "PARTITION", "FIELD"), _replace_field),
    (("ADD", "COLUMNS"), _add_columns),
    (("ADD", "COLUMN"), _add_columns),
    (("DROP", "COLUMNS"), _drop_columns),
    (("DROP", "COLUMN"), _drop_columns),
    (("RENAME", "COLUMN"), _rename_column),
    (("RENAME", "TO"), lambda cursor: RenameTable(cursor.name("a table"))),
    (("ALTER", "COLUMN"), _alter_columns),
    (("ALTER",), _alter_columns),
    (("CHANGE", "COLUMN"), _change_columns),
    (("CHANGE",), _change_columns),
    (("WRITE",), _write),
    (("CREATE", "OR", "REPLACE", "BRANCH"), _reference("branch", create=True, replace=True)),
    (("CREATE", "OR", "REPLACE", "TAG"), _reference("tag", create=True, replace=True)),
    (("CREATE", "BRANCH"), _reference("branch", create=True, replace=False)),
    (("CREATE", "TAG"), _reference("tag", create=True, replace=False)),
    (("REPLACE", "BRANCH"), _reference("branch", create=False, replace=True)),
    (("REPLACE", "TAG"), _reference("tag", create=False, replace=True)),
    (("DROP", "BRANCH"), _drop_reference("branch")),
    (("DROP", "TAG"), _drop_reference("tag")),
    (("SET", "IDENTIFIER", "FIELDS"), lambda cursor: IdentifierFields(_column_list(cursor), drop=False)),
    (("DROP", "IDENTIFIER", "FIELDS"), lambda cursor: IdentifierFields(_column_list(cursor), drop=True)),
    (("SET", "LOCATION"), _set_location),
    (("SET", "TBLPROPERTIES"), lambda cursor: SetProperties(properties(cursor))),
    (("UNSET", "TBLPROPERTIES"), _unset),
)
_REFUSED: tuple[tuple[tuple[str, ...], str], ...] = (
    (("ADD", "PARTITION"), "partitions come and go with rows; use ADD PARTITION FIELD"),
    (("ADD", "IF", "NOT", "EXISTS", "PARTITION"), "partitions come and go with rows"),
    (("DROP", "PARTITION"), "delete the rows of the partition, or use DROP PARTITION FIELD"),
    (("DROP", "IF", "EXISTS", "PARTITION"), "delete the rows of the partition"),
    (("REPLACE", "COLUMNS"), "add and drop columns by their names"),
    (("ADD", "CONSTRAINT"), "Iceberg has no constraints"),
    (("CLUSTER",), "use WRITE ORDERED BY"),
)
