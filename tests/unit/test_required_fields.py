"""Required fields within optional structs: where the struct is null, they are null too, and that is no fault."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice

INNER = pa.struct([pa.field("b", pa.int64(), nullable=False)])
OUTER = pa.struct([pa.field("a", INNER, nullable=False)])
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("s", OUTER), pa.field("many", pa.list_(OUTER))])
VALUES = [{"a": {"b": 1}}, None, {"a": {"b": 3}}]


def structs(valid: list[bool]) -> pa.StructArray:
    """Build three structs: those that are not valid have null in the required fields."""
    leaf = pa.array([place + 1 if there else None for place, there in enumerate(valid)], pa.int64())
    inner = pa.StructArray.from_arrays([leaf], fields=list(INNER))
    return pa.StructArray.from_arrays([inner], fields=list(OUTER), mask=pa.array([not there for there in valid]))


def rows(valid: list[bool]) -> pa.Table:
    many = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), structs(valid))
    return pa.Table.from_arrays([pa.array([1, 2, 3]), structs(valid), many], schema=SCHEMA)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_null_structs(tmp_path: Path, file_format: str) -> None:
    catalog = ice.load_catalog("c", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("d")
    table = catalog.create_table("d.t", SCHEMA, properties={"write.format.default": file_format})
    given = rows([True, False, True])
    table.append(given)
    expected = [{"id": at + 1, "s": one, "many": [one]} for at, one in enumerate(VALUES)]
    assert table.scan().to_arrow().to_pylist() == expected
    # Columns that are read in another shape are built anew.
    with table.update_schema() as update:
        update.add_column(("s", "a", "x"), ice.types.LongType())
        update.add_column(("many", "element", "a", "x"), ice.types.LongType())
    wider = [None if one is None else {"a": {**one["a"], "x": None}} for one in VALUES]
    expected = [{"id": at + 1, "s": one, "many": [one]} for at, one in enumerate(wider)]
    assert table.scan().to_arrow().to_pylist() == expected
    assert table.scan("s.a.b >= 1").to_arrow().to_pylist() == [expected[0], expected[2]]
    assert table.scan("id >= 1", selected_fields=("s.a.x", "many.element.a.x")).to_arrow().num_rows == 3
    table.update({"id": 20}, where="id = 2")
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 3, 20]
    assert table.scan("id = 20").to_arrow()["s"].to_pylist() == [None]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_a_null_in_a_struct_that_is_there_is_refused(tmp_path: Path, file_format: str) -> None:
    catalog = ice.load_catalog("c", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("d")
    table = catalog.create_table("d.t", SCHEMA, properties={"write.format.default": file_format})
    leaf = pa.array([1, None, 3], pa.int64())
    inner = pa.StructArray.from_arrays([leaf], fields=list(INNER))
    broken = pa.StructArray.from_arrays([inner], fields=list(OUTER))
    with pytest.raises(ice.errors.ValidationError, match=r"s\.a\.b"):
        table.append(pa.table({"id": [1, 2, 3], "s": broken}))
    assert table.refresh().current_snapshot() is None
