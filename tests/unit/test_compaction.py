"""Compaction: which files are rewritten, to how many, in which order, and beside which other commits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.distributed import rewrite_files
from icefield.table.maintenance.compacting import CompactedFiles, CompactedGroup

SCHEMA = pa.schema({"id": pa.int64(), "p": pa.int32(), "s": pa.string()})
#: Every file is too small, and groups have no minimum.
ALL = {"rewrite-all": True}


def rows(first: int, last: int, p: int = 0) -> pa.Table:
    ids = list(range(first, last))
    return pa.table([ids, [p] * len(ids), [f"s{n * 7 % 13}" for n in ids]], SCHEMA)


@pytest.fixture
def catalog(tmp_path: Path) -> ice.catalog.Catalog:
    made = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    made.create_namespace("a")
    return made


def table_of(catalog: ice.catalog.Catalog, files: int = 4, **settings: Any) -> ice.Table:
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read", **settings.pop("properties", {})}
    table = catalog.create_table("a.t", SCHEMA, properties=properties, **settings)
    for number in range(files):
        table.append(rows(number * 10, number * 10 + 10, number % 2))
    return table


def content(table: ice.Table) -> list[dict[str, Any]]:
    columns = [name for name in ("id", "p", "s") if name in table.schema().column_names]
    lineage = ["_row_id", "_last_updated_sequence_number"] if table.format_version > 2 else []
    return table.scan(selected_fields=(*columns, *lineage)).to_arrow().sort_by("id").to_pylist()


def counts(done: CompactedFiles) -> tuple[int, int, int, int]:
    return (
        done.rewritten_data_files_count,
        done.added_data_files_count,
        done.removed_delete_files_count,
        done.groups,
    )


#: Options, and the numbers of replaced files, new files, removed delete files and groups. The table has four files of
#: ten rows, two in each of two partitions; four rows of the first are deleted by a vector.
CASES: list[tuple[dict[str, object], tuple[int, int, int, int]]] = [
    ({}, (2, 1, 1, 1)),
    ({"delete-ratio-threshold": 0.5}, (0, 0, 0, 0)),
    ({"delete-ratio-threshold": 0.5, "delete-file-threshold": 1}, (2, 1, 1, 1)),
    ({"min-input-files": 2, "delete-ratio-threshold": 1}, (4, 2, 1, 2)),
    ({"rewrite-all": "true"}, (4, 2, 1, 2)),
    ({"rewrite-all": True, "max-file-group-input-files": 1}, (4, 4, 1, 4)),
    ({"rewrite-all": True, "max-file-group-size-bytes": 1}, (4, 4, 1, 4)),
    ({"rewrite-all": True, "max-files-to-rewrite": 3}, (3, 2, 0, 2)),
    ({"rewrite-all": True, "partial-progress.enabled": True}, (4, 2, 1, 2)),
    ({"target-file-size-bytes": 1 << 20, "min-file-size-bytes": 1}, (1, 1, 1, 1)),
]


@pytest.mark.parametrize(("options", "expected"), CASES, ids=[str(options) for options, _ in CASES])
def test_files_are_chosen_by_sizes_and_deletes(
    catalog: ice.catalog.Catalog, options: dict[str, object], expected: tuple[int, int, int, int]
) -> None:
    table = table_of(catalog, partition_by="p")
    table.delete("id < 4")
    before = content(table)
    planned = table.maintenance.compact(options=options, dry_run=True)
    assert not planned.snapshot_ids
    assert len(table.refresh().snapshots()) == 5
    told: list[CompactedGroup] = []
    done = table.maintenance.compact(options=options, on_group=told.append)
    assert counts(done) == counts(planned) == expected, done
    assert sum(one.files for one in told) == done.rewritten_data_files_count
    assert content(table) == content(catalog.load_table("a.t")) == before
    commits = expected[3] if "partial-progress.enabled" in options else min(expected[3], 1)
    assert len(done.snapshot_ids) == len(table.snapshots()) - 5 == commits
    for number in done.snapshot_ids:
        snapshot = table.snapshot_by_id(number)
        assert snapshot is not None
        assert snapshot.operation == "replace"


ORDERS: list[tuple[str, Callable[[dict[str, Any]], Any] | None]] = [
    ("id desc", lambda row: -row["id"]),
    ("s, id desc", lambda row: (row["s"], -row["id"])),
    ("bucket(4, id), id", None),
    ("zorder(id)", lambda row: row["id"]),
    ("hilbert(id)", lambda row: row["id"]),
    ("zorder(id, s)", None),
    ("hilbert(s, id)", None),
]


@pytest.mark.parametrize(("order", "key"), ORDERS, ids=[order for order, _ in ORDERS])
@pytest.mark.parametrize("memory", [None, 1])
def test_rows_are_sorted(
    catalog: ice.catalog.Catalog, order: str, key: Callable[[dict[str, Any]], Any] | None, memory: int | None
) -> None:
    """In memory, and in runs in a temporary file."""
    table = table_of(catalog)
    before = content(table)
    table.maintenance.compact(sort_order=order, options=ALL, memory_limit=memory)
    assert content(table) == before
    assert len(list(table.scan().plan_files())) == 1
    found = table.scan().to_arrow().to_pylist()
    assert found != sorted(found, key=lambda row: row["id"]) or key is not None or order.startswith("zorder")
    if key is not None:
        assert found == sorted(found, key=key)
    assert table.inspect.files()["sort_order_id"].to_pylist() == [0]


@pytest.mark.parametrize(
    "call",
    [{"where": "ID >= 0"}, {"sort_order": "S desc, bucket(4, Id)"}, {"sort_order": "zorder(ID, s)"}],
    ids=str,
)
def test_names_are_compared_as_the_call_says(catalog: ice.catalog.Catalog, call: dict[str, Any]) -> None:
    table = table_of(catalog)
    before = content(table)
    with pytest.raises(ice.errors.IcefieldError, match="ID|Id|S"):
        table.maintenance.compact(options=ALL, **call)
    done = table.maintenance.compact(options=ALL, case_sensitive=False, **call)
    assert counts(done) == (4, 1, 0, 1)
    assert content(table) == before


@pytest.mark.parametrize("on_workers", [False, True])
@pytest.mark.parametrize("memory", [None, 1])
def test_deletes_beyond_memory_are_applied(catalog: ice.catalog.Catalog, memory: int | None, on_workers: bool) -> None:
    """Files of a group share their deletes, as far as memory holds them."""
    table = table_of(catalog, 6, properties={"format-version": "2", "write.delete.granularity": "partition"})
    table.delete("id in (1, 11, 21, 31)")
    for number in (2, 12, 40):
        with table.upsert_stream("id") as stream:
            stream.delete(pa.table({"id": pa.array([number, number + 1], pa.int64())}))
    before = content(table)
    options = {**ALL, "max-file-group-input-files": 3}
    if on_workers:
        plan = table.maintenance.new_compaction(options=options)
        results = [rewrite_files(task, table.storage, memory_limit=memory) for task in plan.tasks()]
        table.maintenance.commit_compaction(plan, results)
    else:
        table.maintenance.compact(options=options, memory_limit=memory)
    assert [row["id"] for row in before] == sorted({*range(60)} - {1, 2, 3, 11, 12, 13, 21, 31, 40, 41})
    assert content(table) == before
    assert len(table.scan().plan_files()) == 2


def test_sorted_rows_are_divided_evenly_and_known_as_sorted(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog, sort_order=["s"])
    size = sum(table.inspect.files()["file_size_in_bytes"].to_pylist())
    options = {**ALL, "target-file-size-bytes": size // 2, "max-file-size-bytes": size * 9}
    done = table.maintenance.compact(strategy="sort", options=options)
    files = table.inspect.files()
    assert counts(done) == (4, 2, 0, 1)
    assert files["record_count"].to_pylist() == [20, 20]
    assert set(files["sort_order_id"].to_pylist()) == {1}
    values = table.scan().to_arrow()["s"].to_pylist()
    assert values == sorted(values)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"options": {"min-input-file": 3}}, "unknown option 'min-input-file'; did you mean \"min-input-files\""),
    ({"options": {"rewrite-all": "yes"}}, "option 'rewrite-all': expected true or false, got 'yes'"),
    ({"options": {"delete-ratio-threshold": 0}}, "option 'delete-ratio-threshold': expected a number above 0"),
    ({"options": {"rewrite-job-order": "size"}}, "expected none, bytes-asc"),
    ({"options": {"output-spec-id": 7}}, "option 'output-spec-id': expected the id of a partition spec"),
    ({"options": {"compression-factor": 2}}, "unknown option 'compression-factor'"),
    ({"options": {"partial-progress.max-commits": 0}}, "at least 1, got '0'"),
    ({"strategy": "zorder"}, "expected the strategy binpack or sort, got 'zorder'"),
    ({"strategy": "sort"}, "the table has no sort order"),
    ({"strategy": "binpack", "sort_order": "id"}, "leave the sort order out"),
    ({"sort_order": "zorder(id), s"}, "cannot be mixed"),
    ({"sort_order": "zorder(p)"}, "have one value in each partition"),
    ({"sort_order": "zorder(nosuch)"}, "nosuch"),
    (
        {"sort_order": "zorder(s)", "options": {"var-length-contribution": 2**62}},
        "at most 1024 bytes, got 4611",
    ),
    ({"sort_order": "id sideways"}, "expected asc or desc"),
    ({"where": "nosuch = 1"}, "nosuch"),
    ({"branch": "nosuch"}, "no branch 'nosuch'"),
    ({"memory_limit": 0}, "memory_limit"),
    ({"options": {"a": None}}, "expected names with strings"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED, ids=[words for _, words in REFUSED])
def test_what_cannot_be_meant_is_refused(catalog: ice.catalog.Catalog, call: dict[str, Any], words: str) -> None:
    table = table_of(catalog, partition_by="p")
    with pytest.raises((ice.errors.IcefieldError, TypeError)) as caught:
        table.maintenance.compact(**call)
    assert words in str(caught.value)
    assert len(table.refresh().snapshots()) == 4


def test_a_filter_chooses_files_and_all_their_rows_stay(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog)
    table.delete("id = 15")
    before = content(table)
    done = table.maintenance.compact("id between 12 and 23", options=ALL)
    assert counts(done) == (2, 1, 1, 1)
    assert content(table) == before


def test_files_of_an_old_spec_go_to_the_partitions_of_the_new_one(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog, properties={"format-version": "2"})
    with table.update_spec() as update:
        update.add_field("p", "identity")
    before = content(table)
    assert counts(table.maintenance.compact(options=ALL)) == (4, 2, 0, 1)
    assert content(table) == before
    assert sorted(row["partition"]["p"] for row in table.inspect.files().to_pylist()) == [0, 1]
    assert counts(table.maintenance.compact(options={**ALL, "output-spec-id": 0})) == (2, 2, 0, 2)
    assert set(table.inspect.files()["spec_id"].to_pylist()) == {0}
    assert content(table) == before


def test_deletes_of_other_commits(catalog: ice.catalog.Catalog) -> None:
    """By value they apply to the new files; by position of the old ones they are a conflict, and nothing is left."""
    for version in ("2", "3"):
        for by_key in (True, False):
            table = table_of(catalog, properties={"format-version": version})
            other = catalog.load_table("a.t")

            def meanwhile(_: CompactedGroup, other: ice.Table = other, by_key: bool = by_key) -> None:
                if by_key:
                    with other.upsert_stream("id") as stream:
                        stream.delete(pa.table({"id": pa.array([5], pa.int64())}))
                else:
                    other.delete("id = 5", mode="merge-on-read")

            files = {path for path, _ in table.storage.list(table.location())}
            if by_key:
                table.maintenance.compact(options=ALL, on_group=meanwhile)
            else:
                with pytest.raises(ice.ValidationException):
                    table.maintenance.compact(options=ALL, on_group=meanwhile)
                left = {path for path, _ in table.storage.list(table.location())} - files
                assert len([path for path in left if "/data/" in path and "deletes" not in path]) == 0
            table.refresh()
            assert [row["id"] for row in content(table)] == [n for n in range(40) if n != 5]
            catalog.drop_table("a.t", purge_requested=True)


def test_the_starting_sequence_number_is_a_choice(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog)
    other = catalog.load_table("a.t")

    def meanwhile(_: CompactedGroup) -> None:
        with other.upsert_stream("id") as stream:
            stream.delete(pa.table({"id": pa.array([5], pa.int64())}))

    options = {**ALL, "use-starting-sequence-number": False}
    with pytest.raises(ice.ValidationException):
        table.maintenance.compact(options=options, on_group=meanwhile)
    table.refresh().maintenance.compact(options=options)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    entries = table.inspect.entries().to_pylist()
    added = {entry["sequence_number"] for entry in entries if entry["snapshot_id"] == snapshot.snapshot_id}
    assert snapshot.sequence_number in added


def test_progress_in_parts_is_kept_and_continued(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog, 8, partition_by="p")
    before = content(table)
    options = {**ALL, "partial-progress.enabled": True, "max-file-group-input-files": 2}

    class Ended(Exception):
        pass

    told: list[CompactedGroup] = []

    def end(group: CompactedGroup) -> None:
        told.append(group)
        if len(told) == 3:
            raise Ended

    with pytest.raises(Ended):
        table.maintenance.compact(options=options, on_group=end, idempotency_key="k")
    assert len(table.refresh().snapshots()) == 8 + 2
    assert content(table) == before
    done = table.maintenance.compact(options={"min-input-files": 2}, idempotency_key="k")
    assert done.rewritten_data_files_count > 0
    assert content(table) == before
    assert table.maintenance.compact(options=ALL, idempotency_key="k").made_before
    assert len(table.scan().plan_files()) == 2


def test_commits_that_fail_may_be_outlived(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog, partition_by="p")
    other = catalog.load_table("a.t")
    told: list[CompactedGroup] = []

    def meanwhile(group: CompactedGroup) -> None:
        told.append(group)
        if len(told) == 1:
            other.delete("p = 0 AND id < 2", mode="merge-on-read")

    options = {**ALL, "partial-progress.enabled": True}
    done = table.maintenance.compact(options=options, on_group=meanwhile)
    assert (len(done.snapshot_ids), len(done.failures)) == (1, 1)
    assert [row["id"] for row in content(table.refresh())] == list(range(2, 40))
    told.clear()
    options |= {"partial-progress.max-failed-commits": 0}
    other = catalog.load_table("a.t")
    with pytest.raises(ice.ValidationException, match="1 of 2 commits failed, and at most 0 may"):
        table.maintenance.compact(options=options, on_group=lambda group: other.delete("p = 0 AND id < 4"))


def test_formats_and_nested_columns(catalog: ice.catalog.Catalog) -> None:
    for number, (version, kind) in enumerate([("1", "parquet"), ("2", "orc"), ("3", "avro"), ("3", "parquet")]):
        schema = pa.schema({"id": pa.int64(), "l": pa.list_(pa.int32()), "d": pa.struct({"x": pa.float64()})})
        properties = {"format-version": version, "write.format.default": kind}
        table = catalog.create_table(f"a.t{number}", schema, properties=properties)
        for n in range(3):
            table.append(pa.table([[n, None], [[1, None], None], [{"x": float("nan")}, {"x": None}]], schema))
        before = table.scan().to_arrow().sort_by("id").to_pylist()
        assert table.maintenance.compact(sort_order="id", options=ALL).added_data_files_count == 1
        assert repr(table.scan().to_arrow().sort_by("id").to_pylist()) == repr(before)


def test_all_rows_of_a_file_may_be_gone(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog, 2, properties={"format-version": "2"})
    with table.upsert_stream("id") as stream:
        stream.delete(pa.table({"id": pa.array(range(10), pa.int64())}))
    done = table.maintenance.compact("id < 5", options={**ALL, "remove-dangling-deletes": True})
    assert (done.rewritten_data_files_count, done.added_data_files_count) == (1, 0)
    assert [row["id"] for row in content(table)] == list(range(10, 20))


def test_nothing_to_do(catalog: ice.catalog.Catalog) -> None:
    table = catalog.create_table("a.t", SCHEMA)
    assert counts(table.maintenance.compact(options=ALL)) == (0, 0, 0, 0)
    table.append(rows(0, 3))
    assert counts(table.maintenance.compact()) == (0, 0, 0, 0)
    assert len(table.refresh().snapshots()) == 1


@pytest.mark.parametrize("call", [{}, {"sort_order": "s, id"}, {"sort_order": "hilbert(id, s)"}], ids=str)
def test_workers_rewrite_what_is_planned(catalog: ice.catalog.Catalog, call: dict[str, Any]) -> None:
    """A plan, tasks as bytes, and results of which some are committed."""
    table = table_of(catalog, partition_by="p")
    table.delete("id = 3")
    before = content(table)
    plan = table.maintenance.new_compaction(options=ALL, **call)
    assert [(files, new) for files, _, new in plan.groups] == [(2, 1), (2, 1)]
    results = [rewrite_files(task, table.storage) for task in plan.tasks()]
    assert content(table.refresh()) == before
    for wrong, words in [([results[0]] * 2, "two results are of group 0"), ([b"x" * 40], "not a result of a task")]:
        with pytest.raises(ice.errors.InvalidArgumentError, match=words):
            table.maintenance.commit_compaction(plan, wrong)
    assert counts(table.maintenance.commit_compaction(plan, results[:1])) == (2, 1, 0, 2)
    assert counts(table.maintenance.commit_compaction(plan, results[1:])) == (2, 1, 1, 2)
    assert content(table) == content(catalog.load_table("a.t")) == before
    assert len(table.scan().plan_files()) == 2
    other = table.maintenance.new_compaction(options=ALL)
    with pytest.raises(ice.errors.InvalidArgumentError, match="of another compaction"):
        table.maintenance.commit_compaction(other, results[:1])
    with pytest.raises(ice.errors.InvalidArgumentError, match="not a task of a compaction"):
        rewrite_files(results[0], table.storage)


def test_a_key_stands_for_all_groups(catalog: ice.catalog.Catalog) -> None:
    """A commit of one group recorded the key, and that of the next did nothing."""
    table = table_of(catalog, partition_by="p")
    before = content(table)
    plan = table.maintenance.new_compaction(options=ALL, idempotency_key="k")
    results = [rewrite_files(task, table.storage) for task in plan.tasks()]
    with pytest.raises(ice.errors.InvalidArgumentError, match="needs the results of all 2 groups, got 1"):
        table.maintenance.commit_compaction(plan, results[:1])
    assert not table.maintenance.commit_compaction(plan, results).made_before
    assert table.maintenance.commit_compaction(plan, results).made_before
    assert content(table) == before


def test_a_group_that_failed_is_rewritten_under_the_same_key(catalog: ice.catalog.Catalog) -> None:
    table = table_of(catalog, partition_by="p")
    before = content(table)
    damaged = next(row for row in table.inspect.files().to_pylist() if row["partition"]["p"] == 0)["file_path"]
    path = Path(damaged.removeprefix("file://"))
    sound = path.read_bytes()
    path.write_bytes(bytes(len(sound)))
    options = {**ALL, "partial-progress.enabled": True}
    done = table.maintenance.compact(options=options, idempotency_key="k")
    assert (done.rewritten_data_files_count, done.failed_data_files_count) == (2, 2)
    assert [damaged in failure and failure.startswith("group ") for failure in done.failures] == [True]
    path.write_bytes(sound)
    again = table.maintenance.compact(options={"min-input-files": 2}, idempotency_key="k")
    assert (again.made_before, again.rewritten_data_files_count) == (False, 2)
    assert table.maintenance.compact(options=options, idempotency_key="k").made_before
    assert content(table) == before


@pytest.mark.parametrize("to", [["p"], ["bucket[4](id)"]])
def test_deletes_of_the_new_spec_do_not_reach_rows_that_move_there(catalog: ice.catalog.Catalog, to: list[str]) -> None:
    """A writer that knows the new spec only leaves rows of the old one, which were gone after the compaction."""
    table = table_of(catalog, files=2, partition_by="truncate[5](s)")
    with table.update_spec() as update:
        update.remove_field("s_trunc")
        for field in to:
            name = field.split("(")[-1].rstrip(")")
            update.add_field(name, field.split("(")[0] if "(" in field else "identity", "new")
    table.append(rows(100, 104, 0))
    before = content(table)
    plan = table.maintenance.new_compaction(options=ALL)
    results = [rewrite_files(task, table.storage) for task in plan.tasks()]
    deleted = next(row for row in table.inspect.files().to_pylist() if row["spec_id"] == 1)
    keys = Path(deleted["file_path"].removeprefix("file://")).parent / "keys.parquet"
    ids = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
    pq.write_table(pa.table([[3, 100]], ids), keys)
    partition = [deleted["partition"]["new"]]
    with table.update_snapshot().row_delta() as delta:
        delta.add_deletes(
            ice.DeleteFile(
                content="equality_deletes",
                file_path=str(keys),
                file_format="parquet",
                spec_id=1,
                partition=partition,
                record_count=2,
                file_size_in_bytes=keys.stat().st_size,
                equality_ids=[1],
            )
        )
    after = content(table)
    assert len(after) < len(before)
    with pytest.raises(ice.errors.ValidationException, match="would also apply to rows that move to its partition"):
        table.maintenance.commit_compaction(plan, results)
    assert content(table) == after


def test_an_upgrade_meanwhile_is_a_conflict(catalog: ice.catalog.Catalog) -> None:
    """The rows of the old files have ids then, which the new files would lack."""
    table = table_of(catalog, properties={"format-version": "2"})
    plan = table.maintenance.new_compaction(options=ALL)
    results = [rewrite_files(task, table.storage) for task in plan.tasks()]
    table.update_properties({"format-version": "3"})
    before = content(table.refresh())
    with pytest.raises(ice.errors.ValidationException, match="was upgraded from version 2 to 3"):
        table.maintenance.commit_compaction(plan, results)
    assert content(table) == before


def test_tasks_have_only_the_properties_that_workers_need(catalog: ice.catalog.Catalog) -> None:
    made = pa.table({"id": [1, 2]})
    properties = {"owner.token": "hunter2", "write.note": "needed"}
    table = catalog.create_table("a.secrets", made.schema, properties=properties)
    table.append(made).append(made)
    (task,) = table.maintenance.new_compaction(options={"rewrite-all": True}).tasks()
    # The first part of a task, which has the table, is compressed.
    packed = pa.BufferReader(task[task.index(b"(\xb5/\xfd") :])
    with pa.input_stream(packed, compression="zstd") as stream:
        table_in_task = stream.read(100_000)
    assert b"needed" in table_in_task
    assert b"hunter2" not in table_in_task
