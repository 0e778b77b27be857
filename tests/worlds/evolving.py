"""A table that is written, evolved and written again, and beside it its rows as plain Python, which evolve with it.

A row is a dict from field ids to values: structs are such dicts, lists are lists, maps lists of pairs, and primitive
values as in `values`. What a change of the schema means for rows that are there is applied to the dicts, so nothing is
ever read back to know what the table should hold.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow as pa

import icefield as ice

from .predicates import pool_of
from .stories import _evolve_spec, _text
from .tables import NAN, Column, _normal, primitives, random_partition
from .values import DAY, NANOS, ORC_POOLS, POOLS, from_array, to_array

Row = dict[int, Any]
Field = dict[str, Any]

#: Types that a column may be promoted to, and what becomes of its values.
PROMOTIONS: dict[str, list[tuple[str, Callable[[Any], Any]]]] = {
    "int": [("long", int)],
    "float": [("double", float)],
    "decimal(9, 2)": [("decimal(20, 2)", lambda value: value), ("decimal(38, 2)", lambda value: value)],
    "date": [("timestamp", lambda days: days * DAY), ("timestamp_ns", lambda days: days * DAY * 1000)],
    "unknown": [("int", int), ("string", str), ("timestamp", int)],
}
#: Types that only version 3 has, and promotions to them.
V3 = (*NANOS, "unknown")
KINDS = (*POOLS, "unknown")
DEFAULTS = {"int": 7, "string": "new", "double": 1.5, "boolean": True, "long": -(2**63)}
FORMATS = ["parquet", "orc"]
#: Types whose partitions have edge cases of their own, and a transform that meets them: `truncate` of numbers wraps
#: around near the smallest one, uuids have two orders, and promoted dates are partitioned by a time.
EDGES = {
    "int": ["truncate[10]"],
    "long": ["truncate[7]"],
    "uuid": ["identity"],
    "date": ["day", "month"],
    "decimal(9, 2)": ["truncate[50]"],
    "timestamp": ["year", "month", "day", "hour"],
    "timestamp_ns": ["year", "month", "day", "hour"],
}
HOUR = 3_600_000_000
#: The first and the last moments: those whose hours an int can count, and in ORC those of the years 1 to 9999.
ENDS = {"timestamp": [-(2**31) * HOUR, 2**31 * HOUR - 1], "timestamp_ns": [-(2**63), 2**63 - 1]}
ORC_ENDS = {"timestamp": [-62_135_596_800_000_000, 253_402_300_799_999_999]}


def _with_ends(pools: dict[str, list[Any]], moments: dict[str, list[int]]) -> dict[str, list[Any]]:
    """Return pools from which the extreme values, and the two zeros, are drawn more often than others."""
    moments = {**moments, "timestamptz": moments["timestamp"], "timestamptz_ns": moments.get("timestamp_ns", [])}
    ends = {kind: [pool[0], pool[-1], *moments.get(kind, [])] for kind, pool in pools.items()}
    ends |= {kind: [-0.0, 0.0] for kind in NAN}
    return {kind: [*pool, *ends[kind] * 3] for kind, pool in pools.items()}


VALUES = {"parquet": _with_ends(POOLS, ENDS), "orc": _with_ends(ORC_POOLS, ORC_ENDS)}
#: Days that nanoseconds can hold.
DAYS = range(-106_751, 106_751)


class World:
    """One table and the rows that it should hold."""

    def __init__(self, rng: Random, catalog: Any, name: str) -> None:
        self.rng, self.version = rng, rng.choice([1, 2, 3, 3, 3])
        self.rows: list[Row] = []
        #: The snapshot of each append, and how many rows there were after it.
        self.appends: list[tuple[int, int]] = []
        self.log: list[str] = []
        schema = self._schema()
        partition = [_text(*part) for part in self._partition(schema)]
        metrics = rng.choice([*["full"] * 4, "truncate(16)", "truncate(1)", "counts", "none"])
        properties = {"format-version": str(self.version), "write.metadata.metrics.default": metrics}
        self.table = catalog.create_table(name, schema=schema, partition_by=partition, properties=properties)
        self.log.append(f"v{self.version} {metrics} {partition} {schema.to_json()}")
        self.append()
        for _ in range(rng.randint(1, 5)):
            rng.choice([self.append, self.evolve, self.evolve, self.evolve_spec])()
        self.append()

    # Schemas

    def _schema(self) -> ice.Schema:
        rng, ids = self.rng, itertools.count(1)
        kinds = [kind for kind in (*KINDS, *EDGES) if self.version > 2 or kind not in V3]

        def field(name: str, kind: Any, *, required: bool = False) -> Field:
            return {"id": next(ids), "name": name, "required": required, "type": kind}

        def nested(depth: int) -> Any:
            shape = rng.choice(["struct", "struct", "list", "map", "leaf"]) if depth else "leaf"
            if shape == "struct":
                fields = [field(name, nested(depth - 1)) for name in "pqr"[: rng.randint(1, 3)]]
                return {"type": "struct", "fields": fields}
            if shape == "list":
                own = next(ids)
                return {"type": "list", "element-id": own, "element": nested(depth - 1), "element-required": False}
            if shape == "map":
                key, value = next(ids), next(ids)
                kind = nested(depth - 1)
                return {"type": "map", "key-id": key, "key": "string", "value-id": value, "value": kind,
                        "value-required": False}  # fmt: skip
            return rng.choice([kind for kind in kinds if kind != "unknown"])

        fields = [field("id", "long", required=True)]
        names = ["a", "odd name", "Größe", "d", "e", "f"]
        fields += [field(name, rng.choice(kinds)) for name in names[: rng.randint(1, 5)]]
        if rng.random() < 0.7:
            inside = [field("p", nested(0)), field("m", nested(2))]
            kept = rng.choice([inside, inside[::-1], inside[1:]])
            fields.append(field("st", {"type": "struct", "fields": kept}))
        if rng.random() < 0.3:
            fields.append(field("n", nested(2)))
        return ice.Schema.from_json(json.dumps({"type": "struct", "schema-id": 0, "fields": fields}))

    def _partition(self, schema: ice.Schema) -> list[tuple[str, str]]:
        drawn = random_partition(self.rng, schema)
        edges = [column for column in primitives(schema) if column.type in EDGES]
        if not edges or self.rng.random() < 0.4:
            return drawn
        column = self.rng.choice(edges)
        first = (column.name, self.rng.choice(EDGES[column.type]))
        return [first, *(part for part in drawn[:1] if part[0] != column.name)]

    def fields(self) -> list[Field]:
        """Give the columns of the current schema."""
        found: list[Field] = fields_of(self.table.schema())
        return found

    # What happens

    def append(self) -> None:
        rng, count = self.rng, self.rng.randint(1, 5)
        file_format = rng.choice(FORMATS)
        with self.table.transaction() as change:
            change.set_properties({"write.format.default": file_format})
        pools = VALUES[file_format]
        fields = self.fields()
        drawn = {field["id"]: self._column(field, count, pools) for field in fields}
        first = len(self.rows)
        drawn[fields_by_name(fields)["id"]["id"]] = list(range(first, first + count))
        rows = [{number: values[place] for number, values in drawn.items()} for place in range(count)]
        schema = self.table.schema().to_arrow()
        columns = [
            to_array_of([row[own["id"]] for row in rows], own["type"], field.type)
            for own, field in zip(fields, schema, strict=True)
        ]
        self.table.append(pa.table(columns, schema=schema))
        self.rows += rows
        self.appends.append((self.table.current_snapshot().snapshot_id, len(self.rows)))
        self.log.append(f"append {file_format} {rows}")

    def _column(self, field: Field, count: int, pools: dict[str, list[Any]]) -> list[Any]:
        nulls = self.rng.choice([0, 0, 0, 1, 1, 2, 4])
        if isinstance(field["type"], str) and (kind := _normal(field["type"])) in pools:
            # Few values in a file: its bounds are narrow, or one value.
            pool = pools[kind]
            pools = {kind: self.rng.sample(pool, self.rng.choice([1, 2, 4, len(pool)]))}
        return [
            None if self.rng.randrange(4) < nulls and not field["required"] else self._value(field["type"], pools)
            for _ in range(count)
        ]

    def _value(self, kind: Any, pools: dict[str, list[Any]]) -> Any:
        rng = self.rng
        if isinstance(kind, str):
            kind = _normal(kind)
            pool = pools.get(kind) or pool_of(kind) or [None]
            return rng.choice([*pool, math.nan] if kind in NAN else pool)
        if kind["type"] == "struct":
            return {own["id"]: self._column(own, 1, pools)[0] for own in kind["fields"]}
        length = rng.randint(0, 2)
        if kind["type"] == "list":
            return [self._element(kind["element"], pools) for _ in range(length)]
        return [(key, self._element(kind["value"], pools)) for key in "ab"[:length]]

    def _element(self, kind: Any, pools: dict[str, list[Any]]) -> Any:
        return None if self.rng.random() < 0.25 else self._value(kind, pools)

    def evolve_spec(self) -> None:
        if any(column.type != "unknown" for column in primitives(self.table.schema())):
            _evolve_spec(self.rng, self)  # type: ignore[arg-type]

    def evolve(self) -> None:
        """Change the schema; what the library refuses changes nothing."""
        rng = self.rng
        leaves = [own for own in places(self.fields()) if own.field["name"] != "id" or own.parents]
        if not leaves:
            return
        place = rng.choice(leaves)
        kind = rng.choice(["add", "promote", "promote", "drop", "rename", "move"])
        promotions = [
            pair
            for pair in PROMOTIONS.get(text_of(place.field["type"]), [])
            if self.version > 2 or not pair[0].startswith("timestamp")
        ]
        if kind == "promote" and not promotions:
            promotable = [own for own in leaves if text_of(own.field["type"]) in PROMOTIONS]
            place = rng.choice(promotable or leaves)
            promotions = PROMOTIONS.get(text_of(place.field["type"]), [])
        self.log.append(f"{kind} {place.path}")
        try:
            with self.table.update_schema() as update:
                after = getattr(self, f"_{kind}")(update, place, promotions)
        except ice.IcefieldError as error:
            self.log.append(f"refused: {error}")
        else:
            after()

    def _add(self, update: Any, place: Place, _: Any) -> Callable[[], None]:
        rng, name = self.rng, f"n{len(self.log)}"
        new = rng.choice([*DEFAULTS, "date", "uuid", *(["unknown"] if self.version > 2 else [])])
        default = DEFAULTS.get(new) if self.version > 2 and rng.random() < 0.5 else None
        parents = place.parents if rng.random() < 0.6 else ()
        update.add_column((*(parent["name"] for parent in parents), name), new, default_value=default)

        def after() -> None:
            fields = self.fields()
            for parent in parents:
                fields = fields_by_name(fields)[parent["name"]]["type"]["fields"]
            number = fields_by_name(fields)[name]["id"]
            for row in self.rows:
                inside = within(row, parents)
                if inside is not None:
                    inside[number] = default

        return after

    def _promote(self, update: Any, place: Place, promotions: list[Any]) -> Callable[[], None]:
        if not promotions:
            return self._rename(update, place, promotions)
        wider, convert = self.rng.choice(promotions)
        number = place.field["id"]
        values = [inside.get(number) for row in self.rows if (inside := within(row, place.parents)) is not None]
        if wider == "timestamp_ns" and any(value is not None and value not in DAYS for value in values):
            wider, convert = "timestamp", lambda days: days * DAY
        if wider == "timestamp" and self.version < 3:
            return self._rename(update, place, promotions)
        update.update_column(place.names, wider)
        self.log.append(f"to {wider}")

        def after() -> None:
            for row in self.rows:
                inside = within(row, place.parents)
                if inside is not None and inside.get(number) is not None:
                    inside[number] = convert(inside[number])

        return after

    def _drop(self, update: Any, place: Place, _: Any) -> Callable[[], None]:
        if place.parents and len(place.parents[-1]["type"]["fields"]) == 1:
            # Parquet has no structs without fields.
            return self._rename(update, place, _)
        update.delete_column(place.names)
        return lambda: None

    def _rename(self, update: Any, place: Place, _: Any) -> Callable[[], None]:
        update.rename_column(place.names, f"r{len(self.log)}")
        return lambda: None

    def _move(self, update: Any, place: Place, _: Any) -> Callable[[], None]:
        update.move_first(place.names)
        return lambda: None


class Place:
    """A field inside of structs."""

    def __init__(self, field: Field, parents: tuple[Field, ...]) -> None:
        self.field, self.parents = field, parents
        self.names = (*(parent["name"] for parent in parents), field["name"])
        self.path = ".".join(self.names)
        self.shape: str = "leaf" if isinstance(field["type"], str) else field["type"]["type"]


def fields_of(schema: ice.Schema) -> list[Field]:
    """Give the fields of a schema's JSON."""
    found: list[Field] = json.loads(schema.to_json())["fields"]
    return found


def fields_by_name(fields: list[Field]) -> dict[str, Field]:
    """Find fields by name."""
    return {field["name"]: field for field in fields}


def text_of(kind: Any) -> str:
    """Give the name of a primitive type; of others nothing."""
    return _normal(kind) if isinstance(kind, str) else ""


def places(fields: list[Field], parents: tuple[Field, ...] = ()) -> Iterator[Place]:
    """List all fields, those inside of structs too."""
    for field in fields:
        place = Place(field, parents)
        yield place
        if place.shape == "struct":
            yield from places(field["type"]["fields"], (*parents, field))


def within(row: Row | None, parents: tuple[Field, ...]) -> Row | None:
    """Give what the innermost of the structs holds; None where one of them is null."""
    for parent in parents:
        row = None if row is None else row.get(parent["id"])
    return row


def flat(row: Row, fields: list[Field]) -> Row:
    """Give what predicates see of a row: every field inside of structs by its id; a value that is no leaf is True."""
    found = {}
    for place in places(fields):
        inside = within(row, place.parents)
        value = None if inside is None else inside.get(place.field["id"])
        found[place.field["id"]] = value if place.shape == "leaf" or value is None else True
    return found


def nested_columns(fields: list[Field]) -> list[Column]:
    """List the structs, lists and maps, which may be tested for null."""
    found = [place for place in places(fields) if place.shape != "leaf"]
    return [Column(place.field["id"], place.path, "nested", nested=True) for place in found]


def to_array_of(values: list[Any], kind: Any, arrow: pa.DataType) -> pa.Array:
    """Make an Arrow array of values by field id."""
    if isinstance(kind, str):
        return to_array(values, arrow)
    missing = pa.array([value is None for value in values], pa.bool_())
    if kind["type"] == "struct":
        columns = [
            to_array_of([None if row is None else row.get(own["id"]) for row in values], own["type"], field.type)
            for own, field in zip(kind["fields"], arrow, strict=True)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(arrow), mask=missing)
    lengths = [0 if value is None else len(value) for value in values]
    ends = [None if value is None else end - own
            for value, end, own in zip(values, itertools.accumulate(lengths), lengths, strict=True)]  # fmt: skip
    offsets = pa.array([*ends, sum(lengths)], pa.int32())
    inside = [one for value in values if value is not None for one in value]
    if kind["type"] == "list":
        elements = to_array_of(inside, kind["element"], arrow.value_type)
        return pa.ListArray.from_arrays(offsets, elements, type=arrow)
    keys = pa.array([key for key, _ in inside], arrow.key_type)
    items = to_array_of([item for _, item in inside], kind["value"], arrow.item_type)
    return pa.MapArray.from_arrays(offsets, keys, items, type=arrow)


def as_read(value: Any, kind: Any) -> Any:
    """Give a value as a scan of this type should read it: structs as tuples of their fields, in their order."""
    if value is None or isinstance(kind, str):
        return value
    if kind["type"] == "struct":
        return tuple(as_read(value.get(own["id"]), own["type"]) for own in kind["fields"])
    if kind["type"] == "list":
        return [as_read(one, kind["element"]) for one in value]
    return [(key, as_read(item, kind["value"])) for key, item in value]


def read(array: pa.Array, kind: Any) -> list[Any]:
    """Give the values of an Arrow array in the form of `as_read`."""
    if isinstance(kind, str):
        return [None] * len(array) if pa.types.is_null(array.type) else from_array(array)
    valid = array.is_valid().to_pylist()
    if kind["type"] == "struct":
        columns = [read(child, own["type"]) for child, own in zip(array.flatten(), kind["fields"], strict=True)]
        rows = list(zip(*columns, strict=True)) if columns else [()] * len(array)
        return [row if there else None for row, there in zip(rows, valid, strict=True)]
    if kind["type"] == "list":
        inside = read(array.values, kind["element"])
    else:
        inside = list(zip(array.keys.to_pylist(), read(array.items, kind["value"]), strict=True))
    offsets = array.offsets.to_pylist()
    pairs = zip(itertools.pairwise(offsets), valid, strict=True)
    return [inside[start:end] if there else None for (start, end), there in pairs]
