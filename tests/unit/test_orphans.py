"""Removal of orphan files: what is found, what is kept, and which folders are refused."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import icefield as ice
from icefield.cli.commands import icefield
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError, ValidationException
from icefield.procedures import call
from icefield.table.maintenance.orphans import other_tables_loaded_once

DAY = 86_400
ROWS = pa.table({"id": [1, 2], "_part": ["a", "b"]})


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made.create_namespace("db")
    return made


@pytest.fixture
def table(catalog: ice.Catalog) -> ice.Table:
    """Make a table whose history has every kind of file, partitioned by a field with a hidden name."""
    made = catalog.create_table(
        "db.t",
        ROWS.schema,
        partition_spec=["_part"],
        properties={
            "format-version": "3",
            "write.delete.mode": "merge-on-read",
            "write.metadata.previous-versions-max": "2",
        },
    )
    for _ in range(3):
        made.append(ROWS)
    made.delete("id = 2")
    made.manage_snapshots().create_tag(made.snapshots()[1].snapshot_id, "kept").create_branch(
        made.snapshots()[2].snapshot_id, "side"
    ).commit()
    made.append(ROWS, branch="side")
    made.overwrite(ROWS)
    return made


def folder(table: ice.Table) -> Path:
    return Path(table.location().removeprefix("file://"))


def local(paths: list[str]) -> list[Path]:
    return [Path(path.removeprefix("file://")) for path in paths]


def all_files(table: ice.Table) -> set[Path]:
    return {path for path in folder(table).rglob("*") if path.is_file()}


def age(table: ice.Table, days: float = 9) -> None:
    """Make all files of a table older."""
    for path in all_files(table):
        os.utime(path, (time.time() - days * DAY,) * 2)


def put(table: ice.Table, *names: str, days: float = 9) -> list[Path]:
    made = [folder(table) / name for name in names]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
        os.utime(path, (time.time() - days * DAY,) * 2)
    return made


def test_nothing_that_the_table_has_is_an_orphan(table: ice.Table) -> None:
    age(table)
    before = all_files(table)
    done = table.maintenance.remove_orphans("0d", dry_run=False, allow_recent=True)
    assert (done.files, done.failures, done.listed) == ([], 0, len(before))
    assert all_files(table) == before
    report = table.fsck("rows")
    assert report.findings == [], report


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("data/left.parquet", True),
        ("metadata/left-m0.avro", True),
        ("metadata/00099-left.metadata.json", True),
        ("left", True),
        ("data/_part=a/left.parquet", True),
        ("data/_other=a/left.parquet", False),
        ("data/.left.parquet.tmp", False),
        ("_temporary/0/left.parquet", False),
        ("data/_part=a/_SUCCESS", False),
        ("metadata/version-hint.text", False),
    ],
)
def test_what_is_found(table: ice.Table, name: str, found: bool) -> None:
    (orphan,) = put(table, name)
    planned = table.maintenance.remove_orphans()
    assert local(planned.files) == ([orphan] if found else [])
    assert (planned.dry_run, planned.bytes, orphan.exists()) == (True, 5 * found, True)
    done = table.maintenance.remove_orphans(dry_run=False)
    assert (done.files, done.sizes, done.dry_run) == (planned.files, planned.sizes, False)
    assert orphan.exists() is not found
    assert table.fsck("files").ok


def test_age(table: ice.Table) -> None:
    new, young, old = put(table, "new"), put(table, "young", days=2), put(table, "old", days=4)

    def found(*arguments: object, **options: object) -> list[Path]:
        return local(table.maintenance.remove_orphans(*arguments, **options).files)  # type: ignore[arg-type]

    os.utime(new[0])
    assert found() == old
    assert found("36h") == [*old, *young]
    assert new[0] in found("0d", allow_recent=True)
    for age_or_time in ("23h", "0d"):
        with pytest.raises(InvalidArgumentError, match="less than 24 hours"):
            found(age_or_time)
    assert all(path.exists() for path in (*new, *young, *old))


def test_links_stay(table: ice.Table, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_bytes(b"x")
    (folder(table) / "link").symlink_to(elsewhere)
    os.utime(folder(table) / "link", (0, 0), follow_symlinks=False)
    (orphan,) = put(table, "orphan")
    with pytest.warns(RuntimeWarning, match="is a link"):
        done = table.maintenance.remove_orphans(dry_run=False)
    assert local(done.files) == [orphan]
    assert (folder(table) / "link" / "file").exists()


def test_folders_of_others_are_refused(catalog: ice.Catalog, table: ice.Table, tmp_path: Path) -> None:
    def refused(match: str, **options: object) -> None:
        with pytest.raises(InvalidArgumentError, match=match):
            table.maintenance.remove_orphans(**options)  # type: ignore[arg-type]

    refused("warehouse or above it", location=str(tmp_path))
    refused("is empty", location="/")
    refused("above the table's location", location=str(folder(table).parent))
    other = catalog.create_table("db.other", ROWS.schema, location=f"{table.location()}/nested")
    refused(r"the table db\.other has files in .*nested")
    assert table.maintenance.remove_orphans(location=f"{table.location()}/data").files == []
    catalog.drop_table("db.other")
    catalog.create_table("db.third", ROWS.schema, properties={"write.data.path": f"{table.location()}/data"})
    refused(r"the table db\.third has files in .*data")
    assert table.maintenance.remove_orphans(check_catalog=False).files == []
    Path(other.metadata_location.removeprefix("file://")).unlink()
    table.update_properties({"gc.enabled": "false"})
    refused("gc.enabled=false", check_catalog=False)


def test_files_of_tables_that_took_other_names_are_refused(catalog: ice.Catalog) -> None:
    """A table that was renamed and moved on has files in the folder that a new table of its old name gets."""
    old = catalog.create_table("db.a", ROWS.schema)
    old.append(ROWS)
    home = old.location()
    catalog.rename_table("db.a", "db.b")
    with catalog.load_table("db.b").transaction() as change:
        change.update_location(f"{home}_moved")
    new = catalog.create_table("db.a", ROWS.schema, location=home)
    for path in folder(new).rglob("*"):
        os.utime(path, (0, 0))
    with pytest.raises(InvalidArgumentError, match=r"the table db\.b has files in .*/a/"):
        new.maintenance.remove_orphans(dry_run=False)
    assert catalog.load_table("db.b").scan().to_arrow().num_rows == 2


def test_other_tables_are_loaded_once_for_many(catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = [catalog.create_table(f"db.t{number}", ROWS.schema).append(ROWS) for number in range(4)]
    loaded: list[str] = []
    load = type(catalog).load_table

    def counted(self: ice.Catalog, identifier: object, **options: object) -> ice.Table:
        loaded.append(".".join(identifier) if isinstance(identifier, tuple) else str(identifier))
        return load(self, identifier, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(type(catalog), "load_table", counted)
    with other_tables_loaded_once():
        for table in tables:
            assert table.maintenance.remove_orphans().files == []
        assert sorted(loaded) == [f"db.t{number}" for number in range(4)]
        # A table that appears meanwhile is seen, and so is one that is gone.
        catalog.create_table("db.t4", ROWS.schema, location=f"{tables[0].location()}/inner")
        with pytest.raises(InvalidArgumentError, match=r"the table db\.t4 has files in"):
            tables[0].maintenance.remove_orphans()
        catalog.drop_table("db.t4")
        assert tables[0].maintenance.remove_orphans().files == []
        assert loaded.count("db.t1") == 1
        # What was loaded some time ago may have moved.
        monkeypatch.setattr("icefield.table.maintenance.orphans._KNOWN_FOR", -1.0)
        tables[0].maintenance.remove_orphans()
        assert loaded.count("db.t1") == 2
    loaded.clear()
    tables[0].maintenance.remove_orphans()
    assert sorted(loaded) == ["db.t1", "db.t2", "db.t3"]


def test_the_metadata_of_a_view_is_no_orphan(catalog: ice.Catalog) -> None:
    moved = catalog.create_table("db.a", ROWS.schema)
    moved.append(ROWS)
    catalog.rename_table("db.a", "db.b")
    queries = {"spark": "select id, _part from db.b"}
    catalog.create_view("db.a", ROWS.schema, queries, location=moved.location())
    for path in folder(moved).rglob("*"):
        os.utime(path, (0, 0))
    with pytest.raises(InvalidArgumentError, match=r"the view db\.a has files in .*/a"):
        catalog.load_table("db.b").maintenance.remove_orphans(dry_run=False)
    assert catalog.load_view("db.a").location() == moved.location()


def test_a_table_that_cannot_be_read_loses_nothing(table: ice.Table) -> None:
    (orphan,) = put(table, "orphan")
    snapshot = table.current_snapshot()
    assert snapshot is not None
    assert snapshot.manifest_list is not None
    Path(snapshot.manifest_list.removeprefix("file://")).write_bytes(b"damaged")
    with pytest.raises(ice.CorruptDataError):
        table.maintenance.remove_orphans(dry_run=False)
    assert orphan.exists()


def test_other_schemes_and_authorities(table: ice.Table, tmp_path: Path) -> None:
    # A copy whose metadata have paths of a store that is not this one.
    text = json.loads(table.metadata_json())
    statistics = [
        {
            "snapshot-id": text["current-snapshot-id"],
            "statistics-path": f"hdfs://node:8020{folder(table)}/data/theirs",
            "file-size-in-bytes": 5,
            "file-footer-size-in-bytes": 1,
            "blob-metadata": [],
        }
    ]
    table.commit(
        [], [{"action": "set-statistics", "snapshot-id": statistics[0]["snapshot-id"], "statistics": statistics[0]}]
    )
    (theirs,) = put(table, "data/theirs")
    with pytest.raises(ValidationException, match=r"hdfs and file.*node:8020 and no authority"):
        table.maintenance.remove_orphans(dry_run=False)
    assert theirs.exists()
    assert table.maintenance.remove_orphans(prefix_mismatch_mode="ignore").files == []
    equal = {"equal_schemes": {"hdfs,viewfs": "file"}, "equal_authorities": {"node:8020": ""}}
    assert table.maintenance.remove_orphans(**equal).files == []  # type: ignore[arg-type]
    done = table.maintenance.remove_orphans(prefix_mismatch_mode="delete", dry_run=False)
    assert local(done.files) == [theirs]
    assert not theirs.exists()
    with pytest.raises(InvalidArgumentError, match="prefix_mismatch_mode"):
        table.maintenance.remove_orphans(prefix_mismatch_mode="guess")  # type: ignore[arg-type]


def test_the_procedure_deletes_by_default(catalog: ice.Catalog, table: ice.Table) -> None:
    one, two = put(table, "one", "two")
    shown = call(catalog, "remove_orphan_files", table="db.t", dry_run=True)
    assert local(shown["orphan_file_location"].to_pylist()) == [one, two]
    with pytest.raises(UnsupportedFeatureError, match="file_list_view"):
        call(catalog, "remove_orphan_files", table="db.t", file_list_view="v")
    with pytest.raises(InvalidArgumentError, match="expected ERROR, IGNORE or DELETE"):
        call(catalog, "remove_orphan_files", table="db.t", prefix_mismatch_mode="NONE")
    assert call(catalog, "remove_orphan_files", "db.t", prefix_mismatch_mode="IGNORE").num_rows == 2
    assert not one.exists()


def test_command_line(table: ice.Table, tmp_path: Path) -> None:
    (orphan,) = put(table, "orphan")
    common = ["--uri", f"sqlite:///{tmp_path}/catalog.db", "--warehouse", str(tmp_path)]

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(icefield, [*common, *words])
        assert done.exit_code == code, done.output
        return done.output

    assert "would delete 1 orphan file" in run("table", "orphans", "db.t")
    document = json.loads(run("table", "orphans", "db.t", "--json"))
    assert (document["bytes"], document["dry-run"], len(document["files"])) == (5, True, 1)
    run("table", "orphans", "db.t", "--delete", code=2)
    assert orphan.exists()
    assert "deleted 1 orphan file" in run("table", "orphans", "db.t", "--delete", "--yes")
    assert not orphan.exists()
    assert "no orphan files" in run("table", "orphans", "db.t")
    assert "0 errors" in run("table", "fsck", "db.t", "--level", "rows")
    file = Path(table.inspect.files()["file_path"][0].as_py().removeprefix("file://"))
    file.unlink()
    assert "file-missing" in run("table", "fsck", "db.t", "--level", "files", code=1)
    [finding] = json.loads(run("table", "fsck", "db.t", "--level", "files", "--json", code=1))["findings"]
    assert (finding["check"], Path(finding["file"].removeprefix("file://"))) == ("file-missing", file)
    assert "--dry-run is for --repair" in run("table", "fsck", "db.t", "--dry-run", code=2)
    assert "remove_missing_files=True" in " ".join(run("table", "fsck", "db.t", "--repair", code=1).split())
    repair = ("table", "fsck", "db.t", "--repair", "--remove-missing-files")
    assert "would correct 1 field in 1 manifest, remove 1 file" in run(*repair, "--dry-run")
    done = json.loads(run(*repair, "--json"))
    assert (done["removed_files"], done["unrepaired"], done["table"]) == (1, 0, "db.t")
