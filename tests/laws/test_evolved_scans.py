"""Laws of scans over tables whose schema, spec, file format and metrics changed between their files.

Whatever a filter tests and whatever columns are selected: a scan reads exactly the rows that match, with the values
that the naive rows of `worlds.evolving` have; counts, limits, bounds and metrics agree with them. Drawn by hypothesis,
so that a failure shrinks to a small table and filter. ``ICEFIELD_RANDOM_CASES`` draws more, and
``ICEFIELD_RANDOM_SEED`` others.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

import icefield as ice
from worlds.evolving import World, as_read, fields_of, flat, nested_columns, places, read
from worlds.predicates import Predicate, Test, random_predicate
from worlds.tables import TRANSFORMS, primitives
from worlds.values import from_array, order

CASES = max(int(os.environ.get("ICEFIELD_RANDOM_CASES", "2000")), 2000)
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
PER_TABLE = 20


@pytest.mark.parametrize("part", range(4))
def test_evolved_tables_keep_the_laws(part: int) -> None:
    @seed(SEED * 10 + part)
    @settings(
        max_examples=CASES // PER_TABLE // 4,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=False))
    def laws(rng: Random) -> None:
        catalog = ice.load_catalog("laws", type="in-memory")
        catalog.create_namespace("db")
        world = World(rng, catalog, "db.t")
        note("\n".join(world.log))
        metrics_cover_the_values(world)
        for _ in range(PER_TABLE):
            scan_keeps_the_laws(rng, world)

    laws()


def some_predicate(rng: Random, schema: ice.Schema) -> Predicate:
    """Draw a filter of primitive columns, and at times a test of a nested one for null."""
    columns = [column for column in primitives(schema) if column.type != "unknown"]
    drawn = random_predicate(rng, columns, TRANSFORMS)
    nested = nested_columns(fields_of(schema))
    nested += [column for column in primitives(schema) if column.type == "unknown"]
    if nested and rng.random() < 0.2:
        test = Predicate("test", test=Test(rng.choice(["is-null", "not-null"]), rng.choice(nested)), typed=drawn.typed)
        return Predicate(rng.choice(["and", "or"]), (drawn, test), typed=drawn.typed)
    return drawn


def some_columns(rng: Random, schema: ice.Schema) -> tuple[str, ...]:
    """Draw what is selected: everything, or some columns in any order, those inside of structs too."""
    # Lists and maps inside of structs cannot be selected by themselves.
    names = [own.path for own in places(fields_of(schema)) if not own.parents or own.shape not in ("list", "map")]
    return ("*",) if rng.random() < 0.2 else tuple(rng.sample(names, rng.randint(1, min(3, len(names)))))


def scan_keeps_the_laws(rng: Random, world: World) -> None:
    table, schema = world.table, world.table.schema()
    predicate, selected = some_predicate(rng, schema), some_columns(rng, schema)
    text = json.dumps(predicate.json())
    note(f"{text} {selected}")
    expression = ice.expressions.from_json(text, schema if predicate.typed else None)
    fields = fields_of(schema)
    matching = [row for row in world.rows if predicate.matches(flat(row, fields))]
    scan = table.scan(expression, selected_fields=selected)
    holds_exactly(scan.to_arrow(), scan.projection(), matching)
    if selected != ("*",):
        assert {field["name"] for field in fields_of(scan.projection())} == {top(name, fields) for name in selected}
    assert scan.count() == len(matching)
    limit = rng.randint(0, len(matching) + 1)
    assert table.scan(expression, selected_fields=selected, limit=limit).to_arrow().num_rows == min(
        limit, len(matching)
    )
    bounds_are_exact(scan, world, matching)
    if rng.random() < 0.2:
        start = rng.randrange(len(world.appends) - 1)
        later = table.incremental_append_scan(
            from_snapshot_id_exclusive=world.appends[start][0], row_filter=expression, selected_fields=selected
        )
        rows = [row for row in world.rows[world.appends[start][1] :] if predicate.matches(flat(row, fields))]
        holds_exactly(later.to_arrow(), later.projection(), rows)


def top(name: str, fields: list[dict[str, Any]]) -> str:
    """Give the column on top that a selected name lies in."""
    return next(own.names[0] for own in places(fields) if own.path == name)


def holds_exactly(found: pa.Table, projection: ice.Schema, rows: list[dict[int, Any]]) -> None:
    fields = fields_of(projection)
    assert found.column_names == [field["name"] for field in fields]
    columns = []
    for field, column in zip(fields, found.columns, strict=True):
        columns.append([value for chunk in column.chunks for value in read(chunk, field["type"])])
    wanted = [tuple(as_read(row.get(field["id"]), field["type"]) for field in fields) for row in rows]
    got = list(zip(*columns, strict=True)) if columns else []
    assert Counter(map(repr, got)) == Counter(map(repr, wanted))


def bounds_are_exact(scan: ice.DataScan, world: World, matching: list[dict[int, Any]]) -> None:
    """Bounds that are said to be exact are the least and the greatest value of the rows that match."""
    fields = fields_of(world.table.schema())
    flattened = [flat(row, fields) for row in matching]
    for column in primitives(world.table.schema()):
        if column.type == "unknown":
            continue
        pair, reason = scan._scan.bounds(column.name)
        if reason is None:
            values = sorted((row[column.id] for row in flattened if row[column.id] is not None), key=order)
            assert from_array(pair.to_pyarrow()) == ([values[0], values[-1]] if values else [None, None]), column


def metrics_cover_the_values(world: World) -> None:
    """Readable metrics, which are of the types of today, are no narrower than the values."""
    files = world.table.inspect.data_files()
    metrics = files["readable_metrics"].combine_chunks()
    fields = fields_of(world.table.schema())
    flattened = [flat(row, fields) for row in world.rows]
    for column in primitives(world.table.schema()):
        if column.type in ("unknown", "float", "double", "uuid") or column.name not in metrics.type.names:
            continue
        own = metrics.field(column.name)
        lower, upper = (from_array(own.field(f"{side}_bound")) for side in ("lower", "upper"))
        values = [row[column.id] for row in flattened if row[column.id] is not None]
        if values and None not in lower and None not in upper:
            assert min(lower) <= min(values), column
            assert max(upper) >= max(values), column
