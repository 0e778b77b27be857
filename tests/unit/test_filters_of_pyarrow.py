"""Filters as expressions of PyArrow match the rows that they match by themselves."""

from __future__ import annotations

import datetime as dt
import json
import math
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield import expressions as ex
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.expressions.arrow import to_pyarrow
from worlds.predicates import random_predicate
from worlds.tables import NAN, Column
from worlds.values import POOLS, to_array

#: A column of each type, and within a struct too; of names with dots and of names that are there twice.
TOP = {kind: Column(at, f"c {kind}", kind) for at, kind in enumerate(POOLS, 1)}
WITHIN = {kind: Column(at, f"s.{kind}", kind, nested=True) for at, kind in enumerate(POOLS, 101)}
COLUMNS = [*TOP.values(), *WITHIN.values(), Column(201, "a.b", "int"), Column(203, "s.a.b", "int")]
SCHEMA = ice.Schema(
    *(ice.NestedField(column.id, column.name, kind) for kind, column in TOP.items()),
    ice.NestedField(
        100,
        "s",
        ice.types.StructType(
            *(ice.NestedField(column.id, kind, kind) for kind, column in WITHIN.items()),
            ice.NestedField(202, "a", ice.types.StructType(ice.NestedField(203, "b", "int"))),
        ),
    ),
    ice.NestedField(201, "a.b", "int"),
)


def random_rows(rng: Random, count: int) -> pa.Table:
    def value(kind: Any) -> Any:
        if rng.random() < 0.2:
            return None
        if isinstance(kind, ice.types.StructType):
            return {field.name: value(field.field_type) for field in kind.fields}
        return rng.choice([*POOLS[str(kind)], *([math.nan] if str(kind) in NAN else [])])

    arrow = pa.schema(SCHEMA.to_arrow())
    columns = [
        to_array([value(field.field_type) for _ in range(count)], arrow.field(at).type)
        for at, field in enumerate(SCHEMA.fields)
    ]
    return pa.table(columns, arrow)


def positions(mask: pa.BooleanArray) -> list[int]:
    return [at for at, matches in enumerate(mask.to_pylist()) if matches]


def matching(rows: pa.Table, expression: Any) -> list[int]:
    found = rows.append_column("at", pa.array(range(len(rows)))).filter(expression)
    return found["at"].to_pylist()


def test_random_filters_match_the_same_rows() -> None:
    rng = Random(1)
    drawn: set[tuple[str, str]] = set()
    for _ in range(5):
        rows = random_rows(rng, 40)
        for _ in range(100):
            predicate = random_predicate(rng, COLUMNS, {})
            given = ex.from_json(json.dumps(predicate.json()), SCHEMA if predicate.typed else None)
            assert matching(rows, to_pyarrow(given, SCHEMA)) == positions(given.evaluate(rows, SCHEMA)), str(given)
            drawn |= {(test.op, test.column.type) for test in predicate.tests()}
    assert len(drawn) > 150


@pytest.mark.parametrize("kind", ["float", "double"])
def test_nan_null_and_both_zeros(kind: str) -> None:
    schema = ice.Schema(ice.NestedField(1, "x", kind))
    rows = pa.table(
        {"x": pa.array([None, math.nan, -math.inf, -1.0, -0.0, 0.0, 1.0, math.inf], schema.to_arrow().field(0).type)}
    )
    tests = [f"x {test} {number}" for test in ("=", "!=", "<", "<=", ">", ">=") for number in ("-0.0", "0.0", "1.0")]
    tests += ["x IN (0.0, 1.0)", "x NOT IN (-0.0, 1.0)", "x IS NAN", "x IS NOT NAN", "x IS NULL", "x IS NOT NULL"]
    for text in tests:
        for given in (
            ex.parse(text),
            ~ex.parse(text),
            ex.parse(text) | ex.IsNull("x"),
            ~(ex.parse(text) & ex.NotNaN("x")),
        ):
            assert matching(rows, to_pyarrow(given, schema)) == positions(given.evaluate(rows, schema)), str(given)


def test_text_means_what_it_means_to_a_scan(tmp_path: Path) -> None:
    catalog = InMemoryCatalog("m", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    rows = pa.table(
        {
            "Id": [1, 2, None, 4],
            "name": ["a", "b", "ab", None],
            "at": pa.array([dt.date(2024, 1, at) for at in (1, 2, 3, 4)]),
        }
    )
    table = catalog.create_table("a.t", rows).append(rows)
    pq.write_table(rows, tmp_path / "rows.parquet")
    dataset = ds.dataset(tmp_path / "rows.parquet")
    for text in (
        "Id != 1",
        "NOT Id IN (1, 2)",
        "name LIKE 'a%'",
        "name NOT LIKE 'a%' OR Id = 4",
        "at > '2024-01-02'",
        "true",
        "false",
    ):
        expected = table.scan(text).to_arrow().to_pylist()
        expression = to_pyarrow(text, table.schema())
        assert rows.filter(expression).to_pylist() == dataset.to_table(filter=expression).to_pylist() == expected, text
    bound = ex.parse("Id = 1").bind(table.schema())
    assert rows.filter(to_pyarrow(bound, table.schema())).num_rows == 1
    assert rows.filter(to_pyarrow("ID = 1", table.schema(), case_sensitive=False)).num_rows == 1
    with pytest.raises(InvalidArgumentError, match="ID"):
        to_pyarrow("ID = 1", table.schema())


def test_long_lists_and_rows_of_like_types() -> None:
    schema = ice.Schema(ice.NestedField(1, "x", "double"), ice.NestedField(2, "s", "string"))
    rows = pa.table(
        {
            "x": pa.array([0.0, -0.0, 0.5, 7.0, None], pa.float32()),
            "s": pa.array([*list("abcd"), None], pa.large_string()),
        }
    )
    many = [0.0, *(at + 0.5 for at in range(20_000))]
    assert matching(rows, to_pyarrow(ex.In("x", many), schema)) == [0, 2]
    assert matching(rows, to_pyarrow(ex.NotIn("x", many), schema)) == [1, 3, 4]
    for text in ("s = 'a'", "s LIKE 'b%'", "s IN ('a', 'c')", "s > 'b' AND x != 7.0"):
        assert matching(rows, to_pyarrow(text, schema)) == positions(
            ex.parse(text).evaluate(rows.cast(schema.to_arrow()), schema)
        )


def test_what_arrow_cannot_test_is_refused() -> None:
    schema = ice.Schema(
        ice.NestedField(1, "id", "long"), ice.NestedField(2, "v", "variant"), ice.NestedField(3, "g", "geometry")
    )
    for given in (
        "bucket(4, id) = 1",
        "v:a::long = 1",
        ex.StIntersects("g", (0, 0, 1, 1)),
        ex.StDisjoint("g", (0, 0, 1, 1)),
    ):
        with pytest.raises(UnsupportedFeatureError, match=r"use Expression.evaluate\(rows\)"):
            to_pyarrow(given, schema)
    assert matching(pa.table({"id": [1, None]}), to_pyarrow("id IS NULL", schema)) == [1]
