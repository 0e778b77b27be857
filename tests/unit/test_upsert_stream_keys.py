"""Keys of streams of upserts: every type that the specification allows, in every format, and none that it does not."""

from __future__ import annotations

import decimal
import json
import random
import uuid
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import IcefieldError, InvalidArgumentError

MOMENTS = [datetime(2024, 1, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)]
LOCAL = [moment.replace(tzinfo=None) for moment in MOMENTS]
VALUES: dict[str, list[Any]] = {
    "boolean": [True, False],
    "int": [-1, 2147483647],
    "long": [0, -(2**63)],
    "decimal(9, 2)": [decimal.Decimal("-1.00"), decimal.Decimal("2.50")],
    "decimal(38, 0)": [decimal.Decimal(10) ** 37, decimal.Decimal(0)],
    "date": [date(2024, 1, 1), date(1, 1, 1)],
    "time": [time(0), time(23, 59, 59, 999999)],
    "timestamp": LOCAL,
    "timestamptz": MOMENTS,
    "timestamp_ns": LOCAL,
    "timestamptz_ns": MOMENTS,
    "string": ["", "a\u0000b"],
    "uuid": [uuid.UUID(int=1).bytes, uuid.UUID(int=2**128 - 1).bytes],
    "fixed[3]": [b"abc", b"\0\0\0"],
    "binary": [b"", b"\xff"],
}
POINT: dict[str, Any] = {
    "type": "struct",
    "fields": [{"id": 20, "name": "x", "required": False, "type": "int"}],
}


def make(folder: Path, *columns: tuple[str, Any], file_format: str = "parquet") -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(folder))
    catalog.create_namespace("a")
    fields = [
        {"id": number + 1, "name": name, "required": False, "type": kind} for number, (name, kind) in enumerate(columns)
    ]
    schema = ice.Schema.from_json(json.dumps({"type": "struct", "schema-id": 0, "fields": fields}))
    properties = {"format-version": "3", "write.format.default": file_format}
    return catalog.create_table("a.t", schema=schema, properties=properties)


def array(values: list[Any], kind: pa.DataType) -> pa.Array:
    if isinstance(kind, pa.ExtensionType):
        return pa.ExtensionArray.from_storage(kind, pa.array(values, kind.storage_type))
    return pa.array(values, kind)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("kind", VALUES)
def test_every_type_is_a_key(tmp_path: Path, kind: str, file_format: str) -> None:
    first, second = VALUES[kind]
    table = make(tmp_path, ("k", kind), ("v", "int"), file_format=file_format)
    type_of_key = table.schema().to_arrow().field("k").type

    def rows(keys: list[Any], values: list[int]) -> pa.Table:
        return pa.table({"k": array(keys, type_of_key), "v": pa.array(values, pa.int32())})

    table.append(rows([first, second, None], [1, 2, 3]))
    with table.upsert_stream("k") as stream:
        stream.upsert(rows([first, None], [10, 30]))
    with table.upsert_stream("k") as stream:
        stream.delete(rows([second], [0]).select(["k"]))
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [10, 30]


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        ("float", "no floating-point numbers"),
        ("double", "no floating-point numbers"),
        ("geometry", "no equality"),
        ("geography", "no equality"),
        ("unknown", "no values"),
        ("variant", "primitive"),
        (POINT, "primitive"),
        ({"type": "list", "element-id": 20, "element": "int", "element-required": False}, "primitive"),
    ],
)
def test_what_the_specification_does_not_allow(tmp_path: Path, kind: Any, why: str) -> None:
    table = make(tmp_path, ("id", "long"), ("k", kind))
    before = table.metadata_location
    for key in ("k", ["id", "k"]):
        with pytest.raises(IcefieldError, match=f"column k.*{why}"):
            table.upsert_stream(key)
    assert table.refresh().metadata_location == before


def test_keys_inside_of_lists_and_maps(tmp_path: Path) -> None:
    other = {"type": "struct", "fields": [{"id": 21, "name": "x", "required": False, "type": "int"}]}
    points = {"type": "list", "element-id": 30, "element": other, "element-required": False}
    table = make(tmp_path, ("id", "long"), ("s", POINT), ("l", points))
    with pytest.raises(IcefieldError, match="list"):
        table.upsert_stream("l.element.x")
    with table.upsert_stream("s.x") as stream:
        rows = {"id": [1], "s": [{"x": 1}]}
        stream.upsert(pa.table(rows, pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int32())]))])))
    assert table.scan().count() == 1


@pytest.mark.parametrize("seed", range(6))
def test_random_keys_of_several_columns_against_a_dict(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    kinds = chosen.sample(sorted(VALUES), 3)
    columns = [*((f"k{number}", kind) for number, kind in enumerate(kinds)), ("v", "int")]
    table = make(tmp_path, *columns, file_format=chosen.choice(["parquet", "orc", "avro"]))
    schema = table.schema().to_arrow()
    model: dict[tuple[Any, ...], int] = {}

    def rows(keys: list[tuple[Any, ...]], values: list[int]) -> pa.Table:
        arrays = [array([key[at] for key in keys], schema.field(f"k{at}").type) for at in range(3)]
        return pa.table([*arrays, pa.array(values, pa.int32())], names=["k0", "k1", "k2", "v"])

    for value in range(6):
        with table.upsert_stream(["k0", "k1", "k2"]) as stream:
            for part in range(2):
                keys = [tuple(chosen.choice([*VALUES[kind], None]) for kind in kinds) for _ in range(5)]
                if chosen.random() < 0.6:
                    numbers = [value * 100 + part * 10 + at for at in range(5)]
                    stream.upsert(rows(keys, numbers))
                    model.update(zip(keys, numbers, strict=True))
                else:
                    stream.delete(rows(keys, [0] * 5).drop(["v"]))
                    for key in keys:
                        model.pop(key, None)
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == sorted(model.values())


def test_a_key_that_is_named_twice_or_not_there(tmp_path: Path) -> None:
    table = make(tmp_path, ("id", "long"), ("v", "int"))
    with pytest.raises(InvalidArgumentError, match="none"):
        table.upsert_stream(["id", "none"])
    with pytest.raises(InvalidArgumentError, match='"id" is used'):
        table.upsert_stream(["id", "id"])
