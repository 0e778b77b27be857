"""Table metadata, partition specs and sort orders through the public API."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
from typing import Any

import pytest

import icefield as ice
from icefield.errors import (
    CommitFailedException,
    CorruptDataError,
    InvalidArgumentError,
    UnsupportedFeatureError,
)

NOW_MS = 1_700_000_000_000
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "at", "required": False, "type": "timestamptz"},
    ],
}
DOCUMENT: dict[str, Any] = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "s3://bucket/table",
    "last-sequence-number": 2,
    "last-updated-ms": NOW_MS,
    "last-column-id": 2,
    "current-schema-id": 0,
    "schemas": [SCHEMA],
    "default-spec-id": 0,
    "partition-specs": [
        {"spec-id": 0, "fields": [{"name": "at_day", "transform": "day", "source-id": 2, "field-id": 1000}]}
    ],
    "last-partition-id": 1000,
    "default-sort-order-id": 1,
    "sort-orders": [
        {
            "order-id": 1,
            "fields": [{"transform": "identity", "source-id": 1, "direction": "asc", "null-order": "nulls-first"}],
        }
    ],
    "properties": {"owner": "someone"},
    "current-snapshot-id": 20,
    "refs": {
        "main": {"snapshot-id": 20, "type": "branch", "min-snapshots-to-keep": 3},
        "v1": {"snapshot-id": 10, "type": "tag", "max-ref-age-ms": 99},
    },
    "snapshots": [
        {
            "sequence-number": 1,
            "snapshot-id": 10,
            "timestamp-ms": NOW_MS - 2000,
            "summary": {"operation": "append", "added-data-files": "1"},
            "manifest-list": "s3://bucket/table/metadata/snap-10.avro",
            "schema-id": 0,
        },
        {
            "sequence-number": 2,
            "snapshot-id": 20,
            "parent-snapshot-id": 10,
            "timestamp-ms": NOW_MS - 1000,
            "summary": {"operation": "delete"},
            "manifest-list": "s3://bucket/table/metadata/snap-20.avro",
            "schema-id": 0,
        },
    ],
    "statistics": [],
    "partition-statistics": [],
    "snapshot-log": [
        {"timestamp-ms": NOW_MS - 2000, "snapshot-id": 10},
        {"timestamp-ms": NOW_MS - 1000, "snapshot-id": 20},
    ],
    "metadata-log": [],
}


@pytest.fixture
def metadata() -> ice.TableMetadata:
    return ice.TableMetadata.from_json(DOCUMENT)


@pytest.mark.parametrize(
    "given",
    [
        DOCUMENT,
        json.dumps(DOCUMENT),
        json.dumps(DOCUMENT).encode(),
        gzip.compress(json.dumps(DOCUMENT).encode()),
    ],
    ids=["dict", "text", "bytes", "gzip"],
)
def test_every_form_of_a_document_is_read_and_written_again(given: Any) -> None:
    metadata = ice.TableMetadata.from_json(given)
    assert json.loads(metadata.to_json()) == DOCUMENT
    assert pickle.loads(pickle.dumps(metadata)) == metadata


def test_what_metadata_tells(metadata: ice.TableMetadata) -> None:
    assert (metadata.format_version, metadata.location) == (2, "s3://bucket/table")
    assert metadata.schema().column_names == ["id", "at"]
    assert metadata.schema_by_id(0) == metadata.schema()
    assert metadata.schema_by_id(7) is None
    assert str(metadata.spec().fields[0]) == "1000: at_day: day(2)"
    assert metadata.specs() == {0: metadata.spec()}
    assert metadata.sort_order().fields[0].direction == "asc"
    assert metadata.properties == {"owner": "someone"}
    current = metadata.current_snapshot()
    assert current is not None
    assert (current.snapshot_id, current.operation, current.summary) == (20, "delete", {"operation": "delete"})
    assert metadata.snapshot_by_name("v1") == metadata.snapshot_by_id(10)
    assert [snapshot.snapshot_id for snapshot in metadata.ancestors(20)] == [20, 10]
    assert metadata.snapshot_as_of(NOW_MS - 1500) == metadata.snapshot_by_id(10)
    assert metadata.snapshot_as_of(0) is None
    assert metadata.refs["main"].min_snapshots_to_keep == 3
    assert (metadata.refs["v1"].snapshot_ref_type, metadata.refs["v1"].max_ref_age_ms) == ("tag", 99)
    assert metadata.snapshot_log == [(NOW_MS - 2000, 10), (NOW_MS - 1000, 20)]
    assert "s3://bucket/table (format version 2)" in str(metadata)
    assert repr(metadata).startswith("TableMetadata(location=")


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        (["location"], 17, "/location"),
        (["schemas", 0, "fields", 1, "type"], "decimal(99, 3)", "/schemas/0/fields/1"),
        (["refs", "main", "snapshot-id"], 30, "/refs/main/snapshot-id"),
        (["snapshots", 0, "sequence-number"], 3, "/snapshots/0/sequence-number"),
        (["partition-specs", 0, "fields", 0, "source-id"], 1, "/partition-specs/0"),
        (["default-sort-order-id"], 5, "/default-sort-order-id"),
    ],
)
def test_errors_name_the_place(path: list[Any], value: Any, place: str) -> None:
    document = copy.deepcopy(DOCUMENT)
    inner: Any = document
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    with pytest.raises(CorruptDataError) as caught:
        ice.TableMetadata.from_json(document)
    assert caught.value.place is not None
    assert caught.value.place.startswith(place)


def test_text_that_is_no_json_and_versions_of_the_future_are_refused() -> None:
    with pytest.raises(CorruptDataError):
        ice.TableMetadata.from_json(json.dumps(DOCUMENT)[:-1])
    with pytest.raises(CorruptDataError, match="gzip"):
        ice.TableMetadata.from_json(gzip.compress(json.dumps(DOCUMENT).encode())[:-9])
    with pytest.raises(UnsupportedFeatureError, match="format version 9"):
        ice.TableMetadata.from_json(DOCUMENT | {"format-version": 9})
    with pytest.raises(TypeError):
        ice.TableMetadata.from_json(17)


def test_updates_make_other_metadata(metadata: ice.TableMetadata) -> None:
    updates = [
        {"action": "set-properties", "updates": {"owner": "me"}},
        json.dumps({"action": "set-location", "location": "s3://elsewhere/"}),
    ]
    changed = metadata.apply(updates, now_ms=NOW_MS + 5, previous_file="s3://bucket/table/metadata/v1.metadata.json")
    assert (changed.location, changed.properties) == ("s3://elsewhere", {"owner": "me"})
    assert changed.last_updated_ms == NOW_MS + 5
    assert changed.metadata_log == [(NOW_MS, "s3://bucket/table/metadata/v1.metadata.json")]
    assert metadata.properties == {"owner": "someone"}
    assert metadata.apply([]) == metadata
    assert metadata.apply(json.dumps([{"action": "set-location", "location": "s3://x"}])).location == "s3://x"
    with pytest.raises(InvalidArgumentError, match="no snapshot 4"):
        metadata.apply([{"action": "set-snapshot-ref", "ref-name": "b", "type": "branch", "snapshot-id": 4}])
    with pytest.raises(CorruptDataError, match="unknown table update"):
        metadata.apply([{"action": "frobnicate"}])
    with pytest.raises(ValueError, match="list"):
        metadata.apply({"action": "set-location", "location": "s3://x"})  # type: ignore[arg-type]


def test_a_table_is_created_by_updates() -> None:
    created = ice.TableMetadata.create(
        [
            {"action": "assign-uuid", "uuid": "a"},
            {"action": "upgrade-format-version", "format-version": 3},
            {"action": "add-schema", "schema": SCHEMA},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": "s3://bucket/new"},
        ],
        now_ms=NOW_MS,
    )
    assert (created.format_version, created.next_row_id, created.last_column_id) == (3, 0, 2)
    assert json.loads(created.to_json())["current-snapshot-id"] is None


def test_requirements(metadata: ice.TableMetadata) -> None:
    updates = [{"action": "set-snapshot-ref", "ref-name": "main", "type": "branch", "snapshot-id": 10}]
    requirements = metadata.requirements_for(updates)
    metadata.check(requirements)
    changed = metadata.apply(updates)
    with pytest.raises(CommitFailedException, match="branch main has changed"):
        changed.check(requirements)
    with pytest.raises(CommitFailedException, match="exists already"):
        metadata.check([{"type": "assert-create"}])
    with pytest.raises(CorruptDataError):
        metadata.check([{"type": "assert-nothing"}])


def test_upgrades_go_up_only(metadata: ice.TableMetadata) -> None:
    upgraded = metadata.upgrade(3, now_ms=NOW_MS)
    assert json.loads(upgraded.to_json()) == DOCUMENT | {"format-version": 3, "next-row-id": 0}
    with pytest.raises(InvalidArgumentError, match="cannot be downgraded"):
        upgraded.upgrade(2)


def test_partition_specs() -> None:
    schema = ice.Schema.from_json(SCHEMA)
    spec = ice.PartitionSpec(
        ice.PartitionField(1, 1000, ice.transforms.bucket(16), "id_bucket"),
        ice.PartitionField(2, 1001, "month", "at_month"),
        spec_id=3,
    )
    assert ice.PartitionSpec.from_json(spec.to_json()) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert pickle.loads(pickle.dumps(spec.fields[0])) == spec.fields[0]
    assert (len(spec), spec.last_assigned_field_id, spec.is_unpartitioned()) == (2, 1001, False)
    assert spec.fields_by_source_id(2) == [spec.fields[1]]
    assert str(spec.partition_type(schema)) == "struct<1000: id_bucket: optional int, 1001: at_month: optional int>"
    spec.check(schema)
    with pytest.raises(InvalidArgumentError, match="hour does not take long"):
        ice.PartitionSpec(ice.PartitionField(1, 1000, "hour", "h")).check(schema)
    assert eval(repr(spec), vars(ice)) == spec
    assert ice.partitioning.UNPARTITIONED_PARTITION_SPEC.is_unpartitioned()
    several = ice.PartitionSpec.from_json(
        {"spec-id": 1, "fields": [{"name": "z", "transform": "zorder", "source-ids": [1, 2], "field-id": 1000}]}
    )
    assert several.fields[0].source_ids == [1, 2]
    assert json.loads(several.to_json())["fields"][0]["source-ids"] == [1, 2]


def test_sort_orders() -> None:
    schema = ice.Schema.from_json(SCHEMA)
    order = ice.SortOrder(ice.SortField(2, "day", "desc"), ice.SortField(1, "identity"))
    assert ice.SortOrder.from_json(order.to_json()) == order
    assert pickle.loads(pickle.dumps(order)) == order
    assert pickle.loads(pickle.dumps(order.fields[0])) == order.fields[0]
    assert (order.order_id, len(order), order.is_unsorted) == (1, 2, False)
    assert (order.fields[0].null_order, order.fields[1].null_order) == ("nulls-last", "nulls-first")
    order.check(schema)
    assert order.satisfies(ice.SortOrder(ice.SortField(2, "day", "desc")))
    assert not ice.SortOrder().satisfies(order)
    assert eval(repr(order), vars(ice)) == order
    with pytest.raises(InvalidArgumentError, match="reserved"):
        ice.SortOrder(ice.SortField(1, "identity"), order_id=0)
    with pytest.raises(InvalidArgumentError, match="neither asc nor desc"):
        ice.SortField(1, "identity", "up")


def test_missing_fields_are_named_all_at_once():
    document = {key: value for key, value in DOCUMENT.items() if key not in {"last-sequence-number", "sort-orders"}}
    document["snapshots"] = copy.deepcopy(DOCUMENT["snapshots"])
    document["snapshots"][-1]["summary"] = {"operation": "append", "engine-name": "duck", "engine-version": "7.1"}
    with pytest.raises(CorruptDataError) as caught:
        ice.TableMetadata.from_json(json.dumps(document))
    for part in ["`last-sequence-number`, `sort-orders` are missing", "format version 2", "duck 7.1"]:
        assert part in str(caught.value)
    del document["snapshots"][-1]["summary"]["engine-name"]
    with pytest.raises(CorruptDataError, match="required in format version 2$"):
        ice.TableMetadata.from_json(json.dumps(document))
