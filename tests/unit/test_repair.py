"""Repairs of damaged tables: what is certain is corrected by a new snapshot, and the rest is left with a reason."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from test_fsck import CASES, ROWS, World, data_file, entry, fields_of, listed, set_to, vector, vector_file

import icefield as ice
from icefield.errors import InvalidArgumentError
from icefield.manifests import DataFile, DeleteFile
from icefield.table.maintenance.repairs import RepairReport

#: Damage that is repaired: manifests and lists say it wrongly, and the files say what is right.
REPAIRED = {
    "summary-total", "manifest-files-count", "manifest-rows-count", "manifest-length", "manifest-partitions",
    "entry-sort-order", "entry-split-offsets", "value-count", "null-count", "nan-count", "column-sizes",
    "bound-unreadable", "bounds-order", "vector-fields", "vector-rows", "file-null-count", "file-lower-bound",
    "file-upper-bound", "file-split-offsets", "file-column-size", "vector-blob", "vector-cardinality",
    "rows-nan-count",
}  # fmt: skip


@pytest.fixture
def world(tmp_path: Path) -> World:
    catalog = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return World(catalog, tmp_path)


def registered(world: World, table: ice.Table) -> ice.Table:
    """Open a table that was read from a file by the catalog, which can commit to it."""
    if table.catalog is not None and hasattr(table.catalog, "name"):
        return table
    world.tables += 1
    return world.catalog.register_table(f"db.r{world.tables}", table.metadata_location)


def rows(table: ice.Table) -> list[str]:
    return sorted(map(repr, table.scan().to_arrow().to_pylist()))


def checks(report: RepairReport) -> tuple[set[str], set[str]]:
    return {one.check for one in report.corrections}, {one.finding.check for one in report.left}


@pytest.mark.filterwarnings("ignore:snapshots expired, but some files could not be read")
@pytest.mark.parametrize("case", CASES, ids=[f"{one[2]}-{one[3]}" for one in CASES])
def test_damage_is_repaired_or_left_with_a_reason(world: World, case: Any) -> None:
    damage, level, check, field = case
    table = registered(world, damage(world))
    deep = "rows" if level == "rows" else "footers"
    location, files = table.metadata_location, sorted(world.folder.rglob("*"))
    would = table.maintenance.repair(deep, dry_run=True)
    assert (table.refresh().metadata_location, sorted(world.folder.rglob("*"))) == (location, files)
    done = table.maintenance.repair(deep)
    corrected, left = checks(done)
    assert checks(would) == (corrected, left)
    assert (would.corrections, would.rewritten_manifests) == (done.corrections, done.rewritten_manifests)
    assert (done.snapshot_id is None) == (not done.corrections)
    if check not in REPAIRED:
        # Files of statistics and of the log are not of a snapshot.
        seen = check in left or check.startswith(("statistics-", "metadata-log"))
        assert seen, done
        assert all(one.reason for one in done.left)
        return
    # That it has more rows than its file comes from its cardinality.
    check = "vector-cardinality" if check == "vector-rows" else check
    assert check in corrected, done
    found = [one for one in done.corrections if one.check == check]
    assert any(one.field.endswith(field) for one in found), done
    assert done.left == [], done
    # Snapshots before the repair have the damage until they expire.
    table.refresh().maintenance.expire_snapshots().by_ids(
        [one.snapshot_id for one in table.snapshots() if one.snapshot_id != done.snapshot_id]
    ).commit()
    report = table.refresh().fsck("rows")
    assert report.findings == [], report
    if "vector" not in check:
        assert len(rows(table)) > 0


def test_every_repaired_kind_is_damaged_somewhere() -> None:
    assert {check for _, _, check, _ in CASES} >= REPAIRED


def test_a_sound_table_is_left_as_it_is(world: World) -> None:
    table = world.sound()
    report = table.maintenance.repair("rows")
    assert (report.corrections, report.left, report.snapshot_id) == ([], [], None)


def test_rows_and_lineage_stay(world: World) -> None:
    """Corrected entries keep sequence numbers, so that deletes apply, and row ids."""
    source = world.empty()
    source.append(ROWS)
    fields = fields_of(source.inspect.files().to_pylist()[0])
    fields["lower_bounds"][1] = b"123"
    table = world.empty()
    table.update_snapshot().fast_append().append_data_file(DataFile(**fields)).commit()
    source.delete("id = 6")
    deletes = fields_of(source.inspect.delete_files().to_pylist()[0])
    table.update_snapshot().row_delta().add_deletes(DeleteFile(content="position_deletes", **deletes)).commit()
    lineage = ["id", "_row_id", "_last_updated_sequence_number"]
    before = table.scan(selected_fields=lineage).to_arrow().to_pylist()
    assert [row["id"] for row in before] == [5, 7, 8]
    done = table.maintenance.repair(snapshot_properties={"why": "test"})
    assert checks(done) == ({"bound-unreadable"}, set())
    assert table.refresh().scan(selected_fields=lineage).to_arrow().to_pylist() == before
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.summary.operation.value, snapshot.summary["why"]) == ("replace", "test")


def test_a_row_count_is_lowered_and_in_version_3_never_raised(world: World) -> None:
    """Rows that were not counted have the row ids of the next file."""
    for count, version, repaired in [(9, "3", True), (3, "3", False), (3, "2", True), (9, "1", True)]:
        world.tables += 1
        tables = [
            world.catalog.create_table(f"db.v{world.tables}_{n}", ROWS.schema, properties={"format-version": version})
            for n in (1, 2)
        ]
        source, table = tables
        source.append(ROWS)
        fields = fields_of(source.inspect.files().to_pylist()[0])
        fields.update(record_count=count, value_counts={})
        table.update_snapshot().fast_append().append_data_file(DataFile(**fields)).commit()
        done = table.maintenance.repair()
        assert ("file-record-count" in checks(done)[0]) == repaired, done
        assert (done.left == []) == repaired
        if repaired:
            snapshot = table.refresh().current_snapshot()
            assert snapshot is not None
            assert snapshot.summary is not None
            assert snapshot.summary["total-records"] == "4"
            assert table.inspect.files()["record_count"].to_pylist() == [4]
        else:
            assert "row ids" in done.left[0].reason


def test_missing_files_are_removed_by_consent_only(world: World) -> None:
    table = world.sound()
    kept = rows(table)
    data_file(table).unlink()
    done = table.maintenance.repair(remove_missing_deletes=True)
    assert (done.snapshot_id, [one.finding.check for one in done.left]) == (None, ["file-missing"])
    done = table.maintenance.repair(remove_missing_files=True)
    assert (done.removed_files, done.removed_rows, done.removed_delete_files) == (1, 4, 0)
    assert len(rows(table.refresh())) < len(kept)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary.operation.value == "delete"
    assert (snapshot.summary["deleted-data-files"], snapshot.summary["total-data-files"]) == ("1", "1")


def test_missing_deletes_are_removed_by_consent_only(world: World) -> None:
    table = world.sound()
    vector_file(table).unlink()
    done = table.maintenance.repair(remove_missing_files=True)
    assert (done.snapshot_id, [one.finding.check for one in done.left]) == (None, ["file-missing"])
    done = table.maintenance.repair(remove_missing_deletes=True)
    assert (done.removed_files, done.removed_rows, done.removed_delete_files) == (0, 0, 1)
    assert len(rows(table.refresh())) == 8
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert (snapshot.summary.operation.value, snapshot.summary["removed-dvs"]) == ("overwrite", "1")
    assert table.fsck("manifests").ok


def test_a_file_that_was_cut_keeps_its_wrong_size(world: World) -> None:
    """Its size alone would make it look sound."""
    for form in ("parquet", "orc", "avro"):
        world.tables += 1
        table = world.catalog.create_table(
            f"db.c{world.tables}", ROWS.schema, properties={"write.format.default": form}
        )
        table.append(pa.concat_tables([ROWS] * 500))
        path = data_file(table)
        path.write_bytes(path.read_bytes()[:-200])
        done = table.maintenance.repair()
        assert (done.corrections, [one.finding.check for one in done.left]) == ([], ["file-size"]), form


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_a_wrong_size_is_corrected_where_all_rows_can_be_read(world: World, form: str, version: str) -> None:
    properties = {"format-version": version, "write.format.default": form}
    source = world.catalog.create_table("db.a", ROWS.schema, properties=properties)
    source.append(ROWS)
    fields = fields_of(source.inspect.files().to_pylist()[0])
    right = fields["file_size_in_bytes"]
    fields["file_size_in_bytes"] = right + 100
    table = world.catalog.create_table("db.b", ROWS.schema, properties=properties)
    table.update_snapshot().fast_append().append_data_file(DataFile(**fields)).commit()
    done = table.maintenance.repair()
    assert checks(done) == ({"file-size"}, set()), done
    assert [(one.before, one.after) for one in done.corrections] == [(str(right + 100), str(right))]
    assert table.refresh().fsck("rows").ok or len(table.snapshots()) > 1
    assert rows(table) == rows(source)


def test_a_length_and_counts_that_differ_may_be_of_another_manifest(world: World) -> None:
    change = listed(lambda f: f.update(manifest_length=f["manifest_length"] + 1, added_files_count=7))
    done = change(world).maintenance.repair()
    assert (done.corrections, checks(done)[1]) == ([], {"manifest-length", "manifest-files-count", "summary-total"})
    assert any("another manifest" in one.reason for one in done.left)


def test_a_branch_is_repaired_and_main_is_left(world: World) -> None:
    table = entry(set_to("sort_order_id", 3))(world)
    table.manage_snapshots().create_branch(table.metadata.current_snapshot_id, "audit").commit()
    main = table.refresh().current_snapshot()
    done = table.maintenance.repair(branch="audit")
    assert len(done.corrections) == 1
    assert table.refresh().current_snapshot() == main
    head = table.snapshot_by_name("audit")
    assert head is not None
    assert head.snapshot_id == done.snapshot_id
    with pytest.raises(InvalidArgumentError, match="no branch 'gone'"):
        table.maintenance.repair(branch="gone")


def test_a_commit_in_between_is_kept(world: World) -> None:
    """The repair is made again on top of it, and repairs it too."""
    table = entry(set_to("sort_order_id", 3))(world)
    other = world.catalog.load_table(table.name())
    source = world.empty()
    source.append(ROWS)
    fields = fields_of(source.inspect.files().to_pylist()[0])
    fields["split_offsets"] = [5]
    other.append(ROWS)
    other.update_snapshot().fast_append().append_data_file(DataFile(**fields)).commit()
    done = table.maintenance.repair()
    assert checks(done) == ({"entry-sort-order", "file-split-offsets"}, set())
    assert len(rows(table.refresh())) == 12
    assert table.maintenance.repair(dry_run=True).corrections == []


def test_a_repair_with_a_key_is_made_once(world: World) -> None:
    table = entry(set_to("sort_order_id", 3))(world)
    done = [table.maintenance.repair(idempotency_key="night") for _ in range(2)]
    assert [one.corrected for one in done] == [1, 0]


CHANGES = [
    ("sort_order_id", lambda _: 9),
    ("split_offsets", lambda _: [77, 5]),
    ("split_offsets", lambda _: [5]),
    ("value_counts", lambda old: {**old, 1: 99}),
    ("null_value_counts", lambda old: {**old, 3: 77}),
    ("nan_value_counts", lambda old: {**old, 4: 3}),
    ("column_sizes", lambda old: {**old, 1: 1 << 50}),
    ("lower_bounds", lambda old: {**old, 1: b"1"}),
    ("lower_bounds", lambda old: {**old, 4: b"\0\0\0\0\0\0\xf0\x7f"}),
    ("upper_bounds", lambda old: {**old, 3: b"A"}),
    ("record_count", lambda old: old + 5),
    ("file_size_in_bytes", lambda old: old - 1),
]


@pytest.mark.parametrize("seed", range(12))
def test_several_faults_at_once(world: World, seed: int) -> None:
    """Formats, versions and partitions drawn at random; after the repair and an expiry, all is sound."""
    rng = random.Random(seed)
    form, version = rng.choice(["parquet", "orc", "avro"]), rng.choice("123")
    properties = {"format-version": version, "write.format.default": form}
    spec = rng.choice([None, ["bucket(4, id)"], ["day"]])
    drawn = pa.concat_tables([ROWS] * 3)
    source, table = (
        world.catalog.create_table(f"db.{name}", ROWS.schema, partition_spec=spec, properties=properties)
        for name in ("source", "table")
    )
    for _ in range(3):
        source.append(drawn.slice(rng.randrange(4)))
    append = table.update_snapshot().fast_append()
    damaged = 0
    for row in source.inspect.files().to_pylist():
        fields = fields_of(row)
        for name, change in rng.sample(CHANGES, rng.randrange(4)):
            if name in fields and fields[name] not in ({}, None):
                fields[name] = change(fields[name])
                damaged += 1
        append.append_data_file(DataFile(**fields))
    append.commit()
    done = table.maintenance.repair("rows")
    assert done.left == [], done
    assert damaged == 0 or done.corrected > 0
    if done.snapshot_id is not None:
        before = [one.snapshot_id for one in table.snapshots() if one.snapshot_id != done.snapshot_id]
        table.maintenance.expire_snapshots().by_ids(before).commit()
    assert table.refresh().fsck("rows").findings == []
    assert rows(table) == rows(source)


def test_the_display(world: World) -> None:
    done = vector(lambda f: f.update(record_count=2))(world).maintenance.repair(dry_run=True)
    assert repr(done).startswith("RepairReport(1 correction, 0 findings left, 1 manifest)\n  vector-cardinality: ")
    assert repr(done).endswith("record_count: 2 -> 1")
    assert json.loads(done.to_json())["corrections"][0]["after"] == "1"
    with pytest.raises(InvalidArgumentError, match="level: expected footers or rows"):
        world.sound().maintenance.repair("files")  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
def test_position_delete_files_are_repaired_too(world: World, form: str) -> None:
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read", "write.delete.format.default": form}
    source, table = (world.catalog.create_table(f"db.{n}", ROWS.schema, properties=properties) for n in ("a", "b"))
    source.append(ROWS)
    data = DataFile(**fields_of(source.inspect.data_files().to_pylist()[0]))
    table.update_snapshot().fast_append().append_data_file(data).commit()
    source.delete("id = 6")
    fields = fields_of(source.inspect.delete_files().to_pylist()[0])
    fields.update(record_count=3, file_size_in_bytes=fields["file_size_in_bytes"] + 7)
    table.update_snapshot().row_delta().add_deletes(DeleteFile(content="position_deletes", **fields)).commit()
    done = table.maintenance.repair("rows")
    assert "file-size" in checks(done)[0], done
    assert done.left == [], done
    assert rows(table.refresh()) == rows(source)
    assert table.inspect.delete_files()["record_count"].to_pylist() == [1]
