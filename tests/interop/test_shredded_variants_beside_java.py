"""Shredded variants: Java and icefield infer the same columns and bounds, and read each other's files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield import variant

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Java

pytestmark = pytest.mark.interop

KINDS = ("objects", "numbers", "decimals", "texts", "arrays", "mixed", "nulls", "late")
FIELDS = [ice.NestedField(2 + place, name, "variant") for place, name in enumerate(KINDS)]
SCHEMA = ice.Schema(ice.NestedField(1, "id", "long"), *FIELDS)


def event(number: int) -> Any:
    """Give an event with fields of one type and of several, rare ones, and such as are sometimes missing or null."""
    mixed = {"mixed": number if number % 3 else str(number)}
    rare = {"rare": 1} if number % 25 == 0 else {}
    some = {"some": None if number % 4 == 1 else f"text {number}" * 5} if number % 2 else {}
    elements = [{"n": number, "s": "x"} for _ in range(number % 3)]
    return {
        "small": number % 100,
        "wide": number * 10_000,
        "price": f"@{number}.{number % 10:0{1 + number % 2}}@",
        "at": {"x": number / 7, "it's": True, "tags": ["a", "b"][: number % 3]},
        "list": elements,
        **mixed,
        **rare,
        **some,
    }


def texts(kind: str) -> list[str | None]:
    """Give JSON texts: 120 rows, of which the first hundred are looked at."""
    made: dict[str, list[Any]] = {
        "objects": [event(number) if number % 11 != 10 else None for number in range(120)],
        "numbers": [1000 * number for number in range(120)],
        "decimals": [f"@{number}.{number:03}@" for number in range(120)],
        "texts": [f"{'€' * 20}{number}" for number in range(120)],
        "arrays": [[number, None, -number] for number in range(120)],
        "mixed": [number if number % 2 else f"{number}" for number in range(120)],
        "nulls": [None] * 120,
        "late": [{"a": number} if number < 110 else "no object" for number in range(120)],
    }
    # Numbers with a point are decimals, with the digits that they are written with.
    lines = [json.dumps(one).replace('"@', "").replace('@"', "") for one in made[kind]]
    return [None if number % 13 == 12 else line for number, line in enumerate(lines)]


def shredded(table: ice.Table) -> list[str]:
    """List the columns of the variants in the table's only file, with their types."""
    (task,) = table.scan().plan_files()
    schema = pq.ParquetFile(task.file.file_path.removeprefix("file:").replace("///", "/")).schema
    columns = [schema.column(place) for place in range(len(schema.names)) if schema.column(place).path != "id"]
    return [
        f"{column.path} {column.physical_type} {column.logical_type} {column.max_definition_level}"
        for column in columns
    ]


def bounds(table: ice.Table) -> list[dict[str, str]]:
    """Give the lower and the upper bounds of the variants, as texts."""
    (row,) = table.inspect.files().select(["lower_bounds", "upper_bounds"]).to_pylist()
    parts = [dict(row[name]) for name in ("lower_bounds", "upper_bounds")]
    return [{KINDS[id_ - 2]: split(part) for id_, part in found.items() if id_ > 1} for found in parts]


def quoted(line: str) -> str:
    """Write a literal of SQL."""
    return "'" + line.replace("\\", "\\\\").replace("'", "\\'") + "'"


def split(part: bytes) -> str:
    """Give the text of the variant whose metadata and value stand one after the other."""
    width = (part[0] >> 6) + 1
    count = int.from_bytes(part[1 : 1 + width], "little")
    start = 1 + width + (count + 1) * width
    last = int.from_bytes(part[start - width : start], "little")
    return repr(variant.Variant(part[: start + last], part[start + last :]))


def test_both_shred_alike(java: Java, tmp_path: Path) -> None:
    name = "shredded"
    catalog = ice.load_catalog(name, uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    java.catalog(name, tmp_path / "c.db", tmp_path / "wh")
    properties = {
        "format-version": "3",
        "write.parquet.shred-variants": "true",
        # Java's reader of batches refuses some shredded variants.
        "read.parquet.vectorization.enabled": "false",
    }
    ours = catalog.create_table("a.ours", SCHEMA, properties=properties)
    theirs = catalog.create_table("a.theirs", SCHEMA, properties=properties)
    given = catalog.create_table("a.given", SCHEMA, properties=properties)
    lines = {kind: texts(kind) for kind in KINDS}
    columns = {kind: variant.from_json(pa.array(lines[kind], pa.string())) for kind in KINDS}
    rows = pa.table({"id": pa.array(range(120)), **columns})
    ours.append(rows)
    given.append(rows, shred={"objects": "struct<small: long, at: struct<tags: list<string>>, mixed: string>"})
    tuples = [
        ", ".join(["NULL" if line is None else quoted(line) for line in row])
        for row in zip(*lines.values(), strict=True)
    ]
    values = ", ".join(f"({number}, {row})" for number, row in enumerate(tuples))
    parsed = ", ".join(f"parse_json({kind})" for kind in KINDS)
    java.sql(
        f"INSERT INTO {name}.a.theirs SELECT /*+ COALESCE(1) */ id, {parsed} "
        f"FROM VALUES {values} AS given(id, {', '.join(KINDS)})"
    )
    java.sql(f"DELETE FROM {name}.a.given WHERE id = 5")
    theirs.refresh()
    assert shredded(ours) == shredded(theirs)
    assert bounds(ours) == bounds(theirs)
    # Numbers of several widths, decimals that grow, and arrays have none.
    assert [sorted(found) for found in bounds(ours)] == [["late", "objects", "texts"]] * 2
    shown = ", ".join(f"to_json({kind}) AS {kind}" for kind in KINDS)
    path = "variant_get(objects, '$.at.tags[0]', 'string') AS tag, variant_get(objects, '$.small', 'long') AS small"
    read = [
        java.rows(f"SELECT id, {shown}, {path} FROM {name}.a.{table} WHERE id != 5 ORDER BY id")
        for table in ("ours", "theirs", "given")
    ]
    assert read[0] == read[1] == read[2]
    own, other = theirs.scan().to_arrow(), ours.scan().to_arrow()
    assert all(variant.to_json(own[kind]) == variant.to_json(other[kind]) for kind in KINDS)
