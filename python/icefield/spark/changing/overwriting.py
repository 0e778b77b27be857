"""Writes of DataFrames: appended, or in place of rows or partitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import pyspark.sql.functions as F  # noqa: N812

from icefield.errors import InvalidArgumentError
from icefield.expressions import AlwaysTrue
from icefield.spark.changing.outcomes import changed
from icefield.spark.changing.planned import ChangeOptions, Target
from icefield.spark.changing.running import COUNTS, Removals, run
from icefield.spark.columns.letter_case import named_as_table
from icefield.spark.columns.types import arrow_schema
from icefield.spark.tables.opening import keywords_of
from icefield.spark.writes.writing import Write, WriteSettings, counted
from icefield.table import RowsChanged
from icefield.table.rows.merging import SchemaMode, written_columns
from icefield.table.update.outcomes import NOTHING_CHANGED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from icefield.expressions import RowFilter
    from icefield.spark.writes.distributing import Distribution
    from icefield.table import Table
    from icefield.table.rows import Isolation, RowMode

__all__ = ["write"]


def write(
    df: DataFrame,
    table: Table | str,
    mode: Literal["append", "overwrite", "dynamic"] = "append",
    *,
    filter: RowFilter | None = None,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    row_mode: RowMode | None = None,
    isolation: Isolation | None = None,
    distribution: Distribution | None = None,
    schema_mode: SchemaMode = "subset",
    memory_limit: int | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    catalog: str | None = None,
    **properties: str,
) -> RowsChanged:
    """Write the rows of a DataFrame to a table, in one snapshot: beside its rows, or in place of some.

    Parameters
    ----------
    df
        The rows. Columns are found by name, in any order; optional columns may be missing.
    table
        A table, which is refreshed, or ``"namespace.name"`` in ``catalog``.
    mode
        ``"append"`` adds the rows. ``"overwrite"`` deletes the rows that ``filter`` matches, or all, as
        `icefield.Table.overwrite` does. ``"dynamic"`` replaces the partitions that the rows are in, as
        `icefield.Table.dynamic_partition_overwrite` does; without rows nothing happens.
    filter
        Which rows an overwrite deletes, as text or as an expression of `icefield.expressions`, as
        `icefield.spark.read` takes it. Files all of whose rows match are removed unread.
    row_mode, isolation
        As ``mode`` and ``isolation`` of `icefield.Table.delete`; an append has neither, and ``"dynamic"`` no mode.
    branch, snapshot_properties, distribution, schema_mode, memory_limit, idempotency_key, catalog, **properties
        As for `icefield.spark.append`.
    dry_run
        Only run the job and count; of an overwrite, rows and files that are removed are counted by
        `icefield.Table.delete`, in the driver.

    Raises
    ------
    ValidationException
        If the change conflicts with another commit; the error names it, and the written files were deleted.
    ValidationError, CommitFailedException, CommitStateUnknownException, TableReplacedError
        As for `icefield.spark.append`.

    """
    if mode not in {"append", "overwrite", "dynamic"}:
        raise InvalidArgumentError(f"mode must be 'append', 'overwrite' or 'dynamic', got {mode!r}")
    for name, value, modes in (
        ("filter", filter, ("overwrite",)),
        ("row_mode", row_mode, ("overwrite",)),
        ("isolation", isolation, ("overwrite", "dynamic")),
    ):
        if value is not None and mode not in modes:
            raise InvalidArgumentError(
                f"{name} does not apply to mode={mode!r}, but to {' and '.join(map(repr, modes))}"
            )
    options = ChangeOptions(
        branch=branch,
        snapshot_properties=snapshot_properties,
        mode=row_mode,
        isolation=isolation,
        distribution=distribution,
        memory_limit=memory_limit,
        idempotency_key=idempotency_key,
        dry_run=dry_run,
    )
    target = Target.of(df.sparkSession, table, options, catalog, properties, keywords_of(write))
    if target.made_before:
        return NOTHING_CHANGED
    df = named_as_table(df, target.table.schema())
    columns = written_columns(schema_mode)
    settings = WriteSettings(memory_limit, allow_missing=columns["allow_missing"], dry_run=dry_run)
    schema = arrow_schema(df.schema)
    if mode == "overwrite" and not dry_run:
        plan = target.plan("overwrite", filter, exact=True, widened_by=schema if columns["evolve"] else None)
        new = Write.checked(plan.write, target.table, schema, settings).payload(df, target.table, distribution)
        numbers = ("file_count", "row_count", "byte_count")
        whole = new.select(F.lit("added").alias("part"), "files", *numbers, *(F.lit(0).alias(n) for n in COUNTS))
        return changed(run(target, plan, None, others=[whole], removals=Removals(target, plan)))
    new_write = Write.of_schema(target.table, schema, target.properties, settings=settings, evolve=columns["evolve"])
    written, jobs = new_write.run(df, target.table, distribution)
    if dry_run:
        added = counted(written)
        if mode != "overwrite":
            return added
        gone = _deleted(target, filter)
        return RowsChanged(
            gone.rows_removed,
            added.rows_added,
            gone.files_removed,
            gone.files_rewritten,
            gone.files_marked,
            gone.bytes_rewritten,
            files_added=added.files_added,
            bytes_added=added.bytes_added,
            bytes_removed=gone.bytes_removed,
        )
    done = new_write.commit(
        target.table,
        written,
        target.branch,
        target.summary,
        idempotency_key,
        jobs.lost_some,
        mode="dynamic" if mode == "dynamic" else "append",
        isolation=isolation,
    )
    if done.made_before:
        return NOTHING_CHANGED
    added = counted(written)
    return RowsChanged(
        done.rows_removed,
        done.rows,
        done.files_removed,
        done.files_rewritten,
        done.files_marked,
        0,
        files_added=added.files_added,
        bytes_added=added.bytes_added,
        bytes_removed=done.bytes_removed,
    )


def _deleted(target: Target, row_filter: RowFilter | None) -> RowsChanged:
    every = AlwaysTrue() if row_filter is None else row_filter
    return target.table.delete(every, branch=target.branch, mode=target.options.get("mode"), dry_run=True)
