"""DELETE, UPDATE and MERGE, on the changes of rows that executors make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812

from icefield.spark.changing.deleting import delete as delete_rows
from icefield.spark.changing.deleting import update as update_rows
from icefield.spark.changing.merging import merge as merge_rows
from icefield.spark.changing.values import default_column
from icefield.spark.columns.names import quoted_path
from icefield.spark.sql.grammar.statements import Assignment, Delete, Merge, MergeClause, Update
from icefield.spark.sql.grammar.text import Cursor, Name, Piece
from icefield.spark.sql.literals import quoted_name
from icefield.spark.sql.qualifiers import Side, requalified
from icefield.spark.sql.statements.inserting import written_branch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from icefield.spark.changing.merging import Merge as MergeBuilder
    from icefield.spark.sql.catalogs import Target
    from icefield.spark.sql.running import Run
    from icefield.table import Table

__all__ = ["delete", "merge", "update"]

#: The names that changes of rows use for the table and for the rows of a merge.
_TARGET, _SOURCE = "target", "source"


def delete(run: Run, parsed: Delete, target: Target) -> None:
    """Delete the rows of a table for which a condition holds."""
    table, branch = written_branch(run, parsed.name, target)
    sides = [Side.of(parsed.name, parsed.alias, _TARGET, _column_names(table))]
    condition = F.lit(True) if parsed.condition is None else _evaluated(run, parsed.condition, sides)
    with run.as_read(table):
        delete_rows(run.spark, table, condition, branch=branch)


def update(run: Run, parsed: Update, target: Target) -> None:
    """Change values of the rows of a table for which a condition holds."""
    table, branch = written_branch(run, parsed.name, target)
    sides = [Side.of(parsed.name, parsed.alias, _TARGET, _column_names(table))]
    values = _assigned(run, table, parsed.assignments, sides, sides[0])
    condition = None if parsed.condition is None else _evaluated(run, parsed.condition, sides)
    with run.as_read(table):
        update_rows(run.spark, table, values, condition, branch=branch)


def merge(run: Run, parsed: Merge, target: Target) -> None:
    """Change, delete and add rows by those of a source."""
    table, branch = written_branch(run, parsed.name, target)
    source = _source(run, parsed)
    mine = Side.of(parsed.name, parsed.alias, _TARGET, _column_names(table))
    columns = source.columns
    other = Side.of(_source_name(run, parsed), parsed.source_alias, _SOURCE, columns)
    if mine.names & other.names:
        raise run.statement.error(parsed.source.start, "the table and the source have the same name: add an alias")
    builder = merge_rows(
        source,
        table,
        _evaluated(run, parsed.on, [mine, other]),
        branch=branch,
        schema_mode="evolve" if parsed.evolve else "subset",
        extra_columns="ignore",
    )
    for clause in parsed.clauses:
        _add(run, table, builder, clause, [mine, other], columns, evolve=parsed.evolve)
    with run.as_read(table):
        builder.execute()


def _column_names(table: Table) -> list[str]:
    return [field.name for field in table.schema().fields]


def _source(run: Run, parsed: Merge) -> DataFrame:
    """Return the rows of a merge, of a query or a table."""
    name = _source_name(run, parsed)
    if name is not None:
        return run.named(name)
    edits = run.edits(parsed.source)
    return run.spark.sql(f"SELECT * FROM {run.text(parsed.source, edits)}")  # noqa: S608 - as the statement has it


def _source_name(run: Run, parsed: Merge) -> Name | None:
    """Return the name of the source if it is a table, by which its columns may be called."""
    cursor = Cursor(run.statement)
    while cursor.place < parsed.source.start:
        cursor.next()
    return None if cursor.ahead("(") else cursor.name()


def _add(
    run: Run,
    table: Table,
    builder: MergeBuilder,
    clause: MergeClause,
    sides: Sequence[Side],
    columns: Sequence[str],
    *,
    evolve: bool,
) -> None:
    """Add a clause; in those about one side, columns without a qualifier are of that side."""
    mine, other = sides
    if clause.match == "not matched":
        sides = [replace(mine, known=frozenset()), replace(other, columns=other.known)]
    elif clause.match == "not matched by source":
        sides = [replace(mine, columns=mine.known), replace(other, known=frozenset())]
    condition = None if clause.condition is None else _evaluated(run, clause.condition, sides)
    if clause.action == "delete":
        delete_ = (
            builder.when_matched_delete if clause.match == "matched" else builder.when_not_matched_by_source_delete
        )
        delete_(condition)
    elif clause.assignments is None and evolve:
        everything = (
            builder.when_not_matched_insert_all if clause.action == "insert" else builder.when_matched_update_all
        )
        everything(condition)
    else:
        base = sides[0] if clause.action == "update" else None
        values = (
            _every_column(run, table, columns)
            if clause.assignments is None
            else _assigned(run, table, clause.assignments, sides, base)
        )
        assign = {
            "matched": builder.when_matched_update,
            "not matched": builder.when_not_matched_insert,
            "not matched by source": builder.when_not_matched_by_source_update,
        }
        assign[clause.match](values, condition)


def _every_column(run: Run, table: Table, columns: Sequence[str]) -> dict[str, object]:
    """Return what ``*`` assigns: to each column of the table that of the same name, which the source must have."""
    given = {name if run.case_sensitive else name.lower(): name for name in columns}
    found: dict[str, object] = {}
    for field in table.schema().fields:
        name = given.get(field.name if run.case_sensitive else field.name.lower())
        if name is None:
            at = run.statement.text.find("*")
            raise run.statement.error(max(at, 0), f"the source of * has no column {field.name}: name the columns")
        found[field.name] = F.col(quoted_path([_SOURCE, name]))
    return found


def _evaluated(run: Run, piece: Piece, sides: Sequence[Side]) -> Column:
    """Return an expression as a column over rows that are called after their sides."""
    edits = [*run.edits(piece), *requalified(run.statement, piece, sides)]
    return F.expr(run.text(piece, edits))


def _assigned(
    run: Run, table: Table, assignments: Sequence[Assignment], sides: Sequence[Side], base: Side | None
) -> dict[str, object]:
    """Return the new values by column; those of fields of a struct become a new struct.

    ``base`` is the side whose structs keep their other fields; without one only whole columns can be assigned.
    """
    found: dict[str, object] = {}
    schema = table.schema()
    for one in assignments:
        parts = _path(one.column, sides[0])
        field = schema.find_field(parts[0], run.case_sensitive)
        value = default_column(field) if one.value is None else _evaluated(run, one.value, sides)
        if len(parts) == 1:
            found[field.name] = value
            continue
        if base is None or one.value is None:
            raise run.statement.error(one.column.start, f"expected the name of one column, got {one.column}")
        struct = found.get(field.name, F.col(quoted_path([base.called, field.name])))
        path = ".".join(quoted_name(part) for part in parts[1:])
        found[field.name] = struct.withField(path, value)  # type: ignore[attr-defined]
    return found


def _path(name: Name, side: Side) -> tuple[str, ...]:
    """Return the path of a column, without the name of its table."""
    lowered = tuple(part.lower() for part in name.parts)
    for width in range(len(lowered) - 1, 0, -1):
        if lowered[:width] in side.names:
            return name.parts[width:]
    return name.parts
