"""Overwrites by ``format("icefield")``: the modes and options of Java's connector."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("icefield.spark")

from icefield.spark import spark_schema
from icefield.spark.source import Source

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.date32())])
DDL = "id BIGINT, day DATE"
FIRST, SECOND = dt.date(2026, 1, 1), dt.date(2026, 1, 2)


@pytest.fixture
def table(catalog: ice.Catalog) -> ice.Table:
    made = catalog.create_table("db.t", SCHEMA, partition_by=["day"], properties={"write.wap.enabled": "true"})
    made.append(pa.table({"id": [1, 2, 3], "day": [FIRST, FIRST, SECOND]}, schema=SCHEMA))
    return made


def ids(table: ice.Table, branch: str = "main") -> list[int]:
    found: list[int] = table.refresh().scan(ref=branch).to_arrow()["id"].to_pylist()
    return sorted(found)


def left_over(table: ice.Table) -> set[str]:
    """Give the data files that no snapshot has."""
    known = set(table.refresh().inspect.all_files()["file_path"].to_pylist())
    return {path for path, _ in table.storage.list(f"{table.location()}/data")} - known


def overwrite(df: DataFrame, options: dict[str, str], **more: Any) -> None:
    given = {name.replace("_", "-"): str(value) for name, value in more.items()}
    df.write.format("icefield").options(**options, **given).mode("overwrite").save("db.t")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, [10]),
        ({"overwrite_mode": "static"}, [10]),
        ({"overwrite_mode": "Dynamic"}, [3, 10]),
        ({"overwrite_filter": "day = '2026-01-02'"}, [1, 2, 10]),
        # Some rows of a file go, others stay.
        ({"overwrite_filter": "id >= 2", "isolation_level": "snapshot"}, [1, 10]),
        ({"overwrite_filter": "id = 77"}, [1, 2, 3, 10]),
    ],
)
def test_what_is_replaced(
    spark: SparkSession, options: dict[str, str], table: ice.Table, more: dict[str, Any], expected: list[int]
) -> None:
    df = spark.createDataFrame([(10, FIRST)], DDL)
    overwrite(df, {**options, "snapshot-property.by": "me", "idempotency-key": "k"}, **more)
    assert ids(table) == expected
    assert table.current_snapshot().summary["by"] == "me"
    if not more:
        overwrite(df, {**options, "idempotency-key": "k"})
        assert len(table.refresh().snapshots()) == 2, "it was made already"
    assert left_over(table) == set()


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_the_committer_shares_files_among_processors(
    options: dict[str, str], catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    from icefield.spark.sinks.overwrites import Overwrite
    from icefield.spark.tables.opening import SourceOptions
    from icefield.spark.writes.writing import Write

    properties = {"format-version": "3", "write.delete.mode": mode, "read.split.target-size": "1"}
    table = catalog.create_table("db.t", SCHEMA, properties=properties)
    for number in range(5):
        table.append(pa.table({"id": [number, number + 100], "day": [FIRST, SECOND]}, schema=SCHEMA))
    monkeypatch.setattr("os.cpu_count", lambda: 3)
    overwrite = Overwrite.of(SourceOptions.of({**options, "path": "db.t", "overwrite-filter": "id >= 100"}), table)
    assert overwrite.plan is not None
    removed = overwrite.removed(Write(overwrite.plan.write, table.storage))
    assert [one.row_count for one in removed] == [2, 2, 1]
    assert table.commit_rows(overwrite.plan, removed, []).rows_removed == 5
    assert ids(table) == [0, 1, 2, 3, 4]
    assert left_over(table) == set()


def test_dynamic_overwrites_of_a_table_without_partitions_replace_all_rows(
    spark: SparkSession, options: dict[str, str], catalog: ice.Catalog, table: ice.Table
) -> None:
    plain = catalog.create_table("db.plain", table.schema())
    df = spark.createDataFrame([(10, FIRST)], DDL)
    write = df.write.format("icefield").options(**options, **{"overwrite-mode": "dynamic"}).mode("overwrite")
    write.save("db.plain")
    write.save("db.plain")
    assert ids(plain) == [10]
    snapshot = plain.current_snapshot()
    assert snapshot is not None
    assert snapshot.summary is not None
    assert snapshot.summary["replace-partitions"] == "true"
    df.where("id < 0").write.format("icefield").options(**options, **{"overwrite-mode": "dynamic"}).mode(
        "overwrite"
    ).save("db.plain")
    assert ids(plain) == [10]


def test_insert_overwrite_of_a_view(spark: SparkSession, options: dict[str, str], table: ice.Table) -> None:
    given = {"path": "db.t", "overwrite-mode": "dynamic", **options}
    listed = ", ".join(f"'{name}' '{value}'" for name, value in given.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW dynamic USING icefield OPTIONS ({listed})")
    spark.sql("INSERT OVERWRITE dynamic VALUES (10, DATE '2026-01-02')")
    assert ids(table) == [1, 2, 10]
    spark.sql("INSERT INTO dynamic VALUES (11, DATE '2026-01-02')")
    assert ids(table) == [1, 2, 10, 11]


def test_columns_are_added_before_the_rows(spark: SparkSession, options: dict[str, str], table: ice.Table) -> None:
    more = spark.createDataFrame([(10, FIRST, "x")], f"{DDL}, extra STRING")
    save = more.write.format("icefield").options(**options)
    with pytest.raises(Exception, match="column extra: not in the table"):
        save.mode("append").save("db.t")
    save.option("mergeSchema", "true").mode("append").save("db.t")
    assert ids(table) == [1, 2, 3, 10]
    assert table.schema().column_names == ["id", "day", "extra"]
    assert table.schema().find_field("id").required, "whatever Spark says of it"
    overwrite(more, options, merge_schema="true")
    assert ids(table) == [10]


def test_commits_since_a_snapshot(spark: SparkSession, options: dict[str, str], table: ice.Table) -> None:
    first = table.refresh().current_snapshot().snapshot_id
    df = spark.createDataFrame([(10, FIRST)], DDL)
    since: dict[str, Any] = {"validate_from_snapshot_id": first, "isolation_level": "serializable"}
    table.append(pa.table({"id": [4], "day": [SECOND]}, schema=SCHEMA))
    with pytest.raises(
        Exception, match=rf"snapshot \d+ \(append\) was committed after validate-from-snapshot-id={first}"
    ):
        overwrite(df, options, **since)
    overwrite(df, options, **since, overwrite_filter="day = '2026-01-01'")
    assert ids(table) == [3, 4, 10]
    with pytest.raises(Exception, match=r"snapshot \d+ \(overwrite\) was committed after"):
        overwrite(df, options, **since, overwrite_filter="day = '2026-01-01'")
    with pytest.raises(Exception, match="the history of main has no such snapshot"):
        overwrite(df, options, validate_from_snapshot_id=5, isolation_level="snapshot")
    overwrite(df, options, validate_from_snapshot_id=first)  # without a level it counts as little as in Java
    assert ids(table) == [10]
    assert left_over(table) == set()


def test_branches_of_overwrites(spark: SparkSession, options: dict[str, str], table: ice.Table) -> None:
    df = spark.createDataFrame([(10, FIRST)], DDL)
    overwrite(df, options, branch="b")
    assert ids(table, "b") == [10]
    assert ids(table) == [1, 2, 3]
    spark.conf.set("spark.wap.branch", "audit")
    try:
        with pytest.raises(Exception, match="pass it as the option branch=audit"):
            overwrite(df, options)
        overwrite(df, options, branch="audit")
    finally:
        spark.conf.unset("spark.wap.branch")
    assert ids(table, "audit") == [10]
    assert left_over(table) == set()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"overwrite_mode": "some"}, "option overwrite-mode: expected static or dynamic, got 'some'"),
        ({"isolation_level": "none"}, "option isolation-level: expected serializable or snapshot, got 'none'"),
        ({"overwrite_mode": "dynamic", "overwrite_filter": "id = 1"}, "does not apply to overwrite-mode=dynamic"),
        ({"overwrite_filter": "no = 1"}, "no"),
        ({"merge_schema": "perhaps"}, "option merge-schema: expected true or false, got 'perhaps'"),
    ],
)
def test_wrong_options(options: dict[str, str], table: ice.Table, more: dict[str, Any], message: str) -> None:
    """They are refused when the write is planned."""
    given = {"path": "db.t", **options, **{name.replace("_", "-"): value for name, value in more.items()}}
    with pytest.raises(ice.errors.IcefieldError, match=message):
        Source(given).writer(spark_schema(table.schema()), overwrite=True)
    assert ids(table) == [1, 2, 3]
