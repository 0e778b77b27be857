"""Copies of tables with their history: every snapshot has the same rows, and nothing reads the source."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.errors import CorruptDataError, InvalidArgumentError, UnsupportedFeatureError
from icefield.procedures import call

SCHEMA = pa.schema({"id": pa.int64(), "p": pa.string(), "x": pa.float64()})


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "warehouse"))
    made.create_namespace("a")
    return made


class History:
    """A table with random changes."""

    def __init__(self, catalog: ice.Catalog, rng: Random, name: str, version: int, file_format: str) -> None:
        self.rng = rng
        self.next = 0
        properties = {
            "format-version": str(version),
            "write.format.default": file_format,
            "write.delete.mode": "merge-on-read" if version > 1 else "copy-on-write",
            "write.update.mode": "merge-on-read" if version > 1 else "copy-on-write",
            "write.delete.granularity": rng.choice(["file", "partition"]),
            "write.metadata.compression-codec": rng.choice(["none", "gzip"]),
            "commit.manifest.min-count-to-merge": "3",
        }
        self.table = catalog.create_table(name, SCHEMA, partition_by="p", properties=properties)
        self.append()

    def append(self) -> None:
        ids = range(self.next, self.next + self.rng.randrange(1, 30))
        self.next = ids.stop
        rows = [{"id": one, "p": self.rng.choice("ab,"), "x": self.rng.random()} for one in ids]
        self.table.append(pa.Table.from_pylist(rows, SCHEMA))

    def delete(self) -> None:
        self.table.delete(f"id >= {self.rng.randrange(self.next)} AND x < {self.rng.random() / 2}")

    def update(self) -> None:
        self.table.update({"x": 7.5}, f"id < {self.rng.randrange(self.next)} AND x > 0.7")

    def compact(self) -> None:
        self.table.maintenance.compact(options={"rewrite-all": True})

    def rewrite_manifests(self) -> None:
        self.table.rewrite_manifests().commit()

    def count_distinct(self) -> None:
        self.table.maintenance.compute_table_stats(["id"])

    def add_column(self) -> None:
        with self.table.update_schema() as update:
            update.add_column(f"c{self.table.metadata.last_column_id}", "int")

    def tag(self) -> None:
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        self.table.manage_snapshots().create_tag(snapshot.snapshot_id, f"t{len(self.table.refs())}").commit()

    def expire(self) -> None:
        self.table.expire_snapshots(older_than="0s", retain_last=2)

    def changes(self, count: int) -> None:
        kinds = [self.append, self.append, self.delete, self.delete, self.update, self.compact, self.rewrite_manifests]
        kinds += [self.count_distinct, self.add_column, self.tag, self.expire]
        for _ in range(count):
            self.rng.choice(kinds)()


def rows_of(table: ice.Table) -> dict[int, list[dict[str, Any]]]:
    """Read the rows of every snapshot, with what does not depend on the place of files."""
    lineage = ("_row_id", "_last_updated_sequence_number") if table.format_version > 2 else ()
    found = {}
    for snapshot in table.snapshots():
        read = table.scan(snapshot_id=snapshot.snapshot_id, selected_fields=("*", *lineage)).to_arrow()
        found[snapshot.snapshot_id] = read.sort_by("id").to_pylist()
    return found


def opened_alone(copied: ice.table.maintenance.copies.CopiedTable, source: Path) -> tuple[dict[int, Any], list[Any]]:
    """Read a copy and check it, while the source is away."""
    away = source.with_name(f"{source.name}-away")
    source.rename(away)
    try:
        table = ice.Table.from_metadata(copied.metadata_location)
        return rows_of(table), table.fsck("rows").findings
    finally:
        away.rename(source)


CASES = [(1, "parquet"), (2, "parquet"), (2, "orc"), (2, "avro"), (3, "parquet"), (3, "orc")]


@pytest.mark.parametrize(("version", "file_format"), CASES)
def test_copies_have_the_rows_of_every_snapshot(
    catalog: ice.Catalog, tmp_path: Path, version: int, file_format: str
) -> None:
    rng = Random(f"{version} {file_format}")
    history = History(catalog, rng, "a.t", version, file_format)
    table, source = history.table, Path(history.table.location().removeprefix("file://"))
    target = tmp_path / "copies" / "of, t"
    history.changes(6)
    planned = table.copy_to(str(target), dry_run=True)
    assert not target.exists()
    for round_number in range(2):
        copied = table.copy_to(str(target))
        assert (copied.start_version is None) == (round_number == 0)
        assert opened_alone(copied, source) == (rows_of(table), []), f"round {round_number}"
        if round_number == 0:
            assert (planned.files, planned.bytes) == (copied.files, copied.bytes)
        assert table.copy_to(str(target)).files == 0
        history.changes(4)
    made = catalog.register_table("a.copy", copied.metadata_location)
    assert made.location() == f"file://{target}"
    made.append(pa.Table.from_pylist([{"id": -1}], made.schema().as_arrow()))
    assert made.scan("id = -1").count() == 1


def test_copies_that_failed_are_completed(catalog: ice.Catalog, tmp_path: Path) -> None:
    history = History(catalog, Random(1), "a.t", 2, "parquet")
    history.changes(6)
    table = history.table
    expected = rows_of(table)
    [path, *_] = table.inspect.files()["file_path"].to_pylist()
    file = Path(path.removeprefix("file://"))
    whole = file.read_bytes()
    for damage, error in ((whole[:-1], CorruptDataError), (None, ice.errors.StorageError)):
        file.write_bytes(damage) if damage else file.unlink()
        with pytest.raises(error, match=file.name):
            table.copy_to(str(tmp_path / "copy"))
        assert not list((tmp_path / "copy").rglob("*.metadata.json*")), "a copy is there when it is complete"
    file.write_bytes(whole)
    copied = table.copy_to(str(tmp_path / "copy"))
    assert copied.start_version is None
    assert rows_of(ice.Table.from_metadata(copied.metadata_location)) == expected


def test_what_cannot_be_copied_is_refused_and_leaves_nothing(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = History(catalog, Random(2), "a.t", 2, "parquet").table
    other = History(catalog, Random(3), "a.u", 2, "parquet").table
    location, before = table.location(), sorted(tmp_path.rglob("*"))
    for call_of, message in (
        (lambda: table.copy_to(f"{location}/copy"), "one location would contain the other"),
        (lambda: table.copy_to(""), "location is empty"),
        (lambda: table.copy_to(location), "are the same"),
        (lambda: table.copy_to(other.location()), "has the metadata of another table"),
        (lambda: table.copy_to("/x", source_prefix=f"{location}/data"), "is not below the source prefix"),
        (
            lambda: table.rewrite_table_path(location, "/x", start_version="v1.json"),
            'start_version "v1.json" is neither',
        ),
        (lambda: table.rewrite_table_path(location, "/x", end_version="v1.json"), 'end_version "v1.json" is neither'),
        (
            lambda: table.rewrite_table_path(location, "/x", start_version=table.metadata_location),
            "is not older than end_version",
        ),
        (lambda: table.rewrite_table_path(location, "/x", staging_location=" "), "staging_location is empty"),
        (lambda: table.rewrite_table_path("s3://a", "/x"), "the location of the table is not below the source prefix"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            call_of()
    assert sorted(tmp_path.rglob("*")) == before
    elsewhere = tmp_path / "elsewhere.parquet"
    pq.write_table(pa.table({"id": [1], "p": ["a"], "x": [0.5]}, SCHEMA), elsewhere)
    table.add_files([f"file://{elsewhere}"])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InvalidArgumentError, match="a data file is not below the source prefix"):
        table.copy_to(str(tmp_path / "copy"))
    with pytest.raises(InvalidArgumentError, match="a data file is not below the source prefix"):
        table.rewrite_table_path(location, "/x")
    assert sorted(tmp_path.rglob("*")) == before
    copied = table.copy_to(str(tmp_path.with_name(f"{tmp_path.name}-copy")), source_prefix=str(tmp_path))
    assert rows_of(ice.Table.from_metadata(copied.metadata_location)) == rows_of(table)
    other.update_properties({"encryption.key-id": "k"})
    with pytest.raises(UnsupportedFeatureError, match="copies of encrypted tables are not supported"):
        other.copy_to(str(tmp_path / "copy"))


def staged(list_location: str) -> None:
    """Copy files as another program would, by the list of files."""
    for line in Path(list_location.removeprefix("file://")).read_text(encoding="utf-8").splitlines():
        source, target = line.split(",")
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.removeprefix("file://"), target)


@pytest.mark.parametrize("version", [1, 2, 3])
def test_the_procedure_lists_what_another_program_copies(catalog: ice.Catalog, tmp_path: Path, version: int) -> None:
    history = History(catalog, Random(version + 10), "a.t", version, "parquet")
    history.changes(6)
    history.append()
    history.table.delete(f"id = {history.next - 1}")
    table, target = history.table, str(tmp_path / "copy")
    source = Path(table.location().removeprefix("file://"))
    first = table.metadata_location.rpartition("/")[2]
    [done] = call(
        catalog, "rewrite_table_path", table="a.t", source_prefix=table.location(), target_prefix=target
    ).to_pylist()
    assert done["latest_version"] == first
    assert done["rewritten_manifest_file_paths_count"] > 0
    assert (done["rewritten_delete_file_paths_count"] > 0) == (version > 1)
    assert "/metadata/copy-table-staging-" in done["file_list_location"]
    staged(done["file_list_location"])
    history.append()
    none = table.rewrite_table_path(
        table.location(), target, create_file_list=False, end_version=first, staging_location=str(tmp_path / "other")
    )
    assert (none.file_list_location, none.latest_version) == (None, first)
    assert not (tmp_path / "other" / "file-list").exists()
    history.changes(6)
    [done] = call(
        catalog,
        "rewrite_table_path",
        "a.t",
        table.location(),
        target,
        start_version=first,
        staging_location=str(tmp_path / "staging"),
    ).to_pylist()
    assert done["file_list_location"] == f"{tmp_path}/staging/file-list"
    staged(done["file_list_location"])
    metadata = f"{target}/metadata/{done['latest_version']}"
    copied = ice.table.maintenance.copies.CopiedTable(metadata, None, 0, 0, 0, 0, 0)
    assert opened_alone(copied, source) == (rows_of(table), [])


def test_the_command_copies_and_registers(catalog: ice.Catalog, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from icefield.cli.commands import icefield

    history = History(catalog, Random(5), "a.t", 2, "parquet")
    options = ["--uri", f"sqlite:///{tmp_path}/c.db", "--warehouse", str(tmp_path), "table", "copy", "a.t"]
    for _ in range(2):
        done = CliRunner().invoke(icefield, [*options, str(tmp_path / "copy"), "--register", "a.copy", "--json"])
        assert done.exit_code == 0, done.output
        document = json.loads(done.stdout)
        copy = catalog.load_table("a.copy")
        assert copy.metadata_location == document["metadata-location"]
        assert rows_of(copy) == rows_of(history.table)
        history.delete()
    assert document["start-version"]
    wrong = CliRunner().invoke(icefield, [*options, str(tmp_path / "copy"), "--register", "a.t"])
    assert (wrong.exit_code, "not an earlier copy" in wrong.output) == (2, True)
