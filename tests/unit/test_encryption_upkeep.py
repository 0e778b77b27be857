"""What encrypted tables need over time: fewer keys, statistics, temporary files, workers that read metadata tables."""

from __future__ import annotations

import base64
import json
import os
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from test_encryption import KEYS, ROWS, again, damaged, encrypted, files, opened

import icefield as ice
from icefield.distributed import InspectTask, Storage
from icefield.encryption import MemoryKeys
from icefield.errors import CorruptDataError, UnsupportedFeatureError


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    return opened(tmp_path)


def keys_of(table: ice.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(table.metadata.to_json()).get("encryption-keys", [])
    return found


def test_expiry_removes_the_keys_of_manifest_lists(catalog: ice.Catalog) -> None:
    table = encrypted(catalog)
    for _ in range(4):
        table = table.append(ROWS)
    kept = table.snapshots()[1].snapshot_id
    table.manage_snapshots().create_tag(kept, "kept").commit()
    table.refresh().expire_snapshots(retain_last=1, older_than=2**50)
    table = table.refresh()
    # The key that encrypts, and those of the tag and of the current snapshot.
    assert len(keys_of(table)) == 3
    other = again(table, MemoryKeys(KEYS))
    assert other.scan(snapshot_id=kept).count() == 400
    assert other.append(ROWS).scan().count() == 1000


def test_nothing_expires_without_the_keys(catalog: ice.Catalog) -> None:
    """The files of the snapshots could not be found afterwards: their keys would be gone from the metadata."""
    table = encrypted(catalog)
    for _ in range(3):
        table = table.append(ROWS)
    before = files(table)
    for keys in (None, MemoryKeys({}), MemoryKeys({"keyA": b"another key 0123"})):
        other = again(table, keys)
        for dry_run in (True, False):
            with pytest.raises(ice.IcefieldError, match="encryption.kms-type|no key 'keyA'|another key"):
                other.expire_snapshots(retain_last=1, older_than=2**50, dry_run=dry_run)
        assert len(other.refresh().snapshots()) == 3
        with pytest.raises(ice.IcefieldError, match="encryption.kms-type|no key 'keyA'|another key"):
            other.fsck()
        with pytest.raises(ice.IcefieldError, match="encryption.kms-type|no key 'keyA'|another key"):
            other.doctor()
    assert files(table) == before
    other = again(table, None)
    other.expire_snapshots(retain_last=1, older_than=2**50, cleanup="nothing")
    assert len(other.refresh().snapshots()) == 1
    assert files(table) == before


def test_statistics_are_encrypted(catalog: ice.Catalog) -> None:
    table = encrypted(catalog).append(ROWS)
    done = table.maintenance.compute_table_stats()
    assert done is not None
    assert done.distinct == {"id": 200, "name": 200}
    table = table.refresh()
    assert table.maintenance.compute_table_stats() is not None
    table = table.refresh()
    (file,) = json.loads(table.metadata.to_json())["statistics"]
    path = Path(file["statistics-path"].removeprefix("file://"))
    assert path.read_bytes()[:4] == b"AGS1"
    assert path.stat().st_size == file["file-size-in-bytes"]
    assert base64.b64decode(file["key-metadata"]).decode() == path.name
    # A key that encrypts, one of the manifest list, one of these statistics; that of the replaced ones is gone.
    assert len(keys_of(table)) == 3
    table = again(table, MemoryKeys(KEYS))
    assert table.fsck("rows").findings == []
    before = path.read_bytes()
    for changed in (before[:-30], before[:60] + bytes([before[60] ^ 1]) + before[61:]):
        path.write_bytes(changed)
        (finding,) = table.fsck("rows").findings
        assert path.name in str(finding)
    path.write_bytes(before)
    # The Java library drops the key metadata of statistics files from what it writes.
    location = table.metadata_location.removeprefix("file://")
    document = json.loads(Path(location).read_text())
    for named, says in ((None, None), ("b3RoZXI=", "of another library")):
        document["statistics"][0].pop("key-metadata", None)
        if named is not None:
            document["statistics"][0]["key-metadata"] = named
        where = f"{table.location()}/metadata/{says}.metadata.json"
        table.storage.write(where, json.dumps(document).encode())
        assert table.catalog is not None
        found = table.catalog.register_table(f"db.{says or 'java'}".replace(" ", "_"), where).fsck("rows").findings
        assert [says in str(finding) for finding in found] == [True] * (says is not None)
    table.append(ROWS).expire_snapshots(retain_last=1, older_than=2**50)
    assert len(keys_of(table.refresh())) == 2
    assert not path.exists()


def read_task(job: tuple[bytes, Storage]) -> bytes:
    data, storage = job
    assert not storage.has_keys
    task: InspectTask = pickle.loads(data)
    return pickle.dumps(task.rows(storage).to_pyarrow().read_all())


def test_workers_read_metadata_tables_by_the_keys_of_manifest_lists(catalog: ice.Catalog) -> None:
    table = encrypted(catalog, **{"commit.manifest-merge.enabled": "false"})
    for _ in range(3):
        table = table.append(ROWS)
    table.delete("id = 7", mode="merge-on-read")
    table = table.refresh()
    first = table.snapshots()[0].snapshot_id
    storage = pickle.loads(pickle.dumps(table.storage))
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for name, arguments, lists in [
            ("snapshots", {}, 0),
            ("files", {}, 1),
            ("entries", {"snapshot_id": first}, 1),
            ("partitions", {}, 1),
            ("position_deletes", {}, 1),
            ("all_manifests", {}, 4),
            ("all_files", {}, 4),
        ]:
            tasks = table.inspect.tasks(name, manifests=2, **arguments)  # type: ignore[arg-type]
            parts = [
                pickle.loads(part) for part in pool.map(read_task, [(pickle.dumps(task), storage) for task in tasks])
            ]
            expected = table.inspect.stream(name, **arguments).read_all()  # type: ignore[arg-type]
            assert sorted(map(str, pa.concat_tables(parts).to_pylist())) == sorted(map(str, expected.to_pylist())), name
            # No task has the key of the table, nor a key that encrypts others, nor prints what it has.
            sent = b"".join(pickle.dumps(task) for task in tasks)
            assert not any(key in sent for key in KEYS.values())
            assert {len(task.list_keys) for task in tasks} == {lists}
            assert "list_keys" not in repr(tasks[0])
    # What was given opens these lists, and nothing else.
    (task, *_) = table.inspect.tasks("files", snapshot_id=first)
    given = storage.with_list_keys(dict(task.list_keys))
    other = again(table, None)
    assert other.catalog is not None
    with pytest.raises(UnsupportedFeatureError, match="has the keys of some manifest lists, and not the key keyA"):
        InspectTask(table.metadata_location, "files", ("*",), task.column_names, None, None, None, None, (0, 1)).rows(
            given
        )


def test_old_files_of_the_same_table_are_refused(catalog: ice.Catalog) -> None:
    """Who can write to the storage cannot turn back the table: each file is bound to the one that names it."""
    for format in ("parquet", "avro"):
        table = encrypted(catalog, f"db.{format}", **{"write.format.default": format})
        table = table.append(ROWS)
        table.delete("id = 7", mode="merge-on-read")
        before = files(table)
        table.refresh().append(ROWS)
        table.refresh().delete("id = 8", mode="merge-on-read")
        table = table.refresh()
        live = set(table.inspect.all_files()["file_path"].to_pylist()) & set(
            table.inspect.files()["file_path"].to_pylist()
        )
        for manifest in table.inspect.manifests().to_pylist():
            # One that only lists removed files is not read.
            if sum(
                count for name, count in manifest.items() if name.startswith(("added", "exist")) and "files" in name
            ):
                live.add(manifest["path"])
        current = table.current_snapshot()
        assert current is not None
        live.add(str(current.manifest_list))
        names = {path.rsplit("/", 1)[1] for path in live}

        def kind(path: Path) -> tuple[str, bool]:
            return path.suffix, path.name.startswith("snap-")

        def read(table: ice.Table = table) -> object:
            return again(table, MemoryKeys(KEYS)).scan().to_arrow()

        tried = set()
        for path in files(table):
            for old in before:
                if path.name in names and kind(old) == kind(path) and old != path:
                    stored = old.read_bytes()
                    assert path.name in damaged(path, lambda _, stored=stored: stored, read), (path, old)
                    tried.add(kind(path))
        assert tried == {(f".{format}", False), (".avro", False), (".avro", True), (".puffin", False)}


def test_equality_deletes_are_bound_like_other_files(catalog: ice.Catalog) -> None:
    table = encrypted(catalog).append(ROWS)
    with table.upsert_stream(["id"]) as stream:
        stream.upsert(ROWS.slice(0, 5))
    table = table.refresh()
    (path,) = (
        Path(path.removeprefix("file://"))
        for path, content in zip(
            *table.inspect.files().select(["file_path", "content"]).to_pydict().values(), strict=True
        )
        if content == 2
    )
    other = next(p for p in files(table) if p.suffix == ".parquet" and p != path).read_bytes()

    def read() -> object:
        return again(table, MemoryKeys(KEYS)).scan().to_arrow()

    changes: list[Callable[[bytes], bytes]] = [
        lambda _: other,
        lambda stored: stored[:-30],
        lambda stored: stored[:40] + bytes([stored[40] ^ 1]) + stored[41:],
    ]
    for change in changes:
        assert path.name in damaged(path, change, read)
    wrong = again(table, MemoryKeys({"keyA": b"another key 0123"}))
    with pytest.raises(ice.IcefieldError, match="another key"):
        wrong.scan().to_arrow()


def test_pages_of_a_column_keep_their_places(catalog: ice.Catalog) -> None:
    small = {"write.parquet.page-row-limit": "1000", "write.parquet.compression-codec": "uncompressed"}
    rows = pa.table({name: pa.array(range(15_000), pa.int64()) for name in ("id", "other")})
    own = {"format-version": "3", "encryption.key-id": "keyA", **small}
    table = catalog.create_table("db.t", rows.schema, properties=own).append(rows)
    (path,) = (path for path in files(table) if path.suffix == ".parquet")

    def read() -> object:
        return again(table, MemoryKeys(KEYS)).scan().to_arrow()

    def modules(stored: bytes) -> list[tuple[int, int]]:
        """Where the encrypted pages and headers are: each has its length before it."""
        found, at = [], 4
        while at + 4 < len(stored) and (length := int.from_bytes(stored[at : at + 4], "little")) < len(stored) - at:
            found.append((at, at + 4 + length))
            at += 4 + length
        return found

    pages = [(start, end) for start, end in modules(path.read_bytes()) if end - start > 8000]
    assert len(pages) >= 20
    # Of one column, and of two.
    for one, other in ((pages[0], pages[1]), (pages[2], pages[-2])):
        assert one[1] - one[0] == other[1] - other[0]

        def swapped(stored: bytes, one: tuple[int, int] = one, other: tuple[int, int] = other) -> bytes:
            first, second = stored[slice(*one)], stored[slice(*other)]
            return stored[: one[0]] + second + stored[one[1] : other[0]] + first + stored[other[1] :]

        said = damaged(path, swapped, read)
        assert path.name in said
        assert "the page was changed, or is that of another place or file" in said
    assert read() == rows


def test_cached_manifests_need_the_key_again(catalog: ice.Catalog) -> None:
    """A table whose metadata name the manifest list of another one found its manifests in the cache of the process."""
    table = encrypted(catalog).append(ROWS)
    thief = encrypted(catalog, "db.thief", **{"encryption.key-id": "keyB"}).append(ROWS.slice(0, 1))
    for path in files(table):
        # Files of this moment are not cached.
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert table.scan().count() == 200
    document = json.loads(thief.metadata.to_json())
    wanted = json.loads(table.metadata.to_json())["snapshots"][0]["manifest-list"]
    for key_id in (document["snapshots"][0]["key-id"], None):
        document["snapshots"][0]["manifest-list"] = wanted
        document["snapshots"][0]["key-id"] = key_id
        if key_id is None:
            del document["snapshots"][0]["key-id"]
        where = f"{thief.location()}/metadata/{key_id is None}.metadata.json"
        thief.storage.write(where, json.dumps(document).encode())
        stolen = catalog.register_table(f"db.stolen_{key_id is None}", where)
        with pytest.raises(CorruptDataError, match=wanted.rsplit("/", 1)[1]):
            stolen.scan().to_arrow()


def test_pages_beyond_what_can_be_numbered(catalog: ice.Catalog) -> None:
    """A row a page, and more rows than numbers of pages: it failed in the middle of a write."""
    small = {"write.parquet.page-row-limit": "1", "write.parquet.page-size-bytes": "1"}
    rows = pa.table({"id": pa.array(range(70_000), pa.int64())})
    own = {"format-version": "3", "encryption.key-id": "keyA", **small}
    table = catalog.create_table("db.t", rows.schema, properties=own).append(rows)
    assert again(table, MemoryKeys(KEYS)).scan().to_arrow().equals(rows)


def test_rows_beyond_memory_are_merged_by_encrypted_files(catalog: ice.Catalog) -> None:
    rows = pa.table({"id": pa.array(range(12_000)), "name": [f"name {number}" * 20 for number in range(12_000)]})
    table = catalog.create_table(
        "db.t", rows.schema, properties={"format-version": "3", "encryption.key-id": "keyA"}
    ).append(rows)
    changed = rows.set_column(1, "name", pa.array(["new"] * 12_000))
    table.upsert(changed, ["id"], memory_limit=1 << 20)
    assert table.refresh().scan().to_arrow().sort_by("id").equals(changed)


def test_repairs_write_encrypted_manifests(catalog: ice.Catalog) -> None:
    table = encrypted(catalog)
    for _ in range(3):
        table = table.append(ROWS)
    rows = table.scan().count()
    path = table.inspect.data_files().to_pylist()[0]
    Path(path["file_path"].removeprefix("file://")).unlink()
    with pytest.raises(ice.IcefieldError, match="encryption.kms-type|no key 'keyA'|another key"):
        again(table, None).maintenance.repair(remove_missing_files=True)
    done = table.maintenance.repair("rows", remove_missing_files=True)
    assert (done.removed_files, done.removed_rows, done.left) == (1, path["record_count"], [])
    table = again(table, MemoryKeys(KEYS))
    assert table.scan().count() == rows - path["record_count"]
    manifests = [row["path"] for row in table.inspect.manifests().to_pylist()]
    assert all(not Path(one.removeprefix("file://")).read_bytes().startswith(b"Obj") for one in manifests)
    table.expire_snapshots(retain_last=1, older_than=2**50)
    assert table.refresh().fsck("rows").findings == []
