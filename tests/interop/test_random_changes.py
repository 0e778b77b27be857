"""Random changes of ours and of Java, in turn on one table: after each step Java and others read what we read.

Ours are of every kind (`worlds.our_steps`), on tables that Java has made, of all versions with delete files, formats
and types. What our step must leave is known without a reader; what PyIceberg and DuckDB cannot read they say, by a
message that is known here. ``make test-random`` draws ten times as many, of another seed.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice
from worlds.encoding import encoded_table
from worlds.java_story import Story
from worlds.our_steps import OurSteps

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

CATALOG = "turns"
MANY = int(os.environ.get("ICEFIELD_RANDOM_CASES", "0")) >= 1000
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
STORIES = 200 if MANY else 20
STEPS = 6
DONE: Counter[str] = Counter()
#: What Java refuses; the step is passed over.
REFUSED = (
    "Cannot convert",
    "incompatible",
    "Cannot delete",
    "Cannot drop",
    "Cannot add partition field",
    "Cannot add duplicate partition field",
    "Cannot change column type",
    "already exists",
    "MERGE_CARDINALITY_VIOLATION",
)
#: What others cannot read, by words of their messages.
PEERS_REFUSE = {
    "PyIceberg": (
        "ORC",
        "orc",
        "AVRO",
        "avro",
        "PUFFIN",
        "Equality",
        "does not yet support",
        # Timestamps of ORC files, which pyarrow reads as nanoseconds.
        "Unsupported schema projection",
        "not yet supported",
        "not implemented",
        "deletion vector",
        "Deletion vector",
    ),
    "DuckDB": (
        "not implemented",
        "Not implemented",
        "not supported",
        "unsupported",
        "only supports",
        "File format",
        "deletion vector",
    ),
}


@pytest.mark.parametrize("number", range(STORIES))
def test_all_read_what_each_has_written(catalog: ice.catalog.Catalog, java: Java, tmp_path: Path, number: int) -> None:
    rng = Random(SEED * 1000 + number)
    story = Story(rng, f"{CATALOG}.db.t{number}")
    for text in story.create():
        java.sql(text)
        story.log.append(text)
    table = catalog.load_table(f"db.t{number}")
    by_java(java, story, story.insert())
    ours = OurSteps(rng, story, table, tmp_path)
    for _ in range(rng.randint(4, STEPS)):
        expected = None
        if rng.random() < 0.25:
            by_java(java, story, story.step())
        else:
            text, expected = ours.step()
            story.log.append(text)
            DONE[text.split()[1]] += 1
        table.refresh()
        found = encoded_table(table.scan().to_arrow())
        if expected is not None:
            same("the model", expected, found, story)
        java.sql(f"REFRESH TABLE {story.name}")
        same("Java", encoded_table(java.rows(f"SELECT * FROM {story.name}")), found, story)
        assert table.scan().count() == len(found), story.log
        by_peer("DuckDB", lambda: java.duckdb(table.metadata_location), found, story)
        by_peer("PyIceberg", lambda: by_pyiceberg(table), found, story)


def by_java(java: Java, story: Story, statements: list[str]) -> None:
    for text in statements:
        before = dict(story.columns), list(story.fields)
        try:
            java.sql(text)
            story.log.append(text)
        except RuntimeError as error:
            assert any(known in str(error) for known in REFUSED), (story.log, text, str(error))
            story.columns, story.fields = before
            story.log.append(f"refused: {text}")


def by_pyiceberg(table: ice.Table) -> pa.Table:
    from pyiceberg.table import StaticTable

    return StaticTable.from_metadata(table.metadata_location).scan().to_arrow()


def by_peer(name: str, read: object, found: list[dict[str, object]], story: Story) -> None:
    """Compare with another reader, unless it says that it cannot."""
    try:
        theirs = read()  # type: ignore[operator]
    except Exception as error:  # noqa: BLE001 - what it may be is in the list
        text = f"{type(error).__name__}: {error}"
        assert any(known in text for known in PEERS_REFUSE[name]), (name, text[:600], story.log)
        DONE[f"{name} refused"] += 1
    else:
        same(name, encoded_table(theirs), found, story)
        DONE[name] += 1


def same(name: str, theirs: list[dict[str, object]], ours: list[dict[str, object]], story: Story) -> None:
    """Compare rows in any order."""
    left, right = (Counter(repr(sorted(row.items())) for row in rows) for rows in (theirs, ours))
    if left != right:
        only_theirs, only_ours = list((left - right).elements())[:3], list((right - left).elements())[:3]
        pytest.fail(f"only {name}: {only_theirs}\nonly ours: {only_ours}\n" + "\n".join(story.log))


def test_every_kind_of_change_was_made() -> None:
    kinds = [name for name, kind in vars(OurSteps).items() if not name.startswith("_") and callable(kind)]
    kinds = [name for name in kinds if name not in ("step", "new_rows", "filter", "mode", "plain")]
    assert {name for name in kinds if not DONE[name]} == set(), DONE
    # Java's files are of all formats, with deletes of all kinds: others read many of the tables.
    assert DONE["PyIceberg"] > STORIES / 4, DONE
    assert DONE["DuckDB"] > STORIES / 4, DONE
