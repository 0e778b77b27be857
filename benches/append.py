"""How long does an append of 5 million rows by 8 columns take, plain and into 80 partitions?

Peers: Polars (``sink_iceberg``) and PyIceberg, each into a table of its own in a SQLite catalog on the same disk. The
floor is pyarrow's Parquet writer with the same compression and no table at all.

    python benches/append.py [--rows N] [--rounds N]
"""

from __future__ import annotations

import argparse
import itertools
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from side_by_side import Row, Target, measure, report

import icefield as ice


def data(rows: int) -> pa.Table:
    """Make eight columns of usual types; ``day`` has ten values, ``id`` falls into eight buckets."""
    random = np.random.default_rng(7)
    numbers = np.arange(rows)
    micros = (numbers // max(rows // 10, 1)) * 86_400_000_000 + random.integers(0, 86_400_000_000, rows)
    cities = np.array([f"city-{n}" for n in range(200)])
    return pa.table(
        {
            "id": pa.array(numbers),
            "day": pa.array(1_577_836_800_000_000 + micros, pa.timestamp("us")),
            "city": pa.array(cities[random.integers(0, 200, rows)]),
            "name": pa.array([f"name-{n}" for n in random.integers(0, 1_000_000, rows)]),
            "price": pa.array(random.normal(100, 20, rows)),
            "count": pa.array(random.integers(0, 1000, rows), pa.int32()),
            "amount": pa.array(random.integers(0, 10_000_000, rows)).cast(pa.decimal128(20, 0)),
            "flag": pa.array(random.integers(0, 2, rows) == 1),
        }
    )


class Peers:
    """One warehouse; each append goes to a new table, so that no run pays for another's history."""

    def __init__(self, folder: Path, rows: pa.Table) -> None:
        self.rows = rows
        self.folder = folder
        self.names = (f"db.t{n}" for n in itertools.count())
        uri = f"sqlite:///{folder}/catalog.db"
        self.ours = ice.load_catalog("bench", uri=uri, warehouse=str(folder))
        self.ours.create_namespace("db")
        self.theirs = SqlCatalog("bench", uri=uri, warehouse=f"file://{folder}")

    def _table(self, partitioned: bool) -> str:
        name = next(self.names)
        by = ["day(day)", "bucket(8, id)"] if partitioned else []
        self.ours.create_table(name, schema=self.rows.schema, partition_by=by)
        return name

    def icefield(self, partitioned: bool) -> Any:
        """Append with us."""
        table = self.ours.load_table(self._table(partitioned))
        table.append(self.rows)
        return table

    def pyiceberg(self, partitioned: bool) -> Any:
        """Append with PyIceberg."""
        table = self.theirs.load_table(self._table(partitioned))
        table.append(self.rows)
        return table

    def polars(self, partitioned: bool) -> Any:
        """Append with Polars."""
        table = self.theirs.load_table(self._table(partitioned))
        frame = pl.from_arrow(self.rows)
        assert isinstance(frame, pl.DataFrame)
        frame.lazy().sink_iceberg(table, mode="append")
        return table

    def parquet(self) -> None:
        """Write one Parquet file: the floor."""
        pq.write_table(self.rows, self.folder / "floor.parquet", compression="zstd")


def main() -> None:
    """Ask both questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    answers: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        peers = Peers(Path(folder), data(options.rows))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        table = peers.icefield(True)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert table.scan().count() == options.rows
        size = peers.rows.nbytes >> 20
        for title, partitioned in (("plain", False), ("day and bucket(8): 80 files", True)):
            runs: dict[str, Callable[[], object]] = {
                "icefield": lambda p=partitioned: peers.icefield(p),
                "Polars": lambda p=partitioned: peers.polars(p),
                "PyIceberg": lambda p=partitioned: peers.pyiceberg(p),
                "pyarrow": peers.parquet,
            }
            answers.append(measure(title, runs, rounds=options.rounds, targets=[Target("Polars", 1.0)]))
    report(f"append of {options.rows:,} rows × 8", answers, floor="pyarrow")
    grown_mib = grown / 1024
    print(f"\nPeak memory grew by {grown_mib:,.0f} MiB while icefield wrote 80 files from {size} MiB of rows.")


if __name__ == "__main__":
    main()
