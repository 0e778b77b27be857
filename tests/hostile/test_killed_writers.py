"""A process killed anywhere in a change, or that finds the disk full, leaves a table that reads as before or after.

At every 17th system call that changes files, beginning at another one for each kind of change; at every one where
``ICEFIELD_RANDOM_CASES`` asks for many cases (``make test-random``).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from every_change import KINDS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

#: How far apart the calls are at which a process ends, or finds the disk full.
MANY = int(os.environ.get("ICEFIELD_RANDOM_CASES", "0")) >= 1000
APART = {"die": "1" if MANY else "17", "full": "1" if MANY else "51"}

#: What a table is, but for its files.
TABLE = ("rows", "history", "columns", "properties")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Give a folder in memory where there is one: what is brought to a disk takes most of the time."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=shared) as found:
        yield Path(found)


def run(folder: Path, kind: str, fault: str) -> tuple[dict[str, Any], list[str], dict[str, dict[str, Any]]]:
    script = Path(__file__).with_name("killed_writers.py")
    # Deletions alone take few calls.
    apart = APART[fault] if KINDS[kind].commits else "1"
    arguments = [sys.executable, script, folder, kind, fault, apart]
    done = subprocess.run(arguments, check=False, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    if sum(point.isdecimal() for point in told["ended"]) < 2:
        pytest.skip("this build has no hook to die at a step of the storage: it is not one for development")
    return told["before"], told["may go"], told["ended"]


def table(state: dict[str, Any]) -> list[Any]:
    return [state[name] for name in TABLE]


@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_change_was_made_or_not(folder: Path, kind: str) -> None:
    before, may_go, ended = run(folder, kind, "die")
    steps = [point for point in ended if point.isdecimal()]
    # Metadata, and most often a manifest and a list: each is created, written, brought to the disk, named, unnamed.
    commits = KINDS[kind].commits
    assert len(steps) > 5 / int(APART["die"]) if commits else len(steps) > len(may_go)
    after = ended[steps[-1]]
    assert (after["killed by"], after["said"]) == (0, "")
    assert {state["killed by"] for point, state in ended.items() if point != steps[-1]} == {signal.SIGKILL}
    assert table(before) != table(after) or not commits
    made = [not ended[point]["same"] for point in steps]
    assert made == sorted(made)
    # Old metadata files go after the commit, so it can be killed after it; a new table has none.
    assert any(made[:-1]) or APART["die"] != "1" or KINDS[kind].table != "t"
    if commits:
        assert ended["before the swap"]["same"]
        assert ended["in the transaction"]["same"]
        assert not ended["after the swap"]["same"]
    for point, state in ended.items():
        named = f"{kind}, {point}"
        if "rows" in state:
            if commits < 2:
                assert table(state) == table(before if state["same"] else after), named
            else:
                # After some of the commits, the rows are those of before and after.
                assert state["rows"] == before["rows"] == after["rows"], named
                assert state["history"] == after["history"][: len(state["history"])], named
            assert state["goes on"], named
            check_files(before, may_go, state, named)
        # What is left over was written by the change, and is named: of the table's folders, and no other.
        assert all("/data/" in path or "/metadata/" in path for path in state["new"]), named
    assert set(after["orphans"]) <= set(before["orphans"]), "a change that lives leaves nothing behind"
    if not commits:
        assert may_go
        assert set(before["files"]) - set(after["files"]) == set(may_go)


def check_files(before: dict[str, Any], may_go: list[str], state: dict[str, Any], point: str) -> None:
    """What the table names is there; what it does not name was written by the change, or was to be deleted by it."""
    assert state["missing"] == [], point
    old_metadata = {path for path in before["files"] if path.endswith(".metadata.json")}
    orphans = set(state["orphans"]) - set(before["orphans"])
    assert orphans - set(state["new"]) <= set(may_go) | old_metadata, point
    gone = set(before["files"]) - set(state["files"])
    assert gone <= set(may_go) | old_metadata, point


@pytest.mark.parametrize("kind", [kind for kind in KINDS if KINDS[kind].commits == 1])
def test_a_full_disk_changes_nothing(folder: Path, kind: str) -> None:
    before, _, ended = run(folder, kind, "full")
    *failed, last = ended
    assert failed
    assert ended[last]["said"] == ""
    for point in failed:
        state = ended[point]
        said = state["said"]
        assert said.startswith("StorageError: "), (kind, point, said)
        assert "no storage space" in said, (kind, point, said)
        assert (state["same"], state["new"]) == (True, []), (kind, point)
        assert table(state) == table(before) if "rows" in state else True, (kind, point)
