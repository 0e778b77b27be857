"""The surface for engines that distribute work: what is sent pickles, and nothing is seen before the one commit."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.distributed import Committed, InspectTask, ReadTask, Storage, TaskWriter, WritePlan, WrittenFiles
from icefield.errors import CommitFailedException, InvalidArgumentError, ValidationError

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table({"id": list(ids), "name": [f"n{number}" for number in ids]}, schema=SCHEMA)


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    catalog = ice.load_catalog("engines", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", SCHEMA)
    for first in (0, 10, 20):
        table.append(rows(first, 10))
    return table


def data_files(table: ice.Table) -> list[str]:
    return sorted(path for path, _ in table.storage.list(f"{table.location()}/data"))


def read(task: ReadTask, storage: Storage) -> list[int]:
    return task.rows(storage).to_pyarrow().read_all()["id"].to_pylist()


def write(plan: WritePlan, storage: Storage, task: int) -> WrittenFiles:
    with TaskWriter(plan, storage, SCHEMA, task=task) as writer:
        writer.write(rows(100 * task, 5))
    assert writer.written is not None
    return writer.written


def test_other_processes_read_and_write(table: ice.Table) -> None:
    tasks = table.scan("id >= 5").tasks(split_size=1)
    plan = table.new_write({"write.format.default": "orc"})
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = pool.map(read, tasks, [table.storage] * len(tasks))
        written = pool.map(write, [plan] * 2, [table.storage] * 2, [1, 2])
        assert sorted(number for part in found for number in part) == list(range(5, 30))
        files = list(written)
    assert [(one.file_count, one.row_count) for one in files] == [(1, 5), (1, 5)]
    assert table.refresh().scan().count() == 30
    done = table.commit_files(plan, files, {"job": "7"})
    snapshot = table.current_snapshot()
    assert done == Committed(snapshot.snapshot_id, made_before=False, rows=10, files_taken=True)
    assert snapshot.summary["icefield.write-id"] == plan.write_id
    assert table.scan("id >= 100").to_arrow().sort_by("id")["id"].to_pylist() == [*range(100, 105), *range(200, 205)]
    assert table.current_snapshot().summary["job"] == "7"
    assert table.scan("id >= 100").plan_files().to_arrow()["file_format"].unique().to_pylist() == ["orc"]
    assert all(plan.write_id in path for path in data_files(table) if path.endswith(".orc"))


def test_a_branch_is_committed_to(table: ice.Table) -> None:
    plan = table.new_write()
    table.commit_files(plan, [write(plan, table.storage, 1)], branch="b")
    assert (table.scan().count(), table.scan(ref="b").count()) == (30, 35)


@pytest.mark.parametrize("text", ["N = 'a'", "n = 1", "n > 0 AND N IS NOT NULL"])
def test_tasks_of_tables_whose_names_differ_in_case_alone(table: ice.Table, text: str) -> None:
    twins = pa.table({"n": pa.array([1, 2], pa.int64()), "N": ["a", None]})
    assert table.catalog is not None
    made = table.catalog.create_table("a.twins", twins.schema).append(twins)
    found = [
        row for task in made.scan(text).tasks() for row in task.rows(made.storage).to_pyarrow().read_all().to_pylist()
    ]
    assert found == [{"n": 1, "N": "a"}]
    again = pickle.loads(pickle.dumps(made.scan(text).tasks()))
    assert [row for task in again for row in task.rows(made.storage).to_pyarrow().read_all().to_pylist()] == found


def test_a_plan_cuts_some_of_its_files_and_a_limit_is_refused(table: ice.Table) -> None:
    plan = table.scan().plan_files()
    one = plan.tasks(files=[1])
    assert [len(read(task, table.storage)) for task in one] == [10]
    assert len(plan.tasks(1)) == 3
    assert plan.tasks(files=[]) == []
    with pytest.raises(InvalidArgumentError, match="a scan with a limit cannot be split into tasks"):
        table.scan(limit=3).tasks()


def test_tasks_of_a_metadata_table_are_all_its_rows(table: ice.Table) -> None:
    whole = table.inspect.stream("files", row_filter="record_count > 5", selected_fields=("file_path", "content"))
    tasks: list[InspectTask] = pickle.loads(
        pickle.dumps(
            table.inspect.tasks(
                "files", row_filter="record_count > 5", selected_fields=("file_path", "content"), manifests=1
            )
        )
    )
    assert len(tasks) == 3
    parts = [task.rows(table.storage).to_pyarrow().read_all() for task in tasks]
    assert set(tasks[0].column_names) == {"file_path", "content"}
    assert pa.concat_tables(parts).sort_by("file_path") == whole.read_all().sort_by("file_path")
    with pytest.raises(InvalidArgumentError, match="expected a positive number, got 0"):
        table.inspect.tasks("files", manifests=0)


def test_what_failed_leaves_nothing(table: ice.Table) -> None:
    before = data_files(table)
    plan = table.new_write()
    with pytest.raises(RuntimeError, match="stop"), TaskWriter(plan, table.storage, SCHEMA) as writer:  # noqa: PT012
        writer.write(rows(0, 5))
        raise RuntimeError("stop")
    with pytest.raises(InvalidArgumentError, match="closed"):
        writer.close()
    assert (writer.written, data_files(table)) == (None, before)
    files = write(plan, table.storage, 1)
    unknown = write(pickle.loads(pickle.dumps(plan)), table.storage, 2)
    assert len(data_files(table)) == len(before) + 2
    assert plan.discard(table.storage, [files]) == (0, [])
    assert len(data_files(table)) == len(before) + unknown.file_count
    assert plan.discard(table.storage, search=True).number == 0
    assert data_files(table) == before


def test_columns_that_do_not_fit_are_refused_before_any_task(table: ice.Table) -> None:
    with pytest.raises(ValidationError, match="name"):
        table.new_write().check(table.storage, pa.schema([("id", pa.int64()), ("name", pa.int32())]))


def test_the_answer_of_a_commit_says_whose_the_files_are(table: ice.Table) -> None:
    before = data_files(table)
    first, second = table.new_write(), table.new_write()
    taken, other = [write(first, table.storage, 1)], [write(second, table.storage, 1)]
    done = table.commit_files(first, taken, idempotency_key="k")
    assert (done.made_before, done.files_taken, done.rows) == (False, True, 5)
    # The answer was lost, and the same files come again, perhaps from another process.
    for plan in (first, pickle.loads(pickle.dumps(first))):
        again = table.commit_files(plan, taken, idempotency_key="k")
        assert again == Committed(done.snapshot_id, made_before=True, rows=0, files_taken=True)
        with pytest.raises(InvalidArgumentError, match=f"in snapshot {done.snapshot_id}: they cannot be discarded"):
            plan.discard(table.storage, taken)
    done = table.commit_files(second, other, idempotency_key="k")
    assert (done.made_before, done.files_taken, done.rows) == (True, False, 0)
    assert len(data_files(table)) == len(before) + 2
    assert second.discard(table.storage, other) == (0, [])
    assert len(data_files(table)) == len(before) + 1
    assert table.scan().count() == 35


def test_what_lost_attempts_left_is_deleted(table: ice.Table) -> None:
    plan = table.new_write()
    written = []
    for attempt in (0, 1):
        with TaskWriter(plan, table.storage, SCHEMA, task=1, attempt=attempt) as writer:
            writer.write(rows(100, 5))
        written.append(writer.written)
    before = len(data_files(table))
    table.commit_files(plan, written[1:])
    assert plan.discard_lost(table.storage, written[1:]) == (0, [])
    assert len(data_files(table)) == before - 1
    assert table.scan().to_arrow().num_rows == 35


def test_a_write_adds_the_columns_of_its_rows(table: ice.Table) -> None:
    wider = pa.schema([("id", pa.int64()), ("note", pa.string())])
    plan = table.new_write(widened_by=wider)
    assert table.schema().find_column_name(3) is None
    with TaskWriter(plan, table.storage, wider) as writer:
        writer.write(pa.table({"id": [100], "note": ["new"]}, schema=wider))
    assert writer.written is not None
    table.commit_files(plan, [writer.written])
    assert table.scan("id >= 29").to_arrow().sort_by("id").to_pylist() == [
        {"id": 29, "name": "n29", "note": None},
        {"id": 100, "name": None, "note": "new"},
    ]
    # Another client has changed the columns meanwhile.
    stale = table.new_write(widened_by=wider.append(pa.field("more", pa.int32())))
    with TaskWriter(stale, table.storage, wider) as writer:
        writer.write(pa.table({"id": [101], "note": ["x"]}, schema=wider))
    table.update_schema().add_column("between", "int").commit()
    assert writer.written is not None
    with pytest.raises(CommitFailedException):
        table.commit_files(stale, [writer.written])
    assert stale.discard(table.storage, [writer.written]) == (0, [])


def test_a_dry_run_writes_nothing(table: ice.Table) -> None:
    before = data_files(table)
    with TaskWriter(table.new_write(), table.storage, SCHEMA, dry_run=True, memory_limit=1) as writer:
        writer.write(rows(0, 1000))
    assert writer.written is not None
    assert (writer.written.row_count, writer.written.file_count) == (1000, 1)
    assert data_files(table) == before
