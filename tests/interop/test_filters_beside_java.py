"""Filters whose meaning the specification leaves open: ours and Java's, on rows with nulls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

FAR = 2**40
FILTERS = {
    # A comparison that every value passes, or none, is no test any more: null passes with all others.
    "every value": [("lt", FAR), ("lt-eq", FAR), ("gt", -FAR), ("gt-eq", -FAR), ("not-eq", FAR)],
    "no value": [("gt", FAR), ("gt-eq", FAR), ("lt", -FAR), ("lt-eq", -FAR), ("eq", FAR)],
    # Order within the type is left out: the library's reader takes null for less than all values.
    "within": [("eq", 1), ("not-eq", 1)],
}
ROWS = pa.table(
    {
        "id": pa.array(range(4), pa.int64()),
        "n": pa.array([1, None, -(2**31), 2**31 - 1], pa.int32()),
        "m": pa.array([None, [("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "l": pa.array([[1], None, [], None], pa.list_(pa.int32())),
        "st": pa.array([{"p": 1}, None, {"p": None}, {"p": 2}], pa.struct([("p", pa.int32())])),
    }
)


@pytest.mark.parametrize("file_format", ["parquet", "orc"])
def test_rows_are_those_of_java(java: Java, tmp_path: Path, file_format: str) -> None:
    name = f"filters_{file_format}"
    catalog = ice.load_catalog(name, uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ROWS, properties={"write.format.default": file_format})
    table.append(ROWS)
    java.catalog(name, tmp_path / "c.db", tmp_path / "wh")
    filters = [{"type": op, "term": "n", "value": value} for tests in FILTERS.values() for op, value in tests]
    filters += [{"type": "in", "term": "n", "values": [FAR, 1]}, {"type": "not-in", "term": "n", "values": [FAR, 1]}]
    filters += [{"type": op, "term": term} for op in ("is-null", "not-null") for term in ("m", "l", "st", "st.p")]
    filters += [{"type": "not", "child": one} for one in filters]
    texts = [json.dumps(one) for one in filters]
    theirs = java.do("ids", table=f"{name}.a.t", filters=texts)
    for text, expected in zip(texts, theirs, strict=True):
        scan = table.scan(ice.expressions.from_json(text))
        assert sorted(scan.to_arrow()["id"].to_pylist()) == expected, text
        assert scan.count() == len(expected), text


def test_structs_without_fields(java: Java, tmp_path: Path) -> None:
    """Java makes them, we do not; neither library writes them to Parquet, and both to ORC."""
    catalog = ice.load_catalog("hollow", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    java.catalog("hollow", tmp_path / "c.db", tmp_path / "wh")
    for file_format in ("parquet", "orc"):
        table = catalog.create_table(
            f"a.{file_format}", ROWS.select(["id", "st"]), properties={"write.format.default": file_format}
        )
        table.append(ROWS.select(["id", "st"]))
        with pytest.raises(ice.InvalidArgumentError, match=r'"st" is a struct without fields'):
            table.update_schema().delete_column(("st", "p")).commit()
        java.sql(f"ALTER TABLE hollow.a.{file_format} DROP COLUMN st.p")
        table.refresh()
        more = pa.table({"id": pa.array([9], pa.int64())})
        if file_format == "parquet":
            with pytest.raises(RuntimeError, match="(?i)empty group|empty schema"):
                java.sql(f"INSERT INTO hollow.a.{file_format} (id) VALUES (8)")
            with pytest.raises(ice.errors.UnsupportedFeatureError, match="st: a Parquet file cannot hold a struct"):
                table.append(more)
        else:
            table.append(more)
        found = table.scan().to_arrow()
        assert found["st"].to_pylist()[-4:] == [{}, None, {}, {}]
