"""Every type in the frames of other libraries: its values, or what stands for them."""

from __future__ import annotations

from datetime import date, datetime, time, timezone
from decimal import Decimal
from uuid import UUID

import polars as pl
import pyarrow as pa
import pytest

import icefield as ice

UTC = timezone.utc
FIVE = UUID(int=5)

#: Values of each type; the last row of each table is null.
TYPES = {
    "boolean": [True, False],
    "int": [1, -(2**31)],
    "long": [2**62, -(2**63)],
    "float": [1.5, -0.0],
    "double": [1.5, -1e300],
    "decimal(9,2)": [Decimal("1.25")],
    "decimal(38,10)": [Decimal("-1234567890123456789012345678.0123456789")],
    "date": [date(1, 1, 1), date(9999, 12, 31)],
    "time": [time(1, 2, 3, 4), time(23, 59, 59, 999999)],
    "timestamp": [datetime.fromisoformat("0001-01-01T00:00:00"), datetime.fromisoformat("9999-12-31T23:59:59.999999")],
    "timestamptz": [datetime(2020, 1, 1, 12, tzinfo=UTC)],
    "timestamp_ns": [datetime.fromisoformat("2020-01-01T00:00:00.000001")],
    "timestamptz_ns": [datetime(2020, 1, 1, 12, tzinfo=UTC)],
    "string": ["", "ä", "\U0010ffff"],
    "uuid": [FIVE],
    "fixed[4]": [b"abcd"],
    "binary": [b"", b"\xff\x00"],
}

#: What Polars has for values that it has no type for.
IN_POLARS = {FIVE: FIVE.bytes}
#: DuckDB makes Python's datetimes of these by a package of its own.
BY_ARROW_IN_DUCKDB = {"timestamptz", "timestamptz_ns"}

NESTED = pa.table(
    {
        "id": pa.array([0, 1, 2], pa.int64()),
        "tags": pa.array([["a", None], [], None], pa.list_(pa.string())),
        "pairs": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int32())),
        "place": pa.array([{"x": 1, "at": [date(2020, 1, 1)]}, {"x": None, "at": None}, None]),
    }
)


@pytest.fixture
def catalog(tmp_path):
    with ice.load_catalog("local", type="in-memory", warehouse=str(tmp_path / "wh")) as catalog:
        catalog.create_namespace("a")
        yield catalog


def made(catalog, kind, values):
    schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "v", kind))
    table = catalog.create_table("a.t", schema=schema, properties={"format-version": "3"})
    arrow = schema.to_arrow().field("v").type
    stored = arrow.storage_type if isinstance(arrow, pa.BaseExtensionType) else arrow
    array = pa.array([*(value.bytes if isinstance(value, UUID) else value for value in values), None], stored)
    if stored is not arrow:
        array = pa.ExtensionArray.from_storage(arrow, array)
    return table.append(pa.table({"id": pa.array(range(len(array)), pa.int64()), "v": array}))


@pytest.mark.parametrize("kind", TYPES)
def test_values_of_a_type_in_every_frame(catalog, kind):
    values = [*TYPES[kind], None]
    table = made(catalog, kind, TYPES[kind])
    scan = table.scan()
    assert scan.to_arrow()["v"].to_pylist() == values
    assert pa.table(table)["v"].to_pylist() == values
    assert scan.to_pyarrow_dataset().to_table(columns=["v"])["v"].to_pylist() == values
    pandas = scan.to_pandas()["v"]
    assert pandas.isna().tolist() == [value is None for value in values]
    assert pandas.tolist()[:-1] == values[:-1]
    in_polars = [IN_POLARS.get(value, value) for value in values]
    for frame in (scan.to_polars(), table.to_polars().collect(), pl.DataFrame(table)):
        assert frame["v"].to_list() == in_polars
    found = scan.to_duckdb("t").sql("SELECT v FROM t ORDER BY id")
    rows = (
        found.to_arrow_table()["v"].to_pylist() if kind in BY_ARROW_IN_DUCKDB else [row[0] for row in found.fetchall()]
    )
    assert rows == values


@pytest.mark.parametrize("kind", TYPES)
def test_nulls_and_values_are_told_apart_by_pushed_conditions(catalog, kind):
    table = made(catalog, kind, TYPES[kind])
    count = len(TYPES[kind])
    assert table.to_polars().filter(pl.col("v").is_null()).collect()["id"].to_list() == [count]
    assert table.to_polars().filter(pl.col("v").is_not_null()).collect().height == count
    connection = table.scan().to_duckdb("t")
    assert connection.sql("SELECT id FROM t WHERE v IS NULL").fetchall() == [(count,)]
    assert connection.sql("SELECT count(*) FROM t WHERE v IS NOT NULL").fetchall() == [(count,)]


def test_nested_values(catalog):
    table = catalog.create_table("a.t", schema=NESTED).append(NESTED)
    scan = table.scan()
    expected = NESTED.to_pylist()
    assert scan.to_arrow().to_pylist() == expected
    assert scan.to_pyarrow_dataset().to_table().to_pylist() == expected
    # Polars has maps as dictionaries.
    as_polars = [{**row, "pairs": row["pairs"] if row["pairs"] is None else dict(row["pairs"])} for row in expected]
    for frame in (scan.to_polars(), table.to_polars().collect()):
        assert frame.to_dicts() == as_polars
    assert table.to_polars().select(pl.col("place").struct.field("x")).collect()["x"].to_list() == [1, None, None]
    connection = scan.to_duckdb("t")
    assert connection.sql("SELECT place.x, pairs['k'], tags[1] FROM t ORDER BY id").fetchall()[0] == (1, 1, "a")
    assert list(scan.to_pandas()["id"]) == [0, 1, 2]


def test_a_table_without_rows_has_the_same_columns_everywhere(catalog):
    full = catalog.create_table("a.full", schema=NESTED).append(NESTED)
    empty = catalog.create_table("a.empty", schema=NESTED)
    assert empty.scan().to_arrow().schema == full.scan().to_arrow().schema
    assert empty.scan().to_polars().schema == full.scan().to_polars().schema == full.to_polars().collect_schema()
    assert empty.to_polars().collect().schema == full.to_polars().collect().schema
    assert empty.scan().to_duckdb("t").sql("SELECT * FROM t").columns == NESTED.schema.names
    assert list(empty.scan().to_pandas().columns) == NESTED.schema.names
