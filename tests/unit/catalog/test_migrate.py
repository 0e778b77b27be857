"""Folders with data files in Hive's layout become tables; nothing is moved, and a refusal creates nothing."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import icefield as ice

MOMENTS = [datetime.fromisoformat("2024-05-01T10:00:00"), datetime.fromisoformat("2024-05-01T11:30:00.500000")]
LOGS = {
    "_delta_log/0.json": "Delta",
    ".hoodie/hoodie.properties": "Hudi",
    "metadata/v1.metadata.json": "Iceberg table.*register",
    "base_0000001/f": "transactional",
}


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    catalog = ice.load_catalog("files", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("n")
    return catalog


def put(path: Path, columns: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    (po if path.suffix == ".orc" else pq).write_table(pa.table(columns), path)
    return path


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rows(table: ice.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
    return sorted(found, key=str)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "hive table"
    put(root / "day=2024-05-01" / "region=eu" / "a.parquet", {"id": [1, 2], "s": ["a", None]})
    put(root / "day=2024-05-02" / "region=a%2Fb" / "b.orc", {"id": pa.array([3], pa.int32()), "x": [1.5]})
    put(root / "day=__HIVE_DEFAULT_PARTITION__" / "region=us" / "000000_0", {"id": [4]})
    for hidden in ("_SUCCESS", ".a.crc", "_temporary/0/part.parquet", "day=2024-05-01/.staging/x", "day=2024-05-01/_x"):
        (root / hidden).parent.mkdir(parents=True, exist_ok=True)
        (root / hidden).write_bytes(b"none of the table's")
    (root / "day=2024-05-01" / "region=eu" / "empty").touch()
    return root


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_folder_becomes_a_table(catalog: ice.Catalog, folder: Path, version: str) -> None:
    before = tree(folder)
    planned = catalog.migrate("n.t", folder, properties={"format-version": version}, dry_run=True)
    assert (planned.table, planned.partition_columns) == (None, ("day", "region"))
    assert (planned.files, planned.rows) == (3, 4)
    assert planned.bytes == sum(
        len(data) for name, data in before.items() if name.endswith(("a.parquet", "b.orc", "000000_0"))
    )
    assert not catalog.table_exists("n.t")
    assert tree(folder) == before
    done = catalog.migrate("n.t", str(folder), properties={"format-version": version}, snapshot_properties={"a": "b"})
    table = catalog.load_table("n.t")
    assert done.table is not None
    assert done.table.metadata_location == table.metadata_location
    assert (done.files, done.rows, done.bytes) == (planned.files, planned.rows, planned.bytes)
    assert [(f.name, str(f.field_type), f.required) for f in table.schema().fields] == [
        ("id", "long", False),
        ("s", "string", False),
        ("x", "double", False),
        ("day", "date", False),
        ("region", "string", False),
    ]
    assert str(done.schema) == str(table.schema())
    assert rows(table) == sorted(
        [
            {"id": 1, "s": "a", "x": None, "day": date(2024, 5, 1), "region": "eu"},
            {"id": 2, "s": None, "x": None, "day": date(2024, 5, 1), "region": "eu"},
            {"id": 3, "s": None, "x": 1.5, "day": date(2024, 5, 2), "region": "a/b"},
            {"id": 4, "s": None, "x": None, "day": None, "region": "us"},
        ],
        key=str,
    )
    assert table.scan("day is null").plan_files().to_arrow().num_rows == 1
    assert table.scan("region = 'a/b'").count() == 1
    assert {name: data for name, data in tree(folder).items() if not name.startswith("metadata")} == before
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.summary["operation"], snapshot.summary["a"], snapshot.summary["added-data-files"]) == (
        "append",
        "b",
        "3",
    )
    assert len(table.snapshots()) == 1
    assert len(table.metadata.metadata_log) == 0
    assert table.properties["migrated"] == "true"
    assert '"names"' in table.properties["schema.name-mapping.default"]
    assert table.location() == "file://" + str(folder)
    # It is a table as any other.
    table.append(pa.table({"id": [5], "day": [date(2024, 5, 1)], "region": ["eu"]}))
    table.delete("id = 1")
    assert sorted(row["id"] for row in rows(table)) == [2, 3, 4, 5]


def test_another_location_leaves_the_files_to_their_owner(catalog: ice.Catalog, folder: Path, tmp_path: Path) -> None:
    before = tree(folder)
    table = catalog.migrate("n.t", folder, location=str(tmp_path / "other")).table
    assert table is not None
    assert (table.properties["gc.enabled"], table.properties["snapshot"]) == ("false", "true")
    assert tree(folder) == before
    table.delete("id < 3")
    catalog.drop_table("n.t", purge_requested=True)
    assert tree(folder) == before


@pytest.mark.parametrize(
    ("values", "given", "ty", "expected"),
    [
        (["1", "02"], None, "int", [1, 2]),
        (["1", "3000000000"], None, "long", [1, 3000000000]),
        (["1", "92233720368547758070"], None, "decimal(38, 0)", [Decimal(1), Decimal(92233720368547758070)]),
        (["1", "1.5"], None, "double", [1.0, 1.5]),
        (["2024-05-01", "2024-12-31"], None, "date", [date(2024, 5, 1), date(2024, 12, 31)]),
        (["2024-05-01 10%3A00%3A00", "2024-05-01 11:30:00.5"], None, "timestamp", MOMENTS),
        (["1", "x"], None, "string", ["1", "x"]),
        (["null", "1"], None, "string", ["1", "null"]),
        (["true", "false"], None, "string", ["false", "true"]),
        (["true", "false"], "boolean", "boolean", [False, True]),
        (["02", "1"], "string", "string", ["02", "1"]),
        (["1", "2"], "long", "long", [1, 2]),
        (["__HIVE_DEFAULT_PARTITION__"], None, "string", [None]),
        (["__HIVE_DEFAULT_PARTITION__", "7"], None, "int", [7, None]),
        (["__HIVE_DEFAULT_PARTITION__"], "int", "int", [None]),
    ],
)  # fmt: skip
def test_types_of_partition_columns(
    catalog: ice.Catalog, tmp_path: Path, values: list[str], given: str | None, ty: str, expected: list[Any]
) -> None:
    for number, value in enumerate(values):
        put(tmp_path / "t" / f"p={value}" / "f.parquet", {"id": [number]})
    table = catalog.migrate("n.t", tmp_path / "t", partitioning={"p": given} if given else None).table
    assert table is not None
    assert str(table.schema().find_field("p").field_type) == ty
    found = [row["p"] for row in rows(table)]
    assert sorted(map(str, found)) == sorted(map(str, expected))
    for value in expected:
        literal = repr(value) if isinstance(value, str) else f"'{value}'" if isinstance(value, date) else str(value)
        assert table.scan("p is null" if value is None else f"p = {literal}").count() == 1


def test_partition_columns_that_files_have_too(catalog: ice.Catalog, tmp_path: Path) -> None:
    put(tmp_path / "t" / "p=1" / "f.parquet", {"p": pa.array([1, 1], pa.int64()), "id": [1, 2]})
    table = catalog.migrate("n.t", tmp_path / "t").table
    assert table is not None
    assert [(f.name, str(f.field_type)) for f in table.schema().fields] == [("p", "long"), ("id", "long")]
    put(tmp_path / "u" / "p=1" / "f.parquet", {"p": [2], "id": [1]})
    with pytest.raises(ice.InvalidArgumentError, match="said to be 1, and its rows have 2"):
        catalog.migrate("n.u", tmp_path / "u")
    assert not catalog.table_exists("n.u")


def test_names_of_folders_are_unescaped_and_plain_folders_are_no_partitions(
    catalog: ice.Catalog, tmp_path: Path
) -> None:
    put(tmp_path / "x=9" / "t" / "my%20day=1" / "HIVE_UNION_SUBDIR_1" / "f.parquet", {"id": [1]})
    put(tmp_path / "x=9" / "t" / "my%20day=2" / "_k=3" / "f.parquet", {"id": [2]})
    with pytest.raises(ice.InvalidArgumentError, match="differ: .* has my day, and .* has my day, _k"):
        catalog.migrate("n.t", tmp_path / "x=9" / "t")
    (tmp_path / "x=9" / "t" / "my%20day=2" / "_k=3" / "f.parquet").unlink()
    table = catalog.migrate("n.t", tmp_path / "x=9" / "t").table
    assert table is not None
    assert rows(table) == [{"id": 1, "my day": 1}]


def test_without_partitions_and_nested_columns(catalog: ice.Catalog, tmp_path: Path) -> None:
    put(
        tmp_path / "t" / "a.parquet",
        {"s": [{"a": 1}], "l": [[1]], "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int32()))},
    )
    other = {
        "s": [{"b": "x"}],
        "l": pa.array([[2, None]], pa.list_(pa.int32())),
        "m": pa.array([[("k", 2)]], pa.map_(pa.string(), pa.int64())),
    }
    put(tmp_path / "t" / "b.parquet", other)
    table = catalog.migrate("n.t", tmp_path / "t").table
    assert table is not None
    assert table.spec().is_unpartitioned()
    assert rows(table) == [
        {"s": {"a": 1, "b": None}, "l": [1], "m": [("k", 1)]},
        {"s": {"a": None, "b": "x"}, "l": [2, None], "m": [("k", 2)]},
    ]


def refused(catalog: ice.Catalog, folder: Path, error: type[Exception], match: str, **options: Any) -> None:
    before = tree(folder) if folder.is_dir() else {}
    for dry_run in (True, False):
        with pytest.raises(error, match=match):
            catalog.migrate("n.t", folder, dry_run=dry_run, **options)
        assert not catalog.table_exists("n.t")
        assert (tree(folder) if folder.is_dir() else {}) == before


def test_refusals(catalog: ice.Catalog, tmp_path: Path, folder: Path) -> None:
    invalid = ice.InvalidArgumentError
    refused(catalog, tmp_path / "nothing", invalid, "no data files")
    refused(catalog, folder, invalid, "expected a file in the format parquet, got orc", format="parquet")
    refused(catalog, folder, invalid, "expected 'parquet', 'orc' or 'avro', got .csv", format="csv")
    refused(
        catalog,
        folder,
        invalid,
        "no folders month=.*: the partition columns are day, region",
        partitioning={"month": "int"},
    )
    refused(catalog, folder, invalid, "in a partition path is not a valid int", partitioning={"region": "int"})
    refused(catalog, folder, invalid, "cannot be a struct", partitioning={"region": {"type": "struct", "fields": []}})
    refused(catalog, folder, invalid, "format-version", properties={"format-version": "x"})
    (folder / "day=2024-05-01" / "region=eu" / "notes.csv").write_text("a,b")
    refused(catalog, folder, ice.CorruptDataError, "notes.csv.*no Parquet, ORC or Avro file")
    for name, what in LOGS.items():
        other = tmp_path / what[:4]
        put(other / "a.parquet", {"id": [1]})
        (other / name).parent.mkdir()
        (other / name).write_bytes(b"{}")
        refused(catalog, other, ice.UnsupportedFeatureError, what)
    put(tmp_path / "types" / "a.parquet", {"id": [1]})
    put(tmp_path / "types" / "b.parquet", {"id": ["x"]})
    refused(catalog, tmp_path / "types", invalid, "b.parquet: its columns do not fit")
    put(tmp_path / "twice" / "p=1" / "p=2" / "a.parquet", {"id": [1]})
    refused(catalog, tmp_path / "twice", invalid, "column p occurs twice")
    put(tmp_path / "nested" / "p=1" / "a.parquet", {"p": [{"a": 1}]})
    refused(catalog, tmp_path / "nested", invalid, "partition column p is stored in the files as struct")
    put(tmp_path / "ns" / "a.parquet", {"at": pa.array([1], pa.timestamp("ns"))})
    refused(catalog, tmp_path / "ns", invalid, 'at.*use format version 3.*properties={"format-version": "3"}')
    catalog.create_table("n.t", pa.schema([("id", pa.int64())]))
    with pytest.raises(ice.TableAlreadyExistsError):
        catalog.migrate("n.t", folder)
    with pytest.raises(ice.NoSuchNamespaceError):
        catalog.migrate("m.t", folder)


def test_nanoseconds_need_version_3(catalog: ice.Catalog, tmp_path: Path) -> None:
    put(tmp_path / "ns" / "a.parquet", {"at": pa.array([1], pa.timestamp("ns"))})
    table = catalog.migrate("n.t", tmp_path / "ns", properties={"format-version": "3"}).table
    assert table is not None
    assert table.scan().to_arrow()["at"].cast(pa.int64()).to_pylist() == [1]


def test_a_migration_that_was_killed_is_made_again(catalog: ice.Catalog, tmp_path: Path) -> None:
    folder = put(tmp_path / "plain" / "a.parquet", {"id": [1, 2]}).parent
    table = catalog.migrate("n.t", folder).table
    assert table is not None
    (metadata,) = (folder / "metadata").glob("*.metadata.json")
    catalog.drop_table("n.t")
    # It had come to its metadata file, which is the table's.
    with pytest.raises(ice.UnsupportedFeatureError, match="register its metadata file"):
        catalog.migrate("n.t", folder)
    assert rows(catalog.register_table("n.registered", str(metadata))) == [{"id": 1}, {"id": 2}]
    catalog.drop_table("n.registered")
    # It had not: manifests are no data files.
    metadata.unlink()
    assert len(list((folder / "metadata").glob("*.avro"))) == 2
    table = catalog.migrate("n.t", folder).table
    assert table is not None
    assert rows(table) == [{"id": 1}, {"id": 2}]
