"""Encrypted tables that Java and we write in turn, each reading what the other wrote, and what both refuse."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

import icefield as ice
from icefield.encryption import MemoryKeys
from icefield.errors import CorruptDataError, InvalidArgumentError

pytestmark = pytest.mark.interop

KEYS = {"keyA": b"0123456789012345", "keyB": b"1123456789012345"}
#: What the services of Java's catalogs have.
CATALOGS = {"keyed": KEYS, "wrong": {"keyA": b"another key 0123"}, "lost": {"keyB": KEYS["keyB"]}}
#: The stored length of a block, after a head of 8 bytes.
BLOCK = (1 << 20) + 28


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory, java: Any) -> ice.Catalog:
    folder = tmp_path_factory.mktemp("keyed")
    classes = tmp_path_factory.mktemp("classes")
    java.do("compiled", source=str(Path(__file__).with_name("KeyedCatalog.java")), scratch=f"{classes}/")
    for name, keys in CATALOGS.items():
        own = {f"keys.{key}": text.decode() for key, text in keys.items()}
        impl = {"catalog-impl": "org.apache.iceberg.hadoop.KeyedCatalog", "warehouse": str(folder)}
        java.do("catalog", name=name, properties={**impl, **own})
    java.sql("CREATE NAMESPACE keyed.db")
    return opened(str(folder), KEYS)


def opened(folder: str, keys: dict[str, bytes]) -> ice.Catalog:
    catalog = ice.load_catalog("keyed", type="hadoop", warehouse=folder)
    catalog.key_management = MemoryKeys(keys)
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


#: A partition of this long name makes more than two blocks of its manifest list, manifest and file.
LONG = base64.b64encode(random.Random(1).randbytes(2_200_000)).decode()
DAMAGED_SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def bit(stored: bytes) -> bytes:
    # In the first block, or the first page: page indexes of Parquet are not read.
    return stored[:60] + bytes([stored[60] ^ 1]) + stored[61:]


def cut(stored: bytes) -> bytes:
    return stored[:-30]


def twice(stored: bytes) -> bytes:
    return stored[: 8 + BLOCK] + stored[8:]


def swapped_blocks(stored: bytes) -> bytes:
    return stored[:8] + stored[8 + BLOCK : 8 + 2 * BLOCK] + stored[8 : 8 + BLOCK] + stored[8 + 2 * BLOCK :]


def path_of(location: str) -> Path:
    return Path(location.removeprefix("file:").removeprefix("//"))


def kind_of(path: Path) -> str:
    if path.suffix == ".avro" and path.parent.name == "metadata":
        return "manifest list" if path.name.startswith("snap-") else "manifest"
    return path.suffix


def by_kind(paths: Iterable[Path]) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for path in sorted(paths):
        found.setdefault(kind_of(path), []).append(path)
    return found


def stored_by_kind(table: ice.Table) -> dict[str, list[Path]]:
    return by_kind(path_of(path) for path, _ in table.storage.list(table.location()))


def live_by_kind(table: ice.Table) -> dict[str, list[Path]]:
    """The files that a read of the table opens."""
    live = [table.current_snapshot().manifest_list, *table.inspect.files()["file_path"].to_pylist()]
    counts = [f"{how}_{what}_files_count" for how in ("added", "existing") for what in ("data", "delete")]
    # A manifest that only lists removed files is not read.
    live += [one["path"] for one in table.inspect.manifests().to_pylist() if any(one[count] for count in counts)]
    return by_kind(map(path_of, live))


@pytest.fixture(scope="module")
def plain(catalog: ice.Catalog) -> dict[str, list[Path]]:
    """Files of every kind that are not encrypted."""
    table = catalog.create_table("db.plain", DAMAGED_SCHEMA, properties={"format-version": "3"})
    for format in ("parquet", "avro"):
        table.update_properties({"write.format.default": format})
        table = table.refresh().append(pa.table({"id": [1, 2], "name": ["a", "b"]}, schema=DAMAGED_SCHEMA))
    table.delete("id = 1", mode="merge-on-read")
    return stored_by_kind(table.refresh())


class Attacked:
    """A table that Java or icefield writes, whose files are then changed."""

    def __init__(self, catalog: ice.Catalog, java: Any, writer: str, name: str, **arguments: Any) -> None:
        self.catalog, self.java, self.writer, self.name = catalog, java, writer, name
        properties = {"format-version": "3", "encryption.key-id": "keyA", "write.delete.mode": "merge-on-read"}
        own = {**properties, "commit.manifest-merge.enabled": "false", **arguments.pop("properties", {})}
        catalog.create_table(f"db.{name}", DAMAGED_SCHEMA, properties=own, **arguments)

    @property
    def table(self) -> ice.Table:
        return self.catalog.load_table(f"db.{self.name}")

    def append(self, format: str, ids: range, name: str) -> None:
        self.table.update_properties({"write.format.default": format})
        rows = pa.table({"id": ids, "name": [name] * len(ids)}, schema=DAMAGED_SCHEMA)
        if self.writer == "Java":
            self.java.insert(f"keyed.db.{self.name}", rows)
        else:
            self.table.append(rows)

    def delete(self, number: int) -> None:
        if self.writer == "Java":
            self.java.sql(f"DELETE FROM keyed.db.{self.name} WHERE id = {number}")
        else:
            self.table.delete(f"id = {number}", mode="merge-on-read")

    def read(self) -> int:
        return self.table.scan().to_arrow().num_rows

    def read_by_java(self) -> int:
        return self.java.rows(f"SELECT id, length(name) AS n FROM keyed.db.{self.name}").num_rows

    def check_refused(self, path: Path, damages: dict[str, bytes], *, by_java: bool) -> None:
        before = path.read_bytes()
        for what, changed in damages.items():
            path.write_bytes(changed)
            with pytest.raises(CorruptDataError, match=path.name):
                pytest.fail(f"{what} of {path}: {self.read()} rows")
            if by_java:
                with pytest.raises(RuntimeError):
                    pytest.fail(f"Java took {what} of {path}: {self.read_by_java()} rows")
        path.write_bytes(before)


@pytest.fixture(scope="module", params=["Java", "icefield"])
def attacked(request: pytest.FixtureRequest, catalog: ice.Catalog, java: Any) -> Attacked:
    """Two files of each kind at least that are read, and older ones that later commits replaced."""
    made = Attacked(catalog, java, request.param, f"by_{request.param}")
    for first, format in ((0, "parquet"), (20, "avro")):
        made.append(format, range(first, first + 18), "some name")
        made.table.append(pa.table({"id": [first + 18, first + 19], "name": ["a", "b"]}))
        made.delete(first + 5)
        made.delete(first + 6)
    return made


def test_both_refuse_files_that_were_changed(attacked: Attacked, plain: dict[str, list[Path]]) -> None:
    stored, live = stored_by_kind(attacked.table), live_by_kind(attacked.table)
    assert set(live) == {"manifest list", "manifest", ".parquet", ".avro", ".puffin"}
    assert attacked.read() == attacked.read_by_java() == 36
    for kind, paths in live.items():
        for path in paths:
            before = path.read_bytes()
            damages = {"a bit": bit(before), "cut": cut(before), "a plain file": plain[kind][0].read_bytes()}
            # Of older commits too: nothing can be turned back.
            others = [other for other in stored[kind] if other != path]
            assert others, kind
            attacked.check_refused(path, damages | {"another": others[0].read_bytes()}, by_java=path == paths[-1])
            attacked.check_refused(path, {other.name: other.read_bytes() for other in others[1:]}, by_java=False)
    assert attacked.read() == attacked.read_by_java() == 36


@pytest.mark.parametrize("writer", ["Java", "icefield"])
def test_both_refuse_blocks_in_other_places(writer: str, catalog: ice.Catalog, java: Any) -> None:
    attacked = Attacked(
        catalog,
        java,
        writer,
        f"long_by_{writer}",
        partition_by="name",
        properties={"write.object-storage.enabled": "true", "write.object-storage.partitioned-paths": "false"},
    )
    attacked.append("avro", range(1), LONG)
    for kind, (path,) in live_by_kind(attacked.table).items():
        before = path.read_bytes()
        assert len(before) > 8 + 2 * BLOCK, kind
        attacked.check_refused(path, {"swapped": swapped_blocks(before)}, by_java=True)
        # Java's reader of Avro takes the end of a file for the end of its rows.
        attacked.check_refused(path, {"cut": before[: 8 + 2 * BLOCK], "twice": twice(before)}, by_java=False)
    assert attacked.read() == attacked.read_by_java() == 1


def test_statistics_that_were_changed(attacked: Attacked, plain: dict[str, list[Path]]) -> None:
    """Java reads those of plain tables only."""
    for number in range(2):
        attacked.append("parquet", range(100 + number, 101 + number), "statistics")
        attacked.table.maintenance.compute_table_stats()
    table = attacked.table
    (*_, file) = json.loads(table.metadata.to_json())["statistics"]
    path = path_of(file["statistics-path"])
    before = path.read_bytes()
    others = [other for other in stored_by_kind(table)[".stats"] if other != path]
    assert others
    for changed in (bit(before), cut(before), plain[".puffin"][0].read_bytes(), *map(Path.read_bytes, others)):
        path.write_bytes(changed)
        (finding,) = table.fsck("rows").findings
        assert path.name in str(finding)
    path.write_bytes(before)
    assert table.fsck("rows").findings == []


def test_both_refuse_without_the_keys(attacked: Attacked, java: Any) -> None:
    name, rows = attacked.name, attacked.read()
    folder = attacked.catalog.properties["warehouse"]
    for catalog, says in (("wrong", "'keyA'.*another key"), ("lost", "no key 'keyA'")):
        table = opened(folder, CATALOGS[catalog]).load_table(f"db.{name}")
        for work in (lambda table=table: table.scan().to_arrow(), lambda table=table: table.delete("id = 1")):
            with pytest.raises(InvalidArgumentError, match=says):
                work()
        for statement in (f"SELECT * FROM {catalog}.db.{name}", f"DELETE FROM {catalog}.db.{name} WHERE id = 1"):
            with pytest.raises(RuntimeError):
                java.sql(statement)
    # The key of a manifest list is missing in the metadata, or is that of another list.
    table = attacked.table
    path = path_of(table.metadata_location)
    before = path.read_text()
    document = json.loads(before)
    *_, last = document["snapshots"]
    assert last["snapshot-id"] == document["current-snapshot-id"]
    without = [key for key in document["encryption-keys"] if key["key-id"] != last["key-id"]]
    moved = [*document["snapshots"][:-1], {**last, "key-id": document["snapshots"][0]["key-id"]}]
    for change in ({"encryption-keys": without}, {"snapshots": moved}):
        path.write_text(json.dumps({**document, **change}))
        with pytest.raises(CorruptDataError, match=path_of(last["manifest-list"]).name):
            attacked.read()
        with pytest.raises(RuntimeError):
            attacked.read_by_java()
    path.write_text(before)
    assert attacked.read() == attacked.read_by_java() == rows


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
