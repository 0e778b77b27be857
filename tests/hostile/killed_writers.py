"""Forks a process for each way to die in an append, and says how each ended; run by ``test_killed_writers.py``.

A process is forked before anything was opened, so that it is as good as a fresh one and starts in no time. It dies at a
numbered step of the storage (by the hook of debug builds), or around the statement that makes the commit visible.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pyarrow as pa
import sqlalchemy

import icefield as ice
from icefield.catalog.sql import SqlCatalog

ROWS = pa.table({"id": pa.array([1, 2, 3, 4]), "place": ["a", "b", "c", "a"]})
MORE = pa.table({"id": pa.array([5, 6, 7]), "place": ["a", "b", "d"]})


def create(folder: Path) -> None:
    """Make a table with one snapshot."""
    catalog = ice.load_catalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    catalog.create_table("db.t", schema=ROWS.schema, partition_by=["place"]).append(ROWS)


def die(*_: object) -> None:
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def append(folder: Path, point: str) -> None:
    """Append, and die on the way."""
    if point.isdecimal():
        os.environ["ICEFIELD_TEST_DIE_AT_STEP"] = point
    catalog = ice.load_catalog("c", uri=f"sqlite:///{folder}/catalog.db")
    table = catalog.load_table("db.t")
    swap = SqlCatalog._swap
    if point == "before the swap":
        SqlCatalog._swap = die  # type: ignore[method-assign,assignment]
    elif point == "after the swap":
        SqlCatalog._swap = lambda *a: (swap(*a), die())[0]  # type: ignore[method-assign,assignment]
    elif point == "in the transaction":
        sqlalchemy.event.listen(catalog._engine, "commit", die)  # type: ignore[attr-defined]
    table.append(MORE)


def in_a_fork(folder: Path, point: str | None) -> int:
    """Run one of the two, and give the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        try:
            create(folder) if point is None else append(folder, point)
            os._exit(0)
        finally:
            os._exit(99)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def main() -> None:
    """Go on with later steps until an append lives."""
    root, ended = Path(sys.argv[1]), {}
    points = iter(["before the swap", "in the transaction", "after the swap", *map(str, range(1000))])
    for number, point in enumerate(points):
        folder = root / str(number)
        folder.mkdir()
        assert in_a_fork(folder, None) == 0
        ended[point] = (folder.name, in_a_fork(folder, point))
        if point.isdecimal() and ended[point][1] == 0:
            break
    sys.stdout.write(json.dumps(ended))


if __name__ == "__main__":
    main()
