"""Random schemas, partitions and rows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

import icefield as ice

from .values import NANOS, ORC_POOLS, POOLS, order, to_array

NAN = {"float", "double"}

# Which transforms take which types; the parameters are small, so that values meet.
TRANSFORMS: dict[str, tuple[str, ...]] = {
    "boolean": ("identity", "void"),
    "int": ("identity", "bucket[3]", "truncate[10]", "void"),
    "long": ("identity", "bucket[4]", "truncate[7]"),
    "float": ("identity",),
    "double": ("identity",),
    "decimal(9, 2)": ("identity", "bucket[3]", "truncate[50]"),
    "decimal(38, 10)": ("identity", "bucket[2]"),
    "date": ("identity", "bucket[3]", "year", "month", "day"),
    "time": ("identity", "bucket[3]"),
    "timestamp": ("bucket[2]", "year", "month", "day", "hour"),
    "timestamptz": ("identity", "year", "month", "day", "hour"),
    "timestamp_ns": ("bucket[2]", "year", "day", "hour"),
    "timestamptz_ns": ("identity", "month", "day"),
    "string": ("identity", "bucket[3]", "truncate[1]", "truncate[2]"),
    "binary": ("identity", "bucket[2]", "truncate[1]"),
    "fixed[4]": ("identity", "bucket[3]"),
    "uuid": ("identity", "bucket[3]"),
}


@dataclass(frozen=True)
class Column:
    """A primitive column that predicates may name."""

    id: int
    name: str
    type: str
    nested: bool = False


def random_schema(rng: Random, version: int, without: Collection[str] = ()) -> ice.Schema:
    """Make a schema: ``id``, some primitive columns, mostly a struct of structs, at times a list and a map."""
    kinds = [kind for kind in POOLS if (version > 2 or kind not in NANOS) and kind not in without]
    chosen = rng.sample(kinds, rng.randint(4, 8))
    names = ["größe", "odd name", "Upper"] + [f"c{number}" for number in range(9)]
    ids = itertools.count(1)

    def field(name: str, kind: Any, *, required: bool = False) -> dict[str, Any]:
        return {"id": next(ids), "name": name, "required": required, "type": kind}

    fields = [field("id", "long", required=True)]
    fields += [field(name, kind, required=rng.random() < 0.1) for name, kind in zip(names, chosen, strict=False)]
    if rng.random() < 0.8:
        inner = {"type": "struct", "fields": [field("x", "double"), field(rng.choice(["d", "id"]), "date")]}
        kinds = ("int", "string", "timestamptz", "decimal(9, 2)")
        within = [field("a", rng.choice(kinds)), field("s", "string", required=rng.random() < 0.3)]
        fields.append(field("st", {"type": "struct", "fields": [*within, field("in", inner)]}))
    if rng.random() < 0.4:
        fields.append(
            field("li", {"type": "list", "element-id": next(ids), "element": "int", "element-required": False})
        )
    if rng.random() < 0.4:
        kind = {"type": "map", "key-id": next(ids), "key": "string", "value-id": next(ids), "value": "long"}
        fields.append(field("m", {**kind, "value-required": False}))
    return ice.Schema.from_json({"type": "struct", "schema-id": 0, "fields": fields})


def primitives(schema: ice.Schema) -> list[Column]:
    """List the columns that predicates may name, those inside of structs with their path."""
    import json

    def visit(fields: list[dict[str, Any]], prefix: str) -> list[Column]:
        found = []
        for field in fields:
            name, kind = prefix + field["name"], field["type"]
            if isinstance(kind, str):
                found.append(Column(field["id"], name, _normal(kind), bool(prefix)))
            elif kind["type"] == "struct":
                found += visit(kind["fields"], f"{name}.")
        return found

    return visit(json.loads(schema.to_json())["fields"], "")


def _normal(kind: str) -> str:
    return kind.replace(",", ", ").replace("  ", " ")


def random_partition(rng: Random, schema: ice.Schema) -> list[tuple[str, str]]:
    """Choose up to three partition fields: a column and a transform."""
    columns = [column for column in primitives(schema) if column.type in TRANSFORMS]
    chosen = [
        (column.name, rng.choice(TRANSFORMS[column.type])) for column in rng.sample(columns, min(3, len(columns)))
    ]
    return chosen[: rng.choice([0, 1, 1, 2, 2, 3])]


def random_rows(rng: Random, schema: ice.Schema, first_id: int, count: int, *, orc: bool = False) -> pa.Table:
    """Make rows whose columns keep to a window of their type's values, so that metrics can tell files apart.

    With ``orc``, only rows that ORC can hold: no time of the last second before 1970.
    """
    kinds = {column.id: column.type for column in primitives(schema)}
    return _rows(rng, schema.to_arrow(), first_id, count, kinds, ORC_POOLS if orc else POOLS)


def _rows(
    rng: Random, schema: pa.Schema, first_id: int, count: int, kinds: dict[int, str], pools: dict[str, list[Any]]
) -> pa.Table:
    def column(field: pa.Field) -> list[Any]:
        nulls = 0.0 if not field.nullable else rng.choice([0.0, 0.0, 0.3, 1.0])
        if field.name == "id" and not field.nullable:
            return list(range(first_id, first_id + count))
        if pa.types.is_struct(field.type):
            members = [field.type.field(place) for place in range(field.type.num_fields)]
            columns = {member.name: column(member) for member in members}
            values = [{name: values[row] for name, values in columns.items()} for row in range(count)]
        elif pa.types.is_list(field.type):
            values = [rng.choices([None, 1, 2], k=rng.randint(0, 2)) for _ in range(count)]
        elif pa.types.is_map(field.type):
            values = [[(key, rng.choice([None, 7])) for key in "ab"[: rng.randint(0, 2)]] for _ in range(count)]
        else:
            kind = kinds.get(int(field.metadata[b"PARQUET:field_id"]), "")
            pool = sorted(pools.get(kind, [None]), key=lambda value: order(value) if value is not None else 0)
            start = rng.randrange(len(pool))
            window = pool[start : start + rng.randint(1, 4)]
            if kind in NAN and rng.random() < 0.3:
                window = [*window, math.nan] if rng.random() < 0.8 else [math.nan]
            values = rng.choices(window, k=count)
        return [None if rng.random() < nulls else value for value in values]

    return pa.table([to_array(column(field), field.type) for field in schema], schema=schema)
