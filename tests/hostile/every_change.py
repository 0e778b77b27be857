"""Each kind of change of a table, and what must be true of the files of one that was stopped half-way."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import icefield as ice

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int32()), ("place", pa.string())])
#: Ids of the columns, in files that are described.
IDS = {"id": 1, "v": 2, "place": 3}
PLACES = ["a", "b", "c"]


def rows(first: int, count: int) -> pa.Table:
    """Make rows of all partitions."""
    ids = range(first, first + count)
    return pa.table([list(ids), [at % 4 for at in ids], [PLACES[at % 3] for at in ids]], SCHEMA)


def catalog_of(folder: Path) -> ice.Catalog:
    """Open the catalog in a folder: beside its warehouse, so that its own files are not among those of the table."""
    (folder / "catalog").mkdir(exist_ok=True)
    uri = f"sqlite:///{folder}/catalog/catalog.db"
    return ice.load_catalog("c", uri=uri, warehouse=str(folder / "warehouse"))


def prepare(folder: Path, version: int, before: Callable[[ice.Table, Path], object] | None = None) -> None:
    """Make a table with data files, delete files and a few snapshots, and files of others beside it."""
    catalog = catalog_of(folder)
    catalog.create_namespace("db")
    # Old metadata files go at each commit, and manifests are merged: more steps.
    properties = {
        "format-version": str(version),
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "2",
        "commit.manifest.min-count-to-merge": "2",
    }
    table = catalog.create_table("db.t", schema=SCHEMA, partition_by=["place"], properties=properties)
    table.append(rows(0, 9)).append(rows(9, 9))
    table.delete("id = 4", mode="merge-on-read" if version > 1 else "copy-on-write")
    given = folder / "given"
    given.mkdir()
    files = files_of(table, "b")
    fields = [field.with_metadata({"PARQUET:field_id": str(IDS[field.name])}) for field in SCHEMA]
    whole = table.scan("place = 'b'").to_arrow().cast(pa.schema(fields))
    pq.write_table(whole, given / "whole.parquet")
    pq.write_table(rows(100, 9).filter(pc.field("place") == "c"), given / "added.parquet")
    positions = {"file_path": [file["file_path"] for file in files[:1]], "pos": pa.array([0], pa.int64())}
    ids = {"file_path": "2147483546", "pos": "2147483545"}
    delete = pa.table(positions)
    numbered = [
        pa.field(field.name, field.type, nullable=False, metadata={"PARQUET:field_id": ids[field.name]})
        for field in delete.schema
    ]
    pq.write_table(delete.cast(pa.schema(numbered)), given / "deletes.parquet")
    for place in ("a", "b"):
        (given / "hive" / f"place={place}").mkdir(parents=True)
        pq.write_table(rows(200, 3).drop_columns("place"), given / "hive" / f"place={place}" / "one.parquet")
    if before is not None:
        before(table, folder)


def files_of(table: ice.Table, place: str) -> list[dict[str, Any]]:
    """List the data files of a partition that no delete is about."""
    found = [file for file in table.inspect.files().to_pylist() if file["partition"]["place"] == place]
    return [file for file in found if file["content"] == 0]


def described(path: Path | str, place: str, count: int, kind: type[Any] = ice.DataFile, **more: Any) -> Any:
    """Describe a file."""
    size = os.path.getsize(local(str(path)))
    return kind(
        file_path=str(path),
        file_format="parquet",
        partition=[place],
        record_count=count,
        file_size_in_bytes=size,
        **more,
    )


def row_delta(table: ice.Table, folder: Path) -> None:
    """Delete a row by a file that is described, and add rows."""
    with table.update_snapshot().row_delta() as delta:
        path = folder / "given" / "deletes.parquet"
        delta.add_deletes(described(path, "b", 1, ice.DeleteFile, content="position_deletes"))


def rewrite_files(table: ice.Table, folder: Path) -> None:
    """Put the rows of a partition into one file."""
    files = table.inspect.files().to_pylist()
    start = table.current_snapshot()
    assert start is not None
    with table.update_snapshot().rewrite_files() as rewrite:
        rewrite.validate_from_snapshot(start.snapshot_id)
        for file in files:
            if file["partition"]["place"] == "b" and file["content"] == 0:
                rewrite.delete_data_file(described(file["file_path"], "b", file["record_count"]))
        path = folder / "given" / "whole.parquet"
        rewrite.add_data_file(described(path, "b", pq.read_metadata(path).num_rows))


def transaction(table: ice.Table, _: Path) -> None:
    """Change columns, rows and properties together."""
    with table.transaction() as changes:
        with changes.update_schema() as schema:
            schema.add_column("more", ice.types.StringType())
        changes.append(rows(50, 3).append_column("more", pa.array(["x", "y", None])))
        changes.delete("id = 2")
        changes.set_properties({"color": "blue"})
        changes.update({"v": 9}, "id = 50")


def fast_append(table: ice.Table, folder: Path) -> None:
    """Append a file that is described."""
    path = folder / "given" / "whole.parquet"
    with table.update_snapshot().fast_append() as append:
        append.append_data_file(described(path, "b", pq.read_metadata(path).num_rows))


def merge(table: ice.Table, _: Path) -> None:
    """Delete, update and insert rows by a source."""
    merging = table.merge(rows(14, 6), ["id"], mode="merge-on-read")
    merging.when_matched_delete("source.id = 15").when_matched_update({"v": 8}).when_not_matched_insert_all().execute()


def upsert_stream(table: ice.Table, _: Path) -> None:
    """Upsert and delete rows by key without reading the table."""
    with table.upsert_stream(["id", "place"]) as stream:
        stream.upsert(rows(15, 6)).delete(rows(0, 2))


def create(table: ice.Table, _: Path) -> None:
    """Create a table with its rows."""
    assert table.catalog is not None
    with table.catalog.create_table_transaction("db.new", SCHEMA, partition_by=["place"]) as changes:
        changes.append(rows(0, 6))
        changes.set_properties({"color": "blue"})


def replace(table: ice.Table, _: Path) -> None:
    """Replace a table by one of other columns, with its rows."""
    assert table.catalog is not None
    made = rows(0, 6).drop_columns("v")
    with table.catalog.create_or_replace_table_transaction("db.t", made.schema, partition_by=["id"]) as changes:
        changes.append(made)


def migrate(table: ice.Table, folder: Path) -> None:
    """Make a table of a folder of files."""
    assert table.catalog is not None
    table.catalog.migrate("db.new", folder / "given" / "hive")


def compact(table: ice.Table, _: Path) -> None:
    """Rewrite all data files without their deleted rows, a group for each partition, in one commit."""
    table.maintenance.compact(options={"rewrite-all": True, "remove-dangling-deletes": False})


def compact_in_parts(table: ice.Table, _: Path) -> None:
    """Rewrite all data files, with a commit for each partition."""
    options = {"rewrite-all": True, "partial-progress.enabled": True, "partial-progress.max-commits": 3}
    table.maintenance.compact(options={**options, "max-concurrent-file-group-rewrites": 1})


def by_keys(table: ice.Table, _: Path) -> None:
    """Delete rows by equality deletes, beside those that are deleted by position."""
    with table.upsert_stream(["id", "place"]) as stream:
        stream.upsert(rows(7, 6))


def many_deletes(table: ice.Table, _: Path) -> None:
    """Delete rows by several small files for each partition."""
    for number in (1, 2, 3, 9, 10, 11, 12):
        table.delete(f"id = {number}", mode="merge-on-read")


def leave_orphans(table: ice.Table, _: Path) -> None:
    """Put files that nothing references, and that are old, among those of the table."""
    for name in ("data/left.parquet", "data/place=a/left.parquet", "metadata/left-m0.avro", "metadata/left-m1.avro"):
        path = Path(local(table.location())) / name
        path.write_bytes(b"left")
        os.utime(path, (0, 0))


@dataclass(frozen=True)
class Kind:
    """A kind of change."""

    change: Callable[[ice.Table, Path], object]
    version: int = 2
    #: Lists files that were there and that go.
    deletes: Callable[[ice.Table], list[str]] | None = None
    #: The table that is changed; another than this one is created.
    table: str = "t"
    #: What is made of the table before.
    before: Callable[[ice.Table, Path], object] | None = None
    #: The number of commits.
    commits: int = 1


def expire(table: ice.Table, _: Path, *, dry_run: bool = False) -> list[str]:
    """Expire all snapshots but the last one."""
    return table.expire_snapshots(retain_last=1, older_than="2100-01-01T00:00:00Z", dry_run=dry_run).deleted_files


def expired(table: ice.Table) -> list[str]:
    """List the files that an expiry would delete."""
    return expire(table, Path(), dry_run=True)


#: All of them, by name.
KINDS: dict[str, Kind] = {
    "append": Kind(lambda table, _: table.append(rows(30, 3))),
    "append, version 1": Kind(lambda table, _: table.append(rows(30, 3)), 1),
    "fast append": Kind(fast_append),
    "overwrite": Kind(lambda table, _: table.overwrite(rows(30, 3), "id < 5")),
    "delete, copy-on-write": Kind(lambda table, _: table.delete("id = 5", mode="copy-on-write")),
    "delete, position deletes": Kind(lambda table, _: table.delete("id = 5", mode="merge-on-read")),
    "delete, vectors": Kind(lambda table, _: table.delete("id IN (1, 2)", mode="merge-on-read"), 3),
    "delete, files": Kind(lambda table, _: table.delete("place = 'a'")),
    "update, copy-on-write": Kind(lambda table, _: table.update({"v": 7}, "id = 3", mode="copy-on-write"), 3),
    "update, vectors": Kind(lambda table, _: table.update({"place": "z"}, "id = 3", mode="merge-on-read"), 3),
    "upsert": Kind(lambda table, _: table.upsert(rows(15, 6).set_column(1, "v", pa.array([8] * 6)), ["id"]), 3),
    "merge": Kind(merge, 3),
    "upsert stream": Kind(upsert_stream),
    "dynamic overwrite": Kind(lambda table, _: table.dynamic_partition_overwrite(rows(30, 1))),
    "row delta": Kind(row_delta),
    "rewrite files": Kind(rewrite_files),
    "rewrite manifests": Kind(lambda table, _: table.rewrite_manifests().cluster_by("place").commit()),
    "expire": Kind(expire, 3, expired),
    "add files": Kind(lambda table, folder: table.add_files([str(folder / "given" / "added.parquet")])),
    "transaction": Kind(transaction, 3),
    "create with rows": Kind(create, table="new"),
    "replace with rows": Kind(replace),
    "migrate": Kind(migrate, table="new"),
    "compact": Kind(compact),
    "compact, vectors": Kind(compact, 3),
    "compact, equality deletes": Kind(compact, 3, before=by_keys),
    "compact in parts": Kind(compact_in_parts, before=by_keys, commits=3),
    "rewrite position deletes": Kind(
        lambda table, _: table.maintenance.rewrite_position_deletes(options={"rewrite-all": True}), before=many_deletes
    ),
    "convert equality deletes": Kind(lambda table, _: table.maintenance.convert_equality_deletes(), before=by_keys),
    "convert to vectors": Kind(lambda table, _: table.maintenance.convert_equality_deletes(), 3, before=by_keys),
    "remove orphans": Kind(
        lambda table, _: table.maintenance.remove_orphans(dry_run=False),
        deletes=lambda table: table.maintenance.remove_orphans().files,
        before=leave_orphans,
        commits=0,
    ),
}


def all_files(folder: Path) -> set[str]:
    """List the files of the table, and those beside it."""
    return {str(path) for name in ("warehouse", "given") for path in (folder / name).rglob("*") if path.is_file()}


def local(location: str) -> str:
    """Return the path of a location."""
    return location.removeprefix("file://").removeprefix("file:")


def named_files(table: ice.Table) -> set[str]:
    """List the files that the table names: metadata, manifest lists, manifests, data and delete files."""
    named = {table.metadata_location, *(entry.metadata_file for entry in table.metadata_log())}
    manifests: dict[str, dict[str, Any]] = {}
    for snapshot in table.snapshots():
        assert snapshot.manifest_list is not None
        named.add(snapshot.manifest_list)
        found = ice.manifests.read_list(Path(local(snapshot.manifest_list)).read_bytes()).to_pylist()
        manifests |= {manifest["manifest_path"]: manifest for manifest in found}
    for path, manifest in manifests.items():
        entries = ice.manifests.read(Path(local(path)).read_bytes(), manifest=manifest, live_only=True)
        named |= {path, *(entry["data_file"]["file_path"] for entry in entries.to_pylist())}
    return set(map(local, named))


def sizes(folder: Path) -> dict[str, int]:
    """List the files of the table with their sizes."""
    return {path: os.path.getsize(path) for path in sorted(all_files(folder))}


def pointer(folder: Path, name: str) -> str:
    """Return where the catalog says that a table is, without opening either; nothing for one that is not there."""
    query = "SELECT metadata_location FROM iceberg_tables WHERE table_name = ?"
    with closing(sqlite3.connect(folder / "catalog" / "catalog.db")) as database:
        found = database.execute(query, (name,)).fetchone()
    return str(found[0]) if found else ""


def state(folder: Path, name: str) -> dict[str, Any]:
    """Say what a table is: its rows, its history, its columns, its files."""
    catalog, files = catalog_of(folder), all_files(folder)
    tables = [catalog.load_table(identifier) for identifier in catalog.list_tables("db")]
    named = {path for table in tables for path in named_files(table)}
    of_files = {"missing": sorted(named - files), "orphans": sorted(files - named), "files": sorted(files)}
    if not catalog.table_exists(f"db.{name}"):
        return {"rows": [], "history": [], "columns": [], "properties": {}, **of_files}
    table = catalog.load_table(f"db.{name}")
    return {
        "rows": sorted(map(str, table.scan().to_arrow().to_pylist())),
        "history": [snapshot.operation for snapshot in table.snapshots()],
        "columns": [field.name for field in table.schema().fields],
        "properties": dict(table.properties),
        **of_files,
    }
