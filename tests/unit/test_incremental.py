"""Incremental scans: what snapshots appended, and the changelog of all that they added and removed."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError
from worlds.golden import open_table


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


def test_a_scan_tells_the_ids_of_its_range(table: ice.Table) -> None:
    made = [snapshot.snapshot_id for snapshot in table.snapshots()]
    for scan in (table.incremental_append_scan(), table.incremental_changelog_scan()):
        assert (scan.from_snapshot_id, scan.from_snapshot_inclusive, scan.to_snapshot_id) == (None, False, None)
        after = scan.from_snapshot_id_exclusive(made[0]).to_snapshot_id_inclusive(made[2])
        assert (after.from_snapshot_id, after.from_snapshot_inclusive, after.to_snapshot_id) == (
            made[0],
            False,
            made[2],
        )
        named = scan.from_snapshot_id_inclusive("second").to_snapshot_id_inclusive("second")
        assert (named.from_snapshot_id, named.from_snapshot_inclusive, named.to_snapshot_id) == (made[1], True, made[1])
    # A tag that is dropped later is not read from metadata that lack it.
    begun = table.incremental_append_scan(from_snapshot_id_exclusive="second")
    table.manage_snapshots().remove_tag("second").commit()
    assert begun.from_snapshot_id == made[1]


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


@pytest.fixture
def ledger(tmp_path: Path) -> ice.Table:
    """Make a table without delete files: copies of rows, inserted and inserted again."""
    catalog = ice.load_catalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    made = catalog.create_table("db.l", schema=rows(0, 1).schema)
    return made.append(rows(0, 3)).append(rows(2, 5))


def test_options_of_a_changelog_that_cannot_be(ledger: ice.Table) -> None:
    read = ledger.incremental_changelog_scan
    for message, arguments in (
        ("no identifier fields", {"compute_updates": True}),
        ("missing", {"identifier_columns": ["missing"]}),
        ("no identifier columns", {"identifier_columns": []}),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            read(**arguments)
    # As in Java, identifier columns alone do not matter where updates are not computed.
    assert read(identifier_columns=["id"], compute_updates=False).to_arrow().num_rows == 6


def test_compared_rows_of_a_changelog(ledger: ice.Table) -> None:
    read = ledger.incremental_changelog_scan
    for options in (
        {"remove_carryovers": True},
        {"net_changes": True},
        {"identifier_columns": "id"},
        {"identifier_columns": ("s", "id"), "net_changes": True},
    ):
        scan = read(row_filter="id > 1", **options)
        found = scan.to_arrow()
        assert found.column_names == scan.projection().column_names
        assert sorted(found["id"].to_pylist()) == [2, 2, 3, 4]
        assert set(found["_change_type"].to_pylist()) == {"INSERT"}
        assert scan.count() == 4
        assert scan.to_arrow_batch_reader().read_all().num_rows == len(scan.to_pandas()) == 4
        assert scan.select("_change_type", "id").to_arrow().column_names == ["_change_type", "id"]
        assert pickle.loads(pickle.dumps(scan)).count() == 4
        assert scan.bounds("id").reason is not None
        assert read(limit=1, **options).to_arrow().num_rows == 1
        with pytest.raises(InvalidArgumentError, match="cannot be cut into tasks"):
            scan.tasks()


#: Tables that Java wrote, with delete files of each kind.
DELETED = [
    "del_mixed",
    "del_pos_partition",
    "del_eq_basic",
    "del_eq_partitioned",
    "dv_basic",
    "dv_equality",
    "v1_to_v2",
]


@pytest.mark.parametrize("name", DELETED)
def test_rows_before_and_changes_are_the_rows_after(name: str, tmp_path: Path) -> None:
    table = open_table(name, tmp_path)
    snapshots = table.snapshots()
    states = [Counter[str]()]
    for snapshot in snapshots:
        found = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
        states.append(Counter(repr(tuple(row.values())) for row in found.to_pylist()))
    read = table.incremental_changelog_scan
    deleted = 0
    for place, snapshot in enumerate(snapshots):
        for first in range(place + 1):
            span = {
                "from_snapshot_id_inclusive": snapshots[first].snapshot_id,
                "to_snapshot_id_inclusive": snapshot.snapshot_id,
            }
            scan = read(**span)
            changes = scan.to_arrow().to_pylist()
            assert replayed(states[first], changes) == states[place + 1]
            net = read(net_changes=True, **span).to_arrow().to_pylist()
            assert replayed(states[first], net) == states[place + 1]
            differ = (states[first] - states[place + 1]) + (states[place + 1] - states[first])
            assert len(net) == differ.total()
            assert scan.count() == len(changes)
            tasks = pickle.loads(pickle.dumps(scan.tasks(split_size=300, open_file_cost=1)))
            assert sum(pa.table(task.rows(scan.storage)).num_rows for task in tasks) == len(changes)
            deleted += sum(bool(file["deleted_by"]) for file in scan.plan_files().files)
    assert deleted > 0


def replayed(state: Counter[str], changes: list[dict[str, object]]) -> Counter[str]:
    """Give the rows after some changes."""
    after = Counter(state)
    for row in changes:
        *values, change_type, _, _ = row.values()
        after[repr(tuple(values))] += 1 if change_type == "INSERT" else -1
    assert min(after.values(), default=0) >= 0
    return +after


@pytest.mark.parametrize("name", ["v3_lineage_cow", "v3_lineage_mor"])
def test_updates_are_paired_by_row_ids(name: str, tmp_path: Path) -> None:
    """Java keeps the row ids of the rows that it updates, and ids of rows are unique in these tables."""
    read = open_table(name, tmp_path).incremental_changelog_scan
    for options in ({}, {"net_changes": True}):
        by_row_id = read(compute_updates=True, **options).to_arrow().to_pylist()
        by_column = read(identifier_columns=["id"], **options).to_arrow().to_pylist()
        assert Counter(map(str, by_row_id)) == Counter(map(str, by_column))
        assert options or {"UPDATE_BEFORE", "UPDATE_AFTER"} < {row["_change_type"] for row in by_row_id}
