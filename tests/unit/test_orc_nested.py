"""Nested columns of ORC files: read with another schema, written from every Arrow layout, and masked."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError

ROWS = pa.table(
    {
        "l": pa.array([[1, 2], None, [], [3, None]], pa.list_(pa.int32())),
        "m": pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string(), pa.int32())),
        "s": pa.array([{"x": 1, "y": "q"}, None, {"x": None, "y": "r"}, {"x": 4, "y": None}]),
        "k": pa.array([[(1, 1)], None, [], [(2, None)]], pa.map_(pa.int32(), pa.int32())),
    }
)
#: Alternately an integer and a text.
UNION = pa.UnionArray.from_dense(
    pa.array([0, 1, 0, 1], pa.int8()),
    pa.array([0, 0, 1, 1], pa.int32()),
    [pa.array([1, None], pa.int32()), pa.array(["a", "b"])],
    ["i", "s"],
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = f"{tmp_path}/nested.orc"
    ice.orc.write_table(ROWS, path)
    return path


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("l:array<string>", [["1", "2"], None, [], ["3", None]]),
        ("m:map<string,double>", [[("a", 1.0)], None, [], [("b", None)]]),
        ("s:struct<x:bigint,z:int>", [{"x": 1, "z": None}, None, {"x": None, "z": None}, {"x": 4, "z": None}]),
        ("k:map<string,decimal(4,1)>", [[("1", Decimal("1.0"))], None, [], [("2", None)]]),
    ],
)
def test_children_are_converted(file: str, wanted: str, expected: list[Any]) -> None:
    rows = ice.orc.ORCFile(file, schema=f"struct<{wanted}>").read()
    assert rows.column(0).to_pylist() == expected


def test_keys_that_do_not_fit_are_an_error_and_never_null(file: str) -> None:
    with pytest.raises(InvalidArgumentError, match="column m: a key does not fit Int32"):
        ice.orc.ORCFile(file, schema="struct<m:map<int,int>>").read()
    with pytest.raises(InvalidArgumentError, match="column l: cannot read array as map"):
        ice.orc.ORCFile(file, schema="struct<l:map<int,int>>")


def test_variants_of_unions_are_converted(tmp_path: Path) -> None:
    path = f"{tmp_path}/union.orc"
    ice.orc.write_table(pa.table({"u": UNION}), path)
    assert ice.orc.read_table(path)["u"].to_pylist() == [1, "a", None, "b"]
    for wanted, expected in [("bigint,string", [1, "a", None, "b"]), ("string,binary", ["1", b"a", None, b"b"])]:
        rows = ice.orc.ORCFile(path, schema=f"struct<u:uniontype<{wanted}>>").read()
        assert rows["u"].to_pylist() == expected
    with pytest.raises(InvalidArgumentError, match="column u"):
        ice.orc.ORCFile(path, schema="struct<u:uniontype<int>>")


TEXTS = [["a", "bb"], None, [], ["a", None], ["a", "bb"]]
PAIRS = [["a", "bb"], None, ["c", None]]


@pytest.mark.parametrize(
    ("ty", "values"),
    [
        (pa.list_(pa.string()), TEXTS),
        (pa.large_list(pa.large_string()), TEXTS),
        (pa.list_view(pa.string()), TEXTS),
        (pa.large_list_view(pa.string()), TEXTS),
        (pa.list_(pa.string_view()), TEXTS),
        (pa.list_(pa.string(), 2), PAIRS),
    ],
    ids=str,
)
def test_lists_of_every_layout_are_written(tmp_path: Path, ty: pa.DataType, values: list[Any]) -> None:
    path = f"{tmp_path}/lists.orc"
    # Sliced, so that offsets do not begin at 0.
    rows = pa.table({"a": pa.array([values[0], *values], ty).slice(1)})
    ice.orc.write_table(rows, path)
    assert ice.orc.read_table(path)["a"].to_pylist() == values
    assert ice.orc.check(path) == []


REDACTED = {
    "l": [[9, 9], None, [], [9, None]],
    "m": [[("x", 9)], None, [], [("x", None)]],
    "s": [{"x": 9, "y": "x"}, None, {"x": None, "y": "x"}, {"x": 9, "y": None}],
    "k": [[(9, 9)], None, [], [(9, None)]],
}


@pytest.mark.parametrize(("mask", "expected"), [("redact", REDACTED), ("nullify", dict.fromkeys(REDACTED, [None] * 4))])
def test_readers_without_the_key_see_masked_children(tmp_path: Path, mask: str, expected: dict[str, list[Any]]) -> None:
    path, keys = f"{tmp_path}/masked.orc", {"pii": bytes(16)}
    columns = ROWS.column_names
    ice.orc.write_table(ROWS, path, keys=keys, encrypt={"pii": columns}, masks={mask: columns})
    assert ice.orc.read_table(path).to_pydict() == expected
    assert ice.orc.read_table(path, keys=keys).to_pydict() == ROWS.to_pydict()


def test_a_mask_makes_no_key_of_a_map_null(tmp_path: Path) -> None:
    """Only text has a hash; other types become null."""
    with pytest.raises(InvalidArgumentError, match="the mask sha256 would make keys of column"):
        ice.orc.write_table(
            ROWS, f"{tmp_path}/a.orc", keys={"pii": bytes(16)}, encrypt={"pii": ["k"]}, masks={"sha256": ["k"]}
        )
