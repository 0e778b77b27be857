"""Random statements of SQL, by Java's connector and by icefield in turn on one table, beside a model.

They change rows in both modes, and between that schema, spec, order and properties. After each statement both read what
the model has; in version 3 the same row ids and sequence numbers too, and each row that stays keeps its id. ``make
test-random`` tells ten times as many stories, of another seed.
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
STEPS = 7 if MANY else 2
SIDES = ("jtwin", "itwin")
#: Statements by who ran them and what they begin with.
DONE: Counter[tuple[str, str]] = Counter()


@pytest.mark.parametrize("number", range(STORIES))
def test_both_engines_change_one_table(java: Java, number: int) -> None:
    rng = Random(SEED * 1000 + number)
    story = RowStatements(rng)
    steps: list[Any] = [[rng.choice(SIDES), story.create(), {}]]
    models = [(story.counted(), 0)]
    for draw in (story.insert, *[story.step] * STEPS):
        steps.append([rng.choice(SIDES), draw(), story.conf])
        models.append((story.counted(), story.kept))
    found = java.do("turns", table=f"turn{number}", steps=steps, lineage=story.version == 3)
    told = "\n".join(f"{side}: {text}" for side, text, _ in steps)
    before: set[str] = set()
    for (side, text, _), answer, (model, kept) in zip(steps, found["after"], models, strict=False):
        DONE[side, text.split()[0]] += 1
        for reader, rows in answer.items():
            got = Counter(tuple(row) for row in rows["rows"])
            assert got == model, f"{reader} behind {side}: {text}\n{got - model}\n{model - got}\n{told}"
        if story.version == 3:
            for reader, rows in answer.items():
                assert rows["lineage"] == answer["own"]["lineage"], f"{reader} behind {side}: {text}\n{told}"
            ids = {one[0] for one in answer["own"]["lineage"]}
            assert len(ids) == model.total(), f"row ids twice behind {side}: {text}\n{told}"
            assert len(ids & before) == kept, f"row ids not kept behind {side}: {text}\n{told}"
            before = ids
    assert "error" not in found, f"{found.get('error')}\nin {steps[len(found['after'])]}\n{told}"


@pytest.mark.parametrize(
    ("partitioning", "condition", "side", "left"),
    [
        (" PARTITIONED BY (n)", "n < 5", "jtwin", ["3"]),
        (" PARTITIONED BY (n)", "n < 5", "itwin", ["1", "3"]),
        (" PARTITIONED BY (n)", "n <> 50", "jtwin", []),
        ("", "n <> 50", "jtwin", []),
        ("", "n <> 50", "itwin", ["1"]),
    ],
)
def test_deletes_keep_null(java: Java, partitioning: str, condition: str, side: str, left: list[str]) -> None:
    """The connector removes whole files with the nulls in them (docs/differences.md); random conditions exclude it."""
    steps = [
        f"CREATE TABLE {{t}} (id int, n int) USING iceberg{partitioning}",
        "INSERT INTO {t} VALUES (1, null), (2, 1), (3, 9)",
        f"DELETE FROM {{t}} WHERE {condition}",
    ]
    name = f"nulls_{side}_{len(partitioning)}_{'<>' in condition}"
    found = java.do("turns", table=name, steps=[[side, text, {}] for text in steps], lineage=False)
    for reader, rows in found["after"][-1].items():
        assert sorted(row[0] for row in rows["rows"]) == left, reader


def test_both_did_every_kind_of_statement() -> None:
    kinds = ("INSERT", "DELETE", "UPDATE", "MERGE", "ALTER")
    assert {(side, kind) for side in SIDES for kind in kinds} <= set(DONE), DONE
