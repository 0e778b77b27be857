"""Changes of rows of files that are much larger than the memory they take."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice

#: Deletes every third row by writing the file again, and prints by how many bytes the process has grown at the most.
PROGRAM = """
import re, sys
import icefield as ice

def status(name):
    # Not ru_maxrss: a program that is run inherits that of who runs it.
    with open("/proc/self/status") as about:
        return int(re.search(name + r":\\s+(\\d+) kB", about.read())[1]) << 10

folder, change, limit = sys.argv[1:]
table = ice.load_catalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=folder).load_table("a.t")
table.scan("third = 0", limit=1).to_arrow()
before = status("VmRSS")
how = {"mode": "copy-on-write", "branch": change, "memory_limit": int(limit)}
done = {
    "delete": lambda: table.delete("third = 0", **how),
    "compare": lambda: table.delete("third = zero", **how),
    "update": lambda: table.update({"third": 7}, "third = 0", **how),
}[change]()
print(done.rows_removed, done.files_rewritten, done.bytes_rewritten, status("VmHWM") - before)
"""
ROWS = 200_000
LIMIT = 8 << 20
#: The writer has chunks of 32 MiB, one that is gathered and one that waits; the allocator keeps some that is free.
MOST = 128 << 20


def batches() -> Iterator[pa.RecordBatch]:
    """Texts of 1,000 bytes each."""
    for start in range(0, ROWS, 2000):
        numbers = range(start, start + 2000)
        texts = pa.array([f"{number:01000}" for number in numbers])
        yield pa.record_batch({"third": [n % 3 for n in numbers], "zero": [0] * 2000, "text": texts})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a table of one large file."""
    folder = tmp_path_factory.mktemp("large")
    catalog = ice.load_catalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder))
    catalog.create_namespace("a")
    properties = {
        "write.parquet.row-group-size-bytes": str(4 << 20),
        "write.parquet.compression-codec": "uncompressed",
        "write.target-file-size-bytes": str(1 << 40),
    }
    schema = pa.schema([("third", pa.int64()), ("zero", pa.int64()), ("text", pa.string())])
    table = catalog.create_table("a.t", schema, properties=properties)
    table.append(pa.RecordBatchReader.from_batches(schema, batches()))
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("change", ["delete", "compare", "update"])
def test_a_large_file_is_written_again_in_flat_memory(folder: Path, change: str) -> None:
    """Each on a branch of its own, of one table."""
    table = ice.load_catalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder)).load_table("a.t")
    (size,) = table.inspect.files()["file_size_in_bytes"].to_pylist()
    assert size > 23 * LIMIT
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder), change, str(LIMIT)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "ICEFIELD_THREADS": "2"},
    )
    removed, rewritten, rewritten_bytes, peak = (int(word) for word in done.stdout.split())
    assert (removed, rewritten, rewritten_bytes) == (len(range(0, ROWS, 3)), 1, size)
    kept = 0 if change == "update" else removed
    assert table.refresh().scan(snapshot_id=table.snapshot_by_name(change).snapshot_id).count() == ROWS - kept
    assert peak < MOST, f"{peak >> 20} MiB"
