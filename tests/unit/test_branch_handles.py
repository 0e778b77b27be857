"""What a branch of a table is: every public name of a table reads and writes the branch there, or is refused.

The cases below name every public attribute of `icefield.Table`: a new one has to be put into one of them.
"""

from __future__ import annotations

import inspect
import pickle
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.sql import SqlCatalog
from icefield.distributed import RowRemover, TaskWriter
from icefield.micro_batches import StreamOffset
from icefield.table.branches import REFUSED, BranchTransaction, BranchWork

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64())})
#: The rows of the branch, beside which main has one.
OWN = {1, 2, 3}


def public(of: object) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    """Make a table with one row."""
    catalog = SqlCatalog("branches", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    made = catalog.create_table(
        "a.t", schema=ROWS.schema, partition_by="bucket(2, id)", properties={"format-version": "2"}
    )
    return made.append(ROWS.slice(2))


@pytest.fixture
def audit(table: ice.Table) -> Iterator[BranchWork]:
    """Make a branch whose rows are `OWN`."""
    with table.branch("audit") as work:
        yield work.append(ROWS.slice(0, 2))


def ids(rows: object) -> set[int]:
    return set(pa.table(rows)["id"].to_pylist())


def written(audit: BranchWork) -> ice.DataFile:
    (file, *_) = audit.scan("id = 1").plan_files()
    return file.file


def committed(audit: BranchWork) -> BranchWork:
    plan = audit.new_write()
    writer = TaskWriter(plan, audit.storage, ROWS.schema)
    writer.write(ROWS)
    audit.commit_files(plan, [writer.close()])
    return audit


def rows_removed(audit: BranchWork) -> BranchWork:
    plan = audit.new_row_change("delete", "id = 1")
    with RowRemover(plan, audit.storage) as remover:
        remover.remove(plan.tasks([])[0].rows(audit.storage))
    assert remover.written is not None
    audit.commit_rows(plan, [remover.written])
    return audit


def rewritten(audit: BranchWork) -> bool:
    old = written(audit)
    path = f"{audit.location()}/data/new.parquet"
    audit.storage.write(path, audit.storage.read(old.file_path))
    new = ice.DataFile(
        file_path=path,
        file_format="parquet",
        partition=list(old.partition),
        record_count=old.record_count,
        file_size_in_bytes=old.file_size_in_bytes,
    )
    audit.rewrite_files().delete_data_file(old).add_data_file(new).commit()
    return after(audit, audit) == OWN and written(audit).file_path == path


def streamed(audit: BranchWork) -> BranchWork:
    with audit.upsert_stream("id") as stream:
        stream.upsert(pa.table({"id": [4]}))
    return audit


def stream_of(audit: BranchWork) -> tuple[StreamOffset, StreamOffset]:
    stream = audit.micro_batches()
    begin = stream.initial()
    end = stream.latest(begin)
    assert end is not None
    return begin, end


def after(change: object, audit: BranchWork) -> set[int]:
    """Return the rows of the branch after a change; main must be as it was."""
    assert change is not None
    assert audit._table.scan().to_arrow()["id"].to_pylist() == [3]
    return ids(audit)


#: What reads the branch, and what it must answer.
READS: dict[str, Callable[[BranchWork], bool]] = {
    "scan": lambda audit: ids(audit.scan()) == OWN and audit.scan().filter("id > 1").select("id").count() == 2,
    "to_polars": lambda audit: set(audit.to_polars().collect()["id"].to_list()) == OWN,
    "inspect": lambda audit: (
        sum(audit.inspect.files()["record_count"].to_pylist()) == 3
        and audit.inspect.manifests().num_rows == 2
        and audit.inspect.entries().num_rows == audit.inspect.files().num_rows
        and sum(audit.inspect.partitions()["record_count"].to_pylist()) == 3
        and audit.inspect.stream("data_files").read_all().num_rows == audit.inspect.files().num_rows
        and len(audit.inspect.tasks("files", manifests=1)) == 2
        and audit.inspect.files(ref="main").num_rows == 1
        and pickle.loads(pickle.dumps(audit.inspect)).files().equals(audit.inspect.files())
    ),
    "incremental_append_scan": lambda audit: ids(audit.incremental_append_scan()) == OWN,
    "incremental_changelog_scan": lambda audit: ids(audit.incremental_changelog_scan()) == OWN,
    "micro_batches": lambda audit: ids(audit.micro_batches().scan(*stream_of(audit))) == OWN,
    "current_snapshot": lambda audit: audit.current_snapshot() == audit.snapshot_by_name("audit"),
}

#: Changes of rows and files, and the rows of the branch after them.
CHANGES: dict[str, Callable[[BranchWork], bool]] = {
    "append": lambda audit: after(audit.append(ROWS).append(pa.table({"id": [9]})), audit) == {*OWN, 9},
    "delete": lambda audit: after(audit.delete("id = 1"), audit) == {2, 3},
    "overwrite": lambda audit: after(audit.overwrite(ROWS.slice(0, 1)), audit) == {1},
    "update": lambda audit: after(audit.update({"id": 8}, "id = 1"), audit) == {8, 2, 3},
    "upsert": lambda audit: after(audit.upsert(pa.table({"id": [7]}), "id"), audit) == {*OWN, 7},
    "merge": lambda audit: after(audit.merge(ROWS, "id").when_matched_delete().execute(), audit) == set(),
    "dynamic_partition_overwrite": lambda audit: (
        1 in after(audit.dynamic_partition_overwrite(ROWS.slice(0, 1)), audit) != OWN
    ),
    "upsert_stream": lambda audit: after(streamed(audit), audit) == {*OWN, 4},
    "append_files": lambda audit: (
        after(audit.append_files([written(audit)]), audit) == OWN and audit.scan("id = 1").count() == 2
    ),
    "commit_files": lambda audit: after(committed(audit), audit) == OWN and audit.scan().count() == 6,
    "commit_rows": lambda audit: after(rows_removed(audit), audit) == {2, 3},
    "add_files": lambda audit: (
        after(audit.add_files([written(audit).file_path], check_duplicate_files=False), audit) == OWN
        and audit.scan("id = 1").count() == 2
    ),
    "update_snapshot": lambda audit: (
        after(audit.update_snapshot().fast_append().append_data_file(written(audit)).commit() or 1, audit) == OWN
        and audit.scan("id = 1").count() == 2
    ),
    "overwrite_files": lambda audit: (
        after(audit.overwrite_files().delete_data_file(written(audit)).commit() or 1, audit) < OWN
    ),
    "row_delta": lambda audit: (
        after(audit.row_delta().add_rows(written(audit)).commit() or 1, audit) == OWN
        and audit.scan("id = 1").count() == 2
    ),
    "rewrite_files": rewritten,
    "replace_partitions": lambda audit: (
        1 in after(audit.replace_partitions().append_data_file(written(audit)).commit() or 1, audit)
    ),
    "rewrite_manifests": lambda audit: (
        after(audit.rewrite_manifests().cluster_by("file_format").commit() or 1, audit) == OWN
        and audit.inspect.manifests().num_rows == 1
    ),
    "transaction": lambda audit: (
        after(audit.transaction().append(ROWS).append(pa.table({"id": [6]})).commit_transaction(), audit) == {*OWN, 6}
    ),
}

#: What is the same for all branches of a table.
OF_THE_TABLE = {
    "catalog", "format_version", "identifier", "last_partition_id", "last_sequence_number", "location", "metadata_log",
    "name_mapping", "properties", "refs", "schema", "schemas", "snapshot_by_id", "snapshot_by_name", "snapshots",
    "sort_order", "sort_orders", "spec", "specs", "storage", "table_uuid",
}  # fmt: skip

#: Changes of the table, and what only helps with changes.
AT_ONCE = {
    "commit_changes", "new_manifest_writer", "new_row_change", "new_write", "refresh", "resolve_commit",
    "update_properties", "update_schema", "update_sort_order", "update_spec", "update_statistics",
}  # fmt: skip


def test_every_name_of_a_table_is_known() -> None:
    kinds = [set(READS), set(CHANGES), OF_THE_TABLE, AT_ONCE, set(REFUSED), {"name"}]
    assert set().union(*kinds) == public(ice.Table)
    assert sum(map(len, kinds)) == len(public(ice.Table)), "a name is of one kind"
    assert public(BranchWork) == public(ice.Table) - set(REFUSED)


def test_verbs_have_the_parameters_of_tables() -> None:
    for name in sorted(public(BranchWork) & public(ice.Table) - {"name", "inspect"}):
        mine, other = getattr(BranchWork, name), getattr(ice.Table, name)
        if callable(mine):
            assert list(inspect.signature(mine).parameters) == list(inspect.signature(other).parameters), name


@pytest.mark.parametrize("name", READS)
def test_reads_are_of_the_branch(audit: BranchWork, name: str) -> None:
    if name == "to_polars":
        pytest.importorskip("polars")
    assert READS[name](audit)
    assert READS[name](pickle.loads(pickle.dumps(audit)))


@pytest.mark.parametrize("name", CHANGES)
def test_changes_are_of_the_branch(audit: BranchWork, name: str) -> None:
    assert CHANGES[name](audit)


@pytest.mark.parametrize("name", sorted(OF_THE_TABLE))
def test_what_is_of_the_table_is_the_same(audit: BranchWork, name: str) -> None:
    mine, other = getattr(audit, name), getattr(audit._table, name)
    if name == "storage":
        assert repr(mine) == repr(other)
    elif not callable(mine) or isinstance(mine, int):
        assert mine == other
    elif name.startswith("snapshot_by"):
        assert mine("audit" if name.endswith("name") else audit.refs()["audit"].snapshot_id) is not None
    else:
        assert mine() == other()


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_would_be_of_main_is_refused(audit: BranchWork, name: str) -> None:
    assert not hasattr(audit, name)
    with pytest.raises(ice.UnsupportedFeatureError, match=f"a branch of a table has no {name}: .*use the table itself"):
        getattr(audit, name)


def test_other_libraries_read_the_branch(audit: BranchWork, table: ice.Table) -> None:
    assert ids(audit) == OWN
    assert table.catalog is not None
    other = table.catalog.create_table("a.o", ROWS.schema)
    assert ids(other.append(audit).scan()) == OWN
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    assert set(pl.DataFrame(audit)["id"].to_list()) == OWN
    assert duckdb.sql("SELECT count(*) FROM audit").fetchall() == [(3,)]


@pytest.mark.parametrize(
    "read",
    [
        lambda audit: audit.scan(as_of="2100-01-01T00:00:00Z"),
        lambda audit: audit.inspect.files(as_of="2100-01-01T00:00:00Z"),
        lambda audit: audit.inspect.history(),
        lambda audit: audit.append(ROWS, branch="main"),
        lambda audit: audit.append(ROWS, None, "other"),
        lambda audit: audit.delete("id = 1", branch="main"),
        lambda audit: audit.update_snapshot(branch="main"),
        lambda audit: audit.transaction().append(ROWS, branch="main"),
        lambda audit: audit.upsert_stream("id", branch="main"),
        lambda audit: audit.transaction().manage_snapshots(),
    ],
)
def test_what_names_another_branch_or_a_time_is_refused(
    audit: BranchWork, read: Callable[[BranchWork], object]
) -> None:
    before = audit._table.refresh().metadata_location
    with pytest.raises((ice.InvalidArgumentError, ice.UnsupportedFeatureError), match="main|other"):
        read(audit)
    assert audit._table.refresh().metadata_location == before


def test_a_snapshot_or_reference_that_is_named_is_read(audit: BranchWork) -> None:
    assert audit.scan(ref="main").count() == 1
    assert audit.scan(snapshot_id=audit.refs()["main"].snapshot_id).count() == 1
    assert audit.incremental_append_scan(branch="main").count() == 1


def test_a_transaction_of_a_branch_ends_with_the_branch(audit: BranchWork) -> None:
    tx = audit.transaction()
    assert isinstance(tx, BranchTransaction)
    assert tx.commit_transaction() is audit
    assert typing.get_type_hints(BranchTransaction.manage_snapshots)["return"] is typing.NoReturn


def test_a_branch_whose_block_has_ended_is_not_read(table: ice.Table) -> None:
    with table.branch("done") as done:
        done.append(ROWS)
    for read in (done.scan, done.current_snapshot, lambda: done.inspect, lambda: pa.table(done)):
        with pytest.raises(ice.InvalidArgumentError, match="no branch 'done'"):
            read()


def test_a_table_without_snapshots_is_read_as_empty(table: ice.Table) -> None:
    assert table.catalog is not None
    empty = table.catalog.create_table("a.e", ROWS.schema)
    with empty.branch("first") as first:
        assert (first.scan().count(), first.current_snapshot(), first.inspect.files().num_rows) == (0, None, 0)
        assert first.append(ROWS).scan().count() == 3
        assert empty.scan().count() == 0


@pytest.mark.parametrize("change", ["append", "overwrite", "upsert", "delete", "update_snapshot", "add_files"])
def test_no_branch_is_not_main(table: ice.Table, change: str) -> None:
    given: dict[str, object] = {"append": ROWS, "overwrite": ROWS, "upsert": ROWS, "add_files": []}
    arguments = [given[change]] if change in given else []
    with pytest.raises(ice.InvalidArgumentError, match=r"got None; .*wap\.id.*stage_only"):
        getattr(table, change)(*arguments, branch=None)
