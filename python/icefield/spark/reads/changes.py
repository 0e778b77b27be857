"""What snapshots added to a table and removed from it, as a DataFrame."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from icefield.scan.options import fields_of
from icefield.spark.reads.reading import of_scan
from icefield.spark.tables.opening import keywords_of, opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from icefield.expressions import RowFilter
    from icefield.table import Table

__all__ = ["changes"]


def changes(
    spark: SparkSession,
    table: Table | str,
    *,
    from_snapshot_id_exclusive: int | str | None = None,
    from_snapshot_id_inclusive: int | str | None = None,
    to_snapshot_id_inclusive: int | str | None = None,
    branch: str | None = None,
    filter: RowFilter | None = None,
    columns: Iterable[str] | str | None = None,
    remove_carryovers: bool = False,
    net_changes: bool = False,
    compute_updates: bool | None = None,
    identifier_columns: Iterable[str] | str | None = None,
    catalog: str | None = None,
    **properties: str,
) -> DataFrame:
    """Read the changelog of a table as a DataFrame.

    Beside the columns of the table rows have ``_change_type``, ``_change_ordinal`` and ``_commit_snapshot_id``, as
    `icefield.incremental.IncrementalChangelogScan` says. The last snapshot is chosen now.

    Parameters
    ----------
    spark
        The session.
    table
        A table, or ``"namespace.name"`` in ``catalog``.
    from_snapshot_id_exclusive, from_snapshot_id_inclusive
        The snapshot that the changes begin after or with; a text is the name of a tag. Without one, they begin with the
        oldest that is there.
    to_snapshot_id_inclusive
        The last snapshot, the current one by default; a text is the name of a tag.
    branch
        The branch that the snapshots lie on; the main one by default.
    filter
        Rows to read, as text or as an expression, as in `icefield.spark.read`.
    columns
        Columns to read, all by default.
    remove_carryovers, net_changes, compute_updates, identifier_columns
        How rows are compared, as `icefield.table.Table.incremental_changelog_scan` takes it and Java's procedure
        ``create_changelog_view`` does. Compared rows are read by one task.
    catalog, **properties
        The catalog of a name, as `icefield.load_catalog` takes it.

    Raises
    ------
    InvalidArgumentError
        If a snapshot is not there, or the first is no ancestor of the last; if updates are to be computed, and there is
        no identifier.

    """
    scan = opened(table, catalog, properties, keywords_of(changes)).incremental_changelog_scan(
        from_snapshot_id_exclusive=from_snapshot_id_exclusive,
        from_snapshot_id_inclusive=from_snapshot_id_inclusive,
        to_snapshot_id_inclusive=to_snapshot_id_inclusive,
        branch=branch,
        row_filter=filter,
        selected_fields=("*",) if columns is None else fields_of(columns),
        remove_carryovers=remove_carryovers,
        net_changes=net_changes,
        compute_updates=compute_updates,
        identifier_columns=identifier_columns,
    )
    return of_scan(spark, scan)
