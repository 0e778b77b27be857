"""The interpreter's lock, where Python code that the core calls reads from the core again."""

from __future__ import annotations

import subprocess
import sys

# Rows whose first batch takes longer than the core waits before it looks for signals, without a look before that.
NESTED = """
import pyarrow as pa
import icefield as ice

catalog = ice.load_catalog("m", type="in-memory")
catalog.create_namespace("a")
names = [f"c{number}" for number in range(30)]
table = catalog.create_table("a.t", pa.schema([(name, pa.string()) for name in names]))
texts = pa.array([f"text {number % 1000}" for number in range(60_000)])
table.append(pa.table([texts] * len(names), names=names))
table.update(lambda batch: batch, "c0 != 'x'")
print(table.scan().count())
"""


def test_rows_are_read_beneath_a_call_into_python() -> None:
    # pyarrow releases the lock while it reads: the first look for signals of a process came without it, and crashed.
    done = subprocess.run([sys.executable, "-c", NESTED], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout) == (0, "60000\n"), done.stderr
