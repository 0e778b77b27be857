"""Plans as sequences of tasks: a data file, the deletes that apply to it, and what is left of the filter."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.expressions import AlwaysTrue, EqualTo
from icefield.scan import FileScanTask

ROWS = pa.table({"id": pa.array(range(6), pa.int64()), "city": ["Oslo", "Rome", "Lima"] * 2})


def make(folder: Path, version: int = 2, **options: Any) -> ice.Table:
    catalog = ice.load_catalog("tasks", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    catalog.create_namespace("a")
    return catalog.create_table("a.t", ROWS.schema, properties={"format-version": str(version)}, **options)


def test_a_plan_is_a_sequence(tmp_path: Path) -> None:
    plan = make(tmp_path, partition_by="city").append(ROWS).scan().plan_files()
    assert isinstance(plan, Sequence)
    tasks = list(plan)
    assert (len(plan), len(tasks)) == (3, 3)
    assert [plan[place] for place in range(3)] == tasks
    assert [plan[-1], *plan[1:3], *plan[::-2]] == [tasks[2], *tasks[1:3], *tasks[::-2]]
    assert [task.file.file_path for task in plan] == plan.to_arrow()["file_path"].to_pylist()
    assert plan.index(tasks[1]) == 1
    for beyond in (3, -4):
        with pytest.raises(IndexError):
            plan[beyond]


def test_a_plan_without_files_has_no_tasks(tmp_path: Path) -> None:
    table = make(tmp_path)
    assert list(table.scan().plan_files()) == []
    assert list(table.append(ROWS).scan("id > 100").plan_files()) == []


def test_tasks_are_made_when_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(*arguments: Any) -> FileScanTask:
        made.append(arguments)
        return FileScanTask(*arguments)

    monkeypatch.setattr("icefield.scan.plan.FileScanTask", counted)
    plan = make(tmp_path, partition_by="city").append(ROWS).scan().plan_files()
    assert (len(plan), plan.to_arrow().num_rows, len(made)) == (3, 3, 0)
    next(iter(plan))
    assert len(made) == 1
    _ = plan[2]
    assert len(made) == 2


def test_partitions_are_those_of_the_spec_of_the_file(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by=["city", "bucket(4, id)"]).append(ROWS.slice(0, 1))
    with table.update_spec() as update:
        update.remove_field("city").add_field("city", "truncate[1]", "letter")
    table.append(ROWS.slice(1, 1))
    with table.update_spec() as update:
        update.remove_field("id_bucket").remove_field("letter")
    table.append(ROWS.slice(2, 1))
    found = {task.file.spec_id: task.file.partition for task in table.scan().plan_files()}
    bucket = ice.transforms.bucket(4).transform("long")
    assert found == {0: ("Oslo", bucket(0)), 1: (bucket(1), "R"), 2: ()}


def test_what_is_left_of_the_filter(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by="city").append(ROWS)
    (task,) = table.scan("city = 'Rome' AND id = 1").plan_files()
    assert task.residual == EqualTo("id", 1)
    assert isinstance(task.residual, EqualTo)
    assert {task.residual for task in table.scan("city != 'Rome'").plan_files()} == {AlwaysTrue()}


@pytest.mark.parametrize("version", [2, 3])
def test_deletes_of_a_file(tmp_path: Path, version: int) -> None:
    table = make(tmp_path, version, partition_by="city").append(ROWS)
    table.delete("id = 1", mode="merge-on-read")
    marked = [task for task in table.scan().plan_files() if task.delete_files]
    ((deletes,),) = [task.delete_files for task in marked]
    assert marked[0].file.partition == deletes.partition == ("Rome",)
    assert (deletes.content, deletes.file_format) == ("position_deletes", "parquet" if version == 2 else "puffin")
    assert deletes.referenced_data_file == marked[0].file.file_path
    assert (deletes.record_count, deletes.spec_id) == (1, 0)
    assert deletes.file_size_in_bytes == Path(deletes.file_path.removeprefix("file://")).stat().st_size


def test_metrics_are_there_where_they_are_asked_for(tmp_path: Path) -> None:
    table = make(tmp_path).append(ROWS)
    (without,) = table.scan().plan_files()
    (task,) = table.scan().plan_files(metrics=True)
    (some,) = table.scan().plan_files(metrics=["id"])
    assert without.file.lower_bounds is None
    assert task.file.value_counts == {1: 6, 2: 6}
    assert task.file.upper_bounds == {1: ice.values.to_bytes(5, "long"), 2: b"Rome"}
    assert some.file.value_counts == {1: 6}
    assert (task.file.record_count, task.file.content) == (6, "data")


def test_tasks_pickle_and_their_files_are_files_of_the_table(tmp_path: Path) -> None:
    table = make(tmp_path, partition_by="city").append(ROWS)
    plan = table.scan("city = 'Lima'").plan_files()
    (task,) = pickle.loads(pickle.dumps(plan))
    assert pickle.loads(pickle.dumps(task)) == task == plan[0]
    with table.update_snapshot().overwrite() as change:
        change.delete_data_file(task.file)
    assert table.scan().count() == 4


def test_tasks_of_changes(tmp_path: Path) -> None:
    table = make(tmp_path).append(ROWS)
    table.append(ROWS)
    start = table.snapshots()[0].snapshot_id
    scan = table.incremental_append_scan(from_snapshot_id_exclusive=start)
    assert [task.file.record_count for task in scan.plan_files()] == [6]
    changes = table.incremental_changelog_scan(from_snapshot_id_exclusive=start)
    assert [task.file.record_count for task in changes.plan_files()] == [6]
