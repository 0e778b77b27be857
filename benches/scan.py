"""How long does it take to read a table?

Whole, some of it, past its deletes, in many small files, one row of one large file. Peers of a line take turns in one
run: Polars and PyIceberg over the table, DuckDB and pyiceberg-core with DataFusion where they are installed, and
pyarrow and Polars over the raw files, which know no deletes. A peer that refuses, or that answers other rows, is named
and left out of its line. Tables are made once and kept in a folder.

    python benches/scan.py        # plain positions vectors equality-1000 equality-400000 small lookup memory
    python benches/scan.py plain vectors --rounds 3 --peers polars,pyarrow-raw --questions "three columns,count()"

Environment: ``ICEFIELD_BENCH_FOLDER`` (default ``~/.cache/icefield/bench``), ``ICEFIELD_BENCH_ROWS`` (4000000).
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from scan_tables import equality_deletes, local, position_deletes, vectors, with_deletes
from side_by_side import Row, Target, measure, report

import icefield as ice
from icefield.distributed import TaskWriter

FOLDER = Path(os.environ.get("ICEFIELD_BENCH_FOLDER", Path.home() / ".cache/icefield/bench"))
ROWS = int(os.environ.get("ICEFIELD_BENCH_ROWS", "4000000"))
FILES = 8
SMALL_FILES, SMALL_ROWS = 2000, 1000
#: Rows of the one large file, about 60 bytes each.
LARGE_ROWS = 4 * ROWS
#: Rows of a page, as our writer and Java's cut them.
PAGE_ROWS = 20_000

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("k", pa.int32()),
        ("ts", pa.timestamp("us")),
        ("day", pa.date32()),
        ("price", pa.float64()),
        ("share", pa.float32()),
        ("amount", pa.decimal128(12, 2)),
        ("flag", pa.bool_()),
        ("city", pa.string()),
        ("note", pa.string()),
    ]
)


@dataclass(frozen=True)
class Question:
    """What is asked, in the forms that the peers take."""

    name: str
    columns: tuple[str, ...] | None = None
    #: Column, operation, value; all must hold.
    tests: tuple[tuple[str, str, int], ...] = ()
    count: bool = False
    limit: int | None = None

    @property
    def sql(self) -> str | None:
        """The filter as text."""
        return " AND ".join(f"{column} {test} {value}" for column, test, value in self.tests) or None

    def over(self, column: Callable[[str], Any]) -> Any:
        """Give the filter as an expression of a peer."""
        whole = None
        for name, test, value in self.tests:
            one = {"<": column(name).__lt__, ">=": column(name).__ge__, "=": column(name).__eq__}[test](value)
            whole = one if whole is None else whole & one
        return whole


def questions(rows: int) -> list[Question]:
    """Ask for everything, some columns, some rows, a number, a glance."""
    first, some = rows // 3, rows // 100
    return [
        Question("all columns"),
        Question("three columns", ("id", "price", "city")),
        Question("1 % scattered", tests=(("k", "<", 10),)),
        Question("1 % range", tests=(("id", ">=", first), ("id", "<", first + some))),
        Question("count()", count=True),
        Question("head(10)", limit=10),
    ]


# Tables


def batch(start: int, rows: int) -> pa.RecordBatch:
    """Make rows; ``id`` counts them."""
    random = np.random.default_rng(start)
    number = np.arange(start, start + rows)
    seconds = number * 1_000_000 + random.integers(0, 1_000_000, rows)
    # Unscaled numbers of 128 bits.
    cents = np.zeros((rows, 2), np.int64)
    cents[:, 0] = random.integers(0, 1_000_000, rows)
    cities = pa.array([f"city of {place}" for place in range(200)])
    notes = pa.array([f"{value:016x}" for value in random.integers(0, 1 << 62, rows)])
    columns = [
        number,
        random.integers(0, 1000, rows).astype(np.int32),
        pa.array(seconds, pa.timestamp("us")),
        pa.array((number // 100_000).astype(np.int32)).cast(pa.date32()),
        random.random(rows),
        random.random(rows).astype(np.float32),
        pa.Array.from_buffers(pa.decimal128(12, 2), rows, [None, pa.py_buffer(cents)]),
        random.random(rows) < 0.5,
        cities.take(pa.array(random.integers(0, 200, rows))),
        notes,
    ]
    return pa.record_batch([pa.array(column) for column in columns], schema=SCHEMA)


def batches(start: int, rows: int, most: int = 250_000) -> Iterator[pa.RecordBatch]:
    """Make rows, some at a time."""
    for first in range(start, start + rows, most):
        yield batch(first, min(most, start + rows - first))


def files_into(table: ice.Table, files: int, rows: int) -> None:
    """Write files of so many rows each, in one commit."""
    write = table.new_write()
    written = []
    for number in range(files):
        with TaskWriter(write, table.storage, SCHEMA, task=number) as writer:
            writer.write(pa.RecordBatchReader.from_batches(SCHEMA, batches(number * rows, rows)))
        written.append(writer.written)
    table.commit_files(write, written)


@cache
def made(name: str, files: int, rows: int) -> ice.Table:
    """Make a table of version 2 if it is not there, and open it."""
    folder = FOLDER / f"scan-1-{name}-{files}x{rows}"
    ready = folder / "location"
    if not ready.exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        print(f"    making a table of {files:,} files of {rows:,} rows", flush=True)
        properties = {
            "format-version": "2",
            "write.parquet.compression-codec": "zstd",
            "write.target-file-size-bytes": str(1 << 40),
        }
        with ice.load_catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder)) as catalog:
            catalog.create_namespace("db")
            table = catalog.create_table("db.t", schema=SCHEMA, properties=properties)
            files_into(table, files, rows)
            ready.write_text(table.metadata_location)
    return ice.Table.from_metadata(ready.read_text())


@cache
def deleting(kind: str) -> str:
    """Give the metadata file of the plain table with deletes of a kind; made if it is not there."""
    plain = made("plain", FILES, ROWS // FILES)
    path = local(plain.location()) / "deletes" / kind / f"00000-{kind}.metadata.json"
    if not path.exists():
        shutil.rmtree(path.parent, ignore_errors=True)
        print(f"    making deletes: {kind}", flush=True)
        if kind.startswith("equality"):
            ids = np.random.default_rng(7).permutation(ROWS)[: int(kind.partition("-")[2])].tolist()
            with_deletes(plain, 2, kind, lambda folder, _: equality_deletes(folder, ids))
        elif kind == "vectors":
            with_deletes(plain, 3, kind, vectors)
        else:
            with_deletes(plain, 2, kind, position_deletes)
    return str(path)


# Peers: metadata file and raw files of a table, and a question; the answer is a number or rows

Peer = Callable[[str, Sequence[str], Question], Any]


def icefield(location: str, _: Sequence[str], question: Question) -> Any:
    """Read the table."""
    table = ice.Table.from_metadata(location)
    columns = question.columns or ("*",)
    scan = table.scan(row_filter=question.sql, selected_fields=columns, limit=question.limit)
    return scan.count() if question.count else scan.to_arrow()


def of_frame(frame: pl.LazyFrame, question: Question) -> Any:
    """Ask a lazy frame of Polars."""
    if question.tests:
        frame = frame.filter(question.over(pl.col))
    if question.columns:
        frame = frame.select(question.columns)
    if question.limit is not None:
        frame = frame.head(question.limit)
    return frame.select(pl.len()).collect().item() if question.count else frame.collect()


def polars(location: str, _: Sequence[str], question: Question) -> Any:
    """Read the table with Polars."""
    return of_frame(pl.scan_iceberg(location), question)


def polars_raw(_: str, files: Sequence[str], question: Question) -> Any:
    """Read the raw files with Polars."""
    return of_frame(pl.scan_parquet(list(files)), question)


def pyarrow_raw(_: str, files: Sequence[str], question: Question) -> Any:
    """Read the raw files with pyarrow."""
    dataset = ds.dataset(list(files))
    filtered = question.over(pc.field)
    if question.count:
        return dataset.count_rows(filter=filtered)
    if question.limit is not None:
        return dataset.head(question.limit)
    return dataset.to_table(columns=question.columns and list(question.columns), filter=filtered)


def pyiceberg(location: str, _: Sequence[str], question: Question) -> Any:
    """Read the table with PyIceberg."""
    from pyiceberg.table import StaticTable

    table = StaticTable.from_metadata(location)
    scan = table.scan(
        row_filter=question.sql or "true", selected_fields=question.columns or ("*",), limit=question.limit
    )
    return scan.count() if question.count else scan.to_arrow()


def datafusion(location: str, _: Sequence[str], question: Question) -> Any:
    """Read the table with pyiceberg-core in DataFusion."""
    from datafusion import SessionContext
    from pyiceberg_core.datafusion import IcebergDataFusionTable

    context = SessionContext()
    table = IcebergDataFusionTable(["db", "t"], location, {})
    context.register_table("t", table)
    return of_sql(lambda sql: context.sql(sql).to_arrow_table(), question, "t")


def duckdb(location: str, _: Sequence[str], question: Question) -> Any:
    """Read the table with DuckDB's extension, if it is installed."""
    import duckdb as duck

    connection = duck.connect()
    connection.execute("LOAD iceberg")
    return of_sql(lambda sql: connection.execute(sql).to_arrow_table(), question, f"iceberg_scan('{location}')")


def of_sql(run: Callable[[str], pa.Table], question: Question, source: str) -> Any:
    """Ask a peer that speaks SQL."""
    wanted = "count(*)" if question.count else ", ".join(question.columns or ("*",))
    condition = f" WHERE {question.sql}" if question.sql else ""
    limit = "" if question.limit is None else f" LIMIT {question.limit}"
    found = run(f"SELECT {wanted} FROM {source}{condition}{limit}")
    return found.column(0)[0].as_py() if question.count else found


PEERS: dict[str, Peer] = {
    "polars": polars,
    "pyiceberg": pyiceberg,
    "duckdb": duckdb,
    "datafusion": datafusion,
    "pyarrow-raw": pyarrow_raw,
    "polars-raw": polars_raw,
}
RAW = {"pyarrow-raw", "polars-raw"}


def gist(answer: Any) -> Any:
    """Give what two peers that answer alike have in common: the number, or how many rows with which ids."""
    if isinstance(answer, int):
        return answer
    table = pa.table(answer)
    ids = pc.sum(table.column("id")).as_py() if table.num_rows > 10 else None
    return table.num_rows, table.num_columns, ids


#: Peers of a line by their names, each without arguments.
Runs = dict[str, Callable[[], Any]]


def lines_of(
    location: str, of_raw: str, question: Question, options: argparse.Namespace, plain: str | None
) -> tuple[Question, Runs] | None:
    """Find the peers of a line: those whose answer is ours. None if the question is not asked for."""
    if options.questions and question.name not in options.questions:
        return None
    files = [str(local(file["file_path"])) for file in ice.Table.from_metadata(of_raw).scan().plan_files().files]
    runs: Runs = {"icefield": partial(icefield, location, files, question)}
    expected = gist(runs["icefield"]())
    if plain is not None:
        runs["icefield, no deletes"] = partial(icefield, plain, files, question)
    for name in list(options.peers):
        run = partial(PEERS[name], location, files, question)
        try:
            found = gist(run())
        except Exception as error:  # noqa: BLE001 - whatever a peer refuses with
            reason = (str(error).strip().splitlines() or [""])[0][:120]
            print(f"    {name}, {question.name}: {type(error).__name__}: {reason}", flush=True)
            if isinstance(error, ImportError) or "extension" in reason:
                options.peers.remove(name)
            continue
        if found != expected and (plain is None or name not in RAW):
            print(f"    {name}, {question.name}: other rows: {found}, not {expected}", flush=True)
            continue
        runs[name] = run
    return question, runs


def lines(
    location: str,
    of_raw: str,
    asked: Sequence[Question],
    options: argparse.Namespace,
    plain: tuple[str, float] | None = None,
) -> list[Row]:
    """Ask questions of a table and the raw files of `of_raw`; `plain` is the table without deletes, and our target."""
    rows = []
    for question in asked:
        if (line := lines_of(location, of_raw, question, options, plain and plain[0])) is not None:
            held = targets(question, line[1], plain and plain[1])
            # Answers of milliseconds depend on what the peer before has left in the caches.
            warm = question.count or question.limit is not None
            rows.append(measure(question.name, line[1], rounds=options.rounds, targets=held, warm=warm))
    return rows


def targets(question: Question, runs: dict[str, Any], most: float | None) -> list[Target]:
    """Hold us to the raw readers of the plain table, and to ourselves without deletes: `most` times its time."""
    if question.name not in {"all columns", "three columns"}:
        return []
    if most is not None:
        return [Target("icefield, no deletes", most)]
    return [Target(name, 1.0) for name in sorted(RAW & runs.keys())]


def part_plain(options: argparse.Namespace) -> None:
    """Ask the plain table."""
    location = str(made("plain", FILES, ROWS // FILES).metadata_location)
    rows = lines(location, location, questions(ROWS), options)
    report(f"{ROWS:,} rows x {len(SCHEMA)}, {FILES} files", rows, floor=None)


def part_deletes(kind: str, most: float, options: argparse.Namespace) -> None:
    """Ask the table with deletes of a kind."""
    plain = str(made("plain", FILES, ROWS // FILES).metadata_location)
    rows = lines(deleting(kind), plain, questions(ROWS), options, plain=(plain, most))
    report(f"{ROWS:,} rows, deletes: {kind}", rows, floor="icefield, no deletes")


def part_small(options: argparse.Namespace) -> None:
    """Ask the table of many small files."""
    location = str(made("small", SMALL_FILES, SMALL_ROWS).metadata_location)
    rows = lines(location, location, questions(SMALL_FILES * SMALL_ROWS), options)
    report(f"{SMALL_FILES:,} files of {SMALL_ROWS:,} rows", rows)


def part_lookup(options: argparse.Namespace) -> None:
    """Ask the one large file, sorted by id, for one row; the floor is a file with that page of each column alone."""
    table = made("large", 1, LARGE_ROWS)
    location = str(table.metadata_location)
    wanted = LARGE_ROWS // 3
    page = local(table.location()) / f"page-{PAGE_ROWS}.parquet"
    if not page.exists():
        rows = table.scan(f"id >= {wanted} AND id < {wanted + PAGE_ROWS}").to_arrow()
        pq.write_table(rows, page, compression="zstd")
    asked = [
        Question("one row", tests=(("id", "=", wanted),)),
        Question("one row, one column", ("id",), tests=(("id", "=", wanted),)),
    ]
    floors = {"one row": None, "one row, one column": ["id"]}
    found = []
    for row in (lines_of(location, location, question, options, None) for question in asked):
        if row is not None:
            question, runs = row
            floor = "its page alone, pyarrow"
            runs[floor] = lambda q=question: pq.read_table(page, columns=floors[q.name])
            target = [Target(floor, 5)]
            found.append(measure(question.name, runs, rounds=options.rounds, targets=target, warm=True))
    size = sum(file["file_size_in_bytes"] for file in table.scan().plan_files().files)
    report(f"{LARGE_ROWS:,} rows in one file, {size >> 20} MiB", found, floor="its page alone, pyarrow")


STREAM = """
import re, sys
import pyarrow
import icefield as ice

def status(name):
    with open("/proc/self/status") as about:
        return int(re.search(name + r":\\s+(\\d+) kB", about.read())[1]) << 10

scan = ice.Table.from_metadata(sys.argv[1]).scan()
scan.plan_files()
before = status("VmRSS")
largest = rows = 0
for batch in scan.to_arrow_batch_reader():
    largest, rows = max(largest, batch.nbytes), rows + batch.num_rows
print(rows, largest, status("VmHWM") - before)
"""


#: The allocator gives back what is freed at once.
NOTHING_KEPT = {"MIMALLOC_ALLOW_THP": "0", "MIMALLOC_PURGE_DELAY": "0", "MIMALLOC_ARENA_EAGER_COMMIT": "0"}


def part_memory(_: argparse.Namespace) -> None:
    """Stream a table in a process of its own, and print the peak of its memory beside its largest batch.

    The target is that of the memory that reading needs. The allocator keeps what was freed for ten seconds, in large
    pages, so that the system need not clear it again: the peak with that is printed beside it.
    """
    plain = str(made("plain", FILES, ROWS // FILES).metadata_location)
    for title, location in (("plain", plain), ("positions", deleting("positions")), ("vectors", deleting("vectors"))):
        command = [sys.executable, "-c", STREAM, location]
        found = []
        for allocator in (NOTHING_KEPT, {}):
            environment = {**os.environ, **allocator}
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
            found.append([int(word) for word in done.stdout.split()])
        (rows, largest, peak), (_, _, kept) = found
        # A batch that is decoded and two that wait, by each thread, and the one that is taken.
        in_flight = largest * (3 * int(os.environ.get("ICEFIELD_THREADS", os.cpu_count() or 1)) + 1)
        verdict = "met" if peak < 2 * in_flight else "**missed**"
        print(
            f"streamed {rows:,} rows ({title}): peak memory {peak >> 20} MiB ({kept >> 20} MiB with what the allocator "
            f"keeps), batches in flight {in_flight >> 20} MiB; target: at most twice these: {verdict}",
            flush=True,
        )


PARTS: dict[str, Callable[[argparse.Namespace], None]] = {
    "plain": part_plain,
    "positions": partial(part_deletes, "positions", 1.15),
    "vectors": partial(part_deletes, "vectors", 1.15),
    "equality-1000": partial(part_deletes, "equality-1000", 1.3),
    "equality-400000": partial(part_deletes, "equality-400000", 2.0),
    "small": part_small,
    "lookup": part_lookup,
    "memory": part_memory,
}


def words(text: str) -> list[str]:
    """Give the words between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


def main() -> None:
    """Ask what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], help="all without")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peers", type=words, default=",".join(PEERS))
    parser.add_argument("--questions", type=words, default="")
    options = parser.parse_args()
    if unknown := set(options.peers) - PEERS.keys():
        parser.error(f"no such peers: {', '.join(unknown)}; there are {', '.join(PEERS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    for part in options.parts or PARTS:
        PARTS[part](options)


if __name__ == "__main__":
    main()
