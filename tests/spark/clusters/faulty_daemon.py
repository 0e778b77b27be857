"""The daemon of Python workers on the executors of `on_cluster.py`: its workers meet the faults that a test orders.

A fault is a file in the folder ``FAULTS``, which is called by the place where it strikes: the first worker that comes
there takes it. ``kill`` ends the executor, ``wait`` waits until another attempt at the same task has come there too.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark.daemon
from pyspark import TaskContext

from icefield.distributed import RowRemover, TaskWriter
from icefield.spark.reads import parts, reading


def strike(place: str) -> None:
    """Meet the fault of a place, if there is one that no other worker has met."""
    context = TaskContext.get()
    folder = Path(os.environ.get("FAULTS", ""))
    if context is None or not folder.is_absolute():
        return  # the driver plans and commits by workers too
    fault, taken = folder / place, folder / f"{place}-{os.getpid()}"
    passed = folder / f"passed-{place}-{context.partitionId()}"
    try:
        fault.rename(taken)
    except FileNotFoundError:
        passed.touch()
        return
    if taken.read_text() == "kill":
        # The parent is the daemon, and its parent the executor.
        stat = Path(f"/proc/{os.getppid()}/stat").read_text()
        os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    until = time.monotonic() + 30
    while not passed.exists() and time.monotonic() < until:
        time.sleep(0.01)


def after(kind: type, method: str, place: str) -> None:
    """Let a fault strike when a method has done its work."""
    plain: Callable[..., Any] = getattr(kind, method)

    def changed(self: object, *arguments: Any) -> Any:
        result = plain(self, *arguments)
        strike(place)
        return result

    setattr(kind, method, changed)


def faulty(plain: Callable[..., Iterator[pa.RecordBatch]]) -> Callable[..., Iterator[pa.RecordBatch]]:
    """Let a fault strike behind the first rows of a task."""

    def changed(*arguments: Any, **more: Any) -> Iterator[pa.RecordBatch]:
        for batch in plain(*arguments, **more):
            yield batch
            strike("read")

    return changed


after(TaskWriter, "close", "written")
after(RowRemover, "close", "removed")
reading.task_rows = parts.task_rows = faulty(reading.task_rows)

if __name__ == "__main__":
    pyspark.daemon.manager()
