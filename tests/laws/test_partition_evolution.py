"""Plans over the specs of old: removed fields of version 1, and sources that were dropped from the schema since."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice

ROWS = pa.table({"id": pa.array([1, 2]), "t": pa.array([dt.time(1), dt.time(2)]), "s": pa.array(["a", "b"])})


def make(folder: Path, version: int) -> ice.Table:
    catalog = ice.load_catalog("c", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("db")
    parts = ["bucket(4, t)", "s"]
    properties = {"format-version": str(version)}
    table = catalog.create_table("db.t", schema=ROWS.schema, partition_by=parts, properties=properties)
    return table.append(ROWS)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("removed_first", [False, True])
def test_a_removed_field_keeps_the_type_of_its_values(tmp_path: Path, version: int, *, removed_first: bool) -> None:
    table = make(tmp_path, version)
    with table.update_spec() as spec:
        spec.remove_field("t_bucket")
    table.append(ROWS)
    if removed_first:
        with table.update_spec() as spec:
            spec.add_field("t", "bucket[4]", "again")
        table.append(ROWS)
    files = table.scan().plan_files().to_arrow()
    parts = files["partition"].combine_chunks()
    assert parts.type.field("t_bucket").type == pa.int32()
    tuples = zip(files["spec_id"].to_pylist(), parts.field("t_bucket").to_pylist(), strict=True)
    assert {value is None for spec, value in tuples if spec == 0} == {False}
    assert table.scan("t = '01:00:00'").to_arrow()["id"].to_pylist() == [1] * (2 + removed_first)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_specs_whose_source_was_dropped_still_plan(tmp_path: Path, version: int) -> None:
    table = make(tmp_path, version)
    with table.update_spec() as spec:
        spec.remove_field("t_bucket")
        spec.remove_field("s")
    if version > 1:  # version 1 keeps a void field over the column
        with table.update_schema() as schema:
            schema.delete_column("t")
            schema.delete_column("s")
    table.append(pa.table({"id": pa.array([3])}))
    files = table.scan().plan_files().to_arrow()
    assert files.num_rows == 3
    old = {(part["t_bucket"], part["s"]) for part in files["partition"].to_pylist() if part["s"] is not None}
    assert {value for _, value in old} == {"a", "b"}
    assert {type(bucket) for bucket, _ in old} == {int}
    assert sorted(table.scan("id > 1").to_arrow()["id"].to_pylist()) == [2, 3]
    assert table.scan("id > 1").count() == 2
    assert len(table.scan("id = 3").plan_files()) == 1


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("kind", ["boolean", "int", "long", "double", "string", "uuid", "decimal(9, 2)", "timestamp"])
def test_void_fields_over_dropped_columns(tmp_path: Path, version: int, kind: str) -> None:
    """Later manifests hold ``null`` for the field; what follows it in the tuple, and every file, is still read."""
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "gone", kind))
    properties = {"format-version": str(version)}
    table = catalog.create_table("db.t", schema=schema, partition_by=["void(gone)", "id"], properties=properties)
    table.append(pa.table({"id": [1]}))
    with table.update_schema() as update:
        update.delete_column("gone")
    table.append(pa.table({"id": [2, 3]}))
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert [table.scan(f"id = {number}").count() for number in (1, 2, 3)] == [1, 1, 1]
    parts = table.scan().plan_files().to_arrow()["partition"].to_pylist()
    assert sorted(part["id"] for part in parts) == [1, 2, 3]
    assert {part["gone_null"] for part in parts} == {None}


@pytest.mark.parametrize(
    ("kind", "wider", "values"),
    [
        ("int", "long", [-1001, None, 2**31 - 1]),
        ("float", "double", [0.5, None, -1.5]),
        ("decimal(9, 2)", "decimal(20, 2)", [Decimal("-1.00"), None, Decimal("9999999.99")]),
    ],
)
def test_manifests_are_merged_after_their_columns_were_promoted(
    tmp_path: Path, kind: str, wider: str, values: list[Any]
) -> None:
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    schema = ice.Schema(ice.NestedField(1, "v", kind), ice.NestedField(2, "id", "long"))
    properties = {"commit.manifest.min-count-to-merge": "2"}
    table = catalog.create_table("db.t", schema=schema, partition_by=["v"], properties=properties)
    for number in range(2):
        table.append(pa.table({"v": values, "id": [number] * 3}, schema=schema.to_arrow()))
    with table.update_schema() as update:
        update.update_column("v", wider)
    table.append(pa.table({"v": values, "id": [2] * 3}, schema=table.schema().to_arrow()))
    assert len(table.inspect.manifests()) == 1
    for value in values:
        found = table.scan("v IS NULL" if value is None else f"v = {value}")
        assert sorted(found.to_arrow()["id"].to_pylist()) == [0, 1, 2]
        assert len(found.plan_files()) == 3


def test_manifests_of_version_1_live_on_in_upgraded_tables(tmp_path: Path) -> None:
    table = make(tmp_path, 1)
    for version in (2, 3):
        with table.transaction() as change:
            change.upgrade_table_version(version)
        table.append(ROWS)
        files = table.scan("s = 'a'").plan_files().to_arrow()
        # What version 1 wrote has no sequence numbers: it is older than everything.
        assert sorted(files["data_sequence_number"].to_pylist()) == list(range(version))
        assert table.scan("s = 'a'").count() == version
        assert table.scan("s = 'a'").to_arrow()["id"].to_pylist() == [1] * version
