"""The folder catalog: versions, hints, names of files, and commits that are lost, unknown or refused."""

from __future__ import annotations

import gzip
import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.folder import FolderCatalog
from icefield.errors import NoSuchPropertyException, StorageError

ROWS = pa.table({"id": [1, 2]})
QUICKLY = {
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "1",
    "commit.retry.num-retries": "1",
    "commit.retry.min-wait-ms": "1",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "wh" / "n" / "t"


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    catalog = ice.load_catalog("f", type="hadoop", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("n")
    return catalog


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in (folder / "metadata").iterdir() if each.name.startswith("v"))


def test_a_table_is_a_folder_with_numbered_versions(catalog: ice.Catalog, folder: Path) -> None:
    table = catalog.create_table("n.t", ROWS.schema)
    table.append(ROWS)
    table.transaction().set_properties({"write.metadata.compression-codec": "gzip"}).commit_transaction()
    table.append(ROWS)
    # The codec of a file follows from the version before it: so all who commit to that make the same file.
    expected = ["v1.metadata.json", "v2.metadata.json", "v3.metadata.json", "v4.gz.metadata.json", "version-hint.text"]
    assert names(folder) == expected
    assert (folder / "metadata" / "version-hint.text").read_text() == "4"
    log = [entry.metadata_file.rpartition("/")[2] for entry in table.metadata.metadata_log]
    assert log == ["v1.metadata.json", "v2.metadata.json", "v3.metadata.json"]
    assert (
        json.loads(gzip.decompress((folder / "metadata" / expected[3]).read_bytes()))["location"] == f"file://{folder}"
    )
    assert catalog.load_table("n.t").scan().count() == 4
    assert catalog.commit_table("n.t", [], []).metadata_location.endswith("v4.gz.metadata.json")


@pytest.mark.parametrize("hint", [None, "", "1", "2", "seven", "-1", "0", "1\n"])
def test_a_hint_that_is_missing_old_or_damaged_only_costs_time(
    catalog: ice.Catalog, folder: Path, hint: str | None
) -> None:
    catalog.create_table("n.t", ROWS.schema).append(ROWS)
    place = folder / "metadata" / "version-hint.text"
    place.unlink() if hint is None else place.write_text(hint)
    assert catalog.load_table("n.t").metadata_location.endswith("/v2.metadata.json")
    assert catalog.table_exists("n.t")
    catalog.load_table("n.t").append(ROWS)
    assert names(folder)[-2:] == ["v3.metadata.json", "version-hint.text"]
    assert place.read_text() == "3"


def test_a_hint_that_is_ahead_is_an_error_that_names_it(catalog: ice.Catalog, folder: Path) -> None:
    catalog.create_table("n.t", ROWS.schema)
    (folder / "metadata" / "version-hint.text").write_text("9")
    with pytest.raises(ice.CorruptDataError, match=r"version-hint.text has version 9, .* the newest is version 1"):
        catalog.load_table("n.t")


@pytest.mark.parametrize("name", ["v1.gz.metadata.json", "v1.metadata.json.gz"])
def test_versions_are_found_under_all_names(catalog: ice.Catalog, folder: Path, name: str) -> None:
    catalog.create_table("n.t", ROWS.schema)
    first = folder / "metadata" / "v1.metadata.json"
    (folder / "metadata" / name).write_bytes(gzip.compress(first.read_bytes()))
    first.unlink()
    table = catalog.load_table("n.t")
    assert table.metadata_location.endswith(name)
    table.append(ROWS)
    assert table.metadata_location.endswith("/v2.metadata.json")


def test_drops_remove_the_folder(catalog: ice.Catalog, folder: Path, tmp_path: Path) -> None:
    catalog.create_table("n.t", ROWS.schema).append(ROWS)
    catalog.drop_table("n.t")
    assert not folder.exists()
    assert catalog.namespace_exists("n")
    # Files that others may share stay.
    shared = {"gc.enabled": "false"}
    catalog.create_table("n.t", ROWS.schema, properties=shared).append(ROWS)
    catalog.drop_table("n.t")
    assert [each.name for each in folder.iterdir()] == ["data"]
    # A purge reaches files that are elsewhere.
    elsewhere = {"write.data.path": f"file://{tmp_path}/elsewhere"}
    catalog.create_table("n.t", ROWS.schema, properties=elsewhere).append(ROWS)
    assert list((tmp_path / "elsewhere").rglob("*.parquet"))
    catalog.purge_table("n.t")
    assert not list((tmp_path / "elsewhere").rglob("*.parquet"))
    assert not folder.exists()
    with pytest.raises(ice.NoSuchTableError):
        catalog.drop_table("n.t")


REFUSED: list[tuple[Callable[[ice.Catalog], object], type[Exception], str]] = [
    (lambda c: c.rename_table("n.t", "n.u"), ice.UnsupportedFeatureError, "n.t cannot be renamed to n.u"),
    (lambda c: c.create_namespace("m", {"a": "b"}), ice.UnsupportedFeatureError, "m: .* have no properties"),
    (lambda c: c.update_namespace_properties("n", (), {"a": "b"}), ice.UnsupportedFeatureError, "no properties"),
    (lambda c: c.create_namespace("n.t.m"), ice.InvalidArgumentError, "n.t is a table"),
    (lambda c: c.create_namespace("n.t"), ice.errors.NamespaceAlreadyExistsError, "there is a folder"),
    (lambda c: c.list_tables("n.t"), ice.NoSuchNamespaceError, "n.t is a table"),
    (lambda c: c.list_tables("m"), ice.NoSuchNamespaceError, "there is no folder"),
    (lambda c: c.create_table("n.u", ROWS.schema, location="/elsewhere"), ice.InvalidArgumentError, "/wh/n/u"),
    (lambda c: c.create_table(("n", "a/b"), ROWS.schema), ice.InvalidArgumentError, "cannot be the name of a folder"),
    (lambda c: c.load_table(("n", "..")), ice.InvalidArgumentError, "cannot be the name of a folder"),
    (lambda c: c.load_table(("n", "x" * 256)), StorageError, "too long"),
    (lambda c: c.drop_namespace("n"), ice.NamespaceNotEmptyError, "its folder contains [mt]"),
    (lambda c: c.create_table("n.m", ROWS.schema), ice.TableAlreadyExistsError, "as a namespace"),
    (
        lambda c: c.load_table("n.t").transaction().set_properties({"write.metadata.path": "/m"}).commit_transaction(),
        ice.CommitFailedException,
        "do not support the property write.metadata.path",
    ),
    (
        lambda c: c.commit_table("n.t", [], [{"action": "set-location", "location": "/elsewhere"}]),
        ice.CommitFailedException,
        "location of n.t cannot be changed",
    ),
    (
        lambda c: c.register_table("n.u", c.load_table("n.t").metadata_location),
        ice.InvalidArgumentError,
        "n.u cannot be at file:.*/wh/n/t",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_what_folders_cannot_have_is_refused(
    catalog: ice.Catalog, folder: Path, call: Callable[[ice.Catalog], object], kind: type[Exception], message: str
) -> None:
    catalog.create_table("n.t", ROWS.schema, properties=QUICKLY)
    catalog.create_namespace("n.m")
    before = sorted(path for path in folder.parents[1].rglob("*"))
    with pytest.raises(kind, match=message):
        call(catalog)
    assert sorted(path for path in folder.parents[1].rglob("*")) == before


def test_a_table_of_another_catalog_is_registered_where_it_lies(catalog: ice.Catalog, folder: Path) -> None:
    other = ice.load_catalog("other", uri="sqlite://", warehouse=str(folder.parents[1]))
    other.create_namespace("n")
    other.create_table("n.t", ROWS.schema).append(ROWS)
    catalog.register_table("n.t", other.load_table("n.t").metadata_location)
    assert names(folder) == ["v1.metadata.json", "version-hint.text"]
    assert catalog.load_table("n.t").scan().count() == 2


def test_a_warehouse_is_required() -> None:
    with pytest.raises(NoSuchPropertyException, match="'warehouse'"):
        ice.load_catalog("f", type="hadoop")


class Faulty(FolderCatalog):
    """Writes of metadata files fail, before or after they are made."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self.before = self.after = False
        self.replaces = False
        self.reason = "no reply"

    def _write(self, location: str, content: bytes) -> None:
        if self.before:
            raise StorageError(self.reason)
        if self.replaces:
            self.storage.write(location, content, overwrite=True)
        else:
            super()._write(location, content)
        if self.after:
            raise StorageError("no reply")


@pytest.mark.parametrize("warehouse", ["{}/wh", "memory://{}/wh"])
def test_writes_without_an_answer(tmp_path: Path, warehouse: str) -> None:
    catalog = Faulty("f", warehouse=warehouse.format(tmp_path))
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", ROWS.schema, properties=QUICKLY)
    catalog.after = True
    table.append(ROWS)
    catalog.create_table("n.u", ROWS.schema)
    assert catalog.load_table("n.t").scan().count() == 2
    catalog.before, catalog.after = True, False
    # A write to the disk of this machine is over; one that was sent may still arrive.
    local = not warehouse.startswith("memory")
    with pytest.raises(ice.CommitFailedException if local else ice.CommitStateUnknownException, match="no reply"):
        table.append(ROWS)
    # S3 says so of one of two that create an object at the same time: a lost race.
    catalog.reason = "status 409: <Error><Code>ConditionalRequestConflict</Code></Error>"
    with pytest.raises(ice.CommitFailedException, match="ConditionalRequestConflict"):
        table.append(ROWS)
    catalog.before = False
    table.append(ROWS)
    assert catalog.load_table("n.t").scan().count() == 4


def test_a_store_that_replaces_what_exists_is_refused(tmp_path: Path) -> None:
    catalog = Faulty("f", warehouse=f"memory://{tmp_path}/wh")
    catalog.create_namespace("n")
    catalog.replaces = True
    with pytest.raises(ice.CommitFailedException, match="this store replaces an object"):
        catalog.create_table("n.t", ROWS.schema, properties=QUICKLY)
    assert catalog.list_tables("n") == []


def test_a_failure_is_not_taken_for_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that ignores what it is asked for, and is busy at the second write, proves nothing."""
    catalog = FolderCatalog("f", warehouse=f"memory://{tmp_path}/wh")
    catalog.create_namespace("n")
    write, probes = catalog._write, 0

    def busy(location: str, content: bytes) -> None:
        nonlocal probes
        probes += "probe" in location
        if probes == 2:
            raise StorageError("HTTP 503")
        write(location, content)

    monkeypatch.setattr(catalog, "_write", busy)
    with pytest.raises(ice.CommitFailedException, match=r"cannot be written to: HTTP 503"):
        catalog.create_table("n.t", ROWS.schema, properties=QUICKLY)
    assert not [path for path, _ in catalog.storage.list(f"memory://{tmp_path}/wh") if "probe" in path]
    probes = 10
    assert catalog.create_table("n.t", ROWS.schema).append(ROWS).scan().count() == 2


def test_a_version_that_is_free_again_is_not_taken(catalog: ice.Catalog, folder: Path) -> None:
    limits = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    table = catalog.create_table("n.t", ROWS.schema, properties=limits)
    for _ in range(4):
        table.append(ROWS)
    assert names(folder) == ["v4.metadata.json", "v5.metadata.json", "version-hint.text"]
    stale, stopped = FolderCatalog("f", warehouse=str(folder.parents[1])), threading.Event()
    find = stale._newest

    def once(of: str) -> object:
        if stopped.is_set():
            return find(of)
        stopped.set()
        return find(of)._replace(version=1)  # as it was found before the others committed

    stale._newest = once  # type: ignore[method-assign, assignment]
    stale.commit_table("n.t", [], [{"action": "set-properties", "updates": {"a": "b"}}])
    assert names(folder) == ["v5.metadata.json", "v6.metadata.json", "version-hint.text"]
    assert catalog.load_table("n.t").properties["a"] == "b"


@pytest.mark.parametrize("hint", [None, b"2"])
def test_a_version_that_is_free_again_is_not_taken_without_its_hint(
    catalog: ice.Catalog, folder: Path, hint: bytes | None
) -> None:
    """The hint is missing, or was set back by a slow writer; the versions after it are deleted."""
    limits = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    table = catalog.create_table("n.t", ROWS.schema, properties=limits)
    for _ in range(4):
        table.append(ROWS)
    stale = FolderCatalog("f", warehouse=str(folder.parents[1]))
    base = stale._newest(str(folder))
    assert base is not None
    metadata = catalog.load_table("n.t").metadata
    where = folder / "metadata" / "version-hint.text"
    if hint is None:
        where.unlink()
    else:
        where.write_bytes(hint)
    made = stale._next(("n", "t"), metadata, base._replace(version=1), gzipped=False)
    assert made is None, "another commit made version 2, and its file was deleted"
    assert "v2.metadata.json" not in names(folder)


def test_the_hint_is_never_set_back(catalog: ice.Catalog, folder: Path) -> None:
    table = catalog.create_table("n.t", ROWS.schema)
    slow = FolderCatalog("f", warehouse=str(folder.parents[1]))
    put = slow._put

    def slowly(location: str, content: bytes) -> bool:
        made = put(location, content)
        table.append(ROWS)
        table.append(ROWS)
        return made

    slow._put = slowly  # type: ignore[method-assign]
    slow.commit_table("n.t", [], [{"action": "set-properties", "updates": {"a": "b"}}])
    assert (folder / "metadata" / "version-hint.text").read_text() == "4"
    assert catalog.load_table("n.t").properties["a"] == "b"


@pytest.mark.parametrize("warehouse", ["{}/wh", "memory://{}/wh"])
@pytest.mark.parametrize("purge", [False, True])
def test_what_is_created_while_something_is_dropped_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warehouse: str, purge: bool
) -> None:
    catalog = FolderCatalog("f", warehouse=warehouse.format(tmp_path))
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", ROWS.schema, properties=QUICKLY)
    table.append(ROWS)
    other = FolderCatalog("other", **catalog.properties)
    kind = type(catalog._folders)
    remove, look, refused = kind.remove, kind.first, []

    def beside_remove(self: object, folder: str, kept: object = ()) -> list[str]:
        try:
            other.create_table("n.t", ROWS.schema).append(ROWS)
        except ice.TableAlreadyExistsError as error:
            refused.append(error)
        return remove(self, folder, kept)  # type: ignore[arg-type]

    monkeypatch.setattr(kind, "remove", beside_remove)
    catalog.drop_table("n.t", purge_requested=purge)
    # The name was free at the end only.
    assert len(refused) == 1
    assert not catalog.table_exists("n.t")
    monkeypatch.setattr(kind, "remove", remove)
    other.create_table("n.t", ROWS.schema).append(ROWS)
    assert catalog.load_table("n.t").scan().count() == 2
    catalog.drop_table("n.t")

    def then_created(self: object, folder: str) -> str | None:
        found = look(self, folder)  # type: ignore[arg-type]
        other.create_table("n.t", ROWS.schema).append(ROWS)
        return found

    monkeypatch.setattr(kind, "first", then_created)
    try:
        catalog.drop_namespace("n")
    except ice.NamespaceNotEmptyError as error:
        assert "meanwhile" in str(error)
    assert catalog.load_table("n.t").scan().count() == 2


@pytest.mark.parametrize("child", ["data", "metadata", "data.m", "other"])
def test_no_table_is_created_around_others(catalog: ice.Catalog, child: str) -> None:
    catalog.create_namespace(f"n.x.{child}")
    catalog.create_table(f"n.x.{child}.t", ROWS.schema).append(ROWS)
    with pytest.raises(ice.TableAlreadyExistsError, match="as a namespace"):
        catalog.create_table("n.x", ROWS.schema)
    catalog.drop_table(f"n.x.{child}.t")
    catalog.drop_namespace(f"n.x.{child}")
    catalog.create_table(f"n.x.{child}", ROWS.schema).append(ROWS)
    with pytest.raises(ice.TableAlreadyExistsError, match="as a namespace"):
        catalog.create_table("n.x", ROWS.schema)
    assert catalog.load_table(f"n.x.{child}").scan().count() == 2


def test_files_of_the_original_of_a_copied_table_stay(catalog: ice.Catalog, folder: Path) -> None:
    limits = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": "1"}
    table = catalog.create_table("n.t", ROWS.schema, properties=limits)
    table.append(ROWS)
    shutil.copytree(folder, folder.with_name("copy"))
    for file in folder.with_name("copy").glob("metadata/v*.json"):
        file.write_text(file.read_text().replace('/n/t"', '/n/copy"'))
    copy = catalog.load_table("n.copy")
    for _ in range(3):
        copy.append(ROWS)
    assert names(folder) == ["v1.metadata.json", "v2.metadata.json", "version-hint.text"]
    # The log of the copy has its first version as that of the original.
    expected = ["v1.metadata.json", "v4.metadata.json", "v5.metadata.json", "version-hint.text"]
    assert names(folder.with_name("copy")) == expected
