"""Partition fields whose transform this version does not know, or that are made of several columns: read, never pruned by, not written."""

# ruff: noqa: E501

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

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


def changed(folder: Path, values: pa.Array, change: dict[str, Any], by: str = "k") -> ice.Table:
    """Give a table of two partitions whose first partition field is another one in its metadata."""
    catalog = ice.load_catalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"))
    catalog.create_namespace("db")
    rows = pa.table({"k": values, "b": [0, 1], "c": [2, 3]})
    table = catalog.create_table("db.t", rows.schema, partition_by=[by, "b"], properties={"format-version": "3"})
    table.append(rows)
    metadata = json.loads(table.metadata_json() if callable(table.metadata_json) else table.metadata_json)
    field = metadata["partition-specs"][0]["fields"][0]
    field.update(change)
    if "source-ids" in change:
        del field["source-id"]
    path = folder / "wh" / "changed.metadata.json"
    path.write_text(json.dumps(metadata))
    return catalog.register_table("db.changed", str(path))


def check_reads(table: ice.Table, values: pa.Array) -> None:
    assert table.scan().to_arrow().sort_by("b")["k"].to_pylist() == values.to_pylist()
    for place, test in enumerate(("b = 0", "b = 1")):
        assert table.scan(test).to_arrow()["c"].to_pylist() == [2 + place]
        assert table.scan(test).count() == 1
    assert table.scan("k IS NOT NULL").count() == len(values) - values.null_count
    assert table.scan("k IS NULL").count() == values.null_count
    tasks = list(table.scan("b = 1").plan_files())
    assert len(tasks) == 1


@pytest.mark.parametrize("name", VALUES)
def test_an_unknown_transform_is_read_whatever_its_values_are(tmp_path: Path, name: str) -> None:
    values = VALUES[name]
    table = changed(tmp_path, values, {"transform": "zorder[8]"})
    check_reads(table, values)
    before = sorted(str(path) for path in tmp_path.rglob("*") if "metadata.json" in path.name)
    for mode in ("merge-on-read", "copy-on-write", "auto"):
        with pytest.raises(UnsupportedFeatureError, match=r"zorder\[8\]"):
            table.delete("b = 1", mode=mode)
    with pytest.raises(UnsupportedFeatureError, match=r"zorder\[8\]"):
        table.append(pa.table({"k": values, "b": [0, 1], "c": [2, 3]}))
    assert sorted(str(path) for path in tmp_path.rglob("*") if "metadata.json" in path.name) == before
    check_reads(table, values)
    # Once the table is partitioned otherwise, it is written again, beside what is there.
    with table.update_spec() as update:
        update.remove_field("k")
    table.append(pa.table({"k": values, "b": [0, 1], "c": [4, 5]}, schema=table.schema().to_arrow()))
    assert sorted(table.scan().to_arrow()["c"].to_pylist()) == [2, 3, 4, 5]


@pytest.mark.parametrize("mode", ["auto", "copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(
    ("change", "by", "is_known"),
    [
        ({"source-ids": [1, 2]}, "bucket(4, k)", True),
        ({"source-ids": [1, 2]}, "k", False),
        ({"source-ids": [1, 2], "transform": "truncate[2]"}, "truncate(2, k)", False),
        ({"source-ids": [1, 3], "transform": "zorder"}, "bucket(4, k)", False),
    ],
)
def test_a_transform_of_several_columns_lets_whole_files_go_or_is_refused_by_name(
    tmp_path: Path, change: dict[str, Any], by: str, is_known: bool, mode: str
) -> None:
    values = VALUES["long"]
    table = changed(tmp_path, values, change, by)
    check_reads(table, values)
    if not is_known:
        with pytest.raises(UnsupportedFeatureError, match="of several columns"):
            table.delete("b = 1", mode=mode)
        check_reads(table, values)
        return
    table.delete("b = 1", mode=mode)
    assert table.scan().to_arrow()["c"].to_pylist() == [2]
    with pytest.raises(UnsupportedFeatureError, match="multi-argument transform"):
        table.append(pa.table({"k": values, "b": [0, 1], "c": [2, 3]}))
