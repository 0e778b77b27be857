"""Compactions by executors: the groups of the driver's, the same rows, and no more of what fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext

import icefield as ice
import icefield.spark as ice_spark
from icefield.spark.changing import compacting

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.table.maintenance.compacting import CompactedFiles

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", pa.string()), ("s", pa.string())])
ALL = {"rewrite-all": True}
PARTIAL = {**ALL, "partial-progress.enabled": True, "remove-dangling-deletes": True}


@pytest.fixture
def table(catalog: ice.Catalog) -> ice.Table:
    """Make a table of three partitions with two files each, and with deleted rows in two of them."""
    made = catalog.create_table("db.t", SCHEMA, partition_by="p", properties={"format-version": "3"})
    for first in (0, 30):
        ids = range(first, first + 30)
        made.append(pa.table({"id": ids, "p": ["abc"[n % 3] for n in ids], "s": [f"{-n:04}" for n in ids]}, SCHEMA))
    made.delete("id in (0, 31)", mode="merge-on-read")
    return made


def content(table: ice.Table) -> list[dict[str, Any]]:
    rows: pa.Table = table.refresh().scan(selected_fields=("id", "p", "s", "_row_id")).to_arrow()
    found: list[dict[str, Any]] = rows.sort_by("id").to_pylist()
    return found


def counts(done: CompactedFiles) -> tuple[int, ...]:
    return (
        done.groups,
        done.rewritten_data_files_count,
        done.added_data_files_count,
        done.rewritten_bytes_count,
        done.failed_data_files_count,
        done.removed_delete_files_count,
    )


def damage(table: ice.Table, partition: str) -> None:
    for file in table.scan(row_filter=f"p = '{partition}'").plan_files().files:
        Path(file["file_path"].removeprefix("file://")).write_bytes(b"PAR1 no Parquet PAR1")


CALLS: dict[str, tuple[dict[str, Any], int]] = {
    "all groups in one commit": ({"options": ALL}, 1),
    "a filter, and one group at a time": (
        {"where": "p <> 'a'", "options": {**ALL, "max-concurrent-file-group-rewrites": 1}},
        1,
    ),
    "sorted": ({"sort_order": "s desc", "options": ALL}, 1),
    "along a curve": ({"sort_order": ["zorder(id, s)"], "options": ALL}, 1),
    "a commit for each group": ({"options": PARTIAL}, 3),
    "two groups of a commit": ({"options": {**PARTIAL, "partial-progress.max-commits": 2}}, 2),
    "nothing to do": ({"options": {"min-input-files": 9, "delete-ratio-threshold": 1.0}}, 0),
}


@pytest.mark.parametrize(("call", "commits"), CALLS.values(), ids=CALLS)
def test_executors_do_what_the_driver_plans(
    spark: SparkSession, table: ice.Table, call: dict[str, Any], commits: int
) -> None:
    before, planned, snapshots = content(table), table.maintenance.compact(**call, dry_run=True), len(table.snapshots())
    assert counts(ice_spark.compact(spark, table, **call, dry_run=True)) == counts(planned)
    assert len(table.refresh().snapshots()) == snapshots
    told: list[int] = []
    done = ice_spark.compact(spark, table, **call, on_group=lambda group: told.append(group.number))
    assert counts(done) == counts(planned)
    assert content(table) == before
    assert sorted(told) == list(range(planned.groups))
    assert len(done.snapshot_ids) == commits == len(table.snapshots()) - snapshots
    if "sort_order" in call and "s desc" in call["sort_order"]:
        for file in table.scan().plan_files().files:
            values = pq.read_table(file["file_path"].removeprefix("file://"))["s"].to_pylist()
            assert values == sorted(values, reverse=True)


def test_call_in_sql_runs_a_job_for_each_group(
    spark: SparkSession, catalog: ice.Catalog, table: ice.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []
    run = compacting._Job.run

    def noted(job: compacting._Job, number: int, stopped: Any) -> bytes | None:
        ran.append(number)
        return run(job, number, stopped)

    monkeypatch.setattr(compacting._Job, "run", noted)
    before, planned = content(table), table.maintenance.compact("p > 'a'", options=ALL, dry_run=True)
    with ice_spark.session(spark, {"c": catalog}) as session:
        given = "table => 'db.t', where => \"P > 'a'\", options => map('rewrite-all', 'true')"
        called = session.sql(f"CALL c.system.rewrite_data_files({given})")
    assert [tuple(row) for row in called.collect()] == [counts(planned)[1:]]
    assert sorted(ran) == [0, 1]
    assert content(table) == before


def rewritten(table: ice.Table) -> list[str]:
    return [path for path, _ in table.storage.list(f"{table.location()}/data") if "rewritten" in path]


def first_attempts(
    task: bytes, storage: Any, run: int, memory_limit: int | None, own: Callable[..., Any] = compacting._function_of
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Fail in the first attempt, when all files have been written."""
    rewrite = own(task, storage, run, memory_limit)

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        done = list(rewrite(batches))
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0:
            raise KeyError("the first attempt")
        yield from done

    return fail


def test_a_task_that_runs_again_doubles_nothing(
    spark: SparkSession, table: ice.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = content(table)
    monkeypatch.setattr(compacting, "_function_of", first_attempts)
    done = ice_spark.compact(spark, table, options=ALL)
    assert done.added_data_files_count == len(table.scan().plan_files()) == 3
    assert content(table) == before
    assert len(rewritten(table)) == 3


def test_a_failed_group_ends_a_compaction_or_is_left_out(spark: SparkSession, table: ice.Table) -> None:
    damage(table, "b")
    snapshots = len(table.snapshots())
    with pytest.raises(ice.errors.CorruptDataError):
        ice_spark.compact(spark, table, options=ALL)
    assert len(table.refresh().snapshots()) == snapshots
    assert rewritten(table) == []
    none = {**PARTIAL, "partial-progress.max-failed-commits": 0}
    with pytest.raises(ice.errors.ValidationException, match="1 of 1 commits failed, and at most 0 may"):
        ice_spark.compact(spark, table, "p = 'b'", options=none)
    done = ice_spark.compact(spark, table, options=PARTIAL)
    assert (done.groups, done.rewritten_data_files_count, done.failed_data_files_count) == (3, 4, 2)
    assert len(done.failures) == 1
    assert "group 1: " in done.failures[0]
    assert len(rewritten(table)) == 2
    assert len(table.refresh().snapshots()) > snapshots


def test_deletes_by_others_are_conflicts(spark: SparkSession, catalog: ice.Catalog, table: ice.Table) -> None:
    other = catalog.load_table("db.t")

    def meanwhile(group: Any) -> None:
        if group.number == 0:
            other.delete("id = 3", mode="merge-on-read")

    with pytest.raises(ice.errors.ValidationException):
        ice_spark.compact(spark, table, options=ALL, on_group=meanwhile)
    assert rewritten(table) == []
    assert 3 not in [row["id"] for row in content(table)]


def test_a_key_makes_it_once(spark: SparkSession, table: ice.Table) -> None:
    with pytest.raises(ice.errors.InvalidArgumentError, match="idempotency_key and partial-progress"):
        ice_spark.compact(spark, table, options=PARTIAL, idempotency_key="k")
    assert not ice_spark.compact(spark, table, options=ALL, idempotency_key="k").made_before
    snapshots = len(table.snapshots())
    assert ice_spark.compact(spark, table, options=ALL, idempotency_key="k").made_before
    assert len(table.refresh().snapshots()) == snapshots
