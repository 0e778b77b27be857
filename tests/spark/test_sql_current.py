"""Which statements are icefield's and which are Spark's, and what depends on where and when a statement runs."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812

import icefield as ice
import icefield.spark as ice_spark
from icefield.spark.sql import pruning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.spark.sql import SqlSession


@pytest.fixture
def session(spark: SparkSession, catalog: ice.Catalog) -> Iterator[SqlSession]:
    with ice_spark.session(spark, {"c": catalog, "d": catalog}) as made:
        made.sql("CREATE TABLE c.db.t (id INT, at TIMESTAMP, name STRING)")
        made.sql("INSERT INTO c.db.t VALUES (1, current_timestamp(), 'one')")
        yield made


def rows(session: SqlSession, text: str, args: object = None) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in session.sql(text, args).collect()), key=str)


TIMES = (
    "current_timestamp()",
    "now()",
    "current_date",
    "localtimestamp()",
    "curdate()",
    "timestamp_seconds(unix_timestamp())",
)


def test_the_current_time_is_that_of_the_read(
    session: SqlSession, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs: list[object] = []
    needed = pruning.needed
    monkeypatch.setattr("icefield.spark.sql.running.needed", lambda *given: needs.append(needed(*given)) or needs[-1])
    for time in TIMES:
        for text in (
            f"SELECT id FROM c.db.t WHERE at < {time}",
            f"SELECT CASE WHEN {time} < TIMESTAMP '2020-01-01' THEN name END FROM c.db.t",
            f"WITH w AS (SELECT {time} AS m) SELECT id FROM c.db.t WHERE at < (SELECT m FROM w)",
            f"SELECT id FROM c.db.t WHERE id = 1 AND EXISTS (SELECT 1 FROM range(1) WHERE {time} IS NULL)",
        ):
            session.sql(text)
            assert needs.pop() == {}, text
    spark.sql("CREATE OR REPLACE TEMP VIEW clock AS SELECT now() AS m")
    session.sql("SELECT t.id FROM c.db.t JOIN clock ON at < m")
    assert needs.pop() == {}
    spark.catalog.dropTempView("clock")
    session.sql("SELECT id FROM c.db.t WHERE at < TIMESTAMP '2020-01-01'")
    assert needs.pop() != {}


#: Statements in a current catalog of icefield: rows, or why they are refused.
IN_CATALOG = [
    ("SHOW CURRENT NAMESPACE", [("c", "db")]),
    ("SELECT current_catalog(), current_database(), CURRENT_SCHEMA()", [("c", "db", "db")]),
    ("SELECT id FROM t WHERE current_database() = 'db' AND 'current_catalog()' <> current_catalog()", [(1,)]),
    ("SET spark.own.key=(SELECT * FROM c.db.t)", [("spark.own.key", "(SELECT * FROM c.db.t)")]),
    ("RESET spark.own.key", []),
    ("ADD FILE /nosuch/file", "/nosuch/file"),
    ("CLEAR CACHE", []),
    ("DECLARE OR REPLACE VARIABLE own_variable INT DEFAULT 3", []),
    ("SET VAR own_variable = 4", []),
    ("DROP TEMPORARY VARIABLE own_variable", []),
    ("CREATE OR REPLACE TEMPORARY VIEW own_view AS SELECT 5 AS n", []),
    ("SELECT n FROM own_view", [(5,)]),
    ("DROP VIEW own_view", []),
    ("DROP VIEW IF EXISTS own_view", []),
    ("DROP VIEW own_view", "view db.own_view does not exist in catalog"),
    ("DROP VIEW c.db.t", "view db.t does not exist in catalog"),
    ("CREATE GLOBAL TEMPORARY VIEW v AS SELECT * FROM t", "USE spark_catalog first"),
    ("DECLARE OR REPLACE VARIABLE v INT DEFAULT (SELECT max(id) FROM t)", "USE spark_catalog first"),
    ("DECLARE OR REPLACE VARIABLE v STRING DEFAULT current_database()", "USE spark_catalog first"),
    ("SET VAR v = (SELECT max(id) FROM t)", "USE spark_catalog first"),
    ("SET VARIABLE v = (SELECT max(id) FROM t)", "USE spark_catalog first"),
    ("SET /* own */ VAR v = (SELECT max(id) FROM t)", "USE spark_catalog first"),
    ("SHOW TABLE EXTENDED LIKE '*'", "USE spark_catalog first"),
    ("DROP FUNCTION f", "USE spark_catalog first"),
    ("CREATE FUNCTION f AS 'x'", "USE spark_catalog first"),
    ("CREATE TEMPORARY FUNCTION f() RETURN (SELECT max(id) FROM t)", "USE spark_catalog first"),
    ("REFRESH FUNCTION f", "USE spark_catalog first"),
    ("DESCRIBE QUERY SELECT * FROM t", "USE spark_catalog first"),
    ("ANALYZE TABLES COMPUTE STATISTICS", "USE spark_catalog first"),
]


def test_nothing_acts_on_sparks_catalog_while_one_of_icefield_is_current(
    session: SqlSession, spark: SparkSession
) -> None:
    assert rows(session, "SHOW CURRENT NAMESPACE") == [("spark_catalog", "default")]
    session.sql("USE c.db")
    for text, expected in IN_CATALOG:
        if isinstance(expected, list):
            assert rows(session, text) == expected, text
            continue
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the table says which
            session.sql(text)
        assert expected in str(caught.value), text
    assert [one for one in spark.sql("SHOW VIEWS").collect() if one.viewName in ("v", "own_view")] == []
    spark.sql("CREATE TEMPORARY VIEW v AS SELECT 1")
    session.sql("CREATE OR REPLACE VIEW c.db.v AS SELECT 2 AS n")
    assert [tuple(row) for row in spark.sql("SELECT * FROM v").collect()] == [(1,)]
    assert rows(session, "SELECT * FROM c.db.v") == [(2,)]
    session.sql("DROP VIEW c.db.v")
    spark.catalog.dropTempView("v")


def test_names_of_catalogs_in_texts_and_alone_are_no_names_of_tables(session: SqlSession, spark: SparkSession) -> None:
    for text in (
        # None of them is one that icefield takes.
        "EXPLAIN SHOW TABLES LIKE 'c.db.t'",
        "DESCRIBE QUERY SELECT 'c.db.t' AS c",
        "CREATE OR REPLACE TEMPORARY VIEW own USING csv OPTIONS (path '/c.db/d.csv', header 'c')",
        "SET spark.sql.catalog.c.own = c.db.t",
        "SELECT x.c.y FROM VALUES (named_struct('c', named_struct('y', 'd'))) AS v(x) WHERE x.c.y IN ('c.db')",
    ):
        try:
            session.sql(text)
        except Exception as error:  # noqa: BLE001 - of a path that does not exist
            assert "PATH_NOT_FOUND" in str(error), text
    spark.conf.unset("spark.sql.catalog.c.own")
    spark.range(4).createOrReplaceTempView("c")
    try:
        assert rows(session, "SELECT count(*), max(c.id) FROM c") == [(4, 3)]
        assert session.table("c").count() == 4
        session.sql("USE d.db")
        assert rows(session, "SELECT count(*) FROM c JOIN d.db.t ON c.id = t.id") == [(1,)]
    finally:
        spark.catalog.dropTempView("c")
    with pytest.raises(ice.errors.NotFoundError, match="table db.c does not exist"):
        session.sql("SELECT * FROM c")
    session.sql("USE c")
    assert rows(session, "SHOW NAMESPACES IN d") == [("db",)]


def test_a_procedure_takes_the_name_of_its_catalog_away_once(session: SqlSession, catalog: ice.Catalog) -> None:
    # Namespaces that are called as the catalog is, in SQL and by itself.
    for name in (("c",), ("c", "c"), (catalog.name,), (catalog.name, "c")):
        catalog.create_namespace(name)
        row = pa.table({"id": [1]})
        made = catalog.create_table((*name, "t"), row.schema)
        for _ in range(len(name) + name.count("c")):
            made.append(row)
    for name, count in (
        ("db.t", 1),
        ("c.db.t", 1),
        ("c.c.t", 2),
        ("c.c.c.t", 4),
        (f"{catalog.name}.t", 1),
        (f"c.{catalog.name}.t", 1),
        (f"{catalog.name}.c.t", 3),
        (f"c.{catalog.name}.c.t", 3),
    ):
        assert session.sql(f"CALL c.system.ancestors_of('{name}')").count() == count, name
    for name, message in (
        ("d.db.t", "d.db.t is a table in catalog d, and the procedure is of c"),
        ("d.t", "is a table in catalog d"),
        ("spark_catalog.default.t", "is a table in catalog spark_catalog"),
        ("t", "expected the name of a table in a namespace"),
        ("c.t", "expected the name of a table in a namespace"),
    ):
        for procedure in ("ancestors_of", "create_changelog_view", "expire_snapshots"):
            with pytest.raises(ice.errors.InvalidArgumentError, match=f"line 1, column 6: .*{message}"):
                session.sql(f"CALL c.system.{procedure}('{name}')")
    session.sql("USE c.db")
    assert session.sql("CALL c.system.ancestors_of('t')").count() == 1
    with pytest.raises(ice.errors.InvalidArgumentError, match="expected the name of a table in a namespace"):
        session.sql("CALL d.system.ancestors_of('t')")


def test_parameters_have_the_types_that_spark_gives_them(session: SqlSession, spark: SparkSession) -> None:
    np = pytest.importorskip("numpy")
    given = (dt.timedelta(days=-2, hours=3, microseconds=7), "\x001\x00\\\x0027é")
    values = {f"v{n}": value for n, value in enumerate(given)}
    select = "SELECT " + ", ".join(f":{name} AS {name}, typeof(:{name}) AS kind_of_{name}" for name in values)
    expected = spark.sql(select, values).collect()
    # The arguments of what is taken out become a part of the text.
    made = session.sql(f"{select} FROM c.db.t VERSION AS OF :ref", {**values, "ref": "main"}).collect()
    assert made == expected
    # Spark refuses some of these as arguments, and takes all of them as columns.
    for value in (
        *(np.int8(-3), np.int16(3), np.int32(3), np.int64(3)),
        np.float32(0.1),
        np.float64(0.1),
        np.bool_(True),
    ):
        [[kind]] = spark.range(1).select(F.typeof(F.lit(value))).collect()
        text = "SELECT :v = v, typeof(:v) FROM c.db.t VERSION AS OF :ref JOIN VALUES (:v) AS x(v)"
        assert rows(session, text, {"v": value, "ref": "main"}) == [(True, kind)]
