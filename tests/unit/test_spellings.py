"""Files under other spellings of their paths: none is deleted that the table has, and none is added twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError, ValidationException

ROWS = pa.table({"id": pa.array(range(5), pa.int64())})
EVER = "2100-01-01T00:00:00Z"


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("c", type="in-memory", warehouse=str(tmp_path / "w"))
    made.create_namespace("a")
    return made


def folder_of(table: ice.Table) -> Path:
    return Path(table.location().removeprefix("file://"))


def written(table: ice.Table, name: str = "x.parquet") -> Path:
    path = folder_of(table) / "data" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(ROWS, path)
    return path


def spellings(path: Path) -> list[str]:
    folder, name = path.parent, path.name
    return [
        str(path),
        f"file:{path}",
        f"file://{path}",
        f"FILE://{path}",
        f"file://localhost{path}",
        f"//{str(path).removeprefix('/')}",
        f"{folder}//{name}",
        f"{folder}/./{name}",
        f"{folder.parent}/{folder.name}/../{folder.name}/{name}",
        f"file://{folder}/../{folder.name}/./{name}",
    ]


@pytest.mark.parametrize("number", range(10))
def test_what_the_table_has_under_another_name_is_not_expired(catalog: ice.Catalog, number: int) -> None:
    table = catalog.create_table("a.t", ROWS)
    path = written(table)
    gone = written(table, "gone.parquet")
    for one, other in ((spellings(path)[0], spellings(path)[number]), (spellings(path)[number], spellings(path)[0])):
        table.add_files([one, str(gone)])
        table.delete("id >= 0")
        table.add_files([other])
        planned = table.expire_snapshots(retain_last=1, older_than=EVER, dry_run=True)
        assert table.expire_snapshots(retain_last=1, older_than=EVER) == planned
        assert path.exists()
        assert table.refresh().scan().count() == 5
        assert not gone.exists()
        pq.write_table(ROWS, gone)
        table.delete("id >= 0")


def test_a_link_to_the_folder_is_another_spelling(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("a.t", ROWS)
    path = written(table)
    (tmp_path / "link").symlink_to(tmp_path / "w")
    linked = tmp_path / "link" / path.relative_to(tmp_path / "w")
    table.add_files([str(path)])
    with pytest.raises(InvalidArgumentError, match="in the table already"):
        table.add_files([str(linked)])
    table.delete("id >= 0")
    table.add_files([str(linked)])
    table.expire_snapshots(retain_last=1, older_than=EVER)
    assert path.exists()
    assert table.scan().count() == 5


def test_a_file_is_added_once_however_it_is_spelled(catalog: ice.Catalog) -> None:
    table = catalog.create_table("a.t", ROWS)
    first, *others = spellings(written(table))
    table.add_files([first])
    for other in others:
        with pytest.raises(InvalidArgumentError, match="in the table already"):
            table.add_files([other])
    # Nothing is decoded: these are files of their own.
    for name in ("x%20y.parquet", "x y.parquet", "x+y.parquet"):
        table.add_files([str(written(table, name))])
    assert table.scan().count() == 20
    files = [file for file in pa.table(table.inspect.files()).to_pylist() if file["file_path"] == first]
    assert len(files) == 1


@pytest.mark.parametrize("number", [1, 2, 4, 6, 8])
def test_a_commit_removes_a_file_by_any_of_its_names(catalog: ice.Catalog, number: int) -> None:
    table = catalog.create_table("a.t", ROWS)
    path = written(table)
    table.add_files([str(path), str(written(table, "y.parquet"))])
    table.update_snapshot().delete().delete_path(spellings(path)[number]).validate_files_exist().commit()
    left = pa.table(table.refresh().inspect.files())["file_path"].to_pylist()
    assert [Path(file).name for file in left] == ["y.parquet"]
    with pytest.raises(ValidationException, match="not in the table"):
        table.update_snapshot().delete().delete_path(spellings(path)[number]).validate_files_exist().commit()


def foreign(table: ice.Table, path: Path, **members: Any) -> Path:
    """Write the metadata of a table as a stranger hands it over."""
    text = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    path.write_text(json.dumps({**text, **members}))
    return path


def test_a_commit_deletes_no_file_that_only_a_strangers_log_names(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("a.t", ROWS)
    table.append(ROWS)
    thesis, data, other = tmp_path / "thesis.txt", written(table), tmp_path / "o" / "v1.metadata.json"
    nested = folder_of(table) / "metadata" / ".." / ".." / ".." / ".." / "thesis.metadata.json"
    old = folder_of(table) / "metadata" / "00000-old.metadata.json"
    other.parent.mkdir()
    for path in (thesis, other, old, nested):
        path.write_text("{}")
    named = [thesis, f"file://{thesis}", data, other, nested, old]
    log = [{"timestamp-ms": 1, "metadata-file": str(path)} for path in named]
    properties = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    document = foreign(table, tmp_path / "evil.metadata.json", **{"metadata-log": log, "properties": properties})
    catalog.register_table("a.u", str(document)).append(ROWS)
    assert all(path.exists() for path in (thesis, data, other, nested))
    assert not old.exists()
    # What the log still has under another name stays too.
    twice = folder_of(table) / "metadata" / "00001-twice.metadata.json"
    twice.write_text("{}")
    log = [{"timestamp-ms": number, "metadata-file": name} for number, name in enumerate((f"file:{twice}", str(twice)))]
    properties["write.metadata.previous-versions-max"] = "2"
    document = foreign(table, tmp_path / "more.metadata.json", **{"metadata-log": log, "properties": properties})
    again = catalog.register_table("a.v", str(document))
    again.append(ROWS)
    assert twice.exists()
    again.append(ROWS)
    assert not twice.exists()


@pytest.mark.filterwarnings("ignore:snapshots expired:RuntimeWarning")
@pytest.mark.parametrize("kind", ["statistics", "partition-statistics", "manifest-list"])
def test_expiry_deletes_no_live_file_that_an_expired_snapshot_takes_for_another(
    catalog: ice.Catalog, tmp_path: Path, kind: str
) -> None:
    table = catalog.create_table("a.t", ROWS)
    table.append(ROWS).append(ROWS)
    text = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    live = [Path(path.removeprefix("file://")) for path in pa.table(table.inspect.files())["file_path"].to_pylist()]
    live.append(Path(table.metadata_location.removeprefix("file://")))
    live.append(Path(table.current_snapshot().manifest_list.removeprefix("file://")))  # type: ignore[union-attr]
    for number, path in enumerate(live):
        old = text["snapshots"][0]
        if kind == "manifest-list":
            members: dict[str, Any] = {"snapshots": [{**old, "manifest-list": str(path)}, *text["snapshots"][1:]]}
        else:
            file = {"snapshot-id": old["snapshot-id"], "statistics-path": f"file:{path}", "file-size-in-bytes": 1}
            more = {"file-footer-size-in-bytes": 1, "blob-metadata": []} if kind == "statistics" else {}
            members = {kind: [{**file, **more}]}
        document = foreign(table, tmp_path / f"{number}.metadata.json", **members)
        opened = catalog.register_table(f"a.u{number}", str(document))
        opened.expire_snapshots(retain_last=1, older_than=EVER)
        assert path.exists()
        assert opened.scan().count() == 10


@pytest.mark.parametrize("way", ["expire", "purge", "purge of a migrated table"])
def test_files_shared_with_another_table_stay(catalog: ice.Catalog, way: str) -> None:
    owner = catalog.create_table("a.owner", ROWS)
    owner.append(ROWS).append(ROWS)
    shared = pa.table(owner.inspect.files())["file_path"].to_pylist()
    if way == "purge of a migrated table":
        folder = str(folder_of(owner) / "data")
        taker = catalog.migrate("a.taker", folder, location=f"{catalog.properties['warehouse']}/elsewhere").table
        assert taker is not None
        assert taker.properties["gc.enabled"] == "false"
    else:
        taker = catalog.create_table("a.taker", ROWS)
        taker.add_files(shared)
    assert taker.scan().count() == 10
    if way == "expire":
        taker.delete("id >= 0")
        taker.append(ROWS)
        assert sorted(taker.expire_snapshots(retain_last=1, older_than=EVER).external_files) == sorted(shared)
    else:
        catalog.drop_table("a.taker", purge_requested=True)
    assert owner.refresh().scan().count() == 10


def test_a_purge_deletes_its_files_under_any_name_and_only_its_own(catalog: ice.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("a.t", ROWS)
    path = written(table)
    table.add_files([spellings(path)[6]])
    keep = tmp_path / "keep"
    shutil.copytree(folder_of(table), keep)
    thesis = folder_of(table) / "thesis.txt"
    thesis.write_text("mine")
    log = [{"timestamp-ms": 1, "metadata-file": str(thesis)}, {"timestamp-ms": 2, "metadata-file": str(keep / "data")}]
    document = foreign(table, tmp_path / "evil.metadata.json", **{"metadata-log": log})
    catalog.register_table("a.u", str(document))
    catalog.drop_table("a.u", purge_requested=True)
    assert not path.exists()
    assert thesis.exists()
    assert (keep / "data" / "x.parquet").exists()
