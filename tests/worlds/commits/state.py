"""What became of the table of a case of ``golden/commits``, in the form in which the cases have it."""

from __future__ import annotations

import json
import re
from typing import Any

import icefield as ice
from icefield.metadata import Snapshot, SnapshotRef
from worlds.commits.cases import Json
from worlds.commits.world import World

STATUS = ["existing", "added", "deleted"]
CONTENT = ["data", "deletes"]
#: Entries of summaries that name the engine.
ENGINE = re.compile(r"(engine-(name|version)|iceberg-version|app-id|spark\..*)$")
RETENTION = ["min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"]


def state(world: World, heads: list[str]) -> Json:
    """Read the table: its metadata, and the manifests of some snapshots."""
    metadata = world.table().metadata
    version = metadata.format_version
    found: Json = {
        "format_version": version,
        "last_sequence_number": metadata.last_sequence_number,
        "current_schema_id": metadata.current_schema_id,
        "default_spec_id": metadata.default_spec_id,
        "snapshots": [_snapshot(world, snapshot, version) for snapshot in metadata.snapshots],
        "snapshot_log": [world.number(snapshot_id) for _, snapshot_id in metadata.snapshot_log],
        "refs": {name: _ref(world, ref) for name, ref in metadata.refs.items()},
        "manifests": {
            head: _manifests(world, metadata, world.snapshots[int(head)], version)
            for head in heads
            if metadata.snapshot_by_id(world.snapshots[int(head)])
        },
    }
    if version >= 3:
        found["next_row_id"] = metadata.next_row_id
    for name, ids in (
        ("schema_ids", [schema.schema_id for schema in metadata.schemas]),
        ("spec_ids", list(metadata.specs())),
    ):
        if len(ids) > 1:
            found[name] = sorted(ids)
    return found


def _snapshot(world: World, snapshot: Snapshot, version: int) -> Json:
    summary = {key: value for key, value in (snapshot.summary or {}).items() if not ENGINE.match(key)}
    summary.pop("operation", None)
    found: Json = {
        "snapshot": world.number(snapshot.snapshot_id),
        "operation": snapshot.operation,
        "schema_id": snapshot.schema_id,
        "summary": summary,
    }
    if version >= 2:
        found["sequence_number"] = snapshot.sequence_number
    if source := summary.get("source-snapshot-id"):
        summary["source-snapshot-id"] = f"<snapshot {world.number(int(source))}>"
    if snapshot.parent_snapshot_id is not None:
        found["parent"] = world.number(snapshot.parent_snapshot_id)
    if snapshot.first_row_id is not None:
        found["first_row_id"] = snapshot.first_row_id
    if snapshot.added_rows is not None:
        found["added_rows"] = snapshot.added_rows
    return found


def _ref(world: World, ref: SnapshotRef) -> Json:
    given = json.loads(ref.to_json())
    found = {"type": given["type"], "snapshot": world.number(given["snapshot-id"])}
    return found | {name.replace("-", "_"): given[name] for name in RETENTION if name in given}


def _manifests(world: World, metadata: ice.TableMetadata, snapshot_id: int, version: int) -> list[Json]:
    snapshot = metadata.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    return [_manifest(world, metadata, row, version) for row in world.manifest_list(snapshot)]


def _manifest(world: World, metadata: ice.TableMetadata, row: Json, version: int) -> Json:
    spec = metadata.specs()[row["partition_spec_id"]]
    types = [field.field_type for field in spec.partition_type(metadata.schema()).fields]
    kinds = ["added", "existing", "deleted"]
    found: Json = {
        "content": CONTENT[row["content"]],
        "spec_id": row["partition_spec_id"],
        "snapshot": world.number(row["added_snapshot_id"]),
        "files": [row[f"{kind}_files_count"] for kind in kinds],
        "rows": [row[f"{kind}_rows_count"] for kind in kinds],
        "partitions": [_summary(field, kind) for field, kind in zip(row["partitions"] or [], types, strict=True)],
    }
    if version >= 2:
        found["seq"], found["min_seq"] = row["sequence_number"], row["min_sequence_number"]
    if row.get("first_row_id") is not None:
        found["first_row_id"] = row["first_row_id"]
    entries = ice.manifests.read(world.read(row["manifest_path"]), manifest=row, metrics=False).to_pylist()
    found["entries"] = [_entry(world, entry, row["content"], version) for entry in entries]
    return found


def _summary(field: Json, kind: Any) -> list[Any]:
    def value(bound: bytes | None) -> Any:
        return None if bound is None else json.loads(ice.values.to_json(ice.values.from_bytes(bound, kind), kind))

    return [field["contains_null"], field["contains_nan"], value(field["lower_bound"]), value(field["upper_bound"])]


def _entry(world: World, entry: Json, content: int, version: int) -> list[Any]:
    file = entry["data_file"]
    place = (file["file_path"], file.get("content_offset"))
    found = [STATUS[entry["status"]], world.names.get(place, f"@{place}"), world.number(entry["snapshot_id"])]
    if version >= 2:
        found += [entry["sequence_number"], entry["file_sequence_number"]]
    if version >= 3 and content == 0:
        found.append(file["first_row_id"])
    return found
