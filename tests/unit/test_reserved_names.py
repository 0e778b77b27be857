"""Columns of a table's own that bear the names of reserved ones, in data files and beside delete files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice

ROWS = pa.table(
    {
        "pos": pa.array(range(10, 20), pa.int64()),
        "file_path": [f"f{number}" for number in range(10)],
        "row": pa.array(range(100, 110), pa.int64()),
        "_pos": pa.array(range(50, 60), pa.int64()),
    }
)


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
def test_own_columns_are_read_past_deletes(tmp_path: Path, version: str, kind: str) -> None:
    properties = {"format-version": version, "write.format.default": kind, "write.delete.mode": "merge-on-read"}
    with ice.load_catalog("here", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}") as catalog:
        catalog.create_namespace("n")
        table = catalog.create_table("n.t", schema=ROWS.schema, properties=properties)
        table.append(ROWS)
        table.delete("pos = 13 OR _pos = 57")
        assert table.inspect.delete_files().num_rows == 1
        kept = [row for row in ROWS.to_pylist() if row["pos"] not in (13, 17)]
        assert table.scan().to_arrow().to_pylist() == kept
        assert table.scan().count() == 8
        for condition, positions in (("_pos = 54", [14]), ("file_path = 'f7'", []), ("row >= 108", [18, 19])):
            scan = table.scan(condition, selected_fields=("pos", "_pos"))
            assert scan.to_arrow().to_pylist() == [{"pos": at, "_pos": at + 40} for at in positions]
