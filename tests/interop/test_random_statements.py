"""Random changes of rows by SQL, of Java's connector and of icefield in turn on one table, beside a model.

After each statement icefield reads what the model has, and at the end the connector and `SqlSession` do too. ``make
test-random`` draws ten times as many, of another seed.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from worlds.row_statements import RowStatements

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

MANY = int(os.environ.get("ICEFIELD_RANDOM_CASES", "0")) >= 1000
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
STORIES = 200 if MANY else 20
#: Statements of a story behind CREATE TABLE and the first INSERT.
STEPS = 6 if MANY else 2
#: Statements by what they begin with, and who ran them.
DONE: Counter[tuple[str, str]] = Counter()


@pytest.mark.parametrize("number", range(STORIES))
def test_both_engines_change_one_table(java: Java, number: int) -> None:
    rng = Random(SEED * 1000 + number)
    story = RowStatements(rng)
    engines = [rng.choice(("jtwin", "itwin")) for _ in range(STEPS + 2)]
    texts = [story.create(), story.insert()]
    expected: list[Any] = [Counter(), story.counted()]
    for _ in range(STEPS):
        texts.append(story.step())
        expected.append(story.counted())
    steps = list(zip(engines, texts, strict=True))
    found = java.do("turns", table=f"turn{number}", steps=steps)
    for (engine, text), rows, model in zip(steps, found["after"], expected, strict=True):
        DONE[engine, text.split()[0]] += 1
        assert _rows(rows) == model, (engine, text, steps)
    for engine, rows in found["last"].items():
        assert _rows(rows) == expected[-1], (engine, steps)


def test_both_did_every_kind_of_statement() -> None:
    assert {(engine, kind) for engine in ("jtwin", "itwin") for kind in ("INSERT", "DELETE", "UPDATE", "MERGE")} <= set(
        DONE
    )


def _rows(rows: list[list[Any]]) -> Counter[tuple[Any, ...]]:
    return Counter(map(tuple, rows))
