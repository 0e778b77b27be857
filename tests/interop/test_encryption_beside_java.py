"""Encrypted tables that Java and we write in turn, each reading what the other wrote, and what both refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

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


def test_both_refuse_files_that_were_changed(catalog: ice.Catalog, java: Any) -> None:
    properties = {"format-version": "3", "encryption.key-id": "keyA", "write.format.default": "parquet"}
    table = catalog.create_table("db.changed", rows(0, 1).schema, properties=properties).append(rows(0, 500))
    for path, _ in table.storage.list(table.location()):
        if not path.endswith((".avro", ".parquet")):
            continue
        file = Path(path.removeprefix("file://"))
        before = file.read_bytes()
        at = len(before) // 2
        file.write_bytes(before[:at] + bytes([before[at] ^ 1]) + before[at + 1 :])
        with pytest.raises(CorruptDataError, match=file.name):
            catalog.load_table("db.changed").scan().to_arrow()
        with pytest.raises(RuntimeError):
            java.rows("SELECT * FROM keyed.db.changed")
        file.write_bytes(before)
    assert java.rows("SELECT count(*) AS n FROM keyed.db.changed").to_pylist() == [{"n": 500}]
