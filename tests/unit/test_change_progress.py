"""The progress line of changes: in terminals, for every change, also one that fails."""

from __future__ import annotations

import io
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.catalog.memory import InMemoryCatalog

ROWS = pa.table({"id": range(100), "v": [0] * 100})
NEW = pa.table({"id": range(90, 110), "v": [1] * 20})
LINE = r"[\d,.]+ (?:B|KiB) read, (\d+) files and ([\d,.]+) (B|KiB) written, \d+\.\d s *\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    catalog = InMemoryCatalog("local", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("a")
    pq.write_table(ROWS, tmp_path / "one.parquet")
    return catalog.create_table("a.t", schema=ROWS, properties={"write.delete.mode": "merge-on-read"}).append(ROWS)


Change = Callable[[Any, Path, bool], object]
CHANGES: dict[str, Change] = {
    "append": lambda table, _, progress: table.append(NEW, progress=progress),
    "add_files": lambda table, folder, progress: table.add_files([str(folder / "one.parquet")], progress=progress),
    "overwrite": lambda table, _, progress: table.overwrite(NEW, "id > 50", progress=progress),
    "delete": lambda table, _, progress: table.delete("id = 7", progress=progress),
    "update": lambda table, _, progress: table.update({"v": 9}, "id = 7", progress=progress),
    "upsert": lambda table, _, progress: table.upsert(NEW, ["id"], progress=progress),
    "merge": lambda table, _, progress: table.merge(NEW, "id", progress=progress).when_matched_update_all().execute(),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("in_transaction", [False, True])
def test_the_line_counts_what_is_written(
    table: ice.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, in_transaction: bool
) -> None:
    before = set(tmp_path.rglob("*.parquet"))
    shown = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", shown)
        if in_transaction:
            with table.transaction() as changes:
                CHANGES[name](changes, tmp_path, True)
        else:
            CHANGES[name](table, tmp_path, True)
    last = shown.getvalue().split("\r")[-1]
    found = re.fullmatch(LINE, last)
    assert found, shown.getvalue()
    files = set(tmp_path.rglob("*.parquet")) - before
    size = sum(path.stat().st_size for path in files)
    # Outside of a transaction, manifests are written within the change as well.
    assert int(found[1]) >= len(files)
    written = float(found[2].replace(",", "")) * (1024 if found[3] == "KiB" else 1)
    assert written >= size * 0.95
    assert all(thread.name != "icefield-progress" for thread in threading.enumerate())


def test_a_stream_of_upserts_has_a_line_for_each_commit(table: ice.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for progress in (True, False):
        shown = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", shown)
            with table.upsert_stream(["id"], progress=progress) as stream:
                for _ in range(2):
                    stream.upsert(NEW).commit()
                stream.commit()
        lines = shown.getvalue().split("\n")[:-1]
        assert len(lines) == (2 if progress else 0), "none for a commit of nothing"
        for line in lines:
            found = re.fullmatch(LINE, line.split("\r")[-1] + "\n")
            assert found, shown.getvalue()
            # A data file and a delete file, a manifest of each, their list; the metadata file.
            assert int(found[1]) >= 5


def test_nothing_is_shown_elsewhere(table: ice.Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for change in CHANGES.values():
        change(table, tmp_path, True) if change is not CHANGES["add_files"] else None
    assert capsys.readouterr() == ("", "")


def test_a_change_that_fails_ends_its_line(table: ice.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", shown)
        with pytest.raises(ice.errors.ValidationError):
            table.append(pa.table({"id": ["x"], "v": [1]}), progress=True)
        with pytest.raises(ice.InvalidArgumentError):
            table.upsert(pa.concat_tables([NEW, NEW]), ["id"], progress=True)
    assert shown.getvalue().count("\n") == 2
    assert shown.getvalue().endswith("\n")


def test_the_next_change_of_a_transaction_is_not_counted(table: ice.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    with monkeypatch.context() as patch, table.transaction() as changes:
        patch.setattr(sys, "stderr", shown)
        changes.append(NEW, progress=True)
        line = shown.getvalue()
        changes.append(NEW)
        assert shown.getvalue() == line
