"""Laws of scans over tables whose schema, spec, file format and metrics changed between their files.

Whatever a filter tests and whatever columns are selected: a scan reads exactly the rows that match, with the values
that the naive rows of `worlds.evolving` have; counts, limits, bounds and metrics agree with them. Drawn by hypothesis,
so that a failure shrinks to a small table and filter. ``ICEFIELD_RANDOM_CASES`` draws more, and
``ICEFIELD_RANDOM_SEED`` others.
"""

from __future__ import annotations

import json
import math
import os
from collections import Counter
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, note, seed, settings
from hypothesis import strategies as st

import icefield as ice
from worlds.evolving import EDGES, World, as_read, fields_of, flat, nested_columns, places, read
from worlds.predicates import Predicate, Test, random_predicate
from worlds.stories import _sources
from worlds.tables import NAN, TRANSFORMS, Column, primitives
from worlds.values import SECOND, from_array, is_nan, order

CASES = int(os.environ.get("ICEFIELD_RANDOM_CASES", "400"))
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
PER_TABLE = 10


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
        summaries_cover_uuids(world)
        for _ in range(PER_TABLE):
            scan_keeps_the_laws(rng, world)

    laws()


def some_predicate(rng: Random, world: World) -> Predicate:
    """Draw a filter of primitive columns, and at times a test of a nested one for null."""
    schema = world.table.schema()
    columns = [column for column in primitives(schema) if column.type != "unknown"]
    # Columns that files are partitioned by, and those whose types have edge cases, come up more often.
    sources = {column for spec in world.table.specs().values() for column in _sources(spec)}
    columns += [column for column in columns if column.id in sources] * 2
    columns += [column for column in columns if column.type in EDGES]
    drawn = random_predicate(rng, columns, TRANSFORMS, values_of(world))
    nested = nested_columns(fields_of(schema))
    nested += [column for column in primitives(schema) if column.type == "unknown"]
    if nested and rng.random() < 0.2:
        test = Predicate("test", test=Test(rng.choice(["is-null", "not-null"]), rng.choice(nested)), typed=drawn.typed)
        return Predicate(rng.choice(["and", "or"]), (drawn, test), typed=drawn.typed)
    return drawn


def values_of(world: World) -> dict[int, list[Any]]:
    """Return the values of each column that a literal may have, and of zeros the other one too."""
    fields = fields_of(world.table.schema())
    found: dict[int, list[Any]] = {}
    for column in primitives(world.table.schema()):
        values = [value for row in world.rows if (value := flat(row, fields)[column.id]) is not None]
        values = [value for value in values if not is_nan(value) and is_literal(column.type, value)]
        found[column.id] = values + [-value for value in values if column.type in NAN and value == 0]
    return found


def is_literal(kind: str, value: Any) -> bool:
    """Whether JSON has the value: no infinities, and moments of the years 1 to 9999 alone."""
    if value in (math.inf, -math.inf):
        return False
    ticks = SECOND.get(kind, 0)
    return not ticks or -62_135_596_800 * ticks <= value < 253_402_300_800 * ticks


def some_columns(rng: Random, schema: ice.Schema) -> tuple[str, ...]:
    """Draw what is selected: everything, or some columns in any order, those inside of structs too."""
    # Lists and maps inside of structs cannot be selected by themselves.
    names = [own.path for own in places(fields_of(schema)) if not own.parents or own.shape not in ("list", "map")]
    return ("*",) if rng.random() < 0.2 else tuple(rng.sample(names, rng.randint(1, min(3, len(names)))))


def scan_keeps_the_laws(rng: Random, world: World) -> None:
    table, schema = world.table, world.table.schema()
    predicate, selected = some_predicate(rng, world), some_columns(rng, schema)
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
    """Readable metrics, which are of the types of today, are no narrower than the values of their append."""
    entries = world.table.inspect.entries()
    snapshots, metrics = entries["snapshot_id"].to_pylist(), entries["readable_metrics"].combine_chunks()
    flattened = rows_of_appends(world)
    for column in primitives(world.table.schema()):
        if column.type in ("unknown", "float", "double") or column.name not in metrics.type.names:
            continue
        own = metrics.field(column.name)
        parts = [own.field(name) for name in ("value_count", "null_value_count", "lower_bound", "upper_bound")]
        files: dict[int, list[tuple[Any, ...]]] = {}
        for snapshot, *file in zip(snapshots, *map(from_array, parts), strict=True):
            files.setdefault(snapshot, []).append(tuple(file))
        for snapshot, of_append in files.items():
            bounds = [file[2:] for file in of_append if file[0] is None or file[0] != file[1]]
            values = [row[column.id] for row in flattened[snapshot] if row[column.id] is not None]
            if values and not any(None in pair for pair in bounds):
                covers([pair[0] for pair in bounds], [pair[1] for pair in bounds], values, column)


def rows_of_appends(world: World) -> dict[int, list[dict[int, Any]]]:
    """Return the rows of each append by its snapshot, as filters see them."""
    fields = fields_of(world.table.schema())
    ends = [end for _, end in world.appends]
    places = zip(world.appends, [0, *ends[:-1]], strict=True)
    return {snapshot: [flat(row, fields) for row in world.rows[start:end]] for (snapshot, end), start in places}


def covers(lower: list[Any], upper: list[Any], values: list[Any], column: Column) -> None:
    """Bounds are no narrower than the values; those of uuids in the order of the specification and in Java's."""
    for key in (order, signed) if column.type == "uuid" else (order,):
        assert min(map(key, lower)) <= min(map(key, values)), column
        assert max(map(key, upper)) >= max(map(key, values)), column


def signed(uuid: bytes) -> tuple[int, int]:
    """Return a key that sorts uuids as the Java library does: as two signed numbers."""
    return int.from_bytes(uuid[:8], "big", signed=True), int.from_bytes(uuid[8:], "big", signed=True)


def summaries_cover_uuids(world: World) -> None:
    """Summaries of manifests, where a list has them, are no narrower than the uuids of partitions in both orders."""
    uuids = {column.id: column for column in primitives(world.table.schema()) if column.type == "uuid"}
    flattened = rows_of_appends(world)
    for manifest in world.table.inspect.all_manifests().to_pylist():
        if manifest["existing_data_files_count"]:
            continue  # of several appends
        spec = json.loads(world.table.specs()[manifest["partition_spec_id"]].to_json())["fields"]
        # None where the list has no summaries.
        for part, summary in zip(spec, manifest["partition_summaries"] or [], strict=False):
            source = part["source-id"]
            if part["transform"] != "identity" or source not in uuids:
                continue
            values = [row[source] for row in flattened[manifest["added_snapshot_id"]] if row[source] is not None]
            if values:
                # The Java library takes a field without bounds for one without values.
                bounds = [UUID(summary[f"{side}_bound"]).bytes for side in ("lower", "upper")]
                covers(bounds[:1], bounds[1:], values, uuids[source])
