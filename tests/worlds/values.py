"""Values of each primitive type: some that meet, the extremes, and how they look in Arrow and in JSON."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa

DAY = 86_400_000_000
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001
NANOS = ("timestamp_ns", "timestamptz_ns")
TEMPORAL = ("date", "time", "timestamp", "timestamptz", *NANOS)


def decimal(unscaled: int, scale: int) -> Decimal:
    """Give a decimal, whatever the precision of the context."""
    return Decimal((unscaled < 0, tuple(int(digit) for digit in str(abs(unscaled))), -scale))


POOLS: dict[str, list[Any]] = {
    "boolean": [False, True],
    "int": [-(2**31), -1001, -11, -10, -1, 0, 1, 9, 10, 11, 99, 100, 2**31 - 1],
    "long": [-(2**63), -1_000_000, -11, -1, 0, 1, 5, 9, 10, 79, 80, 2**31, 2**63 - 1],
    "float": [-math.inf, -(2.0**100), -1.5, -0.0, 0.0, 0.5, 1.5, 3.25, 2.0**100, math.inf],
    "double": [-math.inf, -1e300, -1.5, -0.0, 0.0, 0.1, 1.5, 3.25, 1e300, math.inf],
    "decimal(9, 2)": [decimal(n, 2) for n in (-999_999_999, -10_001, -100, -1, 0, 1, 999, 1420, 999_999_999)],
    "decimal(38, 10)": [decimal(n, 10) for n in (-(10**30), -1, 0, 1, 10**10, 10**37)],
    "date": [-719_162, -20_000, -366, -1, 0, 1, 364, 365, 17_501, 17_532, 2_932_896],
    "time": [0, 1, 3_600_000_000, 36_775_038_194, DAY - 1],
    "timestamp": [-DAY * 400, -DAY - 1, -3_600_000_000, -1, 0, 1, 3_599_999_999, DAY * 364, 1_512_151_975_038_194],
    "timestamp_ns": [-DAY * 400_001, -1001, -1, 0, 999, 1000, DAY * 364_000, 1_512_151_975_038_194_001],
    "string": ["", "a", "ab", "abc", "abd", "b", "ba", "z" * 20, "é", "日本", "\uffff", "~"],
    "binary": [b"", b"\0", b"\0\1", b"\x7f", b"\x80", b"\xff\xff", b"abcdefghijklmnopqrst"],
    "fixed[4]": [b"\0\0\0\0", b"\0\0\0\1", b"\x7f\xff\0\0", b"\x80\0\0\0", b"\xff\xff\xff\xff"],
    "uuid": [
        bytes(16),
        bytes(15) + b"\1",
        bytes(8) + b"\x80" + bytes(7),
        b"\x7f" + bytes(15),
        b"\x7f" + bytes(7) + b"\xff" * 8,
        b"\x80" + bytes(15),
        b"\xff" * 16,
    ],
}
POOLS["timestamptz"] = POOLS["timestamp"]
POOLS["timestamptz_ns"] = POOLS["timestamp_ns"]

#: Ticks of a second.
SECOND = {
    "timestamp": 1_000_000,
    "timestamptz": 1_000_000,
    "timestamp_ns": 1_000_000_000,
    "timestamptz_ns": 1_000_000_000,
}
#: Values that ORC can hold: seconds are cut toward zero there, so that the last one before 1970 is lost.
ORC_POOLS = {
    kind: [value for value in pool if kind not in SECOND or not -SECOND[kind] < value < 0]
    for kind, pool in POOLS.items()
}


def to_array(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Make an Arrow array of plain values; structs are dicts, lists are lists, maps are lists of pairs."""
    if isinstance(type_, pa.UuidType):
        return pa.ExtensionArray.from_storage(type_, pa.array(values, type_.storage_type))
    if pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).view(type_)
    if pa.types.is_temporal(type_):
        return pa.array(values, pa.int64()).view(type_)
    if pa.types.is_struct(type_):
        fields = [type_.field(place) for place in range(type_.num_fields)]
        columns = [
            to_array([None if row is None else row[field.name] for row in values], field.type) for field in fields
        ]
        missing = pa.array([row is None for row in values], pa.bool_())
        return pa.StructArray.from_arrays(columns, fields=fields, mask=missing)
    return pa.array(values, type_)


def from_array(array: pa.Array) -> list[Any]:
    """Give the plain values of an Arrow array."""
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    type_ = array.type
    if pa.types.is_date32(type_):
        array = array.view(pa.int32())
    elif pa.types.is_temporal(type_):
        array = array.view(pa.int64())
    return array.to_pylist()


def is_nan(value: Any) -> bool:
    """Whether it is not a number."""
    return isinstance(value, float) and math.isnan(value)


def order(value: Any) -> Any:
    """Give a key that sorts as the specification does: -0.0 before 0.0, strings by code point."""
    if isinstance(value, float):
        return (value, math.copysign(1.0, value))
    return value


def to_json(value: Any, type_: str) -> Any:
    """Give a value as JSON ("Appendix D: Single-value serialization")."""
    if type_ == "date":
        return (EPOCH + dt.timedelta(days=value)).date().isoformat()
    if type_ == "time":
        return (EPOCH + dt.timedelta(microseconds=value)).time().isoformat()
    if type_ in NANOS:
        whole, nanos = divmod(value, 1000)
        text = (EPOCH + dt.timedelta(microseconds=whole)).isoformat(timespec="microseconds") + f"{nanos:03}"
        return text + ("+00:00" if type_ == "timestamptz_ns" else "")
    if type_ in TEMPORAL:
        text = (EPOCH + dt.timedelta(microseconds=value)).isoformat()
        return text + ("+00:00" if type_ == "timestamptz" else "")
    if type_ == "uuid":
        return str(uuid.UUID(bytes=value))
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value
