"""Sequences of operations and what the Java library made of them (``golden/commits``), by the public API.

Differences on purpose are in docs/differences.md; here they are recognised by rule.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import icefield as ice
from icefield._core import set_clock
from worlds.commit_cases import FOLDER, OURS, Json, cases
from worlds.commit_operations import is_known, prepare
from worlds.commit_rules import outcome_of, same, same_expiry
from worlds.commit_state import state
from worlds.commit_world import World

#: Cases of our set with operations that are not there yet; they are not run.
NOT_YET = 300

#: A change that is refused before its commit is dropped.
pytestmark = pytest.mark.filterwarnings("ignore:.*were never committed:ResourceWarning")

ALL = cases()
KNOWN = [case for case in ALL if is_known(case)]


#: Cases that do not come out as in the library yet, or in which it is wrong and no rule says so yet.
OPEN = {
    "cherry-picks of overwrites and replaced partitions are refused": (
        "cherrypick/replace_partitions/append/Q/concurrent",
        "cherrypick/replace_partitions/delete_file/P",
        "cherrypick/replace_partitions/delete_file/Q",
        "cherrypick/replace_partitions/publish",
        "cherrypick/replace_partitions/replace_partitions/Q/concurrent",
        "cherrypick/replace_partitions/publish/concurrent",
        "cherrypick/replace_wap/delete_file/P",
        "cherrypick/replace_wap/delete_file/P/concurrent",
        "cherrypick/replace_wap/delete_file/Q",
        "cherrypick/replace_wap/delete_file/Q/concurrent",
        "cherrypick/replace_wap/publish",
        "cherrypick/replace_wap/publish/concurrent",
        "cherrypick/replace_wap/rewrite_manifests",
    ),
    "manifests that are written again stand in another order": (
        "evolution/73",
        "manifests/0/delete_file/P",
        "manifests/0/overwrite_filter/P",
        "manifests/0/pos_delete/P",
        "manifests/0/rewrite/P",
        "matrix/rewrite_manifests/delete_file/Q",
        "matrix/rewrite_manifests/overwrite_files/Q",
        "matrix/rewrite_manifests/overwrite_filter/Q",
        "matrix/rewrite_manifests/replace_partitions/Q",
    ),
    "a conflict filter names a column that was renamed meanwhile": (
        "matrix/rd_remove_rows/rename_column",
        "matrix/rd_upsert/rename_column",
    ),
    "the message names another file, or fewer": (
        "arguments/dv-v2",
        "matrix/rd_remove_rows/delete_file/P",
        "matrix/rd_remove_rows/delete_filter/P",
        "matrix/rd_update/delete_all",
    ),
    "format version 4": ("arguments/upgrade/unknown", "cherrypick/row_delta/upgrade"),
    "the library leaves a removed file of a void partition of version 1": ("evolution/53", "replace_table/9"),
    "the library keeps a delete file that applies to nothing one snapshot longer": ("expire/41",),
    "the library accepts a second vector": ("arguments/row_delta/second-dv-kept",),
    "the library does not see that a data file with new deletes was removed": (
        "isolation/serializable/merge-on-read/delete/delete_filter/P",
        "isolation/snapshot/merge-on-read/delete/delete_filter/P",
        "matrix/rd_delete_2/delete_filter/P",
    ),
    "the library counts the files of each attempt": ("transactions/61",),
}
OPEN_IDS = {case: reason for reason, ids in OPEN.items() for case in ids} if FOLDER == OURS else {}


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    yield
    set_clock(None)


def test_every_case_runs_whose_operations_are_there() -> None:
    if FOLDER != OURS:
        pytest.skip("another set has other cases")
    assert len(ALL) == 2672
    left = Counter(case["group"] for case in ALL if not is_known(case))
    assert left.total() == NOT_YET, dict(left)


def play(world: World, given: Json, target: ice.Table) -> Callable[[], object]:
    """Prepare an operation; what it returns commits it, and numbers the snapshots that it made."""
    commit = prepare(world, target, given)

    def finish() -> object:
        before = set(world.table().refs())
        done = commit()
        world.note()
        world.note_branches(before)
        return done

    return finish


def without_frames(error: ice.IcefieldError) -> ice.IcefieldError:
    """Return an error that holds no frames: by them a refused change lives on, to be lost during some other test."""
    found: BaseException | None = error
    while found is not None:
        found.__traceback__ = None
        found = found.__context__
    return error


class Client:
    """The client of the operation under test, and what became of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.commit: Callable[[], object] | None = None
        self.refused: ice.IcefieldError | None = None
        self.done: object = None

    def begin(self, given: Json) -> None:
        """Do all but the commit."""
        try:
            self.commit = play(self.world, given, self.world.table())
        except ice.IcefieldError as error:
            self.refused = without_frames(error)

    def end(self) -> None:
        """Commit, unless the operation was refused already."""
        try:
            self.done = self.commit() if self.commit else None
        except ice.IcefieldError as error:
            self.refused = without_frames(error)


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case["id"])
def test_commits(case: Json) -> None:
    reason = OPEN_IDS.get(case["id"])
    if reason is None:
        compare(case)
        return
    differs = False
    try:
        compare(case)
    except (AssertionError, ice.IcefieldError):
        differs = True
    # Here changes that were refused may be lost.
    gc.collect()
    assert differs, f"it comes out as in the library, and is still in OPEN: {reason}"
    pytest.xfail(reason)


def compare(case: Json) -> None:
    """Carry out a case, and compare what comes of it."""
    world, steps, expected = World(case), case["steps"], case["expected"]
    client = Client(world)
    before: list[Any] = []

    def carry_out(first: int, last: int) -> None:
        for number in range(first, last):
            world.hour(number)
            play(world, steps[number], world.table())()
        world.hour(len(steps))

    def race() -> None:
        # What the first attempt has written is there by now, and must go.
        written = set(world.left())
        for given in case.get("race", []):
            play(world, given, world.table())()
        theirs = set(world.left()) - written
        before[:] = [world.table().metadata, sorted({*before[1], *theirs})]

    carry_out(0, case["base"])
    known = set(world.left())
    client.begin(case["operation"])
    # A transaction has written manifests by now, which must go with it.
    own = set(world.left()) - known
    carry_out(case["base"], len(steps))
    before = [world.table().metadata, sorted({*world.left()} - own)]
    world.catalog.race = race if case.get("race") else None
    client.end()

    outcome = outcome_of(case, client.refused, world)
    assert outcome.is_expected, f"{outcome.why}; here: {client.refused!r}"
    if client.refused is not None:
        assert [world.table().metadata, world.left()] == before, "a refused operation left something"
    if "deleted_files" in expected:
        same_expiry(world, expected, client.done)
    if outcome.compares_state:
        same(world, expected["state"], state(world, list(expected["state"]["manifests"])))
