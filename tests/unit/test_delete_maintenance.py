"""Maintenance of delete files: fewer of them, vectors instead, none that apply to nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice

SCHEMA = pa.schema({"id": pa.int64(), "p": pa.int32()})
KEYS = pa.schema({"id": pa.int64()})


@pytest.fixture
def catalog(tmp_path: Path) -> ice.catalog.Catalog:
    made = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    made.create_namespace("a")
    return made


def table_of(catalog: ice.catalog.Catalog, version: int, **settings: Any) -> ice.Table:
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("a.t", SCHEMA, properties=properties | settings.pop("properties", {}), **settings)
    for number in range(4):
        ids = range(number * 10, number * 10 + 10)
        table.append(pa.table([list(ids), [number % 2] * 10], SCHEMA))
    return table


def delete_keys(table: ice.Table, *ids: int) -> None:
    with table.upsert_stream("id") as stream:
        stream.delete(pa.table([list(ids)], KEYS))


def ids(table: ice.Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def deletes(table: ice.Table) -> list[tuple[int, str, int]]:
    files = table.inspect.delete_files()
    columns = (files[name].to_pylist() for name in ("content", "file_format", "record_count"))
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_position_deletes_become_fewer(catalog: ice.catalog.Catalog, granularity: str, partitioned: bool) -> None:
    by = {"partition_by": "p"} if partitioned else {}
    table = table_of(catalog, 2, properties={"write.delete.granularity": "partition"}, **by)
    for number in (1, 2, 3, 11, 31):
        table.delete(f"id = {number}")
    table.update_properties({"write.delete.granularity": granularity})
    before = ids(table)
    table.delete("id >= 20 AND id < 30", mode="copy-on-write")
    rewrite = table.maintenance.rewrite_position_deletes
    nothing = rewrite(options={"min-input-files": 9})
    assert (nothing.rewritten_delete_files_count, nothing.snapshot_ids) == (0, [])
    planned = rewrite(options={"min-input-files": 2}, dry_run=True)
    done = rewrite(options={"min-input-files": 2})
    assert (planned.rewritten_delete_files_count, planned.added_delete_files_count) == (
        done.rewritten_delete_files_count,
        done.added_delete_files_count,
    )
    left = 3 if granularity == "file" else 2 if partitioned else 1
    # Of two data files of a partition, each has one delete file already.
    replaced = (3, 1) if granularity == "file" and partitioned else (5, left)
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == replaced
    assert done.rewritten_bytes_count > done.added_bytes_count > 0
    assert ids(table) == ids(catalog.load_table("a.t")) == [n for n in before if not 20 <= n < 30]
    assert sum(count for _, _, count in deletes(table)) == 5
    assert len(deletes(table)) == left
    if granularity == "file":
        assert rewrite(options={"min-input-files": 2}).snapshot_ids == []
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.operation == "replace"


def test_a_filter_chooses_partitions(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog, 2, partition_by="p")
    for number in (1, 2, 11, 12):
        table.delete(f"id = {number}")
    done = table.maintenance.rewrite_position_deletes("p = 1", options={"rewrite-all": True})
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (1, 1)
    assert len(deletes(table)) == 2


def test_position_deletes_become_vectors_after_an_upgrade(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog, 2, properties={"write.delete.granularity": "partition"})
    for number in (1, 2, 11, 31):
        table.delete(f"id = {number}")
    table.update_properties({"format-version": "3"})
    table.delete("id = 12")
    before = ids(table)
    done = table.maintenance.rewrite_position_deletes(options={"rewrite-all": True})
    assert done.rewritten_delete_files_count == 3
    assert ids(table) == ids(catalog.load_table("a.t")) == before
    assert deletes(table) == [(1, "PUFFIN", 1), (1, "PUFFIN", 2), (1, "PUFFIN", 2)]
    again = table.maintenance.rewrite_position_deletes(options={"rewrite-all": True})
    assert again.rewritten_delete_files_count == 0


@pytest.mark.parametrize("partial", [False, True])
def test_delete_files_of_one_data_file_become_one_vector(catalog: ice.catalog.Catalog, partial: bool) -> None:
    """Two groups wrote a vector each for the data file that their delete files have in common."""
    table = table_of(catalog, 2, partition_by="p", properties={"write.delete.granularity": "partition"})
    for condition in ("id in (1, 21)", "id = 2", "id = 11", "id = 12"):
        table.delete(condition)
    table.update_properties({"format-version": "3"})
    before = ids(table)
    options = {"rewrite-all": True, "max-file-group-input-files": 1, "partial-progress.enabled": partial}
    done = table.maintenance.rewrite_position_deletes(options=options)
    assert (done.rewritten_delete_files_count, done.added_delete_files_count, done.failures) == (4, 3, [])
    assert len(done.snapshot_ids) == (2 if partial else 1)
    assert deletes(table) == [(1, "PUFFIN", 1), (1, "PUFFIN", 2), (1, "PUFFIN", 2)]
    assert ids(table) == ids(catalog.load_table("a.t")) == before


def test_groups_that_fail_are_named_and_the_key_waits_for_them(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog, 2, partition_by="p", properties={"write.delete.granularity": "partition"})
    for number in (1, 2, 11, 12):
        table.delete(f"id = {number}")
    before = ids(table)
    (damaged, *_) = [row["file_path"] for row in table.inspect.delete_files().to_pylist() if row["partition"]["p"] == 1]
    path = Path(damaged.removeprefix("file://"))
    sound = path.read_bytes()
    path.write_bytes(bytes(len(sound)))
    options = {"rewrite-all": True, "partial-progress.enabled": True}
    rewrite = table.maintenance.rewrite_position_deletes
    done = rewrite(options=options, idempotency_key="k")
    assert (done.rewritten_delete_files_count, done.added_delete_files_count) == (2, 1)
    assert [damaged in failure for failure in done.failures] == [True]
    path.write_bytes(sound)
    again = rewrite(options={**options, "min-input-files": 2}, idempotency_key="k")
    assert (again.made_before, again.failures) == (False, [])
    assert rewrite(options=options, idempotency_key="k").made_before
    assert ids(table) == before


@pytest.mark.parametrize(
    "call",
    [
        lambda table: table.maintenance.compact(branch="prdo"),
        lambda table: table.maintenance.rewrite_position_deletes(branch="prdo"),
        lambda table: table.maintenance.convert_equality_deletes(branch="prdo"),
        lambda table: table.maintenance.remove_dangling_deletes(branch="prdo"),
    ],
)
def test_no_branch_is_created(catalog: ice.catalog.Catalog, call: Any) -> None:
    table = table_of(catalog, 2)
    table.delete("id = 1")
    delete_keys(table, 2)
    with pytest.raises(ice.errors.InvalidArgumentError, match="the table has no branch 'prdo'"):
        call(table)
    assert list(table.refresh().refs()) == ["main"]


@pytest.mark.parametrize("partitioned", [False, True])
@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_are_converted(catalog: ice.catalog.Catalog, version: int, partitioned: bool) -> None:
    table = table_of(catalog, version)
    if partitioned:
        with table.update_spec() as update:
            update.add_field("p", "identity")
        table.append(pa.table([[40, 41], [0, 1]], SCHEMA))
    table.delete("id = 1")
    with table.upsert_stream(["id", "p"]) as stream:
        stream.delete(pa.table([[2, 3, 11, 99], [0, 0, 1, 1]], SCHEMA))
    table.append(pa.table([[2], [0]], SCHEMA))
    before, snapshots = ids(table), len(table.snapshots())
    convert = table.maintenance.convert_equality_deletes
    planned = convert(dry_run=True)
    assert len(table.refresh().snapshots()) == snapshots
    done = convert(idempotency_key="k")
    assert (done.data_files_count, done.deleted_rows_count, done.added_delete_files_count) == (2, 4, 2)
    assert done.replaced_delete_files_count == 1
    assert done.converted_delete_files_count == planned.converted_delete_files_count > 0
    assert ids(table) == ids(catalog.load_table("a.t")) == before
    kind = "PUFFIN" if version == 3 else "PARQUET"
    assert deletes(table) == [(1, kind, 1), (1, kind, 3)]
    assert convert(idempotency_key="k").made_before
    assert convert().snapshot_id is None


def test_only_some_equality_deletes_are_converted(catalog: ice.catalog.Catalog) -> None:
    """A file of deletes that applies to files that are not read stays."""
    table = table_of(catalog, 3, partition_by="p")
    with table.upsert_stream(["id", "p"]) as stream:
        stream.delete(pa.table([[2, 11], [0, 1]], SCHEMA))
    before = ids(table)
    done = table.maintenance.convert_equality_deletes("p = 0")
    assert (done.converted_delete_files_count, done.deleted_rows_count) == (1, 1)
    assert deletes(table) == [(1, "PUFFIN", 1), (2, "PARQUET", 1)]
    assert ids(table) == before


@pytest.mark.parametrize("how", ["compact", "overwrite"])
def test_a_data_file_that_goes_meanwhile_is_a_conflict(catalog: ice.catalog.Catalog, how: str) -> None:
    """Rows of the file that replaces it would come back without the equality deletes."""
    table = table_of(catalog, 3)
    stale = catalog.load_table("a.t")
    delete_keys(table, 5)
    if how == "compact":
        # It has read the table before the deletes, which apply to what it writes.
        stale.maintenance.compact(options={"rewrite-all": True})
    else:
        catalog.load_table("a.t").overwrite(pa.table([[0], [0]], SCHEMA), "id < 10", mode="copy-on-write")
    expected = ids(catalog.load_table("a.t"))
    with pytest.raises(ice.ValidationException):
        table.maintenance.convert_equality_deletes()
    table.refresh().maintenance.convert_equality_deletes()
    assert ids(table) == expected
    assert all(content == 1 for content, _, _ in deletes(table))


def test_a_compaction_that_began_before_is_a_conflict(catalog: ice.catalog.Catalog) -> None:
    """Its files have rows that the equality deletes had deleted, which are gone."""
    table = table_of(catalog, 3)
    stale = catalog.load_table("a.t")
    delete_keys(table, 5)
    assert table.maintenance.convert_equality_deletes().deleted_rows_count == 1
    with pytest.raises(ice.ValidationException):
        stale.maintenance.compact(options={"rewrite-all": True})
    assert ids(table.refresh()) == [n for n in range(40) if n != 5]


@pytest.mark.parametrize("version", [2, 3])
def test_dangling_deletes_are_removed(catalog: ice.catalog.Catalog, version: int) -> None:
    table = table_of(catalog, version, partition_by="p")
    table.delete("id IN (1, 2, 11)")
    with table.upsert_stream(["id", "p"]) as stream:
        stream.delete(pa.table([[3, 12], [0, 1]], SCHEMA))
    remove = table.maintenance.remove_dangling_deletes
    assert remove().delete_files == []
    table.maintenance.compact("p = 0", options={"rewrite-all": True, "use-starting-sequence-number": False})
    found = remove(dry_run=True).delete_files
    done = remove()
    assert sorted(done.delete_files) == sorted(found)
    assert done.delete_files
    assert sorted(deletes(table)) == [(1, "PUFFIN" if version == 3 else "PARQUET", 1), (2, "PARQUET", 1)]
    assert ids(table) == [n for n in range(40) if n not in (1, 2, 3, 11, 12)]
    assert remove().snapshot_id is None


def test_equality_deletes_of_all_partitions_are_no_dangling_ones(catalog: ice.catalog.Catalog, tmp_path: Path) -> None:
    table = table_of(catalog, 2)
    with table.update_spec() as update:
        update.add_field("p", "identity")
    table.append(pa.table([[50, 51], [0, 1]], SCHEMA))
    path = tmp_path / "deletes.parquet"
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
    pq.write_table(pa.table([[50]], pa.schema([field])), path)
    with table.update_snapshot().row_delta() as delta:
        delta.add_deletes(
            ice.DeleteFile(
                content="equality_deletes",
                file_path=str(path),
                file_format="parquet",
                spec_id=0,
                record_count=1,
                file_size_in_bytes=path.stat().st_size,
                equality_ids=[1],
            )
        )
    assert 50 not in ids(table)
    table.maintenance.compact("id < 40", options={"rewrite-all": True, "use-starting-sequence-number": False})
    table.maintenance.remove_dangling_deletes()
    assert 50 not in ids(table)
