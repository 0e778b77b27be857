"""Uuids on both sides of ``80000000-...``: Java orders them otherwise, and neither loses rows of the other's tables."""

from __future__ import annotations

import operator
import uuid
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

FIRST = ("00000000-0000-4000", "10000000-0000-4000", "7fffffff-ffff-4fff", "80000000-0000-4000", "f0000000-0000-4000")
UUIDS = [uuid.UUID(f"{first}-{second}-000000000001") for first in FIRST for second in ("9000", "1000")]
SCHEMA = pa.schema([("id", pa.int64()), ("u", pa.uuid())])


def rows(places: range) -> pa.Table:
    data = pa.array([UUIDS[place].bytes for place in places], pa.binary(16))
    return pa.table({"id": pa.array(places, pa.int64()), "u": data})


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
@pytest.mark.parametrize("partition", [[], ["u"], ['bucket(3, "u")']])
def test_neither_loses_rows(java: Java, tmp_path: Path, file_format: str, partition: list[str]) -> None:
    name = f"uuids_{file_format}_{len(partition and partition[0])}"
    catalog = ice.load_catalog(name, uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    properties = {"write.format.default": file_format}
    ours = catalog.create_table("a.ours", SCHEMA, partition_by=partition, properties=properties)
    theirs = catalog.create_table("a.theirs", SCHEMA, partition_by=partition, properties=properties)
    java.catalog(name, tmp_path / "c.db", tmp_path / "wh")
    for part in (range(10), range(3, 7)):
        ours.append(rows(part))
        values = ", ".join(f"({place}, '{UUIDS[place]}')" for place in part)
        java.sql(f"INSERT INTO {name}.a.theirs VALUES {values}")
    written = sorted([*range(10), *range(3, 7)])
    single = [f"SELECT id FROM {name}.a.ours WHERE u = '{value}'" for value in UUIDS]
    assert sorted(java.rows(" UNION ALL ".join(single))["id"].to_pylist()) == written, "Java loses rows of ours"
    theirs = catalog.load_table("a.theirs")
    for table, value in product((ours, theirs), UUIDS):
        for sign, holds in {"=": operator.eq, "<": operator.lt, ">=": operator.ge}.items():
            found = table.scan(f"u {sign} '{value}'").to_arrow()["id"].to_pylist()
            assert sorted(found) == [place for place in written if holds(UUIDS[place], value)], (sign, value)
