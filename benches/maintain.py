"""How long does it take to pack, sort and z-order files, to convert equality deletes, and to find orphan files?

The peer is Java's connector on Spark, in its own environment (``ICEFIELD_JAVA_PYTHON``), started once for all
questions. Each peer has its own table of the same rows for each round, and the rows are compared after it; icefield
runs in a process of its own each time, so that its memory is that of the call. The targets are half of Java's time, and
memory below the limit of the call. Nothing of Java's converts equality deletes: it applies them when it packs.

    python benches/maintain.py [--scale 0.1] [--rounds 1] [--memory BYTES] [--only WORD]

Sizes are those of scale 1 (10 GB of disk); ``--scale`` is the share of the files, or of the rows where there are eight.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from side_by_side import Row, Target, report

import icefield as ice
from icefield.manifests import DataFile

TESTS = Path(__file__).parents[1] / "tests"
sys.path[:0] = [str(TESTS / "interop"), str(TESTS)]

CATALOG = "maintained"
HALF = Target("Java", 0.5)
#: Rows of a file of 20 MB.
LARGE = 680_000
#: One file of so many is an orphan.
ORPHANS = 100

Make = Callable[[ice.Table], None]


@dataclass(frozen=True)
class Question:
    """What is done to a table: a method of maintenance and its arguments, and the call of Java's procedure."""

    name: str
    make: Make
    method: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    procedure: str | None = None


@dataclass(frozen=True)
class Done:
    """A call of ours: its time, and the memory of its process before it and at most."""

    seconds: float
    before: int
    peak: int


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


def with_orphans(table: ice.Table, files: int) -> None:
    """Make old files, of which the table has all but a few."""
    table.append(rows(0, 10))
    folder = Path(table.location().removeprefix("file://"), "data")
    with table.update_snapshot().fast_append() as append:
        for number in range(files):
            path = folder / f"{number:06}.parquet"
            path.write_bytes(b"PAR1")
            os.utime(path, (0, 0))
            if number % ORPHANS:
                append.append_data_file(
                    DataFile(file_path=str(path), file_format="PARQUET", record_count=0, file_size_in_bytes=4)
                )


def questions(scale: float, memory: int) -> list[Question]:
    """List the questions."""

    def scaled(number: int) -> int:
        return max(1, int(number * scale))

    every = {"options": {"rewrite-all": "true"}, "memory_limit": memory}

    def packed(name: str, make: Make, order: str | None = None) -> Question:
        sorting = f", sort_order => '{order}'" if order else ""
        procedure = f"rewrite_data_files(table => '{{}}'{sorting}, options => map('rewrite-all', 'true'))"
        arguments = {**every, "sort_order": order} if order else every
        return Question(name, make, "compact", arguments, procedure)

    small, large, size, keys = scaled(2000), scaled(200), scaled(2_500_000), scaled(400_000)
    deleted = scaled(500_000)
    found = scaled(200_000)
    return [
        packed(f"pack {small:,} files of 1,000 rows", lambda table: filled(table, small, 1000)),
        packed(f"pack {large:,} files of 20 MB", lambda table: filled(table, large, LARGE)),
        packed(f"sort {8 * size:,} rows", lambda table: filled(table, 8, size), "x"),
        packed(f"z-order {8 * size:,} rows", lambda table: filled(table, 8, size), "zorder(x,y)"),
        packed(f"pack 8 files, {keys:,} keys deleted", lambda table: with_deleted_keys(table, 8, deleted, keys)),
        Question(
            f"{keys:,} deleted keys to vectors",
            lambda table: with_deleted_keys(table, 8, deleted, keys),
            "convert_equality_deletes",
            {"memory_limit": memory},
        ),
        Question(
            f"orphans among {found:,} files",
            lambda table: with_orphans(table, found),
            "remove_orphans",
            {"dry_run": False},
            "remove_orphan_files(table => '{}')",
        ),
    ]


def main() -> None:
    """Ask all questions."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=0.1, help="Share of the rows and files.")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--memory", type=int, default=512 << 20, help="Limit of icefield, in bytes.")
    parser.add_argument("--only", default="", help="Ask the questions with this word only.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench(Path(folder), options.scale, options.rounds, options.memory, options.only)


def bench(folder: Path, scale: float, rounds: int, memory: int, only: str) -> None:
    """Run each question by both, in turn, and compare the rows after."""
    catalog = opened(str(folder))
    catalog.create_namespace("db")
    java = peer(folder)
    warm(catalog, java)
    answers, most = [], {}
    for number, question in enumerate(questions(scale, memory)):
        if only not in question.name:
            continue
        best: dict[str, float] = {}
        for turn in range(rounds):
            after = {}
            for name in ("icefield", "Java") if question.procedure else ("icefield",):
                full = f"db.t{number}_{turn}_{name}"
                table = catalog.create_table(full, rows(0, 1).schema, properties={"format-version": "3"})
                question.make(table)
                before = state(table.refresh(), question)
                if name == "icefield":
                    done = by_us(str(folder), full, question)
                    seconds = done.seconds
                    most[question.name] = max(most.get(question.name, 0), done.peak - done.before)
                else:
                    assert question.procedure is not None
                    started = perf_counter()
                    java.sql(f"CALL {CATALOG}.system.{question.procedure.format(full)}")
                    seconds = perf_counter() - started
                best[name] = min(best.get(name, seconds), seconds)
                after[name] = state(table.refresh(), question)
                # Of orphans, the number of files is compared; of all others, the rows.
                assert question.method == "remove_orphans" or after[name] == before, (question.name, name)
                catalog.drop_table(full, purge_requested=True)
            assert len(set(after.values())) == 1, (question.name, after)
        answers.append(Row(question.name, best, targets=[HALF] if question.procedure else []))
    java.close()
    report(f"maintenance, scaled by {scale:g}", answers)
    print(f"\nmemory of the calls, of a limit of {memory >> 20} MiB:")
    for name, bytes_ in most.items():
        verdict = "met" if bytes_ <= memory else "**missed**"
        print(f"- {name}: {bytes_ >> 20} MiB, {verdict}")


def state(table: ice.Table, question: Question) -> tuple[int, int]:
    """Sum up what both must agree on: the rows, or the files in the folder of data."""
    if question.method == "remove_orphans":
        folder = Path(table.location().removeprefix("file://"), "data")
        return sum(1 for _ in folder.iterdir()), 0
    count = total = 0
    for batch in table.scan(selected_fields=("id", "x")).to_arrow_batch_reader():
        count += batch.num_rows
        total += int((batch["x"].to_numpy() & 0xFFFF).sum())
    return count, total


def opened(folder: str) -> ice.Catalog:
    """Open the catalog of a run."""
    return ice.load_catalog(CATALOG, uri=f"sqlite:///{folder}/catalog.db", warehouse=folder)


def peer(folder: Path) -> Any:
    """Start Java as users run it: the tests' settings, for many short queries, would slow it down."""
    from conftest import Java

    os.environ.pop("JDK_JAVA_OPTIONS", None)
    os.environ.setdefault("ICEFIELD_JAVA_MEMORY", "4g")
    java = Java(os.environ["ICEFIELD_JAVA_PYTHON"], folder)
    java.sql("SET spark.sql.codegen.wholeStage=true")
    java.sql("SET spark.sql.codegen.factoryMode=FALLBACK")
    java.catalog(CATALOG, folder / "catalog.db", folder)
    return java


def warm(catalog: ice.Catalog, java: Any) -> None:
    """Have Java load and compile what it needs for any question."""
    table = catalog.create_table("db.warm", rows(0, 1).schema, properties={"format-version": "3"})
    filled(table, 8, 1000)
    for question in questions(1, 1):
        if question.procedure is not None:
            java.sql(f"CALL {CATALOG}.system.{question.procedure.format('db.warm')}")
    catalog.drop_table("db.warm", purge_requested=True)


def by_us(folder: str, name: str, question: Question) -> Done:
    """Run our method in a process of its own."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(run, (folder, name, question.method, dict(question.arguments)))


def run(folder: str, name: str, method: str, arguments: dict[str, Any]) -> Done:
    """Run a method of maintenance, and say what it took."""
    table = opened(folder).load_table(name)
    before = in_memory("VmRSS")
    started = perf_counter()
    getattr(table.maintenance, method)(**arguments)
    return Done(perf_counter() - started, before, in_memory("VmHWM"))


def in_memory(what: str) -> int:
    """Read a number of bytes from what Linux says of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(what))


if __name__ == "__main__":
    main()
