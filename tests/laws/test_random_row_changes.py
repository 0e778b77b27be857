"""Changes of rows against a dict: random tables, filters, modes and versions; lineage of the rows that stay.

``ICEFIELD_RANDOM_CASES`` draws more, and ``ICEFIELD_RANDOM_SEED`` others.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

hypothesis = pytest.importorskip("hypothesis")
from hypothesis import HealthCheck, given, seed, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import icefield as ice  # noqa: E402
from icefield.catalog.memory import InMemoryCatalog  # noqa: E402
from icefield.errors import InvalidArgumentError  # noqa: E402

CASES = int(os.environ.get("ICEFIELD_RANDOM_CASES", "25"))
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("v", pa.int32()),
        pa.field("s", pa.string()),
        pa.field("p", pa.int32()),
        pa.field("x", pa.struct([pa.field("y", pa.float64())])),
    ]
)

Row = tuple[int, int | None, str | None, int | None, float | None]
#: What a clause of a merge is about, its condition and what it does.
Wanted = tuple[str, Any, str]

#: Filters and what they mean: null matches nothing but ``IS NULL``.
FILTERS: dict[str, Callable[[Row], bool]] = {
    "v = 2": lambda row: row[1] == 2,
    "v != 2": lambda row: row[1] is not None and row[1] != 2,
    "v < 3": lambda row: row[1] is not None and row[1] < 3,
    "NOT v < 3": lambda row: row[1] is not None and row[1] >= 3,
    "v IS NULL": lambda row: row[1] is None,
    "s IN ('a', 'b')": lambda row: row[2] in {"a", "b"},
    "s NOT IN ('a')": lambda row: row[2] is not None and row[2] != "a",
    "id > 4 AND v IS NOT NULL": lambda row: row[0] > 4 and row[1] is not None,
    "p = 1": lambda row: row[3] == 1,
    "p IS NULL OR v = 0": lambda row: row[3] is None or row[1] == 0,
    "x.y >= 0.5": lambda row: row[4] is not None and row[4] >= 0.5,
    "id < 0": lambda row: row[0] < 0,
    "TRUE": lambda _: True,
}

values = st.tuples(
    st.none() | st.integers(0, 4),
    st.none() | st.sampled_from(["a", "b", "c"]),
    st.none() | st.integers(0, 1),
    st.none() | st.sampled_from([0.0, 0.5, 1.5]),
)
some = st.lists(values, min_size=1, max_size=12)
modes = st.sampled_from([None, "copy-on-write", "merge-on-read", "auto"])
filters = st.sampled_from(list(FILTERS))

#: Conditions of merges, and what they mean of a row of the table and one of the source, as far as there is one.
CONDITIONS: dict[str, dict[str | None, Callable[[Row | None, Row | None], bool]]] = {
    "matched": {
        None: lambda *_: True,
        "source.v > 1": lambda _, source: source[1] is not None and source[1] > 1,
        "target.s = 'a' OR source.s != 'b'": lambda target, source: target[2] == "a" or source[2] not in {None, "b"},
        "target.v IS NULL": lambda target, _: target[1] is None,
        "compute": lambda target, source: None not in {target[1], source[1]} and target[1] < source[1],
    },
    "not matched": {
        None: lambda *_: True,
        "source.v > 1": lambda _, source: source[1] is not None and source[1] > 1,
        "source.x.y < 1": lambda _, source: source[4] is not None and source[4] < 1,
    },
    "not matched by source": {
        None: lambda *_: True,
        "target.p = 1": lambda target, _: target[3] == 1,
        "NOT target.v < 3": lambda target, _: target[1] is not None and target[1] >= 3,
    },
}
#: What merges do, by what they are about.
ACTIONS = {
    "matched": ["delete", "all", "values"],
    "not matched": ["all", "values"],
    "not matched by source": ["delete", "values"],
}
clauses = st.lists(
    st.sampled_from(list(CONDITIONS)).flatmap(
        lambda when: st.tuples(st.just(when), st.sampled_from(list(CONDITIONS[when])), st.sampled_from(ACTIONS[when]))
    ),
    min_size=1,
    max_size=5,
)
limits = st.sampled_from([None, None, 1])

steps = st.one_of(
    st.tuples(st.just("append"), some),
    st.tuples(st.just("delete"), filters, modes),
    st.tuples(st.just("delete"), filters, modes),
    st.tuples(st.just("update"), filters, modes, st.sampled_from(["v", "s", "p"])),
    st.tuples(st.just("overwrite"), filters, modes, some),
    st.tuples(st.just("upsert"), st.lists(st.integers(0, 30), min_size=1, max_size=8, unique=True), values, modes),
    st.tuples(st.just("merge"), st.lists(st.tuples(st.integers(0, 15), values), max_size=8), clauses, modes, limits),
    st.tuples(st.just("merge"), st.lists(st.tuples(st.integers(0, 15), values), max_size=8), clauses, modes, limits),
    st.tuples(st.just("add column")),
)


def rows_of(rows: list[Row]) -> pa.Table:
    columns = [*zip(*rows, strict=True)] or [()] * 5
    nested = [None if y is None else {"y": y} for y in columns[4]]
    flat = [pa.array(columns[at], SCHEMA.field(at).type) for at in range(4)]
    return pa.table([*flat, pa.array(nested, SCHEMA.field(4).type)], SCHEMA)


def add_clause(merge: Any, when: str, text: str | None, action: str) -> None:
    condition = pc.field("target.v") < pc.field("source.v") if text == "compute" else text
    name = f"when_{when.replace(' ', '_')}_{'insert' if when == 'not matched' else 'update'}"
    values: dict[str, Any] = {"v": 7}
    if when != "not matched by source":
        values |= {"id": "source.id", "s": "source.s", "p": pc.field("source.v")}
    if action == "delete":
        getattr(merge, name.replace("update", "delete"))(condition)
    elif action == "all":
        getattr(merge, f"{name}_all")(condition)
    else:
        getattr(merge, name)(values, condition)


def applied(wanted: list[Wanted], when: str, target: Row | None, source: Row | None) -> str | None:
    conditions = ((CONDITIONS[when][text], action) for of, text, action in wanted if of == when)
    return next((action for holds, action in conditions if holds(target, source)), None)


def written(when: str, action: str, target: Row | None, source: Row) -> Row:
    if action == "all":
        return source
    if when == "not matched by source":
        return (source[0], 7, *source[2:])
    return (source[0], 7, source[2], source[1], None if target is None else target[4])


def merged(
    before: dict[int, Row], source: list[Row], wanted: list[Wanted]
) -> tuple[dict[int, Row], set[int], list[int]] | int | str:
    """Return the rows after a merge, which were changed, and the counts; or the key of a row that is ambiguous."""
    rows, changed, counts, ambiguous = dict(before), set(), [0, 0, 0], []
    unique = [clause for clause in wanted if clause[0] == "matched"] != [("matched", None, "delete")]
    for key, target in before.items():
        partners = [row for row in source if row[0] == key]
        when = "matched" if partners else "not matched by source"
        done = [(applied(wanted, when, target, row), row) for row in partners or [target]]
        done = [(action, row) for action, row in done if action is not None]
        if len(done) > 1 and unique:
            ambiguous.append(key)
        for action, row in done[:1]:
            counts[2 if action == "delete" else 0] += 1
            del rows[key]
            if action != "delete":
                rows[key] = written(when, str(action), target, row)
                changed.add(key)
    new = [(applied(wanted, "not matched", None, row), row) for row in source if row[0] not in before]
    new = [(action, row) for action, row in new if action]
    if len(ambiguous) == 1:
        return ambiguous[0]
    if ambiguous or len({row[0] for _, row in new}) < len(new):
        return "the model has one row for each id, and does not know the order of the table"
    rows |= {row[0]: written("not matched", str(action), None, row) for action, row in new}
    counts[1] = len(new)
    return rows, changed, counts


class World:
    """A table, and the rows that it must have, by id."""

    def __init__(self, folder: Path, version: int, parts: list[str], form: str, granularity: str) -> None:
        catalog = InMemoryCatalog("laws", warehouse=str(folder))
        catalog.create_namespace("a")
        properties = {
            "format-version": str(version),
            "write.format.default": form,
            "write.delete.granularity": granularity,
            "write.parquet.row-group-limit": "3",
        }
        self.table = catalog.create_table("a.t", schema=SCHEMA, partition_by=parts, properties=properties)
        self.version = version
        self.rows: dict[int, Row] = {}
        self.next_id = 0

    def new(self, values: list[Any]) -> list[Row]:
        rows = [(self.next_id + at, *value) for at, value in enumerate(values)]
        self.next_id += len(rows)
        return rows

    def lineage(self) -> dict[int, tuple[int, int]]:
        if self.version < 3:
            return {}
        columns = ("id", "_row_id", "_last_updated_sequence_number")
        found = self.table.scan(selected_fields=columns).to_arrow()
        return {row[0]: row[1:] for row in zip(*(column.to_pylist() for column in found.columns), strict=True)}

    def step(self, step: tuple[Any, ...]) -> None:
        before, old = self.lineage(), dict(self.rows)
        changed: set[int] = set()
        match step:
            case ("append", given):
                rows = self.new(given)
                self.table.append(rows_of(rows))
                self.rows |= {row[0]: row for row in rows}
            case ("delete", text, mode):
                done = self.table.delete(text, mode=self.mode(mode))
                gone = [key for key, row in self.rows.items() if FILTERS[text](row)]
                assert (done.rows_removed, done.rows_added) == (len(gone), 0)
                for key in gone:
                    del self.rows[key]
            case ("update", text, mode, column):
                at = SCHEMA.get_field_index(column)
                value = {"v": 7, "s": "z", "p": 1}[column]
                done = self.table.update({column: value}, text, mode=self.mode(mode))
                changed = {key for key, row in self.rows.items() if FILTERS[text](row)}
                assert (done.rows_removed, done.rows_added) == (len(changed),) * 2
                for key in changed:
                    row = self.rows[key]
                    self.rows[key] = (*row[:at], value, *row[at + 1 :])
            case ("overwrite", text, mode, given):
                rows = self.new(given)
                self.table.overwrite(rows_of(rows), text, mode=self.mode(mode))
                self.rows = {key: row for key, row in self.rows.items() if not FILTERS[text](row)}
                self.rows |= {row[0]: row for row in rows}
            case ("upsert", keys, value, mode):
                rows = [(key, *value) for key in keys]
                done = self.table.upsert(rows_of(rows), ["id"], mode=self.mode(mode))
                changed = {row[0] for row in rows if row[0] in old and old[row[0]] != row}
                added = [row for row in rows if row[0] not in old]
                assert (done.rows_updated, done.rows_inserted) == (len(changed), len(added))
                self.rows |= {row[0]: row for row in rows}
                self.next_id = max(self.next_id, *(key + 1 for key in keys))
            case ("merge", given, wanted, mode, limit):
                changed = self.merge(given, wanted, mode, limit)
            case ("add column",):
                with self.table.update_schema() as update:
                    update.add_column(f"more{self.table.schema().highest_field_id}", "string")
        self.check(old, before, changed)

    def merge(self, given: list[tuple[int, Any]], wanted: list[Wanted], mode: Any, limit: Any) -> set[int]:
        """Merge rows by id, and return the ids of the rows that were changed."""
        source = [(key, *value) for key, value in given]
        # What can never apply is refused.
        wanted = [clause for at, clause in enumerate(wanted) if (clause[0], None) not in {c[:2] for c in wanted[:at]}]
        expected = merged(self.rows, source, wanted)
        if isinstance(expected, str):
            return set()
        merge = self.table.merge(rows_of(source), "id", mode=self.mode(mode), memory_limit=limit)
        for clause in wanted:
            add_clause(merge, *clause)
        if isinstance(expected, int):
            with pytest.raises(InvalidArgumentError, match=f"the key id = {expected}, and when_matched"):
                merge.execute()
            return set()
        self.rows, changed, counts = expected
        result = merge.execute()
        assert [result.rows_updated, result.rows_inserted, result.rows_deleted] == counts
        self.next_id = max([self.next_id, *(key + 1 for key, *_ in source)])
        return changed

    def mode(self, mode: str | None) -> Any:
        return "copy-on-write" if self.version == 1 and mode == "merge-on-read" else mode

    def check(self, old: dict[int, Row], before: dict[int, tuple[int, int]], changed: set[int]) -> None:
        found = self.table.scan().to_arrow()
        rows = zip(*(found[name].to_pylist() for name in SCHEMA.names), strict=True)
        got = sorted((*row[:4], None if row[4] is None else row[4]["y"]) for row in rows)
        assert got == sorted(self.rows.values(), key=lambda row: row[0])
        assert self.table.scan().count() == len(self.rows)
        files = self.table.inspect.files().to_pylist()
        assert all(file["record_count"] > 0 for file in files)
        deletes = [file for file in files if file["content"]]
        assert {file["file_format"].upper() == "PUFFIN" for file in deletes} <= {self.version == 3}
        vectors = [file["referenced_data_file"] for file in deletes if self.version == 3]
        assert len(set(vectors)) == len(vectors)
        after = self.lineage()
        newest = self.table.metadata.last_sequence_number
        for key, (row_id, number) in after.items():
            if key in old and key in self.rows and key in before:
                assert row_id == before[key][0]
                assert number == (newest if key in changed else before[key][1]), key
        assert len({row_id for row_id, _ in after.values()}) == len(after)


@seed(SEED)
@settings(max_examples=CASES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(
    version=st.sampled_from([1, 2, 2, 3, 3]),
    parts=st.sampled_from([[], ["p"], ["bucket(2, id)", "p"]]),
    form=st.sampled_from(["parquet", "parquet", "orc", "avro"]),
    granularity=st.sampled_from(["file", "partition"]),
    first=some,
    plan=st.lists(steps, min_size=1, max_size=6),
)
def test_rows_are_those_of_the_model(
    version: int, parts: list[str], form: str, granularity: str, first: list[Any], plan: list[tuple[Any, ...]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder), version, parts, form, granularity)
        for step in [("append", first), *plan]:
            world.step(step)


def test_upgraded_tables_keep_their_deletes(tmp_path: Path) -> None:
    """Position deletes of version 2 are part of the first vector of a file, and do not come back."""
    for granularity in ("file", "partition"):
        world = World(tmp_path / granularity, 2, [], "parquet", granularity)
        world.step(("append", [(at, "a", 0, None) for at in (0, 1, 2, 3, 4) * 3]))
        world.step(("append", [(at, "b", 1, None) for at in (0, 1, 2, 3, 4) * 3]))
        world.step(("delete", "v = 2", "merge-on-read"))
        world.table.update_properties({"format-version": "3"})
        world.version = 3
        done = world.table.delete("v = 1 AND s = 'a'", mode="merge-on-read")
        assert (done.rows_removed, done.files_marked) == (3, 1)
        world.rows = {key: row for key, row in world.rows.items() if (row[1], row[2]) != (1, "a")}
        got = sorted(world.table.scan().to_arrow()["id"].to_pylist())
        assert got == sorted(world.rows)
        vectors = [file for file in world.table.inspect.files().to_pylist() if file["file_format"].upper() == "PUFFIN"]
        assert [file["record_count"] for file in vectors] == [6]
        # A rewrite reads through all of them.
        world.table.delete("v = 0", mode="copy-on-write")
        world.rows = {key: row for key, row in world.rows.items() if row[1] != 0}
        assert sorted(world.table.scan().to_arrow()["id"].to_pylist()) == sorted(world.rows)
        assert ice.__version__
