"""How rows are read, whichever they are: batches, memory, dictionaries, threads, and the line of progress."""

from __future__ import annotations

import gc
import io
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield._outputs.progress import Progress, showing
from icefield.errors import CorruptDataError, InvalidArgumentError, ValidationError


@pytest.fixture
def catalog(tmp_path):
    with ice.load_catalog("local", type="in-memory", warehouse=str(tmp_path / "wh")) as catalog:
        catalog.create_namespace("a")
        yield catalog


def rows(count):
    """Make rows whose texts come again and again."""
    return pa.table({"id": range(count), "city": [f"city of {n % 7}" for n in range(count)]})


def local(path):
    return Path(path.removeprefix("file://"))


@pytest.fixture(params=["parquet", "orc", "avro"])
def table(request, catalog):
    """Give a table of three files in each format."""
    made = catalog.create_table("a.t", rows(1), properties={"write.format.default": request.param})
    for start in (0, 10, 20):
        made.append(rows(30).slice(start, 10))
    return made


def test_batches_have_as_many_rows_as_are_asked_for(table):
    expected = table.scan().to_arrow()
    for size in (1, 3, 7, 10, 100):
        batches = list(table.scan().to_arrow_batch_reader(batch_size=size))
        assert max(batch.num_rows for batch in batches) == min(size, 10)
        assert pa.Table.from_batches(batches).equals(expected)
        assert table.scan().to_arrow(batch_size=size).equals(expected)
    filtered = table.scan("id > 5").to_arrow_batch_reader(batch_size=4)
    assert max(batch.num_rows for batch in filtered) <= 4


@pytest.mark.parametrize("format", ["parquet", "orc", "avro"])
def test_a_limit_decodes_no_more_rows_than_it_needs(catalog, format):
    made = catalog.create_table("a.long", rows(1), properties={"write.format.default": format})
    made.append(rows(60_000))
    found = made.scan(limit=10).to_arrow()
    assert found.equals(rows(10))
    assert found.column("id").chunk(0).buffers()[1].size < 16 << 10
    for limit in (1, 1023, 1025, 59_999, 60_000, 60_001):
        assert made.scan(limit=limit).to_arrow().equals(rows(min(limit, 60_000)))
    assert made.scan("id >= 59990", limit=20).to_arrow().column("id").to_pylist() == list(range(59_990, 60_000))


def test_many_small_files_are_read_in_the_order_of_the_plan(catalog):
    """Threads read several of them in a row and hand them over together."""
    made = catalog.create_table("a.small", rows(1), partition_by="id")
    made.append(rows(300))
    paths = [file["file_path"] for file in made.scan().plan_files().files]
    assert len(paths) == 300
    expected = [pq.ParquetFile(local(path)).read().column("id")[0].as_py() for path in paths]
    assert sorted(expected) == list(range(300))
    assert made.scan().to_arrow().column("id").to_pylist() == expected
    assert made.scan("city != 'city of 3'").to_arrow().column("id").to_pylist() == [n for n in expected if n % 7 != 3]
    local(paths[150]).write_bytes(b"damaged")
    stream = made.scan().to_arrow_batch_reader()
    assert [stream.read_next_batch().column("id")[0].as_py() for _ in range(150)] == expected[:150]
    with pytest.raises(CorruptDataError, match=local(paths[150]).name):
        stream.read_next_batch()
    assert made.scan(limit=150).to_arrow().column("id").to_pylist() == expected[:150]


def test_tasks_read_in_the_same_manner(table):
    for task in table.scan().tasks(split_size=1 << 30):
        stream = pa.RecordBatchReader.from_stream(
            task.rows(table.storage, batch_size=4, memory_limit=1 << 20, dictionary_columns=["city"])
        )
        assert stream.schema.field("city").type == pa.dictionary(pa.int32(), pa.string())
        assert {batch.num_rows for batch in stream} == {4, 2}
        with pytest.raises(InvalidArgumentError, match="types of all columns"):
            task.rows(table.storage, schema=rows(1), dictionary_columns=["city"])


def test_columns_as_dictionaries(table):
    expected = table.scan().to_arrow()
    found = table.scan().to_arrow(dictionary_columns=["city"])
    assert found.schema.field("city").type == pa.dictionary(pa.int32(), pa.string())
    assert found.column("city").to_pylist() == expected.column("city").to_pylist()
    assert found.column("id").equals(expected.column("id"))
    assert table.scan().to_pandas(dictionary_columns="city")["city"].dtype == "category"
    few = table.scan("id > 25", selected_fields="city", limit=2).to_arrow_batch_reader(dictionary_columns="city")
    assert few.read_all().num_rows == 2
    with pytest.raises(InvalidArgumentError, match="no column town is read, only id, city"):
        table.scan().to_arrow(dictionary_columns=["town"])
    with pytest.raises(ValidationError, match="column id: is Int64: only columns of text or bytes"):
        table.scan().to_arrow(dictionary_columns=["id"])


def test_the_memory_that_is_asked_for_changes_no_rows(table):
    expected = table.scan().to_arrow()
    for limit in (1, 1000, 1 << 20, 1 << 40):
        assert table.scan().to_arrow(memory_limit=limit).equals(expected)
        assert table.scan("id > 12").to_arrow(memory_limit=limit).num_rows == 17


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"memory_limit": 0}, {"batch_size": -1}, {"memory_limit": -1}])
def test_numbers_that_cannot_be(table, wrong):
    with pytest.raises((InvalidArgumentError, OverflowError)):
        table.scan().to_arrow(**wrong)


PROGRAM = """
import re, sys
import pyarrow as pa
import icefield as ice

def status(name):
    with open("/proc/self/status") as about:
        return int(re.search(name + r":\\s+(\\d+) kB", about.read())[1]) << 10

scan = ice.Table.from_metadata(sys.argv[1]).scan()
next(scan.to_arrow_batch_reader(memory_limit=int(sys.argv[2])))
before, rows = status("VmRSS"), 0
for batch in scan.to_arrow_batch_reader(memory_limit=int(sys.argv[2])):
    rows += batch.num_rows
print(rows, status("VmHWM") - before)
"""


#: The allocator gives back at once what is freed, and takes no more than is asked for.
NOTHING_KEPT = {"MIMALLOC_ALLOW_THP": "0", "MIMALLOC_PURGE_DELAY": "0"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("files", [1, 12])
def test_a_stream_of_many_times_its_memory_is_flat(catalog, files):
    """Texts of 1,000 bytes each: 240 MB in all, of which 12 MB may be in memory."""
    properties = {
        "write.parquet.row-group-size-bytes": str(4 << 20),
        "write.parquet.compression-codec": "uncompressed",
        "write.target-file-size-bytes": str(1 << 40),
    }
    made = catalog.create_table("a.wide", pa.table({"text": pa.array([], pa.string())}), properties=properties)
    total = 240_000

    def batches():
        for start in range(0, total // files, 2000):
            yield pa.record_batch({"text": [f"{start + n:01000}" for n in range(2000)]})

    schema = pa.schema([("text", pa.string())])
    for _ in range(files):
        made.append(pa.RecordBatchReader.from_batches(schema, batches()))
    limit = 12 << 20
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, made.metadata_location, str(limit)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "ICEFIELD_THREADS": "4", **NOTHING_KEPT},
    )
    found, peak = (int(word) for word in done.stdout.split())
    assert found == total
    # The test's own batch is in memory as well.
    assert peak < 2 * limit, f"{peak >> 20} MiB"


def threads():
    """Count the threads of readers of this process."""
    found = 0
    for task in os.listdir("/proc/self/task"):
        try:
            with open(f"/proc/self/task/{task}/comm") as name:
                found += name.read().startswith("icefield-read")
        except OSError:
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("memory", [None, 1000])
def test_an_abandoned_stream_ends_its_threads(table, memory):
    readers = [table.scan().to_arrow_batch_reader(batch_size=1, memory_limit=memory) for _ in range(5)]
    assert all(next(reader).num_rows == 1 for reader in readers)
    assert threads() > 0
    del readers
    gc.collect()
    end = time.monotonic() + 60
    while threads() and time.monotonic() < end:
        time.sleep(0.02)
    assert threads() == 0


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self):
        return True


def test_progress_is_shown_in_a_terminal(table, monkeypatch):
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    found = table.scan().to_arrow(progress=True)
    monkeypatch.undo()
    assert found.equals(table.scan().to_arrow())
    last = shown.getvalue().split("\r")[-1]
    assert re.fullmatch(r"\[#{20}\] 3 of 3 files, 30 rows, [\d,.]+ (B|KiB), \d+\.\d s *\n", last), last


def test_progress_is_not_shown_elsewhere(table, capsys):
    assert table.scan().to_arrow(progress=True).num_rows == 30
    assert table.scan().to_pandas(progress=True).shape == (30, 2)
    assert capsys.readouterr() == ("", "")


def test_progress_ends_its_line_when_reading_fails(table, monkeypatch):
    class Failing:
        schema = pa.schema([])

        def read_next_batch(self):
            raise OSError("gone")

        @staticmethod
        def from_batches(_, batches):
            return batches

    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    with pytest.raises(OSError, match="gone"):
        next(showing(Failing(), Progress()))
    assert shown.getvalue().endswith("\n")


def test_progress_of_no_files(catalog, monkeypatch):
    shown = Terminal()
    empty = catalog.create_table("a.none", rows(1))
    monkeypatch.setattr(sys, "stderr", shown)
    assert empty.scan().to_arrow(progress=True).num_rows == 0
    assert "0 of 0 files, 0 rows" in shown.getvalue()
