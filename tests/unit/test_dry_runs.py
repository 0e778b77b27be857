"""Dry runs: the counts of the change itself, and nothing that is written."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.table import RowsChanged

ROWS = pa.table({"id": range(1000), "p": [str(number % 3) for number in range(1000)]})
NEW = pa.table({"id": range(990, 1010), "p": [str(number % 4) for number in range(20)]})


def make(folder: Path, version: int, file_format: str = "parquet") -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(folder / "warehouse"))
    catalog.create_namespace("a")
    properties = {"format-version": str(version), "write.format.default": file_format}
    table = catalog.create_table("a.t", schema=ROWS, partition_by="p", properties=properties).append(ROWS)
    (folder / "p=7").mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": [1, 2]}), folder / "p=7" / "one.parquet")
    return table


def tree(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_size for path in folder.rglob("*") if path.is_file()}


CHANGES: dict[str, Callable[[ice.Table, Path, bool], object]] = {
    "append": lambda table, _, dry: table.append(NEW, dry_run=dry),
    "add_files": lambda table, folder, dry: table.add_files([str(folder / "p=7" / "one.parquet")], dry_run=dry),
    "overwrite": lambda table, _, dry: table.overwrite(NEW, "id >= 990", dry_run=dry),
    "overwrite of all": lambda table, _, dry: table.overwrite(NEW, dry_run=dry),
    "partitions": lambda table, _, dry: table.dynamic_partition_overwrite(NEW, dry_run=dry),
    "delete": lambda table, _, dry: table.delete("id < 10", dry_run=dry),
    "update": lambda table, _, dry: table.update({"p": "9"}, "id < 10", dry_run=dry),
}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_dry_run_counts_what_the_change_then_does(tmp_path: Path, name: str, version: int, file_format: str) -> None:
    table = make(tmp_path, version, file_format)
    before = tree(tmp_path)
    planned = CHANGES[name](table, tmp_path, True)
    assert isinstance(planned, RowsChanged)
    assert tree(tmp_path) == before
    assert table.metadata_location == table.refresh().metadata_location
    old = {file["file_path"]: file for file in table.inspect.data_files().to_pylist()}
    done = CHANGES[name](table, tmp_path, False)
    now = {file["file_path"]: file for file in table.refresh().inspect.data_files().to_pylist()}
    added = [file for path, file in now.items() if path not in old]
    if isinstance(done, RowsChanged):
        # The names of files, which some formats keep, are as long.
        assert planned == done
    if name in {"append", "add_files"}:
        assert planned.rows_added == sum(file["record_count"] for file in added)
        assert (planned.rows_removed, planned.files_removed) == (0, 0)
    if name != "delete":
        assert planned.files_added > 0
    if planned.files_rewritten == 0:
        assert planned.files_added == len(added)
        assert planned.bytes_added == sum(file["file_size_in_bytes"] for file in added)
    gone = [file["file_size_in_bytes"] for path, file in old.items() if path not in now]
    assert planned.bytes_removed + planned.bytes_rewritten == sum(gone)
    assert (planned.bytes_removed > 0) == (planned.files_removed > 0)
    assert "rows removed" in str(planned)
    assert f"{planned.files_added:,} added" in str(planned)


def test_merges_and_upserts_write_nothing(tmp_path: Path) -> None:
    table = make(tmp_path, 3)
    before = tree(tmp_path)
    planned = table.merge(NEW, "id", dry_run=True).when_matched_update_all().when_not_matched_insert_all().execute()
    assert tree(tmp_path) == before
    upserted = table.upsert(NEW, ["id"], dry_run=True)
    assert upserted.rows_inserted == 10
    assert tree(tmp_path) == before
    start = table.current_snapshot()
    assert start is not None
    done = table.upsert(NEW, ["id"])
    assert dataclasses.astuple(upserted) == dataclasses.astuple(done)
    new = {path: size for path, size in tree(tmp_path).items() if path not in before and path.endswith(".parquet")}
    assert (done.files_added, done.bytes_added) == (len(new), sum(new.values()))
    table.manage_snapshots().rollback_to_snapshot(start.snapshot_id).commit()
    assert planned == table.merge(NEW, "id").when_matched_update_all().when_not_matched_insert_all().execute()


def test_in_a_transaction_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path, 2)
    before = tree(tmp_path)
    with table.transaction() as changes:
        assert changes.append(NEW, dry_run=True).rows_added == 20
        assert changes.add_files([str(tmp_path / "p=7" / "one.parquet")], dry_run=True).files_added == 1
    assert tree(tmp_path) == before
    with pytest.raises(ice.errors.ValidationError):
        table.append(pa.table({"id": ["x"], "p": ["1"]}), dry_run=True)
    assert tree(tmp_path) == before


def test_maintenance_says_what_it_would_do_and_writes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path, 2)
    for _ in range(3):
        table.append(NEW)
    before = tree(tmp_path)
    planned = table.rewrite_manifests().cluster_by().dry_run()
    expired = table.expire_snapshots(older_than="0ms", retain_last=1, dry_run=True)
    assert tree(tmp_path) == before
    old = dict(zip(*(table.inspect.manifests()[name].to_pylist() for name in ("path", "length")), strict=True))
    assert (planned.replaced, planned.replaced_bytes, planned.kept) == (len(old), sum(old.values()), 0)
    assert planned.entries == table.inspect.data_files().num_rows
    table.rewrite_manifests().cluster_by().commit()
    new = dict(zip(*(table.inspect.manifests()[name].to_pylist() for name in ("path", "length")), strict=True))
    assert (planned.added, planned.added_bytes) == (len(new), sum(new.values()))
    # Without manifest lists, whose size is recorded nowhere.
    assert expired.snapshot_ids
    assert not expired.data_files
    assert expired.bytes == 0
    table.delete("id >= 0")
    planned_expiry = table.expire_snapshots(older_than="0ms", retain_last=1, dry_run=True)
    before = tree(tmp_path)
    done = table.expire_snapshots(older_than="0ms", retain_last=1)
    assert done == planned_expiry
    gone = {path: size for path, size in before.items() if path not in tree(tmp_path)}
    assert done.bytes == sum(size for path, size in gone.items() if "/snap-" not in path) > 0
    assert len(gone) == len(done.deleted_files)


def test_in_a_transaction_a_rewrite_of_manifests_says_what_it_would_do(tmp_path: Path) -> None:
    table = make(tmp_path, 2)
    snapshots = len(table.snapshots())
    with table.transaction() as changes:
        changes.append(NEW)
        planned = changes.rewrite_manifests().cluster_by().dry_run()
    assert planned.entries == table.inspect.data_files().num_rows
    assert len(table.snapshots()) == snapshots + 1
