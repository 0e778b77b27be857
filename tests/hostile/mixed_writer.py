"""One of several processes that change a table in every way; run by ``test_many_writers.py``.

It changes rows of its own, which it knows, and a counter that all share. Its answer is what was reported committed: the
names of the changes, its rows after them, and how often it has added to the counter.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

import icefield as ice

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64()), ("w", pa.int32())])
#: Ids of one writer.
EACH = 1000


class Writer:
    """What a writer does, and what it knows of its rows."""

    def __init__(self, table: ice.Table, number: int) -> None:
        self.table = table
        self.number = number
        self.rng = Random(number)
        self.rows: dict[int, int] = {}
        self.next_id = number * EACH
        self.added = 0
        self.told: Counter[str] = Counter()
        self.committed: list[str] = []

    def table_of(self, rows: dict[int, int]) -> pa.Table:
        columns = [list(rows), list(rows.values()), [self.number] * len(rows)]
        return pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], SCHEMA)

    def new(self, count: int) -> dict[int, int]:
        self.next_id += count
        return {self.next_id - count + at: self.rng.randrange(5) for at in range(count)}

    def mode(self) -> str:
        return self.rng.choice(["copy-on-write", "merge-on-read"])

    def change(self, name: str) -> None:
        """Make one change; what it makes of the rows is known only where it was reported committed."""
        properties = {"change": name}
        value, mode, mine = self.rng.randrange(5), self.mode(), f"w = {self.number}"
        matching = f"{mine} AND v = {value}"
        kept = {key: v for key, v in self.rows.items() if v != value}
        match self.rng.choice(["append", "delete", "update", "upsert", "overwrite", "add", "add", "together"]):
            case "append":
                rows = self.new(3)
                self.table.append(self.table_of(rows), properties)
                self.rows |= rows
            case "delete":
                self.table.delete(matching, properties, mode=mode)
                self.rows = kept
            case "update":
                self.table.update({"v": 9}, matching, properties, mode=mode)
                self.rows = {key: 9 if v == value else v for key, v in self.rows.items()}
            case "upsert":
                known = self.rng.sample(sorted(self.rows), min(2, len(self.rows)))
                rows = {**dict.fromkeys(known, 10 + self.rng.randrange(3)), **self.new(2)}
                self.table.upsert(self.table_of(rows), ["id"], mode=mode, snapshot_properties=properties)
                self.rows |= rows
            case "overwrite":
                rows = self.new(2)
                self.table.overwrite(self.table_of(rows), matching, properties, mode=mode)
                self.rows = kept | rows
            case "add":
                self.table.update({"v": pc.field("v") + 1}, "w = -1", properties, mode=mode)
                self.added += 1
            case "together":
                rows = self.new(2)
                with self.table.transaction() as changes:
                    changes.delete(matching, properties, mode=mode)
                    changes.append(self.table_of(rows), properties)
                self.rows = kept | rows

    def run(self, changes: int) -> None:
        for at in range(changes):
            name = f"{self.number}-{at}"
            count = len(self.committed)
            # Only as often as a job would: others may always come first.
            for _ in range(100):
                rows, next_id = dict(self.rows), self.next_id
                try:
                    self.table.refresh()
                    self.change(name)
                except (ice.errors.ValidationException, ice.errors.CommitFailedException) as error:
                    self.told[type(error).__name__] += 1
                    assert (self.rows, self.next_id >= next_id) == (rows, True)
                else:
                    self.committed.append(name)
                    break
            self.told["given up"] += len(self.committed) == count


def main() -> None:
    """Make changes, and say which were committed."""
    uri, warehouse, number, changes = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    writer = Writer(ice.load_catalog("race", uri=uri, warehouse=warehouse).load_table("db.t"), number)
    writer.run(changes)
    answer = {"committed": writer.committed, "added": writer.added, "told": writer.told}
    json.dump({**answer, "rows": sorted(writer.rows.items())}, sys.stdout)


if __name__ == "__main__":
    main()
