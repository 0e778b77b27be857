"""Several changes of the same rows in one transaction, beside a model of plain Python rows."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog
from icefield.errors import ValidationException

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64()), ("s", pa.string())])
WAYS = [(1, "copy-on-write"), (2, "copy-on-write"), (2, "merge-on-read"), (3, "copy-on-write"), (3, "merge-on-read")]


def rows(*ids: int, v: int = 0) -> pa.Table:
    return pa.table([list(ids), [v] * len(ids), [f"s{at % 3}" for at in ids]], SCHEMA)


def make(folder: Path, version: int, **more: Any) -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(folder))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", schema=SCHEMA, properties={"format-version": str(version)}, **more)
    return table.append(rows(*range(12))).append(rows(*range(12, 16)))


@dataclass
class Model:
    """Rows by their ids, and what is done to them beside the same in a transaction."""

    mode: str
    rows: dict[int, int] = field(default_factory=dict)
    #: Rows that are new, and those that were changed.
    new: set[int] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)

    def delete(self, changes: Any, *ids: int) -> None:
        found = [at for at in ids if at in self.rows]
        done = changes.delete(f"id IN ({', '.join(map(str, ids))})", mode=self.mode)
        assert done.rows_removed == len(found)
        for at in found:
            del self.rows[at]
            self.new.discard(at)

    def update(self, changes: Any, v: int, *ids: int) -> None:
        found = [at for at in ids if at in self.rows]
        done = changes.update({"v": v}, f"id IN ({', '.join(map(str, ids))})", mode=self.mode)
        assert (done.rows_removed, done.rows_added) == (len(found), len(found))
        for at in found:
            self.rows[at] = v
            self.changed.add(at)

    def append(self, changes: Any, v: int, *ids: int) -> None:
        changes.append(rows(*ids, v=v))
        self._add(v, ids)

    def upsert(self, changes: Any, v: int, *ids: int) -> None:
        done = changes.upsert(rows(*ids, v=v), ["id"], mode=self.mode)
        differing = [at for at in ids if at in self.rows and self.rows[at] != v]
        missing = [at for at in ids if at not in self.rows]
        assert (done.rows_updated, done.rows_inserted) == (len(differing), len(missing))
        self.rows.update(dict.fromkeys(differing, v))
        self.changed.update(differing)
        self._add(v, missing)

    def merge(self, changes: Any, v: int, *ids: int) -> None:
        merge = changes.merge(rows(*ids, v=v), "id", mode=self.mode)
        merge.when_matched_delete("target.v = source.v").when_matched_update_all().when_not_matched_insert_all()
        done = merge.execute()
        gone = [at for at in ids if self.rows.get(at) == v]
        differing = [at for at in ids if at in self.rows and at not in gone]
        missing = [at for at in ids if at not in self.rows]
        counts = (done.rows_deleted, done.rows_updated, done.rows_inserted)
        assert counts == (len(gone), len(differing), len(missing))
        for at in gone:
            del self.rows[at]
            self.new.discard(at)
        self.rows.update(dict.fromkeys(differing, v))
        self.changed.update(differing)
        self._add(v, missing)

    def overwrite(self, changes: Any, v: int, *ids: int) -> None:
        among = sorted(ids)
        done = changes.overwrite(rows(*ids, v=v), f"id BETWEEN {among[0]} AND {among[-1]}", mode=self.mode)
        found = [at for at in self.rows if among[0] <= at <= among[-1]]
        assert done.rows_removed == len(found)
        for at in found:
            del self.rows[at]
        self._add(v, ids)

    def _add(self, v: int, ids: Any) -> None:
        self.rows.update(dict.fromkeys(ids, v))
        self.new.update(ids)


def lineage(table: ice.Table) -> dict[int, tuple[int, int]]:
    """Row ids and the numbers of the last update, by ``id``."""
    if table.format_version < 3:
        return {}
    columns = ("id", "_row_id", "_last_updated_sequence_number")
    return {row["id"]: tuple(row.values())[1:] for row in table.scan(selected_fields=columns).to_arrow().to_pylist()}


def check(table: ice.Table, change: Callable[[Any, Model], None], mode: str) -> None:
    """Make changes in one transaction, and in a model."""
    before = table.scan().to_arrow().to_pylist()
    model = Model(mode, {row["id"]: row["v"] for row in before})
    old, commits, at = lineage(table), len(table.metadata_log()), table.metadata_location
    sequence_number = table.metadata.last_sequence_number
    with table.transaction() as changes:
        change(changes, model)
    assert len(table.metadata_log()) == commits + (table.metadata_location != at), "one commit"
    for seen in (table, table.catalog.load_table("a.t")):
        found = seen.scan().to_arrow().to_pylist()
        assert sorted((row["id"], row["v"]) for row in found) == sorted(model.rows.items())
        assert all(row["s"] == f"s{row['id'] % 3}" for row in found)
        assert seen.scan().count() == len(model.rows)
    current = table.current_snapshot()
    assert current is not None
    if mode == "copy-on-write":
        assert int(current.summary["total-records"]) == len(model.rows)
    now = lineage(table)
    assert len({row_id for row_id, _ in now.values()}) == len(now)
    for key, (row_id, updated) in now.items():
        if key in model.new:
            assert row_id not in {one for one, _ in old.values()}
            assert updated > sequence_number
        else:
            assert row_id == old[key][0], "a row keeps its id"
            assert updated > sequence_number if key in model.changed else updated == old[key][1]
    if table.format_version == 3:
        vectors = table.inspect.delete_files().to_pylist()
        of_files = Counter(file["referenced_data_file"] for file in vectors)
        assert set(of_files.values()) <= {1}, "one live vector for a data file"
        live = {file["file_path"] for file in table.inspect.data_files().to_pylist()}
        assert set(of_files) <= live


def deletes_twice(changes: Any, model: Model) -> None:
    model.delete(changes, 1, 2)
    model.delete(changes, 2, 3)


def delete_then_update(changes: Any, model: Model) -> None:
    model.delete(changes, 1, 2)
    model.update(changes, 7, 2, 3)


def update_then_delete(changes: Any, model: Model) -> None:
    model.update(changes, 7, 2, 3)
    model.delete(changes, 1, 2)
    model.update(changes, 8, 2, 3)


def append_then_delete(changes: Any, model: Model) -> None:
    model.append(changes, 5, 100, 101, 102, 103)
    model.delete(changes, 101, 1)
    model.delete(changes, 100, 102, 103)


def upserts_twice(changes: Any, model: Model) -> None:
    model.upsert(changes, 5, 1, 2, 100)
    model.upsert(changes, 6, 2, 3, 100, 101)
    model.upsert(changes, 6, 2, 3, 100, 101)


def all_then_again(changes: Any, model: Model) -> None:
    model.delete(changes, *range(16))
    model.append(changes, 1, 1, 2)
    model.upsert(changes, 2, 2, 3)
    model.merge(changes, 2, 1, 2, 4)
    model.overwrite(changes, 3, 3, 4, 5)


STORIES = [deletes_twice, delete_then_update, update_then_delete, append_then_delete, upserts_twice, all_then_again]


@pytest.mark.parametrize("story", STORIES)
@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_stories(tmp_path: Path, story: Callable[[Any, Model], None], version: int, mode: str) -> None:
    check(make(tmp_path, version), story, mode)


@pytest.mark.parametrize("partition_by", [[], ["s"]])
@pytest.mark.parametrize(("version", "mode"), WAYS)
def test_random_changes(tmp_path: Path, version: int, mode: str, partition_by: list[str]) -> None:
    choose = random.Random(f"{version}{mode}{partition_by}")
    table = make(tmp_path, version, partition_by=partition_by)
    kinds = ["delete", "update", "append", "upsert", "merge", "overwrite"]
    fresh = 100

    def story(changes: Any, model: Model) -> None:
        nonlocal fresh
        for _ in range(choose.randint(2, 4)):
            kind = choose.choice(kinds)
            ids = choose.sample(range(20), choose.randint(1, 4))
            if kind == "append":
                ids, fresh = list(range(fresh, fresh + 3)), fresh + 3
            values = [] if kind == "delete" else [choose.randint(0, 3)]
            getattr(model, kind)(changes, *values, *ids)

    for _ in range(3):
        check(table, story, mode)


def described(file: dict[str, Any]) -> ice.DeleteFile:
    names = ("referenced_data_file", "content_offset", "content_size_in_bytes", "record_count", "file_size_in_bytes")
    return ice.DeleteFile(
        content="position_deletes",
        file_path=file["file_path"],
        file_format=file["file_format"].lower(),
        partition=[],
        **{name: file[name] for name in names if file.get(name) is not None},
    )


def deletes_of_branches(table: ice.Table, *ids: int) -> list[ice.DeleteFile]:
    """Delete files for one data file, written for branches."""
    found = []
    for at in ids:
        name = f"of{at}"
        table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, name).commit()
        table.delete(f"id = {at}", mode="merge-on-read", branch=name)
        (file,) = table.inspect.delete_files(snapshot_id=table.snapshot_by_name(name).snapshot_id).to_pylist()
        found.append(described(file))
    return found


def test_two_row_deltas_for_one_data_file(tmp_path: Path) -> None:
    table = make(tmp_path, 2)
    one, other = deletes_of_branches(table, 1, 2)
    commits = len(table.metadata_log())
    with table.transaction() as changes:
        with changes.update_snapshot().row_delta() as delta:
            delta.add_deletes(one)
        with changes.update_snapshot().row_delta() as delta:
            delta.add_deletes(other)
        assert changes.delete("id IN (2, 3)", mode="merge-on-read").rows_removed == 1
    assert len(table.metadata_log()) == commits + 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, *range(4, 16)]


def test_a_second_vector_for_one_data_file_is_refused(tmp_path: Path) -> None:
    table = make(tmp_path, 3)
    one, other = deletes_of_branches(table, 1, 2)
    at = table.metadata_location

    def add_both() -> None:
        with table.transaction() as changes:
            for file in (one, other):
                with changes.update_snapshot().row_delta() as delta:
                    delta.add_deletes(file)

    with pytest.raises(ValidationException, match="vector"):
        add_both()
    assert table.refresh().metadata_location == at
    # In place of the first it is taken, and a change of rows takes it further.
    with table.update_snapshot().row_delta() as delta:
        delta.add_deletes(one)
    current = table.current_snapshot()
    assert current is not None
    with table.transaction() as changes:
        with changes.update_snapshot().row_delta() as delta:
            delta.validate_from_snapshot(current.snapshot_id).remove_deletes(one).add_deletes(other)
        assert changes.delete("id IN (2, 3)", mode="merge-on-read").rows_removed == 1
    (vector,) = table.inspect.delete_files().to_pylist()
    assert vector["record_count"] == 2
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, *range(4, 16)]


def test_rows_of_a_file_that_is_added_in_the_same_transaction(tmp_path: Path) -> None:
    table = make(tmp_path, 3)
    path = tmp_path / "given.parquet"
    pq.write_table(rows(50, 51, 52), path)
    with table.transaction() as changes:
        changes.add_files([str(path)])
        assert changes.delete("id = 51", mode="merge-on-read").rows_removed == 1
        assert changes.update({"v": 3}, "id >= 50", mode="merge-on-read").rows_added == 2
    assert table.scan("v = 3").to_arrow()["id"].to_pylist() == [50, 52]
    assert table.scan().count() == 18
