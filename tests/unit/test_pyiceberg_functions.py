"""Functions and visitors of PyIceberg's modules give here what they give there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyiceberg import schema as their_schema
from pyiceberg.catalog import Catalog as Theirs
from pyiceberg.table import snapshots as theirs
from pyiceberg.table.metadata import TableMetadataUtil

import icefield as ice
from icefield import schema as schemas
from icefield import types
from icefield.errors import InvalidArgumentError
from icefield.name_mapping import NameMapping
from icefield.table import name_mapping
from icefield.table import snapshots as ours
from icefield.table.snapshots import IsolationLevel

#: A main branch 1, 2, 3 whose first snapshot's parent was expired, and a branch 4 that left it at 2.
SNAPSHOTS = {1: (9, 1000), 2: (1, 2000), 3: (2, 3000), 4: (2, 2500)}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[ice.TableMetadata, Any]:
    catalog = ice.load_catalog("f", type="in-memory", warehouse=str(tmp_path_factory.mktemp("f")))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ice.Schema(ice.NestedField(1, "id", "long")))
    metadata = json.loads(table.metadata.to_json())
    metadata["last-updated-ms"] = 4000
    metadata["last-sequence-number"] = 4
    metadata["current-snapshot-id"] = 3
    metadata["refs"] = {
        "main": {"snapshot-id": 3, "type": "branch"}, "side": {"snapshot-id": 4, "type": "branch"},
    }  # fmt: skip
    metadata["snapshots"] = [
        {"snapshot-id": id, "parent-snapshot-id": parent, "timestamp-ms": at, "sequence-number": id, "schema-id": 0,
         "manifest-list": "m", "summary": {"operation": "append"}}
        for id, (parent, at) in SNAPSHOTS.items()
    ]  # fmt: skip
    metadata["snapshot-log"] = [{"snapshot-id": 3, "timestamp-ms": 3000}]
    return ice.TableMetadata.from_json(metadata), TableMetadataUtil.parse_raw(json.dumps(metadata))


def ids(snapshots: Any) -> list[int]:
    return [snapshot.snapshot_id for snapshot in snapshots]


def test_ancestors(both: tuple[ice.TableMetadata, Any]) -> None:
    mine, their = both
    for id in SNAPSHOTS:
        pair = mine.snapshot_by_id(id), their.snapshot_by_id(id)
        assert ids(ours.ancestors_of(pair[0], mine)) == ids(theirs.ancestors_of(pair[1], their))
        for other in (None, *SNAPSHOTS):
            start = (mine.snapshot_by_id(other), their.snapshot_by_id(other)) if other else (None, None)
            assert ids(ours.ancestors_between(start[0], pair[0], mine)) == ids(
                theirs.ancestors_between(start[1], pair[1], their)
            )
            assert ids(ours.ancestors_between_ids(other, id, mine)) == ids(
                theirs.ancestors_between_ids(other, id, their)
            )
        for other in (9, *SNAPSHOTS):
            assert ours.is_ancestor_of(id, other, mine) == theirs.is_ancestor_of(id, other, their)
            assert ours.is_parent_ancestor_of(id, other, mine) == theirs.is_parent_ancestor_of(id, other, their)
    assert ids(ours.ancestors_of(mine.current_snapshot(), mine)) == [3, 2, 1]
    assert list(ours.ancestors_of(None, mine)) == []
    for call in (
        lambda: ours.is_ancestor_of(7, 1, mine),
        lambda: ours.is_parent_ancestor_of(7, 1, mine),
        lambda: list(ours.ancestors_between_ids(None, 7, mine)),
    ):
        with pytest.raises(InvalidArgumentError, match="there is no snapshot 7"):
            call()


@pytest.mark.parametrize("at", [0, 1000, 1001, 2000, 2501, 3000, 3001, 9999])
def test_latest_ancestors(both: tuple[ice.TableMetadata, Any], at: int) -> None:
    mine, their = (
        ours.latest_ancestor_before_timestamp(both[0], at),
        theirs.latest_ancestor_before_timestamp(both[1], at),
    )
    assert (mine and mine.snapshot_id) == (their and their.snapshot_id)


def test_isolation_levels(tmp_path: Any) -> None:
    assert [str(level) for level in IsolationLevel] == [level.value for level in theirs.IsolationLevel]
    catalog = ice.load_catalog("i", type="in-memory", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ice.Schema(ice.NestedField(1, "id", "long")))
    assert table.delete("id = 1", isolation=IsolationLevel.SNAPSHOT).rows_removed == 0


def test_name_mappings() -> None:
    schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "names", types.ListType(3, "string")))
    mapping = name_mapping.create_mapping_from_schema(schema)
    assert mapping == NameMapping.from_schema(schema)
    assert name_mapping.parse_mapping_from_json(mapping.to_json()) == mapping


@pytest.mark.parametrize("identifier", ["a", "a.b", ("a", "b"), ("a.b", "c"), "a.b.c", (), ("", "b"), "a. "])
def test_helpers_for_names(identifier: str | tuple[str, ...]) -> None:
    for name in ("namespace_to_string", "identifier_to_database", "identifier_to_database_and_table"):
        try:
            wanted = getattr(Theirs, name)(identifier)
        except ValueError:
            with pytest.raises(ValueError, match="expected the name of a "):
                getattr(ice.Catalog, name)(identifier)
            with pytest.raises(KeyError):
                getattr(ice.Catalog, name)(identifier, KeyError)
        else:
            assert getattr(ice.Catalog, name)(identifier) == wanted


class Kinds(schemas.SchemaVisitorPerPrimitiveType[str]):
    """Names the method that each type is visited by."""

    def schema(self, schema: ice.Schema, struct_result: str) -> str:
        return struct_result

    def struct(self, struct: types.StructType, field_results: list[str]) -> str:
        return " ".join(field_results)

    def field(self, field: ice.NestedField, field_result: str) -> str:
        return field_result

    def list(self, list_type: types.ListType, element_result: str) -> str:
        return f"[{element_result}]"

    def map(self, map_type: types.MapType, key_result: str, value_result: str) -> str:
        return f"{{{key_result}: {value_result}}}"


METHODS = [name for name in vars(their_schema.SchemaVisitorPerPrimitiveType) if name.startswith("visit_")]
for method in METHODS:
    setattr(Kinds, method, lambda _self, visited, method=method: f"{method.removeprefix('visit_')}={visited}")
Kinds.__abstractmethods__ = frozenset()

TEXTS = {
    "boolean": "boolean", "int": "integer", "long": "long", "float": "float", "double": "double", "date": "date",
    "time": "time", "timestamp": "timestamp", "timestamptz": "timestamptz", "timestamp_ns": "timestamp_ns",
    "timestamptz_ns": "timestamptz_ns", "string": "string", "uuid": "uuid", "binary": "binary", "unknown": "unknown",
    "fixed[4]": "fixed", "decimal(9, 2)": "decimal", "geometry": "geometry", "geography": "geography",
}  # fmt: skip


def test_a_method_for_each_primitive_type() -> None:
    assert sorted(METHODS) == sorted(f"visit_{kind}" for kind in TEXTS.values())
    fields = [ice.NestedField(place, f"c{place}", text) for place, text in enumerate(TEXTS, 1)]
    found = schemas.visit(ice.Schema(*fields), Kinds())
    assert found == " ".join(f"{kind}={types.Type(text)}" for text, kind in TEXTS.items())
    nested = types.MapType(2, "int", 3, types.ListType(4, "date"))
    assert schemas.visit(nested, Kinds()) == "{integer=int: [date=date]}"
