"""The difference of rows: beside a comparison in Python, and of snapshots, branches, tables and frames."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import icefield as ice
from icefield.cli.commands import icefield
from icefield.errors import ArgumentTypeError, InvalidArgumentError

SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "l": pa.string(),
        "f": pa.float64(),
        "b": pa.binary(),
        "s": pa.struct({"x": pa.int32(), "y": pa.list_(pa.float32())}),
        "m": pa.map_(pa.string(), pa.int32()),
    }
)
FLOATS = [0.0, -0.0, math.nan, 1.5, None]


def random_rows(rng: Random, count: int) -> list[dict[str, Any]]:
    """Make rows with few values, whose keys differ."""
    keys = rng.sample([(k, name) for k in (None, *range(30)) for name in (None, "a", "b")], count)

    def row(k: int | None, name: str | None) -> dict[str, Any]:
        pairs = [("u", rng.randrange(2)), ("v", 1)]
        return {
            "k": k,
            "l": name,
            "f": rng.choice(FLOATS),
            "b": rng.choice([b"", b"\0", None]),
            "s": rng.choice([None, {"x": None, "y": [rng.choice(FLOATS)]}, {"x": 1, "y": None}]),
            "m": rng.choice([None, [], pairs, pairs[::-1]]),
        }

    return [row(*key) for key in keys]


def value(given: Any) -> Any:
    """Return a value that is equal where `ice.diff` says so."""
    if isinstance(given, float):
        return "nan" if math.isnan(given) else (given, math.copysign(1, given))
    if isinstance(given, dict):
        return tuple((name, value(one)) for name, one in given.items())
    if isinstance(given, list):
        items = [value(one) for one in given]
        is_map = all(isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) for one in given)
        return tuple(sorted(items) if is_map else items)
    return value(list(given)) if isinstance(given, tuple) else given


def whole(row: dict[str, Any]) -> Any:
    return tuple(value(row[name]) for name in SCHEMA.names)


def expected_by_key(a: list[dict[str, Any]], b: list[dict[str, Any]], keys: list[str]) -> Counter[Any]:
    left, right = ({tuple(row[key] for key in keys): row for row in rows} for rows in (a, b))
    found: Counter[Any] = Counter()
    for key in left.keys() | right.keys():
        if key not in left:
            found["added", None, whole(right[key])] += 1
        elif key not in right:
            found["removed", None, whole(left[key])] += 1
        else:
            names = tuple(name for name in SCHEMA.names if value(left[key][name]) != value(right[key][name]))
            if names:
                found["changed_before", names, whole(left[key])] += 1
                found["changed_after", names, whole(right[key])] += 1
    return found


def expected_whole(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> Counter[Any]:
    left, right = Counter(map(whole, a)), Counter(map(whole, b))
    found = Counter({("added", None, row): count for row, count in (right - left).items()})
    found.update({("removed", None, row): count for row, count in (left - right).items()})
    return found


def found(diff: ice.differences.TableDiff) -> Counter[Any]:
    rows = diff.to_arrow().to_pylist()
    pending = None
    for row in rows:
        # Both rows of a change follow each other.
        assert (row["_change"] == "changed_after") == (pending is not None)
        pending = row if row["_change"] == "changed_before" else None
    counted = [
        (row["_change"], None if row["_changed_columns"] is None else tuple(row["_changed_columns"]), whole(row))
        for row in rows
    ]
    return Counter(counted)


@pytest.mark.parametrize("seed", range(25))
def test_differences_are_those_of_a_comparison_in_python(seed: int) -> None:
    rng = Random(seed)
    a, b = random_rows(rng, rng.randrange(60)), random_rows(rng, rng.randrange(60))
    for side in (a, b) if seed % 2 else ():
        side.extend(rng.sample(side, len(side) // 2))
    left, right = (pa.Table.from_pylist(rows, SCHEMA) for rows in (a, b))
    memory = rng.choice([None, 1])
    assert found(ice.diff(left, right, memory_limit=memory)) == expected_whole(a, b)
    if seed % 2:
        return
    keys = rng.choice([["k", "l"], ["l", "k"]])
    by_key = ice.diff(left, right, keys=keys, memory_limit=memory)
    assert found(by_key) == expected_by_key(a, b, keys)
    summary, changes = by_key.summary(), Counter(change for change, *_ in expected_by_key(a, b, keys).elements())
    assert (summary.added, summary.removed, summary.changed) == tuple(
        changes[change] for change in ("added", "removed", "changed_after")
    )
    assert summary.is_same == (not changes)
    assert (summary.rows_read_a, summary.rows_read_b) == (len(a), len(b))


def test_large_sides_are_divided() -> None:
    count = 120_000
    ids = pa.array(range(count))
    text = pa.array([f"{number:0120d}" for number in range(count)])
    other = pa.array([f"{number + (number % 1000 == 7):0120d}" for number in range(count)])
    a, b = pa.table({"id": ids, "t": text}), pa.table({"id": ids, "t": other}).slice(10)
    summary = ice.diff(a, b, keys="id", memory_limit=1 << 20).summary()
    assert (summary.added, summary.removed, summary.changed) == (0, 10, count // 1000 - 1)
    assert summary.changed_values == {"t": count // 1000 - 1}


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    made.create_namespace("a")
    return made


def rows(first: int, last: int, text: str = "x") -> pa.Table:
    return pa.table({"id": range(first, last), "t": [text] * (last - first)})


def test_files_of_both_sides_are_not_read(catalog: ice.Catalog) -> None:
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"}
    table = catalog.create_table("a.t", rows(0, 1).schema, properties=properties)
    for number in range(4):
        table.append(rows(number * 10, number * 10 + 10))
    before = table.scan(snapshot_id=table.metadata.current_snapshot_id)
    table.delete("id = 3")
    table.update({"t": "y"}, "id = 12")
    table.append(rows(40, 42))
    with table.update_schema() as update:
        update.rename_column("t", "text")
        update.add_column("n", "int")
    table.append(pa.table({"id": [42], "text": ["z"], "n": pa.array([5], pa.int32())}))
    summary = ice.diff(before, table, keys="id").summary()
    assert (summary.added, summary.removed, summary.changed, summary.changed_values) == (3, 1, 1, {"text": 1})
    assert summary.common_files == 2
    assert (summary.rows_read_a, summary.rows_read_b) == (20, 18 + 1 + 3)
    [removed] = [
        row for row in ice.diff(before, table, keys="id").to_arrow().to_pylist() if row["_change"] == "removed"
    ]
    assert removed == {"_change": "removed", "_changed_columns": None, "id": 3, "text": "x", "n": None}
    table.maintenance.compact(options={"rewrite-all": True})
    assert ice.diff(table.scan(snapshot_id=table.history()[-2].snapshot_id), table).summary().is_same
    assert ice.diff(table, table).summary().common_files == 1
    assert before.snapshot_id is not None
    table.manage_snapshots().create_branch(before.snapshot_id, "old").commit()
    assert ice.diff(table.scan(ref="old"), table, keys="id").summary().added == 3


def test_other_tables_and_frames(catalog: ice.Catalog) -> None:
    one = catalog.create_table("a.one", pa.schema({"id": pa.int32(), "t": pa.string(), "only": pa.bool_()}))
    one.append(pa.table({"id": pa.array([1, 2], pa.int32()), "t": ["a", "b"], "only": [True, True]}))
    two = catalog.create_table("a.two", pa.schema({"t": pa.string(), "id": pa.int64(), "more": pa.date32()}))
    two.append(pa.table({"t": ["a", "c"], "id": [1, 2]}))
    differences = ice.diff(one, two, keys=["id"])
    summary = differences.summary()
    assert (summary.only_in_a, summary.only_in_b, summary.changed_values) == (["only"], ["more"], {"t": 1})
    assert differences.to_arrow().schema.names == ["_change", "_changed_columns", "t", "id"]
    pandas = differences.to_pandas()
    assert pandas["t"].tolist() == ["b", "c"]
    assert ice.diff(one.scan("id = 1"), pandas[["id", "t"]].iloc[:0]).summary().removed == 1


def test_nested_fields_are_matched_by_name(catalog: ice.Catalog) -> None:
    """Ids, orders, and widths of nested fields differ between tables; an empty column has no type."""
    narrow = pa.struct({"x": pa.int32(), "l": pa.list_(pa.struct({"y": pa.float32()}))})
    wide = pa.struct({"l": pa.list_(pa.struct({"y": pa.float64()})), "x": pa.int64()})
    maps = pa.map_(pa.string(), pa.int32()), pa.map_(pa.string(), pa.int64())
    one = catalog.create_table(
        "a.one", pa.schema({"id": pa.int64(), "s": narrow, "m": maps[0], "n": pa.list_(pa.int8())})
    )
    two = catalog.create_table("a.two", pa.schema({"m": maps[1], "s": wide, "o": pa.date32(), "id": pa.int64()}))
    same = {"x": 1, "l": [{"y": 0.5}, None, {"y": None}]}
    given = [{"id": 1, "s": same, "m": [("k", 1)]}, {"id": 2, "s": None, "m": None}, {"id": 3, "s": same, "m": []}]
    one.append(pa.Table.from_pylist(given, one.schema().as_arrow().remove(3)))
    given[2]["s"] = {"x": 1, "l": []}
    two.append(pa.Table.from_pylist(given, two.schema().as_arrow().remove(2)))
    for difference in (ice.diff(one, two, keys="id"), ice.diff(two, one, keys="id")):
        assert difference.summary().changed_values == {"s": 1}
        assert difference.to_arrow()["id"].to_pylist() == [3, 3]
    nothing = pa.table({"id": [1, 2, 3], "n": pa.nulls(3), "s": pa.nulls(3)})
    assert ice.diff(one, nothing, keys="id").summary().changed_values == {"s": 2}


@pytest.mark.parametrize(
    ("a", "b", "keys", "message"),
    [
        (rows(0, 1), rows(0, 1), ["x"], "column x: is a column of the key, and not one that both sides have"),
        (rows(0, 1), rows(0, 1), [], "keys: name at least one column"),
        (rows(0, 1), pa.table({"u": [1]}), None, "no column in common"),
        (rows(0, 1), pa.table({"id": ["1"]}), None, "column id: is of type long on one side and of type string"),
        (pa.table({"_change": [1]}), pa.table({"_change": [1]}), None, "select other columns"),
        (
            pa.concat_tables([rows(0, 2), rows(1, 3)]),
            rows(0, 1),
            "id",
            "side a has more than one row with the key id = 1",
        ),
        (
            rows(0, 1),
            pa.concat_tables([rows(0, 2), rows(1, 3)]),
            "id",
            "side b has more than one row with the key id = 1",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(a: pa.Table, b: pa.Table, keys: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ice.diff(a, b, keys=keys).to_arrow()


def test_only_rows_are_compared() -> None:
    for wrong in (5, "a.t", None):
        with pytest.raises(ArgumentTypeError):
            ice.diff(rows(0, 1), wrong)


def test_the_command_compares_snapshots(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("a.t", rows(0, 1).schema)
    table.append(rows(0, 3))
    first = table.metadata.current_snapshot_id
    table.append(rows(3, 5))
    options = ["--uri", f"sqlite:///{tmp_path}/c.db", "diff"]
    done = CliRunner().invoke(icefield, [*options, f"a.t@{first}", "a.t", "--keys", "id", "--json"])
    document = json.loads(done.stdout)
    assert (done.exit_code, document["added"], len(document["rows"])) == (1, 2, 2)
    done = CliRunner().invoke(icefield, [*options, "a.t@main", "a.t", "--where", "id < 2", "--columns", "id"])
    assert (done.exit_code, done.stdout) == (0, "0 rows added, 0 rows removed, 0 rows changed\n")
