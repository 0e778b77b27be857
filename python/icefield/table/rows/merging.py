"""Merges: rows of a source against the rows of a table that have the same key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict

from icefield._core import JoinCondition, RowChanges
from icefield._inputs.frames import check_rows, rows_of
from icefield._support.optional import require
from icefield.errors import ArgumentTypeError, InvalidArgumentError
from icefield.expressions import Expression
from icefield.table.rows.assignments import new_column, one_batch
from icefield.table.update.change import in_lines, warn_of_lost

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.compute as pc
    from typing_extensions import Self

    from icefield._core import MergeClause
    from icefield.arrow import Rows
    from icefield.expressions import RowFilter

__all__ = ["Merge", "MergeResult"]

#: How the columns of rows may differ from the table's.
SchemaMode: TypeAlias = Literal["strict", "subset", "evolve"]

#: A filter of rows, or what is computed of them.
MergeCondition: TypeAlias = "RowFilter | pc.Expression | Callable[[pa.RecordBatch], pa.Array]"


@dataclass(frozen=True)
class MergeResult:
    """What a merge did, or would do with ``dry_run=True``."""

    #: Rows of the table that were changed.
    rows_updated: int
    #: Rows that were added.
    rows_inserted: int
    #: Rows of the table that were deleted.
    rows_deleted: int
    #: Data files removed because all of their rows were.
    files_removed: int
    #: Data files written again without some rows.
    files_rewritten: int
    #: Data files that got a delete file or a deletion vector.
    files_marked: int
    #: Size of the data files written again.
    bytes_rewritten: int
    #: Data files written for the rows changed and added.
    files_added: int = 0
    #: Size of these files.
    bytes_added: int = 0
    #: Size of the data files removed.
    bytes_removed: int = 0

    def __str__(self) -> str:
        rows = f"{self.rows_updated:,} rows updated, {self.rows_inserted:,} inserted, {self.rows_deleted:,} deleted"
        files = f"{self.files_removed:,} removed, {self.files_rewritten:,} rewritten, {self.files_marked:,} marked"
        return f"{rows}; data files: {files} ({self.bytes_rewritten:,} bytes rewritten)"


class Merge:
    """A merge: clauses that say what is done with rows, carried out by `execute`.

    Of the clauses about a row, the first one whose condition holds applies; a row to which none applies stays as it is.

    *Conditions* are filters as for `Table.scan`, in which columns are named ``source.NAME`` and ``target.NAME``, and
    two columns may be compared (``"source.day > target.day"``); expressions of ``pyarrow.compute`` over such columns;
    or functions that take a record batch with such columns and return booleans. A condition holds where it is true.

    Null passes no comparison in a text, as in SQL: neither ``target.x != 5`` nor ``NOT target.x = 5``.

    *Values* are given by column of the table: the text ``"source.NAME"`` or ``"target.NAME"`` stands for that column;
    other texts, numbers and so on are the same for all rows; expressions and functions are as for conditions. A text
    that looks like a column or a call and is neither is refused (``"s.name"``, ``"upper(source.name)"``): as a value it
    is given as ``pyarrow.scalar("s.name")``. All values are computed from the old ones.
    """

    def __init__(
        self,
        once: Callable[[Callable[[RowChanges], MergeResult], MergeResult], MergeResult],
        source: Rows,
        on: str | Iterable[str] | Mapping[str, str],
        *,
        case_sensitive: bool,
        schema_mode: SchemaMode,
        extra_columns: Literal["error", "ignore"],
        memory_limit: int | None,
    ) -> None:
        if isinstance(on, str):
            on = [on]
        pairs = on.items() if isinstance(on, Mapping) else ((name, name) for name in on)
        self._on = list(pairs)
        if conditions := [name for pair in self._on for name in pair if isinstance(name, str) and _is_condition(name)]:
            msg = (
                f"merge: on names columns of the key, and {conditions[0]!r} looks like a condition: write on='k', or "
                "on={'k': 'key'} where the source has another name"
            )
            raise InvalidArgumentError(msg)
        if not self._on:
            raise InvalidArgumentError("merge: name the columns of the key (on)")
        check_rows(source)
        self._once = once
        self._source = source
        self._case_sensitive = case_sensitive
        self._columns = written_columns(schema_mode)
        if extra_columns not in {"error", "ignore"}:
            raise InvalidArgumentError(f"extra_columns must be 'error' or 'ignore', got {extra_columns!r}")
        self._ignore_extra = extra_columns == "ignore"
        #: Texts of expressions of pyarrow, which name columns of the source.
        self._mentions: list[str] = []
        self._memory_limit = memory_limit
        self._clauses: list[MergeClause] = []
        self._finished = False

    def when_matched_update(self, assignments: Mapping[str, object], condition: MergeCondition | None = None) -> Self:
        """Change rows of the table whose key the source has.

        Parameters
        ----------
        assignments
            New values by column; other columns keep theirs.
        condition
            For which of these rows; for all of them without it.

        """
        return self._add("when_matched_update", "matched", condition, assignments)

    def when_matched_update_all(self, condition: MergeCondition | None = None) -> Self:
        """Change rows of the table whose key the source has: all columns that the source has too."""
        return self._add("when_matched_update_all", "matched", condition, "all")

    def when_matched_delete(self, condition: MergeCondition | None = None) -> Self:
        """Delete rows of the table whose key the source has."""
        return self._add("when_matched_delete", "matched", condition, "delete")

    def when_not_matched_insert(
        self, assignments: Mapping[str, object], condition: MergeCondition | None = None
    ) -> Self:
        """Add a row for each row of the source whose key the table does not have.

        Columns without a value get their write default or null. There is no row of the table here, so conditions and
        values are about ``source.NAME`` alone.
        """
        return self._add("when_not_matched_insert", "not-matched", condition, assignments)

    def when_not_matched_insert_all(self, condition: MergeCondition | None = None) -> Self:
        """Add the rows of the source whose key the table does not have: all columns that the source has."""
        return self._add("when_not_matched_insert_all", "not-matched", condition, "all")

    def when_not_matched_by_source_update(
        self, assignments: Mapping[str, object], condition: MergeCondition | None = None
    ) -> Self:
        """Change rows of the table whose key the source does not have.

        There is no row of the source here, so conditions and values are about ``target.NAME`` alone. Without a
        condition, or with one that is not a filter, all of the table is read.
        """
        return self._add("when_not_matched_by_source_update", "not-matched-by-source", condition, assignments)

    def when_not_matched_by_source_delete(self, condition: MergeCondition | None = None) -> Self:
        """Delete rows of the table whose key the source does not have."""
        return self._add("when_not_matched_by_source_delete", "not-matched-by-source", condition, "delete")

    def execute(self) -> MergeResult:
        """Carry the merge out, in one snapshot; within a transaction it becomes part of that.

        Raises
        ------
        InvalidArgumentError
            If a clause is invalid, or clauses apply to a row of the table for several rows of the source. A merge whose
            only clause about matches is `when_matched_delete` without a condition deletes such a row.
        ValidationError
            If a column does not fit.
        ValidationException
            If the change conflicts with another commit; the error names it.
        CommitFailedException
            If every attempt lost to another commit; the written files were deleted.
        CommitStateUnknownException
            If the outcome is unknown; nothing was deleted.

        """
        if self._finished:
            raise InvalidArgumentError("this merge was carried out already; create a new one")
        self._finished = True
        return self._once(self._made, MergeResult(0, 0, 0, 0, 0, 0, 0))

    def _made(self, changes: RowChanges) -> MergeResult:
        updated, inserted, deleted, counts = changes.merge(
            rows_of(self._source),
            self._on,
            self._clauses,
            case_sensitive=self._case_sensitive,
            memory_limit=self._memory_limit,
            mentions=self._mentions,
            ignore_extra=self._ignore_extra,
            **self._columns,
        )
        return MergeResult(updated, inserted, deleted, *counts[2:])

    def _add(
        self,
        name: str,
        when: str,
        condition: MergeCondition | None,
        action: Mapping[str, object] | Literal["all", "delete"],
    ) -> Self:
        is_filter = isinstance(condition, (str, Expression))
        self._mentions += [str(condition)] if _is_expression(condition) else []
        clause: MergeClause = {
            "name": name,
            "when": when,
            "filter": JoinCondition(condition) if is_filter else None,
            "condition": None if condition is None or is_filter else _Condition(name, condition),
            "action": "columns",
            "taken": [],
            "texts": [],
            "computed": [],
            "function": None,
        }
        if isinstance(action, Mapping):
            computed = {column: value for column, value in action.items() if not _is_column(value)}
            clause["taken"] = [(column, str(value)) for column, value in action.items() if column not in computed]
            clause["texts"] = [(column, value) for column, value in computed.items() if isinstance(value, str)]
            clause["computed"] = list(computed)
            self._mentions += [str(value) for value in computed.values() if _is_expression(value)]
            clause["function"] = _Values(name, computed) if computed else None
        elif name.endswith(("_all", "_delete")):
            clause["action"] = action
        else:
            msg = f"{name}: expected new values by column, got {type(action).__name__}"
            raise ArgumentTypeError(msg)
        self._clauses.append(clause)
        return self

    def __repr__(self) -> str:
        state = "made" if self._finished else "not executed"
        key = ", ".join(mine if mine == other else f"{mine} = source.{other}" for mine, other in self._on)
        return in_lines(f"Merge on {key}, {state}", (_shown(clause) for clause in self._clauses))

    def __del__(self) -> None:
        if not getattr(self, "_finished", True) and self._clauses:
            warn_of_lost(self, "execute()")


class _Condition:
    """A condition that pyarrow or a function decides."""

    def __init__(self, name: str, condition: object) -> None:
        self._name = name
        self._condition = condition

    def __call__(self, rows: pa.Table, _: pa.Schema | None) -> pa.Array:
        import pyarrow as pa

        field = pa.field("condition", pa.bool_())
        return new_column(one_batch(rows), field, self._condition, what=f"{self._name}: its condition")


class _Values:
    """New values of columns."""

    def __init__(self, name: str, assignments: Mapping[str, object]) -> None:
        require("pyarrow")
        self._name = name
        self._assignments = assignments

    def __call__(self, rows: pa.Table, schema: pa.Schema | None) -> pa.Array:
        import pyarrow as pa

        batch = one_batch(rows)
        fields = list(schema or ())
        arrays = [
            new_column(batch, field, self._assignments[field.name], what=f"{self._name}: the column {field.name!r}")
            for field in fields
        ]
        return pa.StructArray.from_arrays(arrays, fields=fields)


def _shown(clause: MergeClause) -> str:
    condition = clause["filter"] or clause["condition"]
    text = f" if {condition!r}" if condition is not None else ""
    columns = [name for name, _ in clause["taken"]] + list(clause["computed"])
    return f"{clause['name']}{': ' if columns else ''}{', '.join(columns)}{text}"


def _is_column(value: object) -> bool:
    return isinstance(value, str) and value.split(".")[0] in {"source", "target"} and "." in value


def _is_condition(name: str) -> bool:
    return bool(re.match(r"\s*[\w.]+\s*(=|==|<=>|!=|<>|<=?|>=?)\s*\w", name)) and "." in name


def _is_expression(value: object) -> bool:
    return type(value).__module__.startswith("pyarrow.") and type(value).__name__ == "Expression"


class WrittenColumns(TypedDict):
    """Keywords of changes of the core that write rows."""

    allow_missing: bool
    evolve: bool


def written_columns(schema_mode: SchemaMode) -> WrittenColumns:
    """Return the keywords that stand for a schema mode.

    Raises
    ------
    InvalidArgumentError
        If the schema mode is unknown.

    """
    if schema_mode not in {"strict", "subset", "evolve"}:
        raise InvalidArgumentError(f"schema_mode must be 'strict', 'subset' or 'evolve', got {schema_mode!r}")
    return {"allow_missing": schema_mode != "strict", "evolve": schema_mode == "evolve"}
