"""Advice of the doctor on tables of every version, with evolved specs and odd names: followed, its finding is gone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.expressions import In

NAMES = ["id", "a.b", 'a "b"', "it's", "é ü", "back`tick", "a\\b", "tab\there", "{x}"]


def rows(name: str, ids: range) -> pa.Table:
    parts = pa.array([str(number % 2) for number in ids], pa.string())
    return pa.table({name: pa.array(ids, pa.int64()), "part": parts})


def evolve(table: ice.Table, name: str) -> None:
    with table.update_spec() as spec:
        spec.remove_field("part").add_field(name, "bucket[2]")


def small(table: ice.Table, name: str) -> None:
    for _ in range(6):
        table.append(rows(name, range(4)))
    evolve(table, name)
    for _ in range(6):
        table.append(rows(name, range(4)))


def deleted(table: ice.Table, name: str) -> None:
    table.append(rows(name, range(8)))
    table.delete(In(name, [0, 1, 2, 3]))
    evolve(table, name)


def deleted_by_key(table: ice.Table, name: str) -> None:
    table.append(rows(name, range(8)))
    for first in (1, 2):
        with table.upsert_stream([name, "part"]) as stream:
            stream.delete(rows(name, range(first, first + 1)))
        if first == 1:
            evolve(table, name)


def unsorted(table: ice.Table, name: str) -> None:
    table.append(rows(name, range(8)))
    evolve(table, name)
    with table.update_sort_order() as order:
        order.desc(name)


def unbounded(table: ice.Table, name: str) -> None:
    table.update_properties({f"write.metadata.metrics.column.{name}": "none"})
    unsorted(table, name)


def expired(table: ice.Table, name: str) -> None:
    table.update_properties({"history.expire.max-snapshot-age-ms": "1"})
    for _ in range(2):
        table.overwrite(rows(name, range(3)))
    evolve(table, name)
    table.append(rows(name, range(3)))


MADE: dict[str, Callable[[ice.Table, str], None]] = {
    "small-files": small,
    "delete-debt": deleted,
    "equality-deletes": deleted_by_key,
    "unsorted-files": unsorted,
    "missing-bounds": unbounded,
    "old-snapshots": expired,
}
OF_DELETES = {"delete-debt", "equality-deletes"}
CASES = [
    (finding, version, name)
    for finding in MADE
    for version in (1, 2, 3)
    for name in (NAMES if version == 3 else NAMES[:1])
    if version > 1 or finding not in OF_DELETES
]


@pytest.mark.parametrize(("finding", "version", "name"), CASES)
def test_the_finding_is_gone(tmp_path: Path, finding: str, version: int, name: str) -> None:
    catalog = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    properties = {"format-version": str(version)}
    if version > 1:
        properties["write.delete.mode"] = "merge-on-read"
    schema = rows(name, range(1)).schema
    table = catalog.create_table("db.t", schema, partition_spec=["part"], properties=properties)
    MADE[finding](table, name)
    before = sorted(table.scan().to_arrow()[name].to_pylist())
    [found] = [one for one in table.doctor() if one.name == finding]
    exec(found.repair, {"table": table})
    assert finding not in {one.name for one in table.doctor()}
    assert sorted(table.scan().to_arrow()[name].to_pylist()) == before
