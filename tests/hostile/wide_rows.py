"""Change a table of very many columns and print how much memory that took: ``FORMAT COLUMNS VERB ...``."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import icefield as ice


def rows(columns: int, *ids: int) -> pa.Table:
    """Make rows: numbers, text and doubles in turn, and nulls."""
    kinds = [pa.int64(), pa.string(), pa.float64()]
    named = {}
    for n in range(columns - 1):
        values = pa.array([None if n % 5 == 0 else n] * len(ids), pa.int64())
        named[f"column_{n}"] = values.cast(kinds[n % 3])
    return pa.table({"id": pa.array(ids, pa.int64()), **named})


def main(kind: str, columns: int, verbs: list[str]) -> None:
    """Append a row, then change it by each of the verbs."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    catalog = ice.load_catalog("c", type="in-memory", warehouse="memory://wide")
    catalog.create_namespace("a")
    first = rows(columns, 1)
    table = catalog.create_table("a.t", first.schema, properties={"write.format.default": kind, "format-version": "2"})

    def upsert() -> None:
        table.upsert(rows(columns, 2, 3), join_cols=["id"])

    def merge() -> None:
        change = table.merge(rows(columns, 1, 4), on="id")
        change.when_matched_update_all().when_not_matched_insert_all().execute()

    calls: dict[str, Callable[[], object]] = {
        "append": lambda: table.append(first),
        "update": lambda: table.update({"column_1": "new"}, "id = 1", mode="copy-on-write"),
        "upsert": upsert,
        "merge": merge,
        "delete": lambda: table.delete("id = 2", mode="copy-on-write"),
        "overwrite": lambda: table.overwrite(rows(columns, 5), overwrite_filter="id = 3"),
        "scan": lambda: table.scan().to_arrow(),
    }
    taken = {}
    for verb in verbs:
        start = time.monotonic()
        calls[verb]()
        # Not of `getrusage`, which counts what the parent took before this program was loaded.
        status = Path("/proc/self/status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) << 10
        taken[verb] = {"peak": peak, "seconds": time.monotonic() - start}
    found = table.scan(selected_fields=("id", "column_1", f"column_{columns - 2}")).to_arrow().sort_by("id").to_pylist()
    sys.stdout.write(json.dumps({"rows": found, "taken": taken}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
