"""Which files of a scan Spark's own Parquet reader reads, which are read by ours, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from icefield.scan import TableScan
from icefield.spark.reads.reading import chosen, compares_rows, decided

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.expressions import RowFilter
    from icefield.table import Table

__all__ = ["Explanation", "explain"]

_SPARK, _OURS = "spark", "icefield"


@dataclass(frozen=True)
class Explanation:
    """How a scan is read in Spark; it prints as a few lines."""

    #: One row per file: ``file_path``, ``reader`` (``spark`` or ``icefield``), ``kind`` and ``reason`` (why Spark does
    #: not read it; null where it does), ``record_count``, ``file_size_in_bytes``.
    files: pa.Table
    #: How many Python tasks read the files that Spark does not.
    tasks: int
    #: The text of `icefield.scan.TableScan.explain`.
    scan: str

    @property
    def counts(self) -> dict[str, int]:
        """How many files Spark reads (``spark``), and how many not, by the kind of the reason."""
        kinds = Counter(kind or _SPARK for kind in self.files["kind"].to_pylist())
        return dict(sorted(kinds.items(), key=lambda entry: (entry[0] != _SPARK, entry[0])))

    def __str__(self) -> str:
        counts = self.counts
        spark = counts.pop(_SPARK, 0)
        lines = [self.scan, f"  by Spark's Parquet reader: {spark} files"]
        if counts:
            lines.append(f"  by icefield, in {self.tasks} tasks: {sum(counts.values())} files")
            reasons = Counter(self.files["reason"].drop_null().to_pylist())
            lines += [f"    {number} for {reason}" for reason, number in sorted(reasons.items())]
        return "\n".join(lines)


def explain(
    spark: SparkSession,
    table: Table | TableScan | str,
    *,
    filter: RowFilter | None = None,
    columns: Iterable[str] | str | None = None,
    as_of: int | str | datetime | None = None,
    native: bool = True,
    catalog: str | None = None,
    **properties: str,
) -> Explanation:
    """Return which files of a scan are read by Spark's own Parquet reader, and why the others are not.

    Parameters
    ----------
    spark
        The session.
    table
        A table, its name, or a scan.
    filter, columns, as_of, native, catalog, **properties
        As for `icefield.spark.read`.

    Returns
    -------
    Explanation
        Counts, and on request one row per file; it prints as a few lines.

    """
    if isinstance(table, TableScan):
        scan = table
    else:
        scan = chosen(spark, table, filter, columns, as_of, catalog=catalog, properties=properties)
    ways = decided(spark, scan, native=native)
    files = pa.table(
        {
            "file_path": ways.files["file_path"],
            "reader": pa.array([_SPARK if kind is None else _OURS for kind in ways.kinds], pa.string()),
            "kind": pa.array(ways.kinds, pa.string()),
            "reason": pa.array(ways.reasons, pa.string()),
            "record_count": ways.files["record_count"],
            "file_size_in_bytes": ways.files["file_size_in_bytes"],
        }
    )
    tasks = 1 if compares_rows(scan) else len(ways.tasks(spark))
    return Explanation(files, tasks, scan.explain())
