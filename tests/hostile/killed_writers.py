"""Forks a process for each way to die in a change of a table; says what each left. Run by ``test_killed_writers.py``.

A process is forked before anything was opened, so that it is as good as a fresh one and starts in no time. It dies
before a numbered system call (by the hook of debug builds), or around the statement that makes the commit visible.
Another one looks at the table then. With ``full`` in place of ``die`` it finds the disk full from that call on.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd  # noqa: F401 - forks would import it, each by itself
import pyarrow as pa
import sqlalchemy
from every_change import KINDS, catalog_of, local, pointer, prepare, sizes, state

from icefield.catalog.sql import SqlCatalog
from icefield.errors import UnsupportedFeatureError

STEPS = {"die": "ICEFIELD_TEST_DIE_AT_STEP", "full": "ICEFIELD_TEST_FULL_AT_STEP"}
#: One in so many tables is read even if its files say that it has not changed.
LOOK_AT = 8


def die(*_: object) -> None:
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


def change(folder: Path, kind: str, fault: str, point: str) -> str:
    """Make a change, and die on the way, or say how it failed."""
    if point.isdecimal():
        os.environ[STEPS[fault]] = point
    catalog = catalog_of(folder)
    table = catalog.load_table("db.t")
    # The statement that makes a commit visible, or a new table.
    makes = "add_pointer" if KINDS[kind].table != "t" else "swap_pointer"
    make = getattr(SqlCatalog, makes)
    if point == "before the swap":
        setattr(SqlCatalog, makes, die)
    elif point == "after the swap":
        setattr(SqlCatalog, makes, lambda *a: (make(*a), die())[0])
    elif point == "in the transaction":
        sqlalchemy.event.listen(catalog._engine, "commit", die)  # type: ignore[attr-defined]
    try:
        KINDS[kind].change(table, folder)
    except Exception as error:  # noqa: BLE001 - the test says which is right
        return f"{type(error).__name__}: {error}"
    return ""


def look(folder: Path, kind: str) -> dict[str, Any]:
    """Say what the table is, and write to it."""
    name = KINDS[kind].table
    found = state(folder, name)
    catalog = catalog_of(folder)
    if not catalog.table_exists(f"db.{name}"):
        try:
            KINDS[kind].change(catalog.load_table("db.t"), folder)
        except UnsupportedFeatureError as error:
            # A folder with a metadata file is taken for a table, which it is.
            assert "register its metadata file" in str(error)
            (left,) = (folder / "given" / "hive").glob("metadata/*.metadata.json")
            catalog.register_table(f"db.{name}", str(left))
        found["goes on"] = catalog.load_table(f"db.{name}").scan().count() > 0
        return found
    table = catalog.load_table(f"db.{name}")
    table.append(pa.table({"id": pa.array([1000], pa.int64()), "place": ["b"]}))
    found["goes on"] = table.scan().count() == len(found["rows"]) + 1
    return found


def in_a_fork(act: Callable[[], object]) -> tuple[int, Any]:
    """Run something in a process of its own; return the signal that ended it, or 0, and what it returned."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            with os.fdopen(writing, "w") as answer:
                json.dump(act(), answer)
            os._exit(0)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
        finally:
            os._exit(99)
    os.close(writing)
    with os.fdopen(reading) as answers:
        text = answers.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status), None
    assert os.WEXITSTATUS(status) == 0, text
    return 0, json.loads(text)


def may_be_deleted(folder: Path, kind: str) -> list[str]:
    """List the files that the change may delete."""
    deletes = KINDS[kind].deletes
    return deletes(catalog_of(folder).load_table("db.t")) if deletes is not None else []


def restore(folder: Path, ready: Path, old: dict[str, int]) -> None:
    """Make the table again what it was: files are never changed, only added and deleted."""
    now = sizes(folder)
    for path in now.keys() - old.keys():
        Path(path).unlink()
    for path in old.keys() - now.keys():
        shutil.copy2(ready / Path(path).relative_to(folder), path)
    shutil.rmtree(folder / "catalog")
    shutil.copytree(ready / "catalog", folder / "catalog")


def main() -> None:
    """Go on with later steps until a change lives, or succeeds."""
    SqlCatalog("c", uri="sqlite://").close()
    root, kind, fault, apart = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
    folder, ready = root / "table", root / "ready"
    folder.mkdir()
    in_a_fork(lambda: prepare(folder, KINDS[kind].version, KINDS[kind].before))
    shutil.copytree(folder, ready)
    name = KINDS[kind].table
    before = in_a_fork(lambda: state(folder, name))[1]
    old, was_at = sizes(folder), pointer(folder, name)
    may_go = in_a_fork(lambda: may_be_deleted(folder, kind))[1]
    ended: dict[str, Any] = {}
    swaps = ["before the swap", "in the transaction", "after the swap"]
    points = swaps if fault == "die" and KINDS[kind].commits else []
    # Kinds begin at different calls; each call has its turn only where every one is asked for.
    steps = range(list(KINDS).index(kind) % min(apart, 3), 1000, apart)
    for number, point in enumerate([*points, *map(str, steps)]):
        restore(folder, ready, old)
        killed_by, said = in_a_fork(lambda point=point: change(folder, kind, fault, point))
        now = sizes(folder)
        found: dict[str, Any] = {"killed by": killed_by, "said": said, "new": sorted(now.keys() - old.keys())}
        # With the same metadata and all old files as they were, the table is the old one: some are read nevertheless.
        found["same"] = pointer(folder, name) == was_at and old.items() <= now.items()
        if not found["same"] or number % LOOK_AT == 0:
            found |= in_a_fork(lambda: look(folder, kind))[1]
        ended[point] = found
        if point.isdecimal() and not killed_by and not said:
            break
    sys.stdout.write(json.dumps({"before": before, "may go": list(map(local, may_go)), "ended": ended}))


if __name__ == "__main__":
    main()
