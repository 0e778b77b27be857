"""A program that ends while other threads of it are inside calls of ours which call Python: see test_exits.py."""

import sys
import threading
import time

import pyarrow as pa

import icefield as ice
from icefield import orc
from icefield.catalog.memory import InMemoryCatalog

SCHEMA = pa.schema({"n": pa.int64()})


def batches():
    while True:
        started.set()
        time.sleep(0.001)
        yield pa.record_batch([list(range(1000))], schema=SCHEMA)


class File:
    """A file of Python that is written to in small pieces."""

    def write(self, data):
        started.set()
        time.sleep(0.001)
        return len(data)


class Slow(InMemoryCatalog):
    """A catalog that always loses, so that a commit is always under way."""

    def swap_pointer(self, identifier, base, new):
        started.set()
        time.sleep(0.001)
        raise ice.errors.CommitFailedException("another was first")


def rows():
    return pa.RecordBatchReader.from_batches(SCHEMA, batches())


def append(folder):
    catalog = ice.load_catalog("local", type="in-memory", warehouse=folder)
    catalog.create_namespace("a")
    catalog.create_table("a.t", schema=SCHEMA).append(rows())


def commit(folder):
    catalog = Slow("local", warehouse=folder)
    catalog.create_namespace("a")
    properties = {
        "commit.retry.num-retries": "1000000",
        "commit.retry.min-wait-ms": "1",
        "commit.retry.max-wait-ms": "1",
    }
    catalog.create_table("a.t", schema=SCHEMA, properties=properties).append(pa.table({"n": [1]}))


def write(_):
    orc.write_table(rows(), File())


started = threading.Event()
what, folder = sys.argv[1:]
threading.Thread(target=globals()[what], args=(folder,), daemon=True).start()
if not started.wait(60):
    sys.exit("the call never began")
time.sleep(0.3)
sys.stdout.write("ends\n")
