"""Plan a table of many data files and as many delete files, and print what that took: ``KIND COUNT``."""

from __future__ import annotations

import json
import pickle
import resource
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

import icefield as ice

#: Commits, each of which adds data files and delete files: deletes apply to the data files of those before.
COMMITS = 10
#: Partitions of the kind ``partitions``.
PARTITIONS = 20


def described(kind: str, name: str, place: int, **more: Any) -> dict[str, Any]:
    """Describe a file of a kind of table; bounds leave out about every third delete of a data file."""
    partition = (
        {} if kind in {"everywhere", "bounds"} else {"g": place // COMMITS % PARTITIONS if kind == "partitions" else 0}
    )
    bounds: dict[str, Any] = {}
    if kind == "bounds":
        lower = place * 7919 % 1000
        upper = lower + 1 + place * 104729 % 800
        counts = {"value_counts": {1: 10}, "null_value_counts": {1: 0}}
        bounds = {
            **counts,
            "lower_bounds": {1: lower.to_bytes(8, "little")},
            "upper_bounds": {1: upper.to_bytes(8, "little")},
        }
    return {
        "file_path": f"memory://deletes/data/{name}-{place:0>40}.parquet",
        "file_format": "parquet",
        "partition": partition,
        "record_count": 10,
        "file_size_in_bytes": 1000,
        **bounds,
        **more,
    }


def made(kind: str, count: int) -> ice.Table:
    """Make the table; its files are described and not written."""
    catalog = ice.load_catalog("c", type="in-memory", warehouse="memory://deletes")
    catalog.create_namespace("a")
    schema = pa.schema([("id", pa.int64()), ("g", pa.int32())])
    fields = [] if kind in {"everywhere", "bounds"} else ["g"]
    table = catalog.create_table("a.t", schema, partition_by=fields, properties={"format-version": "2"})
    by_value = {"content": "equality_deletes", "equality_ids": [1]}
    of_deletes: dict[str, Any] = {"content": "position_deletes"} if kind == "positions" else by_value
    for commit in range(COMMITS):
        change = table.row_delta()
        for place in range(commit, count, COMMITS):
            change.add_rows(ice.DataFile(**described(kind, "rows", place)))
            change.add_deletes(ice.DeleteFile(**described(kind, "deletes", place, **of_deletes)))
        change.commit()
    return table


def peak() -> int:
    """Return the most bytes that this program took; `getrusage` counts those of its parent before it was loaded."""
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) << 10


def main(kind: str, count: int) -> None:
    """Plan, and say in how many seconds and with how much memory."""
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    scan = made(kind, count).scan()
    before = peak()
    start = time.monotonic()
    plan = scan.plan_files()
    planned = time.monotonic()
    columns = plan.to_arrow()
    columned = time.monotonic()
    deletes = [len(of_file) for chunk in columns["deletes"].chunks for of_file in chunk]
    streamed = [len(of_file) for batch in scan.plan_batches() for of_file in batch["deletes"]]
    counted = time.monotonic()
    tasks = scan.tasks()
    packed = [len(pickle.dumps(task)) for task in tasks[:: len(tasks) // COMMITS]]
    answer = {
        "seconds": time.monotonic() - start,
        "phases": [planned - start, columned - planned, counted - columned, time.monotonic() - counted],
        "before": before,
        "peak": peak(),
        "files": len(plan),
        "links": plan.report["result_delete_files"],
        "in columns": sum(deletes),
        "streamed": sum(streamed),
        "in tasks": sum(map(len, tasks)),
        "packed": max(packed),
        "type": str(columns.schema.field("deletes").type)[:20],
    }
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
