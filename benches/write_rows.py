"""How long do changes of rows take: upserts, deletes of 1 %, one partition of a thousand?

Each question is answered in a process of its own, once, whose peak of memory is counted; the answers (rows that are
left) must agree. Peers: PyIceberg, and Java by Spark's ``local[2]``, which is warm and whose statement alone is timed.
The tables of a question have the same data files. DuckDB and Polars delete and upsert only in tables of a REST catalog,
or not at all, and are no peers here.

    python benches/write_rows.py [--rows N] [--only WORDS]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from append import data

import icefield as ice

#: Rows of these counts are 1 % of all.
FEW = "count < 10"
REST = "count >= 10"
PARTITIONS = 1000


def catalog(folder: Path) -> ice.Catalog:
    return ice.load_catalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))


def pyiceberg(folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog("bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")


def keyed(ids: np.ndarray[Any, Any], count: int) -> pa.Table:
    """Make rows with these keys."""
    rows = data(count)
    return rows.set_column(0, "id", pa.array(ids))


def prepare(folder: Path, rows: int) -> None:
    """Write the data files that all large tables have."""
    random = np.random.default_rng(3)
    with catalog(folder) as opened:
        opened.create_namespace("db")
        table = opened.create_table("db.base", schema=data(1).schema, properties={"format-version": "3"})
        keys = random.permutation(rows)
        step = max(rows // 10, 1)
        for first in range(0, rows, step):
            ids = keys[first : first + step]
            table.append(keyed(ids, len(ids)))
        small = opened.create_table("db.small", schema=data(1).schema)
        small.append(keyed(random.permutation(100_000), 100_000))
        parts = pa.schema([("part", pa.int32()), ("value", pa.int64())])
        parted = opened.create_table("db.parted", schema=parts, partition_by=["part"])
        numbers = np.arange(PARTITIONS * 1000)
        parted.append(pa.table([pa.array(numbers % PARTITIONS, pa.int32()), pa.array(numbers)], parts))


def like(folder: Path, of: str, name: str, **properties: str) -> ice.Table:
    """Make a table with the data files of another one."""
    opened = catalog(folder)
    base = opened.load_table(f"db.{of}")
    paths = [file["file_path"] for file in base.inspect.files().to_pylist()]
    fields = [field.name for field in base.spec().fields]
    table = opened.create_table(f"db.{name}", schema=base.schema(), partition_by=fields, properties=properties)
    return table.add_files(paths)


def timed(act: Callable[[], object]) -> float:
    start = perf_counter()
    act()
    return perf_counter() - start


def upsert_small(folder: Path, _: int) -> tuple[float, object]:
    table = like(folder, "small", "upsert_small", **{"format-version": "2"})
    source = keyed(np.random.default_rng(5).permutation(110_000)[:20_000], 20_000)
    return timed(lambda: table.upsert(source, ["id"])), table.scan().count()


def upsert_small_pyiceberg(folder: Path, _: int) -> tuple[float, object]:
    like(folder, "small", "upsert_theirs", **{"format-version": "2"})
    table = pyiceberg(folder).load_table("db.upsert_theirs")
    source = keyed(np.random.default_rng(5).permutation(110_000)[:20_000], 20_000)
    return timed(lambda: table.upsert(source, ["id"])), table.scan().to_arrow().num_rows


def upsert_large(folder: Path, rows: int) -> tuple[float, object]:
    table = like(folder, "base", "upsert_large", **{"format-version": "3"})
    count = rows // 10
    source = keyed(np.random.default_rng(5).permutation(rows + count)[:count], count)
    return timed(lambda: table.upsert(source.to_reader(), ["id"])), table.scan().count()


def deleting(mode: str) -> Callable[[Path, int], tuple[float, object]]:
    def run(folder: Path, _: int) -> tuple[float, object]:
        table = like(folder, "base", f"delete_{mode[:4]}", **{"format-version": "3"})
        return timed(lambda: table.delete(FEW, mode=mode)), table.scan().count()  # type: ignore[arg-type]

    return run


def delete_pyiceberg(folder: Path, _: int) -> tuple[float, object]:
    like(folder, "base", "delete_theirs", **{"format-version": "2"})
    table = pyiceberg(folder).load_table("db.delete_theirs")
    return timed(lambda: table.delete(FEW)), table.scan(selected_fields=("id",)).to_arrow().num_rows


def delete_java(folder: Path, _: int) -> tuple[float, object]:
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "interop"))
    from conftest import Java

    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    for name in ("delete_warm", "delete_java"):
        like(folder, "base", name, **properties)
    java = Java(os.environ["ICEFIELD_JAVA_PYTHON"], folder)
    java.catalog("bench", folder / "catalog.db", folder)
    java.sql("DELETE FROM bench.db.delete_warm WHERE count = 500")
    seconds = timed(lambda: java.sql("DELETE FROM bench.db.delete_java WHERE count < 10"))
    java.close()
    return seconds, catalog(folder).load_table("db.delete_java").scan().count()


def copying(folder: Path, _: int) -> tuple[float, object]:
    """Read what stays and append it: the least that a rewrite of all files costs."""
    base = catalog(folder).load_table("db.base")
    target = catalog(folder).create_table("db.copied", schema=base.schema(), properties={"format-version": "3"})
    read = base.scan(row_filter=REST)
    return timed(lambda: target.append(read.to_arrow_batch_reader())), target.scan().count()


def one_partition(folder: Path, _: int) -> tuple[float, object]:
    table = catalog(folder).load_table("db.parted")
    rows = pa.table([pa.array([7] * 1000, pa.int32()), pa.array(range(1000), pa.int64())], ["part", "value"])
    done: list[Any] = []
    seconds = timed(lambda: done.append(table.dynamic_partition_overwrite(rows)))
    return seconds, (done[0].files_removed, done[0].files_rewritten, table.scan().count())


QUESTIONS: dict[str, dict[str, Callable[[Path, int], tuple[float, object]]]] = {
    "upsert 20k into 100k": {"icefield": upsert_small, "PyIceberg": upsert_small_pyiceberg},
    "upsert a tenth": {"icefield": upsert_large},
    "delete 1 %": {
        "icefield, vectors": deleting("merge-on-read"),
        "icefield, copy-on-write": deleting("copy-on-write"),
        "icefield, read and append": copying,
        "PyIceberg": delete_pyiceberg,
        "Java, vectors": delete_java,
    },
    "overwrite one partition of 1,000": {"icefield": one_partition},
}
#: For each: whose time, of whose, is at most how much.
TARGETS = [
    ("upsert 20k into 100k", "icefield", "PyIceberg", 0.1),
    ("delete 1 %", "icefield, vectors", "icefield, copy-on-write", 0.3),
    ("delete 1 %", "icefield, vectors", "Java, vectors", 0.5),
    ("delete 1 %", "icefield, copy-on-write", "icefield, read and append", 1.3),
]


def peak() -> int:
    """Return the most memory that this process has had, in MB (``getrusage`` would count what its parent had)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) // 1024


def answer(question: str, peer: str, folder: Path, rows: int) -> None:
    """Answer one question, in a process of its own."""
    before = peak()
    seconds, found = QUESTIONS[question][peer](folder, rows)
    print(json.dumps({"seconds": seconds, "peak": peak(), "before": before, "found": found}))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=10_000_000)
    arguments.add_argument("--only", default="")
    arguments.add_argument("--answer", nargs=3, metavar=("QUESTION", "PEER", "FOLDER"))
    given = arguments.parse_args()
    if given.answer:
        question, peer, folder = given.answer
        answer(question, peer, Path(folder), given.rows)
        return
    with tempfile.TemporaryDirectory() as temporary:
        prepare(Path(temporary), given.rows)
        seconds: dict[tuple[str, str], float] = {}
        for question, peers in QUESTIONS.items():
            if given.only not in question:
                continue
            found = {}
            for peer in peers:
                if peer.startswith("Java") and "ICEFIELD_JAVA_PYTHON" not in os.environ:
                    print(f"{question:<34} {peer:<26} left out: ICEFIELD_JAVA_PYTHON names no environment")
                    continue
                own = [sys.executable, __file__, "--rows", str(given.rows), "--answer", question, peer, temporary]
                done = subprocess.run(own, check=True, capture_output=True, text=True)
                told = json.loads(done.stdout.splitlines()[-1])
                seconds[question, peer] = told["seconds"]
                found[peer] = told["found"]
                print(
                    f"{question:<34} {peer:<26} {told['seconds']:8.2f} s   peak {told['peak']:6,} MB   {told['found']}"
                )
            assert len(set(map(str, found.values()))) <= 1, f"{question}: answers differ: {found}"
        for question, ours, theirs, most in TARGETS:
            if (question, ours) in seconds and (question, theirs) in seconds:
                share = seconds[question, ours] / seconds[question, theirs]
                verdict = "met" if share <= most else "**missed**"
                print(f"{question}: {ours} takes {share:.2f} of {theirs}, at most {most}: {verdict}")


if __name__ == "__main__":
    main()
