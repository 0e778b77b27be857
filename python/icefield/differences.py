"""The difference of two sets of rows: of snapshots, branches, tables or other rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icefield._core import RowDiff, diff_rows, diff_scans
from icefield._inputs.frames import check_rows, rows_of
from icefield._outputs.layout import counted
from icefield._outputs.printable import printable
from icefield.errors import ArgumentTypeError
from icefield.scan import DataScan
from icefield.scan.options import fields_of
from icefield.table.reads import ReadsRows

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from icefield._core import ArrowStream

__all__ = ["DiffSummary", "TableDiff", "diff"]


@dataclass(frozen=True, slots=True, repr=False)
class DiffSummary:
    """How many rows differ."""

    #: Rows of ``b`` only.
    added: int
    #: Rows of ``a`` only.
    removed: int
    #: Rows of both sides with other values; without keys always 0.
    changed: int
    #: Changed values by column.
    changed_values: dict[str, int]
    #: Columns of one side only, which were not compared.
    only_in_a: list[str]
    only_in_b: list[str]
    #: Rows that were read of either side.
    rows_read_a: int
    rows_read_b: int
    #: Data files that both sides have with the same deletes, so that they were not read.
    common_files: int

    @property
    def is_same(self) -> bool:
        """Whether no row differs."""
        return not (self.added or self.removed or self.changed)

    def __repr__(self) -> str:
        parts = [f"{counted(self.added, 'row')} added", f"{self.removed:,} removed", f"{self.changed:,} changed"]
        parts += [f"only in a: {', '.join(self.only_in_a)}"] if self.only_in_a else []
        parts += [f"only in b: {', '.join(self.only_in_b)}"] if self.only_in_b else []
        return printable(f"DiffSummary({', '.join(parts)})")


class TableDiff:
    """The rows that differ; made by `diff`. Rows are compared each time that they are read."""

    def __init__(self, a: Any, b: Any, keys: list[str] | None, memory_limit: int | None) -> None:
        self._a, self._b = a, b
        self._keys = keys
        self._memory_limit = memory_limit
        self._begin()  # Errors about columns are those of the call.

    def _begin(self) -> tuple[RowDiff, ArrowStream]:
        if _are_of_one_table(self._a, self._b):
            return diff_scans(self._a._scan, self._b._scan, keys=self._keys, memory_limit=self._memory_limit)  # noqa: SLF001
        return diff_rows(self._a, self._b, keys=self._keys, memory_limit=self._memory_limit)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the differences as a stream of batches."""
        return self._begin()[1].__arrow_c_stream__(requested_schema)

    def to_arrow_batch_reader(self) -> pa.RecordBatchReader:
        """Return the differences as a stream of batches, in bounded memory."""
        return self._begin()[1].to_pyarrow()

    def to_arrow(self) -> pa.Table:
        """Return all differences."""
        return self.to_arrow_batch_reader().read_all()

    def to_pandas(self, **options: Any) -> pd.DataFrame:
        """Return all differences; parameters are those of ``pyarrow.Table.to_pandas``."""
        frame: pd.DataFrame = self.to_arrow().to_pandas(**options)
        return frame

    def summary(self) -> DiffSummary:
        """Compare the rows, and return how many differ."""
        about, stream = self._begin()
        for _ in stream.to_pyarrow():
            pass
        added, removed, changed, rows_a, rows_b = about.rows
        only_a, only_b = about.only
        return DiffSummary(
            added, removed, changed, dict(about.cells), only_a, only_b, rows_a, rows_b, about.common_files
        )

    def __repr__(self) -> str:
        by = f" by {', '.join(self._keys)}" if self._keys else ""
        return printable(f"TableDiff{by}; summary() counts the rows that differ, to_arrow() returns them")


def diff(
    a: Any,
    b: Any,
    *,
    keys: Iterable[str] | str | None = None,
    memory_limit: int | None = None,
) -> TableDiff:
    """Compare rows: what ``b`` has that ``a`` has not, and the other way round.

    Columns are compared by name; for two scans of one table by field id, with the names of ``b``. Columns that only one
    side has are not compared. Null equals null, NaN equals NaN, and -0.0 does not equal 0.0. Of two scans of one table,
    files that both have with the same deletes are not read. Rows that exceed memory go to temporary files.

    Parameters
    ----------
    a, b
        A table, a branch (``table.branch``), a scan (``table.scan(snapshot_id=…)``), or any other rows: pyarrow,
        pandas, Polars, DuckDB, a DataFrame of PySpark.
    keys
        Columns that identify a row on each side; null is a value. Rows with the same key and other values are changed.
        Without keys, rows are compared as a whole, and equal ones are counted.
    memory_limit
        Approximate number of bytes of rows in memory; by default 512 MiB.

    Returns
    -------
    TableDiff
        Its rows have the column ``_change`` (``added``, ``removed``, ``changed_before``, ``changed_after``), the column
        ``_changed_columns`` with the names of the columns of changed rows, and the compared columns. Both rows of a
        change follow each other.

    Raises
    ------
    InvalidArgumentError
        If a key is not a column of both sides, or types do not fit; while rows are read, if a side has two rows with
        one key.

    Examples
    --------
    >>> import icefield as ice
    >>> ice.diff(table.scan(snapshot_id=before), table, keys="id").summary()  # doctest: +SKIP
    DiffSummary(12 rows added, 0 removed, 3 changed)
    >>> ice.diff(table.scan(ref="audit"), table.scan(ref="main")).to_arrow()  # doctest: +SKIP

    """
    named = None if keys is None else list(fields_of(keys))
    return TableDiff(_side(a), _side(b), named, memory_limit)


def _side(given: Any) -> Any:
    if isinstance(given, ReadsRows):
        return given.scan()
    if isinstance(given, DataScan):
        return given
    check_rows(given)
    rows = rows_of(given)
    if not hasattr(type(rows), "__arrow_c_stream__") and not hasattr(rows, "__arrow_c_array__"):
        raise ArgumentTypeError(f"expected a table, a scan or rows, not {type(given).__name__}")
    return rows


def _are_of_one_table(a: Any, b: Any) -> bool:
    """Whether both are scans of one table that choose the same rows and columns."""
    if not (isinstance(a, DataScan) and isinstance(b, DataScan)):
        return False
    chosen = [
        (one.metadata.table_uuid, str(one.row_filter), tuple(one.selected_fields), one.case_sensitive, one.limit)
        for one in (a, b)
    ]
    is_planned = a.is_planned_by_server or b.is_planned_by_server
    return chosen[0] == chosen[1] and chosen[0][0] is not None and a.limit is None and not is_planned
