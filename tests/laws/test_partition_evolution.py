"""Plans over the specs of old: removed fields of version 1, and sources that were dropped from the schema since."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

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
