"""What a change did, or would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyspark.sql.functions as F  # noqa: N812

from icefield.spark.changing.planned import FILE, POSITION
from icefield.spark.changing.running import ACTION, DELETE, INSERT, UPDATE
from icefield.table import RowsChanged
from icefield.table.update.outcomes import NOTHING_CHANGED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from icefield.spark.changing.running import Done

__all__ = ["Counts", "changed", "counted", "counts_of"]

#: Rows updated, deleted and inserted.
Counts = tuple[int, int, int]


def changed(done: Done) -> RowsChanged:
    """Return what a change did."""
    made = done.committed
    if made is None or made.made_before:
        return NOTHING_CHANGED
    files, size = (sum(getattr(one, name) for one in done.added) for name in ("file_count", "byte_count"))
    return RowsChanged(
        made.rows_removed,
        made.rows,
        made.files_removed,
        made.files_rewritten,
        made.files_marked,
        done.bytes_rewritten,
        files_added=files,
        bytes_added=size,
        bytes_removed=made.bytes_removed,
    )


def counted(actions: DataFrame) -> RowsChanged:
    """Return what a change would do, if that is known without files: the rows."""
    updated, deleted, inserted = counts_of(actions)
    return RowsChanged(updated + deleted, updated + inserted, 0, 0, 0, 0)


def counts_of(actions: DataFrame) -> Counts:
    """Count the rows of actions; a row of the table that is deleted for several rows of a source is one."""
    places = F.countDistinct(FILE, POSITION)
    found = {row[0]: (row[1], row[2]) for row in actions.groupBy(ACTION).agg(places, F.count(F.lit(1))).collect()}
    nothing = (0, 0)
    return found.get(UPDATE, nothing)[1], found.get(DELETE, nothing)[0], found.get(INSERT, nothing)[1]
