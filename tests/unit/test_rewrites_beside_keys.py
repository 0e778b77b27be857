"""Copy-on-write beside changes by key: what a key has deleted does not come back with rows that are written again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "p": pa.array([0] * 10, pa.int32()), "v": pa.array([0] * 10)})
ONE = pa.table({"id": pa.array([1], pa.int64()), "p": pa.array([0], pa.int32()), "v": pa.array([5])})
SEVEN = pa.table({"id": pa.array([7], pa.int64()), "p": pa.array([0], pa.int32()), "v": pa.array([9])})
MODES = {f"write.{command}.mode": "copy-on-write" for command in ("delete", "update", "merge")}

CHANGES: dict[str, Callable[[ice.Transaction], object]] = {
    "update": lambda tx: tx.update({"v": 5}, "id = 1", mode="copy-on-write"),
    "delete": lambda tx: tx.delete("id = 1", mode="copy-on-write"),
    "delete of a fifth": lambda tx: tx.delete("id < 2", mode="auto"),
    "overwrite": lambda tx: tx.overwrite(ONE, "id = 1"),
    "partitions": lambda tx: tx.dynamic_partition_overwrite(ONE),
    "merge": lambda tx: tx.merge(ONE, ["id"], mode="copy-on-write").when_matched_update({"v": "source.v"}).execute(),
    "upsert": lambda tx: tx.upsert(ONE, ["id"]),
    "after an append": lambda tx: (tx.append(ONE), tx.update({"v": 5}, "id = 1", mode="copy-on-write")),
}


@pytest.mark.parametrize("isolation", ["serializable", "snapshot"])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("version", [2, 3])
def test_what_a_key_deletes_stays_deleted(tmp_path: Path, version: int, change: str, isolation: str) -> None:
    catalog = ice.load_catalog("c", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    levels = {f"write.{command}.isolation-level": isolation for command in ("delete", "update", "merge")}
    properties = {"format-version": str(version), **MODES, **levels}
    table = catalog.create_table("a.t", ROWS.schema, partition_by="p", properties=properties).append(ROWS)
    tx = table.transaction()
    CHANGES[change](tx)
    with catalog.load_table("a.t").upsert_stream(["id", "p"]) as stream:
        stream.delete(pa.table({"id": pa.array([8], pa.int64()), "p": pa.array([0], pa.int32())}))
        stream.upsert(SEVEN)
    with pytest.raises(ice.ValidationException):
        tx.commit_transaction()
    found = catalog.load_table("a.t").scan().to_arrow().sort_by("id").to_pydict()
    assert (found["id"], found["v"]) == ([0, 1, 2, 3, 4, 5, 6, 7, 9], [0] * 7 + [9, 0])


def test_keys_that_the_rewritten_file_does_not_have_are_in_nobodys_way(tmp_path: Path) -> None:
    catalog = ice.load_catalog("c", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ROWS.schema, partition_by="p", properties=MODES).append(ROWS)
    tx = table.transaction()
    CHANGES["update"](tx)
    with catalog.load_table("a.t").upsert_stream(["id", "p"]) as stream:
        stream.delete(pa.table({"id": pa.array([70, 80], pa.int64()), "p": pa.array([0, 0], pa.int32())}))
    assert tx.commit_transaction().scan("v = 5").count() == 1


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "partitions"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("partition_by", ["p", None])
def test_what_a_key_has_deleted_before_stays_deleted(
    tmp_path: Path, version: int, change: str, partition_by: str | None
) -> None:
    catalog = ice.load_catalog("c", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    properties = {"format-version": str(version), **MODES}
    table = catalog.create_table("a.t", ROWS.schema, partition_by=partition_by, properties=properties).append(ROWS)
    with table.upsert_stream(["id", "p"]) as stream:
        stream.delete(pa.table({"id": pa.array([8], pa.int64()), "p": pa.array([0], pa.int32())}))
        stream.upsert(SEVEN)
    with catalog.load_table("a.t").transaction() as tx:
        CHANGES[change](tx)
    found = catalog.load_table("a.t").scan("id > 4").to_arrow().sort_by("id").to_pydict()
    assert (found["id"], found["v"]) == ([5, 6, 7, 9], [0, 0, 9, 0])
