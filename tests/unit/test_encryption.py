"""Encrypted tables: what is stored, what others cannot do to it, and who gets which keys."""

from __future__ import annotations

import base64
import json
import pickle
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import icefield as ice
from icefield.cli.commands import icefield
from icefield.distributed import ReadTask, RowChangePlan, RowRemover, Storage, TaskWriter, WritePlan
from icefield.encryption import KeyFile, KeyManagementClient, MemoryKeys
from icefield.errors import (
    CorruptDataError,
    IcefieldError,
    InvalidArgumentError,
    ValidationException,
)

KEYS = {"keyA": b"0123456789012345", "keyB": b"1123456789012345"}
ROWS = pa.table({"id": pa.array(range(200)), "name": [f"secret name {number:04}" for number in range(200)]})
MIB = 1 << 20


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    return opened(tmp_path)


def opened(folder: Path, keys: KeyManagementClient | None = None, **properties: str) -> ice.Catalog:
    catalog = ice.load_catalog("keys", type="in-memory", warehouse=str(folder), **properties)
    catalog.create_namespace("db")
    catalog.key_management = keys or MemoryKeys(KEYS)
    return catalog


def encrypted(catalog: ice.Catalog, name: str = "db.t", **properties: str) -> ice.Table:
    own = {"format-version": "3", "encryption.key-id": "keyA", **properties}
    return catalog.create_table(name, ROWS.schema, properties=own)


def again(table: ice.Table, keys: KeyManagementClient | None) -> ice.Table:
    """Load the table with other keys, and without what this process has read of it."""
    catalog = ice.load_catalog("other", type="in-memory", warehouse=table.location())
    catalog.create_namespace("db")
    catalog.key_management = keys
    return catalog.register_table("db.t", table.metadata_location)


def files(table: ice.Table) -> list[Path]:
    found = [Path(path.removeprefix("file://")) for path, _ in table.storage.list(table.location())]
    return [path for path in found if not path.name.endswith(".metadata.json")]


def opened_stream(stored: bytes, key_metadata: bytes) -> bytes:
    """The AES GCM stream specification and the form of key metadata, written once more."""

    def long(at: int) -> tuple[int, int]:
        shift = value = 0
        while True:
            byte = key_metadata[at]
            value |= (byte & 0x7F) << shift
            at, shift = at + 1, shift + 7
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1), at

    assert key_metadata[0] == 1
    length, at = long(1)
    key, at = key_metadata[at : at + length], at + length
    is_some, at = long(at)
    assert is_some == 1
    length, at = long(at)
    prefix, at = key_metadata[at : at + length], at + length
    is_some, at = long(at)
    assert is_some == 1
    assert long(at)[0] == len(stored)
    assert stored[:8] == b"AGS1" + MIB.to_bytes(4, "little")
    plain, at, block = b"", 8, 0
    while at < len(stored):
        sealed = stored[at : at + MIB + 28]
        plain += AESGCM(key).decrypt(sealed[:12], sealed[12:], prefix + block.to_bytes(4, "little"))
        at, block = at + len(sealed), block + 1
    return plain


def key_of_list(table: ice.Table, table_key: bytes) -> bytes:
    """The key metadata of the manifest list of the current snapshot."""
    document = json.loads(table.metadata.to_json())
    keys = {key["key-id"]: key for key in document["encryption-keys"]}
    snapshot = next(one for one in document["snapshots"] if one["snapshot-id"] == document["current-snapshot-id"])
    sealed = keys[snapshot["key-id"]]
    by = keys[sealed["encrypted-by-id"]]
    assert by["encrypted-by-id"] == "keyA"
    wrapped, text = (base64.b64decode(one["encrypted-key-metadata"]) for one in (by, sealed))
    key = AESGCM(table_key).decrypt(wrapped[:12], wrapped[12:], None)
    return AESGCM(key).decrypt(text[:12], text[12:], by["properties"]["KEY_TIMESTAMP"].encode())


@pytest.mark.parametrize("format", ["parquet", "avro"])
@pytest.mark.parametrize("length", ["16", "32"])
def test_nothing_is_stored_in_the_clear(catalog: ice.Catalog, format: str, length: str) -> None:
    table = encrypted(catalog, **{"write.format.default": format, "encryption.data-key-length": length})
    table = table.append(ROWS)
    table.delete("id = 7", mode="merge-on-read")
    table = table.refresh()
    kinds = {path.suffix for path in files(table)}
    assert kinds == {".avro", ".puffin", f".{format}"}
    for path in files(table):
        stored = path.read_bytes()
        assert stored[:4] == (b"PARE" if path.suffix == ".parquet" else b"AGS1"), path
        assert b"secret name" not in stored, path
        assert b"iceberg.schema" not in stored, path
    expected = ROWS.filter(pa.compute.not_equal(ROWS["id"], 7))
    assert again(table, MemoryKeys(KEYS)).scan().to_arrow().sort_by("id").equals(expected)

    # Everything down to the rows can be opened by the specifications alone.
    manifest_list = Path(table.current_snapshot().manifest_list.removeprefix("file://"))
    listed = opened_stream(manifest_list.read_bytes(), key_of_list(table, KEYS["keyA"]))
    for manifest in ice.manifests.read_list(listed).to_pylist():
        stored = Path(manifest["manifest_path"].removeprefix("file://")).read_bytes()
        assert len(stored) == manifest["manifest_length"]
        inside = opened_stream(stored, manifest["key_metadata"])
        for entry in ice.manifests.read(inside).to_pylist():
            file = entry.get("data_file", entry)
            stored = Path(file["file_path"].removeprefix("file://")).read_bytes()
            assert len(stored) == file["file_size_in_bytes"]
            if not file["file_path"].endswith("parquet"):
                plain = opened_stream(stored, file["key_metadata"])
                assert plain[:4] in (b"Obj\x01", b"PFA1")


def damaged(path: Path, change: Callable[[bytes], bytes], work: Callable[[], object]) -> str:
    """Return what a read says about a file that was changed; the file is then as before."""
    before = path.read_bytes()
    path.write_bytes(change(before))
    try:
        with pytest.raises(CorruptDataError) as raised:
            work()
    finally:
        path.write_bytes(before)
    return str(raised.value)


@pytest.mark.parametrize("format", ["parquet", "avro"])
def test_changed_and_swapped_files_are_refused_by_name(catalog: ice.Catalog, format: str) -> None:
    def made(name: str, **properties: str) -> ice.Table:
        table = encrypted(catalog, name, **{"write.format.default": format, **properties}).append(ROWS)
        table.delete("id = 7", mode="merge-on-read")
        return table.refresh()

    one, other = made("db.t"), made("db.u")
    plain = catalog.create_table("db.plain", ROWS.schema, properties={"format-version": "3"})
    plain = plain.update_properties({"write.format.default": format}) or plain.refresh()
    plain = plain.refresh().append(ROWS)

    def like(path: Path, table: ice.Table) -> Path:
        kind = (path.parent.name, path.suffix, path.name.startswith("snap-"))
        return next(p for p in files(table) if (p.parent.name, p.suffix, p.name.startswith("snap-")) == kind)

    def read() -> object:
        return again(one, MemoryKeys(KEYS)).scan().to_arrow()

    old_list = f"snap-{one.snapshots()[0].snapshot_id}-"
    for path in files(one):
        if path.name.startswith(old_list):
            continue
        replacement = like(path, other).read_bytes()
        middle = len(path.read_bytes()) // 2
        changes: dict[str, Callable[[bytes], bytes]] = {
            "a bit": lambda stored, at=middle: stored[:at] + bytes([stored[at] ^ 1]) + stored[at + 1 :],
            "another file": lambda _, found=replacement: found,
            "cut off": lambda stored: stored[:-30],
        }
        if path.suffix != ".puffin":
            unencrypted = like(path, plain).read_bytes()
            changes["a plain file"] = lambda _, found=unencrypted: found
        for what, change in changes.items():
            assert path.name in damaged(path, change, read), (what, path)
    assert again(one, MemoryKeys(KEYS)).scan().count() == 199


def test_blocks_of_a_long_file_keep_their_places(catalog: ice.Catalog) -> None:
    table = encrypted(catalog, **{"write.format.default": "avro", "write.avro.compression-codec": "uncompressed"})
    rows = pa.table({"id": pa.array(range(60_000)), "name": ["x" * 60] * 60_000})
    table = table.append(rows)
    (path,) = (path for path in files(table) if path.parent.name == "data")
    block = MIB + 28

    def read() -> object:
        return again(table, MemoryKeys(KEYS)).scan().to_arrow()

    assert read().equals(rows)  # type: ignore[attr-defined]
    swapped = damaged(
        path, lambda old: old[:8] + old[8 + block : 8 + 2 * block] + old[8 : 8 + block] + old[8 + 2 * block :], read
    )
    assert re.search(rf"{path.name}.*block [01] of 4", swapped)
    assert path.name in damaged(path, lambda old: old[: 8 + 2 * block], read)
    # Any part of it can be read on its own.
    tasks = table.scan().tasks(split_size=MIB)
    parts = [pa.table(task.rows(table.storage)) for task in tasks]
    assert len(parts) > 2
    assert pa.concat_tables(parts).sort_by("id").equals(rows)


def test_many_pages_and_row_groups_are_read_as_plain_ones_are(catalog: ice.Catalog) -> None:
    rows = pa.table(
        {
            "id": pa.array(range(5_000)),
            "word": [f"word {number % 7}" for number in range(5_000)],
            "list": [list(range(number % 5)) if number % 11 else None for number in range(5_000)],
            "inside": [{"a": number, "b": None if number % 3 else str(number)} for number in range(5_000)],
        }
    )
    small = {"write.parquet.page-row-limit": "200", "write.parquet.row-group-limit": "1200"}
    own = {"format-version": "3", "encryption.key-id": "keyA"}
    plain = catalog.create_table("db.plain", rows.schema, properties={"format-version": "3", **small}).append(rows)
    table = catalog.create_table("db.t", rows.schema, properties={**own, **small}).append(rows)
    assert len(table.inspect.files().column("split_offsets").to_pylist()[0]) > 3
    for one in (plain, table):
        one.delete("id = 77 or id = 4321", mode="merge-on-read")
    for arguments in (
        {},
        {"row_filter": "id >= 4000 and word = 'word 3'"},
        {"row_filter": "inside.b is not null and id < 1500", "selected_fields": ("list", "id")},
        {"selected_fields": ("id", "_pos")},
        {"selected_fields": ("word",), "limit": 10},
    ):
        found, expected = (one.refresh().scan(**arguments).to_arrow() for one in (table, plain))  # type: ignore[arg-type]
        assert found.num_rows > 0
        assert found.equals(expected), arguments


class Refusing(KeyManagementClient):
    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        raise ZeroDivisionError("no wrapping")

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        raise ZeroDivisionError("no unwrapping")


def test_without_the_key_nothing_is_read_or_written(catalog: ice.Catalog) -> None:
    table = encrypted(catalog).append(ROWS)
    before = files(table)
    wrong = MemoryKeys({"keyA": b"another key 0123"})
    for keys, kind, says in [
        (None, IcefieldError, "encryption.kms-type"),
        (wrong, InvalidArgumentError, "'keyA'.*another key"),
        (MemoryKeys({}), InvalidArgumentError, "no key 'keyA'"),
        (Refusing(), ZeroDivisionError, "no unwrapping"),
    ]:
        other = again(table, keys)
        for work in (
            lambda other=other: other.scan().to_arrow(),
            lambda other=other: other.inspect.files(),
            lambda other=other: other.append(ROWS),
            lambda other=other: other.delete("id = 1"),
        ):
            with pytest.raises(kind, match=says):
                work()
    assert files(table) == before
    empty = encrypted(opened(Path(table.location()) / "more", Refusing()))
    with pytest.raises(ZeroDivisionError, match="no wrapping"):
        empty.append(ROWS)
    assert files(empty) == []
    lost = json.loads(table.metadata.to_json())
    lost["encryption-keys"] = lost["encryption-keys"][:1]
    where = f"{table.location()}/metadata/lost.metadata.json"
    table.storage.write(where, json.dumps(lost).encode())
    other = again(table, MemoryKeys(KEYS)).catalog
    assert other is not None
    with pytest.raises(CorruptDataError, match="it was lost"):
        other.register_table("db.lost", where).scan().to_arrow()


@pytest.mark.parametrize("wrapped", [lambda _: b"", lambda key: key, lambda key: b"v1:" + key])
def test_keys_that_a_service_does_not_encrypt_are_not_stored(
    catalog: ice.Catalog, wrapped: Callable[[bytes], bytes]
) -> None:
    class Careless(MemoryKeys):
        def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
            return wrapped(key)

    catalog.key_management = Careless(KEYS)
    table = encrypted(catalog)
    with pytest.raises(InvalidArgumentError, match=r"encryption.key-id=keyA: .* did not encrypt a key"):
        table.append(ROWS)
    assert files(table) == []


def test_every_operation_works_on_encrypted_tables(catalog: ice.Catalog) -> None:
    table = encrypted(catalog)
    table = table.append(ROWS)
    first = table.current_snapshot().snapshot_id
    table.update({"name": "new"}, "id < 10", mode="copy-on-write")
    table.refresh().delete("id = 20", mode="merge-on-read")
    table.refresh().delete("id = 21", mode="merge-on-read")
    table.refresh().upsert(pa.table({"id": [30, 999], "name": ["thirty", "more"]}), join_cols=["id"])
    table = table.refresh()
    with table.transaction() as transaction:
        transaction.append(ROWS.slice(0, 1))
        transaction.delete("id = 40")
    table = table.refresh()
    expected = {number: f"secret name {number:04}" for number in range(200) if number not in (20, 21, 40)}
    expected |= dict.fromkeys(range(10), "new") | {30: "thirty", 999: "more"}
    rows = sorted((row["id"], row["name"]) for row in table.scan().to_arrow().to_pylist())
    assert rows == sorted([*expected.items(), (0, "secret name 0000")])
    assert table.scan(snapshot_id=first).count() == 200
    assert table.scan(row_filter="id = 30").to_arrow()["name"].to_pylist() == ["thirty"]
    assert len(table.inspect.files()) > 1
    assert len(table.inspect.position_deletes()) >= 1
    table.rewrite_manifests()
    table = table.refresh()
    assert table.scan().count() == len(rows)
    table.expire_snapshots(older_than=table.current_snapshot().timestamp_ms + 1, retain_last=1)
    table = again(table.refresh(), MemoryKeys(KEYS))
    assert table.scan().count() == len(rows)
    assert all(path.read_bytes()[:4] in (b"PARE", b"AGS1") for path in files(table))


def test_a_table_is_encrypted_later_and_opened_again(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "3"}).append(ROWS)

    def plain_files(table: ice.Table) -> list[bool]:
        return [key is None for key in table.inspect.files().column("key_metadata").to_pylist()]

    table.update_properties({"encryption.key-id": "keyA"})
    table = table.refresh().append(ROWS)
    assert sorted(plain_files(table)) == [False, True]
    assert again(table, MemoryKeys(KEYS)).scan().count() == 400
    table.update({"name": "again"}, "id >= 0", mode="copy-on-write")
    table = table.refresh()
    assert set(plain_files(table)) == {False}
    # Another key of the service encrypts from now on; what the first one encrypted is still read.
    table.update_properties({"encryption.key-id": "keyB"})
    table = table.refresh().append(ROWS)
    by = {key["encrypted-by-id"] for key in json.loads(table.metadata.to_json())["encryption-keys"]}
    assert {"keyA", "keyB"} < by
    assert table.scan(snapshot_id=table.snapshots()[-2].snapshot_id).count() == 400
    table.update_properties(removals=["encryption.key-id"])
    table.refresh().overwrite(ROWS)
    table = table.refresh()
    assert plain_files(table) == [True]
    assert again(table, None).scan().count() == 200


def test_one_key_encrypts_the_keys_of_many_snapshots(catalog: ice.Catalog) -> None:
    calls = []

    class Counting(MemoryKeys):
        def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
            calls.append("wrap")
            return super().wrap_key(key, wrapping_key_id)

        def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
            calls.append("unwrap")
            return super().unwrap_key(wrapped_key, wrapping_key_id)

    keys = Counting(KEYS)
    catalog.key_management = keys
    table = encrypted(catalog)
    for _ in range(3):
        table = table.append(ROWS)
    assert calls == ["wrap"]
    again(table, keys).append(ROWS)
    assert calls == ["wrap", "unwrap"]
    assert len(json.loads(table.metadata.to_json())["encryption-keys"]) == 4


def worker(job: tuple[str, bytes, Storage]) -> bytes:
    """What an executor does, in a process that has no keys of tables."""
    kind, data, storage = job
    assert not storage.has_keys
    if kind == "read":
        return pa.table(ReadTask.from_bytes(data).rows(storage)).to_pandas().to_json().encode()
    if kind == "write":
        with TaskWriter(WritePlan.from_bytes(data), storage, ROWS.schema) as writer:
            writer.write(ROWS)
        return pickle.dumps(writer.written)
    with RowRemover(RowChangePlan.from_bytes(data), storage) as remover:
        remover.remove(pa.table({"_file": [kind], "_pos": pa.array([5], pa.int64())}))
    return pickle.dumps(remover.written)


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


def test_workers_get_the_keys_of_their_files_only(catalog: ice.Catalog, pool: ProcessPoolExecutor) -> None:
    table = encrypted(catalog)
    assert table.storage.has_keys
    storage = pickle.loads(pickle.dumps(table.storage))
    for key in KEYS.values():
        assert key not in pickle.dumps(table.storage)
    plan = table.new_write()
    written = pool.submit(worker, ("write", plan.to_bytes(), storage)).result()
    table.commit_files(plan, [pickle.loads(written)])
    table = table.refresh()
    # Spark's own readers have no keys.
    scan = table.scan()
    assert scan.plan_files().obstacles(scan.engine_read())["obstacle"].to_pylist() == ["encrypted"]
    change = table.new_row_change("delete", mode="merge-on-read")
    (task,) = change.tasks()
    found = pool.submit(worker, ("read", task.to_bytes(), storage)).result()
    assert b"secret name 0199" in found
    file = table.inspect.files().column("file_path").to_pylist()[0]
    removed = pool.submit(worker, (file, change.to_bytes(), storage)).result()
    table.commit_rows(change, [pickle.loads(removed)])
    assert table.refresh().scan().count() == 199
    key = table.inspect.files().column("key_metadata").to_pylist()[0]
    about = {"file_path": file, "file_format": "parquet", "record_count": 1, "file_size_in_bytes": 1}
    data_file = ice.DataFile(**about, key_metadata=key)
    assert data_file.key_metadata == key
    for shown in (repr(task), repr(data_file), str(table.storage), repr(table.catalog)):
        assert repr(key)[2:-1] not in shown


def test_the_command_line_shows_keys_and_plain_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys.json"
    KeyFile.create(file, "mine")
    where = [f"--uri=sqlite:///{tmp_path}/c.db", f"--warehouse={tmp_path}"]
    where += ["-p", "encryption.kms-type=file", "-p", f"encryption.kms.key-file={file}"]
    given = {"encryption.kms-type": "file", "encryption.kms.key-file": str(file)}
    catalog = ice.load_catalog(
        "default", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path), **given
    )
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "3"}).append(ROWS)
    plain = {path.name for path in files(table) if path.suffix != ".db" and path.name != "keys.json"}
    table.update_properties({"encryption.key-id": "mine"})
    # No file of the current snapshot is plain, but the older one is still there.
    table.refresh().overwrite(ROWS)
    monkeypatch.setenv("COLUMNS", "400")
    shown = CliRunner().invoke(icefield, [*where, "table", "keys", "db.t"])
    assert re.search(r"mine +.*\b1\b", shown.output), shown.output
    shown = CliRunner().invoke(icefield, [*where, "table", "keys", "db.t", "--plain"])
    assert {path.name for path in files(table.refresh()) if path.name in shown.output} == plain
    kinds = {line.split("│")[1].strip() for line in shown.output.splitlines() if "/db/t/" in line}
    assert kinds == {"data file", "manifest", "manifest list"}, shown.output


def test_a_sound_encrypted_table_has_no_findings(catalog: ice.Catalog) -> None:
    table = encrypted(catalog, **{"write.delete.mode": "merge-on-read"})
    table.append(ROWS)
    table.delete("id < 4")
    assert table.fsck("rows").findings == []
    assert "damage" not in {one.name for one in table.doctor()}


def marked(stored: bytes) -> list[str]:
    """What a file has that is not encrypted."""
    # Algorithm, hash and compression in the header of a Bloom filter.
    known = {"a Bloom filter": b"\x1c\x1c\0\0" * 3, "a value or bound": b"secret name", "a schema": b"iceberg.schema"}
    return [what for what, marker in known.items() if marker in stored]


def by_append(table: ice.Table) -> None:
    table.append(ROWS)


def by_compaction(table: ice.Table) -> None:
    table.append(ROWS).append(ROWS).maintenance.compact(options={"rewrite-all": True})


def by_upserts(table: ice.Table) -> None:
    table.append(ROWS).upsert(ROWS.slice(0, 5).set_column(1, "name", pa.array(["secret name new"] * 5)), ["id"])


def by_positions(table: ice.Table) -> None:
    table.append(ROWS).delete("id = 7", mode="merge-on-read")


def by_copies(table: ice.Table) -> None:
    table.append(ROWS).update({"name": "secret name x"}, "id < 9", mode="copy-on-write")


def by_manifests(table: ice.Table) -> None:
    table.append(ROWS).append(ROWS).rewrite_manifests()


@pytest.mark.parametrize("road", [by_append, by_compaction, by_upserts, by_positions, by_copies, by_manifests])
def test_no_road_writes_in_the_clear(catalog: ice.Catalog, road: Callable[[ice.Table], None]) -> None:
    blooms = {f"write.parquet.bloom-filter-enabled.column.{name}": "true" for name in ROWS.column_names}
    # Without encryption the same road leaves what the checks look for.
    plain = catalog.create_table("db.plain", ROWS.schema, properties={"format-version": "3", **blooms})
    road(plain)
    found = {what for path in files(plain) for what in marked(path.read_bytes())}
    assert found == {"a Bloom filter", "a value or bound", "a schema"}
    table = encrypted(catalog, **blooms)
    road(table)
    table = table.refresh()
    assert table.scan().count() > 0
    for path in files(table):
        stored = path.read_bytes()
        assert stored[:4] in (b"PARE", b"AGS1"), path
        assert marked(stored) == [], path


def test_no_commit_stores_a_key_in_the_clear(catalog: ice.Catalog) -> None:
    table = encrypted(catalog).append(ROWS)
    before = set(files(table))
    table.update_properties(removals=["encryption.key-id"])
    table = table.refresh()
    with pytest.raises(ValidationException, match=r"set encryption\.key-id again, or replace all files"):
        table.append(ROWS)
    assert set(files(table)) == before
    table.overwrite(ROWS)
    table = table.refresh()
    after = [path for path in files(table) if path not in before]
    for path in after:
        assert path.read_bytes()[:4] in (b"PAR1", b"Obj\x01"), path
    for path in after:
        if path.suffix == ".avro" and not path.name.startswith("snap-"):
            manifest = ice.manifests.read(path.read_bytes()).to_pylist()
            assert all(entry.get("data_file", entry)["key_metadata"] is None for entry in manifest)
    table.append(ROWS)
    assert again(table.refresh(), None).scan().count() == 400


def test_plain_files_and_manifests_are_not_given(catalog: ice.Catalog) -> None:
    plain = catalog.create_table("db.plain", ROWS.schema, properties={"format-version": "3"}).append(ROWS)
    file = next(iter(plain.scan().plan_files())).file
    with plain.new_manifest_writer() as writer:
        writer.add(file)
    given = writer.to_manifest_file()
    table = encrypted(catalog)
    with pytest.raises(ValidationException, match="this manifest is not encrypted"):
        table.update_snapshot().fast_append().append_manifest(given).commit()
    with (
        pytest.raises(ValidationException, match="is not encrypted, but the table is"),
        table.new_manifest_writer() as w,
    ):
        w.add(file)
    assert table.refresh().current_snapshot() is None


def test_an_empty_id_of_a_key_is_no_plain_table(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"format-version": "3", "x": "marker"})
    path = Path(table.metadata_location.removeprefix("file://"))
    path.write_text(path.read_text().replace('"x":"marker"', '"encryption.key-id":""'))
    table = catalog.load_table("db.t")
    with pytest.raises(InvalidArgumentError, match=r"encryption\.key-id: the id of the key is empty"):
        table.append(ROWS)


def test_a_table_from_another_process_has_the_keys_of_its_catalog(tmp_path: Path) -> None:
    KeyFile.create(str(tmp_path / "keys.json"), "keyA")
    named = {"encryption.kms-type": "file", "encryption.kms.key-file": str(tmp_path / "keys.json")}
    catalog = ice.load_catalog("k", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path), **named)
    catalog.create_namespace("db")
    table = encrypted(catalog).append(ROWS)
    sent = pickle.loads(pickle.dumps(table))
    assert sent.scan().count() == 200
    assert sent.append(ROWS).scan().count() == 400


def test_a_purge_without_keys_deletes_nothing(catalog: ice.Catalog) -> None:
    table = encrypted(catalog).append(ROWS)
    before = {path for path, _ in table.storage.list(table.location())}
    catalog.key_management = None
    with pytest.warns(RuntimeWarning, match=r"encryption\.kms-type"):
        catalog.drop_table("db.t", purge_requested=True)
    assert {path for path, _ in table.storage.list(table.location())} == before
    catalog.key_management = MemoryKeys(KEYS)
    catalog.register_table("db.t", table.metadata_location)
    catalog.drop_table("db.t", purge_requested=True)
    assert list(table.storage.list(table.location())) == []
