"""Laws of scans: random tables with a past, random filters, and a naive evaluation of every row of every file.

A scan gives the rows that match and no others; no file with a matching row is left out; what a plan leaves to be tested
of a file, with the file's partition, is the filter; partitions of which all rows shall match hold no other; counts are
lengths; bounds that are said to be exact are the least and the greatest value.
The tables differ in their metrics: whole bounds, bounds cut to one character, counts alone, none.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield as ice
from worlds.predicates import Predicate, random_predicate
from worlds.stories import Story, tell
from worlds.tables import TRANSFORMS, primitives
from worlds.truth import rows_of_file
from worlds.values import from_array, order

CASES = int(os.environ.get("ICEFIELD_RANDOM_CASES", "200"))
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
PER_TABLE = 20


@pytest.mark.parametrize("number", range((CASES + PER_TABLE - 1) // PER_TABLE))
def test_scans_keep_the_laws(number: int, tmp_path: Path) -> None:
    rng = Random(SEED * 1000 + number)
    catalog = ice.load_catalog("laws", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    story = tell(rng, catalog, "db.t")
    for _ in range(PER_TABLE):
        at = rng.choice(story.scans())
        schema = story.table.scan(**at).projection()
        predicate = random_predicate(rng, primitives(schema), TRANSFORMS)
        try:
            Scanned(story, at, schema, predicate).check()
        except AssertionError as error:
            error.add_note(f"seed {SEED}, table {number}: {story.log}\n{at} {json.dumps(predicate.json())}")
            raise


class Scanned:
    """One filter on one snapshot, and what each file of the snapshot holds."""

    def __init__(self, story: Story, at: dict[str, Any], schema: ice.Schema, predicate: Predicate) -> None:
        self.table, self.at, self.schema, self.predicate = story.table, at, schema, predicate
        filter = json.dumps(predicate.json())
        self.expression = ice.expressions.from_json(filter, schema if predicate.typed else None)
        self.scan = self.table.scan(self.expression, **at)
        self.everything = self.table.scan(**at)
        files = self.everything.plan_files().to_arrow()
        self.rows = {path: rows_of_file(path, schema) for path in files["file_path"].to_pylist()}
        self.id = next(column.id for column in primitives(schema) if column.name == "id")

    def check(self) -> None:
        matching = {path: self._ids(path, matching=True) for path in self.rows}
        wanted = sorted(number for ids in matching.values() for number in ids)
        found = self.scan.to_arrow()
        assert sorted(found["id"].to_pylist()) == wanted
        self._same_values(found)
        assert self.scan.count() == len(wanted)
        for limit in (0, 1, len(wanted) // 2, len(wanted) + 1):
            limited = self.table.scan(self.expression, limit=limit, **self.at)
            assert limited.to_arrow().num_rows == limited.count() == min(limit, len(wanted))
        assert self.scan.exists() == bool(wanted)
        self._bounds(matching)
        self._plan(matching)
        self._projections(matching)

    def _ids(self, path: str, *, matching: bool) -> list[int]:
        return [row[self.id] for row in self.rows[path] if not matching or self.predicate.matches(row)]

    def _same_values(self, found: pa.Table) -> None:
        rows = {row[self.id]: row for rows in self.rows.values() for row in rows}
        for column in primitives(self.schema):
            if not column.nested:
                values = [rows[number].get(column.id) for number in found["id"].to_pylist()]
                read = found[column.name].combine_chunks()
                read = read.combine_chunks() if isinstance(read, pa.ChunkedArray) else read
                assert Counter(map(repr, from_array(read))) == Counter(map(repr, values)), column

    def _bounds(self, matching: dict[str, list[int]]) -> None:
        rows = [row for path, ids in matching.items() for row in self.rows[path] if row[self.id] in set(ids)]
        for column in primitives(self.schema):
            pair, reason = self.scan._scan.bounds(column.name)
            values = sorted((row[column.id] for row in rows if row.get(column.id) is not None), key=order)
            least_and_most = [values[0], values[-1]] if values else [None, None]
            assert reason is not None or from_array(pair.to_pyarrow()) == least_and_most, column

    def _plan(self, matching: dict[str, list[int]]) -> None:
        planned = self.scan.plan_files().files
        lost = {path for path, ids in matching.items() if ids} - {file["file_path"] for file in planned}
        assert not lost
        everything = self.everything.to_arrow()
        for file in planned:
            path, every = file["file_path"], set(self._ids(file["file_path"], matching=False))
            residual = ice.expressions.from_json(file["residual"], self.schema)
            left = residual.bind(self.schema).evaluate(everything)
            tested = set(everything.filter(left)["id"].to_pylist()) & every
            assert tested == set(matching[path]), f"{file['partition']} leaves {residual}"

    def _projections(self, matching: dict[str, list[int]]) -> None:
        files = self.everything.plan_files().to_arrow()
        for spec_id, spec in self.table.specs().items():
            of_spec = files.filter(pc.equal(files["spec_id"], spec_id))
            tuples = of_spec["partition"].combine_chunks()
            tuples = pa.table(dict(zip([field.name for field in tuples.type], tuples.flatten(), strict=True)))
            if of_spec.num_rows == 0 or tuples.num_columns == 0:
                continue
            every = self.expression.project(spec, self.schema, inclusive=False).evaluate(tuples).to_pylist()
            some = self.expression.project(spec, self.schema, inclusive=True).evaluate(tuples).to_pylist()
            for path, strict, inclusive in zip(of_spec["file_path"].to_pylist(), every, some, strict=True):
                assert inclusive or not matching[path], "a partition with matching rows is left out"
                assert not strict or len(matching[path]) == len(self.rows[path]), "not all rows match"
