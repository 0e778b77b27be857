"""Sequences of operations and what the Java library made of them (``golden/commits``), by the public API.

Differences on purpose are in docs/differences.md; here they are recognised by rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

import icefield as ice
from icefield._core import set_clock
from worlds.commit_cases import FOLDER, OURS, Json, cases
from worlds.commit_operations import is_known, prepare
from worlds.commit_rules import outcome_of, same, same_expiry
from worlds.commit_state import state
from worlds.commit_world import World

#: Cases of our set with operations that are not there yet; they are not run.
NOT_YET = 2295

#: A change that is refused before its commit is dropped.
pytestmark = pytest.mark.filterwarnings("ignore:.*were never committed:ResourceWarning")

ALL = cases()
KNOWN = [case for case in ALL if is_known(case)]


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
            self.refused = error

    def end(self) -> None:
        """Commit, unless the operation was refused already."""
        try:
            self.done = self.commit() if self.commit else None
        except ice.IcefieldError as error:
            self.refused = error


@pytest.mark.parametrize("case", KNOWN, ids=lambda case: case["id"])
def test_commits(case: Json) -> None:
    world, steps, expected = World(case), case["steps"], case["expected"]
    client = Client(world)
    before: list[object] = []

    def carry_out(first: int, last: int) -> None:
        for number in range(first, last):
            world.hour(number)
            play(world, steps[number], world.table())()
        world.hour(len(steps))

    def race() -> None:
        for given in case.get("race", []):
            play(world, given, world.table())()
        before[:] = [world.table().metadata, world.left()]

    carry_out(0, case["base"])
    client.begin(case["operation"])
    carry_out(case["base"], len(steps))
    before = [world.table().metadata, world.left()]
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
