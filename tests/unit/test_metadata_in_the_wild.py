"""Metadata as other writers leave it: optional members missing or null, low last ids, defaults in other forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import CorruptDataError, UnsupportedFeatureError

ROWS = pa.table({"id": pa.array(range(3), pa.int64()), "s": ["a", "b", None]})
EVER = "2100-01-01T00:00:00Z"
#: Members that a document may lack, and since when it may not.
OPTIONAL = [
    *(
        (name, 4)
        for name in ("properties", "refs", "snapshot-log", "metadata-log", "statistics", "partition-statistics")
    ),
    *((name, 2) for name in ("table-uuid", "last-partition-id", "sort-orders", "partition-specs", "schemas")),
]


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("c", type="in-memory", warehouse=str(tmp_path / "w"))
    made.create_namespace("a")
    return made


def document(table: ice.Table) -> dict[str, Any]:
    text: dict[str, Any] = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    return text


def registered(catalog: ice.Catalog, tmp_path: Path, text: dict[str, Any], name: str = "a.u") -> ice.Table:
    path = tmp_path / f"{name}.metadata.json"
    path.write_text(json.dumps(text))
    return catalog.register_table(name, str(path))


@pytest.mark.parametrize(
    ("version", "name", "form"),
    [
        (version, name, form)
        for version in (1, 2, 3)
        for name, required in OPTIONAL
        for form in ("missing", "null")
        if version < required
    ],
)
def test_every_operation_goes_on_without_an_optional_member(
    catalog: ice.Catalog, tmp_path: Path, version: int, name: str, form: str
) -> None:
    table = catalog.create_table("a.t", ROWS, properties={"format-version": str(version)})
    table.append(ROWS).append(ROWS)
    text = document(table)
    if name in {"sort-orders", "partition-specs", "schemas"}:
        text.setdefault("partition-spec", [])
        text.setdefault("schema", text["schemas"][0])
    text.pop(name, None)
    if form == "null":
        text[name] = None
    opened = registered(catalog, tmp_path, text)
    first = opened.snapshots()[0].snapshot_id
    assert opened.scan().count() == 6
    assert opened.scan(snapshot_id=first).count() == 3
    assert len(pa.table(opened.inspect.snapshots())) == 2
    assert len(opened.history()) <= 2
    opened.append(ROWS)
    opened.delete("id = 0", mode="copy-on-write")
    opened.upsert(pa.table({"id": pa.array([1], pa.int64()), "s": ["z"]}), join_cols=["id"]) if version > 1 else None
    with opened.update_schema() as change:
        change.add_column("more", "int")
    with opened.transaction() as change:
        change.set_properties({"owner": "me"})
    opened.manage_snapshots().create_tag(first, "old").create_branch(first, "dev").commit()
    opened.append(ROWS, branch="dev")
    opened.manage_snapshots().remove_tag("old").remove_branch("dev").commit()
    rows = opened.scan().count()
    opened.expire_snapshots(retain_last=1, older_than=EVER)
    assert len(opened.snapshots()) == 1
    assert [entry.snapshot_id for entry in opened.history()] == [opened.current_snapshot().snapshot_id]  # type: ignore[union-attr]
    opened.append(ROWS)
    assert catalog.load_table("a.u").scan().count() == rows + 3


def test_time_travel_knows_what_was_current_after_an_expiry_without_a_log(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("a.t", ROWS)
    table.append(ROWS).append(ROWS)
    text = document(table)
    del text["snapshot-log"]
    opened = registered(catalog, tmp_path, text)
    current = opened.current_snapshot()
    assert current is not None
    opened.expire_snapshots(retain_last=1, older_than=EVER)
    assert opened.snapshot_as_of_timestamp(current.timestamp_ms).snapshot_id == current.snapshot_id  # type: ignore[union-attr]
    assert opened.snapshot_as_of_timestamp(current.timestamp_ms - 1) is None


def test_ids_are_never_used_twice_whatever_the_last_one_is_said_to_be(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("a.t", ROWS, partition_by=["bucket(4, id)", "s"], properties={"format-version": "3"})
    table.append(ROWS)
    text = {**document(table), "last-column-id": 1, "last-partition-id": 1000, "next-row-id": 0}
    opened = registered(catalog, tmp_path, text)
    with opened.update_schema() as change:
        change.add_column("more", "int")
    with opened.update_spec() as spec:
        spec.add_field("more", "identity", "more")
    opened.append(ROWS)
    assert [field.field_id for field in opened.schema().fields] == [1, 2, 3]
    assert [field.field_id for field in opened.spec().fields] == [1000, 1001, 1002]
    ids = opened.scan(selected_fields=("id", "_row_id")).to_arrow()["_row_id"].to_pylist()
    assert sorted(ids) == list(range(6))


@pytest.mark.parametrize("ending", ["parquet", "orc", "avro"])
def test_defaults_in_other_forms_are_those_that_they_mean(catalog: ice.Catalog, tmp_path: Path, ending: str) -> None:
    properties = {"format-version": "3", "write.format.default": ending}
    table = catalog.create_table("a.t", ROWS.select(["id"]), properties=properties)
    table.append(ROWS.select(["id"]))

    def column(number: int, type_: Any, default: Any, name: str | None = None) -> dict[str, Any]:
        made = {"id": number, "name": name or f"c{number}", "required": False, "type": type_}
        return made if default is ... else {**made, "initial-default": default, "write-default": default}

    inner = {"type": "struct", "fields": [column(21, "int", 7, "y"), column(22, "string", ..., "z")]}
    struct = {
        "type": "struct",
        "fields": [column(11, "int", 7, "x"), column(12, "int", ..., "y"), column(13, inner, {}, "in")],
    }
    text = document(table)
    text["last-column-id"] = 50
    text["schemas"][0]["fields"] += [
        column(2, "double", 1),
        column(3, "float", -3),
        column(4, "double", 1e300),
        column(5, "decimal(9, 2)", 12),
        column(6, "int", None),
        column(7, struct, {}),
        column(8, {**struct, "fields": [{**field, "id": field["id"] + 20} for field in struct["fields"][:2]]}, None),
        column(9, {"type": "struct", "fields": []}, {}),
    ]
    opened = registered(catalog, tmp_path, text)
    row = opened.scan().to_arrow().to_pylist()[0]
    expected = {"x": 7, "y": None, "in": {"y": 7, "z": None}}
    assert [row[f"c{number}"] for number in range(2, 9)] == [1.0, -3.0, 1e300, pytest.approx(12), None, expected, None]
    assert row["c9"] == {}
    assert opened.scan("c7.x = 7").count() == 3
    assert opened.scan("c7.in.y = 7").count() == opened.scan("c7 is not null").count() == 3
    assert opened.scan("c7.y is null").count() == 3
    assert opened.scan(selected_fields=("c7.x",)).to_arrow()["c7"].to_pylist() == [{"x": 7}] * 3
    assert opened.schema().find_field("c7").initial_default == {}
    # It is written as it was.
    with opened.transaction() as change:
        change.set_properties({"a": "b"})
    assert document(opened)["schemas"][0]["fields"][6]["initial-default"] == {}


@pytest.mark.parametrize(
    ("type_", "default"),
    [
        ("double", 2**53 + 1),
        ("float", 2**24 + 1),
        ("double", "1"),
        ("decimal(3, 2)", 10),
        ("decimal(9, 2)", 1.5),
        ("int", 1.0),
        ({"type": "struct", "fields": [{"id": 3, "name": "x", "required": False, "type": "int"}]}, {"3": 1}),
        ({"type": "struct", "fields": []}, []),
        ({"type": "list", "element-id": 3, "element": "int", "element-required": False}, []),
    ],
)
def test_a_default_that_may_mean_something_else_is_refused(
    catalog: ice.Catalog, tmp_path: Path, type_: Any, default: Any
) -> None:
    table = catalog.create_table("a.t", ROWS.select(["id"]), properties={"format-version": "3"})
    text = {**document(table), "last-column-id": 9}
    field = {"id": 2, "name": "d", "required": False, "type": type_, "initial-default": default}
    text["schemas"][0]["fields"].append(field)
    with pytest.raises(CorruptDataError, match="/schemas/0/fields/1/initial-default"):
        registered(catalog, tmp_path, text)


@pytest.mark.parametrize("depth", [41, 60, 100, 250])
def test_a_schema_that_is_nested_deeper_than_we_go_is_unsupported(
    catalog: ice.Catalog, tmp_path: Path, depth: int
) -> None:
    text = document(catalog.create_table("a.t", ROWS))
    type_: Any = "int"
    for number in range(depth):
        type_ = {"type": "struct", "fields": [{"id": 1000 + number, "name": "x", "required": False, "type": type_}]}
    text["schemas"][0]["fields"].append({"id": 999, "name": "deep", "required": False, "type": type_})
    with pytest.raises(UnsupportedFeatureError, match=r"a\.u\.metadata\.json: .*deeper than"):
        registered(catalog, tmp_path, text)
