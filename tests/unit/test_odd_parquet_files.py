"""Column projection of Parquet files that others wrote: names for ids, other layouts and widths of the same values."""

# ruff: noqa: E501

from __future__ import annotations

import datetime as dt
import struct
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.errors import CorruptDataError
from icefield.name_mapping import NameMapping

NOON = dt.datetime.fromisoformat("2024-02-29T12:30:15.250")
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.string())])
FILLER = pa.field("filler", pa.binary())
INT96 = {"use_deprecated_int96_timestamps": True}


def names_of(schema: pa.Schema) -> str:
    return NameMapping.from_schema(ice.Schema.from_arrow(schema.append(FILLER))).to_json()


def replaced(
    folder: Path, schema: pa.Schema, theirs: pa.Table, mapping: str | None = None, **options: Any
) -> ice.Table:
    """Give a table with one file, which pyarrow wrote, without ids."""
    catalog = ice.load_catalog("f", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"))
    catalog.create_namespace("a")
    properties = {"write.parquet.compression-codec": "uncompressed", "write.metadata.metrics.default": "none"}
    if mapping is not None:
        properties["schema.name-mapping.default"] = mapping
    table = catalog.create_table("a.t", schema.append(FILLER), properties={**properties, "format-version": "3"})
    # A file of ours, larger than theirs: bytes that belong to no page make both as long as the manifest says.
    bytes_ = Random(1).randbytes(50_000)
    count = theirs.num_rows
    filler = pa.array([bytes_, *[None] * (count - 1)], pa.binary())
    table.append(pa.table({**{f.name: pa.nulls(count, f.type) for f in schema}, "filler": filler}))
    path = next((folder / "wh").rglob("*.parquet"))
    size = path.stat().st_size
    pq.write_table(theirs, path, compression="none", **options)
    data = path.read_bytes()
    assert len(data) < size
    footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
    path.write_bytes(data[:footer] + bytes(size - len(data)) + data[footer:])
    return table


LAYOUTS: list[tuple[str, pa.DataType, pa.Array, dict[str, Any]]] = [
    ("dictionary", pa.string(), pa.array(["x", None, "x"]).dictionary_encode(), {}),
    ("large string", pa.string(), pa.array(["x", None, "é"], pa.large_string()), {}),
    ("string view", pa.string(), pa.array(["x", None, "é"], pa.string_view()), {}),
    ("large binary", pa.binary(), pa.array([b"x", None, b""], pa.large_binary()), {}),
    ("fixed under binary", pa.binary(), pa.array([b"xyz", None, b"abc"], pa.binary(3)), {}),
    ("text under binary", pa.binary(), pa.array(["xyz", None, "é"]), {}),
    ("int8", pa.int32(), pa.array([-128, None, 127], pa.int8()), {}),
    ("uint16", pa.int32(), pa.array([0, None, 65535], pa.uint16()), {}),
    ("uint32", pa.int64(), pa.array([0, None, 2**32 - 1], pa.uint32()), {}),
    ("int32 under long", pa.int64(), pa.array([-(2**31), None, 2**31 - 1], pa.int32()), {}),
    ("half", pa.float32(), pa.array([0.5, None, -2.0], pa.float16()), {}),
    ("float under double", pa.float64(), pa.array([0.5, None, -2.0], pa.float32()), {}),
    ("int96", pa.timestamp("us", "UTC"), pa.array([NOON, None, NOON], pa.timestamp("us")), INT96),
    ("int96 without a zone", pa.timestamp("us"), pa.array([NOON, None, NOON], pa.timestamp("us")), INT96),
    ("int96 in a struct", pa.struct([("z", pa.timestamp("us", "UTC")), ("t", pa.timestamp("us"))]), pa.array([{"t": NOON, "z": NOON}, None], pa.struct([("t", pa.timestamp("us")), ("z", pa.timestamp("us"))])), INT96),
    ("int96 in a list", pa.list_(pa.timestamp("us")), pa.array([[NOON, None], None], pa.list_(pa.timestamp("us"))), INT96),
    ("int96 in a map", pa.map_(pa.timestamp("us"), pa.timestamp("us", "UTC")), pa.array([[(NOON, NOON)], None], pa.map_(pa.timestamp("us"), pa.timestamp("us"))), INT96),
    ("millis", pa.timestamp("us"), pa.array([NOON, None, NOON], pa.timestamp("ms")), {}),
    ("nanos", pa.timestamp("us"), pa.array([NOON, None, NOON], pa.timestamp("ns")), {"version": "2.6"}),
    ("micros under nanos", pa.timestamp("ns"), pa.array([NOON, None, NOON], pa.timestamp("us")), {}),
    ("date under timestamp", pa.timestamp("us"), pa.array([dt.date(2024, 2, 29), None], pa.date32()), {}),
    ("date64", pa.date32(), pa.array([dt.date(2024, 2, 29), None], pa.date64()), {}),
    ("time32", pa.time64("us"), pa.array([dt.time(1, 2, 3, 4000), None], pa.time32("ms")), {}),
    ("decimal of int32", pa.decimal128(12, 2), pa.array([Decimal("1.25"), None], pa.decimal128(7, 2)), {"store_decimal_as_integer": True}),
    ("decimal of bytes", pa.decimal128(38, 2), pa.array([Decimal("-1.25"), None], pa.decimal128(20, 2)), {}),
    ("all nulls", pa.int64(), pa.nulls(3), {}),
    ("large list", pa.list_(pa.int64()), pa.array([[1, None], None, []], pa.large_list(pa.int32())), {}),
    ("list of items", pa.list_(pa.string()), pa.array([["x"], None, []], pa.list_(pa.string())), {"use_compliant_nested_type": False}),
    ("fixed list", pa.list_(pa.int64()), pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)), {}),
    ("map", pa.map_(pa.string(), pa.int64()), pa.array([[("k", 1)], None, []], pa.map_(pa.large_string(), pa.int32())), {}),
    ("struct", STRUCT, pa.array([{"b": "x", "a": 1}, None], pa.struct([("b", pa.large_string()), ("a", pa.int8())])), {}),
    ("list of structs", pa.list_(STRUCT), pa.array([[{"b": "x"}], None, [None]], pa.list_(pa.struct([("b", pa.string())]))), {}),
]  # fmt: skip


@pytest.mark.parametrize("stored_schema", [True, False])
@pytest.mark.parametrize(("name", "kind", "column", "options"), LAYOUTS, ids=[layout[0] for layout in LAYOUTS])
def test_layouts_are_read_as_the_columns_type(
    tmp_path: Path, name: str, kind: pa.DataType, column: pa.Array, options: dict[str, Any], stored_schema: bool
) -> None:
    schema = pa.schema([pa.field("c", kind)])
    mapping = names_of(schema)
    theirs = pa.table({"other": pa.nulls(len(column), pa.int8()), "c": column})
    table = replaced(tmp_path, schema, theirs, mapping, store_schema=stored_schema, **options)
    found = table.scan(selected_fields=("c", "_pos")).to_arrow()
    if kind == pa.list_(STRUCT):
        column = pa.array([[{"a": None, "b": "x"}], None, [None]], kind)
    expected = column.cast(kind) if pa.types.is_timestamp(kind) else pa.array(column.to_pylist(), kind)
    assert found.column("c").to_pylist() == expected.to_pylist()
    assert found.column("c").type == table.scan(selected_fields=("c",)).projection().to_arrow().field("c").type
    assert found.column("_pos").to_pylist() == list(range(len(column)))
    nulls = [place for place, value in enumerate(expected.to_pylist()) if value is None]
    for where, wanted in [("c IS NULL", nulls), ("c IS NOT NULL", sorted(set(range(len(column))) - set(nulls)))]:
        rows = table.scan(where, selected_fields=("_pos",)).to_arrow().column("_pos").to_pylist()
        assert rows == wanted, where


@pytest.mark.parametrize(
    ("kind", "column"),
    [
        (pa.int64(), pa.array(["1"])),
        (pa.int32(), pa.array([1], pa.int64())),
        (pa.int64(), pa.array([2**64 - 1], pa.uint64())),
        (pa.string(), pa.array([1])),
        (pa.int64(), pa.array([[1]])),
        (STRUCT, pa.array([1])),
        (pa.decimal128(9, 2), pa.array([Decimal("1.234")])),
    ],
)
def test_what_is_no_promotion_is_an_error_that_names_the_column(
    tmp_path: Path, kind: pa.DataType, column: pa.Array
) -> None:
    schema = pa.schema([pa.field("c", kind)])
    table = replaced(tmp_path, schema, pa.table({"c": column}), names_of(schema))
    with pytest.raises(CorruptDataError, match=r"column c \(id 1\) is stored as"):
        table.scan().to_arrow()


def test_names_stand_for_ids_at_any_depth(tmp_path: Path) -> None:
    inner = pa.struct([("x", pa.int64()), ("y", pa.string())])
    schema = pa.schema([("id", pa.int64()), ("s", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))])
    mapping = """[
        {"field-id": 1, "names": ["id", "ID"]},
        {"field-id": 2, "names": ["s", "S"], "fields": [{"field-id": 6, "names": ["ex", "x"]}, {"field-id": 7, "names": ["y"]}]},
        {"field-id": 3, "names": ["l"], "fields": [{"field-id": 8, "names": ["element"], "fields": [{"field-id": 9, "names": ["x"]}, {"field-id": 10, "names": ["why"]}]}]},
        {"field-id": 4, "names": ["m"], "fields": [{"field-id": 11, "names": ["key"]}, {"field-id": 12, "names": ["value"], "fields": [{"field-id": 13, "names": ["x"]}]}]}
    ]"""
    old = pa.struct([("ex", pa.int32()), ("hidden", pa.int8())])
    theirs = pa.table(
        {
            "S": pa.array([{"ex": 1, "hidden": 5}, None], old),
            "ID": pa.array([7, 8], pa.int32()),
            "l": pa.array([[{"x": 2, "why": "w"}, None], []], pa.list_(pa.struct([("x", pa.int32()), ("why", pa.string())]))),
            "m": pa.array([[("k", {"x": 3, "y": "unmapped"})], None], pa.map_(pa.string(), pa.struct([("x", pa.int64()), ("y", pa.string())]))),
        }
    )  # fmt: skip
    table = replaced(tmp_path, schema, theirs, mapping)
    ids = [field.field_id for field in table.schema().fields]
    assert ids[:4] == [1, 2, 3, 4]
    with table.update_schema() as update:
        update.rename_column("id", "number")
    found = table.scan(selected_fields=("number", "s", "l", "m")).to_arrow().to_pylist()
    assert found == [
        {"number": 7, "s": {"x": 1, "y": None}, "l": [{"x": 2, "y": "w"}, None], "m": [("k", {"x": 3, "y": None})]},
        {"number": 8, "s": None, "l": [], "m": None},
    ]
    assert table.scan("s.x = 1", selected_fields=("number",)).to_arrow().to_pylist() == [{"number": 7}]
    assert table.scan("s.y IS NULL", selected_fields=("number",)).to_arrow().to_pylist() == [
        {"number": 7},
        {"number": 8},
    ]


def test_without_a_mapping_columns_stand_by_position(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", pa.string())])
    table = replaced(tmp_path, schema, pa.table({"a": [1], "b": ["x"]}))
    assert table.scan(selected_fields=("v", "id")).to_arrow().to_pylist() == [{"v": "x", "id": 1}]


def test_int96_keeps_the_nanoseconds_that_its_column_has(tmp_path: Path) -> None:
    nanos = [-1, 1, 999, 1001, 123456789, 2**63 - 1, 1 - 2**63, None]
    micros = [-1, 0, 0, 1, 123456, 2**63 // 1000, -(2**63 // 1000) - 1, None]
    flat = pa.array(nanos, pa.timestamp("ns"))
    lists = pa.ListArray.from_arrays(range(len(flat) + 1), flat)
    path = tmp_path / "a.parquet"
    theirs = pa.table({"t": flat, "s": pa.StructArray.from_arrays([flat], ["t"]), "l": lists})
    pq.write_table(theirs, path, **INT96)
    catalog = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    for unit, expected in (("ns", nanos), ("us", micros)):
        for zone in ("UTC", None):
            kind = pa.timestamp(unit, zone)
            schema = pa.schema([("t", kind), ("s", pa.struct([("t", kind)])), ("l", pa.list_(kind))])
            table = catalog.create_table(f"a.{unit}_{zone}", schema, properties={"format-version": "3"})
            table.add_files([str(path)])
            every = ("t", "s", "l", "_pos")
            for scan in (
                table.scan(),
                table.scan("t IS NOT NULL"),
                table.scan("s.t IS NOT NULL", selected_fields=every),
            ):
                rows = scan.to_arrow()
                wanted = expected[: len(rows)]
                assert rows.column("t").type == kind
                assert rows.column("t").cast(pa.int64()).to_pylist() == wanted
                assert rows.column("s").combine_chunks().field("t").cast(pa.int64()).to_pylist() == wanted
                assert rows.column("l").combine_chunks().flatten().cast(pa.int64()).to_pylist() == wanted
            assert len(table.scan("t IS NOT NULL").to_arrow()) == 7


@pytest.mark.parametrize("options", [INT96, {"version": "2.6"}], ids=["int96", "int64"])
def test_a_nanosecond_before_1970_is_in_a_microsecond_before_1970(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "a.parquet"
    nanos = pa.array([-1001, -1000, -999, -1, 0, 1, None], pa.timestamp("ns"))
    pq.write_table(pa.table({"t": nanos}), path, **options)
    catalog = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", pa.schema([("t", pa.timestamp("us"))]))
    table.add_files([str(path)])
    assert table.scan().to_arrow()["t"].cast(pa.int64()).to_pylist() == [-2, -1, -1, -1, 0, 0, None]
    assert table.scan("t < '1970-01-01T00:00:00'").to_arrow()["t"].cast(pa.int64()).to_pylist() == [-2, -1, -1, -1]
    assert table.scan("t = '1969-12-31T23:59:59.999999'").to_arrow().num_rows == 3


@pytest.mark.parametrize("year", [1, 1677, 2263, 9999])
@pytest.mark.parametrize("column", ["t", "s.t", "l.element", "m.key_value.value"])
def test_int96_that_no_nanoseconds_hold_is_an_error_that_names_the_column(
    tmp_path: Path, year: int, column: str
) -> None:
    path = tmp_path / "a.parquet"
    kind, day = pa.timestamp("us"), dt.datetime.fromisoformat(f"{year:04}-01-01")
    name = column[0]
    types = {"t": kind, "s": pa.struct([("t", kind)]), "l": pa.list_(kind), "m": pa.map_(pa.string(), kind)}
    values = {"t": NOON, "s": {"t": NOON}, "l": [NOON], "m": [("k", NOON)]}
    odd = {"t": day, "s": {"t": day}, "l": [None, day], "m": [("k", day)]}
    schema = pa.schema([("id", pa.int64()), *types.items()])
    good = {"id": 1, **values}
    pq.write_table(pa.Table.from_pylist([good, {**good, "id": 2, name: odd[name]}, good], schema), path, **INT96)
    catalog = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    nanos = pa.timestamp("ns")
    types = {"t": nanos, "s": pa.struct([("t", nanos)]), "l": pa.list_(nanos), "m": pa.map_(pa.string(), nanos)}
    wide = pa.schema([("id", pa.int64()), *types.items()])
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("a.t", wide, properties=properties)
    table.add_files([str(path)])
    message = rf"a\.parquet: column {column}: an INT96 timestamp is outside 1677 to 2262"
    for scan in (table.scan(), table.scan("id = 1"), table.scan(selected_fields=(name, "_pos"))):
        with pytest.raises(CorruptDataError, match=message):
            scan.to_arrow()
    others = tuple(field for field in wide.names if field != name)
    assert table.scan(selected_fields=others).to_arrow().num_rows == 3
    table.delete("id = 2")
    assert table.scan().to_arrow().num_rows == 2
