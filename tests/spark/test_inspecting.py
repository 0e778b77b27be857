"""Metadata tables and incremental reads as DataFrames, through the API and through the data source."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
import icefield.spark as ice_spark
from icefield.encryption import KeyFile
from icefield.spark import functions
from icefield.spark.reads import inspecting
from worlds.golden import BASE, unpack

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def rows(first: int, last: int) -> pa.Table:
    """Make rows with these ids."""
    ids = list(range(first, last))
    kind = pa.struct([("x", pa.int64()), ("tags", pa.list_(pa.string()))])
    nested = pa.array([{"x": n, "tags": ["t"] * (n % 3)} for n in ids], kind)
    return pa.table({"id": ids, "s": [f"s{n % 2}" for n in ids], "n": nested})


@pytest.fixture
def table(catalog: ice.Catalog) -> ice.Table:
    """Make a table of twelve appends to two partitions, a manifest each, and a tag on the second snapshot."""
    properties = {"commit.manifest-merge.enabled": "false"}
    made = catalog.create_table("db.t", schema=rows(0, 1).schema, partition_by="s", properties=properties)
    for number in range(12):
        made.append(rows(4 * number, 4 * number + 4))
    made.manage_snapshots().create_tag(made.snapshots()[1].snapshot_id, "second").commit()
    return made


def same(found: DataFrame, expected: pa.Table) -> None:
    """Compare rows; texts stand for values that Arrow and Spark have classes of their own for."""
    theirs = found.toArrow() if hasattr(found, "toArrow") else pa.Table.from_pandas(found.toPandas())
    assert theirs.column_names == expected.column_names
    assert sorted(map(str, theirs.to_pylist())) == sorted(map(str, expected.to_pylist()))


@pytest.mark.parametrize("name", ice.inspect.InspectTable.names)
def test_every_metadata_table(
    spark: SparkSession, table: ice.Table, options: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspecting, "_MANIFESTS_A_TASK", 5)
    expected = getattr(table.inspect, name)()
    read = ice_spark.read_inspect(spark, table, name)
    many = name in ("entries", "files", "data_files", "all_entries", "all_files", "all_data_files", "all_manifests")
    assert read.rdd.getNumPartitions() == (3 if many else 1)
    same(read, expected)
    same(spark.read.format("icefield").options(**options).load(f"db.t.{name}"), expected)


def test_encrypted_tables(spark: SparkSession, tmp_path: Path) -> None:
    """Executors have neither the key of the table nor a client of its service."""
    key_file = tmp_path / "keys.json"
    KeyFile.create(key_file, "mine")
    options = {"uri": f"sqlite:///{tmp_path}/k.db", "warehouse": str(tmp_path)}
    options |= {"encryption.kms-type": "file", "encryption.kms.key-file": str(key_file)}
    catalog = ice.load_catalog("keyed", **options)
    catalog.create_namespace("db")
    own = {"format-version": "3", "encryption.key-id": "mine"}
    table = catalog.create_table("db.t", rows(0, 1).schema, properties=own).append(rows(0, 9))
    table.delete("id = 3", mode="merge-on-read")
    table = table.refresh()
    for name in ("files", "all_entries", "position_deletes"):
        expected = getattr(table.inspect, name)()
        same(ice_spark.read_inspect(spark, table, name), expected)
        read = spark.read.format("icefield").options(catalog="keyed", **options)
        same(read.load(f"db.t.{name}"), expected)
    assert ice_spark.read(spark, table).count() == 8


def test_columns_filters_and_snapshots(spark: SparkSession, table: ice.Table, options: dict[str, str]) -> None:
    snapshots = table.snapshots()
    found = ice_spark.read_inspect(
        spark, table, "files", columns=["record_count", "partition.s"], filter="partition.s = 's1'", as_of="second"
    )
    assert [row.asDict(True) for row in found.collect()] == [{"partition": {"s": "s1"}, "record_count": 2}] * 2
    by_id = ice_spark.read_inspect(spark, "db.t", "manifests", as_of=snapshots[2].snapshot_id, **options)
    assert by_id.count() == 3
    source = spark.read.format("icefield").options(**options)
    assert source.option("tag", "second").load("db.t.files").count() == 4
    # Options stay with a reader.
    source = spark.read.format("icefield").options(**options)
    metrics = source.schema("record_count bigint, file_path string").load("db.t.data_files")
    assert metrics.selectExpr("sum(record_count) AS n").first().n == 48


def test_what_is_not_there(spark: SparkSession, table: ice.Table, options: dict[str, str]) -> None:
    with pytest.raises(ice.InvalidArgumentError, match='there is no metadata table "none"'):
        ice_spark.read_inspect(spark, table, "none")
    with pytest.raises(ice.InvalidArgumentError, match="cannot select a snapshot"):
        ice_spark.read_inspect(spark, table, "snapshots", as_of="second")
    for name in ("db.t.none", "db.none.files", "db.files"):
        with pytest.raises(Exception, match=r"icefield\.errors\.NoSuchTableError: table db\S* does not exist"):
            spark.read.format("icefield").options(**options).load(name).collect()


def test_a_table_of_that_name_goes_before(
    spark: SparkSession, catalog: ice.Catalog, table: ice.Table, options: dict[str, str]
) -> None:
    catalog.create_namespace("db.t")
    catalog.create_table("db.t.files", schema=rows(0, 1).schema).append(rows(0, 3))
    assert spark.read.format("icefield").options(**options).load("db.t.files").columns == ["id", "s", "n"]


@pytest.mark.skipif(not functions.ON_ARROW, reason="PySpark 4.0 pushes no filters to Python sources")
def test_filters_are_pushed_to_metadata_tables(spark: SparkSession, table: ice.Table, options: dict[str, str]) -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        source = spark.read.format("icefield").options(**options).option("push-filters", "true")
        files = source.load("db.t.files")
        assert files.where("partition.s = 's1' AND readable_metrics.id.lower_bound >= 41").count() == 2
        changes = source.load("db.t.changes")
        assert changes.where("id = 41 AND _change_ordinal = 10 AND _change_type = 'INSERT'").count() == 1
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.select("id").collect())


def test_incremental_reads(spark: SparkSession, table: ice.Table, options: dict[str, str]) -> None:
    made = [str(snapshot.snapshot_id) for snapshot in table.snapshots()]

    def read(name: str, **more: Any) -> DataFrame:
        named = {key.replace("_", "-"): value for key, value in more.items()}
        return spark.read.format("icefield").options(**options).options(**named).load(name)

    assert ids(read("db.t", start_snapshot_id=made[8])) == list(range(36, 48))
    assert ids(read("db.t", start_snapshot_id=made[1], end_snapshot_id=made[3])) == list(range(8, 16))
    changes = read("db.t.changes", start_snapshot_id=made[8], end_snapshot_id=made[10])
    assert changes.columns == ["id", "s", "n", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    told = {(row[3], row[4], str(row[5])) for row in changes.collect()}
    assert told == {("INSERT", 0, made[9]), ("INSERT", 1, made[10])}
    assert ids(changes) == list(range(36, 44))
    assert ids(read("db.t.changes", end_snapshot_id=made[0])) == [0, 1, 2, 3]
    for message, name, more in (
        ("end-snapshot-id requires start-snapshot-id", "db.t", {"end_snapshot_id": made[0]}),
        ("pass either the option of one snapshot", "db.t", {"start_snapshot_id": made[0], "snapshot_id": made[0]}),
        ("pass either the option of one snapshot", "db.t.changes", {"tag": "second"}),
        ("not a parent ancestor", "db.t", {"start_snapshot_id": made[11]}),
        ("expected an integer", "db.t", {"start_snapshot_id": "x"}),
    ):
        with pytest.raises(Exception, match=rf"icefield\.errors\.\w+: .*{message}"):
            read(name, **more).collect()


@pytest.mark.parametrize("native", [True, False])
def test_incremental_scans_as_frames(spark: SparkSession, table: ice.Table, native: bool) -> None:
    scan = table.incremental_append_scan(from_snapshot_id_exclusive="second", row_filter="s = 's0'")
    same(scan.to_spark(spark, native=native), scan.to_arrow())
    changelog = table.incremental_changelog_scan(
        from_snapshot_id_exclusive="second", selected_fields=("id", "_change_type")
    )
    same(changelog.to_spark(spark, native=native), changelog.to_arrow())
    assert changelog.to_spark(spark).count() == changelog.count() == 40


def test_changes_over_delete_files(spark: SparkSession, catalog: ice.Catalog, options: dict[str, str]) -> None:
    """Frames of changelogs have the rows that delete files of Java's deleted; its paths are those of this folder."""
    folder = unpack("del_mixed", Path(BASE))
    newest = max((folder / "metadata").glob("*.metadata.json"))
    made = catalog.register_table("db.m", str(newest))
    changelog = made.incremental_changelog_scan()
    expected = changelog.to_arrow()
    assert {"DELETE", "INSERT"} == set(expected["_change_type"].to_pylist())
    same(spark.read.format("icefield").options(**options).load("db.m.changes"), expected)
    same(changelog.to_spark(spark), expected)
    net = made.incremental_changelog_scan(net_changes=True)
    same(net.to_spark(spark), net.to_arrow())
    assert net.count() < changelog.count()
