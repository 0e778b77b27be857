"""Statements of SQL in a session without a jar: text to rows, or to an error."""

from __future__ import annotations

import datetime as dt
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

UTC = dt.timezone.utc


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> ice.Catalog:
    folder = tmp_path_factory.mktemp("sql")
    made = ice.load_catalog("own", uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    made.create_namespace("db")
    return made


@pytest.fixture(scope="module")
def session(spark: SparkSession, catalog: ice.Catalog) -> Iterator[SqlSession]:
    with ice_spark.session(spark, {"c": catalog}) as made:
        yield made


@pytest.fixture(autouse=True)
def in_no_catalog(session: SqlSession) -> None:
    session.sql("USE spark_catalog.default")


@pytest.fixture(scope="module", autouse=True)
def table(catalog: ice.Catalog) -> ice.Table:
    """Make a table whose second snapshot has one row more, with a branch and a tag at the first."""
    schema = ice.Schema.from_arrow(pa.schema([("id", pa.int64()), ("name", pa.string())]))
    made = catalog.create_table("db.t", schema)
    made.append(pa.table({"id": [1, 2], "name": ["a", "b"]}))
    first = made.current_snapshot().snapshot_id
    made.manage_snapshots().create_tag(first, "first").create_branch(first, "side").commit()
    return made.append(pa.table({"id": [3], "name": ["it's"]}))


def rows(session: SqlSession, text: str, args: object = None) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in session.sql(text, args).collect()), key=str)


QUERIES = [
    ("SELECT * FROM c.db.t", [(1, "a"), (2, "b"), (3, "it's")]),
    ("TABLE c.db.t", [(1, "a"), (2, "b"), (3, "it's")]),
    ("SELECT t.id, db.t.name, c.db.t.id FROM c.db.t WHERE c.db.t.id = 1", [(1, "a", 1)]),
    ("SELECT count(*) FROM c.db.t x JOIN c.db.t y USING (id) JOIN range(2) r ON r.id = x.id", [(1,)]),
    ("SELECT count(*) FROM c.db.t JOIN VALUES (1), (2) AS v(id) ON v.id = t.id", [(2,)]),
    ("SELECT max(id) FROM c.db.t VERSION AS OF 'first'", [(2,)]),
    ("SELECT max(id) FROM c.db.t FOR SYSTEM_VERSION AS OF 'side' AS s", [(2,)]),
    ("SELECT max(id) FROM c.db.t FOR TIMESTAMP AS OF current_timestamp() + INTERVAL 1 DAY", [(3,)]),
    ("SELECT max(id) FROM c.db.t.branch_side", [(2,)]),
    ("SELECT max(id) FROM c.db.t.tag_first", [(2,)]),
    ("SELECT operation, count(*) FROM c.db.t.snapshots GROUP BY 1", [("append", 2)]),
    ("SELECT sum(record_count) FROM c.db.t.files VERSION AS OF 'first'", [(2,)]),
    ("SELECT id, _change_type FROM c.db.t.changes WHERE id > 2", [(3, "INSERT")]),
    ("WITH t AS (SELECT 9 AS id) SELECT id FROM t", [(9,)]),
    ("WITH t AS (SELECT id FROM c.db.t WHERE id > 1) SELECT count(*) FROM t, c.db.t u", [(6,)]),
    ("SELECT (SELECT max(id) FROM c.db.t), id IN (SELECT id FROM c.db.t) FROM VALUES (7L) AS v(id)", [(3, False)]),
    ("FROM c.db.t |> WHERE id > 1 |> AGGREGATE sum(id) AS n", [(5,)]),
    ("SELECT count(*) FROM IDENTIFIER('c.db.' || 't')", "AnalysisException"),
    ("SELECT count(*) FROM IDENTIFIER('c.db.`t`')", [(3,)]),
    ("SELECT 'c.db.t', `x``y` FROM (SELECT 1 AS `x``y`) -- c.db.t", [("c.db.t", 1)]),
    ("SHOW TABLES IN c.db LIKE '*T'", [("db", "t", False)]),
    ("SHOW NAMESPACES IN c", [("db",)]),
    ("SHOW CATALOGS LIKE 'c'", [("c",)]),
    ("SHOW COLUMNS IN c.db.t", [("id",), ("name",)]),
    ("DESCRIBE c.db.t", [("id", "bigint", None), ("name", "string", None)]),
    ("DESCRIBE c.db.t NAME", [("col_name", "name"), ("comment", "NULL"), ("data_type", "string")]),
    ("DESCRIBE NAMESPACE c.db", [("Catalog Name", "c"), ("Namespace Name", "db")]),
    ("DESCRIBE c.db.t.refs", [
        ("max_reference_age_in_ms", "bigint", None), ("max_snapshot_age_in_ms", "bigint", None),
        ("min_snapshots_to_keep", "int", None), ("name", "string", None), ("snapshot_id", "bigint", None),
        ("type", "string", None)]),
    ("SELECT id, _pos, _spec_id, _file IS NULL FROM c.db.t WHERE _pos > 0", [(2, 1, 0, False)]),
    ("SELECT count(DISTINCT x._file), max(_pos * 1) FROM c.db.t x", [(2, 1)]),
    ("SELECT *, _pos FROM c.db.t WHERE _pos > 0", [(2, "b", 1)]),
    ("SELECT x._pos, x.* FROM c.db.t VERSION AS OF 'first' AS x WHERE id > 1", [(1, 2, "b")]),
    ("SELECT y.*, y._pos FROM c.db.t x JOIN c.db.t y USING (id)",
     "line 1, column 15: _pos beside this * is not supported: name the columns"),
    ("SELECT *, _pos FROM (SELECT id, _pos FROM c.db.t)", "line 1, column 33: _pos beside this * is not supported"),
    ("SHOW TBLPROPERTIES c.db.t ('x')", [("x", "Table c.db.t does not have property: x")]),
    # What is Spark's alone.
    ("SELECT 1 + 1", [(2,)]),
    ("SELECT * FROM c.db.nosuch", "line 1, column 15: table db.nosuch does not exist"),
    ("SELECT *\nFROM c.nosuch.t", "line 2, column 6: table nosuch.t does not exist"),
    ("SELECT * FROM c.db.t VERSION AS OF 'nosuch'", "line 1, column 36:"),
    ("SELECT * FROM c.db.t VERSION AS OF 1.5", "line 1, column 36: expected the id of a snapshot"),
    ("SELECT * FROM c.db.t.tag_first VERSION AS OF 'side'", "c.db.t.tag_first names a snapshot already"),
    ("SELECT * FROM c.db.t WHERE", "line 1, column 22: the query is not complete"),
    ("SELECT nosuch FROM c.db.t", "UNRESOLVED_COLUMN"),
    ("DROP TABLE c", "TABLE_OR_VIEW_NOT_FOUND"),
    ("DROP TABLE c.t", "line 1, column 12: expected the name of a table in a namespace, got c.t"),
    ("CREATE VIEW v AS SELECT * FROM c.db.t", "views of icefield's tables are in its catalogs, or temporary"),
    ("CACHE TABLE c.db.t", "line 1, column 13: CACHE is not supported for tables of icefield"),
    ("ANALYZE TABLE c.db.t COMPUTE STATISTICS", "ANALYZE is not supported"),
    ("SELECT id FROM c.db.t WHERE c.system.bucket(9, id) = icefield_bucket(9, id) AND c.SYSTEM.truncate(1, name) = 'i'",
     [(3,)]),
    ("SELECT c.system.iceberg_version()", "line 1, column 8: iceberg_version() is that of the Java library"),
    ("INSERT INTO c.db.t.files VALUES (1)", "line 1, column 13: c.db.t.files can only be read"),
    ("INSERT INTO c.db.t.tag_first VALUES (1, 'a')", "first is a tag, which cannot be written to"),
    ("INSERT INTO c.db.t VALUES (1)", "line 1, column 20: the query has 1 columns (col1), expected 2: id, name"),
    ("INSERT INTO c.db.t (id, nosuch) VALUES (1, 2)", "line 1, column 25: the table has no column nosuch"),
    ("INSERT INTO c.db.t VALUES ('x', 'y')", "column 'id': string is not stored as bigint; use CAST"),
    ("CALL c.system.nosuch()", "line 1, column 6: unknown procedure 'nosuch'"),
    ("CALL c.other.ancestors_of('db.t')", "expected c.system.procedure(...)"),
    ("CALL c.system.rewrite_data_files(table => 'db.t', strategy => 'x')", "expected the strategy binpack or sort"),
    # Names of columns are those of the session, which ignores the case of letters; no file is chosen.
    ("CALL c.system.rewrite_data_files(table => 'db.t', where => 'ID = 9', sort_order => 'NAME')", [(0, 0, 0, 0, 0)]),
    ("CALL c.system.rewrite_position_delete_files(table => 'db.t', where => 'ID = 9')", [(0, 0, 0, 0)]),
    ("CALL c.system.rewrite_data_files(table => 'db.t', where => 'id = 9 and NAME = \"foo\"')", [(0, 0, 0, 0, 0)]),
    ("CALL c.system.rewrite_data_files(table => 'db.t', where => 'c.system.bucket(9, id) = 9')", [(0, 0, 0, 0, 0)]),
    ("CALL c.system.rewrite_data_files(table => 'db.t', where => 'd.system.bucket(9, id) = 9')",
     "line 1, column 6: filter: expression at character 16"),
    ("SELECT c.system.year(DATE '1972-01-02')", "AnalysisException: "),
    ("CALL c.system.ancestors_of(tabel => 'db.t')", "unknown parameter 'tabel'; did you mean table?"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), QUERIES, ids=[text[:60] for text, _ in QUERIES])
def test_statements(session: SqlSession, text: str, expected: list[tuple[object, ...]] | str) -> None:
    if isinstance(expected, list):
        assert rows(session, text) == expected
        return
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the table says which
        session.sql(text).collect()
    assert expected in f"{type(caught.value).__name__}: {caught.value}"


def test_names_mean_what_the_current_catalog_and_views_make_of_them(session: SqlSession, spark: SparkSession) -> None:
    session.sql("USE c.db")
    assert (session.current_catalog, session.current_namespace) == ("c", "db")
    assert rows(session, "SELECT count(*) FROM t") == [(3,)]
    assert rows(session, "SELECT count(*) FROM db.t") == [(3,)]
    assert rows(session, "SELECT count(*) FROM t.branch_side") == [(2,)]
    assert rows(session, "SELECT DISTINCT system.years(DATE '1972-01-02') FROM t") == [(2,)]
    assert rows(session, "SHOW TABLES") == [("db", "t", False)]
    spark.range(5).createOrReplaceTempView("t")
    try:
        assert rows(session, "SELECT count(*) FROM t") == [(5,)]
        assert rows(session, "SELECT count(*) FROM t JOIN db.t AS own USING (id)") == [(3,)]
    finally:
        spark.catalog.dropTempView("t")
    session.sql("USE spark_catalog.default")
    assert session.current_catalog == "spark_catalog"
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SELECT count(*) FROM db.t")
    with pytest.raises(ice.errors.NoSuchNamespaceError, match="line 1, column 5"):
        session.sql("USE c.nosuch")


def test_parameters_are_values(session: SqlSession) -> None:
    hostile = "' OR 1 = 1; DROP TABLE c.db.t --"
    assert rows(session, "SELECT id FROM c.db.t WHERE name = :n", {"n": hostile}) == []
    assert rows(session, "SELECT id FROM c.db.t WHERE name = ? OR id = ?", ["it's", 1]) == [(1,), (3,)]
    assert rows(session, "SELECT max(id) FROM c.db.t VERSION AS OF :v WHERE id > :i", {"v": "first", "i": 1}) == [(2,)]
    assert rows(session, "SELECT max(id) FROM c.db.t VERSION AS OF ? WHERE id > ?", ["first", 1]) == [(2,)]
    assert rows(session, "SELECT count(*) FROM IDENTIFIER(:t)", {"t": "c.db.t"}) == [(3,)]
    with pytest.raises(ice.errors.InvalidArgumentError, match="expected a name in IDENTIFIER"):
        session.sql("SELECT * FROM IDENTIFIER(:t)", {"t": "c.db.t; DROP TABLE c.db.t"})
    session.sql("CREATE TABLE c.db.p (name string)")
    session.sql("INSERT INTO c.db.p SELECT :n", {"n": hostile})
    assert rows(session, "SELECT * FROM c.db.p") == [(hostile,)]
    session.sql("DROP TABLE c.db.p")


def test_views_are_private_and_leave_nothing(session: SqlSession, spark: SparkSession, catalog: ice.Catalog) -> None:
    before = {one.name for one in spark.catalog.listTables()}
    frame = session.sql("SELECT * FROM c.db.t")
    assert {one.name for one in spark.catalog.listTables()} == before
    other = ice_spark.session(spark, {"d": catalog})
    assert other.sql("SELECT * FROM d.db.t").join(frame, "id").count() == 3
    with pytest.raises(Exception, match="SINGLE_PART_NAMESPACE|TABLE_OR_VIEW_NOT_FOUND"):
        other.sql("SELECT * FROM c.db.t")
    session.sql("CREATE OR REPLACE TEMP VIEW v (n) AS SELECT count(*) FROM c.db.t")
    assert rows(session, "SELECT n FROM v") == [(3,)]
    spark.catalog.dropTempView("v")
    other.close()
    with pytest.raises(ice.errors.InvalidArgumentError, match="closed"):
        other.sql("SELECT 1")


def test_a_table_is_defined_changed_and_dropped(session: SqlSession, catalog: ice.Catalog) -> None:
    for text in (
        "CREATE NAMESPACE IF NOT EXISTS c.made COMMENT 'x'",
        """CREATE TABLE c.made.t (id int NOT NULL COMMENT 'key', at timestamp, `odd ``name` string, s struct<a: int>)
           USING iceberg PARTITIONED BY (bucket(4, id), days(at)) COMMENT 'it''s'
           TBLPROPERTIES ('format-version' = 3)""",
        "CREATE TABLE IF NOT EXISTS c.made.t (other int)",
        "ALTER TABLE c.made.t ADD COLUMNS (s.b array<string> COMMENT 'new' FIRST, d string DEFAULT concat('x', 'y'))",
        "ALTER TABLE c.made.t CHANGE COLUMN ID TYPE bigint, ID COMMENT 'a', d SET DEFAULT 'xy'",
        "ALTER TABLE c.made.t CHANGE COLUMN `id` id bigint COMMENT 'the key' FIRST",
        "ALTER TABLE c.made.t ALTER COLUMN d AFTER id",
        "ALTER TABLE c.made.t RENAME COLUMN `odd ``name` TO plain",
        "ALTER TABLE c.made.t SET IDENTIFIER FIELDS id",
        "ALTER TABLE c.made.t REPLACE PARTITION FIELD days(at) WITH hours(at) AS hour",
        "ALTER TABLE c.made.t DROP PARTITION FIELD bucket(4, id)",
        "ALTER TABLE c.made.t ADD PARTITION FIELD truncate(2, plain)",
        "ALTER TABLE c.made.t WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY plain DESC, bucket(2, id)",
        "ALTER TABLE c.made.t SET TBLPROPERTIES ('a.b' = 'c', d = 1)",
        "ALTER TABLE c.made.t UNSET TBLPROPERTIES ('d')",
        "INSERT INTO c.made.t (id, plain) VALUES (1, 'one')",
        "ALTER TABLE c.made.t CREATE TAG v1 RETAIN 2 DAYS",
        "ALTER TABLE c.made.t CREATE BRANCH b WITH SNAPSHOT RETENTION 3 SNAPSHOTS 2 HOURS",
        "INSERT INTO c.made.t.branch_b BY NAME SELECT 'two' AS plain, 2L AS id",
        "COMMENT ON TABLE c.made.t IS 'other'",
    ):  # fmt: skip
        done = session.sql(text)
        assert done.columns == []
    assert done.count() == 0
    table = catalog.load_table("made.t")
    names = [field.name for field in table.schema().fields]
    assert names == ["id", "d", "at", "plain", "s"]
    assert [(field.name, field.doc) for field in table.schema().find_type("s").fields] == [("b", "new"), ("a", None)]
    assert str(table.schema().find_type("id")) == "long"
    assert table.schema().identifier_field_names() == {"id"}
    assert [(f.name, str(f.transform)) for f in table.spec().fields] == [
        ("hour", "hour"),
        ("plain_trunc_2", "truncate[2]"),
    ]
    order = [(str(f.transform), str(f.direction), str(f.null_order)) for f in table.sort_order().fields]
    assert order == [("identity", "desc", "nulls-last"), ("bucket[2]", "asc", "nulls-first")]
    user = session.sql("SELECT current_user()").collect()[0][0]
    expected = {"a.b": "c", "comment": "other", "write.distribution-mode": "hash", "owner": user}
    assert expected.items() <= table.properties.items()
    assert "d" not in table.properties
    refs = table.refs()
    assert refs["v1"].max_ref_age_ms == 172_800_000
    assert (refs["b"].min_snapshots_to_keep, refs["b"].max_snapshot_age_ms) == (3, 7_200_000)
    assert rows(session, "SELECT id, d, plain FROM c.made.t") == [(1, "xy", "one")]
    assert rows(session, "SELECT id, plain FROM c.made.t.branch_b") == [(1, "one"), (2, "two")]
    assert rows(session, "SHOW PARTITIONS c.made.t") == [("hour=null/plain_trunc_2=on",)]
    [(created,)] = rows(session, "SHOW CREATE TABLE c.made.t")
    session.sql(created.replace("c.made.t ", "c.made.u ").replace("/made/t'", "/made/u'"))
    again = catalog.load_table("made.u")
    assert [(f.name, f.doc, f.write_default) for f in again.schema().fields] == [
        (f.name, f.doc, f.write_default) for f in table.schema().fields
    ]
    assert [str(f.transform) for f in again.spec().fields] == ["hour", "truncate[2]"]
    for text in ("ALTER TABLE c.made.u RENAME TO c.made.v", "TRUNCATE TABLE c.made.t", "DROP TABLE c.made.v PURGE"):
        session.sql(text)
    assert rows(session, "SELECT * FROM c.made.t") == []
    assert rows(session, "SHOW TABLES IN c.made") == [("made", "t", False)]
    with pytest.raises(ice.errors.NamespaceNotEmptyError):
        session.sql("DROP NAMESPACE c.made")
    session.sql("DROP TABLE c.made.t")
    session.sql("DROP TABLE IF EXISTS c.made.t")
    session.sql("DROP NAMESPACE c.made")
    assert not catalog.namespace_exists("made")


def test_tables_of_queries(session: SqlSession, catalog: ice.Catalog) -> None:
    session.sql("CREATE TABLE c.db.made PARTITIONED BY (name) AS SELECT id, name FROM c.db.t WHERE id < 3")
    assert rows(session, "SELECT * FROM c.db.made") == [(1, "a"), (2, "b")]
    session.sql("CREATE OR REPLACE TABLE c.db.made AS SELECT id + 1 AS id, 'x' AS more FROM c.db.made")
    assert rows(session, "SELECT * FROM c.db.made") == [(2, "x"), (3, "x")]
    assert len(catalog.load_table("db.made").snapshots()) == 2
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        session.sql("REPLACE TABLE c.db.made AS SELECT id / (id - id) AS id FROM c.db.made")
    assert rows(session, "SELECT * FROM c.db.made") == [(2, "x"), (3, "x")]
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        session.sql("CREATE TABLE c.db.failed AS SELECT id / (id - id) AS id FROM c.db.t")
    assert not catalog.table_exists("db.failed")
    session.sql("DROP TABLE c.db.made")


def test_inserted_values_become_those_of_the_columns_or_fail(session: SqlSession) -> None:
    session.sql("CREATE TABLE c.db.typed (i int, d decimal(5, 2), f double, s string, at timestamp, day date)")
    insert = "INSERT INTO c.db.typed "
    session.sql(insert + "SELECT 1L, 2.5, 3, 4, DATE '2024-01-01', TIMESTAMP '2024-01-02 03:04:05'")
    session.sql(insert + "VALUES (NULL, 1, 1, '', NULL, NULL)")
    session.sql(insert + "(s, I) SELECT 'named', 7S")
    found = rows(
        session, "SELECT i, cast(d AS string), f, s, at = DATE '2024-01-01', cast(day AS string) FROM c.db.typed"
    )
    assert found == [
        (1, "2.50", 3.0, "4", True, "2024-01-02"),
        (7, None, None, "named", None, None),
        (None, "1.00", 1.0, "", None, None),
    ]  # fmt: skip
    for wrong, message in (
        ("SELECT 3000000000, 1, 1, '', NULL, NULL", "column i: the value 3000000000 does not fit int"),
        ("SELECT 1, 12345.5, 1, '', NULL, NULL", "column d: the value 12345.5 does not fit decimal(5,2)"),
        ("SELECT true, 1, 1, '', NULL, NULL", "column 'i': boolean is not stored as int"),
    ):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the message says which
            session.sql(insert + wrong)
        assert message in str(caught.value)
    assert len(rows(session, "SELECT * FROM c.db.typed")) == 3
    session.sql("DROP TABLE c.db.typed")


def test_procedures(session: SqlSession, spark: SparkSession, catalog: ice.Catalog) -> None:
    session.sql("CREATE TABLE c.db.moved (id bigint)")
    ids = []
    for number in range(3):
        session.sql(f"INSERT INTO c.db.moved VALUES ({number})")
        ids.append(catalog.load_table("db.moved").current_snapshot().snapshot_id)

    def call(text: str) -> list[tuple[object, ...]]:
        return [tuple(row) for row in session.sql(f"CALL c.system.{text}").collect()]

    assert call(f"rollback_to_snapshot('db.moved', {ids[0]})") == [(ids[2], ids[0])]
    assert call(f"set_current_snapshot(snapshot_id => {ids[2]}, table => 'c.db.moved')") == [(ids[0], ids[2])]
    first = catalog.load_table("db.moved").snapshot_by_id(ids[1]).timestamp_ms / 1000
    at = dt.datetime.fromtimestamp(first, UTC) + dt.timedelta(milliseconds=1)
    assert call(f"rollback_to_timestamp('`db`.`moved`', TIMESTAMP '{at.isoformat()}')")[0][0] == ids[2]
    call(f"set_current_snapshot('db.moved', {ids[2]})")
    assert [row[0] for row in call("ancestors_of('db.moved')")] == ids[::-1]
    session.sql(f"ALTER TABLE c.db.moved CREATE BRANCH b AS OF VERSION {ids[0]}")
    assert call("fast_forward('db.moved', 'b', 'main')") == [("b", ids[0], ids[2])]
    assert call("create_changelog_view('db.moved', changelog_view => 'moves')") == [("moves",)]
    assert rows(session, "SELECT id, _change_type FROM moves WHERE id > 0") == [(1, "INSERT"), (2, "INSERT")]
    spark.catalog.dropTempView("moves")
    schema = session.sql("CALL c.system.rewrite_manifests(table => 'db.moved')").schema.simpleString()
    assert schema == "struct<rewritten_manifests_count:int,added_manifests_count:int>"
    [counts] = call(
        "expire_snapshots(table => 'db.moved', older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1)"
    )
    assert (counts[0], counts[1], counts[2], counts[4]) == (0, 0, 0, 2)
    assert len(call("ancestors_of('db.moved')")) == 2
    for wrong, message in (
        ("rollback_to_snapshot('db.moved')", "parameter 'snapshot_id' is missing; it is rollback_to_snapshot(table"),
        ("rollback_to_snapshot('db.moved', 'x')", "parameter 'snapshot_id': expected long, got 'x'"),
        ("rollback_to_snapshot('db.moved', 1, 2)", "got 3 values for 2 parameters"),
        ("rollback_to_snapshot('db.moved', table => 'x', snapshot_id => 1)", "parameter 'table' is passed twice"),
    ):
        with pytest.raises(ice.errors.InvalidArgumentError) as caught:
            call(wrong)
        assert message in str(caught.value)
    session.sql("DROP TABLE c.db.moved")


def test_table_reads_by_name(session: SqlSession) -> None:
    assert session.table("c.db.t").count() == 3
    assert session.table("c.db.`t`.tag_first").count() == 2
    with pytest.raises(ice.errors.InvalidArgumentError, match="line 1, column 8"):
        session.table("c.db.t WHERE id = 1")


def test_catalogs_of_settings_are_there(spark: SparkSession, catalog: ice.Catalog) -> None:
    prefix = "spark.sql.catalog.own"
    settings = {prefix: "org.apache.iceberg.spark.SparkCatalog"}
    settings[f"{prefix}.catalog-impl"] = "org.apache.iceberg.jdbc.JdbcCatalog"
    settings[f"{prefix}.uri"] = "jdbc:" + catalog.properties["uri"].replace(":///", ":")
    settings[f"{prefix}.warehouse"] = catalog.properties["warehouse"]
    settings[f"{prefix}.default-namespace"] = "db"
    for key, value in settings.items():
        spark.conf.set(key, value)
    try:
        with ice_spark.session(spark) as made:
            assert made.catalogs == ["own"]
            assert made.sql("SELECT * FROM own.db.t").count() == 3
            made.sql("USE own")
            assert (made.current_namespace, made.sql("SELECT * FROM t").count()) == ("db", 3)
    finally:
        for key in settings:
            spark.conf.unset(key)


class FakeNotebook:
    def __init__(self, **variables: object) -> None:
        self.user_ns = variables
        self.magics: dict[str, object] = {}

    def register_magic_function(self, function: object, magic_kind: str, magic_name: str) -> None:
        self.magics[f"{magic_kind} {magic_name}"] = function


def test_the_magic_of_notebooks(session: SqlSession) -> None:
    from icefield.spark.sql import load_ipython_extension

    notebook = FakeNotebook(session=session)
    load_ipython_extension(notebook)
    magic = notebook.magics["cell icefield"]
    assert magic("", "SELECT count(*) AS n FROM c.db.t\n").collect()[0].n == 3
    assert magic("session > n", "SELECT count(*) AS n FROM c.db.t") is None
    assert notebook.user_ns["n"].collect()[0].n == 3
    with pytest.raises(ice.errors.InvalidArgumentError, match="other is no session"):
        magic("other", "SELECT 1")


def test_queries_read_what_they_need(session: SqlSession, spark: SparkSession, catalog: ice.Catalog) -> None:
    session.sql("CREATE TABLE c.db.wide (id bigint, day date, kind string, more struct<a: int>) PARTITIONED BY (day)")
    session.sql(
        "INSERT INTO c.db.wide SELECT id, DATE '2024-01-01' + CAST(id AS INT), 'k' || id % 2, NULL FROM range(6)"
    )

    def needs(text: str) -> list[tuple[str, list[str] | None]]:
        return [(str(one.filter), one.columns and sorted(one.columns)) for one in needed_by(session, text)]

    everything = ["day", "id", "kind", "more"]
    assert needs("SELECT id FROM c.db.wide WHERE day = DATE '2024-01-02'") == [
        ("day IS NOT NULL AND day = DATE '2024-01-02'", ["day", "id"])
    ]
    counted = needs("SELECT count(*) FROM (SELECT * FROM c.db.wide WHERE kind = 'k1')")
    assert [columns for _, columns in counted] == [["kind"]]
    assert [columns or everything for _, columns in needs("SELECT * FROM c.db.wide")] == [everything]
    # Each use of a table counts, also those in subqueries and in WITH.
    for text in (
        "SELECT count(*) FROM c.db.wide a JOIN c.db.wide b ON a.id = b.id + 1 WHERE a.kind = 'k1' AND b.kind = 'k0'",
        "WITH w AS (SELECT * FROM c.db.wide) SELECT (SELECT count(*) FROM w WHERE id > 3) + (SELECT min(id) FROM w)",
        "SELECT count(id), count(more), count(*) FROM c.db.wide WHERE kind <> 'k1' OR day IS NULL",
        "SELECT kind, sum(id) FROM c.db.wide WHERE id BETWEEN 1 AND 4 GROUP BY kind HAVING sum(id) > 4",
        "SELECT id FROM c.db.wide WHERE id NOT IN (SELECT id FROM c.db.wide WHERE kind = 'k0')",
        "SELECT id FROM c.db.wide WHERE 1 = 2",
        "SELECT DISTINCT kind FROM c.db.wide TABLESAMPLE (100 PERCENT) WHERE day > DATE '2024-01-03' LIMIT 1",
    ):
        session.table("c.db.wide").createOrReplaceTempView("wide_in_spark")
        expected = rows(session, text.replace("c.db.wide", "wide_in_spark"))
        assert rows(session, text) == expected, text
    spark.catalog.dropTempView("wide_in_spark")
    session.sql("DROP TABLE c.db.wide")


def needed_by(session: SqlSession, text: str) -> list[pruning.Needed]:
    """Return what a query asks its tables for."""
    found: list[pruning.Needed] = []

    def keeping(frame: object, schemas: object) -> dict[int, pruning.Needed]:
        needs = pruning.needed(frame, schemas)
        found.extend(needs.values())
        return needs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("icefield.spark.sql.running.needed", keeping)
        session.sql(text)
    return found
