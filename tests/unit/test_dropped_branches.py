"""Maintenance of a branch that another commit removes meanwhile is refused: it must not create the branch again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import ValidationException
from icefield.manifests import DataFile

ROWS = pa.table({"id": pa.array(range(10), pa.int64())})
ALL = {"rewrite-all": True}
MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")

CALLS: dict[str, Callable[[ice.Table], object]] = {
    "compact": lambda table: table.maintenance.compact(options=ALL, branch="b"),
    "rewrite_position_deletes": lambda table: table.maintenance.rewrite_position_deletes(options=ALL, branch="b"),
    "convert_equality_deletes": lambda table: table.maintenance.convert_equality_deletes(branch="b"),
    "remove_dangling_deletes": lambda table: table.maintenance.remove_dangling_deletes(branch="b"),
    "repair": lambda table: table.maintenance.repair(branch="b"),
}


def damaged(table: ice.Table) -> DataFile:
    """Describe a file of the table again, with the sort order of no table."""
    row = table.inspect.data_files().to_pylist()[0]
    fields = {name: dict(value) if name in MAPS else value for name, value in row.items() if value is not None}
    kept = {name: value for name, value in fields.items() if name not in {"content", "readable_metrics", "spec_id"}}
    return DataFile(**{**kept, "sort_order_id": 7})


@pytest.mark.parametrize("call", CALLS)
def test_the_branch_is_not_created_again(tmp_path: Path, call: str) -> None:
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("a.t", ROWS.schema, properties=properties)
    # Deletes of before and after the first rows: the former delete nothing.
    for _ in range(2):
        with table.upsert_stream("id") as stream:
            stream.delete(ROWS.slice(2, 1))
        table.append(ROWS)
    table.delete("id = 5")
    table.update_snapshot().fast_append().append_data_file(damaged(table)).commit()
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_branch(snapshot.snapshot_id, "b").commit()
    stale = catalog.load_table("a.t")
    table.manage_snapshots().remove_branch("b").commit()
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValidationException, match="branch b: another commit has removed it"):
        CALLS[call](stale)
    assert catalog.load_table("a.t").snapshot_by_name("b") is None
    assert sorted(tmp_path.rglob("*")) == files
