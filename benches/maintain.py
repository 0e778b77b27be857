"""How long does it take to pack 2,000 files of 1,000 rows, 200 larger ones, to sort, and to convert equality deletes?

The peer is Java's connector on Spark, in its own environment (``ICEFIELD_JAVA_PYTHON``), started once for all
questions, on tables of the same rows. Each peer has its own table for each round. The target is half of Java's time.

    python benches/maintain.py [--scale 0.1] [--rounds 1] [--memory BYTES]
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from side_by_side import Row, Target, report

import icefield as ice

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "interop"))

CATALOG = "maintained"
HALF = Target("Java", 0.5)


def rows(first: int, count: int) -> pa.Table:
    """Make eight columns of usual types."""
    random = np.random.default_rng(first)
    return pa.table(
        {
            "id": np.arange(first, first + count),
            "x": random.integers(0, 1 << 30, count),
            "y": random.integers(0, 1 << 30, count),
            "price": random.random(count),
            "count": pa.array(random.integers(0, 1000, count), pa.int32()),
            "name": pa.array(random.integers(0, 1 << 20, count)).cast(pa.string()),
            "flag": random.random(count) < 0.5,
            "weight": random.random(count),
        }
    )


def filled(table: ice.Table, files: int, size: int) -> None:
    """Append files of so many rows, in one commit."""
    with table.transaction() as changes:
        for number in range(files):
            changes.append(rows(number * size, size))


def with_deleted_keys(table: ice.Table, files: int, size: int, keys: int) -> None:
    """Append files, and delete keys by their values."""
    filled(table, files, size)
    chosen = np.random.default_rng(1).choice(files * size, keys, replace=False)
    for part in np.array_split(chosen, 4):
        with table.upsert_stream("id") as stream:
            stream.delete(pa.table({"id": part}))


def main() -> None:
    """Ask all questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="Share of the rows and files.")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--memory", type=int, default=512 << 20, help="Limit of icefield, in bytes.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench(Path(folder), options.scale, options.rounds, options.memory)


def bench(folder: Path, scale: float, rounds: int, memory: int) -> None:
    """Run each question by both, in turn, and compare the rows after."""
    from conftest import Java

    def scaled(number: int) -> int:
        return max(1, int(number * scale))

    catalog = ice.load_catalog(CATALOG, uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    java = Java(os.environ["ICEFIELD_JAVA_PYTHON"], folder)
    java.catalog(CATALOG, folder / "catalog.db", folder)
    everything = {"rewrite-all": "true"}
    questions: list[tuple[str, Callable[[ice.Table], None], dict[str, object]]] = [
        ("pack 2,000 files of 1,000 rows", lambda table: filled(table, scaled(2000), 1000), {}),
        ("pack 200 files of 300,000 rows", lambda table: filled(table, scaled(200), 300_000), {}),
        ("sort 20 million rows", lambda table: filled(table, 8, scaled(2_500_000)), {"sort_order": "x"}),
        ("z-order 20 million rows", lambda table: filled(table, 8, scaled(2_500_000)), {"sort_order": "zorder(x,y)"}),
        (
            "pack 8 files, 400,000 keys deleted",
            lambda table: with_deleted_keys(table, 8, scaled(500_000), scaled(400_000)),
            {},
        ),
    ]
    answers = []
    for number, (question, make, how) in enumerate(questions):
        best: dict[str, float] = {}
        for turn in range(rounds):
            after = {}
            for peer in ("icefield", "Java"):
                name = f"db.t{number}_{turn}_{peer}"
                table = catalog.create_table(name, rows(0, 1).schema, properties={"format-version": "3"})
                make(table)
                started = perf_counter()
                if peer == "icefield":
                    done = table.maintenance.compact(options=everything, memory_limit=memory, **how)  # type: ignore[arg-type]
                    assert done.rewritten_data_files_count
                else:
                    order = f", sort_order => '{how['sort_order']}'" if how else ""
                    java.sql(
                        f"CALL {CATALOG}.system.rewrite_data_files(table => '{name}'{order}, "
                        "options => map('rewrite-all', 'true'))"
                    )
                best[peer] = min(best.get(peer, 1e9), perf_counter() - started)
                found = table.refresh().scan(selected_fields=("id", "x")).to_arrow()
                after[peer] = (found.num_rows, sum(map(int, found["x"].to_numpy() & 0xFFFF)))
                catalog.drop_table(name, purge_requested=True)
            assert after["icefield"] == after["Java"], after
        answers.append(Row(question, best, targets=[HALF]))
    converted = catalog.create_table("db.keys", rows(0, 1).schema, properties={"format-version": "3"})
    with_deleted_keys(converted, 8, scaled(500_000), scaled(400_000))
    started = perf_counter()
    done = converted.maintenance.convert_equality_deletes(memory_limit=memory)
    answers.append(Row(f"{done.deleted_rows_count:,} keys to vectors", {"icefield": perf_counter() - started}))
    java.close()
    report(f"maintenance, scaled by {scale:g}", answers)
    print(f"peak of icefield with its tables: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
