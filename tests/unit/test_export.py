"""Exports of a table's metadata: they open again and plan alike, and without values nothing tells what rows have."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import icefield as ice
from icefield.cli.commands import icefield

SECRETS = ("Zanzibar", "hunter2", "prod-bucket", "4242424242")


def make(folder: Path, version: int) -> ice.Table:
    catalog = ice.load_catalog("own", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder / "prod-bucket"))
    catalog.create_namespace("db")
    properties = {
        "format-version": str(version),
        "write.delete.mode": "merge-on-read",
        "write.summary.partition-limit": "10",
        "owner": "Zanzibar",
        "s3.secret-access-key": "hunter2",
    }
    names = {"id": pa.int64(), "city": pa.string()}
    table = catalog.create_table("db.t", pa.schema(list(names.items())), partition_spec=["city"], properties=properties)
    for city in ("Zanzibar", "Oslo"):
        table.append(pa.table({"id": [1, 2, 4242424242], "city": [city] * 3}), {"note": "of Zanzibar"})
    if version > 1:
        table.delete("id = 2")
    return table


def contents(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def planned(table: ice.Table, row_filter: str) -> set[tuple[int, int, int]]:
    """Return of each file of a plan what an export has in any case."""
    tasks = table.scan(row_filter).plan_files()
    return {(task.file.record_count, task.file.file_size_in_bytes, len(task.delete_files)) for task in tasks}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_with_values_it_plans_as_the_table_does(tmp_path: Path, version: int) -> None:
    table = make(tmp_path, version)
    done = table.export_metadata(tmp_path / "t.zip", values=True)
    assert (done.snapshots, done.manifests, done.values) == (1, table.inspect.manifests().num_rows, True)
    files = contents(tmp_path / "t.zip")
    assert not any(name.endswith((".parquet", ".puffin")) for name in files)
    for path in table.inspect.manifests()["path"].to_pylist():
        place = Path(path.removeprefix("file://"))
        assert place.read_bytes() in files.values()
    assert b"hunter2" not in files["metadata.json"]
    assert b"prod-bucket" in files["metadata.json"]
    # The table itself need not be there.
    expected = {filter_: planned(table, filter_) for filter_ in ("true", "city = 'Oslo'", "id > 5", "id > 5000000000")}
    listed = table.inspect.files().drop_columns(["readable_metrics"]).to_pylist()
    (tmp_path / "prod-bucket").rename(tmp_path / "elsewhere")
    opened = ice.Table.from_export(tmp_path / "t.zip")
    assert {filter_: planned(opened, filter_) for filter_ in expected} == expected
    assert opened.inspect.files().drop_columns(["readable_metrics"]).to_pylist() == listed
    assert len(opened.snapshots()) == len(table.snapshots())


@pytest.mark.parametrize("version", [1, 2, 3])
def test_without_values_nothing_tells_what_rows_have(tmp_path: Path, version: int) -> None:
    table = make(tmp_path, version)
    table.export_metadata(tmp_path / "t.zip", snapshot_ids=[one.snapshot_id for one in table.snapshots()])
    opened = ice.Table.from_export(tmp_path / "t.zip", tmp_path / "opened")
    for name, data in contents(tmp_path / "t.zip").items():
        found = data.decode("latin-1")
        assert not [secret for secret in SECRETS if secret in found or secret in name], name
    for entry in opened.inspect.entries().to_pylist():
        assert set(entry["data_file"]["partition"].values()) == {None}
    same = ["content", "record_count", "file_size_in_bytes", "sort_order_id"]
    key = str
    assert sorted(opened.inspect.files().select(same).to_pylist(), key=key) == sorted(
        table.inspect.files().select(same).to_pylist(), key=key
    )
    numbers = ["status", "snapshot_id", "sequence_number", "file_sequence_number"]
    assert opened.inspect.entries().select(numbers) == table.inspect.entries().select(numbers)
    files = opened.inspect.files()
    assert not any(files["lower_bounds"].to_pylist() + files["upper_bounds"].to_pylist())
    assert planned(opened, "true")
    assert opened.properties["write.delete.mode"] == "merge-on-read"
    assert "owner" not in opened.properties
    assert opened.fsck().ok, opened.fsck()


def test_chosen_snapshots(tmp_path: Path) -> None:
    table = make(tmp_path, 2)
    first, second, _ = (one.snapshot_id for one in table.snapshots())
    done = table.export_metadata(tmp_path / "t.zip", snapshot_ids=[first, second])
    assert done.snapshots == 2
    opened = ice.Table.from_export(tmp_path / "t.zip")
    assert opened.scan(snapshot_id=first).count() == 3
    assert opened.scan(snapshot_id=second).count() == 6
    with pytest.raises(ice.StorageError):
        opened.scan().count()
    with pytest.raises(ice.InvalidArgumentError, match="the table has no snapshot 7"):
        table.export_metadata(tmp_path / "u.zip", snapshot_ids=[7])
    assert not (tmp_path / "u.zip").exists()
    assert not list(tmp_path.glob(".u.zip*"))
    for path, says in ((tmp_path / "t.zip", "exists"), ("t.tar", r"a \.zip file")):
        with pytest.raises(ice.InvalidArgumentError, match=says):
            table.export_metadata(path)


@pytest.mark.parametrize("values", [False, True])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_is_left_out_is_no_damage(tmp_path: Path, version: int, values: bool) -> None:
    table = make(tmp_path, version)
    first, second = (one.snapshot_id for one in table.snapshots()[:2])
    with table.manage_snapshots() as change:
        change.create_branch(first, "audit").create_tag(second, "second")
    table.append(pa.table({"id": [9], "city": ["Rome"]}), branch="audit")
    table.maintenance.compute_table_stats(["id"])
    table.maintenance.compute_partition_stats()
    refs = table.refs()
    for number, chosen in enumerate([[], [first], [refs["audit"].snapshot_id, second]]):
        path = tmp_path / f"{number}.zip"
        table.export_metadata(path, snapshot_ids=chosen, values=values)
        opened = ice.Table.from_export(path, tmp_path / str(number))
        assert opened.refs() == refs
        report = opened.fsck()
        assert not report.findings
        assert report.manifests
        assert "damage" not in {one.name for one in opened.doctor()}
        for level in ("files", "footers", "rows"):
            with pytest.raises(ice.InvalidArgumentError, match="is an export without data files"):
                opened.fsck(level)  # type: ignore[arg-type]
        # An export of an export has what that had.
        again = ice.Table.from_export(path).export_metadata(tmp_path / f"{number}-again.zip", snapshot_ids=chosen)
        assert not ice.Table.from_export(again.path).fsck().findings
        # What the export should have is damage if it is gone.
        for gone in (tmp_path / str(number) / "files").rglob("snap-*"):
            gone.unlink()
        assert {one.check for one in opened.fsck().findings} == {"manifest-list-missing"}


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    catalog = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "w"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    table.export_metadata(tmp_path / "t.zip")
    opened = ice.Table.from_export(tmp_path / "t.zip")
    assert opened.properties["icefield.export.snapshots"] == ""
    assert opened.fsck().ok
    assert "damage" not in {one.name for one in opened.doctor()}


GOOD: dict[str, Any] = {"export.json": json.dumps({"form": 1, "folders": {}}), "metadata.json": "{}"}


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({}, "no export"),
        ({**GOOD, "export.json": "[]"}, "another form"),
        ({**GOOD, "export.json": json.dumps({"form": 1, "folders": {"a": "/etc"}})}, "folders are invalid"),
        ({**GOOD, "../evil": ""}, r"it has a file '\.\./evil'"),
        ({**GOOD, "/evil": ""}, "it has a file '/evil'"),
        ({**GOOD, "files/0/..": ""}, r"it has a file 'files/0/\.\.'"),
        ({"export.json": GOOD["export.json"]}, "it has no metadata.json"),
    ],
)
def test_what_is_no_export_is_refused(tmp_path: Path, files: dict[str, str], says: str) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    with pytest.raises(ice.InvalidArgumentError, match=says):
        ice.Table.from_export(path, tmp_path / "opened")
    assert not (tmp_path / "evil").exists()
    path.write_bytes(b"no archive")
    with pytest.raises(ice.InvalidArgumentError, match="no export"):
        ice.Table.from_export(path)


def test_on_the_command_line(tmp_path: Path) -> None:
    make(tmp_path, 2)

    def run(*arguments: str) -> str:
        places = ["--uri", f"sqlite:///{tmp_path}/catalog.db", "--catalog", "own"]
        done = CliRunner().invoke(icefield, [*places, *arguments], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    path = str(tmp_path / "t.zip")
    assert "exported 1 snapshot with 3 manifests of table db.t to " in run("table", "export", "db.t", path)
    assert json.loads(run("table", "files", path, "--json"))
    assert len(json.loads(run("table", "snapshots", path, "--json"))) == 3
