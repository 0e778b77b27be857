"""Which reader reads which file of a table in Spark, and why."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice
from worlds.golden import names, open_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")


def table_of(catalog: ice.Catalog, files: int = 3, **made: object) -> ice.Table:
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("s", pa.string())]), **made)
    for first in range(0, files * 10, 10):
        table.append(pa.table({"id": range(first, first + 10), "s": [f"n{n}" for n in range(first, first + 10)]}))
    return table


def test_clean_files_are_sparks(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = table_of(catalog)
    explained = ice_spark.explain(spark, table)
    assert explained.counts == {"spark": 3}
    assert explained.tasks == 0
    assert explained.files["reader"].to_pylist() == ["spark"] * 3
    assert explained.files["reason"].null_count == 3
    assert str(explained).endswith("by Spark's Parquet reader: 3 files")
    assert ice_spark.explain(spark, table, filter="id < 10").counts == {"spark": 1}


@pytest.mark.parametrize(
    ("given", "kind", "reason"),
    [
        ({"native": False}, "native=False", "native=False"),
        ({"filter": "truncate(10, id) = 20"}, "filter", "filter: Spark cannot test it as Iceberg does"),
    ],
)
def test_what_stands_against_a_whole_scan(
    spark: SparkSession, catalog: ice.Catalog, given: dict[str, object], kind: str, reason: str
) -> None:
    explained = ice_spark.explain(spark, table_of(catalog), **given)
    assert set(explained.counts) == {kind}
    assert set(explained.files["reason"].to_pylist()) == {reason}
    assert set(explained.files["reader"].to_pylist()) == {"icefield"}


def test_files_of_several_formats(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = table_of(catalog, 2)
    for kind in ("avro", "orc", "avro"):
        with table.transaction() as change:
            change.set_properties({"write.format.default": kind})
        table.append(pa.table({"id": [1], "s": ["x"]}))
    explained = ice_spark.explain(spark, table)
    assert explained.counts == {"spark": 2, "format": 3}
    assert str(explained).splitlines()[-3:] == [
        "  by icefield, in 1 tasks: 3 files",
        "    2 for format: avro",
        "    1 for format: orc",
    ]
    assert ice_spark.read(spark, table).count() == 23


def test_a_scan_is_explained(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = table_of(catalog)
    assert ice_spark.explain(spark, table.scan("id >= 20")).counts == {"spark": 1}
    changes = table.incremental_changelog_scan()
    assert ice_spark.explain(spark, changes).counts == {"changelog": 3}


def test_names_that_spark_takes_for_patterns(spark: SparkSession, catalog: ice.Catalog) -> None:
    table = table_of(catalog, 1, location=f"{catalog.properties['warehouse']}/odd[1]")
    explained = ice_spark.explain(spark, table)
    assert explained.files["reason"].to_pylist() == ["path: Spark takes it for a pattern, or for a hidden file"]
    assert ice_spark.read(spark, table).count() == 10


GOLDEN = {
    "del_pos_file": {"deletes: positions"},
    "dv_basic": {"deletes: deletion vector"},
    "del_eq_basic": {"deletes: equality"},
    "names_add_files": {"missing field ids: the table has schema.name-mapping.default"},
    "v3_defaults": {"default: column d_bool has an initial default"},
    "v3_variant": {"type: column v is variant"},
    "evo_promote": set(),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_reasons_of_golden_tables(spark: SparkSession, tmp_path: Path, name: str) -> None:
    if name not in names():
        pytest.skip(f"the set lacks {name}")
    if name == "v3_defaults" and not hasattr(pytest.importorskip("pyspark.sql.types"), "TimeType"):
        pytest.skip("PySpark 4.0 has no type for times")
    explained = ice_spark.explain(spark, open_table(name, tmp_path))
    reasons = set(explained.files["reason"].drop_null().to_pylist())
    assert {reason for reason in reasons if not reason.startswith("format")} == GOLDEN[name]
    assert sum(explained.counts.values()) == explained.files.num_rows


def test_files_of_ours_are_packed_by_themselves(spark: SparkSession, catalog: ice.Catalog) -> None:
    """A task of Python costs more than a small file: they are not scattered over tasks of files that Spark reads."""
    schema = pa.schema([("id", pa.int64())])
    table = catalog.create_table("db.t", schema, properties={"read.split.target-size": str(16 << 20)})
    for number in range(12):
        with table.transaction() as change:
            change.set_properties({"write.format.default": "avro" if number % 3 == 0 else "parquet"})
        table.append(pa.table({"id": [number]}))
    explained = ice_spark.explain(spark, table)
    assert explained.counts == {"spark": 8, "format": 4}
    assert (explained.tasks, len(table.scan().tasks())) == (1, 3)
    assert sorted(row.id for row in ice_spark.read(spark, table).collect()) == list(range(12))


def test_tasks_of_ours_are_as_many_as_run_at_a_time(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]
) -> None:
    """Files that fit into one task are read by as many as the session runs at a time."""
    heavy = {"write.format.default": "avro", "read.split.open-file-cost": str(16 << 20)}
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), properties=heavy)
    for number in range(6):
        table.append(pa.table({"id": [number]}))
    assert len(table.scan().tasks()) == 1
    assert ice_spark.explain(spark, table).tasks == spark.sparkContext.defaultParallelism == 2
    frame = ice_spark.read(spark, table)
    assert frame.rdd.getNumPartitions() == 2
    loaded = spark.read.format("icefield").options(**options).load("db.t")
    assert loaded.rdd.getNumPartitions() == min(6, os.cpu_count() or 1)
    for rows in (frame, loaded):
        assert sorted(row.id for row in rows.collect()) == list(range(6))
    with table.transaction() as change:
        change.set_properties({"read.split.adaptive-size.enabled": "false"})
    assert ice_spark.explain(spark, table).tasks == 1
