"""Descriptions of data and delete files, and appends of such files."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog

FIELDS: dict[str, Any] = {
    "file_path": "memory://x/a.parquet",
    "file_format": "parquet",
    "partition": ["eu", 3],
    "record_count": 7,
    "file_size_in_bytes": 100,
    "column_sizes": {1: 40},
    "value_counts": {1: 7, 2: 7},
    "null_value_counts": {1: 0},
    "nan_value_counts": {3: 1},
    "lower_bounds": {1: b"\x01\x00\x00\x00\x00\x00\x00\x00"},
    "upper_bounds": {1: b"\x09\x00\x00\x00\x00\x00\x00\x00"},
    "split_offsets": [4, 50],
    "sort_order_id": 0,
    "first_row_id": 12,
    "key_metadata": b"k",
}
VECTOR: dict[str, Any] = {
    "file_path": "memory://x/d.puffin",
    "file_format": "puffin",
    "record_count": 2,
    "file_size_in_bytes": 90,
    "referenced_data_file": "memory://x/a.parquet",
    "content_offset": 4,
    "content_size_in_bytes": 40,
}


def test_files_are_what_they_were_made_of() -> None:
    file = ice.DataFile(**FIELDS)
    found = {name: getattr(file, name) for name in FIELDS}
    assert found == {**FIELDS, "partition": ("eu", 3)}
    assert (file.content, file.spec_id, file.equality_ids, file.referenced_data_file) == ("data", 0, None, None)
    same = ice.DataFile(**FIELDS)
    assert (file, hash(file)) == (same, hash(same))
    assert file != ice.DataFile(**{**FIELDS, "record_count": 8})
    assert pickle.loads(pickle.dumps(file)) == file
    # The key of an encrypted file is not shown.
    open_file = ice.DataFile(**{**FIELDS, "key_metadata": None})
    assert eval(repr(open_file), {"DataFile": ice.DataFile}) == open_file
    assert repr(FIELDS["key_metadata"]) not in repr(file)
    with pytest.raises(AttributeError):
        file.record_count = 8  # type: ignore[misc]


def test_delete_files() -> None:
    vector = ice.DeleteFile(**VECTOR)
    assert (vector.content, vector.file_format, vector.content_offset) == ("position_deletes", "puffin", 4)
    assert pickle.loads(pickle.dumps(vector)) == vector
    equality = ice.DeleteFile(content=2, **{**FIELDS, "equality_ids": [1]})
    assert (equality.content, equality.equality_ids) == ("equality_deletes", [1])


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (ice.DataFile, {"file_format": "csv"}, "csv"),
        (ice.DataFile, {"file_path": ""}, "file_path"),
        (ice.DataFile, {"record_count": -1}, "record_count"),
        (ice.DataFile, {"record_count": 2**63}, "record_count"),
        (ice.DataFile, {"file_size_in_bytes": None}, "file_size_in_bytes"),
        (ice.DataFile, {"content": "position_deletes"}, "DeleteFile"),
        (ice.DataFile, {"content": "rows"}, "rows"),
        (ice.DataFile, {"file_format": "puffin"}, "Puffin"),
        (ice.DataFile, {"partition": "eu"}, "partition"),
        (ice.DataFile, {"lower_bounds": {1: "a"}}, "to_bytes"),
        (ice.DataFile, {"rows": 3}, "rows"),
        (ice.DeleteFile, {"content": "data"}, "DataFile"),
        (ice.DeleteFile, {"content": "equality_deletes"}, "equality_ids"),
        (ice.DeleteFile, {"file_format": "puffin"}, "referenced_data_file"),
    ],
)
def test_what_no_file_has_is_refused(kind: Any, change: dict[str, Any], message: str) -> None:
    with pytest.raises((ice.InvalidArgumentError, TypeError), match=message):
        kind(**{**FIELDS, **change})


@pytest.fixture
def table() -> ice.Table:
    catalog = InMemoryCatalog()
    catalog.create_namespace("n")
    schema = pa.schema([("id", pa.int64()), ("region", pa.string()), ("day", pa.date32())])
    return catalog.create_table("n.t", schema, partition_by=["region", "day(day)"])


def file(name: str = "a", **more: Any) -> ice.DataFile:
    fields: dict[str, Any] = {"partition": ["eu", "2024-05-01"], "record_count": 3, "file_size_in_bytes": 10, **more}
    return ice.DataFile(file_path=f"memory://x/{name}.parquet", file_format="parquet", **fields)


def test_files_are_appended_with_values_of_the_types_of_the_table(table: ice.Table) -> None:
    table.append_files([file("a"), file("b", partition={"day_day": 19844, "region": None})], {"by": "me"})
    found = table.inspect.files().sort_by("file_path").to_pylist()
    assert [row["partition"]["region"] for row in found] == ["eu", None]
    days = [row["partition"]["day_day"] for row in found]
    assert days[0] == days[1]
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert {"added-data-files": "2", "added-records": "6", "by": "me"}.items() <= snapshot.summary.items()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spec_id": 7}, "partition spec 7"),
        ({"partition": ["eu"]}, "1 partition values"),
        ({"partition": {"region": "eu"}}, "day_day"),
        ({"partition": {"region": "eu", "day_day": 1, "hour": 2}}, "hour"),
        ({"partition": ["eu", "noon"]}, "day_day"),
        ({"partition": [3, 1]}, "region"),
    ],
)
def test_files_that_do_not_fit_the_table_are_refused(table: ice.Table, change: dict[str, Any], message: str) -> None:
    with pytest.raises(ice.InvalidArgumentError, match=message):
        table.append_files([file(**change)])
    assert table.refresh().current_snapshot() is None


def test_an_append_in_a_transaction_is_one_commit_with_the_rest(table: ice.Table) -> None:
    with table.transaction() as tx:
        with tx.update_snapshot().fast_append() as append:
            append.append_data_file(file("a"))
        with tx.update_schema() as schema:
            schema.add_column("extra", "string")
        with tx.update_snapshot(branch="side").merge_append() as append:
            append.append_data_file(file("b"))
    assert len(table.metadata.metadata_log) == 1
    assert len(table.scan().plan_files()) == 1
    assert len(table.scan(ref="side").plan_files()) == 2


def test_a_staged_append_is_seen_when_it_is_picked(table: ice.Table) -> None:
    table.append_files([file("a")])
    table.append_files([file("b")], stage_only=True)
    staged = table.snapshots()[-1].snapshot_id
    table.append_files([file("c")])
    assert len(table.scan().plan_files()) == 2
    table.manage_snapshots().cherry_pick(staged).commit()
    assert len(table.scan().plan_files()) == 3
    current = table.current_snapshot()
    assert current is not None
    assert current.summary is not None
    assert current.summary["source-snapshot-id"] == str(staged)
    with pytest.raises(ice.ValidationException, match=str(staged)):
        table.manage_snapshots().cherry_pick(staged).commit()


def test_an_append_that_is_not_committed_is_reported(table: ice.Table) -> None:
    append = table.update_snapshot().fast_append()
    append.append_data_file(file("a"))
    with pytest.warns(ResourceWarning, match="AppendFiles"):
        del append
