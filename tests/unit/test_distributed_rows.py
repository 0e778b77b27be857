"""Changes of rows by workers: the same as by one process, whoever decides and in however many processes."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.distributed import Committed, ReadTask, RowChangePlan, RowRemover, Storage, TaskWriter, WrittenFiles
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError, ValidationError, ValidationException

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("p", pa.int32()), ("s", pa.string())])
PLACES = ["_file", "_pos"]


def rows(ids: range | list[int], text: str = "s") -> pa.Table:
    ids = list(ids)
    return pa.table({"id": ids, "p": [at % 3 for at in ids], "s": [f"{text}{at}" for at in ids]}, schema=SCHEMA)


def make(folder: Path, version: int = 2, **properties: str) -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(folder))
    catalog.create_namespace("a")
    return catalog.create_table("a.t", schema=SCHEMA, properties={"format-version": str(version), **properties})


def ids(table: ice.Table, **options: Any) -> list[int]:
    return sorted(table.scan(**options).to_arrow()["id"].to_pylist())


def files(table: ice.Table) -> set[str]:
    return {path for path, _ in table.storage.list(f"{table.location()}/data")}


# Workers


def read(task: ReadTask, storage: Storage) -> pa.Table:
    return task.rows(storage).to_pyarrow().read_all()


def remove(plan: RowChangePlan, storage: Storage, places: pa.Table, task: int, **options: Any) -> WrittenFiles:
    with RowRemover(plan, storage, task=task, **options) as remover:
        remover.remove(places)
    assert remover.written is not None
    return remover.written


def write(plan: RowChangePlan, storage: Storage, new: pa.Table, task: int) -> WrittenFiles:
    with TaskWriter(plan.write, storage, new.schema, task=task) as writer:
        writer.write(new)
    assert writer.written is not None
    return writer.written


@dataclass
class Engine:
    """A pool of processes that shuffles by file."""

    pool: Executor

    def read(self, plan: RowChangePlan, storage: Storage, **options: Any) -> pa.Table | None:
        tasks = plan.tasks(**options)
        found = list(self.pool.map(read, tasks, [storage] * len(tasks)))
        return pa.concat_tables(found) if found else None

    def remove(
        self, plan: RowChangePlan, storage: Storage, places: pa.Table | None, workers: int = 2
    ) -> list[WrittenFiles]:
        if places is None:
            return []
        of = [crc32(path.encode()) % workers for path in places["_file"].to_pylist()]
        parts = [places.filter(pa.array([one == worker for one in of], pa.bool_())) for worker in range(workers)]
        numbers = range(workers)
        return list(self.pool.map(remove, [plan] * workers, [storage] * workers, parts, numbers))

    def write(self, plan: RowChangePlan, storage: Storage, new: pa.Table) -> list[WrittenFiles]:
        half = new.num_rows // 2
        parts = [new.slice(0, half), new.slice(half)]
        return list(self.pool.map(write, [plan] * 2, [storage] * 2, parts, [0, 1]))


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        yield Engine(pool)


# The same as by one process


#: Entries of summaries that tell of new files, of which workers write more.
OF_FILES = (
    "total-data-files", "added-data-files", "total-files-size", "added-files-size", "removed-files-size",
    "changed-partition-count", "icefield.write-id", "added-delete-files", "total-delete-files",
    "added-position-delete-files", "manifests-created", "manifests-kept", "manifests-replaced",
)  # fmt: skip


def drawn(draw: random.Random, folder: Path) -> tuple[ice.Table, dict[str, Any]]:
    """A table with files of several specs, formats and kinds of deletes, and how to change it."""
    version = draw.choice([1, 2, 3])
    properties = {"write.format.default": draw.choice(["parquet", "parquet", "orc", "avro"])}
    if draw.random() < 0.3:
        properties["write.delete.granularity"] = "partition"
    table = make(folder, version, **properties)
    first = 0
    for _ in range(draw.randint(2, 4)):
        if draw.random() < 0.4:
            known = table.spec().fields
            with table.update_spec() as spec:
                if known and draw.random() < 0.5:
                    spec.remove_field(known[0].name)
                else:
                    spec.add_field("p", f"bucket[{2 + len(table.specs())}]" if known else "identity")
        count = draw.choice([3, 10, 200])
        table.append(rows(range(first, first + count)))
        if version > 1 and draw.random() < 0.6:
            table.delete(f"id in ({first + 1}, {first + 2})", mode="merge-on-read")
        if version > 1 and draw.random() < 0.3:
            with table.upsert_stream(["id", "p"]) as stream:
                stream.delete(pa.table({"id": [first], "p": pa.array([first % 3], pa.int32())}))
        first += count
    modes = ["copy-on-write", "auto"] if version == 1 else ["copy-on-write", "merge-on-read", "auto"]
    return table, {"mode": draw.choice(modes), "isolation": draw.choice([None, "snapshot"])}


def with_ids(table: ice.Table, branch: str, known: set[int]) -> list[tuple[Any, ...]]:
    """All rows, with the ids of those that were there before."""
    if table.format_version < 3:
        return sorted(tuple(row.values()) for row in table.scan(ref=branch).to_arrow().to_pylist())
    found = table.scan(ref=branch, selected_fields=("*", "_row_id")).to_arrow()
    numbers = found["_row_id"].to_pylist()
    assert len(set(numbers)) == len(numbers)
    return sorted(
        (row["id"], row["p"], row["s"], row["_row_id"] if row["_row_id"] in known else None)
        for row in found.to_pylist()
    )


def equality_deletes(table: ice.Table) -> bool:
    return 2 in table.inspect.files().column("content").to_pylist()


def shouted(texts: Any) -> Any:
    return pc.binary_join_element_wise(texts, "!", "")


def single(table: ice.Table, command: str, text: str, new: pa.Table, how: dict[str, Any]) -> Any:
    match command:
        case "delete":
            return table.delete(text, branch="single", **how)
        case "overwrite":
            return table.overwrite(new, text, branch="single", **how)
        case _:
            return table.update({"s": lambda batch: shouted(batch["s"])}, text, branch="single", **how)


def by_workers(
    engine: Engine, table: ice.Table, command: str, text: str, new: pa.Table, exact: bool, how: dict[str, Any]
) -> Committed:
    plan = table.new_row_change(command, text, exact=exact, branch="workers", **how)
    assert (plan.command, plan.branch, plan.exact) == (command, "workers", exact)
    storage = table.storage
    selected = None if command == "update" else []
    found = engine.read(plan, storage, selected_fields=selected, split_size=1000)
    removed = engine.remove(plan, storage, found)
    added = []
    if command == "overwrite":
        added = engine.write(plan, storage, new)
    if command == "update" and found is not None:
        changed = found.set_column(2, "s", shouted(found["s"]))
        added = engine.write(plan, storage, changed.drop(PLACES))
    done = table.commit_rows(plan, removed, added)
    assert plan.discard_lost(storage, [*removed, *added]) == (0, [])
    return done


@pytest.mark.parametrize("seed", range(24))
def test_workers_change_what_one_process_changes(engine: Engine, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    table, how = drawn(draw, tmp_path)
    with table.manage_snapshots() as refs:
        for name in ("single", "workers"):
            refs.create_branch(table.current_snapshot().snapshot_id, name)
    command = draw.choice(["delete", "update", "overwrite"])
    largest = max(ids(table))
    text = draw.choice(
        [f"id >= {draw.randint(0, largest)}", "p = 1", f"id in (0, 4, {largest})", "s > 's2' and p != 2", "id < 0"]
    )
    exact = command != "update" and draw.random() < 0.5
    known = set()
    if table.format_version > 2:
        known = set(table.scan(selected_fields=("_row_id",)).to_arrow()["_row_id"].to_pylist())
    new = rows(range(1000, 1010), "new")
    expected = single(table, command, text, new, how)
    done = by_workers(engine, table, command, text, new, exact, how)
    assert with_ids(table, "workers", known) == with_ids(table, "single", known), (text, how)
    assert done.rows == expected.rows_added
    # Rows of files that are dropped unread count, though equality deletes had deleted them.
    is_counted = not equality_deletes(table)
    assert done.rows_removed == expected.rows_removed or not is_counted
    heads = {name: table.snapshot_by_name(name) for name in ("single", "workers")}
    if done.snapshot_id is None:
        assert (expected.rows_removed, expected.rows_added) == (0, 0)
        assert heads["single"] == heads["workers"]
        return
    assert done.snapshot_id == heads["workers"].snapshot_id
    summaries = [{**head.summary} for head in heads.values()]
    # How many files workers write depends on how many there are.
    for summary in summaries:
        for name in OF_FILES:
            summary.pop(name, None)
    # Of a file with equality deletes only its manifest entry tells that no row is left.
    if exact or is_counted:
        assert summaries[0] == summaries[1], (text, how)


def test_a_merge_updates_deletes_and_inserts(engine: Engine, tmp_path: Path) -> None:
    table = (
        make(tmp_path, 3, **{"write.merge.mode": "merge-on-read"}).append(rows(range(10))).append(rows(range(10, 20)))
    )
    row_ids = {
        row["id"]: row["_row_id"] for row in table.scan(selected_fields=("id", "_row_id")).to_arrow().to_pylist()
    }
    wider = pa.schema([*SCHEMA, ("note", pa.string())])
    plan = table.new_row_change("merge", "id >= 5", widened_by=wider)
    found = engine.read(plan, table.storage)
    assert found is not None
    assert found.column_names == ["id", "p", "s", "_file", "_pos", "_row_id"]
    assert sorted(found["id"].to_pylist()) == list(range(5, 20))
    updated, deleted = found.filter(pc.field("id") < 8), found.filter(pc.field("id") == 19)
    removed = engine.remove(plan, table.storage, pa.concat_tables([updated, deleted]))
    changed = updated.drop(PLACES).append_column("note", pa.array(["new"] * 3))
    inserted = pa.table(
        {
            "id": [50],
            "p": pa.array([1], pa.int32()),
            "s": ["x"],
            "_row_id": pa.array([None], pa.int64()),
            "note": ["ins"],
        }
    )
    added = engine.write(
        plan, table.storage, pa.concat_tables([changed, inserted.select(changed.column_names).cast(changed.schema)])
    )
    done = table.commit_rows(plan, removed, added, {"job": "7"})
    assert (done.rows, done.rows_removed, done.files_marked, done.files_taken) == (4, 4, 2, True)
    assert ids(table) == [*range(19), 50]
    after = (
        table.scan(selected_fields=("id", "note", "_row_id", "_last_updated_sequence_number")).to_arrow().to_pylist()
    )
    for row in after:
        assert row["_row_id"] == row_ids.get(row["id"], row["_row_id"])
        is_new = row["id"] in (5, 6, 7, 50)
        assert (row["note"] is not None, row["_last_updated_sequence_number"] == 3) == (is_new, is_new)
    summary = table.current_snapshot().summary
    assert (summary["operation"], summary["icefield.write-id"], summary["job"]) == ("overwrite", plan.write_id, "7")
    assert all(plan.write_id in path for path in files(table) if "-deletes" in path or "rewritten" in path)


def test_exact_changes_drop_files_unread(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(range(10))).append(rows(range(10, 20))).append(rows(range(20, 30)))
    plan = table.new_row_change("delete", "id >= 15", exact=True)
    (task,) = plan.tasks([])
    places = read(task, table.storage)
    assert (plan.files, places.num_rows, places.column_names) == (2, 5, PLACES)
    whole = next(path for path in table.scan("id = 25").plan_files().to_arrow()["file_path"].to_pylist())
    with pytest.raises(InvalidArgumentError, match="all of its rows match the filter, and the commit drops it"):
        remove(plan, table.storage, pa.table({"_file": [whole], "_pos": [0]}), 0)
    # A plan that was sent to another process commits as well.
    done = table.commit_rows(pickle.loads(pickle.dumps(plan)), [remove(plan, table.storage, places, 0)])
    assert (done.rows_removed, done.files_removed, done.files_rewritten) == (15, 1, 1)
    assert ids(table) == list(range(15))
    everything = table.new_row_change("overwrite", exact=True)
    assert everything.tasks() == []
    assert table.commit_rows(everything, added=[write(everything, table.storage, rows([7]), 0)]).files_removed == 2
    assert (ids(table), table.current_snapshot().summary["operation"]) == ([7], "overwrite")
    empty = table.new_row_change("delete", "id = 8", exact=True)
    before = table.current_snapshot()
    assert empty.is_empty
    assert table.commit_rows(empty) == Committed(None, made_before=False, rows=0, files_taken=True)
    assert table.refresh().current_snapshot() == before
    with pytest.raises(InvalidArgumentError, match="compares columns"):
        table.new_row_change("delete", "id > p", exact=True)
    assert table.new_row_change("delete", "id > p").files == 1


def test_whole_files_need_no_shuffle(tmp_path: Path) -> None:
    table = make(tmp_path, **{"write.parquet.row-group-size-bytes": "1", "write.parquet.row-group-limit": "10"})
    table.append(rows(range(100))).append(rows(range(100, 130)))
    plan = table.new_row_change("delete", "s like 's1%'", mode="merge-on-read")
    whole = plan.tasks([], split_size=1, whole_files=True)
    of_files = [set(read(task, table.storage)["_file"].to_pylist()) for task in whole]
    assert sorted(map(len, of_files)) == [1, 1]
    results = [remove(plan, table.storage, read(task, table.storage), number) for number, task in enumerate(whole)]
    assert table.commit_rows(plan, results).rows_removed == 41
    assert not any(str(at).startswith("1") for at in ids(table))


@pytest.mark.parametrize(
    ("places", "error", "message"),
    [
        (lambda _: {"_file": ["x"], "_pos": [0]}, InvalidArgumentError, "x: is none of the files of this plan"),
        (lambda path: {"_file": [path], "_pos": [10]}, InvalidArgumentError, "no row 10 .*: the file has 10 rows"),
        (lambda path: {"_file": [path], "_pos": [-1]}, InvalidArgumentError, "there is no row -1"),
        (lambda path: {"_file": [path], "_pos": [2**62]}, InvalidArgumentError, "4611686018427387904"),
        (lambda path: {"_file": [path], "_pos": [3]}, InvalidArgumentError, "row 3 .* is deleted already"),
        (lambda path: {"_file": [path], "_pos": pa.array([None], pa.int64())}, ValidationError, "_pos: null"),
        (lambda _: {"_file": pa.array([None], pa.string()), "_pos": [0]}, ValidationError, "_file: null"),
        (lambda path: {"_file": [path]}, ValidationError, "_pos: missing"),
        (lambda path: {"_file": [path], "_pos": ["0"]}, ValidationError, "_pos: expected the type long, got Utf8"),
        (lambda _: {"_file": [7], "_pos": [0]}, ValidationError, "_file: expected the type string"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("version", [2, 3])
def test_places_that_no_row_has_are_refused(
    tmp_path: Path, version: int, places: Callable[[str], Any], error: type[Exception], message: str
) -> None:
    table = make(tmp_path, version).append(rows(range(10)))
    table.delete("id = 3", mode="merge-on-read")
    plan = table.new_row_change("delete")
    before = files(table)
    path = table.scan().plan_files().to_arrow()["file_path"][0].as_py()
    with pytest.raises(error, match=message):
        remove(plan, table.storage, pa.table(places(path)), 0)
    assert files(table) == before


def test_places_come_in_any_form(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(range(10)))
    plan = table.new_row_change("delete")
    path = table.scan().plan_files().to_arrow()["file_path"][0].as_py()
    with RowRemover(plan, table.storage) as remover:
        remover.remove(
            pa.table({"_pos": pa.array([7], pa.int32()), "other": [None], "_file": pa.array([path], pa.large_string())})
        )
        remover.remove(
            pa.record_batch({"_file": pa.array([path] * 2).dictionary_encode(), "_pos": pa.array([7, 1], pa.uint16())})
        )
        remover.remove(pa.table({"_file": pa.array([path], pa.string_view()), "_pos": [0]}))
    assert remover.written is not None
    assert (remover.written.row_count, remover.written.file_count) == (3, 1)
    with pytest.raises(InvalidArgumentError, match="closed"):
        remover.remove(pa.table({"_file": [path], "_pos": [2]}))
    table.commit_rows(plan, [remover.written])
    assert ids(table) == [2, 3, 4, 5, 6, 8, 9]


def test_a_row_is_changed_by_one_row_of_the_source(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(range(3)))
    plan = table.new_row_change("merge")
    places = read(plan.tasks([])[0], table.storage)
    with pytest.raises(InvalidArgumentError, match="row 1 of .* is matched by more than one row of the source"):
        remove(plan, table.storage, pa.concat_tables([places, places.slice(1, 1)]), 0, unique=True)
    assert remove(plan, table.storage, places, 0, unique=True).row_count == 3


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_no_result_gets_in_twice(tmp_path: Path, mode: Any) -> None:
    table = make(tmp_path).append(rows(range(10))).append(rows(range(10, 20)))
    plan = table.new_row_change("delete", "p = 0", mode=mode)
    places = read(plan.tasks([])[0], table.storage)
    first, second = (remove(plan, table.storage, places, 1, attempt=attempt) for attempt in (0, 1))
    other = remove(plan, table.storage, places, 2)
    with (
        TaskWriter(plan.write, table.storage, SCHEMA, task=1) as one,
        TaskWriter(plan.write, table.storage, SCHEMA, task=1, attempt=1) as two,
    ):
        one.write(rows([50]))
        two.write(rows([50]))
    assert one.written is not None
    assert two.written is not None
    state = table.metadata
    for removed, added, message in [
        ([first, second], [], r"two results of the RowRemover of task 1 \(attempts 0 and 1\)"),
        ([first, first], [], "two results of the RowRemover of task 1"),
        ([first, other], [], "tasks 1 and 2 have both taken rows out of one data file"),
        ([first], [one.written, two.written], "two results of the TaskWriter of task 1"),
        ([first], [one.written, one.written], "is in two results"),
        ([], [first], "pass it as `removed`"),
        ([one.written], [], "not the result of a RowRemover"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            table.commit_rows(plan, removed, added)
    with pytest.raises(InvalidArgumentError, match="commit them by commit_rows"):
        table.commit_files(plan.write, [one.written])
    assert table.refresh().metadata == state
    table.commit_rows(plan, [first], [one.written])
    assert ids(table) == [at for at in range(20) if at % 3] + [50]
    lost = len(files(table))
    assert plan.discard_lost(table.storage, [first, one.written]) == (0, [])
    assert len(files(table)) < lost
    assert ids(table) == [at for at in range(20) if at % 3] + [50]
    with pytest.raises(InvalidArgumentError, match="they cannot be discarded"):
        plan.discard(table.storage, [first])


def append_there(table: ice.Table) -> None:
    table.append(rows([100]))


def delete_there(table: ice.Table) -> None:
    table.delete("id = 2", mode="merge-on-read")


def rewrite_there(table: ice.Table) -> None:
    table.delete("id = 2", mode="copy-on-write")


@pytest.mark.parametrize(
    ("meanwhile", "mode", "command", "isolation", "message"),
    [
        (append_there, "copy-on-write", "delete", "serializable", "added the data file"),
        (append_there, "merge-on-read", "delete", "serializable", "added the data file"),
        (append_there, "copy-on-write", "delete", "snapshot", None),
        (append_there, "merge-on-read", "update", "snapshot", None),
        (delete_there, "copy-on-write", "delete", "snapshot", "delete"),
        (delete_there, "merge-on-read", "delete", "snapshot", None),
        (delete_there, "merge-on-read", "update", "snapshot", "delete"),
        (rewrite_there, "copy-on-write", "delete", "snapshot", "files to remove that are not in the table"),
        (rewrite_there, "merge-on-read", "delete", "snapshot", "removed the data file"),
    ],
)
def test_concurrent_commits(
    tmp_path: Path, meanwhile: Callable[[ice.Table], None], mode: Any, command: Any, isolation: Any, message: str | None
) -> None:
    table = make(tmp_path).append(rows(range(10)))
    assert table.catalog is not None
    plan = table.new_row_change(command, mode=mode, isolation=isolation)
    places = read(plan.tasks()[0], table.storage).slice(0, 3)
    removed = remove(plan, table.storage, places, 0)
    added = write(plan, table.storage, rows([50]), 0)
    meanwhile(table.catalog.load_table("a.t"))
    if message is None:
        table.commit_rows(plan, [removed], [added])
        assert ids(table)[:2] == [3, 4]
        return
    with pytest.raises(ValidationException, match=message):
        table.commit_rows(plan, [removed], [added])
    table.refresh()
    assert plan.discard(table.storage, [removed, added]) == (0, [])
    assert not any(plan.write_id in path for path in files(table))
    assert len(ids(table)) in (9, 11)


def test_changes_with_a_key_are_made_once(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(range(10)))
    plans = [table.new_row_change("delete", "id < 5") for _ in range(2)]
    results = [remove(plan, table.storage, read(plan.tasks([])[0], table.storage), 0) for plan in plans]
    done = table.commit_rows(plans[0], [results[0]], idempotency_key="k")
    assert (done.rows_removed, done.made_before) == (5, False)
    # The answer was lost, and the same results come again; or another run has made others.
    again = table.commit_rows(pickle.loads(pickle.dumps(plans[0])), [results[0]], idempotency_key="k")
    assert again == Committed(done.snapshot_id, made_before=True, rows=0, files_taken=True)
    other = table.commit_rows(plans[1], [results[1]], idempotency_key="k")
    assert other == Committed(done.snapshot_id, made_before=True, rows=0, files_taken=False)
    assert plans[1].discard(table.storage, [results[1]]) == (0, [])
    assert ids(table) == [5, 6, 7, 8, 9]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_what_failed_leaves_nothing(tmp_path: Path, mode: Any) -> None:
    table = make(tmp_path, 3).append(rows(range(10)))
    before = files(table)
    plan = table.new_row_change("delete", mode=mode)
    places = read(plan.tasks([])[0], table.storage).slice(0, 1)
    with pytest.raises(RuntimeError, match="stop"), RowRemover(plan, table.storage) as remover:  # noqa: PT012
        remover.remove(places)
        raise RuntimeError("stop")
    assert (remover.written, files(table)) == (None, before)
    remove(plan, table.storage, places, 7)
    assert len(files(table)) == len(before) + 1
    assert plan.discard(table.storage, search=True) == (0, [])
    assert files(table) == before


def test_branches_and_properties(tmp_path: Path) -> None:
    table = make(tmp_path).append(rows(range(10)))
    with table.branch("audit") as audit:
        plan = audit.new_row_change(
            "delete", "id < 5", exact=True, properties={"write.format.default": "orc"}, mode="copy-on-write"
        )
        assert plan.branch == "audit"
        with pytest.raises(InvalidArgumentError, match="this object is of the branch"):
            audit.commit_rows(table.new_row_change("delete"))
        audit.commit_rows(plan, [remove(plan, table.storage, read(plan.tasks([])[0], table.storage), 0)])
        assert (ids(table, ref="audit"), len(ids(table, ref="main"))) == ([5, 6, 7, 8, 9], 10)
    assert ids(table) == [5, 6, 7, 8, 9]
    assert table.scan().plan_files().to_arrow()["file_format"].to_pylist() == ["orc"]
    # A branch that does not exist begins at main.
    plan = table.new_row_change("delete", "id = 5", exact=True, branch="fresh")
    table.commit_rows(plan, [remove(plan, table.storage, read(plan.tasks([])[0], table.storage), 0)])
    assert (ids(table, ref="fresh"), ids(table)) == ([6, 7, 8, 9], [5, 6, 7, 8, 9])
    with pytest.raises(InvalidArgumentError, match="command: expected delete, update, merge or overwrite, got 'drop'"):
        table.new_row_change("drop")  # type: ignore[arg-type]
    with pytest.raises(UnsupportedFeatureError, match="format version 1"):
        make(tmp_path / "1", 1).new_row_change("delete", mode="merge-on-read")


def test_partitions_are_replaced(tmp_path: Path) -> None:
    table = make(tmp_path)
    with pytest.raises(InvalidArgumentError, match="no partitions"):
        table.commit_files(table.new_write(), [], mode="dynamic")
    with table.update_spec() as spec:
        spec.add_identity("p")
    table.append(rows(range(9)))

    def written(plan: Any, new: pa.Table, task: int = 0) -> WrittenFiles:
        with TaskWriter(plan, table.storage, SCHEMA, task=task) as writer:
            writer.write(new)
        assert writer.written is not None
        return writer.written

    plan = table.new_write()
    done = table.commit_files(plan, [written(plan, rows([3, 6])), written(plan, rows([30]), 1)], mode="dynamic")
    assert (done.rows, done.rows_removed, done.files_removed) == (3, 3, 1)
    assert ids(table) == sorted([3, 6, 30] + [at for at in range(9) if at % 3])
    assert table.current_snapshot().summary["replace-partitions"] == "true"
    assert table.commit_files(table.new_write(), [], mode="dynamic").snapshot_id is None
    plan = table.new_write()
    result = written(plan, rows([9]))
    with pytest.raises(InvalidArgumentError, match="is in two results"):
        table.commit_files(plan, [result, result], mode="dynamic")
    assert table.catalog is not None
    table.catalog.load_table("a.t").append(rows([33]))
    with pytest.raises(ValidationException, match="added the data file"):
        table.commit_files(plan, [result], mode="dynamic")
    table.commit_files(plan, [result], mode="dynamic", isolation="snapshot", idempotency_key="k")
    assert ids(table) == sorted([9] + [at for at in range(9) if at % 3])
    again = table.commit_files(plan, [result], mode="dynamic", idempotency_key="k")
    assert (again.made_before, again.files_taken, again.rows_removed) == (True, True, 0)
    with table.update_spec() as spec:
        spec.add_field("id", "bucket[2]")
    plan = table.new_write()
    with pytest.raises(ValidationException, match="is of the partition spec"):
        table.commit_files(plan, [written(plan, rows([9]))], mode="dynamic")
    for wrong in ({"mode": "overwrite"}, {"isolation": "snapshot"}):
        with pytest.raises(InvalidArgumentError, match=next(iter(wrong))):
            table.commit_files(plan, [], **wrong)  # type: ignore[arg-type]
