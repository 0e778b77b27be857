"""Is one large Parquet file read as fast as the same rows in eight files, that is by all cores?

One table holds the rows in one file of about 1 GB (16 million rows by 8 columns of random numbers), another in eight;
both have row groups of the same size. Rows are streamed, not collected. pyarrow reads the one file as it lies.

    python benches/one_file.py [--rows N] [--rounds N] [--row-group-bytes N]
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from side_by_side import Row, Target, measure, report

import icefield as ice

COLUMNS = 8
BATCH_ROWS = 250_000
SCHEMA = pa.schema([pa.field(f"c{n}", pa.int64() if n % 2 == 0 else pa.float64()) for n in range(COLUMNS)])


def batches(first: int, last: int) -> Iterator[pa.RecordBatch]:
    """Make rows; ``c0`` counts them, the other columns do not compress."""
    for start in range(first, last, BATCH_ROWS):
        rows = min(BATCH_ROWS, last - start)
        random = np.random.default_rng(start)
        columns = [pa.array(np.arange(start, start + rows))]
        for number in range(1, COLUMNS):
            long = number % 2 == 0
            columns.append(pa.array(random.integers(0, 1 << 62, rows) if long else random.random(rows)))
        yield pa.record_batch(columns, schema=SCHEMA)


def table(catalog: ice.catalog.Catalog, name: str, rows: int, files: int, row_group_bytes: int) -> ice.Table:
    """Write the rows into so many files."""
    properties = {
        "write.target-file-size-bytes": str(1 << 40),
        "write.parquet.row-group-size-bytes": str(row_group_bytes),
        "write.metadata.metrics.default": "counts",
    }
    made = catalog.create_table(name, schema=SCHEMA, properties=properties)
    share = -(-rows // files)
    for first in range(0, rows, share):
        last = min(first + share, rows)
        made.append(pa.RecordBatchReader.from_batches(SCHEMA, batches(first, last)))
    assert made.scan().plan_files().to_arrow().num_rows == files
    return made


def drained(scan: ice.table.DataScan) -> int:
    """Count the rows of a scan as they come."""
    return sum(batch.num_rows for batch in scan.to_arrow_batch_reader())


def main() -> None:
    """Ask the questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=16_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--row-group-bytes", type=int, default=128 << 20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        catalog = ice.load_catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=folder)
        catalog.create_namespace("db")
        one = table(catalog, "db.one", options.rows, 1, options.row_group_bytes)
        eight = table(catalog, "db.eight", options.rows, 8, options.row_group_bytes)
        path = Path(urlparse(one.scan().plan_files().to_arrow()["file_path"][0].as_py()).path)
        raw = ds.dataset(path)
        some = int(options.rows * 0.6)
        questions: list[tuple[str, list[str] | None, str, pc.Expression | None]] = [
            ("all columns", None, "true", None),
            ("three columns", ["c1", "c2", "c5"], "true", None),
            ("c0 below 60 %", None, f"c0 < {some}", pc.field("c0") < some),
        ]
        answers: list[Row] = []
        for title, columns, filtered, condition in questions:
            fields = tuple(columns) if columns else ("*",)
            ours = one.scan(row_filter=filtered, selected_fields=fields)
            others = eight.scan(row_filter=filtered, selected_fields=fields)
            rows = some if condition is not None else options.rows
            assert drained(ours) == drained(others) == rows
            runs: dict[str, Callable[[], object]] = {
                "one file": lambda scan=ours: drained(scan),
                "eight files": lambda scan=others: drained(scan),
                "pyarrow, the one file": lambda columns=columns, condition=condition: sum(
                    batch.num_rows for batch in raw.to_batches(columns=columns, filter=condition)
                ),
            }
            answers.append(measure(title, runs, rounds=options.rounds, targets=[Target("eight files", 1.1)]))
        report(f"{options.rows:,} rows, {path.stat().st_size >> 20} MiB", answers, ours="one file")
        for row in answers:
            ratio = row.seconds["one file"] / row.seconds["eight files"]
            print(f"\n{row.question}: one file takes {ratio:.2f} of the time of eight")


if __name__ == "__main__":
    main()
