"""Shredded variants in encrypted tables: encrypted like other columns, and files are left out by their paths."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from test_encryption import KEYS, again, damaged, files, opened
from test_shredded_variants import COLUMN, SCHEMA, SHRED, expected, found, rows

import icefield as ice
from icefield.encryption import MemoryKeys


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    return opened(tmp_path)


def made(catalog: ice.Catalog, **properties: str) -> ice.Table:
    own = {"format-version": "3", "encryption.key-id": "keyA", SHRED: "true", **properties}
    return catalog.create_table("db.t", SCHEMA, properties=own)


def bounds(table: ice.Table) -> list[Any]:
    """Give the lower bound of the variants of each file, which only shredded ones have."""
    return [dict(of or []).get(2) for of in table.refresh().inspect.data_files()["lower_bounds"].to_pylist()]


def none_is_plain(table: ice.Table, *secrets: bytes) -> None:
    for path in files(table):
        stored = path.read_bytes()
        assert stored[:4] == (b"PARE" if path.suffix == ".parquet" else b"AGS1"), path
        assert not any(secret in stored for secret in secrets), path


@pytest.mark.parametrize("length", ["16", "32"])
@pytest.mark.parametrize("shape", [None, "struct<a: long, b: string, o: struct<d: date>>"])
def test_shredded_variants_are_encrypted(catalog: ice.Catalog, length: str, shape: str | None) -> None:
    given = {"encryption.data-key-length": length} | ({COLUMN: shape} if shape else {})
    table = made(catalog, **given)
    for start in (0, 50):
        table.append(rows(range(start, start + 50)))
    other = again(table, MemoryKeys(KEYS))
    assert found(other) == expected(range(100))
    assert all(bounds(table))
    none_is_plain(table, b"b003", b"typed_value", b"even")
    for text, planned in [
        ("v:a::long < 49", 1),
        ("v:a::long = 200", 0),
        ("v:b::string = 'b003'", 1),
        ("v:o.d::date < DATE '2024-01-01'", 0),
        ("v:m::string = 'odd'", 2),
        ("v:missing::int = 5", 2),
    ]:
        assert len(list(other.scan(text).plan_files())) == planned, text
    kept = [number for number in range(60, 100) if number % 7 != 6 and number % 10 != 9]
    assert sorted(other.scan("v:a::long >= 60").to_arrow()["id"].to_pylist()) == kept
    path = other.scan("id = 3", selected_fields=("id", "v:b::string")).to_arrow().to_pylist()
    assert path == [{"id": 3, "v:b::string": "b003"}]


def test_rewrites_keep_variants_shredded_and_encrypted(catalog: ice.Catalog) -> None:
    table = made(catalog)
    for start in range(0, 100, 20):
        table.append(rows(range(start, start + 20)))
    table.delete("v:a::long = 3", mode="merge-on-read")
    table.update({"id": 1000}, where="v:b::string = 'b004'", mode="merge-on-read")
    with table.upsert_stream("id") as stream:
        stream.upsert(rows([5]))
    table.refresh().maintenance.convert_equality_deletes()
    table.refresh().maintenance.compact(options={"rewrite-all": True})
    table.refresh().overwrite(rows([7]), "v:a::long = 7")
    wanted = expected(range(100))
    del wanted[3]
    wanted[1000] = wanted.pop(4)
    other = again(table.refresh(), MemoryKeys(KEYS))
    assert found(other) == wanted
    assert all(bounds(table))
    assert other.fsck("rows").findings == []
    assert sorted(other.scan("v:a::long < 10").to_arrow()["id"].to_pylist()) == [0, 1, 2, 5, 7, 8, 1000]
    none_is_plain(table, b"b004", b"typed_value")


def test_changed_columns_of_paths_are_refused(catalog: ice.Catalog) -> None:
    table = made(catalog).append(rows(range(200)))
    (path,) = (one for one in files(table) if one.suffix == ".parquet")
    for place in (40, path.stat().st_size // 2):

        def change(stored: bytes, place: int = place) -> bytes:
            return stored[:place] + bytes([stored[place] ^ 1]) + stored[place + 1 :]

        def read() -> object:
            return again(table, MemoryKeys(KEYS)).scan("v:a::long > 7").to_arrow()

        assert path.name in damaged(path, change, read)
