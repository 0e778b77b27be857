"""Metadata columns: by name in selections and filters, in all formats, beside deletes, splits and columns of users."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from worlds.golden import open_table

PLACE = ("_file", "_pos")
ALL = (*PLACE, "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number")
FORMATS = ["parquet", "orc", "avro"]


@pytest.fixture
def catalog(tmp_path: Path) -> Any:
    catalog = ice.load_catalog("m", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    return catalog


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("metadata-columns")


def numbers(count: int, start: int = 0) -> pa.Table:
    kind = pa.int64()
    return pa.table(
        {"id": pa.array(range(start, start + count), kind), "p": pa.array([i % 3 for i in range(count)], kind)}
    )


def read(table: ice.Table, *columns: str, where: str | None = None, **options: Any) -> list[dict[str, Any]]:
    return table.scan(where, selected_fields=columns, **options).to_arrow().to_pylist()


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_rows_know_where_they_lie(catalog: Any, kind: str, version: str) -> None:
    properties = {"format-version": version, "write.format.default": kind}
    table = catalog.create_table("n.t", numbers(0).schema, properties=properties)
    table.append(numbers(10))
    table.append(numbers(5, 10))
    files = [file["file_path"] for file in table.scan().plan_files().files]
    found = sorted(read(table, "id", *ALL), key=lambda row: row["id"])
    assert len(files) == 2
    assert {row["_file"] for row in found[:10]} | {row["_file"] for row in found[10:]} == set(files)
    assert [row["_pos"] for row in found] == [*range(10), *range(5)]
    assert {row["_spec_id"] for row in found} == {0}
    # A table that was never partitioned has no partition, as in the library.
    assert {row["_partition"] for row in found} == {None}
    lineage = [(row["_row_id"], row["_last_updated_sequence_number"]) for row in found]
    assert lineage == ([(i, 1 if i < 10 else 2) for i in range(15)] if version == "3" else [(None, None)] * 15)


@pytest.mark.parametrize("kind", FORMATS)
def test_filters_leave_positions_as_they_are(catalog: Any, kind: str) -> None:
    table = catalog.create_table(
        "n.t", numbers(0).schema, properties={"format-version": "3", "write.format.default": kind}
    )
    table.append(numbers(1000))
    everything = read(table, "id", *ALL)
    file = everything[0]["_file"]
    for where, test in [
        ("id > 500", lambda row: row["id"] > 500),
        ("_pos < 10", lambda row: row["_pos"] < 10),
        ("_pos < 10 OR id = 77", lambda row: row["_pos"] < 10 or row["id"] == 77),
        ("_row_id IN (3, 999, 5000)", lambda row: row["_row_id"] in (3, 999)),
        ("NOT _pos < 990 AND p = 1", lambda row: row["_pos"] >= 990 and row["id"] % 3 == 1),
        (f"_file = '{file}' AND id = 4", lambda row: row["id"] == 4),
        ("_file = 'elsewhere'", lambda _: False),
        ("_file != 'elsewhere' AND _spec_id = 0", lambda _: True),
        ("_spec_id = 1 OR _last_updated_sequence_number > 1", lambda _: False),
        ("_deleted = true", lambda _: False),
        ("_deleted = false AND _pos = 5", lambda row: row["_pos"] == 5),
        ("_partition IS NULL AND _row_id IS NOT NULL AND _pos = 5", lambda row: row["_pos"] == 5),
    ]:
        wanted = [row for row in everything if test(row)]
        assert read(table, "id", *ALL, where=where) == wanted, where
        assert read(table, "id", where=where) == [{"id": row["id"]} for row in wanted], where
        assert table.scan(where).count() == len(wanted), where
        assert read(table, *PLACE, where=where, limit=3) == [
            {name: row[name] for name in PLACE} for row in wanted[:3]
        ], where


def test_files_are_pruned_by_what_all_their_rows_share(catalog: Any) -> None:
    table = catalog.create_table("n.t", numbers(0).schema, partition_by=["p"])
    table.append(numbers(9))
    with table.update_spec() as update:
        update.add_field("id", "bucket[2]", "b")
    table.append(numbers(9))
    files = table.scan().plan_files().files

    def planned(where: str) -> int:
        return len(table.scan(where).plan_files().files)

    assert planned(f"_file = '{files[0]['file_path']}'") == 1
    assert planned("_spec_id = 0") == 3
    assert planned("_partition.p = 1 AND _spec_id = 0") == 1
    assert planned("_partition.b IS NULL") == 3
    assert planned("_partition.b = 0 OR _partition.p = 2") == len(
        [file for file in files if file["partition"]["b"] == 0 or file["partition"]["p"] == 2]
    )
    assert planned("_pos > 100") == len(files)

    def manifests(where: str) -> tuple[int, int]:
        report = table.scan(where).plan_files().report
        return report["scanned_data_manifests"], report["total_data_manifests"]

    # Each append has a manifest of its own: the first one of the old spec.
    assert manifests("_partition.p IS NOT NULL") == (2, 2)
    assert manifests("_partition.b IS NULL") == (1, 2)
    assert manifests("_partition.b = 0 AND _partition.p = 1") == (1, 2)
    assert manifests("_partition.p > 2 OR _partition.p < 0") == (0, 2)
    assert manifests("_partition.p > 2 OR id = 1") == (2, 2)
    found = read(table, "p", "_partition.b", "_spec_id", where="_partition.b IS NULL")
    assert found == [{"p": row["p"], "_partition": {"b": None}, "_spec_id": 0} for row in found]
    assert len(found) == 9


def test_selections_have_their_order_and_errors(catalog: Any) -> None:
    table = catalog.create_table("n.t", numbers(0).schema, partition_by=["p"])
    table.append(numbers(3))

    def names(*columns: str, **options: Any) -> list[str]:
        return table.scan(selected_fields=columns, **options).to_arrow().column_names

    assert names("*") == ["id", "p"]
    assert names("*", "_pos") == ["id", "p", "_pos"]
    assert names("_pos", "*") == ["_pos", "id", "p"]
    assert names("p", "_partition", "id", "_pos") == ["p", "_partition", "id", "_pos"]
    assert names("_POS", "_Partition.P", "ID", case_sensitive=False) == ["_pos", "_partition", "id"]
    for wrong in ("_Pos", "_partition.nope", "_change_type", "_pos.x", "pos", "file_path"):
        with pytest.raises(ice.IcefieldError, match="no column"):
            names(wrong)
        with pytest.raises(ice.IcefieldError, match="no column"):
            table.scan(ice.expressions.IsNull(wrong))
    with pytest.raises(ice.IcefieldError, match="_pos"):
        table.scan("_pos = 'x'")


def test_columns_of_users_go_first(catalog: Any) -> None:
    own = pa.table(
        {"_file": ["a", "b"], "_pos": [7, 8], "pos": [1, 2], "_partition": [{"x": 1}, {"x": 2}], "row": [5, 6]}
    )
    table = catalog.create_table("n.t", own.schema)
    table.append(own)
    assert table.scan().to_arrow().to_pylist() == own.to_pylist()
    assert read(table, "_pos", where="_file = 'b'") == [{"_pos": 8}]
    assert read(table, "_partition.x", "_spec_id", where="_pos = 7") == [{"_partition": {"x": 1}, "_spec_id": 0}]
    assert read(table, "row", where="_deleted = true") == []


def test_ids_of_columns_and_of_partition_fields_may_be_the_same(catalog: Any) -> None:
    wide = pa.table({f"c{i}": pa.array([i, i + 1], pa.int64()) for i in range(1, 1011)})
    table = catalog.create_table("n.t", wide.schema, partition_by=["c1", "bucket(4, c1001)"])
    table.append(wide)
    columns = ("c1000", "c1001", "_partition", "c1")
    found = read(table, *columns)
    by_key = {row["c1"]: row for row in found}
    assert {key: row["c1000"] for key, row in by_key.items()} == {1: 1000, 2: 1001}
    assert {key: row["_partition"]["c1"] for key, row in by_key.items()} == {1: 1, 2: 2}
    assert read(table, "c1001", where="_partition.c1 = 2 AND c1000 = 1001") == [{"c1001": 1002}]
    assert read(table, "c1001", where="_partition.c1 = 1 AND c1000 = 1001") == []
    scan = table.scan(selected_fields=columns)
    rows = [
        row
        for task in pickle.loads(pickle.dumps(scan.tasks()))
        for row in pa.table(task.rows(scan.storage)).to_pylist()
    ]
    assert sorted(rows, key=repr) == sorted(found, key=repr)


@pytest.mark.parametrize("name", ["del_mixed", "del_eq_basic", "dv_basic", "dv_equality", "big_v2", "del_pos_formats"])
def test_deleted_rows_are_marked_where_that_is_asked_for(name: str, folder: Path) -> None:
    table = open_table(name, folder)
    live, marked = read(table, *PLACE), read(table, *PLACE, "_deleted")
    assert len(marked) == sum(file["record_count"] for file in table.scan().plan_files().files) > len(live)
    assert len({tuple(row.values()) for row in live}) == len(live)
    assert [{key: row[key] for key in PLACE} for row in marked if not row["_deleted"]] == live
    for where, count in [("_deleted = true", len(marked) - len(live)), ("_deleted = false", len(live))]:
        assert table.scan(where).count() == count
        assert len(read(table, *PLACE, where=where)) == count
    scan = table.scan(selected_fields=("_deleted",))
    assert scan.count() == scan.to_arrow().num_rows == len(marked)
    half = [row for row in live if row["_pos"] % 2]
    positions = ", ".join(str(row["_pos"]) for row in half)
    assert [row for row in read(table, *PLACE, where=f"_pos IN ({positions})") if row in half] == half


@pytest.mark.parametrize("name", ["v3_lineage_mor", "v3_lineage_upgraded", "part_evo_v2", "v2_rowgroups", "big_v3"])
def test_tasks_of_other_machines_have_the_same_columns(name: str, folder: Path) -> None:
    table = open_table(name, folder)
    for where in (None, "_pos > 3", "_row_id > 20 OR _row_id IS NULL"):
        scan = table.scan(where, selected_fields=("_pos", "_deleted", *ALL))
        wanted = sorted(map(repr, scan.to_arrow().to_pylist()))
        for split_size in (300, 1 << 30):
            tasks = pickle.loads(pickle.dumps(scan.tasks(split_size=split_size, open_file_cost=1)))
            rows = [row for task in tasks for row in pa.table(task.rows(scan.storage)).to_pylist()]
            assert sorted(map(repr, rows)) == wanted


def test_changelogs_have_them_too(catalog: Any) -> None:
    table = catalog.create_table("n.t", numbers(0).schema, properties={"format-version": "3"})
    table.append(numbers(4))
    table.append(numbers(2, 4))
    scan = table.incremental_changelog_scan(row_filter="_change_ordinal = 1 AND _pos = 1")
    assert scan.select("_pos", "_change_type", "id", "_row_id").to_arrow().to_pylist() == [
        {"_pos": 1, "_change_type": "INSERT", "id": 5, "_row_id": 5}
    ]
    assert table.incremental_changelog_scan(row_filter="_change_type = 'DELETE'").to_arrow().num_rows == 0
    added = table.incremental_append_scan(from_snapshot_id_exclusive=table.snapshots()[0].snapshot_id)
    assert added.select("id", "_pos").to_arrow().to_pylist() == [{"id": 4, "_pos": 0}, {"id": 5, "_pos": 1}]
    with pytest.raises(ice.IcefieldError, match="no column"):
        added.select("_change_type").to_arrow()
