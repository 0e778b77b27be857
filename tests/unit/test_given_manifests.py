"""Manifests that a caller writes: appended, or put in place of others ("Manifests", "Manifest Inheritance")."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.manifests import ManifestFile

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string())])


def new_table(version: int, **properties: str) -> ice.Table:
    catalog = InMemoryCatalog("manifests")
    catalog.create_namespace("a")
    given = {"format-version": str(version), **properties}
    return catalog.create_table("a.t", schema=SCHEMA, partition_by="part", properties=given)


def file(name: str, part: str | None = "x", rows: int = 3, **more: Any) -> ice.DataFile:
    path = f"memory://elsewhere/{name}.parquet"
    return ice.DataFile(
        file_path=path, file_format="parquet", partition=[part], record_count=rows, file_size_in_bytes=100, **more
    )


def written(table: ice.Table, *files: ice.DataFile) -> ManifestFile:
    with table.new_manifest_writer() as writer:
        for one in files:
            writer.add(one)
    return writer.to_manifest_file()


def listed(table: ice.Table) -> list[ManifestFile]:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    rows = ice.manifests.read_list(bytes(table.storage.read(snapshot.manifest_list))).to_pylist()
    return [ManifestFile(**row) for row in rows]


def names(table: ice.Table) -> list[str]:
    paths = table.inspect.files()["file_path"].to_pylist()
    return sorted(path.rpartition("/")[2].removesuffix(".parquet") for path in paths)


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("how", ["fast_append", "merge_append"])
def test_a_manifest_is_appended(version: int, how: str) -> None:
    table = new_table(version)
    manifest = written(table, file("a"), file("b", None))
    assert manifest.added_snapshot_id is None
    assert (manifest.added_files_count, manifest.added_rows_count, manifest.sequence_number) == (2, 6, -1)
    append = getattr(table.update_snapshot({"by": "me"}), how)()
    append.append_data_file(file("c")).append_manifest(manifest).append_manifest(manifest).commit()
    assert names(table) == ["a", "b", "c"]
    paths = [one.manifest_path for one in listed(table)]
    # Entries of version 1 name their snapshot: the manifest is copied.
    assert (manifest.manifest_path in paths) == (version > 1)
    assert {one.added_snapshot_id for one in listed(table)} == {table.current_snapshot().snapshot_id}
    if version == 3:
        assert sorted(one.first_row_id for one in listed(table)) == [0, 3]


def test_appended_manifests_are_merged_and_then_deleted() -> None:
    table = new_table(2, **{"commit.manifest.min-count-to-merge": "2"})
    manifest = written(table, file("a"))
    table.update_snapshot().merge_append().append_data_file(file("b")).append_manifest(manifest).commit()
    (only,) = listed(table)
    assert only.added_files_count == 2
    with pytest.raises(ice.errors.MissingFileError):
        table.storage.read(manifest.manifest_path)
    assert names(table) == ["a", "b"]


def test_a_manifest_of_a_refused_append_stays() -> None:
    table = new_table(2)
    manifest = written(table, file("a"))
    update = table.update_snapshot({"added-data-files": "7"}).fast_append().append_manifest(manifest)
    with pytest.raises(ice.InvalidArgumentError, match="added-data-files"):
        update.commit()
    assert table.current_snapshot() is None
    table.update_snapshot().fast_append().append_manifest(manifest).commit()
    assert names(table) == ["a"]


def test_manifests_that_cannot_be_appended() -> None:
    table = new_table(2)
    table.append_files([file("a"), file("b", "y")])
    (own,) = listed(table)
    for given, why in [
        (own, "snapshot id"),
        (changed(own, added_snapshot_id=None), "sequence number"),
        (changed(own, existing_files_count=1), "existing files"),
        (changed(own, existing_files_count=None), "existing files"),
        (changed(own, deleted_files_count=1), "deleted files"),
        (changed(own, content="deletes"), "delete files"),
        (changed(written(table, file("c")), first_row_id=4), "first row id"),
        (changed(written(table, file("c")), partition_spec_id=7), "partition spec 7"),
    ]:
        with pytest.raises((ice.InvalidArgumentError, ice.CorruptDataError), match=why):
            table.update_snapshot().fast_append().append_manifest(given).commit()
    assert names(table) == ["a", "b"]


def changed(manifest: ManifestFile, **fields: Any) -> ManifestFile:
    row = {name: getattr(manifest, name) for name in FIELDS}
    return ManifestFile(**row | fields)


FIELDS = [
    "manifest_path", "manifest_length", "partition_spec_id", "content", "sequence_number", "min_sequence_number",
    "added_snapshot_id", "added_files_count", "existing_files_count", "deleted_files_count", "added_rows_count",
    "existing_rows_count", "deleted_rows_count", "partitions", "key_metadata", "first_row_id",
]  # fmt: skip


def entries(table: ice.Table, manifest: ManifestFile) -> list[dict[str, Any]]:
    row = {name: getattr(manifest, name) for name in FIELDS} | {"content": 0}
    data = bytes(table.storage.read(manifest.manifest_path))
    return ice.manifests.read(data, manifest=row, live_only=True).to_pylist()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_manifests_take_the_place_of_others(version: int) -> None:
    table = new_table(version)
    for name, part in [("a", "x"), ("b", "y"), ("c", "x")]:
        table.update_snapshot().fast_append().append_data_file(file(name, part)).commit()
    old = listed(table)
    with table.new_manifest_writer() as writer:
        for manifest in old:
            for entry in entries(table, manifest):
                described = entry["data_file"]
                name = described["file_path"].rpartition("/")[2].removesuffix(".parquet")
                same = file(name, described["partition"]["part"], first_row_id=described.get("first_row_id"))
                writer.existing(same, entry["snapshot_id"], entry["sequence_number"], entry["file_sequence_number"])
    change = table.rewrite_manifests()
    for manifest in old[:-1]:
        change.delete_manifest(manifest)
    short = change.add_manifest(writer.to_manifest_file())
    with pytest.raises(ice.ValidationException, match="3 live files, and those that they replace have 2"):
        short.commit()
    change = table.rewrite_manifests().add_manifest(writer.to_manifest_file())
    for manifest in old:
        change.delete_manifest(manifest)
    change.commit()
    (only,) = listed(table)
    assert (only.existing_files_count, only.added_files_count) == (3, 0)
    assert [entry["snapshot_id"] for entry in entries(table, only)] == [one.added_snapshot_id for one in old]
    assert names(table) == ["a", "b", "c"]
    gone = table.rewrite_manifests().delete_manifest(old[0])
    with pytest.raises(ice.ValidationException, match="is no manifest of snapshot"):
        gone.commit()
    added = table.rewrite_manifests()
    with pytest.raises(ice.InvalidArgumentError, match="it has added files"):
        added.add_manifest(written(table, file("d"))).commit()


def test_manifests_are_written_in_order_and_once() -> None:
    table = new_table(2)
    writer = table.new_manifest_writer(location=f"{table.location()}/metadata/mine.avro")
    with pytest.raises(ice.InvalidArgumentError, match="no partition spec 4"):
        table.new_manifest_writer(4)
    with pytest.raises(ice.InvalidArgumentError, match="partition values"):
        writer.add(ice.DataFile(file_path="memory://b", file_format="orc", record_count=1, file_size_in_bytes=1))
    manifest = writer.add(file("a")).to_manifest_file()
    assert manifest == writer.to_manifest_file()
    assert manifest.manifest_path.endswith("/metadata/mine.avro")
    with pytest.raises(ice.InvalidArgumentError, match="written already"):
        writer.add(file("b"))
    again = table.new_manifest_writer(location=manifest.manifest_path)
    with pytest.raises(ice.StorageError, match="exists already"):
        again.to_manifest_file()
    raised = table.new_manifest_writer(location=f"{table.location()}/metadata/never.avro")
    with pytest.raises(ZeroDivisionError), raised:
        raise ZeroDivisionError
    with pytest.raises(ice.errors.MissingFileError):
        table.storage.read(f"{table.location()}/metadata/never.avro")
    with pytest.raises(ice.InvalidArgumentError, match="version 1 has no delete files"):
        new_table(1).new_manifest_writer(content="deletes")


def test_descriptions_of_manifests_are_values() -> None:
    manifest = written(new_table(2), file("a"), file("b", None))
    assert pickle.loads(pickle.dumps(manifest)) == manifest == eval(repr(manifest))
    assert hash(manifest) == hash(changed(manifest))
    assert changed(manifest, manifest_length=1) != manifest
    (summary,) = manifest.partitions
    assert summary == {"contains_null": True, "contains_nan": False, "lower_bound": b"x", "upper_bound": b"x"}
    for given, error, why in [
        ({"manifest_length": 1, "partition_spec_id": 0}, TypeError, "manifest_path"),
        ({"manifest_path": "m", "manifest_length": 1, "partition_spec_id": 0, "odd": 1}, TypeError, "odd"),
        ({"manifest_path": "m", "manifest_length": 1, "partition_spec_id": 0, "content": "x"}, ValueError, "content"),
        ({"manifest_path": "m", "manifest_length": 2**63, "partition_spec_id": 0}, ValueError, "manifest_length"),
    ]:
        with pytest.raises(error, match=why):
            ManifestFile(**given)


def test_operations_have_their_names_on_tables_and_transactions() -> None:
    table = new_table(2)
    with table.row_delta({"by": "delta"}) as delta:
        delta.add_rows(file("a"))
    with table.overwrite_files() as overwrite:
        overwrite.delete_data_file(file("a")).append_data_file(file("b"))
    with table.rewrite_files() as rewrite:
        rewrite.delete_data_file(file("b")).add_data_file(file("c"))
    with table.transaction() as tx, tx.replace_partitions() as replace:
        replace.append_data_file(file("d"))
    assert names(table) == ["d"]
    operations = [snapshot.operation for snapshot in table.metadata.snapshots]
    assert operations == ["append", "overwrite", "replace", "overwrite"]
    table.append_files([file("e", "y")], stage_only=True)
    staged = table.metadata.snapshots[-1].snapshot_id
    assert names(table.cherry_pick(staged)) == ["d", "e"]
