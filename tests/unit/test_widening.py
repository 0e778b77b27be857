"""Appends that widen a table: what fits is cast, and what is new becomes a column."""

# ruff: noqa: F811 - fixtures are parameters

import uuid
from decimal import Decimal

import pyarrow as pa
import pytest
from places import ROW, catalog, read, table, version  # noqa: F401 - fixtures

from icefield.errors import CommitFailedException, InvalidArgumentError, ValidationError


def test_appends_that_widen_the_table(table):
    before = len(table.metadata_log())
    place = pa.array([{"city": "Rom", "country": "IT"}])
    more = pa.table({"id": pa.array([2], pa.int32()), "score": [0.1], "place": place, "extra": [[1, 2]]})
    with pytest.raises(ValidationError, match="extra|country|score"):
        table.append(more)
    table.append(more, schema_mode="evolve")
    assert len(table.metadata_log()) == before + 1
    assert table.schema().identifier_field_ids == [1]
    assert table.schema().find_field("id").required
    assert str(table.schema().find_type("score")) == "double"
    found = {row["id"]: row for row in read(table)}
    assert found[1] == {**ROW, "place": {**ROW["place"], "country": None}, "extra": None}
    assert found[2]["place"] == {"city": "Rom", "zip": None, "country": "IT"}
    assert (found[2]["score"], found[2]["extra"], found[2]["name"]) == (0.1, [1, 2], None)
    assert table.current_snapshot().schema_id == table.schema().schema_id
    # Rows that have nothing new change nothing.
    schemas = len(table.schemas())
    table.append(more, schema_mode="evolve")
    assert len(table.schemas()) == schemas


CAST_AS_THEY_ARE_WRITTEN = {
    "nanoseconds": (pa.timestamp("us"), pa.array([1000, None], pa.timestamp("ns"))),
    "seconds": (pa.timestamp("us", "UTC"), pa.array([1, None], pa.timestamp("s", "Europe/Berlin"))),
    "nothing": (pa.int64(), pa.nulls(2)),
    "nothing of a struct": (pa.struct([("x", pa.int64())]), pa.nulls(2)),
    "nothing in a list": (pa.list_(pa.int64()), pa.array([[None], None])),
    "nothing in a map": (
        pa.map_(pa.string(), pa.int64()),
        pa.array([[("a", None)], None], pa.map_(pa.string(), pa.null())),
    ),
    "text of uuids": (pa.uuid(), pa.array([str(uuid.UUID(int=1)), None])),
    "bytes of uuids": (pa.uuid(), pa.array([bytes(16), None])),
    "bytes of a fixed length": (pa.binary(), pa.array([b"abc", None], pa.binary(3))),
    "small decimals": (pa.decimal128(10, 2), pa.array([Decimal("1.5"), None], pa.decimal128(3, 1))),
    "times": (pa.time64("us"), pa.array([1000, None], pa.time64("ns"))),
    "list of a fixed size": (pa.list_(pa.int64()), pa.array([[1, 2], None], pa.list_(pa.int32(), 2))),
}


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("kind", CAST_AS_THEY_ARE_WRITTEN)
def test_widening_takes_what_fits_as_it_is(catalog, kind, version):
    ty, values = CAST_AS_THEY_ARE_WRITTEN[kind]
    inside = pa.struct([("v", ty)])
    schema = pa.schema([("k", pa.int64()), ("v", ty), ("inside", inside)])
    table = catalog.create_table("a.cast", schema, properties={"format-version": str(version)})
    before = table.schema()
    rows = pa.table({"k": [1, 2], "v": values, "inside": pa.StructArray.from_arrays([values], ["v"])})
    expected = table.append(rows).scan().to_arrow().to_pylist()
    table.append(rows, schema_mode="evolve")
    assert table.schema() == before
    assert table.scan().to_arrow().to_pylist() == expected * 2
    # Beside a column that is new, which carries the id of another one.
    new = pa.field("new", pa.int32(), metadata={"PARQUET:field_id": "1"})
    table.append(rows.append_column(new, pa.array([1, 2], pa.int32())), schema_mode="evolve")
    assert table.schema().column_names == [*before.column_names, "new"]
    assert table.scan(selected_fields=before.column_names).to_arrow().to_pylist() == expected * 3


def test_appends_that_cannot_widen_leave_nothing(table):
    before = table.metadata_location
    files = sorted(path for path, _ in table.storage.list(table.location()))
    for data, problem in [
        (pa.table({"id": pa.array([2], pa.int32()), "name": [1]}), "name"),
        (pa.table({"id": pa.array([None], pa.int32()), "extra": [1]}), "id"),
        (pa.table({"extra": [1]}), "id"),
    ]:
        with pytest.raises(InvalidArgumentError, match=problem):
            table.append(data, schema_mode="evolve")
    assert table.refresh().metadata_location == before
    assert sorted(path for path, _ in table.storage.list(table.location())) == files


def test_widening_appends_of_two(catalog, table):
    other = catalog.load_table("a.t")
    data = pa.table({"id": pa.array([2], pa.int32()), "extra": [1]})
    table.append(data, schema_mode="evolve")
    with pytest.raises(CommitFailedException, match="changed"):
        other.append(data, schema_mode="evolve")
    other.refresh().append(data, schema_mode="evolve")
    assert other.scan().count() == 3
