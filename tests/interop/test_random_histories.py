"""Random histories by Java's connector, copy-on-write and merge-on-read: after each step our rows are Java's.

Rows come by inserts, go by deletes, updates and merges of either mode and by equality deletes of Java's writers;
schemas, specs and versions change, and files are compacted. ``make test-random`` tells more histories, of another seed.
The last state of some is read in Spark as well, by both readers.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice
from worlds.encoding import encoded_table
from worlds.java_story import Story

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from conftest import Java

pytestmark = pytest.mark.interop

HISTORIES = max(20, int(os.environ.get("ICEFIELD_RANDOM_CASES", "200")) // 25)
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
STEPS = 7
#: One history in so many is read in Spark.
IN_SPARK = 10
CATALOG = "told"
DONE: Counter[str] = Counter()
#: What the reference itself refuses; the step is passed over.
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


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.mark.parametrize("number", range(HISTORIES))
def test_rows_are_those_of_java(
    catalog: ice.catalog.Catalog, java: Java, request: pytest.FixtureRequest, number: int
) -> None:
    rng = Random(SEED * 1000 + number)
    story = Story(rng, f"{CATALOG}.db.t{number}")
    run(java, story, story.create())
    table = catalog.load_table(f"db.t{number}")
    run(java, story, story.insert())
    for _ in range(rng.randint(3, STEPS)):
        if rng.random() < 0.15:
            equality_deletes(rng, java, story, table.refresh())
        else:
            run(java, story, story.step())
        theirs = java.rows(f"SELECT * FROM {story.name}")
        same(table.refresh().scan().to_arrow(), theirs, story)
        assert table.scan().count() == theirs.num_rows, story.log
        DONE["delete files"] += table.scan().plan_files().report["result_delete_files"] > 0
    if number % IN_SPARK == 0:
        in_spark(request.getfixturevalue("spark"), table, theirs, story)


def test_every_kind_of_delete_was_there() -> None:
    assert DONE["delete files"] > HISTORIES / 3, DONE
    assert DONE["refused"] < HISTORIES, DONE


def run(java: Java, story: Story, statements: list[str]) -> None:
    """Let Java run statements; what it refuses is left out of the story."""
    for text in statements:
        before = dict(story.columns), list(story.fields)
        try:
            java.sql(text)
            story.log.append(text)
        except RuntimeError as error:
            assert any(known in str(error) for known in REFUSED), (story.log, text, str(error))
            story.columns, story.fields = before
            story.log.append(f"refused: {text}")
            DONE["refused"] += 1


def equality_deletes(rng: Random, java: Java, story: Story, table: ice.Table) -> None:
    """Delete rows by values, as streaming writers do."""
    plain = [name for name, kind in story.columns.items() if kind in ("bigint", "int", "string", "date", "boolean")]
    columns = rng.choice([["id"], rng.sample(plain, min(len(plain), 2))])
    ids = [rng.randrange(story.rows + 1) for _ in range(rng.randint(1, 6))]
    # Java's cache of deletes holds values as they were before a promotion (docs/differences.md).
    story.fixed.update(columns)
    java.do("write", table=story.name, how="delete_equal", ids=ids, columns=columns, everywhere=rng.random() < 0.4)
    story.log.append(f"equality deletes by {columns} of ids {ids}")


def same(ours: pa.Table, theirs: pa.Table, story: Story) -> None:
    """Compare rows in any order."""
    assert ours.column_names == theirs.column_names, story.log
    found, expected = (sorted(map(repr, encoded_table(rows))) for rows in (ours, theirs))
    if found != expected:
        only_ours = list((Counter(found) - Counter(expected)).elements())[:3]
        only_java = list((Counter(expected) - Counter(found)).elements())[:3]
        pytest.fail(f"only ours {only_ours}\nonly Java {only_java}\n" + "\n".join(story.log))
    DONE["rows"] += len(found)


def in_spark(spark: SparkSession, table: ice.Table, theirs: pa.Table, story: Story) -> None:
    """Read the table in Spark, by both readers and by ours."""
    import icefield.spark as ice_spark

    for native in (True, False):
        frame = ice_spark.read(spark, table, native=native)
        same(pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False)), theirs, story)
