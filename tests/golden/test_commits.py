"""Sequences of operations and what the Java library made of them (``golden/commits``), by the public API.

Differences on purpose are in docs/differences.md; here they are recognised by rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import icefield as ice
from icefield._core import set_clock
from worlds.commits.cases import FOLDER, OURS, Json, cases
from worlds.commits.operations import is_known, prepare
from worlds.commits.rules import asks_for_version_4, outcome_of, same, same_expiry
from worlds.commits.state import state
from worlds.commits.world import World
from worlds.sample import sample

#: A change that is refused before its commit is dropped.
pytestmark = pytest.mark.filterwarnings("ignore:.*were never committed:ResourceWarning")

ALL = cases()


def kind(case: Json) -> tuple[str, str, str]:
    """Return what a case is about: the part of the set, the operation under test, and how it ends."""
    return case["id"].partition("/")[0], case["operation"]["op"], case["expected"]["outcome"]


@pytest.fixture(autouse=True)
def clock() -> Iterator[None]:
    yield
    set_clock(None)


def test_every_operation_and_field_is_known() -> None:
    if FOLDER != OURS:
        pytest.skip("another set has other cases")
    assert len(ALL) == 2672
    assert [case["id"] for case in ALL if not is_known(case)] == []


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


@pytest.mark.parametrize("case", sample(ALL, 4, kind), ids=lambda case: case["id"])
def test_commits(case: Json) -> None:
    if asks_for_version_4(case):
        with pytest.raises(ice.UnsupportedFeatureError, match="version 4"):
            compare(case)
        return
    compare(case)


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
