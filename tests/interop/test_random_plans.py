"""Random tables, written by us and by Java, planned with random filters by Java's own planner and by us: the same.

Compared are the data files, the deletes of each, the residuals, and how files are cut and packed; and no file with a
matching row may be left out. ``make test-random`` runs more cases, of other seeds.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import icefield as ice
from worlds.predicates import ORDERED, Predicate, random_predicate
from worlds.stories import Story, tell
from worlds.tables import TRANSFORMS, primitives
from worlds.truth import rows_of_file
from worlds.values import is_nan

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

CASES = int(os.environ.get("ICEFIELD_RANDOM_CASES", "200"))
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
PER_TABLE = 25
CATALOG = "random"
# Literals up to which the library compares a set with bounds.
SET = 200
EQUALITY = ("eq", "not-eq", "in", "not-in")
OVER_IDENTITY = "a transform term over an identity partition field"
# How often each rule explained a difference.
DIFFERENCES: Counter[str] = Counter()


@pytest.mark.parametrize("number", range((CASES + PER_TABLE - 1) // PER_TABLE))
def test_plans_are_those_of_java(catalog: ice.catalog.Catalog, java: Java, number: int) -> None:
    rng = Random(SEED * 1000 + number)
    name = f"{CATALOG}.db.t{number}"

    def peer(verb: str, **arguments: Any) -> int:
        if verb == "sql":
            ids = ", ".join(str(number) for number in arguments["ids"])
            try:
                java.sql(f"DELETE FROM {name} WHERE id IN ({ids})")
            except RuntimeError as error:
                # Spark has no type for some columns.
                assert "UnsupportedOperation" in str(error) or "Cannot convert" in str(error), error
            return 0
        try:
            return int(java.do("write", table=name, how=verb, **arguments))
        except RuntimeError as error:
            # The library reads no defaults from ORC.
            assert "cannot read default value" in str(error), error
            return 0

    story = tell(rng, catalog, f"db.t{number}", peer=peer)
    cases = [Case(rng, story) for _ in range(PER_TABLE)]
    answers = java.do("plan", table=name, cases=[case.request() for case in cases])
    problems: list[str] = []
    for case, answer in zip(cases, answers, strict=True):
        problems += case.problems(answer)
    assert not problems, "\n".join([f"seed {SEED}, table {number}: {story.log}", *problems])


def test_differences_are_few() -> None:
    assert sum(DIFFERENCES.values()) < CASES / 4, DIFFERENCES


def shouted(node: Any) -> Any:
    """Give an expression with the names of its columns in capitals; letters beyond ASCII stay."""
    if not isinstance(node, dict):
        return node
    upper = {name: shouted(child) for name, child in node.items()}
    if isinstance(node.get("term"), str):
        upper["term"] = "".join(letter.upper() if letter.isascii() else letter for letter in node["term"])
    return upper


class Case:
    """One scan of a table, planned by both."""

    def __init__(self, rng: Random, story: Story) -> None:
        self.story = story
        self.at = rng.choice(story.scans())
        self.schema = story.table.scan(**self.at).projection()
        self.predicate: Predicate = random_predicate(rng, primitives(self.schema), TRANSFORMS)
        text = self.predicate.json()
        # The reference finds types of literals by exact names only.
        self.case_sensitive = self.predicate.typed or rng.random() < 0.7
        self.filter = json.dumps(text if self.case_sensitive else shouted(text))
        self.split_size = rng.choice([100, 700, 2000, 5000, 100_000])
        self.error: str | None = None
        self.files: list[dict[str, Any]] = []
        self.tasks: list[list[list[Any]]] = []
        try:
            schema = self.schema if self.predicate.typed else None
            self.expression = ice.expressions.from_json(self.filter, schema)
            scan = story.table.scan(self.expression, case_sensitive=self.case_sensitive, **self.at)
            self.files = scan.plan_files().to_arrow().to_pylist()
            tasks: dict[int, list[list[Any]]] = {}
            for piece in scan.plan_tasks(self.split_size).to_pylist():
                tasks.setdefault(piece["task"], []).append([piece["file_path"], piece["start"], piece["length"]])
            self.tasks = list(tasks.values())
        except ice.IcefieldError as error:
            self.error = str(error)

    def request(self) -> dict[str, Any]:
        properties = self.story.table.properties
        packing = [int(properties[f"read.split.{name}"]) for name in ("planning-lookback", "open-file-cost")]
        return {
            "filter": self.filter,
            "typed": self.predicate.typed,
            "case_sensitive": self.case_sensitive,
            **self.at,
            "split": [self.split_size, *packing],
            "order": [file["file_path"] for file in self.files],
        }

    def problems(self, java: dict[str, Any]) -> list[str]:
        """Say what differs, but for what docs/differences.md says."""
        where = f"{self.at} {self.filter}"
        if "error" in java or self.error is not None:
            same = "error" in java and self.error is not None
            rule = None if same else self._rule_of_error(java.get("error", ""))
            DIFFERENCES.update([rule] if rule else [])
            return [] if same or rule else [f"{where}: ours {self.error}, Java {java.get('error')}"]
        ours = {file["file_path"]: file for file in self.files}
        theirs = {file["file"]: file for file in java["files"]}
        found = [(path, "only ours") for path in ours.keys() - theirs.keys()]
        found += [(path, "only Java") for path in theirs.keys() - ours.keys()]
        for path in ours.keys() & theirs.keys():
            mine = sorted(([one["file_path"], one["content_offset"]] for one in ours[path]["deletes"]), key=str)
            if mine != theirs[path]["deletes"]:
                found.append((path, f"deletes {mine}, Java {theirs[path]['deletes']}"))
            left, right = self._canonical(ours[path]["residual"]), self._canonical(theirs[path]["residual"])
            if left != right:
                found.append((path, f"residual {left}, Java {right}"))
        rules = [self._rule(path, what) for path, what in found]
        DIFFERENCES.update({rule for rule in rules if rule})
        problems = [f"{where}: {path} {what}" for (path, what), rule in zip(found, rules, strict=True) if rule is None]
        problems += [f"{where}: {path} has matching rows and is not planned" for path in self._lost(ours.keys())]
        if ours.keys() == theirs.keys() and java["tasks"] != self.tasks:
            problems.append(f"{where}: tasks {self.tasks}, Java {java['tasks']}")
        return problems

    @cached_property
    def _everything(self) -> dict[str, dict[str, Any]]:
        """All files of the snapshot."""
        return {file["file_path"]: file for file in self.story.table.scan(**self.at).plan_files().files}

    def _lost(self, planned: Iterable[str]) -> list[str]:
        """List files that are not planned although a row of theirs matches."""
        missing = self._everything.keys() - set(planned)
        parquet = [path for path in missing if path.endswith(".parquet")]
        return [path for path in parquet if any(self.predicate.matches(row) for row in rows_of_file(path, self.schema))]

    def _rule(self, path: str, what: str) -> str | None:
        """Name the section of docs/differences.md that lets the plans of a file differ in this."""
        tests = self.predicate.tests()
        if any(test.type == "uuid" and test.values for test in tests):
            return "uuid order"
        if "deletes" in what:
            return "sets of more than 200 values" if any(len(test.values) > SET for test in tests) else None
        file = self._everything[path]
        spec = json.loads(self.story.table.specs()[file["spec_id"]].to_json())["fields"]
        values = {part["source-id"]: (part["transform"], file["partition"][part["name"]]) for part in spec}
        for test in tests:
            transform, value = values.get(test.column.id, (None, 0))
            if test.op in ORDERED and (value is None or is_nan(value)):
                return "null and NaN in partition values"
            if test.transform is not None and transform == "identity":
                return OVER_IDENTITY
            if (
                what == "only ours"
                and test.column.nested
                and (test.op in EQUALITY or test.op.endswith(("null", "nan")))
            ):
                return "counts of nested columns"
            if what == "only Java" and len(test.values) > SET:
                return "sets of more than 200 values"
            if what == "only Java" and test.transform is not None and "starts" in test.op:
                return "prefixes of a transform term"
        return None

    def _rule_of_error(self, error: str) -> str | None:
        """Name the section that tells why only the library fails."""
        tests = self.predicate.tests()
        terms = {test.column.id for test in tests if test.transform is not None}
        specs = [json.loads(spec.to_json())["fields"] for spec in self.story.table.specs().values()]
        over_identity = any(
            part["transform"] == "identity" and part["source-id"] in terms for spec in specs for part in spec
        )
        if "Invalid value for conversion" in error and over_identity:
            return OVER_IDENTITY
        if 'Cannot invoke "String.startsWith' in error and any("starts" in test.op for test in tests):
            return "prefixes of null partition values"
        return None

    def _canonical(self, residual: str) -> str:
        """Give a residual bound, with the operands of an operator in one order."""
        schema = self.schema
        try:
            bound = ice.expressions.from_json(residual, schema).bind(schema, self.case_sensitive)
        except ice.IcefieldError:
            bound = ice.expressions.from_json(residual).bind(schema, self.case_sensitive)

        def visit(node: Any) -> Any:
            if isinstance(node, dict) and node["type"] in ("and", "or"):
                return [node["type"], *sorted(json.dumps(visit(node[side])) for side in ("left", "right"))]
            if isinstance(node, dict) and "values" in node:
                return {**node, "values": sorted(node["values"], key=str)}
            return node

        return json.dumps(visit(json.loads(bound.to_json())))
