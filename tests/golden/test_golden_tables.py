"""Golden tables through the public API: the rows of every snapshot, branch and tag, and of every planned filter.

What is not built yet (README, "What works") must refuse by `UnsupportedFeatureError`, and never
answer other rows; it is counted apart. Whatever else refuses fails.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

import pyarrow as pa
import pytest

import icefield as ice
from worlds.golden import BASE, DELETED, GOLDEN, cast, emptied, facts, names, open_table, plain, rows, states
from worlds.sample import sample

pytestmark = pytest.mark.golden


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder that tables are unpacked to."""
    return tmp_path_factory.mktemp("golden")


def refused(scan: ice.DataScan, error: ice.UnsupportedFeatureError) -> NoReturn:
    """Count a scan apart that may refuse, because a variant may be shredded; else fail."""
    files = scan.plan_files().files
    shredded = '"variant"' in scan.projection().to_json() and any(file["file_format"] == "parquet" for file in files)
    if not shredded:
        pytest.fail(f"nothing in the plan is unbuilt, and yet: {error}")
    assert str(error)
    pytest.skip(f"refused: {error}")


def all_states() -> list[Any]:
    """List every state of every table that rows are expected of."""
    return [pytest.param(name, at, item, id=f"{name}-{state}") for name in names() for state, at, item in states(name)]


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
    if wanted.get("key") is not None:
        assert any(field.name == wanted["key"] for schema in table.schemas().values() for field in schema.fields)
    if "metadata_json_files" in wanted:
        kept = [path for path in (scratch / name).rglob("*") if path.suffix == ".json" or ".metadata.json" in path.name]
        assert len(kept) == wanted["metadata_json_files"]
    plans_of = GOLDEN / "expected" / name / wanted.get("plans_file", "plans.json.gz")
    if "plan_count" in wanted and plans_of.exists():
        assert len(json.loads(gzip.decompress(plans_of.read_bytes()))) == wanted["plan_count"]


def same(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    """Compare what is wanted of what was found."""
    assert found == {key: wanted.get(key, value) for key, value in found.items()}


@pytest.mark.parametrize(("name", "at", "item"), all_states())
def test_rows(name: str, at: dict[str, Any], item: dict[str, Any], scratch: Path) -> None:
    scan = open_table(name, scratch).scan(**at)
    expected = rows(name, item)
    # The plan says how many rows there are without deletes, also of files that cannot be read yet.
    files = scan.plan_files().files
    deleted = len(DELETED[name][1]) if name in DELETED and any(file["deletes"] for file in files) else 0
    count = item["row_count"] - deleted if expected is None else expected.num_rows
    planned_rows = sum(file["record_count"] for file in files)
    assert count == planned_rows or any(file["deletes"] for file in files)
    assert count <= planned_rows
    try:
        found = scan.to_arrow()
    except ice.UnsupportedFeatureError as error:
        refused(scan, error)
    assert found.num_rows == count
    if expected is not None:
        assert found.schema.names == expected.schema.names
        columns, structs = expected.schema.names, emptied(open_table(name, scratch), scan.projection())
        assert plain(found, columns, structs) == plain(cast(expected, found.schema), columns, structs)
    assert scan.count() == count


def plans() -> list[Any]:
    """List every planned filter with its rows."""
    found = []
    for name in names():
        path = GOLDEN / "expected" / name / facts(name).get("plans_file", "plans.json.gz")
        if path.exists():
            with gzip.open(path, "rt") as cases:
                for number, case in enumerate(json.load(cases)):
                    if "row_count" in case:
                        found.append(pytest.param(name, case, id=f"{name}-{number}"))
    return found


# Rust's runner takes all of them in each run.
@pytest.mark.parametrize(("name", "case"), sample(plans(), 5, lambda plan: plan.values[0]))
def test_filtered_rows(name: str, case: dict[str, Any], scratch: Path) -> None:
    table = open_table(name, scratch)
    key = facts(name).get("key")
    check_keys(name, case, key)
    schema_id = next(
        (s["schema_id"] for s in facts(name).get("snapshots", []) if s["snapshot_id"] == case.get("snapshot_id")), None
    )
    schema = table.schema() if schema_id is None else table.schemas()[schema_id]
    expr = None if case["expr"] is None else filter_of(case["expr"], schema)
    scan = table.scan(expr, snapshot_id=case.get("snapshot_id"), case_sensitive=case.get("case_sensitive", True))
    try:
        found = scan.to_arrow()
    except ice.UnsupportedFeatureError as error:
        refused(scan, error)
    _, stale = DELETED.get(name, ("", set()))
    keys = case.get("keys")
    if stale and any(file["deletes"] for file in scan.plan_files().files):
        keys = [one for one in keys if one not in stale]
    count = case["row_count"] if keys is None else len(keys)
    assert found.num_rows == count
    assert scan.count() == count
    if keys is not None and key in found.schema.names:
        assert Counter(map(repr, encoded(found.column(key)))) == Counter(map(repr, keys))


def check_keys(name: str, case: dict[str, Any], key: str | None) -> None:
    """Hold the keys of a filter to the set's own rows, also where the table cannot be read yet."""
    if "keys" not in case:
        return
    assert len(case["keys"]) == case["row_count"]
    states = {item["snapshot_id"]: item for item in facts(name).get("snapshots", [])}
    item = states.get(case.get("snapshot_id")) or facts(name).get("current") or {}
    all_rows = rows(name, item) if "rows_file" in item else None
    if all_rows is not None and key in all_rows.schema.names and name not in DELETED:
        assert Counter(map(repr, case["keys"])) <= Counter(map(repr, encoded(all_rows.column(key))))


def encoded(column: pa.ChunkedArray) -> list[Any]:
    """Give values in the JSON encoding of the set's README, "The JSON encoding of values"."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_temporal(column.type):
        column = column.cast(pa.int64())
    found = []
    for value in column.to_pylist():
        if isinstance(value, float) and (value in {float("inf"), float("-inf")} or value != value):  # noqa: PLR0124
            found.append({"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}[str(value)])
        elif isinstance(value, float) and str(value) == "-0.0":
            found.append("-0.0")
        elif isinstance(value, bytes):
            found.append(value.hex())
        else:
            found.append(value if value is None or isinstance(value, bool | int | float | str) else str(value))
    return found


def row_columns(name: str, what: str) -> pa.ipc.RecordBatchFileReader | None:
    """Open `metadata_columns.arrow` or `lineage.arrow`, which a table may lack."""
    path = GOLDEN / "expected" / name / facts(name).get(f"{what}_file", f"{what}.arrow")
    return pa.ipc.open_file(path.read_bytes()) if path.is_file() else None


LINEAGE = ["_row_id", "_last_updated_sequence_number"]


def without_lone_numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows without an id have no sequence number: the reference's Avro reader alone tells it (docs/differences.md)."""
    lone = [row | {LINEAGE[1]: None} if row.get(LINEAGE[0], 0) is None else row for row in rows]
    return sorted(lone, key=repr)


@pytest.mark.parametrize("name", [name for name in names() if row_columns(name, "metadata_columns")])
def test_metadata_columns(name: str, scratch: Path) -> None:
    table = row_columns(name, "metadata_columns").read_all()
    key, columns = table.schema.names[0], table.schema.names
    _, stale = DELETED.get(name, ("", set()))
    expected = [row for row in table.to_pylist() if row[key] not in stale]
    scan = open_table(name, scratch).scan(selected_fields=tuple(columns))
    try:
        found = scan.to_arrow()
    except ice.UnsupportedFeatureError as error:
        refused(scan, error)
    assert found.schema.names == columns
    assert found.schema.field("_partition").type == table.schema.field("_partition").type
    rows = [row | {"_file": row["_file"].partition(f"{BASE}/{name}/")[2]} for row in found.to_pylist()]
    keys = encoded(pa.chunked_array([pa.array([row[key] for row in expected], table.schema.field(key).type)]))
    assert Counter(map(repr, encoded(found.column(key)))) == Counter(map(repr, keys))
    # Keys have several Arrow forms; positions tell rows apart.
    places = [
        [{column: row[column] for column in columns if column != key} for row in some] for some in (rows, expected)
    ]
    assert without_lone_numbers(places[0]) == without_lone_numbers(places[1])


@pytest.mark.parametrize("name", [name for name in names() if row_columns(name, "metadata_columns")])
def test_filters_of_metadata_columns(name: str, scratch: Path) -> None:
    """Each value of each metadata column finds its rows, whatever else is selected."""
    table = row_columns(name, "metadata_columns").read_all()
    key = table.schema.names[0]
    _, stale = DELETED.get(name, ("", set()))
    expected = [row for row in table.to_pylist() if row[key] not in stale]
    opened = open_table(name, scratch)
    for column in [column for column in table.schema.names if column not in (key, "_partition")]:
        for value in sorted({row[column] for row in expected if row[column] is not None})[:3]:
            literal = opened.location() + f"/{value}" if column == "_file" else value
            scan = opened.scan(ice.expressions.EqualTo(column, literal), selected_fields=("_pos",))
            wanted = sorted(row["_pos"] for row in expected if row[column] == value)
            if column == "_file" and not scan.plan_files().files:
                continue  # the table's location and its paths are spelled in two ways
            try:
                assert sorted(scan.to_arrow().column("_pos").to_pylist()) == wanted, (column, value)
            except ice.UnsupportedFeatureError as error:
                refused(scan, error)
            assert scan.count() == len(wanted), (column, value)
    for field in table.schema.field("_partition").type:
        values = {(row["_partition"] or {}).get(field.name) for row in expected}
        scan = opened.scan(ice.expressions.IsNull(f"_partition.{field.name}"), selected_fields=("_pos",))
        wanted = [row for row in expected if (row["_partition"] or {}).get(field.name) is None]
        assert scan.count() == len(wanted), (field.name, values)


def lineages() -> list[Any]:
    """List the snapshots that row ids are expected of."""
    return [
        pytest.param(name, item, id=f"{name}-{item['snapshot_id']}")
        for name in names()
        if row_columns(name, "lineage")
        for item in facts(name).get("snapshots", [])
        if "lineage_batch" in item
    ]


@pytest.mark.parametrize(("name", "item"), lineages())
def test_row_lineage(name: str, item: dict[str, Any], scratch: Path) -> None:
    batch = row_columns(name, "lineage").get_batch(item["lineage_batch"])
    columns = batch.schema.names
    scan = open_table(name, scratch).scan(snapshot_id=item["snapshot_id"], selected_fields=tuple(columns))
    try:
        found = scan.to_arrow()
    except ice.UnsupportedFeatureError as error:
        refused(scan, error)
    assert found.schema.names == columns

    def rows(table: pa.Table) -> list[dict[str, Any]]:
        keys, lineage = encoded(table.column(0)), table.select(LINEAGE).to_pylist()
        return without_lone_numbers([{"key": key, **row} for key, row in zip(keys, lineage, strict=True)])

    assert rows(found) == rows(pa.Table.from_batches([batch]))


def filter_of(document: Any, schema: ice.Schema) -> Any:
    """Read a filter; literals are single values of their columns' types, or plain numbers that binding converts."""
    try:
        return ice.expressions.from_json(document, schema)
    except ice.IcefieldError:
        return ice.expressions.from_json(document)
