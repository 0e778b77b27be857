"""How fast are ORC files decoded, filtered and written?

TPC-H-like line items (16 columns, sorted by key) and a table of 48 columns, both zstd. Peers: ``pyarrow.orc`` (through
its dataset), orc-core in a warm JVM, which keeps its own form of batches and, in a filter, whole row groups, and
orc-rust, where ``benches/orc_rust_peer`` builds (``ICEFIELD_BENCH_ORC_RUST`` names a binary, or nothing to leave it
out). It reads with one thread, has no filter that keeps rows, and writes without dictionaries, indexes and statistics.
Parquet of the same rows, read by pyarrow, stands beside them for context.

    python benches/orc.py [--rows N] [--rounds N] [--only lineitem,threads,columns,filter,wide,write] [--cache DIR]

The files are made once for each number of rows, in a folder elsewhere; with ``--prepare`` nothing else is done. What
two threads can reach is said beside them: two processes that read at once, with one thread each, share nothing but the
machine, so twice the speed of one alone is more than its memory may allow.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import orc_tables
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.orc as po
import pyarrow.parquet as pq
import pyspark
from side_by_side import Row, Target, measure, report

import icefield as ice

HERE = Path(__file__).parent
THREE = ["l_orderkey", "l_extendedprice", "l_shipmode"]
KEY = "l_orderkey"
#: The share of the rows that the filter keeps.
KEPT = 0.005
BATCH = 8192
#: Turns, at the least, of two threads and of one, where the one is held to the other.
TURNS = 15


class Piped:
    """A peer in a process that stays: a question a line, ``seconds rows`` or an error for an answer."""

    def __init__(self, name: str, command: list[str]) -> None:
        self._name = name
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, *words: object) -> int:
        """Send a question, and wait for the number of rows."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline().split()
        if not answer or answer[0] == "error":
            msg = f"{self._name} cannot answer {words}: {' '.join(answer[1:])}"
            raise RuntimeError(msg)
        return int(answer[1])

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def java() -> Piped:
    """``OrcCore.java``, started once by the Java that the tests run on."""
    home = subprocess.check_output([HERE.parent / ".ci" / "java-home", sys.prefix], text=True).strip()
    jars = Path(pyspark.__file__).parent / "jars"
    return Piped("orc-core", [f"{home}/bin/java", "-Xmx3g", "-cp", f"{jars}/*", str(HERE / "OrcCore.java")])


def rust() -> Piped | None:
    """Find or build the peer that stands on orc-rust."""
    built = os.environ.get("ICEFIELD_BENCH_ORC_RUST")
    if built is None:
        manifest = HERE / "orc_rust_peer" / "Cargo.toml"
        built = str(Path(os.environ.get("CARGO_TARGET_DIR", manifest.parent / "target")) / "release/orc-peer")
        command = ["cargo", "build", "--release", "--quiet", "--locked", "--manifest-path", str(manifest)]
        try:
            done = subprocess.run(command, check=False, stderr=subprocess.DEVNULL).returncode == 0
        except FileNotFoundError:
            done = False
        built = built if done else ""
    if not built:
        print("orc-rust is left out: benches/orc_rust_peer does not build", flush=True)
        return None
    return Piped("orc-rust", [built])


class Others(NamedTuple):
    """The peers in processes of their own."""

    java: Piped
    rust: Piped | None


def drained(batches: Iterable[pa.RecordBatch]) -> int:
    """Count rows, and keep none."""
    return sum(batch.num_rows for batch in batches)


class Readers:
    """What each peer does with one file."""

    def __init__(self, folder: Path, name: str, others: Others) -> None:
        self.orc, self.parquet, self.others = str(folder / f"{name}.orc"), str(folder / f"{name}.parquet"), others

    def ours(self, columns: list[str] | None, *, threads: bool = False, predicate: str | None = None) -> int:
        """Read with us."""
        file = ice.orc.ORCFile(self.orc)
        reader = file.to_reader(columns, predicate=predicate, batch_size=BATCH, use_threads=threads)
        return drained(reader)

    def pyarrow(self, columns: list[str] | None, *, threads: bool = False, kept: Any = None, kind: str = "orc") -> int:
        """Read with pyarrow's dataset."""
        pa.set_cpu_count(2 if threads else 1)
        files = ds.dataset(self.orc if kind == "orc" else self.parquet, format=kind)
        return drained(files.scanner(columns=columns, filter=kept, use_threads=threads, batch_size=BATCH).to_batches())

    def peers(self, columns: list[str] | None, *, threads: bool = False) -> dict[str, Callable[[], int]]:
        """Give all peers' ways to read some columns."""
        java, rust = self.others
        peers = {
            "icefield": lambda: self.ours(columns, threads=threads),
            "pyarrow.orc": lambda: self.pyarrow(columns, threads=threads),
            "orc-core": lambda: java.ask("read", self.orc, 2 if threads else 1, ",".join(columns or ())),
        }
        if rust and not threads:
            peers["orc-rust"] = lambda: rust.ask("read", self.orc, ",".join(columns or ()))
        peers["Parquet (pyarrow)"] = lambda: self.pyarrow(columns, threads=threads, kind="parquet")
        return peers


def ask(question: str, peers: dict[str, Callable[[], int]], rounds: int, targets: list[Target], rows: int) -> Row:
    """Check that the peers read as many rows, warm the JVM, and time them."""
    for _ in range(3):
        counts = {name: run() for name, run in peers.items()}
    assert set(counts.values()) == {rows}, f"{question}: {counts}, not {rows}"
    return measure(question, peers, rounds=rounds, amount=rows, targets=targets)


def decode(folder: Path, name: str, others: Others, rounds: int, shares: dict[str, float]) -> Row:
    """All columns, one thread."""
    readers = Readers(folder, name, others)
    rows = po.ORCFile(readers.orc).nrows
    targets = [Target(peer, share) for peer, share in shares.items()]
    return ask(f"{name}, all columns", readers.peers(None), rounds, targets, rows)


def threads(folder: Path, name: str, others: Others, rounds: int) -> list[Row]:
    """All columns, two threads: beside the peers, and beside ourselves with one."""
    readers = Readers(folder, name, others)
    rows = po.ORCFile(readers.orc).nrows
    print(
        f"{name}: two processes at once do {ceiling(readers.orc, max(rounds, TURNS)):.2f} times the work of one",
        flush=True,
    )
    beside = ask(f"{name}, two threads", readers.peers(None, threads=True), rounds, [], rows)
    ways = {"icefield": lambda: readers.ours(None, threads=True), "one thread": lambda: readers.ours(None)}
    target = Target("one thread", 1 / 1.8)
    # A ratio of two short times: one disturbed round of either side must not make it.
    return [beside, ask(f"{name}, two threads beside one", ways, max(rounds, TURNS), [target], rows)]


def alone(file: str, rounds: int) -> None:
    """Read with one thread, once warm and told to, and print the median time; a process of :func:`ceiling`."""

    def read() -> float:
        started = perf_counter()
        drained(ice.orc.ORCFile(file).to_reader(None, batch_size=BATCH, use_threads=False))
        return perf_counter() - started

    read()
    print("ready", flush=True)
    for _ in sys.stdin:
        print(median(read() for _ in range(rounds)), flush=True)


def ceiling(file: str, rounds: int) -> float:
    """How many times the work of one process two do that read at once: what two threads can reach on this machine."""
    command = [sys.executable, __file__, "--alone", file, "--rounds", str(rounds)]
    pair = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]

    def tell(process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    def heard(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        return process.stdout.readline()

    for process in pair:
        heard(process)
    single: list[float] = []
    for process in pair:
        tell(process)
        single.append(float(heard(process)))
    for process in pair:
        tell(process)
    both = [float(heard(process)) for process in pair]
    for process in pair:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
    return sum(min(single) / time for time in both)


def three_columns(folder: Path, others: Others, rounds: int) -> Row:
    """Three of sixteen columns."""
    readers = Readers(folder, "lineitem", others)
    targets = [Target(peer, 0.8) for peer in ("pyarrow.orc", "orc-core", "orc-rust")]
    return ask("lineitem, three columns", readers.peers(THREE), rounds, targets, po.ORCFile(readers.orc).nrows)


def filtered(folder: Path, others: Others, rounds: int) -> Row:
    """Rows of a small range of the key that the file is sorted by, all columns."""
    readers = Readers(folder, "lineitem", others)
    keys = po.ORCFile(readers.orc).read([KEY])[KEY]
    first = int(len(keys) * 0.6)
    low, high = keys[first].as_py(), keys[first + int(len(keys) * KEPT)].as_py()
    kept = (ds.field(KEY) >= low) & (ds.field(KEY) <= high)
    predicate = f"{KEY} >= {low} AND {KEY} <= {high}"
    peers: dict[str, Callable[[], int]] = {
        "icefield": lambda: readers.ours(None, predicate=predicate),
        "pyarrow.orc": lambda: readers.pyarrow(None, kept=kept),
        # It keeps whole row groups.
        "orc-core": lambda: others.java.ask("filter", readers.orc, KEY, low, high),
        "Parquet (pyarrow)": lambda: readers.pyarrow(None, kept=kept, kind="parquet"),
    }
    counts = [{name: run() for name, run in peers.items()} for _ in range(5)][-1]
    assert counts["icefield"] == counts["pyarrow.orc"] <= counts["orc-core"], counts
    return measure(f"lineitem, {KEPT:.1%} by key", peers, rounds=rounds * 3, targets=[Target("orc-core", 0.7)])


def written(folder: Path, others: Others, rounds: int, rows: int) -> Row:
    """Write line items from memory, zstd, with dictionaries, indexes and statistics."""
    source = str(folder / "lineitem.orc")
    table = po.ORCFile(source).read().slice(0, rows).combine_chunks()
    out = {name: folder / f"written-{name}" for name in ("icefield", "pyarrow", "java", "parquet")}
    peers: dict[str, Callable[[], object]] = {
        "icefield": lambda: ice.orc.write_table(table, str(out["icefield"]), compression="zstd"),
        "pyarrow.orc": lambda: po.write_table(
            table, str(out["pyarrow"]), compression="zstd", dictionary_key_size_threshold=0.8
        ),
        "orc-core": lambda: others.java.ask("write", source, out["java"], rows),
        "Parquet (pyarrow)": lambda: pq.write_table(table, str(out["parquet"]), compression="zstd"),
    }
    rust = others.rust
    if rust:
        out["rust"] = folder / "written-rust"
        peers["orc-rust"] = lambda: rust.ask("write", source, out["rust"], rows)
    for peer, run in list(peers.items()):
        try:
            run()
        except RuntimeError as error:
            if peer != "orc-rust":
                raise
            print(error, flush=True)
            del peers[peer], out["rust"]
    sizes = {name: path.stat().st_size / 1e6 for name, path in out.items()}
    print("written, MB: " + ", ".join(f"{name} {size:.1f}" for name, size in sizes.items()))
    assert sizes["icefield"] <= 1.02 * sizes["java"], "larger than orc-core's file"
    return measure(
        f"write {rows / 1e6:g} M line items", peers, rounds=min(rounds, 3), targets=[Target("pyarrow.orc", 0.5)]
    )


def prepare(folder: Path, rows: int) -> None:
    """Make the files that are not there."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make, count in (("lineitem", orc_tables.lineitem, rows), ("wide", orc_tables.wide, rows // 12)):
        missing = [kind for kind in ("orc", "parquet") if not (folder / f"{name}.{kind}").exists()]
        table = make(count) if missing else None
        for kind in missing:
            write, new = (po if kind == "orc" else pq).write_table, folder / f"{name}.{kind}.new"
            write(
                table, str(new), compression="zstd", **({"dictionary_key_size_threshold": 0.8} if kind == "orc" else {})
            )
            new.rename(folder / f"{name}.{kind}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=6_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="lineitem,threads,columns,filter,wide,write")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "icefield-bench-orc")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--alone", metavar="FILE", help="be one of the processes that read at once")
    arguments = parser.parse_args()
    if arguments.alone:
        alone(arguments.alone, arguments.rounds)
        return
    folder = arguments.cache / str(arguments.rows)
    prepare(folder, arguments.rows)
    if arguments.prepare:
        return
    others, rounds, rows = Others(java(), rust()), arguments.rounds, []
    wanted = arguments.only.split(",")
    if "lineitem" in wanted:
        rows.append(decode(folder, "lineitem", others, rounds, {"orc-core": 0.85}))
    if "threads" in wanted:
        rows += threads(folder, "lineitem", others, rounds)
    if "columns" in wanted:
        rows.append(three_columns(folder, others, rounds))
    if "filter" in wanted:
        rows.append(filtered(folder, others, rounds))
    if "wide" in wanted:
        rows.append(decode(folder, "wide", others, rounds, {"orc-core": 0.75, "pyarrow.orc": 0.75, "orc-rust": 0.75}))
        rows += threads(folder, "wide", others, rounds)
    if "write" in wanted:
        rows.append(written(folder, others, rounds, arguments.rows // 3))
    others.java.close()
    if others.rust:
        others.rust.close()
    report(f"ORC, {arguments.rows:,} line items", rows)


if __name__ == "__main__":
    main()
