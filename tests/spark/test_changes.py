"""Changes of a table as a DataFrame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")


@pytest.fixture
def table(catalog: ice.Catalog) -> ice.Table:
    made = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("s", pa.string())]))
    for ids in ([1, 2], [3], [4, 5]):
        made.append(pa.table({"id": ids, "s": [f"s{n}" for n in ids]}))
    return made


def test_all_changes(spark: SparkSession, table: ice.Table) -> None:
    df = ice_spark.changes(spark, table)
    assert df.columns == ["id", "s", "_change_type", "_change_ordinal", "_commit_snapshot_id"]
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    rows = [(n, f"s{n}", "INSERT", ordinal, ids[ordinal]) for n, ordinal in ((1, 0), (2, 0), (3, 1), (4, 2), (5, 2))]
    assert sorted(tuple(row) for row in df.collect()) == rows


def test_some_changes(spark: SparkSession, table: ice.Table, options: dict[str, str]) -> None:
    first, second, third = (snapshot.snapshot_id for snapshot in table.snapshots())
    for given, expected in (
        ({"from_snapshot_id_exclusive": first}, [3, 4, 5]),
        ({"from_snapshot_id_inclusive": second, "to_snapshot_id_inclusive": second}, [3]),
        ({"to_snapshot_id_inclusive": second}, [1, 2, 3]),
        ({"filter": "id > 4"}, [5]),
        ({"branch": "main", "from_snapshot_id_exclusive": third, "filter": "true"}, None),
    ):
        if expected is None:
            with pytest.raises(ice.errors.InvalidArgumentError, match="is not a parent ancestor"):
                ice_spark.changes(spark, "db.t", **given, **options)
        else:
            found = ice_spark.changes(spark, "db.t", columns=["id", "_change_type"], **given, **options).collect()
            assert sorted(tuple(row) for row in found) == [(n, "INSERT") for n in expected], given


def test_later_commits_do_not_show(spark: SparkSession, table: ice.Table) -> None:
    df = ice_spark.changes(spark, table, columns="id")
    table.append(pa.table({"id": [6], "s": ["new"]}))
    assert df.count() == 5
