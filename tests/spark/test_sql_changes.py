"""DELETE, UPDATE, MERGE and INSERT OVERWRITE by SQL: statements on one table, and its rows after each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import icefield as ice
import icefield.spark as ice_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.spark.sql import SqlSession


@pytest.fixture
def session(spark: SparkSession, catalog: ice.Catalog) -> Iterator[SqlSession]:
    with ice_spark.session(spark, {"c": catalog}) as made:
        made.sql("CREATE TABLE c.db.t (id bigint, p string, s struct<a: int, b: string>, n int DEFAULT 7) "
                 "PARTITIONED BY (p) TBLPROPERTIES ('format-version' = '3')")  # fmt: skip
        made.sql(
            "INSERT INTO c.db.t VALUES (1, 'a', struct(1, 'x'), 1), (2, 'b', NULL, 2), (3, 'c', struct(3, 'z'), 3)"
        )
        made.sql("USE c.db")
        yield made
        made.sql("USE spark_catalog.default")


Row = tuple[object, ...]
A, B, C = (1, "a", 1, "x", 1), (2, "b", None, None, 2), (3, "c", 3, "z", 3)
SOURCE = "(SELECT * FROM VALUES (1L, 'A', 10), (9L, 'N', 90) AS v(id, p, n))"

CHANGES: list[tuple[str, list[tuple[str, list[Row]]]]] = [
    (
        "deletes",
        [
            ("DELETE FROM t AS x WHERE x.id IN (SELECT id + 1 FROM c.db.t WHERE t.id = 1)", [A, C]),
            ("DELETE FROM c.db.t WHERE EXISTS (SELECT 1 FROM VALUES (1), (4) AS v(id) WHERE v.id = c.db.t.id)", [C]),
            ("DELETE FROM t WHERE p = '); DROP TABLE t; --' OR n = NULL", [C]),
            ("DELETE FROM t", []),
        ],
    ),
    (
        "updates",
        [
            (
                "UPDATE t SET t.p = concat(t.p, '!'), s.a = id * 10, n = DEFAULT WHERE t.id > 1",
                [A, (2, "b!", None, None, 7), (3, "c!", 30, "z", 7)],
            ),
            ("UPDATE t x SET n = x.n + (SELECT max(id) FROM t), s = NULL WHERE id = 1",
             [(1, "a", None, None, 4), (2, "b!", None, None, 7), (3, "c!", 30, "z", 7)]),
        ],
    ),
    (
        "merges",
        [
            # Aliases the other way round than the changes call them.
            (
                f"""MERGE INTO c.db.t AS source USING {SOURCE} target ON source.id = target.id
                WHEN MATCHED AND target.n = 10 THEN UPDATE SET p = target.p, source.n = target.n + source.n
                WHEN NOT MATCHED AND p = 'N' THEN INSERT (id, p) VALUES (id, upper(p))
                WHEN NOT MATCHED BY SOURCE AND id = 2 THEN DELETE
                WHEN NOT MATCHED BY SOURCE THEN UPDATE SET s.b = CASE WHEN n = 3 THEN 'three' END""",
                [(1, "A", 1, "x", 11), (3, "c", 3, "three", 3), (9, "N", None, None, 7)],
            ),
            (
                """MERGE INTO t USING (SELECT id, 'all' AS p, s, n, 'extra' AS more FROM t WHERE id < 4) k
                ON t.id = k.id WHEN MATCHED AND k.id = 1 THEN DELETE
                WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *""",
                [(3, "all", 3, "three", 3), (9, "N", None, None, 7)],
            ),
        ],
    ),
    (
        "overwrites",
        [
            ("INSERT OVERWRITE t PARTITION (p = 'c') SELECT 30, NULL, 5", [A, B, (30, "c", None, None, 5)]),
            ("INSERT INTO t REPLACE WHERE id > 1 SELECT 31, 'c', NULL, 6", [A, (31, "c", None, None, 6)]),
            ("INSERT OVERWRITE t (id, p) VALUES (4, 'only')", [(4, "only", None, None, 7)]),
        ],
    ),
]  # fmt: skip


def rows(session: SqlSession) -> list[Row]:
    found = session.sql("SELECT id, p, s.a, s.b, n FROM t ORDER BY id").collect()
    return [tuple(row) for row in found]


@pytest.mark.parametrize("steps", [steps for _, steps in CHANGES], ids=[name for name, _ in CHANGES])
def test_changes(session: SqlSession, steps: list[tuple[str, list[Row]]]) -> None:
    for text, expected in steps:
        assert session.sql(text).columns == []
        assert rows(session) == expected, text


def test_dynamic_overwrites_and_evolution(session: SqlSession, spark: SparkSession) -> None:
    spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    try:
        session.sql("INSERT OVERWRITE t SELECT 20L, 'b', NULL, 5")
    finally:
        spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    assert rows(session) == [A, C, (20, "b", None, None, 5)]
    session.sql("MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1L AS id, 'new' AS more) k ON t.id = k.id "
                "WHEN MATCHED THEN UPDATE SET *")  # fmt: skip
    assert [tuple(row) for row in session.sql("SELECT id, n, more FROM t WHERE more = 'new'").collect()] == [
        (1, 1, "new")
    ]


def test_changes_of_branches_and_parameters(session: SqlSession) -> None:
    session.sql("ALTER TABLE t CREATE BRANCH side")
    hostile = "' OR 1 = 1 --"
    session.sql("DELETE FROM t.branch_side WHERE p = :p OR id = :id", {"p": hostile, "id": 1})
    session.sql("UPDATE t.branch_side SET p = ? WHERE id = ?", [hostile, 2])
    assert rows(session) == [A, B, C]
    side = session.sql("SELECT id, p FROM t.branch_side ORDER BY id").collect()
    assert [tuple(row) for row in side] == [(2, hostile), (3, "c")]


def test_columns_are_not_taken_for_statements_or_tables(session: SqlSession) -> None:
    session.sql("CREATE TABLE odd (comment int, target struct<id: int, n: int>, source struct<id: int>)")
    session.sql("INSERT INTO odd VALUES (1, struct(10, 1), struct(100)), (2, struct(20, 2), struct(200))")
    session.sql("UPDATE odd SET comment = comment + 10, target.n = source.id WHERE comment = 1 AND target.id = 10")
    merge = """MERGE INTO odd USING (SELECT 20 AS id, named_struct('id', 9) AS source) k ON odd.target.id = k.id
               WHEN MATCHED AND comment = 2 THEN UPDATE SET comment = k.source.id
               WHEN NOT MATCHED BY SOURCE AND target.id = 11 THEN DELETE"""
    session.sql(merge)

    def left() -> list[Row]:
        return [tuple(row) for row in session.sql("SELECT comment, target.n FROM odd ORDER BY 1").collect()]

    assert left() == [(9, 2), (11, 100)]
    session.sql("DELETE FROM odd WHERE comment IN (SELECT 9) AND source.id = 200")
    assert left() == [(11, 100)]
    for wrong, message in (
        ("DELETE FROM t WHERE target.id = 1", "'target' is no table, alias or column"),
        ("UPDATE t SET n = target.n + 1", "'target' is no table, alias or column"),
        ("MERGE INTO t USING (SELECT 1 AS id) k ON t.id = source.id WHEN MATCHED THEN DELETE",
         "'source' is no table, alias or column"),
        ("MERGE INTO odd USING odd k ON target.id = k.target.id WHEN MATCHED THEN DELETE", "may be a column of sev"),
    ):  # fmt: skip
        with pytest.raises(ice.errors.InvalidArgumentError, match=message):
            session.sql(wrong)
    assert rows(session) == [A, B, C]


WRONG = [
    ("DELETE FROM t WHERE EXISTS (SELECT 1 FROM VALUES (1) AS target(z) WHERE z = t.id)",
     "line 1, column 21: a subquery has a table that is called 'target'"),
    ("DELETE FROM t.snapshots WHERE true", "line 1, column 13: t.snapshots can only be read"),
    ("DELETE FROM nosuch", "line 1, column 13: table db.nosuch does not exist"),
    ("DELETE FROM t WHERE id = ", "line 1, column 24"),
    ("DELETE FROM t WHERE nosuch = 1", "UNRESOLVED_COLUMN"),
    ("UPDATE t SET nosuch = 1", "nosuch"),
    ("UPDATE t SET id = 'x'", "BIGINT"),
    (f"MERGE INTO t USING {SOURCE} k ON t.id = k.id WHEN MATCHED THEN UPDATE SET *",
     "the source of * has no column s: name the columns"),
    ("MERGE INTO t USING t ON true WHEN MATCHED THEN DELETE", "the table and the source have the same name"),
    ("MERGE INTO t USING (SELECT 1L AS id UNION ALL SELECT 1L) k ON t.id = k.id WHEN MATCHED THEN UPDATE SET n = 0",
     "more than one"),
    ("INSERT OVERWRITE t PARTITION (id = 1) SELECT 'a', NULL, 1", "line 1, column 31: id is no partition column"),
]  # fmt: skip


def test_mistakes_change_nothing(session: SqlSession, catalog: ice.Catalog) -> None:
    before = catalog.load_table("db.t").metadata_location
    for text, message in WRONG:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the table says which
            session.sql(text)
        assert message in str(caught.value), text
    assert catalog.load_table("db.t").metadata_location == before
