"""Conditions of merges that compare columns: what DuckDB's SQL says of the same rows, and what is refused."""

from __future__ import annotations

import decimal
import math
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError


def make(folder: Path, rows: pa.Table, version: int = 2) -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(folder))
    catalog.create_namespace("a")
    return catalog.create_table("a.t", schema=rows, properties={"format-version": str(version)}).append(rows)


TYPES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int32(), [1, 2, -2147483648]),
    "long": (pa.int64(), [1, 2, 9007199254740993]),
    "float": (pa.float32(), [1.0, 0.5, -0.0, math.nan, math.inf]),
    "double": (pa.float64(), [1.0, 0.0, 2.5, math.nan]),
    "decimal(9, 2)": (pa.decimal128(9, 2), [decimal.Decimal("1.00"), decimal.Decimal("2.50")]),
    "decimal(38, 10)": (pa.decimal128(38, 10), [decimal.Decimal(1), decimal.Decimal("-3.5")]),
    "date": (pa.date32(), [date(2024, 5, 1), date(1969, 12, 31)]),
    "timestamp": (
        pa.timestamp("us"),
        [datetime.fromisoformat("2024-05-01"), datetime.fromisoformat("2024-05-01T00:00:00.000001")],
    ),
    "timestamptz": (pa.timestamp("us", "UTC"), [datetime(2024, 5, 1, tzinfo=UTC), datetime(1960, 1, 1, tzinfo=UTC)]),
    "time": (pa.time64("us"), [time(1), time(2, 3, 4, 5)]),
    "string": (pa.string(), ["a", "", "é", "aa"]),
    "binary": (pa.binary(), [b"a", b"", b"\xff"]),
    "boolean": (pa.bool_(), [True, False]),
}
#: Types that are compared, beside those that are the same.
NUMBERS = ("int", "long", "float", "double", "decimal(9, 2)", "decimal(38, 10)")
PAIRS = [
    *((one, one) for one in TYPES),
    *((one, other) for one in NUMBERS for other in NUMBERS if one != other),
    ("date", "timestamp"),
    ("timestamp", "date"),
]


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_what_duckdb_says(tmp_path: Path, left: str, right: str) -> None:
    (left_type, left_values), (right_type, right_values) = TYPES[left], TYPES[right]
    pairs = [(a, b) for a in [*left_values, None] for b in [*right_values, None]]
    target = pa.table({"id": range(len(pairs)), "x": pa.array([a for a, _ in pairs], left_type)})
    source = pa.table({"id": range(len(pairs)), "y": pa.array([b for _, b in pairs], right_type)})
    table = make(tmp_path, target)
    joined = duckdb.sql("select target.id, target.x, source.y from target join source using (id)").to_arrow_table()  # noqa: F841
    for sign in ("<", "<=", ">", ">=", "=", "<>"):
        plain = f"target.x {sign} source.y"
        for condition in (plain, f"NOT ({plain})", f"source.y {sign} target.x AND target.id <> 1"):
            sql = condition.replace("target.", "").replace("source.", "")
            expected = [row[0] for row in duckdb.sql(f"select id from joined where {sql} order by id").fetchall()]
            changed = table.merge(source, "id", dry_run=True).when_matched_delete(condition).execute()
            assert changed.rows_deleted == len(expected), condition
    table.merge(source, "id").when_matched_delete("target.x >= source.y OR source.y IS NULL").execute()
    kept = "select id from joined where (x >= y or y is null) is not true order by id"
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [row[0] for row in duckdb.sql(kept).fetchall()]


def test_each_clause_compares_columns_of_its_rows(tmp_path: Path) -> None:
    target = pa.table({"id": [1, 2, 3, 4], "v": [10, 20, 30, 40], "w": [5, 50, 5, 50]})
    table = make(tmp_path, target)
    source = pa.table({"id": [1, 2, 5, 6], "v": [11, 1, 7, 8], "w": [0, 0, 8, 7]})
    merge = table.merge(source, "id")
    merge.when_matched_update_all("source.v > target.v").when_not_matched_insert_all("source.v < source.w")
    merge.when_not_matched_by_source_delete("target.v < target.w")
    done = merge.execute()
    assert (done.rows_updated, done.rows_inserted, done.rows_deleted) == (1, 1, 1)
    rows = table.scan().to_arrow().sort_by("id").to_pydict()
    assert rows == {"id": [1, 2, 3, 5], "v": [11, 20, 30, 7], "w": [0, 50, 5, 8]}


def test_layouts_nested_columns_and_letter_case(tmp_path: Path) -> None:
    target = pa.table({"id": [1, 2, 3], "s": [{"name": "b"}, {"name": "a"}, None]})
    table = make(tmp_path, target)
    texts = pa.array([{"N": "a"}, {"N": "a"}, {"N": "a"}], pa.struct([("N", pa.string_view())]))
    source = pa.table({"id": [1, 2, 3], "o": texts, "d": pa.array(["b", "b", None]).dictionary_encode()})
    count = {
        "source.o.N = target.s.name": 1,
        "source.d = target.s.name": 1,
        "source.d <> target.s.name": 1,
        "source.d = source.o.N": 0,
        'source."d" > source.o.N': 2,
    }
    for condition, expected in count.items():
        done = table.merge(source, "id", dry_run=True).when_matched_delete(condition).execute()
        assert done.rows_deleted == expected, condition
    anyhow = table.merge(source, "ID", case_sensitive=False, dry_run=True)
    assert anyhow.when_matched_delete("SOURCE.O.n = Target.S.NAME").execute().rows_deleted == 1


@pytest.mark.parametrize(
    ("condition", "error", "match"),
    [
        ("source.v > target.none", InvalidArgumentError, "no column target.none"),
        ("source.v > v", InvalidArgumentError, "columns are named target.NAME and source.NAME"),
        ("source.v > target.s", InvalidArgumentError, "columns of the types .* cannot be compared"),
        ("source.v > target.n", InvalidArgumentError, "cannot be compared"),
        ("bucket(4, source.v) = bucket(4, target.v)", UnsupportedFeatureError, "compare columns themselves"),
        ("source.v > target.v target.v", InvalidArgumentError, "AND, OR or the end is expected"),
        ("1 < 2", InvalidArgumentError, "two literals cannot be compared"),
    ],
)
def test_refusals(tmp_path: Path, condition: str, error: type[Exception], match: str) -> None:
    target = pa.table({"id": [1], "v": [1], "s": ["a"], "n": [[1]]})
    table = make(tmp_path, target)
    before = table.metadata_location
    with pytest.raises(error, match=match):
        table.merge(target, "id").when_matched_delete(condition).execute()
    with pytest.raises(InvalidArgumentError, match="no row of the target here"):
        table.merge(target, "id").when_not_matched_insert_all("source.v > target.v").execute()
    assert table.refresh().metadata_location == before
