"""Filters of changes may name `_deleted`: a change concerns live rows only, and what it rewrites brings none back."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.distributed import rewrite_files

#: By the rule that `_deleted` is false in every row a change sees: whether the filter matches all rows, none, or one.
FILTERS: dict[str, list[int]] = {
    "_deleted = true": [],
    "NOT (_deleted = false)": [],
    "_deleted = true AND id = 3": [],
    "_deleted = false": [3, 4, 5, 6],
    "_deleted = false AND id = 3": [3],
    "_deleted = true OR id = 4": [4],
}
VECTORS, KEYS = "rows", "keys"
TABLES = list(itertools.product([2, 3], [VECTORS, KEYS]))


def make(folder: Path, version: int, deletes: str, mode: str) -> ice.Table:
    catalog = ice.load_catalog("c", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder))
    catalog.create_namespace("a")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("s", pa.string())])
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("a.t", schema, properties=properties)
    table.append(pa.table([range(1, 7), [f"s{n}" for n in range(1, 7)]], schema))
    if deletes == VECTORS:
        table.delete("id < 3")
    else:
        with table.upsert_stream("id") as stream:
            stream.delete(pa.table({"id": [1, 2]}))
    modes = {f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")}
    table.update_properties(modes)
    return table.refresh()


def content(table: ice.Table) -> dict[int, str]:
    rows = table.refresh().scan().to_arrow().to_pylist()
    return {row["id"]: row["s"] for row in rows}


def compact(table: ice.Table, text: str) -> None:
    table.maintenance.compact(text, options={"rewrite-all": True})


def compact_on_workers(table: ice.Table, text: str) -> None:
    plan = table.maintenance.new_compaction(text, options={"rewrite-all": True})
    table.maintenance.commit_compaction(plan, [rewrite_files(task, table.storage) for task in plan.tasks()])


REWRITES: list[Callable[[ice.Table, str], None]] = [
    compact,
    compact_on_workers,
    lambda table, text: table.maintenance.convert_equality_deletes(text),
]


@pytest.mark.parametrize(("version", "deletes"), TABLES)
def test_rewrites_of_files_keep_exactly_the_live_rows(tmp_path: Path, version: int, deletes: str) -> None:
    for number, (rewrite, text) in enumerate(itertools.product(REWRITES, FILTERS)):
        folder = tmp_path / str(number)
        folder.mkdir()
        table = make(folder, version, deletes, "merge-on-read")
        before = content(table)
        rewrite(table, text)
        assert content(table) == before, (number, text)


def expected(verb: str, matched: list[int]) -> dict[int, str]:
    rows = {n: f"s{n}" for n in range(3, 7)}
    return {n: "new" if n in matched else s for n, s in rows.items() if verb != "delete" or n not in matched}


CHANGES: dict[str, Callable[[ice.Table, str], Any]] = {
    "delete": lambda table, text: table.delete(text),
    "update": lambda table, text: table.update({"s": "new"}, text),
}


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize(("version", "deletes"), TABLES)
def test_changes_find_live_rows_only(tmp_path: Path, version: int, deletes: str, mode: str) -> None:
    for number, ((verb, change), (text, matched)) in enumerate(itertools.product(CHANGES.items(), FILTERS.items())):
        folder = tmp_path / str(number)
        folder.mkdir()
        table = make(folder, version, deletes, mode)
        change(table, text)
        assert content(table) == expected(verb, matched), (verb, text)


def test_scans_still_show_deleted_rows(tmp_path: Path) -> None:
    table = make(tmp_path, 3, VECTORS, "merge-on-read")
    assert sorted(table.scan("_deleted = true", selected_fields=("id",)).to_arrow()["id"].to_pylist()) == [1, 2]
