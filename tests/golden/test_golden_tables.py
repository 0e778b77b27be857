"""Golden tables through the public API: the rows of every snapshot, branch and tag, and of every planned filter.

What is not built yet (README, "What stands, and what refuses") must refuse by `UnsupportedFeatureError`, and never answer
other rows; it is counted apart. Whatever else refuses fails.
"""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest
from vectors import folder

import icefield as ice

pytestmark = pytest.mark.golden

GOLDEN = folder()
BASE = "/tmp/icefield-golden"


def names() -> list[str]:
    """List the tables that the set has and expects something of."""
    tables = GOLDEN / "tables"
    expected = sorted(path.parent.name for path in GOLDEN.glob("expected/*/table.json"))
    return [name for name in expected if (tables / name).is_dir() or (tables / f"{name}.tar.gz").is_file()]


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder that tables are unpacked to."""
    return tmp_path_factory.mktemp("golden")


@cache
def facts(name: str) -> dict[str, Any]:
    """Give what is expected of a table."""
    found: dict[str, Any] = json.loads((GOLDEN / "expected" / name / "table.json").read_text())
    return found


def open_table(name: str, scratch: Path) -> ice.Table:
    """Unpack a table, once, and open it where it lies."""
    folder = scratch / name
    if not folder.exists():
        source = GOLDEN / "tables" / name
        if source.is_dir():
            shutil.copytree(source, folder)
        else:
            with tarfile.open(f"{source}.tar.gz") as packed:
                packed.extractall(scratch, filter="data")
    relocate = {f"{scheme}{BASE}": str(scratch) for scheme in ("", "file:", "file://")}
    return ice.Table.from_metadata(f"{BASE}/{name}/{facts(name)['metadata_file']}", relocate=relocate)


def rows(name: str, item: dict[str, Any]) -> pa.Table | None:
    """Give the expected rows; None where the set has them in another form than Arrow."""
    path = GOLDEN / "expected" / name / item["rows_file"]
    if path.suffix != ".arrow":
        return None
    if not path.exists():
        pytest.skip(f"the set lacks {path.name}")
    with pa.memory_map(str(path)) as source:
        return pa.Table.from_batches([pa.ipc.open_file(source).get_batch(item["rows_batch"])])


def plain(table: pa.Table, names: list[str]) -> list[str]:
    """Give rows as sorted texts, columns in one order; NaN equals NaN."""
    return sorted(repr([normal(row[name]) for name in names]) for row in table.to_pylist(maps_as_pydicts="strict"))


def normal(value: Any) -> Any:
    """Give one form to what Arrow libraries write in several."""
    if isinstance(value, dict):
        return sorted((str(key), normal(item)) for key, item in value.items())
    if isinstance(value, list):
        return [normal(item) for item in value]
    if hasattr(value, "hex") and hasattr(value, "bytes"):
        return str(value)
    return value


def states() -> list[Any]:
    """List every state of every table that rows are expected of."""
    found = []
    for name in names():
        table = facts(name)
        if table.get("current") and "rows_file" in table["current"]:
            found.append(pytest.param(name, {}, table["current"], id=f"{name}-current"))
        found.extend(
            pytest.param(name, {"snapshot_id": item["snapshot_id"]}, item, id=f"{name}-{item['snapshot_id']}")
            for item in table.get("snapshots", [])
            if "rows_file" in item
        )
        found.extend(
            pytest.param(name, {"ref": ref}, item, id=f"{name}-ref-{ref}")
            for ref, item in table.get("refs", {}).items()
            if "rows_file" in item
        )
    return found


@pytest.mark.parametrize("name", names())
def test_facts(name: str, scratch: Path) -> None:
    """What the metadata say of the table, its snapshots and its refs; a fact that a set does not tell is not asked."""
    wanted = facts(name)
    table = open_table(name, scratch)
    metadata = json.loads(table.metadata_json())
    known = {snapshot["snapshot-id"]: snapshot for snapshot in metadata.get("snapshots") or []}
    same(wanted, {"location": table.location(), "format_version": table.format_version})
    if "current_snapshot_id" in wanted:
        current = table.current_snapshot()
        assert (None if current is None else current.snapshot_id) == wanted["current_snapshot_id"]
    if "snapshots" in wanted:
        assert sorted(known) == sorted(item["snapshot_id"] for item in wanted["snapshots"])
    for item in wanted.get("snapshots", []):
        snapshot = known[item["snapshot_id"]]
        same(
            item,
            {
                "parent_id": snapshot.get("parent-snapshot-id"),
                "sequence_number": snapshot.get("sequence-number", 0),
                "operation": (snapshot.get("summary") or {}).get("operation"),
                "schema_id": snapshot.get("schema-id"),
                "first_row_id": snapshot.get("first-row-id"),
                "added_rows": snapshot.get("added-rows"),
            },
        )
    refs = metadata.get("refs") or {}
    for ref, item in wanted.get("refs", {}).items():
        same(item, {"type": refs[ref]["type"], "snapshot_id": refs[ref]["snapshot-id"]})
    if "refs" in wanted:
        assert refs.keys() == wanted["refs"].keys()


def same(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    """Compare what is wanted of what was found."""
    assert found == {key: wanted.get(key, value) for key, value in found.items()}


@pytest.mark.parametrize(("name", "at", "item"), states())
def test_rows(name: str, at: dict[str, Any], item: dict[str, Any], scratch: Path) -> None:
    scan = open_table(name, scratch).scan(**at)
    expected = rows(name, item)
    try:
        found = scan.to_arrow()
    except ice.errors.UnsupportedFeatureError as error:
        assert str(error)
        pytest.skip(f"refused: {error}")
    assert found.num_rows == item["row_count"]
    if expected is not None:
        assert plain(found, expected.schema.names) == plain(cast(expected, found.schema), expected.schema.names)
    assert scan.count() == item["row_count"]


def cast(expected: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give the expected rows in our types where only the Arrow form differs (uuid as text, zones)."""
    columns = []
    for field in schema:
        column = expected.column(field.name)
        columns.append(column if column.type == field.type else try_cast(column, field.type))
    return pa.table(columns, names=schema.names)


def try_cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Cast where Arrow can without loss, else leave it to the comparison of values."""
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        return column


def plans() -> list[Any]:
    """List every planned filter with its rows."""
    found = []
    for name in names():
        path = GOLDEN / "expected" / name / "plans.json.gz"
        if path.exists():
            with gzip.open(path, "rt") as cases:
                for number, case in enumerate(json.load(cases)):
                    if "row_count" in case:
                        found.append(pytest.param(name, case, id=f"{name}-{number}"))
    return found


@pytest.mark.parametrize(("name", "case"), plans())
def test_filtered_rows(name: str, case: dict[str, Any], scratch: Path) -> None:
    table = open_table(name, scratch)
    schema_id = next(
        (s["schema_id"] for s in facts(name).get("snapshots", []) if s["snapshot_id"] == case.get("snapshot_id")), None
    )
    schema = table.schema() if schema_id is None else table.schemas()[schema_id]
    expr = None if case["expr"] is None else filter_of(case["expr"], schema)
    scan = table.scan(expr, snapshot_id=case.get("snapshot_id"), case_sensitive=case.get("case_sensitive", True))
    try:
        found = scan.to_arrow()
    except ice.errors.UnsupportedFeatureError as error:
        pytest.skip(f"refused: {error}")
    assert found.num_rows == case["row_count"]
    assert scan.count() == case["row_count"]


def filter_of(document: Any, schema: ice.Schema) -> Any:
    """Read a filter; literals are single values of their columns' types, or plain numbers that binding converts."""
    try:
        return ice.expressions.from_json(document, schema)
    except ice.IcefieldError:
        return ice.expressions.from_json(document)
