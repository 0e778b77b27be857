"""Partition fields whose transform this version does not know, or that are made of several columns: read, never pruned by, deleted from
and rewritten in place; nothing is written whose value is not known."""

# ruff: noqa: E501

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import UnsupportedFeatureError

VALUES: dict[str, pa.Array] = {
    "boolean": pa.array([False, True]),
    "int": pa.array([1, 2], pa.int32()),
    "long": pa.array([1, 2**40], pa.int64()),
    "float": pa.array([0.5, 1.5], pa.float32()),
    "double": pa.array([0.5, 1.5]),
    "date": pa.array([dt.date(2024, 1, 1), dt.date(2024, 1, 2)]),
    "time": pa.array([1, 2], pa.int64()).cast(pa.time64("us")),
    "timestamp": pa.array([1, 2], pa.int64()).cast(pa.timestamp("us")),
    "timestamptz": pa.array([1, 2], pa.int64()).cast(pa.timestamp("us", "UTC")),
    "decimal": pa.array([Decimal("-1.28"), Decimal("2.56")]),
    "string": pa.array(["x", "ü"]),
    "binary": pa.array([b"\xff", b"\0"]),
    "fixed": pa.array([b"\xff\xfe", b"\0\1"], pa.binary(2)),
    "null": pa.array([None, 5], pa.int32()),
}


def changed(
    folder: Path, values: pa.Array, change: dict[str, Any], by: str = "k", numbers: Sequence[int] = (2, 3)
) -> ice.Table:
    """Give a table of two partitions whose first partition field is another one in its metadata."""
    catalog = ice.load_catalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"))
    catalog.create_namespace("db")
    rows = pa.table({"k": values, "b": [number % 2 for number in range(len(values))], "c": list(numbers)})
    table = catalog.create_table("db.t", rows.schema, partition_by=[by, "b"], properties={"format-version": "3"})
    table.append(rows)
    metadata = json.loads(table.metadata_json() if callable(table.metadata_json) else table.metadata_json)
    field = metadata["partition-specs"][0]["fields"][0]
    field.update(change)
    if "source-ids" in change:
        del field["source-id"]
    path = folder / "wh" / "db" / "t" / "metadata" / "changed.metadata.json"
    path.write_text(json.dumps(metadata))
    return catalog.register_table("db.changed", f"file://{path}")


def check_reads(table: ice.Table, values: pa.Array) -> None:
    assert table.scan().to_arrow().sort_by("b")["k"].to_pylist() == values.to_pylist()
    for place, test in enumerate(("b = 0", "b = 1")):
        assert table.scan(test).to_arrow()["c"].to_pylist() == [2 + place]
        assert table.scan(test).count() == 1
    assert table.scan("k IS NOT NULL").count() == len(values) - values.null_count
    assert table.scan("k IS NULL").count() == values.null_count
    tasks = list(table.scan("b = 1").plan_files())
    assert len(tasks) == 1


Mode: TypeAlias = Literal["auto", "copy-on-write", "merge-on-read"]
MODES: list[Mode] = ["copy-on-write", "merge-on-read"]

#: Transforms whose values are not known, and by what the field was made.
UNKNOWN = [
    ({"transform": "zorder[8]"}, "k"),
    ({"source-ids": [1, 2]}, "k"),
    ({"source-ids": [1, 2], "transform": "truncate[2]"}, "k"),
    ({"source-ids": [1, 3], "transform": "zorder"}, "bucket(4, k)"),
]


@pytest.mark.parametrize("name", VALUES)
def test_an_unknown_transform_is_read_whatever_its_values_are(tmp_path: Path, name: str) -> None:
    values = VALUES[name]
    table = changed(tmp_path, values, {"transform": "zorder[8]"})
    check_reads(table, values)
    before = sorted(str(path) for path in tmp_path.rglob("*") if "metadata.json" in path.name)
    with pytest.raises(UnsupportedFeatureError, match=r"zorder\[8\]"):
        table.append(pa.table({"k": values, "b": [0, 1], "c": [2, 3]}))
    with pytest.raises(UnsupportedFeatureError, match=r"zorder\[8\]"):
        table.update({"c": 5}, "b = 1")
    assert sorted(str(path) for path in tmp_path.rglob("*") if "metadata.json" in path.name) == before
    check_reads(table, values)
    # Once the table is partitioned otherwise, it is written again, beside what is there.
    with table.update_spec() as update:
        update.remove_field("k")
    table.append(pa.table({"k": values, "b": [0, 1], "c": [4, 5]}, schema=table.schema().to_arrow()))
    assert sorted(table.scan().to_arrow()["c"].to_pylist()) == [2, 3, 4, 5]
    table.delete("c = 3")
    assert sorted(table.scan().to_arrow()["c"].to_pylist()) == [2, 4, 5]


@pytest.mark.parametrize(
    ("name", "mode"), [(name, MODES[place % 2]) for place, name in enumerate(VALUES)] + [("null", MODES[0])]
)
def test_rows_are_deleted_and_files_rewritten_in_place(tmp_path: Path, name: str, mode: Mode) -> None:
    """The files keep their values, in the types that manifests had: with the old transform it is the old table."""
    values = pa.concat_arrays([VALUES[name]] * 3)
    table = changed(tmp_path, values, {"transform": "zorder[8]"}, numbers=range(6))
    rows = table.scan().to_arrow().sort_by("c")
    table.delete("c = 2", mode=mode)
    table.delete("c = 5", mode=mode)
    table.rewrite_manifests()
    assert table.scan().to_arrow().sort_by("c")["c"].to_pylist() == [0, 1, 3, 4]
    table.maintenance.compact(options={"rewrite-all": "true"})
    table.maintenance.rewrite_position_deletes(options={"rewrite-all": "true"})
    table.delete("b = 1", mode=mode)
    assert table.scan().to_arrow().sort_by("c").to_pylist() == [rows.to_pylist()[place] for place in (0, 4)]
    assert [str(one) for one in table.fsck("rows").findings] == []
    metadata = json.loads(table.metadata_json())
    metadata["partition-specs"][0]["fields"][0]["transform"] = "identity"
    path = tmp_path / "known.metadata.json"
    path.write_text(json.dumps(metadata))
    known = ice.Table.from_metadata(str(path))
    assert known.inspect.partitions()["partition"].combine_chunks().field("k").to_pylist() == values.to_pylist()[:1]
    [value] = values.to_pylist()[:1]
    if value is not None and not isinstance(value, bytes):
        assert known.scan(ice.expressions.EqualTo("k", value)).count() == 2


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("change", "by"),
    [*UNKNOWN, ({"source-ids": [1, 2]}, "bucket(4, k)"), ({"transform": "void", "source-ids": [1, 2]}, "k")],
)
def test_a_transform_of_several_columns(tmp_path: Path, change: dict[str, Any], by: str, mode: Mode) -> None:
    is_void = change.get("transform") == "void"
    values = pa.nulls(2, pa.int64()) if is_void else VALUES["long"]
    table = changed(tmp_path, values, change, by)
    check_reads(table, values)
    more = pa.table({"k": values, "b": [0, 1], "c": [4, 5]})
    if is_void:
        # Its value is null, whatever the columns are.
        table.append(more)
        table.delete("c >= 4", mode=mode)
    else:
        with pytest.raises(UnsupportedFeatureError, match=r"multi-argument transform|partition transform"):
            table.append(more)
    table.delete("b = 1", mode=mode)
    assert table.scan().to_arrow()["c"].to_pylist() == [2]
    table.maintenance.compact(options={"rewrite-all": "true"})
    assert table.scan().to_arrow()["c"].to_pylist() == [2]
    assert table.scan("k = 1").count() == (0 if is_void else 1)
    assert [str(one) for one in table.fsck("rows").findings] == []


@pytest.mark.parametrize(("change", "by"), UNKNOWN)
def test_copies_and_differences(tmp_path: Path, change: dict[str, Any], by: str) -> None:
    values = pa.concat_arrays([VALUES["long"], VALUES["long"]])
    table = changed(tmp_path, values, change, by, (2, 3, 4, 5))
    before = table.current_snapshot()
    table.delete("c = 2", mode="merge-on-read")
    copied = table.copy_to(str(tmp_path / "copy"))
    opened = ice.Table.from_metadata(copied.metadata_location)
    assert opened.scan().to_arrow().to_pylist() == table.scan().to_arrow().to_pylist()
    assert [opened.scan(f"b = {number}").count() for number in (0, 1)] == [1, 2]
    assert [str(field.transform) for field in opened.spec().fields] == [
        str(field.transform) for field in table.spec().fields
    ]
    assert opened.fsck("rows").findings == []
    source, target = table.location(), str(tmp_path / "other")
    done = table.rewrite_table_path(source, target, staging_location=str(tmp_path / "staged"))
    assert (done.rewritten_manifest_file_paths_count, done.rewritten_delete_file_paths_count) == (2, 1)
    assert before is not None
    found = ice.diff(table.scan(snapshot_id=before.snapshot_id), table, keys="c").to_arrow()
    assert (found["_change"].to_pylist(), found["c"].to_pylist()) == (["removed"], [2])
    assert ice.diff(table, opened, keys="c").to_arrow().num_rows == 0
