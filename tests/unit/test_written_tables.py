"""What writing must never do: bring deleted rows back, count wrongly, leave many manifests, use another's names."""

from __future__ import annotations

import multiprocessing
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield._core import Traffic
from icefield._core import Transaction as CoreTransaction
from icefield.catalog.memory import InMemoryCatalog

SCHEMA = pa.schema([("id", pa.int64()), ("p", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "p": [str(at % 2) for at in ids]})


def make(folder: Path | str, version: int = 2, **options: Any) -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(folder))
    catalog.create_namespace("a")
    properties = {"format-version": str(version), **options.pop("properties", {})}
    return catalog.create_table("a.t", SCHEMA, properties=properties, **options)


def ids(table: ice.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def by_key(table: ice.Table, *keys: int) -> None:
    with table.upsert_stream("id") as stream:
        stream.delete(pa.table({"id": pa.array(keys, pa.int64())}))


DELETES: dict[str, Callable[[ice.Table], object]] = {
    "merge-on-read": lambda table: table.delete("id = 1", mode="merge-on-read"),
    "copy-on-write": lambda table: table.delete("id = 1", mode="copy-on-write"),
    "equality": lambda table: by_key(table, 1),
}
REWRITES: dict[str, Callable[[ice.Table], object]] = {
    "delete": lambda table: table.delete("id = 2", mode="copy-on-write"),
    "update": lambda table: table.update({"id": 20}, "id = 2", mode="copy-on-write"),
    "upsert": lambda table: table.upsert(pa.table({"id": [2], "p": ["new"]}), ["id"], mode="copy-on-write"),
    "overwrite": lambda table: table.overwrite(rows(20), "id = 2", mode="copy-on-write"),
}


@pytest.mark.parametrize(("version", "form"), [(2, "parquet"), (3, "parquet"), (2, "orc"), (3, "avro")])
@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("deletes", DELETES)
def test_rewrites_bring_no_deleted_row_back(
    tmp_path: Path, version: int, form: str, rewrite: str, deletes: str
) -> None:
    table = make(tmp_path, version, properties={"write.format.default": form}).append(rows(*range(10)))
    DELETES[deletes](table)
    REWRITES[rewrite](table)
    DELETES[deletes](table)
    left = {"delete": [], "update": [20], "upsert": [2], "overwrite": [20]}[rewrite]
    assert ids(table) == sorted([0, *left, *range(3, 10)])


def recounted(table: ice.Table) -> dict[str, int]:
    """The totals of a snapshot, counted in its files."""
    files = table.inspect.files().to_pylist()
    kinds = {kind: [file for file in files if file["content"] == kind] for kind in (0, 1, 2)}
    return {
        "total-records": sum(file["record_count"] for file in kinds[0]),
        "total-data-files": len(kinds[0]),
        "total-delete-files": len(kinds[1]) + len(kinds[2]),
        "total-position-deletes": sum(file["record_count"] for file in kinds[1]),
        "total-equality-deletes": sum(file["record_count"] for file in kinds[2]),
        "total-files-size": sum(
            file["content_size_in_bytes"] if file.get("content_size_in_bytes") else file["file_size_in_bytes"]
            for file in files
        ),
    }


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_totals_are_a_recount_after_every_change(tmp_path: Path, version: int, seed: int) -> None:
    chosen = random.Random(seed * 10 + version)
    table = make(tmp_path, version, partition_by=chosen.choice([[], ["p"]]))
    mode = "copy-on-write" if version == 1 else "merge-on-read"
    for _ in range(12):
        some = [chosen.randrange(40) for _ in range(chosen.randint(1, 8))]
        changes: list[Callable[[], object]] = [
            lambda: table.append(rows(*some)),  # noqa: B023
            lambda: table.delete(f"id = {some[0]}", mode=mode),  # noqa: B023
            lambda: table.delete(f"id < {some[0] % 7}"),  # noqa: B023
            lambda: table.overwrite(rows(*some), f"id > {some[0]}"),  # noqa: B023
            lambda: table.update({"id": 99}, f"id = {some[0]}", mode=mode),  # noqa: B023
        ]
        if table.current_snapshot() is not None:
            changes.append(lambda: table.rewrite_manifests().cluster_by(lambda entries: entries["status"]).commit())
        if version > 1 and not table.spec().fields:
            changes.append(lambda: by_key(table, *some))  # noqa: B023
        chosen.choice(changes)()
        snapshot = table.current_snapshot()
        if snapshot is None:
            continue
        assert snapshot.summary is not None
        expected = recounted(table)
        found = {name: int(snapshot.summary.get(name, 0)) for name in expected}
        assert found == expected, snapshot.summary


def described(number: int) -> ice.DataFile:
    return ice.DataFile(
        file_path=f"memory://none/{number}.parquet", file_format="parquet", record_count=1, file_size_in_bytes=10
    )


def test_many_small_appends_leave_few_manifests() -> None:
    table = make("memory://few")
    most = 0
    for number in range(230):
        table.append_files([described(number)])
        # Near the appends that merge, and now and then.
        if number % 100 > 95 or number % 20 == 0:
            most = max(most, table.inspect.manifests().num_rows)
    assert table.inspect.files().num_rows == 230
    # `commit.manifest.min-count-to-merge` is 100.
    assert most <= 100
    assert table.inspect.manifests().num_rows < 40


def named_by_a_process(folder: str) -> tuple[list[str], list[int]]:
    random.seed(7)
    table = make(folder).append(rows(1)).append(rows(2))
    paths = [file["file_path"].rpartition("/")[2] for file in table.inspect.files().to_pylist()]
    paths += [entry["path"].rpartition("/")[2] for entry in table.inspect.manifests().to_pylist()]
    return paths, [snapshot.snapshot_id for snapshot in table.snapshots()]


def test_processes_with_one_seed_use_different_names(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        named = pool.map(named_by_a_process, [str(tmp_path / str(number)) for number in range(8)], chunksize=1)
    paths = [path for found, _ in named for path in found]
    snapshots = [snapshot for _, found in named for snapshot in found]
    assert len(paths) == len(set(paths)) == 32
    assert len(snapshots) == len(set(snapshots)) == 16


BUILDERS: dict[str, Callable[[ice.Table], Any]] = {
    "fast_append": lambda table: table.update_snapshot().fast_append().append_data_file(described(1)),
    "merge_append": lambda table: table.update_snapshot().merge_append().append_data_file(described(1)),
    "overwrite": lambda table: table.overwrite_files().delete_by_predicate("id > 0"),
    "delete": lambda table: table.update_snapshot().delete().delete_by_predicate("id > 0"),
    "row_delta": lambda table: table.row_delta().add_rows(described(1)),
    "replace_partitions": lambda table: table.replace_partitions().append_data_file(described(1)),
    "rewrite_manifests": lambda table: table.rewrite_manifests().cluster_by(lambda entries: entries["status"]),
    "upsert_stream": lambda table: table.upsert_stream("id").upsert(rows(1)),
    "update_schema": lambda table: table.update_schema().add_column("x", "int"),
    "update_spec": lambda table: table.update_spec().add_field("p"),
    "update_sort_order": lambda table: table.update_sort_order().asc("id"),
    "manage_snapshots": lambda table: table.manage_snapshots().create_branch(
        table.snapshots()[0].snapshot_id, "branch"
    ),
    "transaction": lambda table: table.transaction().append(rows(1)),
}


@pytest.mark.parametrize("name", BUILDERS)
def test_blocks_that_raise_send_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    table = make(tmp_path).append(rows(1, 2))
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    requests: list[object] = []
    monkeypatch.setattr(type(table.catalog), "swap_pointer", lambda *asked: requests.append(asked))
    with pytest.raises(KeyError), BUILDERS[name](table):
        raise KeyError
    assert requests == []
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == before


def test_files_are_added_in_steady_time(tmp_path: Path) -> None:
    """Each call reads the names of the table's files once, and nothing else of them."""
    table = make(tmp_path / "warehouse")
    for number in range(60):
        (tmp_path / "given").mkdir(exist_ok=True)
        pq.write_table(rows(number), tmp_path / "given" / f"{number}.parquet")
    paths = [str(tmp_path / "given" / f"{number}.parquet") for number in range(60)]
    size = Path(paths[0]).stat().st_size
    for number in range(0, 55, 5):
        table.add_files(paths[number : number + 5])
    listed = sum(entry["length"] for entry in table.inspect.manifests().to_pylist())
    traffic = Traffic()
    changes = CoreTransaction(table._state)
    changes.count(traffic)
    changes.add_files(paths[55:], dry_run=True)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    # Footers may be read with the bytes before them.
    assert traffic.read <= listed + 20_000 + 5 * 2 * size
    assert traffic.files == 0
