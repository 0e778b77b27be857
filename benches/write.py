"""How long does it take to commit, and what is read and written for it?

Section ``commits``: a table of 100,000 data files in 1,000 manifests, one a partition, without data files on disk; an
append, an overwrite of one partition and a delete of one, each of the table as it was; and the expiry of 1,000
snapshots, each of which replaced 100 files, beside the Java library in a warm virtual machine. Below stand the targets,
met or missed. Bytes are those of system calls (``/proc/self/io``).

    python benches/write.py commits
    python benches/write.py commits --peers java

Environment: ``ICEFIELD_BENCH_FILES`` (100000), ``ICEFIELD_JAVA_PYTHON`` (the Python of ``tests/interop``).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import pyarrow as pa

import icefield as ice

HERE = Path(__file__).resolve().parent
FILES = int(os.environ.get("ICEFIELD_BENCH_FILES", "100000"))
#: Files of a manifest, which is that of one partition, and of a snapshot that expires.
FILES_OF_MANIFEST = 100
SNAPSHOTS = 1000
SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.int32()), ("text", pa.string())])


@dataclass(frozen=True)
class Cost:
    """What a commit took."""

    seconds: float
    read: int
    written: int

    def __str__(self) -> str:
        return f"{self.seconds * 1000:8.1f} ms  {self.read / 1e6:7.2f} MB read  {self.written / 1e6:7.3f} MB written"


def io_bytes() -> tuple[int, int]:
    """Return the bytes that this process has read and written so far."""
    lines = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(lines["rchar"]), int(lines["wchar"])


def cost_of(work: Callable[[], object]) -> Cost:
    """Carry out some work, and return what it took."""
    before, started = io_bytes(), perf_counter()
    work()
    seconds, after = perf_counter() - started, io_bytes()
    return Cost(seconds, after[0] - before[0], after[1] - before[1])


@contextmanager
def new_table(**properties: str) -> Iterator[ice.Table]:
    """Make a table partitioned by ``part`` in a folder that is deleted at the end."""
    folder = Path(tempfile.mkdtemp(prefix="icefield-bench-"))
    try:
        catalog = ice.load_catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
        catalog.create_namespace("n")
        yield catalog.create_table("n.t", SCHEMA, partition_by="part", properties=properties)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def described(table: ice.Table, number: int, part: int, name: str = "f") -> ice.DataFile:
    """Describe a file with metrics of all columns."""
    low, high = (ice.values.to_bytes(number * 1000 + more, "long") for more in (0, 999))
    of_part = ice.values.to_bytes(part, "int")
    return ice.DataFile(
        file_path=f"{table.location()}/data/part={part}/{name}-{number:08}.parquet",
        file_format="parquet",
        partition=[part],
        record_count=1000,
        file_size_in_bytes=1 << 20,
        column_sizes={1: 8000, 2: 4000, 3: 20000},
        value_counts={1: 1000, 2: 1000, 3: 1000},
        null_value_counts={1: 0, 2: 0, 3: 10},
        lower_bounds={1: low, 2: of_part, 3: b"aaaaaaaaaaaaaaaa"},
        upper_bounds={1: high, 2: of_part, 3: b"zzzzzzzzzzzzzzz{"},
        split_offsets=[4],
    )


def fill(table: ice.Table) -> int:
    """Append all files by manifests, and return the number of these."""
    append = table.update_snapshot().fast_append()
    parts = FILES // FILES_OF_MANIFEST
    for part in range(parts):
        with table.new_manifest_writer() as writer:
            for number in range(part * FILES_OF_MANIFEST, (part + 1) * FILES_OF_MANIFEST):
                writer.add(described(table, number, part))
        append.append_manifest(writer.to_manifest_file())
    append.commit()
    return parts


def verdict(name: str, met: bool, said: str) -> None:
    """Print a target, and whether it was met."""
    print(f"    {'met   ' if met else 'MISSED'}  {name}: {said}")


def commits_to_a_large_table() -> None:
    """Append, overwrite and delete in a table of many manifests."""
    with new_table(**{"commit.manifest-merge.enabled": "false"}) as table:
        started = perf_counter()
        parts = fill(table)
        seconds = perf_counter() - started
        print(f"{FILES:,} files in {parts:,} manifests, appended as manifests in {seconds:.2f} s")
        catalog, first = table.catalog, table.current_snapshot().snapshot_id

        def commit(name: str, change: Callable[[ice.Table], object]) -> tuple[Cost, dict[str, str]]:
            costs = []
            for _ in range(5):
                costs.append(cost_of(lambda: change(catalog.load_table("n.t"))))
                table.refresh()
                summary = dict(table.current_snapshot().summary or {})
                table.manage_snapshots().rollback_to_snapshot(first).commit()
            middle = sorted(costs, key=lambda cost: cost.seconds)[len(costs) // 2]
            kept = {key: value for key, value in summary.items() if key.startswith("manifests-")}
            print(f"  {name:34} {middle}  {kept}")
            return middle, summary

        def append(to: ice.Table) -> None:
            to.update_snapshot().fast_append().append_data_file(described(to, FILES, 7, "new")).commit()

        def merged(to: ice.Table) -> None:
            to.update_snapshot().merge_append().append_data_file(described(to, FILES, 7, "new")).commit()

        def replace(to: ice.Table) -> None:
            to.replace_partitions().append_data_file(described(to, FILES, 7, "new")).commit()

        def delete(to: ice.Table) -> None:
            to.delete("part = 7")

        for name, change in [("fast append of a file", append), ("append, without merging", merged)]:
            cost, _ = commit(name, change)
            verdict(name, cost.seconds < 0.1, "under 100 ms")
            verdict(name, cost.written < 1e6, "less than 1 MB written")
            verdict(name, cost.read < 20e6, "20 MB read at the most")
        for name, change in [("replacement of a partition", replace), ("delete of a partition", delete)]:
            cost, summary = commit(name, change)
            verdict(name, summary["manifests-replaced"] == "1", "one manifest is touched")
            verdict(name, cost.seconds < 0.1, "under 100 ms")
            verdict(name, cost.written < 1e6, "less than 1 MB written")
        table.update_properties({"commit.manifest-merge.enabled": "true"})
        cost, _ = commit("append that merges all manifests", merged)


def history(table: ice.Table) -> None:
    """Make snapshots, each of which replaces the files of the one before; its data files are empty."""
    for snapshot in range(SNAPSHOTS):
        change = table.replace_partitions()
        for number in range(FILES // SNAPSHOTS):
            file = described(table, snapshot * (FILES // SNAPSHOTS) + number, 0)
            path = Path(file.file_path.removeprefix("file://"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
            change.append_data_file(file)
        change.commit()


def expiry(peers: set[str]) -> None:
    """Expire all snapshots but the last."""
    with new_table() as table:
        started = perf_counter()
        history(table)
        print(f"{SNAPSHOTS:,} snapshots with {FILES:,} files, made in {perf_counter() - started:.1f} s")
        folder = Path(table.location().removeprefix("file://")).parents[1]
        seconds: dict[str, float] = {}
        copy = folder.with_name(f"{folder.name}-kept")
        if "java" in peers:
            shutil.copytree(folder, copy)
        now = table.current_snapshot().timestamp_ms + 1
        done: list[ice.table.maintenance.ExpiredSnapshots] = []

        def expire() -> None:
            done.append(table.expire_snapshots(older_than=now, retain_last=1))

        cost = cost_of(expire)
        print(f"  {'icefield':34} {cost}  {len(done[0].deleted_files):,} files deleted")
        seconds["icefield"] = cost.seconds
        if "java" in peers:
            shutil.rmtree(folder)
            copy.rename(folder)
            answer = java({"folder": str(folder), "older_than_ms": now, "threads": 2})
            if "error" in answer:
                print(f"  java: {answer['error']}")
                return
            seconds["java"] = float(answer["seconds"])
            print(f"  {'java':34} {seconds['java'] * 1000:8.1f} ms  {answer['files']:,} files deleted")
            share = seconds["icefield"] / seconds["java"]
            verdict("expiry", share <= 0.2, f"a fifth of Java's time (it is {share:.2f})")


def java(asked: dict[str, object]) -> dict[str, object]:
    """Ask the Java peer, started for one request."""
    python = os.environ.get("ICEFIELD_JAVA_PYTHON")
    if not python:
        return {"error": "ICEFIELD_JAVA_PYTHON is not set"}
    reading, writing = os.pipe()
    command = [python, str(HERE / "write_java_peer.py"), str(writing)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[writing], text=True) as peer:
        os.close(writing)
        assert peer.stdin is not None
        with os.fdopen(reading) as answers:
            if not answers.readline():
                return {"error": "it did not start"}
            peer.stdin.write(json.dumps(asked) + "\n")
            peer.stdin.flush()
            line = answers.readline()
            peer.stdin.close()
    answer: dict[str, object] = json.loads(line) if line else {"error": "it ended"}
    return answer


def fsync_floor() -> None:
    """Print what three small files cost here, written and synchronised: a commit cannot be faster."""
    with tempfile.TemporaryDirectory() as folder:
        times = []
        for number in range(5):
            started = perf_counter()
            for name in "abc":
                with (Path(folder) / f"{name}{number}").open("wb") as file:
                    file.write(b"x" * 10_000)
                    file.flush()
                    os.fsync(file.fileno())
            times.append(perf_counter() - started)
        print(f"floor: three files of 10 kB, synchronised: {statistics.median(times) * 1000:.1f} ms")


SECTIONS: dict[str, Callable[[set[str]], None]] = {}


def commits(peers: set[str]) -> None:
    """Carry out the section ``commits``."""
    fsync_floor()
    commits_to_a_large_table()
    expiry(peers)


SECTIONS["commits"] = commits


def main() -> None:
    """Carry out the sections that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=list(SECTIONS), help=", ".join(SECTIONS))
    parser.add_argument("--peers", default="java", help="peers, with commas between; '' for none")
    arguments = parser.parse_args()
    for section in arguments.sections:
        SECTIONS[section](set(arguments.peers.split(",")) - {""})


if __name__ == "__main__":
    main()
