"""Forks a process for each way of using a table and each step of its storage, in which a thread panics at that step.

Run by ``test_panics.py``, to which it prints what each process met. A process is forked before anything was opened, as
the hook of debug builds is read once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import icefield as ice
from icefield.catalog import Catalog
from icefield.catalog.sql import SqlCatalog

ROWS = pa.table({"id": pa.array([1, 2, 3, 4]), "place": ["a", "b", "c", "a"]})


def opened(folder: Path) -> Catalog:
    """Open the catalog in a folder."""
    return ice.load_catalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))


def create(catalog: Catalog) -> None:
    """Make a table with two snapshots."""
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema=ROWS.schema, partition_by=["place"])
    table.append(ROWS)
    table.append(ROWS)


#: What a program does with a catalog.
WAYS: dict[str, Callable[[Catalog], object]] = {
    "load": lambda catalog: catalog.load_table("db.t").schema(),
    "create": lambda catalog: catalog.create_table("db.more", schema=ROWS.schema),
    "append": lambda catalog: catalog.load_table("db.t").append(ROWS),
    "evolve": lambda catalog: catalog.load_table("db.t").update_schema().add_column("more", "long").commit(),
    "plan": lambda catalog: catalog.load_table("db.t").scan(row_filter="id > 1").plan_files(),
    "count": lambda catalog: catalog.load_table("db.t").scan(row_filter="place = 'a'").count(),
    "read": lambda catalog: catalog.load_table("db.t").scan().to_arrow(),
    "stream": lambda catalog: catalog.load_table("db.t").scan().to_arrow_batch_reader().read_all(),
    "files": lambda catalog: catalog.load_table("db.t").inspect.files().num_rows,
    "partitions": lambda catalog: catalog.load_table("db.t").inspect.partitions().num_rows,
}


def run(folder: Path, way: str, step: int) -> str:
    """Do it, and name the exception that came."""
    os.environ["ICEFIELD_TEST_PANIC_AT_STEP"] = str(step)
    try:
        WAYS[way](opened(folder))
    except BaseException as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return ""


def in_a_fork(work: Callable[[], str]) -> str:
    """Give what the work says in a process of its own."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(writing, work().encode()[:4000])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        words = said.read().decode()
    _, status = os.wait()
    return words if status == 0 else f"ended with {status}"


def main() -> None:
    """Go on with later steps until a way meets none of them."""
    folder, met = Path(sys.argv[1]), {}
    # What forks would import, each by itself.
    SqlCatalog("c", uri="sqlite://").close()
    in_a_fork(lambda: str(create(opened(folder))))
    for way in WAYS:
        met[way] = []
        for step in range(60):
            words = in_a_fork(lambda way=way, step=step: run(folder, way, step))  # type: ignore[misc]
            if not words:
                break
            met[way].append(words)
    sys.stdout.write(json.dumps(met))


if __name__ == "__main__":
    main()
