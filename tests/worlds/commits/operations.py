"""The operations of ``golden/commits`` by the public API: everything but `commit`, which the runner calls later.

An operation is known by its name and the fields that it may have; a case runs when all of its operations are known.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import icefield as ice
from worlds.commits.cases import Json, operations
from worlds.commits.world import START_MS, World

#: What finishes an operation.
Commit = Callable[[], object]
#: A table, or a transaction of it.
Target = Any
Prepare = Callable[[World, Target, Json], Commit]

PREPARE: dict[str, Prepare] = {}
FIELDS: dict[str, set[str]] = {}
#: What a `manage_snapshots` may contain, as methods of its builder.
ACTIONS: dict[str, Callable[[World, Any, Json], object]] = {}

#: Fields of every operation that makes a snapshot.
SNAPSHOT = {"op", "branch", "summary", "stage_only"}


def operation(name: str, fields: set[str]) -> Callable[[Prepare], Prepare]:
    """Make an operation known, with the fields that it may have."""

    def known(prepare: Prepare) -> Prepare:
        PREPARE[name], FIELDS[name] = prepare, fields
        return prepare

    return known


def is_known(case: Json) -> bool:
    """Whether all operations of a case are known, with all their fields."""
    return all(
        given["op"] in PREPARE
        and set(given) <= FIELDS[given["op"]]
        and all(action["action"] in ACTIONS for action in given.get("actions", []))
        for given in operations(case)
    )


def prepare(world: World, target: Target, given: Json) -> Commit:
    """Call everything but `commit`."""
    return PREPARE[given["op"]](world, target, given)


def update_snapshot(target: Target, given: Json) -> Any:
    """Start a change of files, with what all of them take."""
    return target.update_snapshot(
        given.get("summary"), given.get("branch", "main"), stage_only=given.get("stage_only", False)
    )


@operation("append", SNAPSHOT | {"fast", "add", "manifests"})
def append(world: World, target: Target, given: Json) -> Commit:
    """Append files."""
    update = update_snapshot(target, given)
    change = update.fast_append() if given.get("fast") else update.merge_append()
    for name in given.get("add", []):
        change.append_data_file(world.file(name, target))
    for manifest in given.get("manifests", []):
        change.append_manifest(world.manifest(manifest))
    return change.commit


def _filter(given: Json) -> ice.expressions.Expression:
    return ice.expressions.from_json(json.dumps(given))


def _checked(change: Any, given: Json, names: tuple[str, ...]) -> None:
    for name in names:
        if given.get(name):
            getattr(change, name)()


def _from(world: World, change: Any, given: Json) -> None:
    if given.get("validate_from") is not None:
        change.validate_from_snapshot(world.snapshot_id(given["validate_from"]))


def _conflicts(change: Any, given: Json) -> None:
    if given.get("conflict_filter") is not None:
        change.conflict_detection_filter(_filter(given["conflict_filter"]))


VALIDATED = {"validate_from"}
OVERWRITE_CHECKS = (
    "validate_added_files_match_overwrite_filter",
    "validate_no_conflicting_data",
    "validate_no_conflicting_deletes",
)


@operation(
    "overwrite",
    SNAPSHOT
    | VALIDATED
    | {"case_sensitive", "filter", "remove", "remove_deletes", "add", "conflict_filter", *OVERWRITE_CHECKS},
)
def overwrite(world: World, target: Target, given: Json) -> Commit:
    """Replace data files."""
    change = update_snapshot(target, given).overwrite()
    if "case_sensitive" in given:
        change.case_sensitive(given["case_sensitive"])
    if "filter" in given:
        change.delete_by_predicate(_filter(given["filter"]), given.get("case_sensitive", True))
    for name in given.get("remove", []):
        change.delete_data_file(world.file(name, target))
    for name in given.get("remove_deletes", []):
        change.remove_deletes(world.file(name, target))
    for name in given.get("add", []):
        change.append_data_file(world.file(name, target))
    _from(world, change, given)
    _conflicts(change, given)
    _checked(change, given, OVERWRITE_CHECKS)
    return change.commit


@operation("delete", SNAPSHOT | {"case_sensitive", "filter", "remove", "remove_paths", "validate_files_exist"})
def delete(world: World, target: Target, given: Json) -> Commit:
    """Remove data files."""
    change = update_snapshot(target, given).delete()
    if "filter" in given:
        change.delete_by_predicate(_filter(given["filter"]), given.get("case_sensitive", True))
    for name in given.get("remove", []):
        change.delete_data_file(world.file(name, target))
    for name in given.get("remove_paths", []):
        change.delete_path(world.path(name))
    _checked(change, given, ("validate_files_exist",))
    return change.commit


DELTA_CHECKS = (
    "validate_deleted_files",
    "validate_no_conflicting_data_files",
    "validate_no_conflicting_delete_files",
)


@operation(
    "row_delta",
    SNAPSHOT
    | VALIDATED
    | {
        "case_sensitive",
        "add",
        "add_deletes",
        "remove",
        "remove_deletes",
        "conflict_filter",
        "validate_data_files_exist",
        *DELTA_CHECKS,
    },
)
def row_delta(world: World, target: Target, given: Json) -> Commit:
    """Add rows and deletes."""
    change = update_snapshot(target, given).row_delta()
    if "case_sensitive" in given:
        change.case_sensitive(given["case_sensitive"])
    for name in given.get("add", []):
        change.add_rows(world.file(name, target))
    for name in given.get("add_deletes", []):
        change.add_deletes(world.file(name, target))
    for name in given.get("remove", []):
        change.remove_rows(world.file(name, target))
    for name in given.get("remove_deletes", []):
        change.remove_deletes(world.file(name, target))
    _from(world, change, given)
    _conflicts(change, given)
    if given.get("validate_data_files_exist"):
        change.validate_data_files_exist([world.path(name) for name in given["validate_data_files_exist"]])
    _checked(change, given, DELTA_CHECKS)
    return change.commit


@operation(
    "rewrite_files",
    SNAPSHOT | VALIDATED | {"remove", "remove_deletes", "add", "add_deletes", "data_sequence_number"},
)
def rewrite_files(world: World, target: Target, given: Json) -> Commit:
    """Replace files by others with the same rows."""
    change = update_snapshot(target, given).rewrite_files()
    for name in given.get("remove", []):
        change.delete_data_file(world.file(name, target))
    for name in given.get("remove_deletes", []):
        change.delete_delete_file(world.file(name, target))
    for name in given.get("add", []):
        change.add_data_file(world.file(name, target))
    for file in given.get("add_deletes", []):
        name, number = (file, None) if isinstance(file, str) else file
        change.add_delete_file(world.file(name, target), number)
    if "data_sequence_number" in given:
        change.data_sequence_number(given["data_sequence_number"])
    _from(world, change, given)
    return change.commit


PARTITION_CHECKS = ("validate_append_only", "validate_no_conflicting_data", "validate_no_conflicting_deletes")


@operation("replace_partitions", SNAPSHOT | VALIDATED | {"add", *PARTITION_CHECKS})
def replace_partitions(world: World, target: Target, given: Json) -> Commit:
    """Replace partitions."""
    change = update_snapshot(target, given).replace_partitions()
    for name in given.get("add", []):
        change.append_data_file(world.file(name, target))
    _from(world, change, given)
    _checked(change, given, PARTITION_CHECKS)
    return change.commit


#: How entries are clustered, by the names of the cases.
CLUSTERS: dict[str, tuple[Any, ...]] = {
    "all": (),
    "path": ("file_path",),
    "partition": ("partition",),
    "odd_record_count": (
        lambda entries: pc.bit_wise_and(pc.struct_field(entries["data_file"].combine_chunks(), "record_count"), 1),
    ),
}


@operation("rewrite_manifests", SNAPSHOT | {"cluster_by", "rewrite_if", "delete_manifests", "add_manifests"})
def rewrite_manifests(world: World, target: Target, given: Json) -> Commit:
    """Write manifests again."""
    change = target.rewrite_manifests(
        given.get("summary"), given.get("branch", "main"), stage_only=given.get("stage_only", False)
    )
    if "cluster_by" in given:
        change.cluster_by(*CLUSTERS[given["cluster_by"]])
    if "delete_manifests" in given:
        rows = world.manifest_list(world.table().current_snapshot())
        for place in given["delete_manifests"]:
            change.delete_manifest(ice.manifests.ManifestFile(**rows[place]))
    for manifest in given.get("add_manifests", []):
        change.add_manifest(world.manifest(manifest, existing=not manifest.get("added", False)))
    chosen = given.get("rewrite_if", {})

    def choose(manifests: pa.Table) -> Any:
        if "snapshots" in chosen:
            ids = [world.snapshot_id(number) for number in chosen["snapshots"]]
            return pc.is_in(manifests["added_snapshot_id"], pa.array(ids, pa.int64()))
        if "max_live_files" in chosen:
            live = pc.add(manifests["added_files_count"], manifests["existing_files_count"])
            return pc.less_equal(live, chosen["max_live_files"])
        return pc.equal(manifests["partition_spec_id"], chosen["spec_id"])

    if chosen:
        change.rewrite_if(choose)
    return change.commit


@operation("transaction", {"op", "ops"})
def transaction(world: World, target: Target, given: Json) -> Commit:
    """Do several operations in one commit."""
    changes = target.transaction()
    for step in given["ops"]:
        prepare(world, changes, step)()
    return changes.commit_transaction


@operation("replace_table", {"op", "schema", "spec", "properties", "ops"})
def replace_table(world: World, target: Target, given: Json) -> Commit:
    """Replace the table, and do several operations, in one commit."""
    changes = world.catalog.create_or_replace_table_transaction(
        "w.t",
        ice.Schema.from_json(json.dumps(given["schema"])),
        partition_spec=given["spec"],
        properties=given.get("properties"),
    )
    for step in given["ops"]:
        prepare(world, changes, step)()
    return changes.commit_transaction


@operation("update_schema", {"op", "changes"})
def update_schema(world: World, target: Target, given: Json) -> Commit:
    """Change the schema."""
    change = target.update_schema()
    for kind, *rest in given["changes"]:
        match kind, rest:
            case "add", [name, type_]:
                change.add_column(name, type_)
            case "delete", [name]:
                change.delete_column(name)
            case "rename", [name, to]:
                change.rename_column(name, to)
            case "type", [name, type_]:
                change.update_column(name, type_)
            case _:
                raise AssertionError(f"the runner has no change {kind!r}")
    return change.commit


@operation("update_spec", {"op", "changes"})
def update_spec(world: World, target: Target, given: Json) -> Commit:
    """Change the partition spec; fields have the names that Java makes."""
    change = target.update_spec()
    for kind, *rest in given["changes"]:
        match kind, rest:
            case "add", [transform, column]:
                change.add_field(column, transform)
            case "remove", [name]:
                change.remove_field(name)
            case _:
                raise AssertionError(f"the runner has no change {kind!r}")
    return change.commit


@operation("replace_sort_order", {"op", "fields"})
def replace_sort_order(world: World, target: Target, given: Json) -> Commit:
    """Replace the sort order."""
    change = target.update_sort_order()
    for direction, column in given["fields"]:
        getattr(change, direction)(column)
    return change.commit


@operation("update_properties", {"op", "set", "remove"})
def update_properties(world: World, target: Target, given: Json) -> Commit:
    """Set and remove properties."""
    updates, removals = given.get("set", {}), given.get("remove", [])
    if isinstance(target, ice.Table):
        return lambda: target.update_properties(updates, removals)
    return lambda: target.set_properties(updates).remove_properties(*removals)


@operation("upgrade", {"op", "format_version"})
def upgrade(world: World, target: Target, given: Json) -> Commit:
    """Upgrade the table."""
    if isinstance(target, ice.Table):
        return lambda: target.update_properties({"format-version": str(given["format_version"])})
    return lambda: target.upgrade_table_version(given["format_version"])


@operation("set_statistics", {"op", "snapshot", "path", "partition"})
def set_statistics(world: World, target: Target, given: Json) -> Commit:
    """Set a statistics file."""
    file: Json = {
        "snapshot-id": world.snapshot_id(given["snapshot"]),
        "statistics-path": world.location(given["path"]),
        "file-size-in-bytes": 100,
    }
    if given.get("partition"):
        update: Json = {"action": "set-partition-statistics", "partition-statistics": file}
    else:
        statistics = {**file, "file-footer-size-in-bytes": 10, "blob-metadata": []}
        update = {"action": "set-statistics", "snapshot-id": file["snapshot-id"], "statistics": statistics}
    return lambda: target.commit([], [update])


@operation("manage_snapshots", {"op", "actions"})
def manage_snapshots(world: World, target: Target, given: Json) -> Commit:
    """Change branches, tags and the current snapshot."""
    if target.metadata.current_snapshot_id is None and given["actions"][0]["action"] == "create_branch":
        # Of a table without snapshots, a branch begins with an empty one.
        return target.update_snapshot(branch=given["actions"][0]["name"]).fast_append().commit
    change = target.manage_snapshots()
    for action in given["actions"]:
        ACTIONS[action["action"]](world, change, action)
    return change.commit


@operation(
    "expire_snapshots",
    {
        "op",
        "snapshots",
        "older_than_ms",
        "retain_last",
        "clean_expired_files",
        "cleanup_level",
        "clean_expired_metadata",
    },
)
def expire_snapshots(world: World, target: Target, given: Json) -> Commit:
    """Expire snapshots."""
    change = target.maintenance.expire_snapshots().by_ids([world.snapshot_id(k) for k in given.get("snapshots", [])])
    if "older_than_ms" in given:
        change.older_than(START_MS + given["older_than_ms"])
    if "retain_last" in given:
        change.retain_last(given["retain_last"])
    change.clean_expired_metadata(given.get("clean_expired_metadata", False))
    levels = {"NONE": "nothing", "METADATA_ONLY": "metadata", "ALL": "all"}
    level = levels[given.get("cleanup_level", "ALL")]
    change.cleanup(level if given.get("clean_expired_files", True) else "nothing")
    return change.commit


def _snapshot(world: World, action: Json) -> int:
    return world.snapshot_id(action["snapshot"])


ACTIONS |= {
    "rollback_to": lambda world, change, action: change.rollback_to_snapshot(_snapshot(world, action)),
    "set_current_snapshot": lambda world, change, action: change.set_current_snapshot(_snapshot(world, action)),
    "rollback_to_time": lambda world, change, action: change.rollback_to_timestamp(START_MS + action["time_ms"]),
    "create_tag": lambda world, change, action: change.create_tag(_snapshot(world, action), action["name"]),
    "remove_branch": lambda world, change, action: change.remove_branch(action["name"]),
    "remove_tag": lambda world, change, action: change.remove_tag(action["name"]),
    "cherrypick": lambda world, change, action: change.cherry_pick(_snapshot(world, action)),
    "rename_branch": lambda world, change, action: change.rename_branch(action["name"], action["to"]),
    "replace_tag": lambda world, change, action: change.replace_tag(action["name"], _snapshot(world, action)),
    "fast_forward": lambda world, change, action: change.fast_forward_branch(action["name"], action["to"]),
    "set_min_snapshots_to_keep": lambda world, change, action: change.set_min_snapshots_to_keep(
        action["name"], action["value"]
    ),
    "set_max_snapshot_age_ms": lambda world, change, action: change.set_max_snapshot_age_ms(
        action["name"], action["value"]
    ),
    "set_max_ref_age_ms": lambda world, change, action: change.set_max_ref_age_ms(action["name"], action["value"]),
}


def _create_branch(world: World, change: Any, action: Json) -> object:
    if "snapshot" in action:
        return change.create_branch(_snapshot(world, action), action["name"])
    return change.create_branch(world.table().metadata.current_snapshot_id, action["name"])


def _replace_branch(world: World, change: Any, action: Json) -> object:
    target = action["to"] if "to" in action else _snapshot(world, action)
    return change.replace_branch(action["name"], target)


ACTIONS["create_branch"] = _create_branch
ACTIONS["replace_branch"] = _replace_branch
