"""Statements of Spark SQL and DataFrame calls, by Java's connector and by icefield: both answer and leave the same.

Each story of ``statements.py`` runs on twin tables, one of each side. After each step must be equal: what it answers
(columns with their types, rows), or that it is refused; and what it leaves: schema with ids and defaults, partition
spec, sort order, properties, branches, tags, snapshots with their summaries, and the rows of all branches. What differs
on purpose is in ``DIFFERENCES``, with its reason.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from differences import DIFFERENCES
from statements import SHORT, STORIES

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

MANY = int(os.environ.get("ICEFIELD_RANDOM_CASES", "0")) >= 1000
#: Stories of `make test`; `make test-random` tells all of them.
TOLD = [name for name in STORIES if MANY or name in SHORT]
#: The differences that were found.
MET: set[int] = set()

#: Types of parameters by those of icefield.
TYPES = {"table": "string", "long": "bigint", "array<long>": "array<bigint>"}


@pytest.mark.parametrize("name", TOLD)
def test_both_answer_and_leave_the_same(java: Java, name: str) -> None:
    story = STORIES[name]
    steps, conf = story if isinstance(story, tuple) else (story, {})
    answers = java.do("twins", name=name, table="t_" + re.sub(r"\W", "_", name), steps=steps, conf=conf)
    found = list(_differences(name, answers))
    assert not found, "\n".join(found)


def test_differences_are_there() -> None:
    if set(TOLD) == set(STORIES):
        assert [one for number, one in enumerate(DIFFERENCES) if number not in MET] == []


def test_all_options_and_settings_of_the_connector_are_known(java: Java) -> None:
    from icefield.spark.sessions.settings import PREFIX, SETTINGS
    from icefield.spark.tables.options import OPTIONS

    known = {one.name.rstrip(".") for one in OPTIONS}
    for kind in ("SparkReadOptions", "SparkWriteOptions"):
        theirs = set(java.do("constants", name=f"org.apache.iceberg.spark.{kind}"))
        assert theirs - known == set(), kind
    settings = java.do("constants", name="org.apache.iceberg.spark.SparkSQLProperties")
    own = [one.removeprefix(PREFIX) for one in settings if one.startswith(PREFIX)]
    assert len(own) > 20
    assert [one for one in own if not any(one == s.name or one.startswith(s.name) for s in SETTINGS)] == []


def test_procedures_have_the_parameters_of_the_connector(java: Java) -> None:
    from icefield.procedures import PROCEDURES

    theirs = java.do("procedures")
    for name, one in PROCEDURES.items():
        own = [
            [parameter.name, TYPES.get(parameter.type, parameter.type), parameter.required]
            for parameter in one.parameters
        ]
        assert own == theirs[name], name


def _differences(name: str, steps: list[dict[str, Any]]) -> Iterator[str]:
    """Say what differs that did not differ before, and is not on the list."""
    before: set[str] = set()
    for one in steps:
        theirs, ours = (json.loads(json.dumps(one[side]).replace(side, "cat")) for side in ("jtwin", "itwin"))
        both = [theirs["answer"], ours["answer"]]
        refused = ["error" in (answer or ()) for answer in both]
        found = [] if all(refused) else list(_different(*both, "answer"))
        state = list(_different(theirs["state"], ours["state"], "state"))
        fresh = [line for line in state if line not in before]
        before = set(state)
        step = json.dumps(one["step"])
        for line in found + fresh:
            known = [
                number
                for number, (story, of_step, of_line, _) in enumerate(DIFFERENCES)
                if re.fullmatch(story, name) and re.search(of_step, step) and re.search(of_line, line)
            ]
            MET.update(known)
            if not known:
                yield f"{step}\n    {line}"


def _different(theirs: Any, ours: Any, path: str) -> Iterator[str]:
    if isinstance(theirs, dict) and isinstance(ours, dict):
        for key in sorted({*theirs, *ours}):
            nothing = "(nothing)"
            if key in theirs and key in ours:
                yield from _different(theirs[key], ours[key], f"{path}.{key}")
            else:
                yield f"{path}.{key}: Java {theirs.get(key, nothing)!r:.300}, ours {ours.get(key, nothing)!r:.300}"
    elif isinstance(theirs, list) and isinstance(ours, list) and path == "answer.rows" and len(theirs) != len(ours):
        yield from (f"{path}: only Java {row!r:.300}" for row in theirs if row not in ours)
        yield from (f"{path}: only ours {row!r:.300}" for row in ours if row not in theirs)
    elif isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        for place, (one, other) in enumerate(zip(theirs, ours, strict=True)):
            yield from _different(one, other, f"{path}[{place}]")
    elif theirs != ours:
        yield f"{path}: Java {theirs!r:.300}, ours {ours!r:.300}"
