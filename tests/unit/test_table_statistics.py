"""Distinct values by theta sketches: numbers, columns, snapshots, and what is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError
from icefield.procedures import call


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made.create_namespace("db")
    return made


ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 3, None], pa.int64()),
        "text": ["a", "a", "", None, "ü"],
        "dec": pa.array(
            [Decimal("1.00"), Decimal("1.00"), Decimal("-2.50"), None, Decimal("0.00")], pa.decimal128(9, 2)
        ),
        "none": pa.array([None] * 5, pa.int32()),
        "inner": [{"x": 1}, {"x": 1}, {"x": 2}, None, {"x": None}],
        "many": [[1], [2], [3], [4], [5]],
    }
)


def test_numbers(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    assert table.maintenance.compute_table_stats() is None
    table.append(ROWS)
    first = table.current_snapshot()
    table.delete("id = 1")
    assert first is not None
    # The empty text is not counted, as in DataSketches.
    done = table.maintenance.compute_table_stats()
    assert done is not None
    assert done.distinct == {"id": 2, "text": 2, "dec": 3, "none": 0}
    before = table.maintenance.compute_table_stats(["id", "inner.x"], snapshot_id=first.snapshot_id)
    assert before is not None
    assert before.distinct == {"id": 3, "inner.x": 2}
    files = {one["snapshot-id"]: one for one in json.loads(table.metadata_json())["statistics"]}
    assert len(files) == 2
    assert files[first.snapshot_id]["statistics-path"] == before.path
    assert [blob["type"] for blob in files[first.snapshot_id]["blob-metadata"]] == ["apache-datasketches-theta-v1"] * 2
    again = call(catalog, "compute_table_stats", table="db.t", columns="id")
    assert again.column_names == ["statistics_file"]
    assert table.refresh().fsck("rows").findings == []


@pytest.mark.parametrize(
    ("columns", "match"), [(["many"], "column many is of type"), (["inner"], "primitive types"), (["gone"], "gone")]
)
def test_what_is_refused(catalog: ice.Catalog, columns: list[str], match: str) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    location = table.metadata_location
    with pytest.raises((InvalidArgumentError, ice.ValidationError), match=match):
        table.maintenance.compute_table_stats(columns)
    with pytest.raises(InvalidArgumentError, match="77"):
        table.maintenance.compute_table_stats(snapshot_id=77)
    assert table.refresh().metadata_location == location
