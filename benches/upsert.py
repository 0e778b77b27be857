"""How long does an upsert of 20,000 rows into 100,000 take, and one of a million into ten million?

For the first question the peer is PyIceberg, with tables of its own in a SQLite catalog on the same disk. The second
has limits instead: 30 s and 1.5 GB.

    python benches/upsert.py [--rounds N] [--large]
"""

from __future__ import annotations

import argparse
import itertools
import resource
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from side_by_side import Target, measure, report

import icefield as ice

TABLE, SOURCE = 100_000, 20_000
LARGE_TABLE, LARGE_SOURCE, LARGE_FILES = 10_000_000, 1_000_000, 10


def data(ids: np.ndarray, seed: int) -> pa.Table:
    """Make eight columns of usual types."""
    random, rows = np.random.default_rng(seed), len(ids)
    return pa.table(
        {
            "id": ids,
            "amount": random.integers(0, 1 << 40, rows),
            "price": random.random(rows),
            "count": pa.array(random.integers(0, 1000, rows), pa.int32()),
            "day": pa.array(random.integers(0, 20_000, rows), pa.int32()),
            "name": pa.array(random.integers(0, 1 << 20, rows)).cast(pa.string()),
            "flag": random.random(rows) < 0.5,
            "weight": random.random(rows),
        }
    )


def ids(table: int, source: int) -> np.ndarray:
    """Draw ids, of which one in eleven is new."""
    return np.random.default_rng(1).choice(table + table // 10, source, replace=False)


def small(folder: Path, rounds: int) -> None:
    """Compare with PyIceberg; each round has a new table."""
    uri, names = f"sqlite:///{folder}/catalog.db", itertools.count()
    ours = ice.load_catalog("bench", uri=uri, warehouse=str(folder))
    ours.create_namespace("db")
    theirs = SqlCatalog("bench", uri=uri, warehouse=f"file://{folder}")
    rows, source = data(np.arange(TABLE), 0), data(ids(TABLE, SOURCE), 2)
    made = []
    for _ in range(2 * (rounds + 1)):
        made.append(f"db.t{next(names)}")
        ours.create_table(made[-1], schema=rows.schema).append(rows)
    runs: dict[str, Callable[[], object]] = {
        "icefield": lambda: ours.load_table(made.pop()).upsert(source, ["id"]),
        "PyIceberg": lambda: theirs.load_table(made.pop()).upsert(source, ["id"]),
    }
    answer = measure("20,000 into 100,000", runs, rounds=rounds, targets=[Target("PyIceberg", 0.1)])
    report("upserts of 8 columns", [answer])


def large(folder: Path) -> None:
    """Measure time and memory."""
    catalog = ice.load_catalog("large", uri=f"sqlite:///{folder}/large.db", warehouse=str(folder))
    catalog.create_namespace("db")
    order = np.random.default_rng(3).permutation(LARGE_TABLE)
    table = catalog.create_table("db.t", schema=data(order[:1], 0).schema)
    for number, part in enumerate(np.split(order, LARGE_FILES)):
        table.append(data(part, number))
    source = data(ids(LARGE_TABLE, LARGE_SOURCE), 4)
    start = perf_counter()
    done = table.upsert(source, ["id"])
    seconds, peak = perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"\n1,000,000 into 10,000,000: {seconds:.1f} s (at most 30), peak {peak:.2f} GB (at most 1.5): {done}")


def main() -> None:
    """Ask both questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.large:
            large(Path(folder))
        small(Path(folder), options.rounds)


if __name__ == "__main__":
    main()
