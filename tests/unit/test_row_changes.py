"""Deletes, updates, overwrites and upserts through the public API: results, modes, isolation, errors, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import (
    InvalidArgumentError,
    UnsupportedFeatureError,
    ValidationError,
    ValidationException,
)
from icefield.table.rows import RowsChanged, UpsertResult

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int32()), ("s", pa.string())])


def rows(*ids: int, v: int | None = 0) -> pa.Table:
    columns = [list(ids), [v if v is None else v + at for at in range(len(ids))], [f"s{at}" for at in ids]]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


def make(folder: Path, version: int = 2, **options: Any) -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(folder))
    catalog.create_namespace("a")
    properties = {"format-version": str(version), **options.pop("properties", {})}
    return catalog.create_table("a.t", schema=SCHEMA, properties=properties, **options)


def ids(table: ice.Table, *filters: str) -> list[int]:
    return sorted(table.scan(*filters).to_arrow()["id"].to_pylist())


def content(table: ice.Table) -> list[tuple[int, str]]:
    return sorted((file["content"], file["file_format"].lower()) for file in table.inspect.files().to_pylist())


def files(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if path.is_file() and "metadata" not in path.parts}


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read", "auto", None])
def test_rows_are_kept_where_the_filter_is_not_true(tmp_path: Path, version: int, mode: Any) -> None:
    table = make(tmp_path, version).append(rows(1, 2, 3, v=None))
    table.append(rows(*range(10, 30), v=1))
    if version == 1 and mode == "merge-on-read":
        with pytest.raises(UnsupportedFeatureError, match="format version 1"):
            table.delete("v = 2", mode=mode)
        return
    done = table.delete("v = 2", mode=mode)
    is_marked = version > 1 and mode != "copy-on-write"
    assert (done.rows_removed, done.files_removed, done.files_rewritten, done.files_marked) == (
        1, 0, 1 - is_marked, int(is_marked),
    )  # fmt: skip
    assert (done.bytes_rewritten > 0) == (not is_marked)
    assert ids(table) == [1, 2, 3, 10, *range(12, 30)]
    deletes = {2: [(1, "parquet")], 3: [(1, "puffin")]}
    assert content(table) == [(0, "parquet")] * 2 + (deletes[version] if is_marked else [])
    # A second one reads through the first, whichever way it goes.
    table.delete("v = 3", mode="copy-on-write")
    assert ids(table) == [1, 2, 3, 10, *range(13, 30)]
    assert content(table) == [(0, "parquet")] * 2
    assert table.current_snapshot().summary["operation"] == "overwrite"


def test_a_table_says_how_rows_are_deleted(tmp_path: Path) -> None:
    for number, (mode, marked) in enumerate([("copy-on-write", 0), ("merge-on-read", 1)]):
        table = make(tmp_path / str(number), properties={"write.delete.mode": mode})
        table.append(rows(*range(10)))
        assert table.delete("id < 9").files_marked == marked
    # The share of rows decides where it says nothing.
    table = make(tmp_path / "auto").append(rows(*range(10)))
    assert table.delete("id < 1").files_marked == 1
    assert table.delete("id < 4").files_rewritten == 1


def test_files_that_match_whole_are_not_read(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=["v"]).append(rows(1, 2, 3))
    table.append(rows(7, 8, 9, v=None))
    before = files(tmp_path)
    assert len(before) == 4
    for path in before:
        path.write_bytes(b"unreadable")
    for condition, rows_removed in (("v = 1", 1), ("id >= 7", 3)):
        done = table.delete(condition)
        assert done == RowsChanged(rows_removed, 0, 1, 0, 0, 0, bytes_removed=done.bytes_removed)
        assert done.bytes_removed > len(b"unreadable")
    assert table.current_snapshot().summary["operation"] == "delete"
    assert files(tmp_path) == before
    assert (table.delete().rows_removed, table.scan().count()) == (2, 0)


def test_a_file_that_is_emptied_is_removed_and_none_without_rows_written(tmp_path: Path) -> None:
    for version in (2, 3):
        table = make(tmp_path / str(version), version).append(rows(1, 2, 3, 4))
        table.delete("s = 's1'", mode="merge-on-read")
        # Not by metrics: the bounds of s have more values than these.
        done = table.delete("s IN ('s2', 's3', 's4')", mode="merge-on-read")
        assert (done.rows_removed, done.files_removed, done.files_marked) == (3, 1, 0)
        assert content(table) == []


def test_nothing_to_delete_makes_no_snapshot(tmp_path: Path) -> None:
    table = make(tmp_path)
    assert table.delete() == RowsChanged(0, 0, 0, 0, 0, 0)
    table.append(rows(1))
    snapshot = table.current_snapshot().snapshot_id
    assert table.delete("s = 's'") == RowsChanged(0, 0, 0, 0, 0, 0)
    assert table.update({"v": 1}, "id = 9").rows_added == 0
    assert table.upsert(rows(1), ["id"]) == UpsertResult(0, 0)
    assert table.current_snapshot().snapshot_id == snapshot


def test_a_dry_run_changes_nothing(tmp_path: Path) -> None:
    table = make(tmp_path, 3, partition_by=["v"]).append(rows(1, 2, 3))
    before, snapshot = files(tmp_path), table.current_snapshot().snapshot_id
    assert table.delete("v = 1 OR s = 's3'", dry_run=True).files_removed == 2
    planned = table.overwrite(rows(5, 6), "v = 1", dry_run=True)
    assert planned == RowsChanged(1, 2, 1, 0, 0, 0, 2, planned.bytes_added, planned.bytes_removed)
    assert table.update({"v": 9}, "id = 1", dry_run=True).rows_added == 1
    assert table.upsert(rows(1, 9, v=8), ["id"], dry_run=True) == UpsertResult(1, 1)
    planned = table.dynamic_partition_overwrite(rows(1), dry_run=True)
    assert planned == RowsChanged(1, 1, 1, 0, 0, 0, 1, planned.bytes_added, planned.bytes_removed)
    # Rows and files are looked at, and not taken.
    assert table.append(rows(7, 8), dry_run=True).rows_added == 2
    more = rows(7).append_column("more", pa.array([1.5]))
    assert table.append(more, schema_mode="evolve", dry_run=True).rows_added == 1
    for wrong in (more, rows(7).select(["s"])):
        with pytest.raises(ValidationError, match="more|id"):
            table.append(wrong, dry_run=True)
    path = tmp_path / "v=5" / "metadata" / "file.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(rows(7, 8, v=5).slice(0, 1), path)
    assert table.add_files([str(path)], dry_run=True).rows_added == 1
    with pytest.raises(InvalidArgumentError, match="more than once"):
        table.add_files([str(path)] * 2, dry_run=True)
    with table.transaction() as tx:
        assert tx.append(rows(7, 8), dry_run=True).rows_added == 2
        assert tx.add_files([str(path)], dry_run=True).rows_added == 1
        assert tx.overwrite(rows(5), dry_run=True).rows_removed == 3
    assert files(tmp_path) == before
    assert table.refresh().current_snapshot().snapshot_id == snapshot
    assert (table.properties.get("schema.name-mapping.default"), table.schema().column_names) == (None, SCHEMA.names)


def test_an_overwrite_is_one_snapshot(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(1, 2, 3))
    done = table.overwrite(rows(10, 11), "id = 2", snapshot_properties={"why": "test"})
    assert (done.rows_removed, done.rows_added) == (1, 2)
    assert ids(table) == [1, 3, 10, 11]
    summary = table.current_snapshot().summary
    assert (summary["operation"], summary["why"], len(table.snapshots())) == ("overwrite", "test", 2)
    table.overwrite(rows(5))
    assert ids(table) == [5]
    branch = table.overwrite(rows(6), branch="audit")
    assert (branch.rows_removed, ids(table), table.scan(ref="audit").to_arrow()["id"].to_pylist()) == (1, [5], [6])


#: Filters of an overwrite, new rows as ids and values, and the first row that the filter does not match, if any.
HELD_TO_FILTER = {
    "inside": ("id > 5", [(6, 1), (7, None)], None),
    "the last one outside": ("id > 5", [(6, 1), (7, 2), (5, 3)], 2),
    "of another partition": ("v = 1", [(6, 1), (7, 2)], 1),
    "a null for a comparison": ("v = 1", [(6, None)], 0),
    "a null for an inequality in text": ("v != 1", [(6, 2), (7, None)], 1),
    "a null for IS NULL": ("v IS NULL", [(6, None)], None),
    "no null for IS NULL": ("v IS NULL", [(6, None), (7, 1)], 1),
    "by a name in another case": ("V = 1", [(6, 1), (7, 2)], 1),
    "two columns": ("v > id", [(1, 2), (2, 1)], 1),
    "no rows": ("v = 1", [], None),
}


@pytest.mark.parametrize("partition_by", [None, "v"])
@pytest.mark.parametrize(("row_filter", "given", "outside"), HELD_TO_FILTER.values(), ids=HELD_TO_FILTER)
def test_checked_rows_are_those_that_the_filter_matches(
    tmp_path: Path, partition_by: str | None, row_filter: str, given: list[tuple[int, int | None]], outside: int | None
) -> None:
    table = make(tmp_path, partition_by=partition_by).append(rows(1, 2, 3)).append(rows(4, v=None))
    new = pa.concat_tables([rows(), *(rows(at, v=v) for at, v in given)])
    before, there, read = table.current_snapshot(), files(tmp_path), table.scan().to_arrow()
    for dry_run in (True, False):
        options: dict[str, Any] = {"check_rows": True, "case_sensitive": False, "dry_run": dry_run}
        # A stream of batches: a row is counted from the first batch on.
        if outside is None:
            done = table.overwrite(new.to_reader(), row_filter, **options)
            assert done.rows_added == len(given)
        else:
            with pytest.raises(InvalidArgumentError) as caught:
                table.overwrite(new.to_reader(), row_filter, **options)
            assert f"row {outside} " in str(caught.value)
            assert row_filter.lower() in str(caught.value).lower()
    if outside is None:
        assert set(new["id"].to_pylist()) <= set(ids(table))
        assert given == [] or table.current_snapshot() != before
        return
    assert (table.refresh().current_snapshot(), files(tmp_path)) == (before, there)
    assert table.scan().to_arrow() == read
    # Without the check they are written.
    assert table.overwrite(new, row_filter, case_sensitive=False).rows_added == len(given)


def test_a_default_is_held_to_the_filter_of_checked_rows(tmp_path: Path) -> None:
    table = make(tmp_path, 3).append(rows(1))
    table.update_schema().add_column("kind", "string", default_value="a").commit()
    assert table.overwrite(rows(2), "kind = 'a'", check_rows=True).rows_removed == 1
    with pytest.raises(InvalidArgumentError, match="row 0 .*kind = 'b'"):
        table.overwrite(rows(3), "kind = 'b'", check_rows=True)
    with table.transaction() as tx, pytest.raises(InvalidArgumentError, match="row 1 "):
        tx.overwrite(rows(2, 3), "id = 2", check_rows=True)
    assert ids(table.refresh()) == [2]


@pytest.mark.parametrize("version", [2, 3])
def test_new_values_of_every_kind(tmp_path: Path, version: int) -> None:
    table = make(tmp_path, version).append(rows(1, 2, 3, 4))
    table.update({"v": pc.field("v") * 10, "s": lambda batch: pc.utf8_upper(batch["s"])}, "id > 2")
    assert table.scan("id > 2").to_arrow().sort_by("id").to_pydict() == {"id": [3, 4], "v": [20, 30], "s": ["S3", "S4"]}
    table.update(lambda batch: batch.set_column(1, "v", pc.cast(batch["id"], pa.int32())))
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [1, 2, 3, 4]
    table.update({"v": None, "s": "x"}, "id = 1")
    assert table.scan("v IS NULL").to_arrow().to_pylist() == [{"id": 1, "v": None, "s": "x"}]
    # All of them see the old values.
    table.update({"v": pc.field("id").cast(pa.int32()), "id": pc.field("id") + 100}, "id = 1")
    assert table.scan("id = 101").to_arrow()["v"].to_pylist() == [1]


def test_values_that_do_not_fit_change_nothing(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(1, 2))
    before, snapshot = files(tmp_path), table.current_snapshot().snapshot_id
    for assignments, error, message in [
        ({"w": 1}, InvalidArgumentError, "no column 'w'"),
        ({"id": None}, ValidationError, "id"),
        ({"v": lambda batch: pa.array([1])}, InvalidArgumentError, "expected an array of 2 values"),
        (lambda batch: batch.slice(1), InvalidArgumentError, "expected a record batch of 2 rows"),
        (lambda batch: batch.select(["id"]), InvalidArgumentError, "expected the columns id, v, s"),
        (lambda batch: 1 / 0, InvalidArgumentError, "division by zero"),
        ("v = 1", InvalidArgumentError, "expected new values by column"),
        ({"v": "text"}, Exception, "text"),
    ]:
        with pytest.raises(error, match=message):
            table.update(assignments)
    with pytest.raises(ice.IcefieldError, match="nope"):
        table.delete("nope = 1")
    for arguments in ({"mode": "fast"}, {"isolation": "none"}):
        with pytest.raises(InvalidArgumentError, match="expected"):
            table.delete("id = 1", **arguments)
    table.manage_snapshots().create_tag(snapshot, "tag").commit()
    with pytest.raises(InvalidArgumentError, match="tag is a tag"):
        table.delete("id = 1", branch="tag")
    assert files(tmp_path) == before
    assert table.refresh().current_snapshot().snapshot_id == snapshot


def test_upserts_change_only_rows_that_differ(tmp_path: Path) -> None:
    table = make(tmp_path, 3).append(rows(1, 2, 3))
    source = pa.concat_tables([rows(1), rows(3, v=7), rows(9)])
    assert table.upsert(source, "id") == UpsertResult(1, 1)
    found = {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}
    assert found == {1: 0, 2: 1, 3: 7, 9: 0}
    assert table.upsert(rows(1, 50, v=5), ["id"], when_not_matched_insert_all=False) == UpsertResult(1, 0)
    assert table.upsert(rows(1, 50, v=8), ["id"], when_matched_update_all=False) == UpsertResult(0, 1)
    assert {row["id"]: row["v"] for row in table.scan("id IN (1, 50)").to_arrow().to_pylist()} == {1: 5, 50: 9}
    # Columns that the source lacks stay.
    assert table.upsert(pa.table({"id": [2, 60], "v": pa.array([4, 4], pa.int32())}), ["id"]) == UpsertResult(1, 1)
    kept = table.scan("v = 4").to_arrow().sort_by("id").to_pydict()
    assert kept == {"id": [2, 60], "v": [4, 4], "s": ["s2", None]}


def test_keys_of_upserts(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(1, v=None)).append(rows(2))
    with pytest.raises(InvalidArgumentError, match="identifier"):
        table.upsert(rows(1))
    with pytest.raises(InvalidArgumentError, match="two rows of the source have the key s = s1, v = 0"):
        table.upsert(pa.concat_tables([rows(1), rows(1)]), ["s", "v"])
    with pytest.raises(ice.IcefieldError, match="nope"):
        table.upsert(rows(1), ["nope"])
    with pytest.raises(InvalidArgumentError, match="nothing to do"):
        table.upsert(rows(1), ["id"], when_matched_update_all=False, when_not_matched_insert_all=False)
    with pytest.raises(ValidationError, match="column of the key"):
        table.upsert(rows(1).select(["id"]), ["v"])
    # Null is a key as any other, and several columns are.
    assert table.upsert(rows(8, v=None), ["v"]) == UpsertResult(1, 0)
    assert ids(table, "v IS NULL") == [8]
    assert table.upsert(rows(8, v=None), ["v", "s"]) == UpsertResult(0, 0)
    with table.update_schema() as update:
        update.set_identifier_fields("id")
    assert table.upsert(rows(8, 9, v=3)) == UpsertResult(1, 1)
    # More keys than are looked for one by one.
    many = pa.table({"id": list(range(1000)), "v": pa.array([1] * 1000, pa.int32()), "s": ["m"] * 1000}, SCHEMA)
    assert table.upsert(many) == UpsertResult(3, 997)
    assert table.scan("s = 'm'").count() == 1000


def test_nan_keys_and_values_are_equal_to_themselves(tmp_path: Path) -> None:
    catalog = InMemoryCatalog("local", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    given = pa.table({"k": [float("nan"), 1.0, None], "l": [[1.0], [float("nan")], None], "m": [1, 2, 3]})
    table = catalog.create_table("a.t", schema=given.schema).append(given)
    assert table.upsert(given, ["k"]) == UpsertResult(0, 0)
    other = given.set_column(2, "m", pa.array([1, 2, 4]))
    assert table.upsert(other, ["k"]) == UpsertResult(1, 0)
    assert sorted(table.scan().to_arrow()["m"].to_pylist()) == [1, 2, 4]


def test_partitions_are_replaced(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=["v", "bucket(2, id)"])
    with pytest.raises(InvalidArgumentError, match="no partitions"):
        make(tmp_path / "flat").dynamic_partition_overwrite(rows(1))
    assert table.dynamic_partition_overwrite(rows(1, v=5)).rows_added == 1
    table.append(rows(1, 1, 1, v=None)).append(rows(1, 1, v=5))
    done = table.dynamic_partition_overwrite(rows(1, v=None))
    assert (done.rows_removed, done.rows_added) == (3, 1)
    assert table.current_snapshot().summary["replace-partitions"] == "true"
    assert sorted(table.scan().to_arrow()["v"].to_pylist(), key=str) == [5, 5, 6, None]
    snapshot = table.current_snapshot().snapshot_id
    assert table.dynamic_partition_overwrite(rows()).rows_added == 0
    assert table.current_snapshot().snapshot_id == snapshot


def test_files_of_older_specs_are_not_passed_over(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(1, 2, 3))
    with table.update_spec() as spec:
        spec.add_field("v", "identity").add_field("s", "truncate[1]")
    table.append(rows(4, 5, 6))
    before, snapshot = files(tmp_path), table.current_snapshot().snapshot_id
    with pytest.raises(ValidationException, match="older partition spec 0"):
        table.dynamic_partition_overwrite(rows(9))
    assert (files(tmp_path), table.refresh().current_snapshot().snapshot_id) == (before, snapshot)
    done = table.dynamic_partition_overwrite(rows(9), on_old_specs="rewrite")
    assert (done.rows_removed, done.rows_added, done.files_removed) == (2, 1, 1)
    assert ids(table) == [2, 3, 5, 6, 9]
    # What cannot have rows of the partitions is not in the way.
    assert table.dynamic_partition_overwrite(rows(30, v=77)).rows_removed == 0


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_concurrent_commits(tmp_path: Path, version: int, mode: Any) -> None:
    table = make(tmp_path, version, properties={"commit.retry.min-wait-ms": "1"}).append(rows(*range(10)))
    table.append(rows(*range(20, 30)))

    def beside(change: Any, other: Any) -> ice.Table:
        """Make a change of a table in which another one is committed meanwhile."""
        mine, theirs = table.catalog.load_table("a.t"), table.catalog.load_table("a.t")
        tx = mine.transaction()
        change(tx)
        other(theirs)
        tx.commit_transaction()
        return table.refresh()

    delete = lambda tx: tx.delete("id = 1", mode=mode)  # noqa: E731
    with pytest.raises(ValidationException, match="rows that match"):
        beside(delete, lambda other: other.append(rows(1)))
    table.refresh().delete("id = 1 AND v = 0", mode="copy-on-write")
    table.append(rows(1, v=1))
    # Rows that the filter cannot match, and those that a weaker isolation tolerates.
    beside(lambda tx: tx.delete("id = 2", mode=mode), lambda other: other.append(rows(1000)))
    loose = lambda tx: tx.delete("id = 1", mode=mode, isolation="snapshot")  # noqa: E731
    beside(loose, lambda other: other.append(rows(1, v=50)))
    assert table.scan("id = 1").to_arrow()["v"].to_pylist() == [50]
    # Two that touch the same file.
    orphans = files(tmp_path)
    with pytest.raises(ValidationException):
        beside(lambda tx: tx.update({"v": 9}, "id = 3", mode=mode), lambda other: other.delete("id = 4", mode=mode))
    assert ids(table.refresh(), "id = 4") == []
    assert table.scan("id = 3").to_arrow()["v"].to_pylist() == [3]
    left = files(tmp_path) - orphans
    named = {Path(path.removeprefix("file://")) for path in table.inspect.all_files()["file_path"].to_pylist()}
    assert left <= named, left - named


def test_changes_of_rows_in_a_transaction_see_each_other(tmp_path: Path) -> None:
    table = make(tmp_path, 3).append(rows(1, 2))
    with table.transaction() as tx:
        tx.append(rows(3, 4))
        assert tx.delete("id IN (1, 3)").rows_removed == 2
        assert tx.update({"s": "new"}, "id = 4").rows_added == 1
        assert tx.upsert(rows(4, 5, v=5), ["id"]) == UpsertResult(1, 1)
        tx.set_properties({"owner": "me"})
        assert ids(table) == [1, 2]
    assert ids(table) == [2, 4, 5]
    before = files(tmp_path)
    with pytest.raises(ZeroDivisionError), table.transaction() as tx:  # noqa: PT012
        tx.overwrite(rows(7))
        assert 1 / 0
    assert (files(tmp_path), ids(table)) == (before, [2, 4, 5])
    # Another commit before what the rows were found in: they may be others.
    other = table.catalog.load_table("a.t")
    tx = table.transaction()
    tx.append(rows(8))
    tx.delete("id = 8")
    other.append(rows(8))
    with pytest.raises(ValidationException, match="run the transaction again"):
        tx.commit_transaction()
    assert ids(table.refresh()) == [2, 4, 5, 8]


def test_sorted_files_stay_sorted_and_say_so(tmp_path: Path) -> None:
    table = make(tmp_path, sort_by=["id desc"]).append(rows(*range(20)))
    table.delete("id = 7", mode="copy-on-write")
    [file] = table.inspect.files().to_pylist()
    assert file["sort_order_id"] == 1
    assert table.scan().to_arrow()["id"].to_pylist() == [at for at in range(19, -1, -1) if at != 7]


def test_rewritten_files_keep_partition_and_spec(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=["v"]).append(rows(1, 1, 1, v=None)).append(rows(2, 2, 2, v=None))
    with table.update_spec() as spec:
        spec.remove_field("v")
        spec.add_field("s", "identity")
    table.append(rows(3, v=4))
    table.delete("id = 1 AND s = 's9' OR id = 3", mode="copy-on-write")
    table.overwrite(rows(2, v=None), "id = 2 AND s = 's2'", mode="copy-on-write")
    table.update({"v": 6}, "id = 1 AND s = 's1'")
    found = sorted((file["spec_id"], file["record_count"]) for file in table.inspect.files().to_pylist())
    assert found == [(1, 1), (1, 3)]


def test_tables_without_a_catalog_are_read_only(tmp_path: Path) -> None:
    table = ice.Table.from_metadata(make(tmp_path).append(rows(1)).metadata_location)
    with pytest.raises(UnsupportedFeatureError, match="read-only"):
        table.delete("id = 1")


def test_upserts_of_structs_with_unknown_fields(tmp_path: Path) -> None:
    """Such fields are in no file; they were missing in the rows that an upsert writes."""
    inner = pa.struct([("a", pa.int32()), ("u", pa.null())])
    schema = pa.schema([("id", pa.int64()), ("x", inner), ("w", pa.null())])
    given = pa.table([pa.array([1, 2]), pa.array([{"a": 1, "u": None}, None], inner), pa.nulls(2)], schema)
    catalog = InMemoryCatalog("local", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", schema=schema, properties={"format-version": "3"}).append(given)
    other = pa.table(
        [pa.array([2, 3]), pa.array([{"a": 5, "u": None}, {"a": 6, "u": None}], inner), pa.nulls(2)], schema
    )
    assert table.upsert(other, "id") == UpsertResult(1, 1)
    assert table.upsert(other, "id") == UpsertResult(0, 0)
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [row["x"]["a"] for row in found] == [1, 5, 6]


def test_columns_that_the_table_lacks_are_added_in_the_same_commit(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=["v"]).append(rows(1, 2))
    more = rows(2, 3, v=1).append_column("new", pa.array(["a", "b"]))

    def changed(change: Any, snapshots: int) -> None:
        with pytest.raises(ValidationError, match="new"):
            change()
        with pytest.raises(InvalidArgumentError, match="schema_mode must be"):
            change(schema_mode="loose")
        schemas = len(table.refresh().metadata.schemas)
        change(schema_mode="evolve", dry_run=True)
        assert (len(table.refresh().metadata.schemas), len(table.snapshots())) == (schemas, snapshots)
        change(schema_mode="evolve")
        assert (table.schema().column_names, len(table.snapshots())) == (["id", "v", "s", "new"], snapshots + 1)
        with table.update_schema() as update:
            update.delete_column("new")

    changed(lambda **options: table.upsert(more, "id", **options), 1)
    changed(lambda **options: table.dynamic_partition_overwrite(more, **options), 2)
    changed(lambda **options: table.overwrite(more, "id = 2", **options), 3)
    assert ids(table) == [1, 2, 3, 3]
    for change in (
        lambda: table.upsert(more.select(["id"]), "id", schema_mode="strict"),
        lambda: table.overwrite(more.select(["id"]), schema_mode="strict"),
        lambda: table.dynamic_partition_overwrite(more.select(["id", "v"]), schema_mode="strict"),
    ):
        with pytest.raises(ValidationError, match="s: missing in the data"):
            change()
    # In a transaction the change of the schema is undone with the change that needed it.
    with pytest.raises(ValidationException), table.transaction() as tx:  # noqa: PT012
        tx.upsert(more.set_column(1, "v", pa.array([1, 1], pa.int32())), "id", schema_mode="evolve")
        table.catalog.load_table("a.t").append(rows(3, v=1))
    assert table.refresh().schema().column_names == ["id", "v", "s"]
