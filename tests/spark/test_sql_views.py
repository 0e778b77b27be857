"""Views in catalogs, by SQL in a session without a jar: what their names mean, what they keep, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice
import icefield.spark as ice_spark
from icefield.spark.sql import pruning

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.spark.sql import SqlSession

COLUMNS = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> ice.Catalog:
    folder = tmp_path_factory.mktemp("sql_views")
    made = ice.load_catalog("own", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    for namespace, letters in (("db", ["a", "b", "c"]), ("other", ["x"])):
        made.create_namespace(namespace)
        table = made.create_table(f"{namespace}.t", COLUMNS)
        table.append(pa.table({"id": range(1, len(letters) + 1), "name": letters}, COLUMNS))
    return made


@pytest.fixture(scope="module")
def session(spark: SparkSession, catalog: ice.Catalog) -> Iterator[SqlSession]:
    with ice_spark.session(spark, {"c": catalog}) as made:
        yield made


@pytest.fixture(autouse=True)
def here(session: SqlSession, catalog: ice.Catalog) -> Iterator[None]:
    session.sql("USE c.db")
    yield
    session.sql("USE spark_catalog.default")
    for namespace in ("db", "other"):
        for view in catalog.list_views(namespace):
            catalog.drop_view(view)


def rows(session: SqlSession, text: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in session.sql(text).collect()), key=str)


def test_the_life_of_a_view(session: SqlSession, catalog: ice.Catalog, spark: SparkSession) -> None:
    session.sql(
        "CREATE VIEW v (number COMMENT 'the id', `a letter`) COMMENT 'it''s all' TBLPROPERTIES ('k' = 'v') "
        "AS SELECT id, name FROM t WHERE id < 3"
    )
    view = catalog.load_view("db.v")
    assert view.queries == {"spark": "SELECT id, name FROM t WHERE id < 3"}
    assert (view.current_version().default_namespace, view.current_version().default_catalog) == (("db",), None)
    assert {key: view.properties[key] for key in ("k", "comment", "spark.query-column-names")} == {
        "k": "v",
        "comment": "it's all",
        "spark.query-column-names": "id,name",
    }
    assert rows(session, "SELECT * FROM v") == [(1, "a"), (2, "b")]
    assert rows(session, "SELECT v.number FROM c.db.v WHERE db.v.`a letter` = 'b'") == [(2,)]
    assert rows(session, "SHOW VIEWS") == [("db", "v", False)]
    assert rows(session, "SHOW TABLES") == [("db", "t", False)]
    assert rows(session, "SHOW COLUMNS IN v") == [("a letter",), ("number",)]
    assert rows(session, "DESCRIBE v") == [("a letter", "string", ""), ("number", "bigint", "the id")]
    extended = dict(row[:2] for row in session.sql("DESCRIBE EXTENDED v").collect())
    assert extended["Comment"] == "it's all"
    assert extended["View Catalog and Namespace"] == "c.db"
    assert extended["View Query Output Columns"] == "[id, name]"
    assert extended["View Properties"] == "['k' = 'v']"
    assert extended["Created By"] == f"Spark {spark.version}"
    assert rows(session, "SHOW TBLPROPERTIES v ('k')") == [("k", "v")]
    [[created]] = session.sql("SHOW CREATE TABLE v").collect()
    session.sql("DROP VIEW v")
    session.sql(created)
    assert rows(session, "SELECT * FROM v") == [(1, "a"), (2, "b")]
    assert catalog.load_view("db.v").properties == view.properties

    session.sql("CREATE VIEW IF NOT EXISTS v AS SELECT 1")
    session.sql("CREATE OR REPLACE VIEW v AS SELECT name FROM db.t")
    replaced = catalog.load_view("db.v")
    assert (len(replaced.versions), replaced.properties["k"]) == (2, "v")
    session.sql("ALTER VIEW v SET TBLPROPERTIES ('k' = 'w', 'new' = '1')")
    session.sql("ALTER VIEW v UNSET TBLPROPERTIES ('new')")
    session.sql("ALTER VIEW v AS SELECT count(*) AS n FROM t")
    assert catalog.load_view("db.v").properties["k"] == "w"
    assert "new" not in catalog.load_view("db.v").properties
    session.sql("ALTER VIEW v RENAME TO other.w")
    assert rows(session, "TABLE other.w") == [(3,)]
    assert [tuple(row) for row in session.table("c.other.w").collect()] == [(3,)]
    assert [tuple(row) for row in catalog.load_view("other.w").to_spark(spark).collect()] == [(3,)]
    session.sql("DROP VIEW IF EXISTS v")
    session.sql("DROP VIEW other.w")
    assert rows(session, "SHOW VIEWS IN c.other") == []
    assert not any(one.name.startswith("icefield_") for one in spark.catalog.listTables())


def test_names_are_those_of_the_view_wherever_it_is_read(session: SqlSession, spark: SparkSession) -> None:
    session.sql("CREATE VIEW own AS WITH t2 AS (SELECT * FROM t) SELECT max(t2.name) AS m, max(t.id) i FROM t2, t")
    session.sql("USE c.other")
    session.sql("CREATE VIEW above AS SELECT m, name FROM db.own CROSS JOIN t WHERE i IN (SELECT max(id) FROM db.t)")
    spark.range(9).createOrReplaceTempView("t")
    try:
        session.sql("USE spark_catalog.default")
        assert rows(session, "SELECT m, name FROM c.other.above") == [("c", "x")]
        assert rows(session, "SELECT count(*) FROM c.other.above a, c.other.above b, c.db.own, t") == [(9,)]
    finally:
        spark.catalog.dropTempView("t")


def test_views_of_spark_tables_and_of_other_catalogs(session: SqlSession, catalog: ice.Catalog) -> None:
    session.sql("USE spark_catalog.default")
    session.sql("CREATE TABLE sql_views_of_spark USING parquet AS SELECT 7 AS seven")
    try:
        session.sql("CREATE VIEW c.db.v AS SELECT seven, t.id FROM sql_views_of_spark JOIN c.db.t ON id = 1")
        assert catalog.load_view("db.v").current_version().default_catalog == "spark_catalog"
        session.sql("USE c.other")
        assert rows(session, "SELECT * FROM db.v") == [(7, 1)]
    finally:
        session.sql("USE spark_catalog.default")
        session.sql("DROP TABLE sql_views_of_spark")


def test_views_are_read_where_tables_are(session: SqlSession, catalog: ice.Catalog) -> None:
    session.sql("CREATE VIEW v AS SELECT id + 10 AS id, name FROM t")
    made = catalog.create_table("db.copy", COLUMNS)
    try:
        session.sql("INSERT INTO copy SELECT * FROM v")
        session.sql("MERGE INTO copy USING v ON copy.id = v.id WHEN MATCHED AND v.id = 11 THEN DELETE")
        session.sql("DELETE FROM copy WHERE id IN (SELECT id FROM v WHERE name = 'b')")
        assert made.refresh().scan().to_arrow().to_pylist() == [{"id": 13, "name": "c"}]
        with pytest.raises(ice.NoSuchTableError):
            session.sql("INSERT INTO v VALUES (1, 'x')")
    finally:
        catalog.drop_table("db.copy")


def test_queries_of_views_read_what_they_need(session: SqlSession, monkeypatch: pytest.MonkeyPatch) -> None:
    session.sql("CREATE VIEW v AS SELECT id AS number, name FROM t")
    needs = []

    def needed(*arguments: object) -> object:
        needs.append(pruning.needed(*arguments))  # type: ignore[arg-type]
        return needs[-1]

    monkeypatch.setattr("icefield.spark.sql.running.needed", needed)
    assert rows(session, "SELECT number FROM v WHERE number > 2") == [(3,)]
    [need] = [found for one in needs for found in one.values()]
    assert need.columns == {"id"}
    assert "id" in str(need.filter)
    assert "2" in str(need.filter)


def test_columns_keep_their_types(session: SqlSession, catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.w", pa.schema([("a", pa.int32()), ("b", pa.int64())]))
    try:
        session.sql("CREATE VIEW v AS SELECT * FROM w")
        table.append(pa.table({"a": pa.array([1], pa.int32()), "b": [2]}))
        with table.update_schema() as change:
            change.add_column("c", "int")
        with pytest.raises(ice.InvalidArgumentError, match=r"view db\.v: its query has 3 columns, expected 2"):
            session.sql("SELECT * FROM v")
        session.sql("CREATE OR REPLACE VIEW v AS SELECT a, b FROM w")
        with table.update_schema() as change:
            change.update_column("a", "long")
        with pytest.raises(ice.InvalidArgumentError, match="bigint for column a, which was int when the view"):
            session.sql("SELECT * FROM v")
        catalog.create_view("db.wide", pa.schema({"s": pa.string(), "d": pa.float64()}), {"spark": "TABLE w2"})
        with pytest.raises(ice.NoSuchTableError, match=r"view c\.db\.wide: line 1, column 7: table db\.w2"):
            session.sql("SELECT * FROM wide")
        catalog.replace_view(
            "db.wide", pa.schema({"s": pa.string(), "d": pa.float64()}), {"spark": "SELECT a, b FROM w"}
        )
        assert rows(session, "SELECT * FROM wide") == [("1", 2.0)]
    finally:
        catalog.drop_table("db.w")


def test_cycles_are_refused(session: SqlSession, catalog: ice.Catalog) -> None:
    session.sql("CREATE VIEW a AS SELECT * FROM t")
    session.sql("CREATE VIEW b AS SELECT * FROM a")
    with pytest.raises(ice.InvalidArgumentError, match=r"names itself: c\.db\.a -> c\.db\.b -> c\.db\.a"):
        session.sql("CREATE OR REPLACE VIEW a AS SELECT * FROM b")
    with pytest.raises(ice.InvalidArgumentError, match=r"names itself: c\.db\.a -> c\.db\.a"):
        session.sql("ALTER VIEW a AS SELECT * FROM a")
    assert len(catalog.load_view("db.a").versions) == 1
    # Another engine may have made one.
    catalog.replace_view("db.a", COLUMNS, {"spark": "SELECT * FROM b"})
    with pytest.raises(ice.InvalidArgumentError, match="names itself"):
        session.sql("SELECT * FROM a")


REFUSED = [
    ("CREATE VIEW v AS SELECT * FROM nosuch", "line 1, column 32: table db.nosuch does not exist"),
    ("CREATE VIEW t AS SELECT 1", "line 1, column 13: db.t already exists"),
    ("CREATE OR REPLACE VIEW t AS SELECT 1", "line 1, column 24: db.t already exists"),
    ("CREATE VIEW v (a, b) AS SELECT 1", "line 1, column 14: 2 names for 1 columns"),
    ("CREATE VIEW v AS SELECT id, ID FROM t", "line 1, column 18: the query has two columns id"),
    ("CREATE VIEW v AS SELECT * FROM temporary", "must not name the temporary view temporary"),
    ("CREATE VIEW v AS SELECT * FROM t WHERE id = :id", "the query of a view has no parameters"),
    ("CREATE VIEW nosuch.v AS SELECT 1", "namespace nosuch does not exist"),
    ("CREATE VIEW v WITH SCHEMA EVOLUTION AS SELECT 1", "WITH SCHEMA is not supported"),
    ("CREATE VIEW v", "expected AS"),
    ("DROP VIEW nosuch", "line 1, column 11: view db.nosuch does not exist"),
    ("DROP VIEW t", "view db.t does not exist"),
    ("ALTER VIEW nosuch SET TBLPROPERTIES ('a' = 'b')", "line 1, column 12: view db.nosuch does not exist"),
    ("ALTER VIEW old UNSET TBLPROPERTIES ('a')", "the view has no property a"),
    ("ALTER VIEW old SET TBLPROPERTIES ('location' = 'b')", "property 'location' of a view is not set by statements"),
    ("SELECT * FROM old VERSION AS OF 1", "views have no versions to read AS OF"),
    ("SELECT a.id FROM old a JOIN old VERSION AS OF 1 b", "views have no versions to read AS OF"),
    ("SELECT * FROM old.files", "table db.old does not exist"),
    ("SHOW PARTITIONS old", "c.db.old is a view"),
    ("SELECT * FROM trino", "line 1, column 15: view db.trino has no query in the dialect spark; it has: trino"),
    ("CREATE VIEW spark_catalog.default.v AS SELECT * FROM c.db.t", "in its catalogs, or temporary"),
    ("CREATE TEMPORARY VIEW v COMMENT 'x' AS SELECT * FROM t", "comments and properties of temporary views"),
]


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text[:60] for text, _ in REFUSED])
def test_what_is_refused_changes_nothing(
    session: SqlSession, catalog: ice.Catalog, spark: SparkSession, text: str, message: str
) -> None:
    session.sql("CREATE VIEW old AS SELECT 1 AS one")
    catalog.create_view("db.trino", COLUMNS, {"trino": "SELECT * FROM t"})
    spark.range(1).createOrReplaceTempView("temporary")
    before = {name: catalog.load_view(name) for name in catalog.list_views("db")}
    args = {"id": 1} if ":id" in text else None
    try:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the table says which
            session.sql(text, args)
    finally:
        spark.catalog.dropTempView("temporary")
    assert message in str(caught.value)
    assert {name: catalog.load_view(name) for name in catalog.list_views("db")} == before
    assert catalog.list_tables("db") == [("db", "t")]
