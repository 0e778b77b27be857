"""Procedures about the files of tables: expiry, manifests, files of others, registration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.procedures.declared import Arguments, Column, Parameter, Procedure, table_parts
from icefield.procedures.snapshots import named_table, own_name

if TYPE_CHECKING:
    from datetime import datetime

    import pyarrow as pa

    from icefield.catalog import Catalog
    from icefield.table import Table
    from icefield.table.maintenance.orphans import PrefixMismatchMode

__all__ = ["PROCEDURES"]

_TABLE = Parameter("table", "table", required=True)
_POSITION_DELETES = 1
#: As many locations as Java's procedure returns with ``stream_results``.
_STREAMED = 20_000
_TARGET_SIZE = 8 << 20
#: The content of manifests.
_OF_DATA, _OF_DELETES = 0, 1
FileFormat: TypeAlias = Literal["parquet", "orc", "avro"]
_FORMATS: tuple[FileFormat, ...] = ("parquet", "orc", "avro")


def _expire_snapshots(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    table = named_table(catalog, arguments)
    _positive("expire_snapshots", arguments, "max_concurrent_deletes")
    kinds = _kinds_of_deletes(table)
    done = table.expire_snapshots(
        older_than=cast("datetime | None", arguments.get("older_than")),
        retain_last=cast("int | None", arguments.get("retain_last")),
        snapshot_ids=cast("list[int]", arguments.get("snapshot_ids", [])),
        clean_expired_metadata=bool(arguments.get("clean_expired_metadata", False)),
    )
    deletes = [kinds.get(path, _POSITION_DELETES) for path in done.delete_files]
    positions = deletes.count(_POSITION_DELETES)
    other = (done.data_files, done.manifests, done.manifest_lists, done.statistics_files)
    data_files, manifests, lists, statistics = map(len, other)
    return [(data_files, positions, len(deletes) - positions, manifests, lists, statistics)]


def _kinds_of_deletes(table: Table) -> dict[str, int]:
    """Return the content of delete files by their paths: positions or equality, which an expiry does not say."""
    has_deletes = any(
        one.summary is None or int(one.summary.get("total-delete-files", "1") or 1) for one in table.snapshots()
    )
    if not has_deletes:
        return {}
    files = table.inspect.all_delete_files()
    return dict(zip(files["file_path"].to_pylist(), files["content"].to_pylist(), strict=True))


def _positive(procedure: str, arguments: Arguments, name: str) -> None:
    value = cast("int | None", arguments.get(name))
    if value is not None and value <= 0:
        raise InvalidArgumentError(f"{procedure}: parameter {name!r} must be positive, got {value}")


def _rewrite_manifests(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    table = named_table(catalog, arguments)
    spec_id = cast("int", arguments.get("spec_id", table.metadata.default_spec_id))
    if spec_id not in table.specs():
        raise InvalidArgumentError(f"rewrite_manifests: the table has no partition spec {spec_id}")
    fields = [field.name for field in table.specs()[spec_id].fields]
    first = cast("list[str]", arguments.get("sort_by", []))
    if unknown := [name for name in first if name not in fields]:
        known = ", ".join(fields) or "none"
        raise InvalidArgumentError(f"rewrite_manifests: there is no partition field {unknown[0]!r}; there are: {known}")
    order = [*dict.fromkeys(first), *(name for name in fields if name not in first)]
    before = _manifests(table)
    target = int(table.properties.get("commit.manifest.target-size-bytes", _TARGET_SIZE))
    counts = {}
    for kind in (_OF_DATA, _OF_DELETES):
        sizes = [size for size, spec, content in before.values() if (spec, content) == (spec_id, kind)]
        count = -(-sum(sizes) // target)
        if len(sizes) > 1 or count > 1:
            counts[kind] = count
    if not counts:
        return [(0, 0)]

    def chosen(manifests: pa.Table) -> object:
        import pyarrow as pa
        import pyarrow.compute as pc

        of_kind = pc.is_in(manifests["content"], pa.array(list(counts), manifests["content"].type))
        return pc.and_(pc.equal(manifests["partition_spec_id"], spec_id), of_kind)

    rewrite = table.rewrite_manifests().with_delete_manifests().rewrite_if(chosen)
    grouped = [_by_partition(table, spec_id, order, counts)] if max(counts.values()) > 1 else []
    rewrite.cluster_by(*grouped).commit()
    after = _manifests(table)
    return [(len(before.keys() - after.keys()), len(after.keys() - before.keys()))]


def _by_partition(
    table: Table, spec_id: int, names: Sequence[str], counts: Mapping[int, int]
) -> Callable[[pa.Table], pa.Array]:
    """Return a function that puts entries into groups of files of neighbouring partitions: so many of each content."""
    import pyarrow as pa
    import pyarrow.compute as pc

    files = table.inspect.files().select(["partition", "spec_id", "content"])
    files = files.filter(pc.equal(files["spec_id"], spec_id))
    group: dict[tuple[int, tuple[Any, ...]], int] = {}
    found = sorted(_keys(files["content"], files["partition"], names))
    for kind, count in counts.items():
        keys = [key for key in found if key[0] == kind]
        group |= {key: place * count // len(keys) for place, key in enumerate(keys)}

    def groups(entries: pa.Table) -> pa.Array:
        contents, partitions = (pc.struct_field(entries["data_file"], name) for name in ("content", "partition"))
        return pa.array([group.get(key, 0) for key in _keys(contents, partitions, names)], pa.int64())

    return groups


def _keys(
    contents: pa.ChunkedArray, partitions: pa.ChunkedArray, names: Sequence[str]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Return the content of files, data or deletes, with their partition values in an order, nulls first."""
    import pyarrow.compute as pc

    known = {field.name for field in partitions.type}
    columns = [pc.struct_field(partitions, name).to_pylist() if name in known else repeat(None) for name in names]
    values = zip(*columns, strict=False) if known else repeat((None,) * len(names))
    for content, key in zip(contents.to_pylist(), values, strict=False):
        yield min(content, 1), tuple((value is not None, 0 if value is None else value) for value in key)


def _manifests(table: Table) -> dict[str, tuple[int, int, int]]:
    """Return length, spec and content of the manifests by their paths."""
    found = table.inspect.manifests()
    about = (found[name].to_pylist() for name in ("length", "partition_spec_id", "content"))
    return dict(zip(found["path"].to_pylist(), zip(*about, strict=True), strict=True))


def _register_table(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    table = catalog.register_table(own_name(catalog, arguments), cast("str", arguments["metadata_file"]))
    snapshot = table.current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return [(None if snapshot is None else snapshot.snapshot_id, None, None)]
    totals = (snapshot.summary.get(name) for name in ("total-records", "total-data-files"))
    return [(snapshot.snapshot_id, *(None if total is None else int(total) for total in totals))]


def _add_files(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    if arguments.get("partition_filter"):
        raise UnsupportedFeatureError(
            "add_files: partition_filter is not supported: name the folder of the partition as source_table"
        )
    _positive("add_files", arguments, "parallelism")
    table = named_table(catalog, arguments)
    kind, folder = _source("add_files", arguments)
    paths = [path for path, size in table.storage.list(folder) if size and _is_data(path, folder)]
    if not paths:
        raise InvalidArgumentError(f"add_files: there are no data files in {folder}")
    if others := [path for path in paths if not path.lower().endswith(f".{kind}") and "." in path.rpartition("/")[2]]:
        raise InvalidArgumentError(f"add_files: {others[0]} is not named like a file of {kind}")
    before = {one.snapshot_id for one in table.snapshots()}
    table.add_files(paths, check_duplicate_files=bool(arguments.get("check_duplicate_files", True)))
    snapshot = table.current_snapshot()
    if snapshot is None or snapshot.snapshot_id in before or snapshot.summary is None:
        return [(0, None)]
    partitions = snapshot.summary.get("changed-partition-count")
    return [(int(snapshot.summary.get("added-data-files", "0") or 0), None if partitions is None else int(partitions))]


def _source(procedure: str, arguments: Arguments) -> tuple[FileFormat, str]:
    """Return format and folder of the files that are taken over."""
    parts = table_parts(arguments["source_table"])
    kind = next((one for one in _FORMATS if one == parts[0].lower()), None)
    if len(parts) != 2 or kind is None:  # noqa: PLR2004 - a format and a folder
        raise UnsupportedFeatureError(
            f"{procedure}: source_table {'.'.join(parts)!r} is not supported: pass a folder, as in 'parquet.`/data/t`'"
        )
    return kind, parts[1]


def _snapshot(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    _positive("snapshot", arguments, "parallelism")
    name = own_name(catalog, arguments)
    kind, folder = _source("snapshot", arguments)
    location = cast("str | None", arguments.get("location")) or catalog.default_location(name[:-1], name[-1])
    if location.rstrip("/") == folder.rstrip("/"):
        raise InvalidArgumentError(f"snapshot: the location must not be the folder of the source, {folder}")
    properties = cast("Mapping[str, str]", arguments.get("properties", {}))
    done = catalog.migrate(name, folder, format=kind, location=location, properties=properties)
    return [(done.files,)]


def _is_data(path: str, folder: str) -> bool:
    """Return whether no part of a path below a folder begins as hidden files do."""
    below = path[path.rfind(folder.rstrip("/")) + len(folder.rstrip("/")) :] if folder in path else path
    return not any(part.startswith(("_", ".")) and "=" not in part for part in below.split("/"))


def _remove_orphan_files(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    if arguments.get("file_list_view"):
        raise UnsupportedFeatureError(
            "remove_orphan_files: file_list_view is not supported: leave it out, and the folder is listed"
        )
    _positive("remove_orphan_files", arguments, "max_concurrent_deletes")
    mode = cast("str", arguments.get("prefix_mismatch_mode", "error")).lower()
    if mode not in {"error", "ignore", "delete"}:
        raise InvalidArgumentError(
            f"remove_orphan_files: prefix_mismatch_mode: expected ERROR, IGNORE or DELETE, got {mode!r}"
        )
    done = named_table(catalog, arguments).maintenance.remove_orphans(
        cast("datetime | None", arguments.get("older_than")),
        location=cast("str | None", arguments.get("location")),
        dry_run=bool(arguments.get("dry_run", False)),
        equal_schemes=cast("dict[str, str] | None", arguments.get("equal_schemes")),
        equal_authorities=cast("dict[str, str] | None", arguments.get("equal_authorities")),
        prefix_mismatch_mode=cast("PrefixMismatchMode", mode),
    )
    shown = done.files[:_STREAMED] if arguments.get("stream_results") else done.files
    return [(path,) for path in shown]


def _compute_table_stats(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    done = named_table(catalog, arguments).maintenance.compute_table_stats(
        cast("list[str] | None", arguments.get("columns")), snapshot_id=cast("int | None", arguments.get("snapshot_id"))
    )
    return [] if done is None else [(done.path,)]


def _compute_partition_stats(catalog: Catalog, arguments: Arguments) -> list[tuple[object, ...]]:
    maintenance = named_table(catalog, arguments).maintenance
    done = maintenance.compute_partition_stats(snapshot_id=cast("int | None", arguments.get("snapshot_id")))
    return [] if done is None else [(done.path,)]


_COUNTS = (
    "deleted_data_files_count",
    "deleted_position_delete_files_count",
    "deleted_equality_delete_files_count",
    "deleted_manifest_files_count",
    "deleted_manifest_lists_count",
    "deleted_statistics_files_count",
)

PROCEDURES = (
    Procedure(
        "expire_snapshots",
        (
            _TABLE,
            Parameter("older_than", "timestamp"),
            Parameter("retain_last", "int"),
            Parameter("max_concurrent_deletes", "int"),
            Parameter("stream_results", "boolean"),
            Parameter("snapshot_ids", "array<long>"),
            Parameter("clean_expired_metadata", "boolean"),
        ),
        tuple(Column(name, "long", nullable=True) for name in _COUNTS),
        _expire_snapshots,
        destructive=True,
    ),
    Procedure(
        "remove_orphan_files",
        (
            _TABLE,
            Parameter("older_than", "timestamp"),
            Parameter("location", "string"),
            Parameter("dry_run", "boolean"),
            Parameter("max_concurrent_deletes", "int"),
            Parameter("file_list_view", "string"),
            Parameter("equal_schemes", "map<string,string>"),
            Parameter("equal_authorities", "map<string,string>"),
            Parameter("prefix_mismatch_mode", "string"),
            Parameter("prefix_listing", "boolean"),
            Parameter("stream_results", "boolean"),
        ),
        (Column("orphan_file_location", "string"),),
        _remove_orphan_files,
        destructive=True,
    ),
    Procedure(
        "compute_table_stats",
        (_TABLE, Parameter("snapshot_id", "long"), Parameter("columns", "array<string>")),
        (Column("statistics_file", "string"),),
        _compute_table_stats,
    ),
    Procedure(
        "compute_partition_stats",
        (_TABLE, Parameter("snapshot_id", "long")),
        (Column("partition_statistics_file", "string"),),
        _compute_partition_stats,
    ),
    Procedure(
        "rewrite_manifests",
        (
            _TABLE,
            Parameter("use_caching", "boolean"),
            Parameter("spec_id", "int"),
            Parameter("sort_by", "array<string>"),
        ),
        (Column("rewritten_manifests_count", "int"), Column("added_manifests_count", "int")),
        _rewrite_manifests,
    ),
    Procedure(
        "register_table",
        (_TABLE, Parameter("metadata_file", "string", required=True)),
        (
            Column("current_snapshot_id", "long", nullable=True),
            Column("total_records_count", "long", nullable=True),
            Column("total_data_files_count", "long", nullable=True),
        ),
        _register_table,
    ),
    Procedure(
        "add_files",
        (
            _TABLE,
            Parameter("source_table", "string", required=True),
            Parameter("partition_filter", "map<string,string>"),
            Parameter("check_duplicate_files", "boolean"),
            Parameter("parallelism", "int"),
        ),
        (Column("added_files_count", "long"), Column("changed_partition_count", "long", nullable=True)),
        _add_files,
    ),
    Procedure(
        "snapshot",
        (
            Parameter("source_table", "string", required=True),
            _TABLE,
            Parameter("location", "string"),
            Parameter("properties", "map<string,string>"),
            Parameter("parallelism", "int"),
            Parameter("ignore_missing_files", "boolean"),
        ),
        (Column("imported_files_count", "long"),),
        _snapshot,
    ),
)
