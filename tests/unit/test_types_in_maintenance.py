"""Columns of every type in statistics and as the keys of sorted compactions."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice

#: A type, and different values of it for different numbers below 60.
TYPES: dict[str, tuple[pa.DataType, object]] = {
    "boolean": (pa.bool_(), lambda k: k % 2 == 0),
    "int": (pa.int32(), lambda k: k - 30),
    "long": (pa.int64(), lambda k: (k - 30) * 10**12),
    "float": (pa.float32(), lambda k: (k - 30) / 4),
    "double": (pa.float64(), lambda k: (k - 30) / 3),
    "decimal_9_2": (pa.decimal128(9, 2), lambda k: Decimal(k - 30) / 4),
    "decimal_38_10": (pa.decimal128(38, 10), lambda k: Decimal(k - 30) * 10**20),
    "date": (pa.date32(), lambda k: k - 30),
    "time": (pa.time64("us"), lambda k: k * 10**9),
    "timestamp": (pa.timestamp("us"), lambda k: k - 30),
    "timestamptz": (pa.timestamp("us", "UTC"), lambda k: k - 30),
    "timestamp_ns": (pa.timestamp("ns"), lambda k: k - 30),
    "timestamptz_ns": (pa.timestamp("ns", "UTC"), lambda k: k - 30),
    "string": (pa.string(), lambda k: "x" * (k + 1)),
    "binary": (pa.binary(), lambda k: bytes([k] * 3)),
    "fixed": (pa.binary(5), lambda k: bytes([k] * 5)),
    "uuid": (pa.uuid(), lambda k: bytes([k] * 16)),
}
ROWS = 300


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    rng = random.Random(7)
    columns = {}
    for name, (ty, value) in TYPES.items():
        columns[name] = pa.array([value(rng.randrange(60)) if rng.random() > 0.1 else None for _ in range(ROWS)], ty)
    return pa.table(columns)


@pytest.fixture
def table(tmp_path: Path, rows: pa.Table) -> ice.Table:
    catalog = ice.load_catalog("here", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/data")
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", rows.schema, properties={"format-version": "3"})
    for start in range(0, ROWS, 60):
        table.append(rows.slice(start, 60))
    return table


def of(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


def test_distinct_values_of_every_type_are_counted(table: ice.Table, rows: pa.Table) -> None:
    counted = table.maintenance.compute_table_stats().distinct
    assert counted == {name: len(set(rows[name].to_pylist()) - {None}) for name in TYPES}


@pytest.mark.parametrize("curve", ["zorder", "hilbert", "sorted"])
def test_every_type_is_a_key(table: ice.Table, rows: pa.Table, curve: str) -> None:
    names = ", ".join(TYPES)
    order = names if curve == "sorted" else f"{curve}({names})"
    done = table.maintenance.compact(options={"rewrite-all": True}, sort_order=order)
    assert done.rewritten_data_files_count == ROWS // 60
    table.refresh()
    assert of(table.scan().to_arrow()) == of(rows)
