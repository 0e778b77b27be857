"""Golden tables through the public API: the rows of every snapshot, branch and tag, and of every planned filter.

What is not built yet (README, "What stands, and what refuses") must refuse by `UnsupportedFeatureError`, and never
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


@pytest.mark.parametrize(("name", "case"), plans())
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


def stores(path: Path, column: str) -> bool:
    """Whether a file may hold a column of row lineage of its own; the footer of ORC may be compressed."""
    return path.suffix == ".orc" or column.encode() in path.read_bytes()


def planned(name: str, scan: ice.DataScan, scratch: Path) -> dict[str, dict[str, Any]]:
    """Give the files of a scan by their paths below the table, each with what its rows have by the plan alone."""
    found = {}
    for file in scan.plan_files().files:
        place = file["file_path"].partition(f"{BASE}/{name}/")[2]
        stored = stores(scratch / name / place, "_row_id")
        found[place] = {**file, "stored": stored, "deletes": bool(file["deletes"])}
    return found


@pytest.mark.parametrize("name", [name for name in names() if row_columns(name, "metadata_columns")])
def test_places_of_rows(name: str, scratch: Path) -> None:
    """No scan gives `_file`, `_pos`, `_spec_id`, `_partition`, `_row_id` yet: the plan and order of rows do."""
    table = row_columns(name, "metadata_columns").read_all()
    key, expected = table.schema.names[0], table.to_pylist()
    scan = open_table(name, scratch).scan()
    files = planned(name, scan, scratch)
    counts = Counter(row["_file"] for row in expected)
    for place, file in files.items():
        assert counts[place] <= file["record_count"]
        assert file["deletes"] or counts[place] == file["record_count"]
    for row in expected:
        file = files[row["_file"]]
        assert 0 <= row["_pos"] < file["record_count"]
        assert row["_spec_id"] == file["spec_id"]
        # The reference leaves out fields whose columns were dropped, and all where there are none.
        for field, value in (row["_partition"] or {}).items():
            assert file["partition"].get(field) == value, field
        if "_row_id" in row and not file["stored"]:
            first, number = file["first_row_id"], file["data_sequence_number"]
            assert row["_row_id"] == (None if first is None else first + row["_pos"])
            # Its Avro reader tells the number of rows without id as well.
            assert row["_last_updated_sequence_number"] in ([None, number] if first is None else [number])
    try:
        keys = encoded(scan.to_arrow().column(key))
    except ice.UnsupportedFeatureError as error:
        refused(scan, error)
    _, stale = DELETED.get(name, ("", set()))
    live = zip(((row["_file"], row["_pos"]) for row in expected), encoded(table.column(key)), strict=True)
    wanted = {place: value for place, value in live if value not in stale}
    places = [(place, at) for place, file in files.items() for at in range(file["record_count"])]
    assert dict(zip((place for place in places if place in wanted), keys, strict=True)) == wanted


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
def test_row_ids(name: str, item: dict[str, Any], scratch: Path) -> None:
    """Row ids of a snapshot, where its files do not hold them, follow from the plan."""
    batch = row_columns(name, "lineage").get_batch(item["lineage_batch"])
    key, expected = batch.schema.names[0], batch.to_pylist()
    scan = open_table(name, scratch).scan(snapshot_id=item["snapshot_id"])
    files = planned(name, scan, scratch).values()
    inherited: Counter[tuple[int | None, int | None]] = Counter()
    for file in files:
        first, number = file["first_row_id"], file["data_sequence_number"]
        ids = range(first, first + file["record_count"]) if first is not None else [None] * file["record_count"]
        inherited.update((row_id, None if row_id is None else number) for row_id in ids)
    numbers = {None, *(file["data_sequence_number"] for file in files)}
    assert {row["_last_updated_sequence_number"] for row in expected} <= numbers or any(f["stored"] for f in files)
    found = Counter(
        (row["_row_id"], None if row["_row_id"] is None else row["_last_updated_sequence_number"]) for row in expected
    )
    if any(file["stored"] for file in files):
        assert len(expected) <= sum(file["record_count"] for file in files)
    elif any(file["deletes"] for file in files):
        assert found <= inherited
    else:
        assert found == inherited
    try:
        keys = encoded(scan.to_arrow().column(key))
    except ice.UnsupportedFeatureError as error:
        refused(scan, error)
    assert Counter(map(repr, keys)) == Counter(map(repr, encoded(pa.chunked_array([batch.column(0)]))))


def filter_of(document: Any, schema: ice.Schema) -> Any:
    """Read a filter; literals are single values of their columns' types, or plain numbers that binding converts."""
    try:
        return ice.expressions.from_json(document, schema)
    except ice.IcefieldError:
        return ice.expressions.from_json(document)
