"""Rows in the Arrow types that a consumer requests (`__arrow_c_stream__(requested_schema)`), nested ones too."""

from __future__ import annotations

import datetime as dt
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice

UUID = uuid.UUID(int=0x0123456789ABCDEF0123456789ABCDEF)
#: A microsecond before 1970 and 1 ns: rounded down, not towards zero.
NANOS = -1_001
ZONED = dt.datetime(1969, 12, 31, 23, 59, 59, 999_998, tzinfo=dt.timezone.utc)
#: The type of a column, a value, the requested type, the value in it.
CASES: dict[str, tuple[pa.DataType, Any, pa.DataType, Any]] = {
    "uuid": (pa.uuid(), UUID.bytes, pa.string(), str(UUID)),
    "fixed": (pa.binary(3), b"abc", pa.binary(), b"abc"),
    "fixed of the length of a uuid": (pa.binary(16), b"0123456789abcdef", pa.binary(), b"0123456789abcdef"),
    "nanoseconds": (pa.timestamp("ns"), NANOS, pa.timestamp("us"), ZONED.replace(tzinfo=None)),
    "nanoseconds with a zone": (
        pa.timestamp("ns", "UTC"),
        NANOS,
        pa.timestamp("us", "UTC"),
        ZONED,
    ),
    "time": (pa.time64("us"), 1_000_001, pa.time64("ns"), dt.time(0, 0, 1, 1)),
    "text": (pa.string(), "é", pa.large_string(), "é"),
    "binary": (pa.binary(), b"\xff", pa.dictionary(pa.int32(), pa.binary()), b"\xff"),
}


def nested(ty: pa.DataType, value: Any) -> tuple[list[pa.DataType], list[Any]]:
    """A type by itself, and in a list, a struct and a map; and values of these."""
    types = [ty, pa.list_(ty), pa.struct([("x", ty)]), pa.map_(pa.string(), ty), pa.list_(pa.struct([("y", ty)]))]
    return types, [value, [value, None], {"x": value}, [("k", value), ("n", None)], [{"y": value}, {"y": None}, None]]


@pytest.fixture
def catalog(tmp_path: Path) -> ice.catalog.Catalog:
    catalog = ice.load_catalog("here", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/data")
    catalog.create_namespace("db")
    return catalog


@pytest.mark.parametrize("case", CASES)
def test_values_are_cast_at_every_depth(catalog: ice.catalog.Catalog, case: str) -> None:
    ty, value, wanted, expected = CASES[case]
    types, values = nested(ty, value)
    names = [f"c{place}" for place in range(len(types))]
    schema = pa.schema(list(zip(names, types, strict=True)))
    table = catalog.create_table("db.t", schema, properties={"format-version": "3"})
    # pyarrow makes no arrays of uuids in lists.
    stored, _ = nested(pa.binary(16) if ty == pa.uuid() else ty, value)
    columns = [pa.array([one, None], kind) for one, kind in zip(values, stored, strict=True)]
    table.append(pa.table(columns, names))
    wanted_types, expected_values = nested(wanted, expected)
    requested = pa.schema(list(zip(names, wanted_types, strict=True)))
    capsule = table.scan().__arrow_c_stream__(requested.__arrow_c_schema__())
    rows = pa.RecordBatchReader._import_from_c_capsule(capsule).read_all()
    assert rows.schema.types == requested.types
    rows.validate(full=True)
    assert rows.to_pylist() == [dict(zip(names, expected_values, strict=True)), dict.fromkeys(names)]
