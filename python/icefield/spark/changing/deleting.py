"""Deletes and updates of rows by a condition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pyspark.sql.functions as F  # noqa: N812

from icefield.errors import InvalidArgumentError
from icefield.expressions import AlwaysFalse
from icefield.spark.changing.conditions import TARGET, Condition, found
from icefield.spark.changing.outcomes import changed, counted
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
from icefield.spark.changing.running import ACTION, DELETE, UPDATE, Removals, run
from icefield.spark.changing.values import converted, value_column
from icefield.spark.columns.names import quoted
from icefield.spark.columns.types import readable_columns, spark_schema
from icefield.spark.tables.opening import keywords_of
from icefield.table import RowsChanged
from icefield.table.update.outcomes import NOTHING_CHANGED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.spark.writes.distributing import Distribution
    from icefield.table import Table
    from icefield.table.rows import Isolation, RowMode

__all__ = ["delete", "update"]


def delete(
    spark: SparkSession,
    table: Table | str,
    condition: Condition,
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    mode: RowMode | None = None,
    isolation: Isolation | None = None,
    memory_limit: int | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    catalog: str | None = None,
    **properties: str,
) -> RowsChanged:
    """Delete the rows of a table for which a condition holds, in one snapshot.

    Parameters
    ----------
    spark
        The session.
    table
        A table, which is refreshed, or ``"namespace.name"`` in ``catalog``.
    condition
        Text of Spark SQL or a ``Column`` over the columns of the table, which ``target.`` may precede; or an expression
        of `icefield.expressions`. As in SQL, a row stays for which it is null; ``"true"`` deletes all rows. What of it
        Iceberg has as a filter is used to skip files, and to find other commits that conflict. Where that is all of
        it, rows are found in Rust, and files all of whose rows match are removed unread.
    branch, snapshot_properties, idempotency_key, catalog, **properties
        As for `icefield.spark.append`.
    mode, isolation
        As for `icefield.Table.delete`.
    memory_limit
        Bytes that a task may take, about; 512 MiB by default.
    dry_run
        Only count the rows: the numbers of files are 0.

    Raises
    ------
    ValidationException
        If the change conflicts with another commit; the error names it, and the written files were deleted.
    CommitFailedException, CommitStateUnknownException, TableReplacedError
        As for `icefield.spark.append`.

    """
    if condition is None:
        raise InvalidArgumentError('delete: condition is None: pass "true" to delete all rows of the table')
    options = ChangeOptions(
        branch=branch,
        snapshot_properties=snapshot_properties,
        mode=mode,
        isolation=isolation,
        memory_limit=memory_limit,
        idempotency_key=idempotency_key,
        dry_run=dry_run,
    )
    target = Target.of(spark, table, options, catalog, properties, keywords_of(delete))
    if target.made_before:
        return NOTHING_CHANGED
    known = found(spark, condition, target.table.schema())
    if isinstance(known.filter, AlwaysFalse):
        return NOTHING_CHANGED
    if known.column is None and not dry_run:
        # Rust finds the rows, and files all of whose rows match are in no task.
        plan = target.plan("delete", known.filter, exact=True)
        return changed(run(target, plan, None, removals=Removals(target, plan)))
    plan = target.plan("delete", known.filter, exact=False)
    columns = known.columns
    if columns is None:
        columns = frozenset(readable_columns(target.table.schema()).names)
    rows = target_rows(target, plan, columns).alias(TARGET)
    if known.column is not None:
        rows = rows.where(known.column)
    actions = rows.select(FILE, POSITION, F.lit(DELETE).alias(ACTION))
    return counted(actions) if dry_run else changed(run(target, plan, actions))


def update(
    spark: SparkSession,
    table: Table | str,
    assignments: Mapping[str, object],
    condition: Condition | None = None,
    *,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    mode: RowMode | None = None,
    isolation: Isolation | None = None,
    distribution: Distribution | None = None,
    memory_limit: int | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    catalog: str | None = None,
    **properties: str,
) -> RowsChanged:
    """Change values of the rows of a table for which a condition holds, in one snapshot.

    Parameters
    ----------
    spark, table, branch, snapshot_properties, memory_limit, idempotency_key, dry_run, catalog, **properties
        As for `delete`.
    mode, isolation
        As for `icefield.Table.update`.
    assignments
        New values by column: text of Spark SQL (``"upper(name)"``, ``"'text'"``) or a ``Column`` over the old values of
        the row, or another value of Python (``5``, a date, None). They are converted as Spark's ``UPDATE`` does:
        numbers to narrower ones if they fit, text to numbers never.
    condition
        Which rows, as for `delete`; all without one.
    distribution
        How changed rows are brought together, as for `icefield.spark.append`; ``"range"`` is ``"hash"`` here, because
        ranges are found by computing the rows twice.

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
    target = Target.of(spark, table, options, catalog, properties, keywords_of(update))
    if target.made_before:
        return NOTHING_CHANGED
    schema = target.table.schema()
    names = [field.name for field in schema.fields]
    values = {column_of(name, names, spark, "update"): value_column(value) for name, value in assignments.items()}
    if not values:
        raise InvalidArgumentError("update: there is no column to change")
    refuse_cut(schema, set(names) - set(values))
    known = found(spark, condition, schema)
    if isinstance(known.filter, AlwaysFalse):
        return NOTHING_CHANGED
    # Not exact: the rows of a file all of whose rows match are needed too.
    plan = target.plan("update", known.filter, exact=False)
    rows = target_rows(target, plan).alias(TARGET)
    if known.column is not None:
        rows = rows.where(known.column)
    kept = [FILE, POSITION, *([ROW_ID] if target.has_lineage else [])]
    new = rows.select(*(values.get(name, F.col(quoted(name))).alias(name) for name in names), *kept)
    actions = converted(new, spark_schema(schema), kept).withColumn(ACTION, F.lit(UPDATE))
    return counted(actions) if dry_run else changed(run(target, plan, actions))
