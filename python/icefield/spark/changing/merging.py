"""Merges: rows of a DataFrame against the rows of a table, joined by Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Literal

import pyspark.sql.functions as F  # noqa: N812
from pyspark.sql import Column
from pyspark.sql import types as st

from icefield.errors import ArgumentTypeError, InvalidArgumentError, ValidationError
from icefield.expressions import AlwaysFalse, AlwaysTrue, Expression, Or
from icefield.spark.changing.conditions import TARGET, as_column, filter_of_join, found
from icefield.spark.changing.outcomes import changed, counts_of
from icefield.spark.changing.planned import (
    FILE,
    POSITION,
    ROW_ID,
    ChangeOptions,
    Target,
    column_of,
    refuse_cut,
    target_rows,
)
from icefield.spark.changing.running import ACTION, DELETE, INSERT, TWICE, UPDATE, run
from icefield.spark.changing.values import converted, defaults, value_column
from icefield.spark.columns.letter_case import named_as_table
from icefield.spark.columns.names import quoted, quoted_path
from icefield.spark.columns.types import arrow_schema, readable_columns, spark_schema
from icefield.spark.sessions.session import estimated_bytes
from icefield.spark.tables.opening import keywords_of
from icefield.table.rows.merging import MergeResult, SchemaMode, written_columns
from icefield.table.update.change import warn_of_lost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from typing_extensions import Self

    from icefield.schema import Schema
    from icefield.spark.writes.distributing import Distribution
    from icefield.table import Table
    from icefield.table.rows import Isolation, RowMode

__all__ = ["Merge", "MergeRules", "merge"]

SOURCE = "source"
#: Columns that tell where a joined row is from, and which clause applies to it.
_IN_TARGET, _IN_SOURCE, _CLAUSE = "_icefield_target", "_icefield_source", "_icefield_clause"
#: A column of a source that tells how many rows have its key.
COUNT = "_icefield_count"

When = Literal["matched", "not-matched", "not-matched-by-source"]


@dataclass(frozen=True)
class Clause:
    """A clause: for which rows it is, and what it does with them."""

    name: str
    when: When
    condition: Column | None
    #: The condition as it was given: of a condition about the table, filters can be made.
    given: str | Column | Expression | None
    action: int
    #: New values by column; None for all columns of the source.
    values: Mapping[str, object] | None = None


@dataclass(frozen=True)
class MergeRules:
    """What differs between merges and upserts."""

    schema_mode: SchemaMode = "subset"
    extra_columns: Literal["error", "ignore"] = "error"
    #: Whether null is equal to null in the key.
    null_safe: bool = False
    #: What is said of a key that the source has twice, if it must not.
    twice: str = ""
    what: str = "merge"


def merge(
    source: DataFrame,
    table: Table | str,
    on: str | Column | Iterable[str] | Mapping[str, str],
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    mode: RowMode | None = None,
    isolation: Isolation | None = None,
    distribution: Distribution | None = None,
    schema_mode: SchemaMode = "subset",
    extra_columns: Literal["error", "ignore"] = "error",
    memory_limit: int | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    catalog: str | None = None,
    **properties: str,
) -> Merge:
    """Change, delete and add rows by those of a DataFrame, in one snapshot: SQL's ``MERGE INTO``.

    Return a builder, whose clauses say what is done; its `execute` does it.

    Parameters
    ----------
    source
        The rows. They are computed once, whatever is done with them.
    table
        A table, which is refreshed by `execute`, or ``"namespace.name"`` in ``catalog``.
    on
        The columns of the key: a name, several, or those of the source by those of the table. Null equals nothing.
        Or a condition: a ``Column``, or text of Spark SQL with ``target.`` and ``source.``
        (``"target.id = source.id AND target.day >= '2026-01-01'"``). What it says of the table alone skips files.
    branch, snapshot_properties, idempotency_key, catalog, **properties
        As for `icefield.spark.append`.
    distribution
        As for `icefield.spark.update`.
    mode, isolation
        As for `icefield.Table.merge`.
    schema_mode, extra_columns
        As for `icefield.Table.merge`.
    memory_limit
        Bytes that a task may take, about; 512 MiB by default. The join has Spark's own memory.
    dry_run
        Only count the rows: the numbers of files are 0.

    """
    options = ChangeOptions(
        branch=branch,
        snapshot_properties=snapshot_properties,
        mode=mode,
        isolation=isolation,
        distribution=distribution,
        memory_limit=memory_limit,
        idempotency_key=idempotency_key,
        dry_run=dry_run,
    )
    written_columns(schema_mode)
    if extra_columns not in {"error", "ignore"}:
        raise InvalidArgumentError(f"extra_columns must be 'error' or 'ignore', got {extra_columns!r}")
    rules = MergeRules(schema_mode, extra_columns)
    spark = source.sparkSession

    def opening() -> Target:
        return Target.of(spark, table, options, catalog, properties, keywords_of(merge))

    return Merge(source, opening, on, rules)


class Merge:
    """A merge by the executors: clauses that say what is done with rows, carried out by `execute`.

    Of the clauses about a row, the first one whose condition holds applies; a row to which none applies stays as it is.

    *Conditions* are text of Spark SQL (``"source.day > target.day AND upper(source.name) <> 'X'"``) or a ``Column``
    (``F.col("source.day")``). *Values* are given by column of the table, as text of Spark SQL (``"source.name"``,
    ``"target.n + 1"``, ``"'text'"``), as a ``Column``, or as another value of Python. So a text is an expression here,
    where `icefield.Table.merge` takes texts other than columns for values. All values are computed from the old ones.
    """

    def __init__(
        self,
        source: DataFrame,
        opening: Callable[[], Target],
        on: str | Column | Iterable[str] | Mapping[str, str],
        rules: MergeRules,
    ) -> None:
        self._source = source
        self._opening = opening
        self._on = on if isinstance(on, (str, Column, Mapping)) else list(on)
        if not isinstance(self._on, Column) and not self._on:
            raise InvalidArgumentError(f"{rules.what}: name the columns of the key (on)")
        self._rules = rules
        self._clauses: list[Clause] = []
        self._finished = False

    def when_matched_update(self, assignments: Mapping[str, object], condition: str | Column | None = None) -> Self:
        """Change rows of the table that a row of the source matches; other columns keep their values."""
        return self._add("when_matched_update", "matched", condition, UPDATE, assignments)

    def when_matched_update_all(self, condition: str | Column | None = None) -> Self:
        """Change rows of the table that a row of the source matches: all columns that the source has too."""
        return self._add("when_matched_update_all", "matched", condition, UPDATE)

    def when_matched_delete(self, condition: str | Column | None = None) -> Self:
        """Delete rows of the table that a row of the source matches."""
        return self._add("when_matched_delete", "matched", condition, DELETE)

    def when_not_matched_insert(self, assignments: Mapping[str, object], condition: str | Column | None = None) -> Self:
        """Add a row for each row of the source that matches none; columns without a value get their default or null."""
        return self._add("when_not_matched_insert", "not-matched", condition, INSERT, assignments)

    def when_not_matched_insert_all(self, condition: str | Column | None = None) -> Self:
        """Add the rows of the source that match none: all columns that the source has."""
        return self._add("when_not_matched_insert_all", "not-matched", condition, INSERT)

    def when_not_matched_by_source_update(
        self, assignments: Mapping[str, object], condition: str | Column | None = None
    ) -> Self:
        """Change rows of the table that no row of the source matches; all of the table is read without a condition."""
        return self._add("when_not_matched_by_source_update", "not-matched-by-source", condition, UPDATE, assignments)

    def when_not_matched_by_source_delete(self, condition: str | Column | None = None) -> Self:
        """Delete rows of the table that no row of the source matches."""
        return self._add("when_not_matched_by_source_delete", "not-matched-by-source", condition, DELETE)

    def execute(self) -> MergeResult:
        """Carry the merge out, in one snapshot.

        Returns
        -------
        MergeResult
            As that of `icefield.table.rows.merging.Merge.execute`.

        Raises
        ------
        InvalidArgumentError
            If a clause is invalid, or clauses apply to a row of the table for several rows of the source, unless all
            that is done with matches is to delete them.
        ValidationException
            If the change conflicts with another commit.
        ValidationError
            If a column does not fit.
        CommitFailedException, CommitStateUnknownException, TableReplacedError
            As for `icefield.spark.append`.

        """
        if self._finished:
            raise InvalidArgumentError(f"this {self._rules.what} was carried out already; create a new one")
        if not self._clauses:
            raise InvalidArgumentError(f"{self._rules.what}: there is no clause")
        self._finished = True
        target = self._opening()
        if target.made_before:
            return MergeResult(0, 0, 0, 0, 0, 0, 0)
        return _Merging(target, self._source, self._on, self._rules, self._clauses).execute()

    def _add(
        self,
        name: str,
        when: When,
        condition: str | Column | None,
        action: int,
        assignments: Mapping[str, object] | None = None,
    ) -> Self:
        takes_values = not name.endswith(("_all", "_delete"))
        if takes_values and not isinstance(assignments, Mapping):
            raise ArgumentTypeError(f"{name}: expected new values by column, got {type(assignments).__name__}")
        column = None if condition is None else as_column(condition, f"{name}: its condition")
        self._clauses.append(Clause(name, when, column, condition, action, assignments))
        return self

    def __repr__(self) -> str:
        state = "made" if self._finished else "not executed"
        return f"Merge on {self._on}, {state}: {', '.join(clause.name for clause in self._clauses)}"

    def __del__(self) -> None:
        if not getattr(self, "_finished", True) and self._clauses:
            warn_of_lost(self, "execute()")


class _Merging:
    """A merge that is carried out."""

    def __init__(
        self,
        target: Target,
        source: DataFrame,
        on: str | Column | list[str] | Mapping[str, str],
        rules: MergeRules,
        clauses: list[Clause],
    ) -> None:
        self._target = target
        self._rules = rules
        self._clauses = clauses
        self._spark = target.spark
        self._table_schema = target.table.schema()
        source = named_as_table(source, self._table_schema)
        self._source_names = [name for name in source.columns if name != COUNT]
        self._source = source.withColumn(_IN_SOURCE, F.lit(True)).alias(SOURCE)
        self._on = self._condition(on)
        self._text_of_on = str(on)
        takes_all = any(clause.values is None and clause.action != DELETE for clause in clauses)
        self._evolves = takes_all and written_columns(rules.schema_mode)["evolve"]
        self._schema = self._written_schema(source.select(*(F.col(quoted(name)) for name in self._source_names)))
        self._names = [field.name for field in self._schema.fields]
        if takes_all:
            self._check_columns()

    def execute(self) -> MergeResult:
        """Carry the merge out."""
        target, rules = self._target, self._rules
        writes = any(clause.action != DELETE for clause in self._clauses)
        widened = arrow_schema(self._source.drop(_IN_SOURCE, COUNT).schema) if self._evolves else None
        row_filter = self._filter()
        plan = target.plan("merge", row_filter, exact=False, widened_by=widened)
        # Rows that are not written again need no columns but those of conditions.
        columns = None if writes else readable_columns(self._table_schema).names
        rows = target_rows(target, plan, columns).withColumn(_IN_TARGET, F.lit(True)).alias(TARGET)
        actions = self._actions(rows, writes=writes)
        if target.dry_run:
            updated, deleted, inserted = counts_of(actions)
            return MergeResult(updated, inserted, deleted, 0, 0, 0, 0)
        matched = [clause for clause in self._clauses if clause.when == "matched"]
        deletes_all = len(matched) == 1 and matched[0].action == DELETE and matched[0].condition is None
        inserts = any(clause.action == INSERT for clause in self._clauses)
        size = estimated_bytes(self._source) if inserts else 0
        done = run(target, plan, actions, unique=not deletes_all, twice=rules.twice, inserted_bytes=size)
        made = changed(done)
        return MergeResult(
            done.updated if made.rows_added or made.rows_removed else 0,
            done.inserted if made.rows_added else 0,
            done.deleted if made.rows_removed else 0,
            made.files_removed,
            made.files_rewritten,
            made.files_marked,
            made.bytes_rewritten,
            files_added=made.files_added,
            bytes_added=made.bytes_added,
            bytes_removed=made.bytes_removed,
        )

    def _condition(self, on: str | Column | list[str] | Mapping[str, str]) -> Column:
        """Return the condition of the join."""
        if isinstance(on, Column):
            return on
        if isinstance(on, str) and on not in self._source_names and re.search(r"[=<>()]|\s", on):
            return F.expr(on)
        pairs = (
            on.items() if isinstance(on, Mapping) else ((name, name) for name in ([on] if isinstance(on, str) else on))
        )
        return reduce(and_, (self._equal(mine, other) for mine, other in pairs))

    def _equal(self, mine: str, other: str) -> Column:
        left, right = self._key(TARGET, mine), self._key(SOURCE, other)
        return left.eqNullSafe(right) if self._rules.null_safe else left == right

    def _key(self, side: str, name: str) -> Column:
        names = [field.name for field in self._table_schema.fields] if side == TARGET else self._source_names
        path = [name] if name in names else name.split(".")
        if path[0] not in names:
            path = [column_of(path[0], names, self._spark, self._rules.what), *path[1:]] if side == TARGET else path
        if side == SOURCE and not self._in_source(path[0]):
            raise ValidationError(f"column {name}: is a column of the key, and the data lack it")
        return F.col(quoted_path([side, *path]))

    def _in_source(self, name: str) -> str | None:
        """Return the column of the source with a name, in the session's way."""
        with suppress(InvalidArgumentError):
            return column_of(name, self._source_names, self._spark, "")
        return None

    def _written_schema(self, source: DataFrame) -> Schema:
        """Return the columns that are written, those included that the commit adds."""
        if not self._evolves:
            return self._table_schema
        return self._target.table.new_write(widened_by=arrow_schema(source.schema)).schema

    def _check_columns(self) -> None:
        """Refuse columns that only one side has, as the schema mode and ``extra_columns`` say."""
        given = [name for name in (self._in_source(one) for one in self._names) if name is not None]
        if self._rules.schema_mode == "strict":
            missing = [name for name in self._names if self._in_source(name) is None]
            if missing:
                raise ValidationError(f"column {missing[0]}: missing in the data; with schema_mode='subset' it may be")
        if self._rules.extra_columns == "ignore" and self._rules.schema_mode != "strict":
            return
        said = " ".join([self._text_of_on, *(_clause_text(clause) for clause in self._clauses)])
        for name in self._source_names:
            if name not in given and not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", said):
                raise ValidationError(
                    f"column {name}: not in the table: leave it out, or add it to the table; "
                    'extra_columns="ignore" merges without it'
                )

    def _filter(self) -> Expression | None:
        """Return a filter that each row of the table matches that the merge is about."""
        schema = self._table_schema
        about: Expression = AlwaysFalse()
        if any(clause.when != "not-matched-by-source" for clause in self._clauses):
            about = filter_of_join(self._source, self._on, schema)
        for clause in self._clauses:
            if clause.when == "not-matched-by-source":
                mine = found(self._spark, clause.given, schema).filter
                about = AlwaysTrue() if isinstance(mine, AlwaysTrue) else Or(about, mine)
            if isinstance(about, AlwaysTrue):
                return None
        return about

    def _actions(self, rows: DataFrame, *, writes: bool) -> DataFrame:
        """Return a row for each row that is changed, deleted or added."""
        whens = {clause.when for clause in self._clauses}
        how = {
            frozenset({"matched"}): "inner",
            frozenset({"not-matched"}): "right_outer",
            frozenset({"matched", "not-matched"}): "right_outer",
            frozenset({"not-matched-by-source"}): "left_outer",
            frozenset({"matched", "not-matched-by-source"}): "left_outer",
        }.get(frozenset(whens), "full_outer")
        joined = rows.join(self._source, self._on, how)
        choice = self._choice()
        chosen = joined.withColumn(_CLAUSE, choice).where(F.col(_CLAUSE) > 0)
        return self._with_values(chosen) if writes else chosen.select(*_places(FILE, POSITION), self._action())

    def _choice(self) -> Column:
        """Return the number of the clause that applies to a joined row: from 1, or 0."""
        sides: dict[When, Column] = {
            "matched": F.col(_IN_TARGET).isNotNull() & F.col(_IN_SOURCE).isNotNull(),
            "not-matched": F.col(_IN_TARGET).isNull(),
            "not-matched-by-source": F.col(_IN_SOURCE).isNull(),
        }
        # A key that occurs twice comes before all clauses.
        twice = F.col(_IN_SOURCE).isNotNull() & (F.col(f"{SOURCE}.{COUNT}") > 1) if self._rules.twice else F.lit(False)
        choice = F.when(twice, F.lit(len(self._clauses) + 1))
        for number, clause in enumerate(self._clauses, 1):
            applies = sides[clause.when] if clause.condition is None else sides[clause.when] & clause.condition
            choice = choice.when(applies, F.lit(number))
        return choice.otherwise(F.lit(0))

    def _action(self) -> Column:
        codes = [clause.action for clause in self._clauses] + [TWICE]
        return F.element_at(F.array(*map(F.lit, codes)), F.col(_CLAUSE)).alias(ACTION)

    def _with_values(self, chosen: DataFrame) -> DataFrame:
        """Add the new values of rows: first those of each clause in their own types, then the one that applies."""
        clauses = {number: clause for number, clause in enumerate(self._clauses, 1) if clause.action != DELETE}
        types = {field.name: field for field in spark_schema(self._schema).fields}
        old = {field.name for field in self._table_schema.fields}
        updates = any(clause.action == UPDATE for clause in clauses.values())
        values = _Values(types)
        kept = {}
        assigned = {number: self._values(clause) for number, clause in clauses.items()}
        names = [name for name in self._names if updates or any(name in given for given in assigned.values())]
        if updates:
            never = {
                name
                for name in names
                if not all(name in assigned[number] for number, clause in clauses.items() if clause.action == UPDATE)
            }
            refuse_cut(self._table_schema, never)
            kept = {name: values.add(F.col(quoted_path([TARGET, name])), name) for name in names if name in old}
        chosen_by: dict[str, list[tuple[int, str | None]]] = {name: [] for name in names}
        fallback = defaults(self._schema)
        for number, clause in clauses.items():
            for name in names:
                if name in assigned[number]:
                    lacks = clause.action == INSERT and clause.values is None and self._rules.schema_mode != "strict"
                    added = values.add(assigned[number][name], name, number, may_lack=lacks)
                    chosen_by[name].append((number, added))
                elif clause.action == INSERT and name in fallback:
                    chosen_by[name].append((number, values.add(fallback[name], name, number)))
                elif clause.action == INSERT:
                    chosen_by[name].append((number, None))
        places = [FILE, POSITION, *([ROW_ID] if self._target.has_lineage else [])]
        valued = values.of(chosen, _places(*places), [*places, _CLAUSE])
        columns = []
        for name in names:
            value = kept.get(name)
            for number, label in reversed(chosen_by[name]):
                value = _chosen(number, label, value)
            column = F.lit(None).cast(types[name].dataType) if value is None else F.expr(value)
            columns.append(column.alias(name))
        return valued.select(*columns, *places, self._action())

    def _values(self, clause: Clause) -> dict[str, Column]:
        """Return the new values of a clause by column."""
        if clause.values is not None:
            return {
                column_of(name, self._names, self._spark, clause.name): value_column(value)
                for name, value in clause.values.items()
            }
        given = {name: self._in_source(name) for name in self._names}
        return {name: F.col(quoted_path([SOURCE, other])) for name, other in given.items() if other is not None}


class _Values:
    """Values of clauses, each in a column of its own, which become values of the table's types."""

    def __init__(self, types: Mapping[str, st.StructField]) -> None:
        self._types = types
        self._raw: list[Column] = []
        self._wanted: list[st.StructField] = []
        #: The columns of the table by labels.
        self._called: dict[str, str] = {}
        self._may_lack: set[str] = set()
        self._conditions: dict[int, Column] = {}

    def add(self, value: Column, name: str, number: int | None = None, *, may_lack: bool = True) -> str:
        """Add the value that a clause has for a column, or the old one; return its label.

        ``may_lack`` tells whether a struct may lack optional fields: one of a new row, as in appends, and an old one,
        to which the commit adds fields.
        """
        label = f"v{len(self._raw)}"
        # The value of another clause may fail for a row: a division, a number that does not fit.
        own = value if number is None else F.when(self._applies(number), value)
        self._raw.append(own.alias(label))
        self._wanted.append(st.StructField(label, self._types[name].dataType))
        self._called[label] = name
        if may_lack:
            self._may_lack.add(label)
        return label

    def _applies(self, number: int) -> Column:
        """Return whether a clause applies; made once, as each call of a Column is several to the Java machine."""
        if number not in self._conditions:
            self._conditions[number] = F.col(_CLAUSE) == number
        return self._conditions[number]

    def of(self, chosen: DataFrame, places: list[Column], others: list[str]) -> DataFrame:
        """Return the values for rows to which clauses apply, by label."""
        valued = chosen.select(*self._raw, *places, _CLAUSE)
        wanted = st.StructType(self._wanted)
        return converted(valued, wanted, others, called=self._called, may_lack=self._may_lack)


def _places(*names: str) -> list[Column]:
    """Return where rows of the table are; a source may have columns of these names."""
    return [F.col(f"{TARGET}.{name}").alias(name) for name in names]


def _chosen(number: int, label: str | None, others: str | None) -> str | None:
    """Return the value of a clause, null without a label, and others for other clauses, as text of Spark SQL.

    A null is not written as one: Spark would cast it, and casts nothing to some types that it reads and writes.
    """
    if label is None:
        return None if others is None else f"CASE WHEN {_CLAUSE} <> {number} THEN {others} END"
    rest = "" if others is None else f" ELSE {others}"
    return f"CASE WHEN {_CLAUSE} = {number} THEN {label}{rest} END"


def _clause_text(clause: Clause) -> str:
    values = [str(value) for value in (clause.values or {}).values() if isinstance(value, (str, Column))]
    return " ".join([*values, "" if clause.given is None else str(clause.given)])
