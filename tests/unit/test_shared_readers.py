"""A reader that several threads share: each batch goes to one of them, and the end reaches all."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield import orc
from icefield._core import ArrowStream

FILES, ROWS = 12, 500


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ice.Table:
    folder = tmp_path_factory.mktemp("shared")
    catalog = ice.load_catalog("shared", type="in-memory", warehouse=str(folder))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", pa.schema([("n", pa.int64())]))
    for number in range(FILES):
        table.append(pa.table({"n": range(number * ROWS, (number + 1) * ROWS)}))
    return table


@pytest.fixture(scope="module")
def orc_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("orc") / "many.orc"
    orc.write_table(pa.table({"n": range(FILES * ROWS)}), path, batch_size=ROWS)
    return path


def stream_of_python() -> pa.RecordBatchReader:
    schema = pa.schema([("n", pa.int64())])
    batches = (pa.record_batch([pa.array(range(n * ROWS, (n + 1) * ROWS))], schema=schema) for n in range(FILES))
    return pa.RecordBatchReader.from_stream(ArrowStream(pa.RecordBatchReader.from_batches(schema, batches)))


def drained(reader: pa.RecordBatchReader, threads: int = 6) -> tuple[list[pa.RecordBatch], list[BaseException]]:
    """What `threads` threads read from one reader, and what they raised; none of them may hang."""
    found: list[pa.RecordBatch] = []
    failed: list[BaseException] = []
    start = threading.Barrier(threads)

    def read() -> None:
        start.wait()
        try:
            while True:
                found.append(reader.read_next_batch())
        except StopIteration:
            pass
        except BaseException as error:  # noqa: BLE001
            failed.append(error)

    running = [threading.Thread(target=read, daemon=True) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(120)
    assert not any(thread.is_alive() for thread in running), "a thread waits for ever"
    return found, failed


def numbers(batches: list[pa.RecordBatch]) -> list[int]:
    return sorted(number for batch in batches for number in batch.column("n").to_pylist())


def test_each_batch_of_a_scan_reaches_one_thread(table: ice.Table) -> None:
    for _ in range(5):
        batches, failed = drained(table.scan().to_arrow_batch_reader())
        assert failed == []
        assert numbers(batches) == list(range(FILES * ROWS))


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("plan_batches", FILES),
        ("inspect", FILES),
        ("orc", FILES * ROWS),
        ("python", FILES * ROWS),
        ("changes", FILES * ROWS),
    ],
)
def test_other_readers_are_shared_too(table: ice.Table, orc_file: Path, name: str, rows: int) -> None:
    first = table.snapshots()[0].snapshot_id
    readers: dict[str, Callable[[], Any]] = {
        "plan_batches": lambda: table.scan().plan_batches(),
        "inspect": lambda: table.inspect.stream("files"),
        "orc": lambda: orc.ORCFile(orc_file).to_reader(),
        "python": stream_of_python,
        "changes": lambda: table.incremental_append_scan(from_snapshot_id_inclusive=first).to_arrow_batch_reader(),
    }
    for _ in range(3):
        batches, failed = drained(readers[name]())
        assert failed == []
        assert sum(batch.num_rows for batch in batches) == rows


def test_an_error_reaches_one_thread_and_the_end_the_others() -> None:
    schema = pa.schema([("n", pa.int64())])

    def batches() -> Any:
        yield pa.record_batch([pa.array([1])], schema=schema)
        raise ValueError("no more rows")

    reader = pa.RecordBatchReader.from_stream(ArrowStream(pa.RecordBatchReader.from_batches(schema, batches())))
    found, failed = drained(reader)
    assert numbers(found) == [1]
    assert len(failed) == 1
    assert "no more rows" in str(failed[0])


def test_a_reader_closed_by_one_thread_while_others_read(table: ice.Table) -> None:
    for _ in range(5):
        reader = table.scan().to_arrow_batch_reader()
        closer = threading.Timer(0.001, reader.close)
        closer.start()
        batches, failed = drained(reader)
        closer.join()
        assert len(numbers(batches)) == len(set(numbers(batches)))
        assert all(isinstance(error, pa.ArrowInvalid) for error in failed), failed


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_reader_begun_before_a_fork_refuses_in_the_child(table: ice.Table) -> None:
    reader = table.scan().to_arrow_batch_reader()
    reader.read_next_batch()
    child = os.fork()
    if child == 0:
        try:
            reader.read_next_batch()
        except Exception as error:  # noqa: BLE001
            os._exit(7 if "child" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert sum(batch.num_rows for batch in reader) == (FILES - 1) * ROWS
