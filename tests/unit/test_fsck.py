"""Damage to a table, kind by kind: each is found and named, and a sound table has no findings."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.manifests import DataFile, DeleteFile, ManifestFile
from icefield.table.maintenance.checks import CheckLevel

ROWS = pa.table(
    {
        "id": pa.array([5, 6, 7, 8], pa.int64()),
        "day": pa.array([19_000] * 4, pa.int32()).cast(pa.date32()),
        "name": ["e", "f", None, "g"],
        "price": [1.5, float("nan"), None, 9.0],
    }
)
MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
LEVELS: tuple[CheckLevel, ...] = ("metadata", "manifests", "files", "footers", "rows")
Fields = dict[str, Any]


def local(path: str) -> Path:
    return Path(path.removeprefix("file://"))


@dataclass
class World:
    """A table of two appends with a deletion vector, and empty ones with its schema to which its files are added."""

    catalog: ice.Catalog
    folder: Path
    tables: int = 0

    def empty(self) -> ice.Table:
        self.tables += 1
        return self.catalog.create_table(
            f"db.t{self.tables}",
            ROWS.schema,
            partition_spec=["day", "bucket(1, id)"],
            properties={"format-version": "3", "write.delete.mode": "merge-on-read"},
        )

    def sound(self) -> ice.Table:
        table = self.empty()
        table.append(ROWS)
        table.delete("id = 6")
        table.append(ROWS)
        table.maintenance.compute_table_stats(["id"])
        return table

    def opened(self, document: Fields) -> ice.Table:
        """Open a table by metadata that no commit could make."""
        self.tables += 1
        path = self.folder / f"{self.tables}.metadata.json"
        path.write_text(json.dumps(document))
        return ice.Table.from_metadata(str(path))


@pytest.fixture
def world(tmp_path: Path) -> World:
    catalog = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    return World(catalog, tmp_path)


def fields_of(row: Fields) -> Fields:
    """Return a row of the metadata table of files as the parameters of a file."""
    given = {name: value for name, value in row.items() if value is not None and name != "readable_metrics"}
    for name in MAPS:
        given[name] = dict(given.get(name) or {})
    return {name: value for name, value in given.items() if name not in {"content", "first_row_id"}}


def metadata(change: Callable[[Fields], object]) -> Callable[[World], ice.Table]:
    def damaged(world: World) -> ice.Table:
        document = json.loads(world.sound().metadata_json())
        change(document)
        return world.opened(document)

    return damaged


def disk(change: Callable[[ice.Table], object]) -> Callable[[World], ice.Table]:
    def damaged(world: World) -> ice.Table:
        table = world.sound()
        change(table)
        return table

    return damaged


def entry(change: Callable[[Fields], object]) -> Callable[[World], ice.Table]:
    """Add a data file whose description is wrong."""

    def damaged(world: World) -> ice.Table:
        source = world.empty()
        source.append(ROWS)
        fields = fields_of(source.inspect.files().to_pylist()[0])
        change(fields)
        table = world.empty()
        table.update_snapshot().fast_append().append_data_file(DataFile(**fields)).commit()
        return table

    return damaged


def vector(change: Callable[[Fields], object]) -> Callable[[World], ice.Table]:
    """Add a deletion vector whose description is wrong."""

    def damaged(world: World) -> ice.Table:
        source = world.empty()
        source.append(ROWS)
        table = world.empty()
        data = fields_of(source.inspect.files().to_pylist()[0])
        table.update_snapshot().fast_append().append_data_file(DataFile(**data)).commit()
        source.delete("id = 6")
        fields = fields_of(source.inspect.delete_files().to_pylist()[0])
        change(fields)
        deletes = DeleteFile(**{"content": "position_deletes", **fields})
        table.update_snapshot().row_delta().add_deletes(deletes).commit()
        return table

    return damaged


def listed(change: Callable[[Fields], object]) -> Callable[[World], ice.Table]:
    """Add a manifest that its list describes wrongly."""

    def damaged(world: World) -> ice.Table:
        source = world.empty()
        source.append(ROWS)
        table = world.empty()
        with table.new_manifest_writer() as writer:
            writer.add(DataFile(**fields_of(source.inspect.files().to_pylist()[0])))
        written = writer.to_manifest_file()
        counts = [f"{status}_{what}_count" for status in ("added", "existing", "deleted") for what in ("files", "rows")]
        names = ["manifest_path", "manifest_length", "partition_spec_id", "partitions", *counts]
        fields = {name: getattr(written, name) for name in names}
        change(fields)
        table.update_snapshot().fast_append().append_manifest(ManifestFile(**fields)).commit()
        return table

    return damaged


def older_vector(world: World) -> ice.Table:
    """Add a deletion vector before its data file, so that it does not apply."""
    source = world.empty()
    source.append(ROWS)
    data = DataFile(**fields_of(source.inspect.files().to_pylist()[0]))
    source.delete("id = 6")
    fields = fields_of(source.inspect.delete_files().to_pylist()[0])
    table = world.empty()
    table.update_snapshot().row_delta().add_deletes(DeleteFile(content="position_deletes", **fields)).commit()
    table.update_snapshot().fast_append().append_data_file(data).commit()
    return table


def partitioned_by_text(world: World) -> ice.Table:
    """Add a file of one region to the partition of another."""
    tables = []
    for _ in range(2):
        world.tables += 1
        schema = pa.schema({"region": pa.string(), "id": pa.int64()})
        tables.append(world.catalog.create_table(f"db.t{world.tables}", schema, partition_spec=["region"]))
    source, table = tables
    source.append(pa.table({"region": ["US", "US"], "id": [1, 2]}))
    fields = fields_of(source.inspect.files().to_pylist()[0])
    fields["partition"] = {"region": "EU"}
    table.update_snapshot().fast_append().append_data_file(DataFile(**fields)).commit()
    return table


def deleted_rows(equality: bool) -> Callable[[World], ice.Table]:
    """Damage the rows of a position or an equality delete file of version 2; its footer is sound."""

    def damaged(world: World) -> ice.Table:
        table = sound_deletes(world)
        rows = table.inspect.delete_files().to_pylist()
        (path,) = (local(row["file_path"]) for row in rows if bool(row["equality_ids"]) == equality)
        overwrite(path, 4, b"\xff" * 40)
        return table

    return damaged


def sound_deletes(world: World) -> ice.Table:
    world.tables += 1
    properties = {"format-version": "2", "write.delete.mode": "merge-on-read"}
    table = world.catalog.create_table(f"db.t{world.tables}", ROWS.schema, properties=properties)
    table.append(ROWS)
    table.delete("id = 6")
    with table.upsert_stream("id") as stream:
        stream.delete(ROWS.slice(2, 1))
    return table


def data_file(table: ice.Table) -> Path:
    return local(table.inspect.data_files()["file_path"][0].as_py())


def manifest(table: ice.Table) -> Path:
    return local(table.inspect.manifests()["path"][0].as_py())


def manifest_list(table: ice.Table) -> Path:
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    return local(snapshot.manifest_list)


def statistics(table: ice.Table) -> Path:
    return local(json.loads(table.metadata_json())["statistics"][0]["statistics-path"])


def cut(path: Path, count: int) -> None:
    path.write_bytes(path.read_bytes()[:-count])


def overwrite(path: Path, at: int, data: bytes) -> None:
    whole = bytearray(path.read_bytes())
    at = at if at >= 0 else len(whole) + at
    whole[at : at + len(data)] = data
    path.write_bytes(bytes(whole))


def damage_vector(table: ice.Table) -> None:
    row = table.inspect.delete_files().to_pylist()[0]
    overwrite(local(row["file_path"]), row["content_offset"] + row["content_size_in_bytes"] - 6, b"\xff\xff")


def set_to(*path: Any) -> Callable[[Fields], None]:
    """Set a field of a nested document."""

    def change(document: Any) -> None:
        *above, last, value = path
        for step in above:
            document = document[step]
        document[last] = value

    return change


#: The damage, the level that finds it, the check, and the end of the field.
CASES: list[tuple[Callable[[World], ice.Table], CheckLevel, str, str]] = [
    (metadata(set_to("snapshots", 0, "schema-id", 9)), "metadata", "snapshot-schema", "schema-id"),
    (metadata(set_to("snapshots", 1, "sequence-number", 1)), "metadata", "snapshot-sequence-number", "sequence-number"),
    (
        metadata(lambda d: set_to("snapshots", 0, "parent-snapshot-id", d["snapshots"][2]["snapshot-id"])(d)),
        "metadata",
        "snapshot-parent",
        "parent-snapshot-id",
    ),
    (metadata(set_to("snapshots", 2, "first-row-id", 0)), "metadata", "snapshot-row-ids", "first-row-id"),
    (metadata(lambda d: d["snapshot-log"].pop()), "metadata", "snapshot-log", "snapshot-log"),
    (metadata(set_to("statistics", 0, "snapshot-id", 7)), "metadata", "statistics-snapshot", "statistics"),
    (metadata(lambda d: d["statistics"].append(d["statistics"][0])), "metadata", "statistics-twice", "statistics"),
    (metadata(set_to("snapshots", 2, "summary", "total-records", "99")), "manifests", "summary-total", "total-records"),
    (disk(lambda t: manifest_list(t).unlink()), "manifests", "manifest-list-missing", ""),
    (disk(lambda t: cut(manifest_list(t), 20)), "manifests", "manifest-list-unreadable", ""),
    (disk(lambda t: manifest(t).unlink()), "manifests", "manifest-missing", ""),
    (disk(lambda t: cut(manifest(t), 20)), "manifests", "manifest-unreadable", ""),
    (listed(lambda f: f.update(added_files_count=7)), "manifests", "manifest-files-count", "added_files_count"),
    (listed(lambda f: f.update(added_rows_count=7)), "manifests", "manifest-rows-count", "added_rows_count"),
    (
        listed(lambda f: f.update(manifest_length=f["manifest_length"] + 1)),
        "manifests",
        "manifest-length",
        "manifest_length",
    ),
    (
        listed(
            lambda f: f.update(
                partitions=[{**dict(f["partitions"][0]), "upper_bound": struct.pack("<i", 18_000)}, f["partitions"][1]]
            )
        ),
        "manifests",
        "manifest-partitions",
        "partitions.day",
    ),
    (entry(set_to("sort_order_id", 3)), "manifests", "entry-sort-order", "sort_order_id"),
    (entry(set_to("split_offsets", [40, 4])), "manifests", "entry-split-offsets", "split_offsets"),
    (entry(set_to("value_counts", 1, 2)), "manifests", "value-count", "value_counts[1: id]"),
    (entry(set_to("null_value_counts", 3, 9)), "manifests", "null-count", "null_value_counts[3: name]"),
    (entry(set_to("nan_value_counts", 4, 9)), "manifests", "nan-count", "nan_value_counts[4: price]"),
    (entry(set_to("column_sizes", 1, 1 << 40)), "manifests", "column-sizes", "column_sizes"),
    (entry(set_to("lower_bounds", 1, b"123")), "manifests", "bound-unreadable", "lower_bounds[1: id]"),
    (entry(set_to("lower_bounds", 1, struct.pack("<q", 99))), "manifests", "bounds-order", "lower_bounds[1: id]"),
    (
        entry(lambda f: f["partition"].update(day=ROWS["day"][0].as_py().replace(day=2))),
        "manifests",
        "entry-partition",
        "partition.day",
    ),
    (vector(lambda f: f.update(content_offset=1 << 40)), "manifests", "vector-fields", "content_offset"),
    (vector(lambda f: f.update(referenced_data_file="/gone")), "manifests", "vector-dangling", "referenced_data_file"),
    (vector(lambda f: f.update(record_count=50)), "manifests", "vector-rows", "record_count"),
    (older_vector, "manifests", "vector-sequence-number", "sequence_number"),
    (
        vector(lambda f: f["partition"].update(day=ROWS["day"][0].as_py().replace(day=2))),
        "manifests",
        "vector-partition",
        "partition",
    ),
    (partitioned_by_text, "manifests", "entry-partition", "partition.region"),
    (deleted_rows(equality=False), "rows", "file-unreadable", ""),
    (deleted_rows(equality=True), "rows", "file-unreadable", ""),
    (disk(lambda t: data_file(t).unlink()), "files", "file-missing", ""),
    (disk(lambda t: cut(data_file(t), 1)), "files", "file-size", "file_size_in_bytes"),
    (disk(lambda t: statistics(t).unlink()), "files", "statistics-missing", ""),
    (
        disk(lambda t: local(t.metadata_log()[0].metadata_file).unlink()),
        "files",
        "metadata-log-missing",
        "metadata-log",
    ),
    (metadata(set_to("statistics", 0, "file-size-in-bytes", 5)), "files", "statistics-size", "file-size-in-bytes"),
    (
        metadata(set_to("statistics", 0, "file-footer-size-in-bytes", 5)),
        "footers",
        "statistics-footer",
        "file-footer-size-in-bytes",
    ),
    (
        metadata(set_to("statistics", 0, "blob-metadata", 0, "fields", [2])),
        "footers",
        "statistics-blobs",
        "blob-metadata",
    ),
    (disk(lambda t: overwrite(statistics(t), -3, b"xyz")), "footers", "statistics-unreadable", ""),
    (entry(set_to("record_count", 3)), "footers", "file-record-count", "record_count"),
    (disk(lambda t: overwrite(data_file(t), -3, b"xyz")), "footers", "file-unreadable", ""),
    (entry(set_to("null_value_counts", 3, 2)), "footers", "file-null-count", "null_value_counts[3: name]"),
    (entry(set_to("lower_bounds", 1, struct.pack("<q", 6))), "footers", "file-lower-bound", "lower_bounds[1: id]"),
    (entry(set_to("upper_bounds", 3, b"e")), "footers", "file-upper-bound", "upper_bounds[3: name]"),
    (entry(set_to("split_offsets", [5])), "footers", "file-split-offsets", "split_offsets"),
    (entry(set_to("column_sizes", 1, 1)), "footers", "file-column-size", "column_sizes[1: id]"),
    (vector(lambda f: f.update(content_offset=5)), "footers", "vector-blob", "content_offset"),
    (vector(lambda f: f.update(record_count=2)), "footers", "vector-cardinality", "record_count"),
    (disk(damage_vector), "rows", "vector-unreadable", ""),
    (entry(set_to("nan_value_counts", 4, 0)), "rows", "rows-nan-count", "nan_value_counts[4: price]"),
    (entry(set_to("upper_bounds", 4, struct.pack("<d", 7))), "footers", "file-upper-bound", "upper_bounds[4: price]"),
    (entry(lambda f: f["partition"].update(id_bucket=1)), "rows", "rows-partition", "partition.id_bucket"),
]


@pytest.mark.parametrize(("damage", "level", "check", "field"), CASES, ids=[f"{one[2]}-{one[3]}" for one in CASES])
def test_damage_is_found_and_named(
    world: World, damage: Callable[[World], ice.Table], level: CheckLevel, check: str, field: str
) -> None:
    table = damage(world)
    report = table.fsck(level)
    assert any(one.check == check and one.field.endswith(field) for one in report.findings), report
    assert f"{check}: " in str(report)
    less = LEVELS[: LEVELS.index(level)]
    assert not any(one.check == check for one in (table.fsck(less[-1]).findings if less else [])), "a lower level does"


def test_there_are_forty_kinds() -> None:
    assert len({check for _, _, check, _ in CASES}) >= 40


def test_a_sound_table_has_no_findings(world: World) -> None:
    report = world.sound().fsck("rows")
    assert report.findings == [], report
    assert (report.snapshots, report.manifests, report.files, report.rows) == (3, 3, 3, 8)
    assert json.loads(report.to_json())["rows"] == 8


def test_rows_of_delete_files_are_read(world: World) -> None:
    report = sound_deletes(world).fsck("rows")
    assert report.findings == [], report
    assert (report.files, report.rows) == (3, 4 + 1 + 1)


def metadata_file_before(table: ice.Table) -> Path:
    return local(table.metadata_log()[0].metadata_file)


def vector_file(table: ice.Table) -> Path:
    return local(table.inspect.delete_files()["file_path"][0].as_py())


@pytest.mark.parametrize("level", LEVELS[1:])
@pytest.mark.parametrize(
    ("place", "check", "first_level"),
    [
        (manifest_list, "manifest-list-missing", "manifests"),
        (manifest, "manifest-missing", "manifests"),
        (data_file, "file-missing", "files"),
        (vector_file, "file-missing", "files"),
        (statistics, "statistics-missing", "files"),
        (metadata_file_before, "metadata-log-missing", "files"),
    ],
)
def test_a_directory_in_place_of_a_file_is_a_missing_file(
    world: World, place: Callable[[ice.Table], Path], check: str, first_level: CheckLevel, level: CheckLevel
) -> None:
    """Reading one is an error of the file system, which ended the check as if the store did not answer."""
    table = world.sound()
    at = place(table)
    at.unlink()
    at.mkdir()
    found = [one for one in table.fsck(level).findings if one.check == check]
    assert len(found) == (LEVELS.index(level) >= LEVELS.index(first_level)), found
    assert all((local(one.file), one.found) == (at, "a directory") for one in found)


@pytest.mark.parametrize("equality", [False, True])
def test_a_directory_in_place_of_a_delete_file_is_a_missing_file(world: World, equality: bool) -> None:
    table = sound_deletes(world)
    rows = table.inspect.delete_files().to_pylist()
    (at,) = (local(row["file_path"]) for row in rows if bool(row["equality_ids"]) == equality)
    at.unlink()
    at.mkdir()
    found = [(one.check, local(one.file), one.found) for one in table.fsck("rows").findings]
    assert found == [("file-missing", at, "a directory")]


def test_findings_are_counted_beyond_those_returned(world: World) -> None:
    table = entry(lambda f: f.update(sort_order_id=3, split_offsets=[40, 4]))(world)
    report = table.fsck(max_findings=1)
    assert (len(report.findings), report.errors, report.warnings, report.ok) == (1, 1, 1, False)
    with pytest.raises(ice.InvalidArgumentError, match="level"):
        table.fsck("everything")  # type: ignore[arg-type]


def test_sound_tables_with_an_eventful_history_have_no_findings(world: World, tmp_path: Path) -> None:
    """Older snapshots are read by other schemas, and other writers order uuids otherwise."""
    catalog = world.catalog
    schema = pa.schema({"code": pa.string(), "n": pa.int32()})
    replaced = catalog.create_table("db.replaced", schema)
    replaced.append(pa.table([["ab", "a much longer text than eight bytes"], [1, 2]], schema))
    with catalog.create_or_replace_table_transaction("db.replaced", pa.schema({"code": pa.int32()})) as change:
        change.append(pa.table({"code": pa.array([1, 2], pa.int32())}))
    promoted = catalog.create_table("db.promoted", schema, partition_spec=["truncate(10, n)"])
    promoted.append(pa.table([["a", "b"], [11, 22]], schema))
    with promoted.update_schema() as update:
        update.update_column("n", ice.types.LongType())
    promoted.append(pa.table({"code": ["c"], "n": pa.array([2**40], pa.int64())}))
    for table in (catalog.load_table("db.replaced"), promoted):
        for level in LEVELS:
            report = table.fsck(level)
            assert report.findings == [], (table.name, level)


def test_each_description_of_a_file_is_checked(world: World) -> None:
    """The manifest of an older snapshot was right, and that of the current one was not looked at."""
    table = world.sound()
    (row, *_) = table.inspect.data_files().to_pylist()
    wrong = world.empty()
    for size in (row["file_size_in_bytes"], row["file_size_in_bytes"] + 7):
        given = {**fields_of(row), "file_size_in_bytes": size}
        wrong.update_snapshot().fast_append().append_data_file(DataFile(**given)).commit()
    assert {finding.check for finding in wrong.fsck("files").findings} >= {"file-size"}


@pytest.mark.parametrize(
    ("metric", "value", "check"),
    [
        ("null_value_counts", 1, "rows-null-count"),
        ("nan_value_counts", 0, "rows-nan-count"),
        ("lower_bounds", struct.pack("<d", 2.5), "rows-lower-bound"),
        ("upper_bounds", struct.pack("<d", 2.5), "rows-upper-bound"),
    ],
)
def test_columns_within_structs_are_compared(world: World, metric: str, value: object, check: str) -> None:
    """Values of null structs are null, as Parquet counts them."""
    values = [{"x": {"y": 1.5}}, {"x": {"y": float("nan")}}, {"x": {"y": None}}, {"x": None}, None, {"x": {"y": 9.0}}]
    kind = pa.struct([("x", pa.struct([("y", pa.float64())]))])
    made = pa.table({"id": pa.array(range(6), pa.int64()), "s": pa.array(values, kind)})
    sound = world.catalog.create_table("db.nested", made.schema)
    sound.append(made)
    assert sound.fsck("rows").findings == []
    given = fields_of(sound.inspect.data_files().to_pylist()[0])
    leaf = sound.schema().find_field("s.x.y").field_id
    assert given["null_value_counts"][leaf] == 3
    given[metric][leaf] = value
    damaged = world.catalog.create_table("db.damaged", sound.schema())
    with damaged.update_snapshot().fast_append() as append:
        append.append_data_file(DataFile(**given))
    found = [(one.check, one.field) for one in damaged.fsck("rows").findings]
    assert (check, f"{metric}[{leaf}: s.x.y]") in found, found


@pytest.mark.parametrize(
    ("column", "metric", "value", "check"),
    [
        ("l.element", "null_value_counts", 0, "rows-null-count"),
        ("l.element", "value_counts", 4, "rows-value-count"),
        ("l.element", "nan_value_counts", 0, "rows-nan-count"),
        ("l.element", "lower_bounds", struct.pack("<d", 2.0), "rows-lower-bound"),
        ("l.element", "upper_bounds", struct.pack("<d", 8.0), "rows-upper-bound"),
        ("m.key", "upper_bounds", b"b", "rows-upper-bound"),
        ("m.value.element.y", "lower_bounds", struct.pack("<i", 3), "rows-lower-bound"),
        ("m.value.element.y", "null_value_counts", 3, "rows-null-count"),
        ("m.value.element.y", "value_counts", 7, "rows-value-count"),
    ],
)
def test_values_within_lists_and_maps_are_compared(
    world: World, column: str, metric: str, value: object, check: str
) -> None:
    """Other writers give them counts and bounds; null and empty lists may be counted as nulls, as Parquet does."""
    kind = pa.map_(pa.string(), pa.list_(pa.struct([("y", pa.int32())])))
    maps = [[("a", [{"y": 2}, {"y": None}, None])], [("c", [{"y": 7}]), ("b", [])], [("x", None)], [], None]
    lists = [[1.5, None, float("nan")], [9.0], [], None, [4.0]]
    made = pa.table({"l": pa.array(lists, pa.list_(pa.float64())), "m": pa.array(maps, kind)})
    table = world.catalog.create_table("db.nested", made.schema)
    table.append(made)
    leaf = {name: table.schema().find_field(name).field_id for name in ("l.element", "m.key", "m.value.element.y")}
    given = fields_of(table.inspect.data_files().to_pylist()[0])
    element, key, inner = leaf.values()
    given["nan_value_counts"][element] = 1
    given["lower_bounds"] |= {element: struct.pack("<d", 1.5), key: b"a", inner: struct.pack("<i", 2)}
    given["upper_bounds"] |= {element: struct.pack("<d", 9.0), key: b"y", inner: struct.pack("<i", 7)}

    def found() -> list[tuple[str, str]]:
        world.tables += 1
        described = world.catalog.create_table(f"db.t{world.tables}", table.schema())
        with described.update_snapshot().fast_append() as append:
            append.append_data_file(DataFile(**given))
        return [(one.check, one.field) for one in described.fsck("rows").findings]

    for without in (0, 1):  # lists, and maps and lists within them
        given["value_counts"] |= {element: 5 + 2 * without, key: 4 + 2 * without, inner: 4 + 4 * without}
        given["null_value_counts"] |= {element: 1 + 2 * without, key: 2 * without, inner: 2 + 4 * without}
        assert found() == []
    given[metric][leaf[column]] = value
    assert found() == [(check, f"{metric}[{leaf[column]}: {column}]")]


def test_columns_of_the_type_unknown_are_counted(world: World) -> None:
    """Other writers may count them within structs, of which some are null."""
    inner = ice.types.StructType(ice.NestedField(3, "u", "unknown"), ice.NestedField(4, "a", "int"))
    schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "s", inner))
    table = world.catalog.create_table("db.unknown", schema, properties={"format-version": "3"})
    table.append(pa.table({"id": [1, 2], "s": pa.array([{"a": 1}, None], pa.struct([("a", pa.int32())]))}))
    given = fields_of(table.inspect.data_files().to_pylist()[0])
    for nulls, found in ((2, []), (1, ["rows-null-count"])):
        world.tables += 1
        given["value_counts"][3], given["null_value_counts"][3] = 2, nulls
        described = world.catalog.create_table(f"db.t{world.tables}", schema, properties={"format-version": "3"})
        with described.update_snapshot().fast_append() as append:
            append.append_data_file(DataFile(**given))
        assert [one.check for one in described.fsck("rows").findings] == found


def test_errors_take_the_place_of_warnings(world: World) -> None:
    table = world.sound()
    rows = table.inspect.data_files().to_pylist()
    wrong = world.empty()
    for number, row in enumerate(rows):
        given = fields_of(row)
        given["column_sizes"] = {column: size + 1 for column, size in given["column_sizes"].items()}
        if number == len(rows) - 1:
            given["record_count"] += 1
        wrong.update_snapshot().fast_append().append_data_file(DataFile(**given)).commit()
    report = wrong.fsck("footers", max_findings=1)
    assert (report.warnings > 0, [finding.severity for finding in report.findings]) == (True, ["error"])


def test_memory_does_not_grow_with_the_number_of_tags(world: World) -> None:
    """What one snapshot takes was counted again for each tag, so that tables with many tags could not be checked."""
    table = world.catalog.create_table("db.tagged", pa.schema({"part": pa.int64()}), partition_spec=["part"])
    table.append(pa.table({"part": range(200)}))
    for number in range(25):
        table.append(pa.table({"part": [number]}))
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_tag(snapshot.snapshot_id, f"tag{number}").commit()
    code = f"import icefield as ice; print(ice.Table.from_metadata({table.metadata_location!r}).fsck())"
    # The files of all tags together take three times this, those of one a tenth.
    environment = {**os.environ, "ICEFIELD_OPERATION_MEMORY": "100000"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("CheckReport(0 errors, 0 warnings in 26 snapshots"), done.stderr
