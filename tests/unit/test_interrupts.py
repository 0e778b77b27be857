"""Ctrl-C ends what is under way within moments, as `KeyboardInterrupt`, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield import orc

#: Seconds from the key to the exception, a third of what calls wait otherwise. A second is what people expect, but the
#: machine may be busy.
MOST = 20


@contextmanager
def ctrl_c(after=0.5):
    """Press Ctrl-C a moment from now; the block must end in its exception soon after."""
    pressed = []

    def press():
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    # Where the tests run in the background the shell has switched the signal off.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(after, press)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            yield caught
        ended = time.monotonic()
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    assert pressed
    assert ended - pressed[0] < MOST


class Stalled:
    """A server that takes every connection and never answers."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.url = f"http://127.0.0.1:{self.socket.getsockname()[1]}"

    @property
    def storage(self):
        return {
            "s3.endpoint": self.url,
            "s3.region": "us-east-1",
            "s3.access-key-id": "key",
            "s3.secret-access-key": "secret",
        }


@pytest.fixture
def stalled():
    server = Stalled()
    with closing(server.socket):
        yield server


@pytest.fixture
def catalog(tmp_path):
    with ice.load_catalog("local", type="in-memory", warehouse=str(tmp_path / "wh")) as catalog:
        catalog.create_namespace("a")
        yield catalog


def files_below(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def millions():
    return pa.table({"flag": pa.repeat(True, 400_000_000)})


def test_an_append_of_rows_in_memory(catalog, tmp_path, millions):
    table = catalog.create_table("a.t", schema=millions.schema)
    before = files_below(tmp_path)
    with ctrl_c():
        table.append(millions)
    assert files_below(tmp_path) == before
    assert table.refresh().scan().count() == 0


def test_an_append_of_rows_that_keep_one_waiting(catalog, tmp_path):
    schema = pa.schema({"n": pa.int64()})
    table = catalog.create_table("a.t", schema=schema)
    before = files_below(tmp_path)

    def batches():
        yield pa.record_batch([[1]], schema=schema)
        time.sleep(60)

    with ctrl_c():
        table.append(pa.RecordBatchReader.from_batches(schema, batches()))
    assert files_below(tmp_path) == before


def passed_through_c(scan):
    """Read by the C interface alone, as other libraries do: it cannot carry Ctrl-C, which is raised right after."""
    with contextlib.suppress(OSError):
        pa.table(scan)
    time.sleep(0)


#: What reads data files, and may wait for them.
READS = {
    "to_arrow": lambda scan: scan.to_arrow(),
    "read_all": lambda scan: scan.to_arrow_batch_reader().read_all(),
    "next": lambda scan: next(scan.to_arrow_batch_reader()),
    "stream": passed_through_c,
    "count": lambda scan: scan.count(),
    "orc": lambda scan: scan.to_arrow(),
}
#: What reads manifests, and may wait for them.
PLANS = {
    "plan_files": lambda table: table.scan().plan_files(),
    "count": lambda table: table.scan().count(),
    "to_arrow": lambda table: table.scan().to_arrow(),
    "inspect": lambda table: table.inspect.files(),
    "inspect.partitions": lambda table: table.inspect.partitions(),
}


def far(table, stalled, *folders):
    """Open the same table with some of its files behind the server that does not answer."""
    relocate = {f"{table.location()}/{folder}": f"s3://bucket/{folder}" for folder in folders}
    return ice.Table.from_metadata(table.metadata_location, relocate=relocate, **stalled.storage)


@pytest.mark.parametrize("read", READS)
def test_reading_files_that_do_not_come(catalog, stalled, read):
    properties = {"write.format.default": "orc"} if read == "orc" else {}
    table = catalog.create_table("a.t", schema=pa.schema({"n": pa.int64()}), properties=properties)
    for n in range(3):
        table.append(pa.table({"n": [n]}))
    with ctrl_c():
        READS[read](far(table, stalled, "data").scan("n != 1"))


#: Golden tables with one kind of deletes each.
DELETES = {"positions": "del_pos_file", "values": "del_eq_floats", "vectors": "dv_containers"}


@pytest.mark.parametrize("read", ["to_arrow", "next", "count"])
@pytest.mark.parametrize("kind", DELETES)
def test_reading_delete_files_that_do_not_come(stalled, kind, read):
    base, folder = "/tmp/icefield-golden", Path(__file__).parents[1] / "data/golden/tables"
    newest = max((folder / DELETES[kind] / "metadata").glob("*.metadata.json"))
    place = f"{base}/{DELETES[kind]}/metadata/{newest.name}"
    relocate = {f"{scheme}{base}": str(folder) for scheme in ("", "file:", "file://")}
    paths = ice.Table.from_metadata(place, relocate=relocate).inspect.delete_files()["file_path"].to_pylist()
    relocate |= {path: f"s3://bucket/{number}" for number, path in enumerate(paths)}
    table = ice.Table.from_metadata(place, relocate=relocate, **stalled.storage)
    key = table.schema().column_names[0]
    with ctrl_c():
        READS[read](table.scan(f"{key} != 3"))


@pytest.mark.parametrize("plan", PLANS)
def test_planning_with_manifests_that_do_not_come(catalog, stalled, plan):
    table = catalog.create_table("a.t", schema=pa.schema({"n": pa.int64()}))
    for n in range(3):
        table.append(pa.table({"n": [n]}))
    with ctrl_c():
        PLANS[plan](far(table, stalled, "metadata"))


def test_opening_what_does_not_come(stalled):
    with ctrl_c():
        ice.Table.from_metadata("s3://bucket/wh/t/metadata/v1.metadata.json", **stalled.storage)
    with ctrl_c():
        orc.ORCFile("s3://bucket/a.orc", storage=stalled.storage)
    with ctrl_c():
        orc.write_table(pa.table({"n": [1]}), "s3://bucket/a.orc", storage=stalled.storage)


def test_a_large_orc_file(tmp_path, millions):
    path = tmp_path / "a.orc"
    with ctrl_c():
        orc.write_table(pa.concat_tables([millions] * 100), path)
    assert not path.exists()
    orc.write_table(millions, path)
    with ctrl_c(after=0.1):
        orc.read_table(path)


@pytest.mark.parametrize(
    ("error", "waits"),
    [
        (ice.errors.CommitFailedException("another was first"), "commit.retry.min-wait-ms"),
        (ice.errors.CommitStateUnknownException("no answer"), "commit.status-check.min-wait-ms"),
    ],
    ids=["lost", "unknown"],
)
def test_waits_of_a_commit(catalog, tmp_path, monkeypatch, error, waits):
    properties = {waits: "60000", waits.replace("min", "max"): "60000"}
    table = catalog.create_table("a.t", schema=pa.schema({"n": pa.int64()}), properties=properties)
    before = files_below(tmp_path)
    asked = []

    def swap(identifier, base, new):
        asked.append(base)
        raise error

    def pointer(identifier, known=catalog.load_pointer):
        if asked and "status" in waits:
            raise OSError("the database is away")
        return known(identifier)

    monkeypatch.setattr(catalog, "swap_pointer", swap)
    monkeypatch.setattr(catalog, "load_pointer", pointer)
    if "retry" in waits:
        with ctrl_c():
            table.append(pa.table({"n": [1]}))
        # It is certainly lost: nothing stays.
        assert files_below(tmp_path) == before
    else:
        with ctrl_c() as caught:
            table.append(pa.table({"n": [1]}))
        assert isinstance(caught.value.__cause__, ice.errors.CommitStateUnknownException)
        # It may have landed: everything stays.
        assert len(files_below(tmp_path)) == len(before) + 4
    assert len(asked) == 1
