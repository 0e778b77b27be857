"""Changes of a table as a DataFrame."""

from __future__ import annotations

from datetime import datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

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


@pytest.fixture
def rewritten(catalog: ice.Catalog) -> ice.Table:
    """Make a table whose files were rewritten: what was not changed is deleted and inserted again."""
    fields = [
        ("id", pa.int64()),
        ("s", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("price", pa.decimal128(9, 2)),
        ("part", pa.struct([("n", pa.int32())])),
    ]
    made = catalog.create_table("db.r", pa.schema(fields))
    at = datetime(2026, 3, 1, tzinfo=timezone.utc)

    def rows(*pairs: tuple[int, str]) -> pa.Table:
        values = [{"id": n, "s": s, "at": at, "price": Decimal(n), "part": {"n": n}} for n, s in pairs]
        return pa.Table.from_pylist(values, pa.schema(fields))

    made.append(rows((1, "a"), (2, "b"), (3, "c")))
    made.overwrite(rows((1, "a"), (2, "changed"), (3, "c"), (4, "d")))
    made.overwrite(rows((1, "a"), (2, "b"), (4, "d")))
    return made


#: Options of Java's procedure `create_changelog_view`, and what is left of the changes of `rewritten`.
COMPARED: list[tuple[dict[str, Any], list[tuple[int, str, str]]]] = [
    (
        {"remove_carryovers": True},
        [
            (2, "b", "DELETE"),
            (2, "b", "INSERT"),
            (2, "changed", "DELETE"),
            (2, "changed", "INSERT"),
            (3, "c", "DELETE"),
            (4, "d", "INSERT"),
        ],
    ),
    ({"net_changes": True}, [(3, "c", "DELETE"), (4, "d", "INSERT")]),
    (
        {"identifier_columns": ["id"]},
        [
            (2, "b", "UPDATE_AFTER"),
            (2, "b", "UPDATE_BEFORE"),
            (2, "changed", "UPDATE_AFTER"),
            (2, "changed", "UPDATE_BEFORE"),
            (3, "c", "DELETE"),
            (4, "d", "INSERT"),
        ],
    ),
    (
        {"identifier_columns": "id", "compute_updates": False, "net_changes": True},
        [(3, "c", "DELETE"), (4, "d", "INSERT")],
    ),
    (
        {"identifier_columns": ["id"], "compute_updates": True, "filter": "id > 2"},
        [(3, "c", "DELETE"), (4, "d", "INSERT")],
    ),
    ({"compute_updates": True, "identifier_columns": ["id"], "columns": "id", "net_changes": True}, []),
]


@pytest.mark.parametrize(("compared", "expected"), COMPARED, ids=[" ".join(options) for options, _ in COMPARED])
def test_compared_changes(
    spark: SparkSession, rewritten: ice.Table, compared: dict[str, Any], expected: list[tuple[int, str, str]]
) -> None:
    """Frames have the rows that the scan has, in types that Spark takes, from one task."""
    first = rewritten.snapshots()[0].snapshot_id
    df = ice_spark.changes(spark, rewritten, from_snapshot_id_exclusive=first, **compared)
    own = {"filter": "row_filter", "columns": "selected_fields"}
    scan = rewritten.incremental_changelog_scan(
        from_snapshot_id_exclusive=first, **{own.get(name, name): value for name, value in compared.items()}
    )
    assert scan.compares_rows
    assert ice_spark.explain(spark, scan).tasks == 1
    expected_rows = scan.to_arrow()
    assert df.columns == expected_rows.column_names
    found = [row.asDict(recursive=True) for row in df.collect()]

    def shown(rows: list[dict[str, Any]]) -> list[str]:
        # Spark gives local times.
        return sorted(repr({**row, "at": row["at"].timestamp()} if "at" in row else row) for row in rows)

    assert shown(found) == shown(expected_rows.to_pylist())
    if "columns" not in compared:
        assert sorted((row["id"], row["s"], row["_change_type"]) for row in found) == expected
    else:
        assert sorted(row["id"] for row in found) == [3, 4]


def test_wrong_comparisons(spark: SparkSession, rewritten: ice.Table, options: dict[str, str]) -> None:
    """What cannot be compared is refused before Spark plans a job, and what only rows tell with their sentence."""
    for given, message in (
        ({"compute_updates": True}, "identifier"),
        ({"identifier_columns": ["nothing"]}, "nothing"),
        ({"identifier_columns": []}, "identifier"),
        ({"net_changes": True, "from_snapshot_id_exclusive": 17}, "17"),
    ):
        with pytest.raises(ice.errors.InvalidArgumentError, match=message):
            ice_spark.changes(spark, "db.r", **given, **options)
    with pytest.raises(ice.errors.InvalidArgumentError, match="net is neither an argument"):
        ice_spark.changes(spark, "db.r", net="true", **options)
    rewritten.append(rewritten.scan().to_arrow())
    rewritten.delete("id = 1")
    with pytest.raises(Exception, match="several deleted rows|identif"):
        ice_spark.changes(spark, rewritten, identifier_columns=["id"]).collect()
