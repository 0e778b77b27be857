"""Metadata tables of random tables, written by us and by Java: schemas and rows are Java's, at any snapshot."""

from __future__ import annotations

import datetime as dt
import json
import os
import uuid
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
from worlds.stories import tell
from worlds.values import NANOS

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

TABLES = int(os.environ.get("ICEFIELD_RANDOM_CASES", "200")) // 40
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
CATALOG = "looked"
# Types of which Java shows no metadata in Spark: tables cannot have them, or it fails on their bounds (uuid, fixed).
NOT_IN_SPARK = {"time", "uuid", "fixed[4]", *NANOS}
OF_A_SNAPSHOT = ("entries", "files", "data_files", "delete_files", "manifests", "partitions", "position_deletes")
COMPARED: Counter[str] = Counter()


@pytest.mark.parametrize("number", range(TABLES))
def test_rows_and_schemas_are_those_of_java(catalog: ice.catalog.Catalog, java: Java, number: int) -> None:
    rng = Random(SEED * 1000 + number)
    name = f"{CATALOG}.db.t{number}"

    def peer(verb: str, **arguments: Any) -> int:
        return change(java, name, verb, arguments)

    story = tell(rng, catalog, f"db.t{number}", peer=peer, without=NOT_IN_SPARK)
    table = catalog.load_table(f"db.t{number}")
    problems = []
    for what in table.inspect.names:
        problems += compare(java, table, f"{name}.{what}", what, None)
    snapshot = rng.choice(table.snapshots())
    for what in OF_A_SNAPSHOT:
        problems += compare(java, table, f"{name}.{what}", what, snapshot.snapshot_id)
    assert not problems, "\n".join([f"seed {SEED}, table {number}: {story.log}", *problems])


def test_most_was_compared() -> None:
    assert COMPARED["rows"] > 50 * TABLES, COMPARED


def change(java: Java, name: str, verb: str, arguments: dict[str, Any]) -> int:
    """Let Java write; what it cannot write is left out."""
    try:
        if verb == "sql":
            java.sql(f"DELETE FROM {name} WHERE id IN ({', '.join(str(one) for one in arguments['ids'])})")
            return 0
        return int(java.do("write", table=name, how=verb, **arguments))
    except RuntimeError as error:
        known = ("UnsupportedOperation", "Cannot convert", "cannot read default value")
        assert any(text in str(error) for text in known), error
        return 0


def compare(java: Java, table: ice.Table, name: str, what: str, snapshot_id: int | None) -> list[str]:
    """Say in what a metadata table differs."""
    travel = "" if snapshot_id is None else f" VERSION AS OF {snapshot_id}"
    where = f"{what}{travel}"
    try:
        schema = java.do("schema", table=name)
        wanted = "* EXCEPT (row)" if what == "position_deletes" else "*"
        theirs = rows(java.rows(f"SELECT {wanted} FROM {name}{travel}"))
    except RuntimeError as error:
        return [f"{where}: Java fails: {error}"]
    at = {} if snapshot_id is None else {"snapshot_id": snapshot_id}
    found_rows = getattr(table.inspect, what)(**at)
    # Spark's Arrow has no rows that are null where something in them is required.
    ours = rows(found_rows.drop_columns("row") if what == "position_deletes" else found_rows)
    COMPARED["tables"] += 1
    COMPARED["rows"] += len(ours)
    found = []
    if (mine := json.loads(java_schema(table, what))) != plain(json.loads(schema)):
        found.append(f"{where}: schema {mine}, Java {plain(json.loads(schema))}")
    if ours != theirs:
        only_ours = [row for row in ours if row not in theirs][:2]
        only_java = [row for row in theirs if row not in ours][:2]
        found.append(f"{where}: {len(ours)} rows {only_ours}, Java {len(theirs)} rows {only_java}")
    return found


def java_schema(table: ice.Table, what: str) -> str:
    """Give the schema of a metadata table as Spark has it."""
    from icefield.spark.columns.types import spark_schema

    return json.dumps(plain(json.loads(spark_schema(table.inspect.schema(what)).json())))


def plain(node: Any) -> Any:
    """Leave out what only Spark's own columns have (ids, comments), and what docs/differences.md names."""
    if isinstance(node, dict):
        kept = {key: plain(value) for key, value in node.items() if key != "metadata"}
        return {**kept, "nullable": True} if node.get("name") == "contains_nan" else kept
    return [plain(one) for one in node] if isinstance(node, list) else node


def rows(table: pa.Table) -> list[str]:
    """Give the rows as sorted texts."""
    return sorted(json.dumps(text(row), sort_keys=True) for row in table.to_pylist())


def text(value: Any) -> Any:
    """Give a value in one form, whichever engine it comes from."""
    if isinstance(value, dict):
        return {key: text(one) for key, one in value.items()}
    if isinstance(value, list):
        if value and all(isinstance(one, tuple) for one in value):
            return sorted(([text(key), text(one)] for key, one in value), key=str)
        return [text(one) for one in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    if isinstance(value, dt.datetime):
        return value.astimezone(dt.timezone.utc).isoformat() if value.tzinfo else value.isoformat()
    if isinstance(value, float | uuid.UUID | dt.date | dt.time) or type(value).__name__ == "Decimal":
        return str(value)
    return value
