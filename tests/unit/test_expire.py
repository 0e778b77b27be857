"""Expiry of snapshots: which leave the table, and which files are deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import icefield as ice
from icefield._core import set_clock

HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    set_clock(NOW_MS)
    yield
    set_clock(None)


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    """Make a table of four appends, an hour apart."""
    catalog = ice.load_catalog("expiry", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("n")
    made = catalog.create_table("n.t", pa.schema({"id": pa.int64()}))
    for number in range(4):
        set_clock(NOW_MS + number * HOUR_MS)
        made.append(pa.table({"id": [number]}))
    return made


def ids(table: ice.Table) -> list[int]:
    return [snapshot.snapshot_id for snapshot in table.snapshots()]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file() and not path.name.startswith("catalog.db")}


def test_old_snapshots_go_and_their_rows_stay(table: ice.Table, tmp_path: Path) -> None:
    before, lists = ids(table), [snapshot.manifest_list for snapshot in table.snapshots()]
    planned = table.expire_snapshots(older_than=NOW_MS + 2 * HOUR_MS, dry_run=True)
    assert ids(table.refresh()) == before
    done = table.maintenance.expire_snapshots().older_than(NOW_MS + 2 * HOUR_MS).commit()
    assert done == planned
    assert done.snapshot_ids == before[:2]
    assert set(done.deleted_files) == set(lists[:2])
    assert not {Path(path).name for path in done.deleted_files} & names(tmp_path)
    assert ids(table) == ids(table.refresh()) == before[2:]
    assert table.scan().count() == 4


def test_what_a_branch_or_tag_has_stays(table: ice.Table) -> None:
    first, second, third, last = ids(table)
    table.manage_snapshots().create_tag(first, "kept").create_branch(second, "side").commit()
    done = table.expire_snapshots(older_than=NOW_MS + 9 * HOUR_MS)
    assert done.snapshot_ids == [third]
    assert ids(table) == [first, second, last]
    assert table.scan(ref="kept").count() == 1
    with pytest.raises(ice.InvalidArgumentError, match="kept"):
        table.expire_snapshots(snapshot_ids=[first])


def test_files_of_a_snapshot_that_was_rolled_back_go_with_it(table: ice.Table, tmp_path: Path) -> None:
    *_, third, last = ids(table)
    files = {row["file_path"] for row in table.inspect.files().to_pylist()}
    table.manage_snapshots().rollback_to_snapshot(third).commit()
    kept = {row["file_path"] for row in table.inspect.files().to_pylist()}
    done = table.expire_snapshots(snapshot_ids=[last])
    assert done.snapshot_ids == [last]
    assert set(done.data_files) == files - kept
    assert (len(done.manifests), len(done.manifest_lists)) == (1, 1)
    assert not {Path(path).name for path in done.deleted_files} & names(tmp_path)
    assert table.scan().count() == 3


@pytest.mark.parametrize(("cleanup", "left"), [("metadata", 1), ("nothing", 3)])
def test_files_can_be_kept(table: ice.Table, tmp_path: Path, cleanup: str, left: int) -> None:
    *_, third, last = ids(table)
    lost = table.inspect.files().to_pylist()
    table.manage_snapshots().rollback_to_snapshot(third).commit()
    before = names(tmp_path)
    done = table.expire_snapshots(snapshot_ids=[last], cleanup=cleanup)  # type: ignore[arg-type]
    assert done.data_files == []
    assert len(done.deleted_files) == 3 - left
    assert len(before - names(tmp_path)) == 3 - left
    assert len(lost) == 4


def test_nothing_is_deleted_when_a_kept_snapshot_cannot_be_read(table: ice.Table, tmp_path: Path) -> None:
    *_, third, last = ids(table)
    table.manage_snapshots().rollback_to_snapshot(third).commit()
    kept = table.snapshot_by_id(third)
    assert kept is not None
    assert kept.manifest_list is not None
    Path(kept.manifest_list.removeprefix("file://")).write_bytes(b"damaged")
    before = names(tmp_path)
    with pytest.warns(RuntimeWarning, match="could not be read"):
        done = table.expire_snapshots(snapshot_ids=[last])
    assert (done.snapshot_ids, done.deleted_files, done.failures) == ([last], [], 1)
    assert before <= names(tmp_path)


def test_tables_that_share_files_keep_their_snapshots(table: ice.Table) -> None:
    table.update_properties({"gc.enabled": "false"})
    with pytest.raises(ice.InvalidArgumentError, match="gc.enabled"):
        table.expire_snapshots(older_than=NOW_MS + 9 * HOUR_MS)
    assert len(ids(table.refresh())) == 4


def test_nothing_to_expire_commits_nothing(table: ice.Table) -> None:
    location = table.metadata_location
    done = table.expire_snapshots(older_than=NOW_MS)
    assert (done.snapshot_ids, done.refs, done.deleted_files) == ([], [], [])
    assert table.refresh().metadata_location == location


def test_schemas_and_specs_without_a_snapshot_go_when_asked(table: ice.Table) -> None:
    with table.update_schema() as update:
        update.add_column("region", "string")
    with table.update_spec() as spec:
        spec.add_field("region")
    table.append(pa.table({"id": [9], "region": ["eu"]}))
    table.expire_snapshots(older_than=NOW_MS + 9 * HOUR_MS)
    assert (len(table.schemas()), len(table.specs())) == (2, 2)
    with table.update_spec() as spec:
        spec.add_field("bucket(4, id)")
    table.append(pa.table({"id": [10], "region": ["eu"]}))
    table.expire_snapshots(older_than=NOW_MS + 9 * HOUR_MS, clean_expired_metadata=True)
    assert len(table.schemas()) == 1
    # Manifests of the first two specs are still in the table.
    assert len(table.specs()) == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"retain_last": 0}, "at least one"),
        ({"cleanup": "some"}, "cleanup"),
        ({"older_than": "yesterday"}, "yesterday"),
        ({"snapshot_ids": [2**70]}, "snapshot_ids"),
    ],
)
def test_wrong_arguments_are_refused(table: ice.Table, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ice.IcefieldError, match=message):
        table.expire_snapshots(**arguments)  # type: ignore[arg-type]


def test_a_change_is_made_once(table: ice.Table) -> None:
    with table.maintenance.expire_snapshots() as expire:
        expire.by_id(ids(table)[0])
    assert len(ids(table)) == 3
    with pytest.raises(ice.InvalidArgumentError, match="already"):
        expire.commit()


@pytest.mark.parametrize("external", ["keep", "delete"])
def test_files_of_other_folders_stay_unless_asked_for(table: ice.Table, tmp_path: Path, external: str) -> None:
    elsewhere = tmp_path / "shared" / "a.parquet"
    elsewhere.parent.mkdir()
    pyarrow.parquet.write_table(pa.table({"id": [7]}), elsewhere)
    table.add_files([str(elsewhere)])
    table.delete("id = 7")
    # The snapshot that removed the file expires too.
    table.append(pa.table({"id": [8]}))
    change = table.maintenance.expire_snapshots().older_than(NOW_MS + 9 * HOUR_MS).retain_last(1).external(external)
    expected = [str(elsewhere)] if external == "keep" else []
    assert [path.removeprefix("file://") for path in change.dry_run().external_files] == expected
    done = change.commit()
    assert [path.removeprefix("file://") for path in done.external_files] == expected
    assert elsewhere.exists() == (external == "keep")
    assert len(done.deleted_files) > 4
    with pytest.raises(ice.InvalidArgumentError, match="external: expected 'keep' or 'delete'"):
        table.expire_snapshots(external="maybe")
