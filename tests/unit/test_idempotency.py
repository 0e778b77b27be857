"""Changes that are made once, however often they are run: by a key that the summary of their snapshot keeps."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from inspect import signature
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.table.rows import RowsChanged

ENTRY = "icefield.idempotency-key"
ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "part": ["x", "y", "x"]})
KEY = "job/42"


@pytest.fixture
def table() -> ice.Table:
    """Make a table of three rows."""
    catalog = InMemoryCatalog("keys")
    catalog.create_namespace("a")
    return catalog.create_table("a.t", schema=ROWS.schema, partition_by="part").append(ROWS)


def data_files(table: ice.Table) -> set[str]:
    return {path for path, _ in table.storage.list(f"{table.location()}/data")}


def described(table: ice.Table, name: str = "elsewhere") -> ice.DataFile:
    return ice.DataFile(
        file_path=f"{table.location()}/{name}.parquet", file_format="parquet", partition=["x"], record_count=1,
        file_size_in_bytes=10,
    )  # fmt: skip


def overwrite_files(table: ice.Table, key: str) -> None:
    table.overwrite_files(idempotency_key=key).append_data_file(described(table)).commit()


def transaction(table: ice.Table, key: str) -> None:
    with table.transaction(idempotency_key=key) as tx:
        tx.append(ROWS).delete("id = 3")
        tx.set_properties({"owner": "me"})


def add_files(table: ice.Table, key: str) -> None:
    path = f"{table.location()}/others.parquet"
    if not table.storage.exists(path):
        sink = pa.BufferOutputStream()
        pyarrow.parquet.write_table(ROWS.slice(1, 1), sink)
        table.storage.write(path, sink.getvalue().to_pybytes())
    table.add_files([path], idempotency_key=key, check_duplicate_files=False)


def commit_files(table: ice.Table, key: str) -> None:
    plan = table.new_write()
    with ice.distributed.TaskWriter(plan, table.storage, ROWS.schema) as writer:
        writer.write(ROWS)
    assert writer.written is not None
    done = table.commit_files(plan, [writer.written], idempotency_key=key)
    assert done.files_taken != done.made_before
    if not done.files_taken:
        plan.discard(table.storage, [writer.written])


def rewrite_files(table: ice.Table, key: str) -> None:
    old = table.inspect.files().to_pylist()[0]
    file = ice.DataFile(
        file_path=old["file_path"], file_format="parquet", partition=[old["partition"]["part"]],
        record_count=old["record_count"], file_size_in_bytes=old["file_size_in_bytes"],
    )  # fmt: skip
    table.rewrite_files(idempotency_key=key).delete_data_file(file).add_data_file(described(table, key)).commit()


def row_delta(table: ice.Table, key: str) -> None:
    table.row_delta(idempotency_key=key).add_rows(described(table)).commit()


def replace_partitions(table: ice.Table, key: str) -> None:
    table.replace_partitions(idempotency_key=key).append_data_file(described(table)).commit()


def fast_append(table: ice.Table, key: str) -> None:
    table.update_snapshot(idempotency_key=key).fast_append().append_data_file(described(table)).commit()


def upsert_stream(table: ice.Table, key: str) -> None:
    with table.upsert_stream(["id", "part"], idempotency_key=key) as stream:
        stream.upsert(ROWS.slice(0, 1)).delete(pa.table({"id": pa.array([2], pa.int64()), "part": ["y"]}))


CHANGES: dict[str, Callable[[ice.Table, str], Any]] = {
    "append": lambda table, key: table.append(ROWS, idempotency_key=key),
    "append_files": lambda table, key: table.append_files([described(table)], idempotency_key=key),
    "overwrite_files": overwrite_files,
    "delete": lambda table, key: table.delete("id = 1", idempotency_key=key),
    "overwrite": lambda table, key: table.overwrite(ROWS, "id = 1", idempotency_key=key),
    "dynamic": lambda table, key: table.dynamic_partition_overwrite(ROWS, idempotency_key=key),
    "update": lambda table, key: table.update({"id": 9}, "id = 2", idempotency_key=key),
    "upsert": lambda table, key: table.upsert(ROWS.set_column(1, "part", [["z"] * 3]), "id", idempotency_key=key),
    "merge": lambda table, key: table.merge(ROWS, "id", idempotency_key=key).when_matched_delete().execute(),
    "rewrite": lambda table, key: table.rewrite_manifests(idempotency_key=key).cluster_by().commit(),
    "transaction": transaction,
    "add_files": add_files,
    "commit_files": commit_files,
    "row_delta": row_delta,
    "rewrite_files": rewrite_files,
    "replace_partitions": replace_partitions,
    "fast_append": fast_append,
    "upsert_stream": upsert_stream,
}


def in_a_transaction(change: Callable[[Any, str], Any]) -> Callable[[ice.Table, str], None]:
    def changed(table: ice.Table, key: str) -> None:
        with table.transaction() as tx:
            change(tx, key)

    return changed


OF_ROWS = ("append", "delete", "overwrite", "dynamic", "update", "upsert", "merge")
CHANGES.update({f"{name} in a transaction": in_a_transaction(CHANGES[name]) for name in OF_ROWS})


def test_every_change_of_data_takes_a_key() -> None:
    """What has entries for the summary of its snapshot makes one."""
    for kind in (ice.Table, ice.table.Transaction):
        methods = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
        taken = {name: set(signature(one).parameters) for name, one in methods.items() if callable(one)}
        makes = {name for name, parameters in taken.items() if "snapshot_properties" in parameters}
        assert makes >= {"append", "upsert", "add_files", "rewrite_manifests"}
        assert {name for name in makes if "idempotency_key" not in taken[name]} == set()


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("stale", [False, True], ids=["fresh", "stale"])
def test_a_second_run_does_nothing(table: ice.Table, name: str, stale: bool) -> None:
    other = table.catalog.load_table("a.t")
    CHANGES[name](table, KEY)
    snapshots, files = [one.snapshot_id for one in table.metadata.snapshots], data_files(table)
    keyed = [one for one in table.metadata.snapshots if (one.summary or {}).get(ENTRY) == KEY]
    assert len(keyed) == 1
    # A client that has not seen the first run finds it when it commits.
    again = other if stale else table
    done = CHANGES[name](again, KEY)
    if not stale and isinstance(done, RowsChanged):
        assert done == RowsChanged(0, 0, 0, 0, 0, 0)
    now = again.refresh()
    assert [one.snapshot_id for one in now.metadata.snapshots] == snapshots
    assert data_files(now) == files
    metadata = {path for path, _ in now.storage.list(f"{now.location()}/metadata") if path.endswith(".avro")}
    named = {one.manifest_list for one in now.metadata.snapshots}
    named |= set(now.inspect.all_manifests()["path"].to_pylist())
    assert metadata == named
    CHANGES[name](again, "job/43")
    # A change that finds no rows makes no snapshot.
    finds_nothing = name.partition(" ")[0] in {"delete", "update", "upsert", "merge"}
    assert (len(again.metadata.snapshots) > len(snapshots)) == (not finds_nothing)


def test_each_commit_of_a_stream_is_made_once(table: ice.Table) -> None:
    """A job that is run again commits at the same places; what it had not committed is committed now."""
    rows = [pa.table({"id": pa.array([number], pa.int64()), "part": ["x"]}) for number in (11, 12, 13)]

    def run(commits: int) -> list[int]:
        stream = table.upsert_stream(["id", "part"], idempotency_key=KEY)
        return [stream.upsert(one).commit().rows_written for one in rows[:commits]]

    assert run(2) == [1, 1]
    assert run(3) == [0, 0, 1]
    keys = [(one.summary or {}).get(ENTRY) for one in table.metadata.snapshots[1:]]
    assert keys == [KEY, f"{KEY}/2", f"{KEY}/3"]
    assert sorted(table.scan("id > 10").to_arrow()["id"].to_pylist()) == [11, 12, 13]
    # Engines number their batches.
    for _ in range(2):
        with table.upsert_stream(["id", "part"]) as stream:
            stream.upsert(rows[0]).commit(idempotency_key="epoch/7")
    assert [(one.summary or {}).get(ENTRY) for one in table.metadata.snapshots[4:]] == ["epoch/7"]
    with pytest.raises(ice.InvalidArgumentError, match="idempotency_key must be a str that is not empty"):
        table.upsert_stream(["id", "part"], idempotency_key="")


def test_another_client_is_first_between_attempts(table: ice.Table) -> None:
    """A lost race is found out at the next attempt."""
    other = table.catalog.load_table("a.t")
    with table.transaction() as tx:
        tx.append(ROWS, idempotency_key=KEY)
        tx.set_properties({"owner": "me"})
        other.append(ROWS, idempotency_key=KEY)
    assert table.scan().count() == 6
    # The rest of the transaction is made.
    assert table.properties["owner"] == "me"
    assert len(data_files(table)) == len(table.inspect.all_data_files())


def test_clients_that_race_make_a_change_once(tmp_path: Path) -> None:
    """Eight clients of one table: one of them makes the change, and no file of the others is left."""
    catalog = ice.load_catalog("race", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    catalog.create_table("a.t", schema=ROWS.schema, properties={"commit.retry.num-retries": "20"})
    tables = [catalog.load_table("a.t") for _ in range(8)]
    with ThreadPoolExecutor(len(tables)) as pool:
        list(pool.map(lambda one: one.append(ROWS, idempotency_key=KEY), tables))
    table = catalog.load_table("a.t")
    assert (len(table.metadata.snapshots), table.scan().count()) == (1, 3)
    assert len(data_files(table)) == 1
    assert len(list(tmp_path.rglob("snap-*.avro"))) == 1


def test_keys_belong_to_a_branch(table: ice.Table) -> None:
    table.append(ROWS, branch="audit", idempotency_key=KEY)
    table.append(ROWS, idempotency_key=KEY)
    assert (table.scan().count(), table.scan(ref="audit").count()) == (6, 6)
    # A new branch has the history of main, and so the rows.
    table.append(ROWS, branch="late", idempotency_key=KEY)
    assert table.scan(ref="late").count() == 6
    staged = [table.append_files([described(table)], stage_only=True, idempotency_key="s") for _ in range(2)]
    assert sum((one.summary or {}).get(ENTRY) == "s" for one in staged[1].metadata.snapshots) == 1


def test_keys_are_forgotten_with_their_snapshots(table: ice.Table) -> None:
    first = table.current_snapshot().snapshot_id
    table.append(ROWS, idempotency_key=KEY)
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    table.append(ROWS, idempotency_key=KEY)
    assert table.scan().count() == 6
    table.append(ROWS)
    table.expire_snapshots(older_than=table.current_snapshot().timestamp_ms + 1, retain_last=1)
    table.append(ROWS, idempotency_key=KEY)
    assert table.scan().count() == 12


@pytest.mark.parametrize("key", ["", 7])
def test_keys_are_texts(table: ice.Table, key: Any) -> None:
    with pytest.raises(ice.InvalidArgumentError, match="idempotency_key must be a str that is not empty"):
        table.append(ROWS, idempotency_key=key)


def test_a_transaction_needs_a_snapshot_to_keep_its_key(table: ice.Table) -> None:
    with (
        pytest.raises(ice.InvalidArgumentError, match="makes no snapshot"),
        table.transaction(idempotency_key="k") as tx,
    ):
        tx.set_properties({"owner": "me"})
    assert "owner" not in table.refresh().properties
