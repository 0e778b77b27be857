"""Encrypted tables that Java and we write in turn, each reading what the other wrote, and what both refuse."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import icefield as ice
from icefield.encryption import MemoryKeys
from icefield.errors import CorruptDataError

pytestmark = pytest.mark.interop

KEYS = {"keyA": b"0123456789012345", "keyB": b"1123456789012345"}


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory, java: Any) -> ice.Catalog:
    folder = tmp_path_factory.mktemp("keyed")
    classes = tmp_path_factory.mktemp("classes")
    source = Path(__file__).with_name("KeyedCatalog.java")
    java.do("keyed_catalog", name="keyed", source=str(source), scratch=f"{classes}/", warehouse=str(folder))
    catalog = ice.load_catalog("keyed", type="hadoop", warehouse=str(folder))
    catalog.key_management = MemoryKeys(KEYS)
    java.sql("CREATE NAMESPACE keyed.db")
    return catalog


def rows(start: int, count: int) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(start, start + count), pa.int64()),
            "name": [f"name {number}" for number in range(start, start + count)],
            "part": pa.array([number % 3 for number in range(start, start + count)], pa.int32()),
        }
    )


def sorted_rows(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: row["id"])


@pytest.mark.parametrize(("format", "length"), [("parquet", 16), ("avro", 32)])
def test_tables_are_written_in_turn(catalog: ice.Catalog, java: Any, format: str, length: int) -> None:
    name = f"{format}{length}"
    java.sql(
        f"CREATE TABLE keyed.db.{name} (id BIGINT, name STRING, part INT) USING iceberg PARTITIONED BY (part) "
        f"TBLPROPERTIES ('format-version'='3', 'encryption.key-id'='keyA', 'encryption.data-key-length'='{length}', "
        f"'write.format.default'='{format}', 'write.delete.mode'='merge-on-read', "
        "'write.parquet.dict-size-bytes'='1000', 'write.parquet.row-group-size-bytes'='20000')"
    )
    java.insert(f"keyed.db.{name}", rows(0, 3000))
    expected = {row["id"]: row for row in rows(0, 3000).to_pylist()}
    table = catalog.load_table(f"db.{name}")
    assert sorted_rows(table.scan().to_arrow()) == list(expected.values())
    assert table.scan(row_filter="id = 700 and name = 'name 700'").count() == 1

    table.append(rows(3000, 2000))
    expected |= {row["id"]: row for row in rows(3000, 2000).to_pylist()}
    assert sorted_rows(java.rows(f"SELECT * FROM keyed.db.{name}")) == list(expected.values())
    assert java.rows(f"SELECT id FROM keyed.db.{name} WHERE name = 'name 4321'").to_pylist() == [{"id": 4321}]

    # Deletion vectors of both, in one data file.
    java.sql(f"DELETE FROM keyed.db.{name} WHERE id IN (5, 3005)")
    catalog.load_table(f"db.{name}").delete("id in (8, 3008)", mode="merge-on-read")
    java.sql(f"DELETE FROM keyed.db.{name} WHERE id IN (11, 3011)")
    for gone in (5, 3005, 8, 3008, 11, 3011):
        del expected[gone]
    table = catalog.load_table(f"db.{name}")
    assert sorted_rows(table.scan().to_arrow()) == list(expected.values())
    assert sorted_rows(java.rows(f"SELECT * FROM keyed.db.{name}")) == list(expected.values())

    # Keys are found again by a new process of either, and files name their stored lengths.
    for path, _ in table.storage.list(table.location()):
        head = Path(path.removeprefix("file://")).read_bytes()[:4]
        if path.endswith((".avro", ".puffin", ".parquet")):
            assert head == (b"PARE" if path.endswith(".parquet") else b"AGS1"), path
    listed = table.inspect.files()
    stored = dict(table.storage.list(table.location()))
    for file, size in zip(listed["file_path"].to_pylist(), listed["file_size_in_bytes"].to_pylist(), strict=True):
        assert stored[file.removeprefix("file:")] == size

    # Metadata operations of each on manifests of the other.
    java.sql(f"CALL keyed.system.rewrite_manifests('db.{name}')")
    table = catalog.load_table(f"db.{name}")
    assert table.scan().count() == len(expected)
    table.rewrite_manifests()
    assert sorted_rows(java.rows(f"SELECT * FROM keyed.db.{name}")) == list(expected.values())
    java.sql(f"CALL keyed.system.rewrite_data_files(table => 'db.{name}', options => map('rewrite-all', 'true'))")
    assert sorted_rows(catalog.load_table(f"db.{name}").scan().to_arrow()) == list(expected.values())


def bit(stored: bytes, _: bytes) -> bytes:
    # In the first block, or the first page: page indexes of Parquet are not read.
    return stored[:60] + bytes([stored[60] ^ 1]) + stored[61:]


def cut(stored: bytes, _: bytes) -> bytes:
    return stored[:-30]


def other(_: bytes, another: bytes) -> bytes:
    return another


def test_both_refuse_files_that_were_changed(catalog: ice.Catalog, java: Any) -> None:
    properties = {"format-version": "3", "encryption.key-id": "keyA", "write.format.default": "parquet"}
    table = catalog.create_table("db.changed", rows(0, 1).schema, properties=properties).append(rows(0, 500))
    table.delete("id = 5", mode="merge-on-read")
    # A manifest list, manifest and vector that were right once, and files of the same kind that are right elsewhere.
    table.refresh().delete("id = 6", mode="merge-on-read")
    table = table.refresh().append(rows(500, 10))
    found = [Path(path.removeprefix("file://")) for path, _ in table.storage.list(table.location())]
    named = [table.current_snapshot().manifest_list, *table.inspect.files()["file_path"].to_pylist()]
    named += [
        manifest["path"]
        for manifest in table.inspect.manifests().to_pylist()
        if manifest["added_data_files_count"] + manifest["added_delete_files_count"]
    ]

    def kind(path: Path) -> tuple[str, bool]:
        return path.suffix, path.name.startswith("snap-")

    tried = set()
    for file in (Path(path.removeprefix("file:").removeprefix("//")) for path in named):
        before = file.read_bytes()
        another = next(path for path in found if kind(path) == kind(file) and path != file).read_bytes()
        for change in (bit, cut, other):
            file.write_bytes(change(before, another))
            with pytest.raises(CorruptDataError, match=file.name):
                catalog.load_table("db.changed").scan().to_arrow()
            if kind(file) not in tried:
                with pytest.raises(RuntimeError):
                    java.rows("SELECT * FROM keyed.db.changed")
        file.write_bytes(before)
        tried.add(kind(file))
    assert tried == {(".avro", True), (".avro", False), (".parquet", False), (".puffin", False)}
    assert java.rows("SELECT count(*) AS n FROM keyed.db.changed").to_pylist() == [{"n": 508}]


def test_keys_that_encrypt_are_replaced_after_two_years(catalog: ice.Catalog, java: Any) -> None:
    properties = {"format-version": "3", "encryption.key-id": "keyA"}
    table = catalog.create_table("db.aged", rows(0, 1).schema, properties=properties).append(rows(0, 10))
    path = Path(table.metadata_location.removeprefix("file:").removeprefix("//"))
    document = json.loads(path.read_text())
    old, sealed = sorted(document["encryption-keys"], key=lambda key: key["encrypted-by-id"] != "keyA")
    # As if the key had been made three years ago: it is bound to that time, and so are the keys that it encrypts.
    made = str(int(old["properties"]["KEY_TIMESTAMP"]) - 3 * 365 * 24 * 3600 * 1000)
    wrapped, text = (base64.b64decode(key["encrypted-key-metadata"]) for key in (old, sealed))
    key = AESGCM(AESGCM(KEYS["keyA"]).decrypt(wrapped[:12], wrapped[12:], None))
    plain = key.decrypt(text[:12], text[12:], old["properties"]["KEY_TIMESTAMP"].encode())
    again = bytes(12) + key.encrypt(bytes(12), plain, made.encode())
    old["properties"]["KEY_TIMESTAMP"] = made
    sealed["encrypted-key-metadata"] = base64.b64encode(again).decode()
    path.write_text(json.dumps(document))

    def used() -> list[str]:
        """The keys that encrypt, in the order of the snapshots."""
        document = json.loads(catalog.load_table("db.aged").metadata.to_json())
        keys = {key["key-id"]: key["encrypted-by-id"] for key in document["encryption-keys"]}
        return [keys[snapshot["key-id"]] for snapshot in document["snapshots"]]

    assert java.rows("SELECT count(*) AS n FROM keyed.db.aged").to_pylist() == [{"n": 10}]
    java.insert("keyed.db.aged", rows(10, 5))
    catalog.load_table("db.aged").append(rows(15, 5))
    java.insert("keyed.db.aged", rows(20, 5))
    first, *others = used()
    assert first == old["key-id"]
    assert first not in others
    assert len(set(others)) == 1
    assert catalog.load_table("db.aged").scan().count() == 25
    assert java.rows("SELECT count(*) AS n FROM keyed.db.aged").to_pylist() == [{"n": 25}]
