"""Filters of geometries with boxes: which rows they match, and which files they skip."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield import errors
from icefield import expressions as ex


def wkb(code: int, *points: tuple[float, float]) -> bytes:
    """Give a point, or a line of several points."""
    head = struct.pack("<BI", 1, code) + (struct.pack("<I", len(points)) if code > 1 else b"")
    return head + b"".join(struct.pack("<2d", *point) for point in points)


#: Files of rows: id and shape.
FILES: list[dict[int, bytes | None]] = [
    {1: wkb(1, (1.0, 1.0)), 2: wkb(2, (0.0, 0.0), (9.0, 9.0)), 3: None},
    {4: wkb(1, (50.0, 50.0)), 5: wkb(1, (float("nan"), float("nan")))},
    {6: wkb(2, (0.0, 20.0), (20.0, 0.0))},
    {7: None},
]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ice.Table]:
    fields = [
        ice.NestedField(1, "id", "long"),
        ice.NestedField(2, "g", "geometry"),
        ice.NestedField(3, "e", "geography"),
    ]
    with ice.load_catalog("here", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}") as catalog:
        catalog.create_namespace("n")
        made = catalog.create_table("n.t", schema=ice.Schema(*fields), properties={"format-version": "3"})
        for rows in FILES:
            shapes = pa.array(list(rows.values()), pa.binary())
            made.append(pa.table({"id": list(rows), "g": shapes, "e": shapes}))
        yield made


@pytest.mark.parametrize(
    ("condition", "ids", "files"),
    [
        ("st_intersects(g, st_makeenvelope(0, 0, 2, 2))", [1, 2], 2),
        (ex.StIntersects("g", (0, 0, 2, 2)), [1, 2], 2),
        ("st_intersects(g, st_makeenvelope(8, 8, 12, 12))", [2, 6], 2),
        # In the box around the line, and away from the line.
        ("st_intersects(g, st_makeenvelope(15, 15, 16, 16))", [], 1),
        ("st_intersects(g, st_makeenvelope(-9, -9, -8, 99))", [], 0),
        ("st_intersects(g, st_makeenvelope(50, 50, 50, 50)) AND id > 0", [4], 1),
        ("st_disjoint(g, st_makeenvelope(0, 0, 2, 2))", [4, 5, 6], 3),
        ("NOT st_intersects(g, st_makeenvelope(0, 0, 2, 2))", [4, 5, 6], 3),
        (~ex.StDisjoint("g", (0, 0, 2, 2)), [1, 2], 2),
        ("st_intersects(g, st_makeenvelope(0, 0, 2, 2)) OR id = 7", [1, 2, 7], 3),
    ],
)
def test_rows_and_files(table: ice.Table, condition: ex.RowFilter, ids: list[int], files: int) -> None:
    scan = table.scan(condition, selected_fields=("id",))
    assert sorted(scan.to_arrow()["id"].to_pylist()) == ids
    assert len(scan.plan_files()) == files
    assert scan.count() == len(ids)
    again = ex.from_json(ex.parse(condition).to_json() if isinstance(condition, str) else condition.to_json())
    assert sorted(table.scan(again).to_arrow()["id"].to_pylist()) == ids


def test_only_columns_of_straight_edges_have_boxes(table: ice.Table) -> None:
    """How far an edge on a globe extends beyond the box of its ends is not specified."""
    for bounds in table.inspect.data_files()["lower_bounds"].to_pylist():
        assert 3 not in dict(bounds)
    assert any(2 in dict(bounds) for bounds in table.inspect.data_files()["lower_bounds"].to_pylist())


def test_what_cannot_be_tested(table: ice.Table) -> None:
    for condition in (
        "st_intersects(e, st_makeenvelope(0, 0, 2, 2))",
        "st_intersects(id, st_makeenvelope(0, 0, 2, 2))",
    ):
        with pytest.raises(errors.IcefieldError, match="only columns of type geometry"):
            table.scan(condition)
    with pytest.raises(errors.InvalidArgumentError, match="xmin <= xmax"):
        ex.StIntersects("g", (2, 0, 0, 2))
    with pytest.raises(errors.InvalidArgumentError, match="four coordinates"):
        ex.StIntersects("g", (2, 0, 0))  # type: ignore[arg-type]


def test_bytes_that_are_no_shape(table: ice.Table) -> None:
    table.append(pa.table({"id": [8], "g": pa.array([b"none"], pa.binary()), "e": pa.array([None], pa.binary())}))
    with pytest.raises(errors.CorruptDataError, match="well-known binary"):
        table.scan("st_intersects(g, st_makeenvelope(0, 0, 2, 2))").to_arrow()
