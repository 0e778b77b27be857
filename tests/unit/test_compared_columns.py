"""Filters of deletes, updates and overwrites that compare two columns: what DuckDB's SQL says of the same rows."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from test_merge_conditions import PAIRS, TYPES

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError, ValidationException

SIGNS = ("<", "<=", ">", ">=", "=", "<>")


def make(folder: Path, rows: pa.Table, version: int = 2, **more: Any) -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(folder))
    catalog.create_namespace("a")
    properties = {"format-version": str(version)} | more.pop("properties", {})
    return catalog.create_table("a.t", schema=rows, properties=properties, **more).append(rows)


def ids(table: ice.Table) -> list[int]:
    return sorted(table.scan(selected_fields=("id",)).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize(("left", "right"), PAIRS)
def test_what_duckdb_says(tmp_path: Path, left: str, right: str) -> None:
    (left_type, left_values), (right_type, right_values) = TYPES[left], TYPES[right]
    pairs = [(a, b) for a in [*left_values, None] for b in [*right_values, None]]
    columns = {"x": pa.array([a for a, _ in pairs], left_type), "y": pa.array([b for _, b in pairs], right_type)}
    rows = pa.table({"id": range(len(pairs)), **columns})
    table = make(tmp_path, rows)
    for sign in SIGNS:
        conditions = [f"x {sign} y", f"NOT (x {sign} y)"]
        for condition in conditions if sign != "<=" else ["y <= x AND id <> 1", "id = 1 OR NOT (x <= y)"]:
            expected = duckdb.sql(f"select id from rows where {condition}").fetchall()
            assert table.delete(condition, dry_run=True).rows_removed == len(expected), condition
    changed = table.update({"id": -1}, where="x >= y OR y IS NULL")
    expected = [row[0] for row in duckdb.sql("select id from rows where x >= y or y is null").fetchall()]
    assert changed.rows_removed == changed.rows_added == len(expected)
    assert ids(table) == sorted([-1] * len(expected) + [at for at in range(len(pairs)) if at not in expected])
    table.delete("x < y")
    kept = duckdb.sql("select id from rows where (x < y) is not true and (x >= y or y is null) is not true").fetchall()
    assert [at for at in ids(table) if at >= 0] == sorted(row[0] for row in kept)


ROWS = pa.table(
    {
        "id": range(6),
        "place": ["a", "a", "a", "b", "b", "b"],
        "sent": pa.array([1, 5, None, 1, 9, 3], pa.int32()),
        "got": pa.array([2, 4, 1, None, 10, 3], pa.int64()),
    }
)


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro"])
@pytest.mark.parametrize(
    ("version", "mode"), [(1, "copy-on-write"), (2, "merge-on-read"), (2, "auto"), (3, "merge-on-read")]
)
def test_every_mode_and_format(tmp_path: Path, kind: str, version: int, mode: Any) -> None:
    properties = {"write.format.default": kind}
    table = make(tmp_path, ROWS, version, partition_by=["place"], properties=properties)
    assert table.delete("sent < got", mode=mode).rows_removed == 2
    assert ids(table) == [1, 2, 3, 5]
    # Rows that are deleted already are not found again; other partitions are not looked at.
    assert table.delete("sent < got", mode=mode).rows_removed == 0
    done = table.update({"sent": 7}, "sent = got AND place = 'b'", mode=mode)
    assert (done.rows_removed, done.rows_added) == (1, 1)
    more = pa.table({"id": [6], "place": ["a"], "sent": pa.array([0], pa.int32()), "got": [0]})
    assert table.overwrite(more, "got < sent AND place = 'a'", mode=mode).rows_removed == 1
    rows = table.scan().to_arrow().sort_by("id").select(["id", "sent"]).to_pylist()
    assert rows == [{"id": 2, "sent": None}, {"id": 3, "sent": 1}, {"id": 5, "sent": 7}, {"id": 6, "sent": 0}]


def test_files_are_left_out_by_the_rest_of_the_condition(tmp_path: Path) -> None:
    table = make(tmp_path, ROWS, partition_by=["place"])
    for path in [file["file_path"] for file in table.inspect.files().to_pylist() if file["partition"]["place"] == "b"]:
        Path(path.removeprefix("file://")).unlink()
    assert table.delete("sent < got AND place = 'a'").rows_removed == 1
    assert table.delete("NOT (sent >= got OR place <> 'a')").rows_removed == 0


def test_nested_columns_letter_case_and_names(tmp_path: Path) -> None:
    places = [{"X": 1, "y": 2}, {"X": 3, "y": 2}, None, {"X": None, "y": 0}]
    rows = pa.table({"id": range(4), "s": places, "limit of x": [1, 2, 0, 0], "_pos": [7, 7, 7, 0]})
    table = make(tmp_path, rows)
    expected = {
        "s.X < s.y": 1,
        "s.X >= s.y": 1,
        's.X > "limit of x"': 1,
        '"s"."y" <> id': 3,
        "id = _pos": 0,
        "_pos > id": 3,
        "s.y = s.y": 3,
    }
    for condition, count in expected.items():
        assert table.delete(condition, dry_run=True).rows_removed == count, condition
    assert table.delete("S.x < S.Y", case_sensitive=False, dry_run=True).rows_removed == 1
    assert table.delete("s.X < s.y").rows_removed == 1
    assert ids(table) == [1, 2, 3]


def test_metadata_columns(tmp_path: Path) -> None:
    table = make(tmp_path, pa.table({"id": pa.array([0, 5, 2], pa.int64())}), 3)
    assert table.delete("_pos < id", dry_run=True).rows_removed == 1
    assert table.delete("_row_id = id AND _file <> 'x'").rows_removed == 2
    assert ids(table) == [5]


def test_columns_of_older_files(tmp_path: Path) -> None:
    table = make(tmp_path, pa.table({"id": pa.array([1, 2, 3], pa.int32()), "old": pa.array([1, 5, 5], pa.int32())}))
    with table.update_schema() as changes:
        changes.add_column("new", ice.types.LongType())
        changes.rename_column("old", "o").update_column("old", ice.types.LongType())
    table.append(pa.table({"id": pa.array([4, 5], pa.int32()), "o": [1 << 40, 0], "new": [1, 1]}))
    assert table.delete("o > new", dry_run=True).rows_removed == 1
    assert table.delete("NOT o > new", dry_run=True).rows_removed == 1
    assert table.delete("o > id OR new IS NULL AND o = id").rows_removed == 4
    assert ids(table) == [5]


def test_types_of_version_three_and_bytes(tmp_path: Path) -> None:
    one, other = uuid.UUID(int=1), uuid.UUID(int=1 << 127)
    instants = pa.array([0, 1, 10**18], pa.timestamp("ns"))
    columns = {
        "id": range(3),
        "at": instants,
        "late": pa.array([0, 253370764800 * 10**6, None], pa.timestamp("us")),
        "day": [date(1970, 1, 1), date(1970, 1, 1), date(9999, 12, 31)],
        "u": pa.array([one.bytes, other.bytes, None], pa.uuid()),
        "w": pa.array([other.bytes, other.bytes, one.bytes], pa.uuid()),
        "none": pa.nulls(3),
    }
    table = make(tmp_path, pa.table(columns), 3)
    expected = {
        "at = late": 1,
        "at < late": 1,
        "at = day": 1,
        "at > day": 1,
        "at < day": 1,
        "u < w": 1,
        "u = w": 1,
        "none = id": 0,
        "NOT none = id": 0,
        "none <> none": 0,
    }
    for condition, count in expected.items():
        assert table.delete(condition, dry_run=True).rows_removed == count, condition


@pytest.mark.parametrize(
    ("condition", "error", "match"),
    [
        ("a < missing", InvalidArgumentError, "no column .*missing"),
        ('s = "Paris"', InvalidArgumentError, "a text stands in single quotes: 'Paris'"),
        ("a < s", InvalidArgumentError, "columns of the types int and string cannot be compared"),
        ("n = n", InvalidArgumentError, "columns of the types list<.*> .*cannot be compared"),
        ("n.element = a", InvalidArgumentError, "cannot be used here"),
        ("bucket(4, a) = b", UnsupportedFeatureError, "compare columns themselves"),
        ("a < b b", InvalidArgumentError, "AND, OR or the end is expected"),
        ("a < b AND s > 5", InvalidArgumentError, "s"),
    ],
)
def test_refusals(tmp_path: Path, condition: str, error: type[Exception], match: str) -> None:
    rows = {"a": pa.array([1], pa.int32()), "b": [1.0], "s": ["a"], "n": [[1]]}
    table = make(tmp_path, pa.table(rows))
    before = table.metadata_location
    changes: list[Callable[[], object]] = [
        lambda: table.delete(condition),
        lambda: table.update({"a": 2}, condition),
        lambda: table.overwrite(pa.table(rows), condition),
    ]
    for change in changes:
        with pytest.raises(error, match=match):
            change()
    assert table.refresh().metadata_location == before
    # A scan compares no columns.
    with pytest.raises(InvalidArgumentError, match="two columns cannot be compared"):
        table.scan("a < b").to_arrow()


def test_rows_that_others_add_are_a_conflict(tmp_path: Path) -> None:
    table = make(tmp_path, ROWS, partition_by=["place"])
    own, other = (table.catalog.load_table("a.t") for _ in range(2))

    def delete_beside(row: int) -> None:
        with own.transaction() as changes:
            changes.delete("sent < got AND place = 'a'")
            other.append(ROWS.slice(row, 1))

    with pytest.raises(ValidationException):
        delete_beside(0)
    # Those of other partitions are none.
    own.refresh()
    delete_beside(4)
    assert ids(table.refresh()) == [1, 2, 3, 4, 4, 5]
