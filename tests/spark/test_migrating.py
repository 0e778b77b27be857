"""CALL system.migrate: tables of Spark's own catalog become tables of Iceberg, with the same files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import icefield as ice
import icefield.spark as ice_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.spark.sql import SqlSession

COLUMNS = "id BIGINT COMMENT 'key', small SMALLINT, s STRING, p STRING, n INT"
ROWS = "VALUES (1L, 1S, 'a', 'x', 1), (2L, 2S, null, 'y z', 1), (3L, 3S, 'c', null, 2) AS v(id, small, s, p, n)"


@pytest.fixture
def session(spark: SparkSession, catalog: ice.Catalog, tmp_path: Path) -> Iterator[SqlSession]:
    """Give a session, and a database of Spark's that is a namespace of the catalog too."""
    spark.sql(f"CREATE DATABASE old LOCATION '{tmp_path}/old'")
    catalog.create_namespace("old")
    with ice_spark.session(spark, {"c": catalog}) as made:
        yield made
    spark.sql("DROP DATABASE old CASCADE")


def external(spark: SparkSession, folder: Path, kind: str = "parquet", partitions: str = "") -> None:
    spark.sql(f"CREATE TABLE old.t ({COLUMNS}) USING {kind} {partitions} LOCATION '{folder}'")
    spark.sql(f"INSERT INTO old.t (id, small, s, p, n) SELECT * FROM {ROWS}")


@pytest.mark.parametrize("kind", ["parquet", "orc"])
@pytest.mark.parametrize("partitions", ["", "PARTITIONED BY (p, n)"])
def test_a_table_keeps_its_rows_and_files(
    session: SqlSession, spark: SparkSession, catalog: ice.Catalog, tmp_path: Path, kind: str, partitions: str
) -> None:
    external(spark, tmp_path / "files", kind, partitions)
    before = sorted(map(tuple, spark.table("old.t").collect()))
    files = {one.as_posix() for one in (tmp_path / "files").rglob("part-*")}
    given = "table => 'old.t', properties => map('owner', 'me'), drop_backup => true"
    [(count,)] = session.sql(f"CALL c.system.migrate({given})").collect()
    assert count == len(files) > 0
    table = catalog.load_table("old.t")
    assert {one["file_path"].removeprefix("file:") for one in table.scan().plan_files().files} == files
    assert [field.name for field in table.spec().fields] == (["p", "n"] if partitions else [])
    assert table.location() == f"file:{tmp_path}/files"
    assert (table.properties["migrated"], table.properties["owner"]) == ("true", "me")
    assert table.schema().find_field("id").doc == "key"
    assert sorted(map(tuple, session.sql("SELECT * FROM c.old.t").collect())) == before
    session.sql("DELETE FROM c.old.t WHERE p IS NULL")
    session.sql("INSERT INTO c.old.t (id, p) VALUES (4, 'x')")
    assert sorted(row.id for row in session.sql("SELECT id FROM c.old.t").collect()) == [1, 2, 4]
    # Views of other tests are in every database.
    assert [row.tableName for row in spark.sql("SHOW TABLES IN old").collect() if not row.isTemporary] == []


def test_the_table_of_spark_is_kept_under_another_name(
    session: SqlSession, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    external(spark, tmp_path / "files", partitions="PARTITIONED BY (p)")

    def lost(_: object) -> None:
        raise ice.errors.CommitFailedException("of the test")

    with monkeypatch.context() as patch, pytest.raises(ice.errors.CommitFailedException):
        patch.setattr(ice.table.CreateTableTransaction, "commit_transaction", lost)
        session.sql("CALL c.system.migrate('old.t')")
    assert spark.table("old.t").count() == 3
    spark.sql("CREATE TABLE old.kept (id INT) USING parquet")
    for arguments, message in (
        ("'old.t', map(), false, 'kept'", "the backup would be .*, which exists: pass another backup_table_name"),
        ("'old.nosuch'", "Spark's own catalog has no table old.nosuch"),
        ("'old.kept'", "is managed by Spark, which deletes its files with it"),
    ):
        with pytest.raises(ice.errors.IcefieldError, match=message):
            session.sql(f"CALL c.system.migrate({arguments})")
    session.sql("CALL c.system.migrate(table => 'old.t', backup_table_name => 'before')")
    assert spark.table("old.before").count() == session.sql("SELECT * FROM c.old.t").count() == 3
    assert not spark.catalog.tableExists("old.t")


def test_files_that_are_not_the_tables_alone(session: SqlSession, spark: SparkSession, tmp_path: Path) -> None:
    external(spark, tmp_path / "files", partitions="PARTITIONED BY (p)")
    [stray] = (tmp_path / "files" / "p=x").glob("part-*")
    (tmp_path / "files" / "p=other").mkdir()
    (tmp_path / "files" / "p=other" / stray.name).write_bytes(stray.read_bytes())
    with pytest.raises(ice.errors.UnsupportedFeatureError, match="p=other/.* is in no partition that .* has"):
        session.sql("CALL c.system.migrate('old.t')")
    spark.sql(f"ALTER TABLE old.t ADD PARTITION (p = 'far') LOCATION '{tmp_path}/far'")
    with pytest.raises(ice.errors.UnsupportedFeatureError, match="/far is not below"):
        session.sql("CALL c.system.migrate('old.t')")
    assert spark.table("old.t").count() == 3
    spark.sql(f"CREATE TABLE old.texts (id INT) USING csv LOCATION '{tmp_path}/csv'")
    with pytest.raises(ice.errors.UnsupportedFeatureError, match="is a table of csv, not of parquet, orc, avro"):
        session.sql("CALL c.system.migrate('old.texts')")
