"""Incremental scans: what snapshots appended, and the changelog of all that they added and removed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError


def rows(first: int, last: int) -> pa.Table:
    """Make rows with these ids, two parities apart."""
    ids = list(range(first, last))
    return pa.table({"id": ids, "s": [f"s{number % 2}" for number in ids]})


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    """Make a table of four appends of ten rows, a tag on the second, and a branch from the third with one more."""
    catalog = ice.load_catalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", schema=rows(0, 1).schema, partition_by=["s"])
    for number in range(3):
        made.append(rows(10 * number, 10 * number + 10))
    snapshots = made.snapshots()
    made.manage_snapshots().create_tag(snapshots[1].snapshot_id, "second").commit()
    made.manage_snapshots().create_branch(snapshots[2].snapshot_id, "side").commit()
    made.append(rows(30, 40))
    return made.append(rows(90, 95), branch="side")


def ids(scan: ice.incremental.IncrementalScan) -> list[int]:
    """Read the ids, sorted."""
    return sorted(scan.to_arrow()["id"].to_pylist())


def test_ranges_of_appends(table: ice.Table) -> None:
    made = [snapshot.snapshot_id for snapshot in table.snapshots()]
    read = table.incremental_append_scan
    assert ids(read()) == list(range(40))
    assert ids(read(from_snapshot_id_exclusive=made[0])) == list(range(10, 40))
    assert ids(read(from_snapshot_id_inclusive=made[0])) == list(range(40))
    assert ids(read(from_snapshot_id_exclusive=made[0], to_snapshot_id_inclusive=made[2])) == list(range(10, 30))
    assert ids(read(from_snapshot_id_exclusive="second")) == list(range(20, 40))
    assert ids(read(from_snapshot_id_inclusive="second", to_snapshot_id_inclusive="second")) == list(range(10, 20))
    assert ids(read(from_snapshot_id_exclusive="second", branch="side")) == [*range(20, 30), *range(90, 95)]
    moved = read().from_snapshot_id_inclusive(made[1]).to_snapshot_id_inclusive(made[1])
    assert (ids(moved), moved.snapshot_ids) == (list(range(10, 20)), [made[1]])
    assert ids(read().from_snapshot_id_exclusive(made[2]).use_branch("side")) == list(range(90, 95))


def test_appends_are_scans(table: ice.Table) -> None:
    scan = table.incremental_append_scan(
        from_snapshot_id_exclusive="second", row_filter="s = 's1'", selected_fields=("id",)
    )
    assert scan.projection().column_names == scan.to_arrow().column_names == ["id"]
    assert ids(scan) == list(range(21, 40, 2))
    assert (scan.count(), len(scan.plan_files())) == (10, 2)
    assert scan.plan_batches().read_all().equals(scan.plan_files().to_arrow())
    assert ids(scan.filter("id > 30")) == list(range(31, 40, 2))
    assert table.incremental_append_scan(limit=3).to_arrow().num_rows == 3
    assert "appends of 2 snapshots" in scan.explain()
    assert set(scan.plan_tasks()["file_path"].to_pylist()) == {file["file_path"] for file in scan.plan_files().files}
    # The second time it comes from the cache of manifests.
    assert ids(scan) == list(range(21, 40, 2))


def test_wrong_ranges_are_told_at_once(table: ice.Table) -> None:
    made = [snapshot.snapshot_id for snapshot in table.snapshots()]
    for read in (table.incremental_append_scan, table.incremental_changelog_scan):
        for message, arguments in (
            ("not a parent ancestor", {"from_snapshot_id_exclusive": made[3]}),
            ("not a parent ancestor", {"from_snapshot_id_exclusive": 1}),
            ("cannot find the starting", {"from_snapshot_id_inclusive": 1}),
            ("not an ancestor", {"from_snapshot_id_inclusive": made[4]}),
            ("cannot find the end", {"to_snapshot_id_inclusive": 1}),
            ("not on the branch", {"to_snapshot_id_inclusive": made[3], "branch": "side"}),
            ("no branch", {"branch": "second"}),
            ("no tag", {"from_snapshot_id_exclusive": "side"}),
            (
                "pass only one of from_snapshot_id_exclusive and",
                {"from_snapshot_id_exclusive": 1, "from_snapshot_id_inclusive": 1},
            ),
            ("column", {"selected_fields": ("none",)}),
            ("column", {"row_filter": "none = 1"}),
        ):
            with pytest.raises(InvalidArgumentError, match=message):
                read(**arguments)


def test_a_changelog_tells_of_each_row(table: ice.Table) -> None:
    made = [snapshot.snapshot_id for snapshot in table.snapshots()]
    scan = table.incremental_changelog_scan(from_snapshot_id_exclusive=made[0])
    assert scan.projection().column_names == ["id", "s", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    found = scan.to_arrow()
    assert found.column_names == scan.projection().column_names
    told = {row["id"]: tuple(row.values())[2:] for row in found.to_pylist()}
    assert told == {number: ("INSERT", number // 10 - 1, made[number // 10]) for number in range(10, 40)}
    assert scan.count() == 30
    plan = scan.plan_files().to_arrow()
    assert plan.column_names[-3:] == ["operation", "change_ordinal", "commit_snapshot_id"]
    assert plan["change_ordinal"].to_pylist() == [0, 0, 1, 1, 2, 2]
    assert scan.plan_batches().read_all().combine_chunks().to_pylist() == plan.to_pylist()
    some = scan.select("_commit_snapshot_id", "id").filter("id = 11").to_arrow()
    assert some.to_pylist() == [{"_commit_snapshot_id": made[1], "id": 11}]
    assert scan.select("_change_ordinal").to_arrow().num_rows == 30


def test_an_empty_table_has_no_changes(tmp_path: Path) -> None:
    catalog = ice.load_catalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", schema=rows(0, 1).schema)
    for scan in (made.incremental_append_scan(), made.incremental_changelog_scan()):
        assert (scan.to_arrow().num_rows, scan.count(), len(scan.plan_files()), scan.snapshot_ids) == (0, 0, 0, [])
    with pytest.raises(InvalidArgumentError, match="no current snapshot"):
        made.incremental_append_scan(from_snapshot_id_exclusive=1)


def test_a_column_of_the_changelog_s_name_is_refused(tmp_path: Path) -> None:
    catalog = ice.load_catalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", schema=pa.schema([("_change_type", pa.string())]))
    with pytest.raises(InvalidArgumentError, match="_change_type"):
        made.incremental_changelog_scan()
