"""Golden tables through Spark: every state of every table by both readers, and by the data source.

The tables lie where their metadata say, so that every way opens them as it opens any table. States of one schema are
read in one job. `make test` reads the first state of each table and the last by file with Spark's reader or ours, the
last by ours alone, and both by the data source for one table of each kind: rows of all states are compared without
Spark (`tests/golden`). `make test-golden`, `make test-random` and another set (`ICEFIELD_GOLDEN`) leave nothing out.
"""

from __future__ import annotations

import fcntl
import gzip
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield as ice
from worlds.encoding import encoded_table, number, pairs
from worlds.golden import BASE, DELETED, GOLDEN, emptied, facts, is_empty, names, open_table, rows, states
from worlds.sample import ALL_CASES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ice_spark = pytest.importorskip("icefield.spark")
from pyspark.sql import functions as F  # noqa: E402, N812

pytestmark = pytest.mark.golden

#: Our reader reads all states without Spark in `tests/golden`; and the data source plans each in processes of its own.
#: Tables for the data source: one of each kind, which is the first word of a name.
OF_SOURCE = names() if ALL_CASES else sorted({name.partition("_")[0]: name for name in names()}.values())
STATE = "_icefield_state"

SECOND = 1_000_000

State = tuple[str, dict[str, Any], dict[str, Any]]


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Put the tables where their metadata say, by themselves, and give the options of a catalog of them."""
    folder = tmp_path_factory.mktemp("golden")
    options = {"uri": f"sqlite:///{folder}/catalog.db", "warehouse": str(folder)}
    catalog = ice.load_catalog("golden", **options)
    catalog.create_namespace("golden")
    with Path(f"{BASE}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(BASE, ignore_errors=True)
        for name in names():
            open_table(name, Path(BASE))
            catalog.register_table(f"golden.{name}", f"file:{BASE}/{name}/{facts(name)['metadata_file']}")
        yield options
        shutil.rmtree(BASE, ignore_errors=True)


@pytest.fixture
def case_sensitive(spark: SparkSession) -> Iterator[None]:
    """Let columns of a table differ by case alone."""
    spark.conf.set("spark.sql.caseSensitive", "true")
    yield
    spark.conf.unset("spark.sql.caseSensitive")


def expected_rows(name: str, item: dict[str, Any], *, deletes: bool) -> list[dict[str, Any]]:
    """Give the expected rows in the form of `encoded`; ``deletes`` if delete files apply to the state."""
    table = rows(name, item)
    if table is not None:
        return encoded_table(table)
    schema = schema_of(name, item)
    with gzip.open(GOLDEN / "expected" / name / item["rows_file"], "rt") as lines:
        found = [json.loads(line) for line in lines]
    listed = [row["row"] for row in found if row["batch"] == item["rows_batch"]]
    stale = DELETED.get(name, ("", set()))[1] if deletes else ()
    kept = [row for row in listed if row.get(facts(name)["key"]) not in stale]
    return [{field["name"]: in_spark(row[field["name"]], field["type"]) for field in schema} for row in kept]


def schema_of(name: str, item: dict[str, Any]) -> list[dict[str, Any]]:
    table = ice.Table.from_metadata(f"{BASE}/{name}/{facts(name)['metadata_file']}")
    schema = table.schema() if item.get("schema_id") is None else table.schemas()[item["schema_id"]]
    fields: list[dict[str, Any]] = json.loads(schema.to_json())["fields"]
    return fields


def in_spark(value: Any, kind: Any) -> Any:
    """Give a value in the set's JSON encoding as Spark has it."""
    if value is None:
        return None
    if isinstance(kind, dict):
        if kind["type"] == "struct":
            return {field["name"]: in_spark(value[field["name"]], field["type"]) for field in kind["fields"]}
        if kind["type"] == "list":
            return [in_spark(one, kind["element"]) for one in value]
        return pairs([(in_spark(key, kind["key"]), in_spark(one, kind["value"])) for key, one in value])
    if kind in ("timestamp_ns", "timestamptz_ns"):
        return value // 1000
    if kind == "variant":
        return {"value": value["value"], "metadata": value["metadata"]}
    return number(float(value)) if kind in ("float", "double") else value


def read(spark: SparkSession, options: dict[str, str], name: str, at: dict[str, Any], *, native: bool) -> DataFrame:
    as_of = at.get("snapshot_id", at.get("ref"))
    return ice_spark.read(spark, f"golden.{name}", as_of=as_of, native=native, catalog="golden", **options)


def load(spark: SparkSession, options: dict[str, str], name: str, at: dict[str, Any]) -> DataFrame:
    reader = spark.read.format("icefield").options(catalog="golden", **options)
    if at:
        reader = reader.option("versionAsOf", str(next(iter(at.values()))))
    return reader.load(f"golden.{name}")


@contextmanager
def types_of_this_pyspark() -> Iterator[None]:
    """Skip what this PySpark has no type for."""
    try:
        yield
    except Exception as error:
        if "has no type for Iceberg's time" in str(error):
            pytest.skip("PySpark 4.0 has no type for times")
        raise


@pytest.mark.usefixtures("case_sensitive")
@pytest.mark.parametrize("name", names())
def test_rows_by_both_readers(spark: SparkSession, golden: dict[str, str], name: str) -> None:
    """By file Spark's reader or ours; and where Spark's has a part in it, by ours alone."""
    with types_of_this_pyspark():
        frames = [(state, read(spark, golden, name, state[1], native=True)) for state in some(states(name))]
        again = [state for state, frame in frames if frame.inputFiles()]
        again = again if ALL_CASES else again[-1:]
        frames += [(state, read(spark, golden, name, state[1], native=False)) for state in again]
        compare(name, frames)


@pytest.mark.usefixtures("case_sensitive")
@pytest.mark.parametrize("name", OF_SOURCE)
def test_rows_by_the_data_source(spark: SparkSession, golden: dict[str, str], name: str) -> None:
    with types_of_this_pyspark():
        compare(name, [(state, load(spark, golden, name, state[1])) for state in some(states(name))])


def some(listed: list[State]) -> list[State]:
    """Leave out what is between the first state and the last, unless all are to be read."""
    return listed if ALL_CASES else listed[:1] + listed[1:][-1:]


def compare(name: str, frames: list[tuple[State, DataFrame]]) -> None:
    """Compare the rows of states with what is expected."""
    tables = collected([frame for _, frame in frames])
    for (state, _), found in zip(frames, tables, strict=True):
        check(name, state, found)


def collected(frames: list[DataFrame]) -> list[pa.Table]:
    """Read frames, those of one schema in one job."""
    groups: dict[str, list[int]] = {}
    for place, frame in enumerate(frames):
        groups.setdefault(frame.schema.simpleString(), []).append(place)
    found: dict[int, pa.Table] = {}
    for places in groups.values():
        marked = [frames[place].withColumn(STATE, F.lit(place)) for place in places]
        frame = reduce(lambda one, other: one.unionAll(other), marked)
        # `toArrow` takes no null structs with required fields.
        table = pa.Table.from_batches(frame._collect_as_arrow(empty_list_if_zero_records=False))
        for place in places:
            found[place] = table.filter(pc.equal(table[STATE], place)).drop_columns(STATE)
    return [found[place] for place in range(len(frames))]


def check(name: str, state: State, found: pa.Table) -> None:
    """Compare the rows of a state with what is expected."""
    _, at, item = state
    table = ice.Table.from_metadata(f"{BASE}/{name}/{facts(name)['metadata_file']}")
    nothing = emptied(table, table.scan(**at).projection())

    def texts(listed: list[dict[str, Any]]) -> list[str]:
        plain = [{k: None if k in nothing and is_empty(v) else v for k, v in row.items()} for row in listed]
        return sorted(map(repr, plain))

    files = table.scan(**at).plan_files().files
    expected = expected_rows(name, item, deletes=any(file["deletes"] for file in files))
    if expected:
        assert list(found.column_names) == list(expected[0])
    read = encoded_table(found)
    if rows(name, item) is None and any(file["file_format"].upper() == "ORC" for file in files):
        moments = [field["name"] for field in schema_of(name, item) if field["type"] in ("timestamp", "timestamptz")]
        expected = as_orc_has_it(expected, read, facts(name)["key"], moments)
    assert texts(read) == texts(expected), state[0]


def as_orc_has_it(
    expected: list[dict[str, Any]], found: list[dict[str, Any]], key: str, moments: list[str]
) -> list[dict[str, Any]]:
    """Move the last second before 1970, which ORC holds as the one after it (docs/differences.md)."""
    read = {row[key]: row for row in found}

    def value(row: dict[str, Any], name: str) -> Any:
        held, moment = read.get(row[key], {}).get(name), row[name]
        is_last = name in moments and moment is not None and -SECOND <= moment < 0
        return held if is_last and held == moment + SECOND else moment

    return [{name: value(row, name) for name in row} for row in expected]
