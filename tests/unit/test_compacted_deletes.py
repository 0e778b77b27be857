"""A compaction beside deletes by key: its files keep the number of what they replace, so that these deletes apply."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice


def rows(*ids: int) -> pa.Table:
    schema = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    return pa.table({"id": pa.array(ids, pa.int64())}, schema=schema)


def data_file(path: str, record_count: int, size: int) -> ice.DataFile:
    return ice.DataFile(file_path=path, file_format="parquet", record_count=record_count, file_size_in_bytes=size)


def delete(table: ice.Table, *ids: int) -> None:
    with table.upsert_stream("id") as stream:
        stream.delete(rows(*ids))


@pytest.mark.parametrize("version", ["2", "3"])
def test_deletes_that_came_meanwhile_apply_to_what_was_rewritten(tmp_path: Path, version: str) -> None:
    """Nothing that stays is as old as the deletes: they were dropped, and the rows were back."""
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", rows(1).schema, properties={"format-version": version})
    table.append(rows(1, 2, 3))
    read = table.current_snapshot()
    assert read is not None
    (old,) = table.scan().plan_files().files
    delete(table, 2)
    delete(table, 9)
    table.append(rows(4))
    new = tmp_path / "new.parquet"
    pq.write_table(rows(1, 2, 3), new)
    with table.rewrite_files() as rewrite:
        rewrite.delete_data_file(data_file(old["file_path"], 3, old["file_size_in_bytes"]))
        rewrite.add_data_file(data_file(str(new), 3, new.stat().st_size))
        rewrite.data_sequence_number(read.sequence_number).validate_from_snapshot(read.snapshot_id)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3, 4]
    assert table.inspect.delete_files()["record_count"].to_pylist() == [1, 1]
