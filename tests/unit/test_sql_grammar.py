"""Statements without Spark: text to statement, to an error with line and column, to the tables of a query."""

from __future__ import annotations

import datetime as dt
import random
import re
from dataclasses import replace

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlglot")

from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.spark.sql.grammar import statements as s
from icefield.spark.sql.grammar.parser import Parsed, parse
from icefield.spark.sql.grammar.text import Name, Piece, Statement
from icefield.spark.sql.literals import literal, quoted_name, quoted_text
from icefield.spark.sql.qualifiers import Side, requalified
from icefield.spark.sql.queries import Edit, edited, tables_in


def plain(text: str, value: object) -> object:
    """Return a statement without places: names as their parts, pieces as their text."""
    if isinstance(value, Name):
        return value.parts
    if isinstance(value, Piece):
        return text[value.start : value.end]
    if isinstance(value, tuple):
        return tuple(plain(text, one) for one in value)
    if hasattr(value, "__dataclass_fields__"):
        fields = {name: plain(text, getattr(value, name)) for name in value.__dataclass_fields__ if name != "start"}
        return type(value).__name__, *fields.values()
    return dict(value) if hasattr(value, "keys") else value


def parsed(text: str) -> Parsed:
    return parse(Statement(text))


def column(name: str, kind: str, *rest: object) -> tuple[object, ...]:
    defaults = (False, None, None, ())
    return ("ColumnDefinition", tuple(name.split(".")), kind, *rest, *defaults[len(rest) :])


def changed(name: str, *rest: object) -> tuple[object, ...]:
    return ("AlterColumn", tuple(name.split(".")), *rest)


def term(name: str, transform: str = "identity", own: str | None = None) -> tuple[object, ...]:
    return ("PartitionTerm", tuple(name.split(".")), transform, own)


ALTERED = [
    ("ADD COLUMN a int", ("AddColumns", (column("a", "int"),))),
    ("add columns (a int, b.c struct<d: array<map<string, int>>> NOT NULL)", (
        "AddColumns", (column("a", "int"), column("b.c", "struct<d: array<map<string, int>>>", True)))),
    ("ADD COLUMN a decimal(10, 2) COMMENT 'it''s, (x)' AFTER b", (
        "AddColumns", (column("a", "decimal(10, 2)", False, "it's, (x)", None, ("after", "b")),))),
    ("ADD COLUMN a struct<> FIRST", ("AddColumns", (column("a", "struct<>", False, None, None, ("first",)),))),
    ("ADD COLUMN a int DEFAULT 1 + f(2, 3) COMMENT 'c'", (
        "AddColumns", (column("a", "int", False, "c", "1 + f(2, 3)"),))),
    ("DROP COLUMN a.b", ("DropColumns", (("a", "b"),), False)),
    ("DROP COLUMNS IF EXISTS (a, `b.c`)", ("DropColumns", (("a",), ("b.c",)), True)),
    ("RENAME COLUMN a.b TO c", ("RenameColumn", ("a", "b"), "c")),
    ("ALTER COLUMN a TYPE bigint", ("AlterColumns", (changed("a", "bigint", None, None, (), None, False),))),
    ("ALTER COLUMN a COMMENT 'x'", ("AlterColumns", (changed("a", None, "x", None, (), None, False),))),
    ("ALTER COLUMN a SET NOT NULL", ("AlterColumns", (changed("a", None, None, True, (), None, False),))),
    ("ALTER COLUMN a DROP NOT NULL", ("AlterColumns", (changed("a", None, None, False, (), None, False),))),
    ("ALTER COLUMN a SET DEFAULT 'x'", ("AlterColumns", (changed("a", None, None, None, (), "'x'", False),))),
    ("ALTER COLUMN a DROP DEFAULT", ("AlterColumns", (changed("a", None, None, None, (), None, True),))),
    ("ALTER COLUMN a FIRST", ("AlterColumns", (changed("a", None, None, None, ("first",), None, False),))),
    ("ALTER COLUMN a.b AFTER `c d`", (
        "AlterColumns", (changed("a.b", None, None, None, ("after", "c d"), None, False),))),
    ("CHANGE a TYPE int, b.c SET DEFAULT f(1, 2), d FIRST", ("AlterColumns", (
        changed("a", "int", None, None, (), None, False),
        changed("b.c", None, None, None, (), "f(1, 2)", False),
        changed("d", None, None, None, ("first",), None, False)))),
    ("ALTER COLUMN a TYPE double COMMENT 'x'", (
        "AlterColumns", (changed("a", "double", "x", None, (), None, False),))),
    ("CHANGE COLUMN b.a A bigint COMMENT 'x' AFTER c", (
        "AlterColumns", (changed("b.a", "bigint", "x", None, ("after", "c"), None, False),))),
    ("SET LOCATION 'x'", ("SetProperties", {"location": "x"})),
    ("ADD PARTITION FIELD a", ("AddPartitionField", term("a"))),
    ("ADD PARTITION FIELD bucket(16, a.b) AS x", ("AddPartitionField", term("a.b", "bucket[16]", "x"))),
    ("ADD PARTITION FIELD truncate(a, 4)", ("AddPartitionField", term("a", "truncate[4]"))),
    ("ADD PARTITION FIELD years(ts)", ("AddPartitionField", term("ts", "year"))),
    ("ADD PARTITION FIELD month(ts)", ("AddPartitionField", term("ts", "month"))),
    ("ADD PARTITION FIELD date(ts)", ("AddPartitionField", term("ts", "day"))),
    ("ADD PARTITION FIELD hours(ts)", ("AddPartitionField", term("ts", "hour"))),
    ("DROP PARTITION FIELD days(ts)", ("DropPartitionField", term("ts", "day"))),
    ("REPLACE PARTITION FIELD ts_day WITH hours(ts) AS h", (
        "ReplacePartitionField", term("ts_day"), term("ts", "hour", "h"))),
    ("WRITE ORDERED BY a, b DESC", ("WriteOrder", "range", (
        ("SortTerm", term("a"), "asc", "nulls-first"), ("SortTerm", term("b"), "desc", "nulls-last")))),
    # An order in each task says nothing about which rows a task gets.
    ("WRITE LOCALLY ORDERED BY (bucket(4, a) ASC NULLS LAST)", ("WriteOrder", None, (
        ("SortTerm", term("a", "bucket[4]"), "asc", "nulls-last"),))),
    ("WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY a", ("WriteOrder", "hash", (
        ("SortTerm", term("a"), "asc", "nulls-first"),))),
    ("WRITE LOCALLY ORDERED BY a DISTRIBUTED BY PARTITION", ("WriteOrder", "hash", (
        ("SortTerm", term("a"), "asc", "nulls-first"),))),
    ("WRITE UNORDERED", ("WriteOrder", "none", None)),
    ("WRITE DISTRIBUTED BY PARTITION", ("WriteOrder", "hash", None)),
    ("WRITE DISTRIBUTED BY PARTITION LOCALLY ORDERED BY a", (
        "WriteOrder", "hash", (("SortTerm", term("a"), "asc", "nulls-first"),))),
    ("WRITE UNORDERED", ("WriteOrder", "none", None)),
    ("CREATE BRANCH b", ("SetReference", "branch", "b", True, False, False, None, None, None, None)),
    ("CREATE BRANCH IF NOT EXISTS `b-1` AS OF VERSION 12 RETAIN 7 DAYS WITH SNAPSHOT RETENTION 2 SNAPSHOTS 3 HOURS", (
        "SetReference", "branch", "b-1", True, False, True, 12, 604_800_000, 10_800_000, 2)),
    ("CREATE OR REPLACE BRANCH b WITH SNAPSHOT RETENTION 5 MINUTES", (
        "SetReference", "branch", "b", True, True, False, None, None, 300_000, None)),
    ("REPLACE TAG t AS OF VERSION 9 RETAIN 1 DAY", (
        "SetReference", "tag", "t", False, True, False, 9, 86_400_000, None, None)),
    ("CREATE TAG IF NOT EXISTS t", ("SetReference", "tag", "t", True, False, True, None, None, None, None)),
    ("DROP BRANCH IF EXISTS b", ("DropReference", "branch", "b", True)),
    ("DROP TAG t", ("DropReference", "tag", "t", False)),
    ("SET IDENTIFIER FIELDS a, b.c", ("IdentifierFields", (("a",), ("b", "c")), False)),
    ("DROP IDENTIFIER FIELDS a", ("IdentifierFields", (("a",),), True)),
    ("SET TBLPROPERTIES ('a' = 'b', c.d = -3, e true)", ("SetProperties", {"a": "b", "c.d": "-3", "e": "true"})),
    ("UNSET TBLPROPERTIES IF EXISTS ('a', b)", ("UnsetProperties", ("a", "b"), True)),
    ("RENAME TO db.t2", ("RenameTable", ("db", "t2"))),
]  # fmt: skip

STATEMENTS = [
    ("USE c.db", ("Use", ("c", "db"), None)),
    ("use namespace `a.b`", ("Use", ("a.b",), "namespace")),
    ("SET CATALOG c", ("Use", ("c",), "catalog")),
    ("CREATE TABLE c.t (a bigint NOT NULL COMMENT 'x', b string) USING iceberg PARTITIONED BY (bucket(4, a), b) "  # noqa: ISC004
     "COMMENT 'c' LOCATION 's3://x' TBLPROPERTIES ('k' = 'v')", (
        "CreateTable", ("c", "t"), "create", (column("a", "bigint", True, "x"), column("b", "string")), "iceberg",
        (term("a", "bucket[4]"), term("b")), "c", "s3://x", {"k": "v"}, None, None)),
    ("CREATE TABLE IF NOT EXISTS t (a int) PARTITIONED BY (d string COMMENT 'day')", (
        "CreateTable", ("t",), "create if not exists", (column("a", "int"), column("d", "string", False, "day")), None,
        (term("d"),), None, None, {}, None, None)),
    ("CREATE TABLE t AS SELECT 1 AS a", (
        "CreateTable", ("t",), "create", (), None, (), None, None, {}, "SELECT 1 AS a", None)),
    ("CREATE OR REPLACE TABLE t USING iceberg SELECT ';' AS a;", (
        "CreateTable", ("t",), "create or replace", (), "iceberg", (), None, None, {}, "SELECT ';' AS a", None)),
    ("REPLACE TABLE t (a int)", (
        "CreateTable", ("t",), "replace", (column("a", "int"),), None, (), None, None, {}, None, None)),
    ("DROP TABLE IF EXISTS a.b PURGE", ("DropTable", ("a", "b"), True, True)),
    ("TRUNCATE TABLE a.b", ("Truncate", ("a", "b"))),
    ("REFRESH TABLE a.b", ("Refresh", ("a", "b"))),
    ("COMMENT ON TABLE a.b IS 'x'", ("CommentOn", "table", ("a", "b"), "x")),
    ("COMMENT ON SCHEMA a IS NULL", ("CommentOn", "namespace", ("a",), None)),
    ("CREATE NAMESPACE IF NOT EXISTS a COMMENT 'c' LOCATION 'l' WITH DBPROPERTIES (k = 1)", (
        "CreateNamespace", ("a",), True, {"comment": "c", "location": "l", "k": "1"})),
    ("CREATE DATABASE a", ("CreateNamespace", ("a",), False, {})),
    ("DROP SCHEMA IF EXISTS a CASCADE", ("DropNamespace", ("a",), True, True)),
    ("ALTER DATABASE a SET DBPROPERTIES (k = 'v')", ("AlterNamespace", ("a",), {"k": "v"}, ())),
    ("ALTER NAMESPACE a UNSET PROPERTIES ('k')", ("AlterNamespace", ("a",), {}, ("k",))),
    ("DESCRIBE a.b", ("Describe", ("a", "b"), False, None)),
    ("DESC TABLE EXTENDED a.b c", ("Describe", ("a", "b"), True, ("c",))),
    ("DESCRIBE NAMESPACE EXTENDED a", ("DescribeNamespace", ("a",), True)),
    ("SHOW TABLES", ("Show", "tables", None, None, None)),
    ("SHOW TABLES IN a.b LIKE 'x*'", ("Show", "tables", ("a", "b"), "x*", None)),
    ("SHOW TABLES 'x'", ("Show", "tables", None, "x", None)),
    ("SHOW DATABASES FROM c", ("Show", "namespaces", ("c",), None, None)),
    ("SHOW CREATE TABLE a.b", ("Show", "create table", ("a", "b"), None, None)),
    ("SHOW TBLPROPERTIES a.b ('k.l')", ("Show", "properties", ("a", "b"), None, "k.l")),
    ("SHOW PARTITIONS a.b", ("Show", "partitions", ("a", "b"), None, None)),
    ("SHOW COLUMNS IN b FROM a", ("Show", "columns", ("a", "b"), None, None)),
    ("CALL c.system.p()", ("Call", ("c", "system", "p"), (), ())),
    ("call c.system.p('db.t', 1, x => map('a', 'b'), y=>array(1, 2))", (
        "Call", ("c", "system", "p"), ("'db.t'", "1"), ((("x",), "map('a', 'b')"), (("y",), "array(1, 2)")))),
    ("CREATE OR REPLACE TEMP VIEW v (a, b) AS SELECT 1, 2", (
        "CreateView", ("v",), ("a", "b"), "SELECT 1, 2", True, True, False, (None, None), {}, None)),
    ("INSERT INTO t VALUES (1, ')')", ("Insert", ("t",), False, "VALUES (1, ')')", (), False, (), None)),
    ("INSERT INTO TABLE a.b.branch_x (c, `d e`) SELECT 1, 2", (
        "Insert", ("a", "b", "branch_x"), False, "SELECT 1, 2", (("c",), ("d e",)), False, (), None)),
    ("INSERT INTO t BY NAME SELECT 1 AS a", ("Insert", ("t",), False, "SELECT 1 AS a", (), True, (), None)),
    ("INSERT INTO t (SELECT 1)", ("Insert", ("t",), False, "(SELECT 1)", (), False, (), None)),
    ("INSERT OVERWRITE t PARTITION (d = '1', h) SELECT 1, 2", (
        "Insert", ("t",), True, "SELECT 1, 2", (), False, ((("d",), "'1'"), (("h",), None)), None)),
    ("INSERT INTO t REPLACE WHERE a IN (SELECT 1) SELECT 2", (
        "Insert", ("t",), True, "SELECT 2", (), False, (), "a IN (SELECT 1)")),
    ("DELETE FROM t", ("Delete", ("t",), None, None)),
    ("DELETE FROM a.t AS x WHERE x.a = ';' OR b", ("Delete", ("a", "t"), "x", "x.a = ';' OR b")),
    ("UPDATE t x SET a = 1, b.c = CASE WHEN a, b THEN 1 END WHERE d", ("Update", ("t",), "x", (
        ("Assignment", ("a",), "1"), ("Assignment", ("b", "c"), "CASE WHEN a, b THEN 1 END")), "d")),
    ("UPDATE t SET a = DEFAULT", ("Update", ("t",), None, (("Assignment", ("a",), None),), None)),
    ("MERGE INTO t USING (SELECT 1 AS a) s ON t.a = s.a AND CASE WHEN t.a THEN 1 ELSE 2 END = 1 "  # noqa: ISC004
     "WHEN MATCHED AND s.b THEN DELETE WHEN MATCHED THEN UPDATE SET * "
     "WHEN NOT MATCHED BY TARGET THEN INSERT (a, b) VALUES (s.a, DEFAULT) "
     "WHEN NOT MATCHED BY SOURCE AND t.a > 1 THEN UPDATE SET a = 2, b = 3", (
        "Merge", ("t",), None, "(SELECT 1 AS a)", "s", "t.a = s.a AND CASE WHEN t.a THEN 1 ELSE 2 END = 1", (
            ("MergeClause", "matched", "s.b", "delete", None),
            ("MergeClause", "matched", None, "update", None),
            ("MergeClause", "not matched", None, "insert", (
                ("Assignment", ("a",), "s.a"), ("Assignment", ("b",), None))),
            ("MergeClause", "not matched by source", "t.a > 1", "update", (
                ("Assignment", ("a",), "2"), ("Assignment", ("b",), "3")))), False)),
    ("MERGE WITH SCHEMA EVOLUTION INTO a.b.t AS t USING c.s ON true WHEN NOT MATCHED THEN INSERT *", (
        "Merge", ("a", "b", "t"), "t", "c.s", None, "true", (
            ("MergeClause", "not matched", None, "insert", None),), True)),
    ("SET spark.x = 1", ("Other", "SET", ())),
    ("EXPLAIN EXTENDED SELECT 1", ("Query", "SELECT 1")),
    ("  /* c /* d */ */ SELECT 1 -- e", ("Query", "SELECT 1")),
    *((f"ALTER TABLE a.b {text}", ("Alter", ("a", "b"), result)) for text, result in ALTERED),
    # Names and texts that look like SQL stay names and texts.
    ("DROP TABLE `a; DROP TABLE b`.`c``d`", ("DropTable", ("a; DROP TABLE b", "c`d"), False, False)),
    ("COMMENT ON TABLE t IS 'x''; DROP TABLE t; --'", ("CommentOn", "table", ("t",), "x'; DROP TABLE t; --")),
    (r"COMMENT ON TABLE t IS 'a\'b\\'", ("CommentOn", "table", ("t",), "a'b\\")),
    ("COMMENT ON TABLE t IS 'a' \"b\" 'c'", ("CommentOn", "table", ("t",), "abc")),
    ("COMMENT ON TABLE t IS r'a\\n'", ("CommentOn", "table", ("t",), "a\\n")),
    ("ALTER TABLE t RENAME COLUMN `select` TO `from`", ("Alter", ("t",), ("RenameColumn", ("select",), "from"))),
    ("DELETE FROM t WHERE a = '-- x' AND b = '/*'", ("Delete", ("t",), None, "a = '-- x' AND b = '/*'")),
    ("CALL c.system.p('a, b => c')", ("Call", ("c", "system", "p"), ("'a, b => c'",), ())),
    ("DROP VIEW IF EXISTS a.`b.c`", ("DropView", ("a", "b.c"), True)),
    ("ALTER VIEW db.v SET TBLPROPERTIES ('a' = 'b')", ("AlterView", ("db", "v"), ("SetProperties", {"a": "b"}))),
    ("ALTER VIEW v AS SELECT 1", ("AlterView", ("v",), ("ViewQuery", "SELECT 1"))),
    ("SHOW CURRENT NAMESPACE", ("Show", "current namespace", None, None, None)),
    ("ALTER TABLE t SET TBLPROPERTIES ('k)' = '(v')", ("Alter", ("t",), ("SetProperties", {"k)": "(v"}))),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), STATEMENTS, ids=[text[:60] for text, _ in STATEMENTS])
def test_statements(text: str, expected: tuple[object, ...]) -> None:
    assert plain(text, parsed(text)) == expected


WRONG = [
    ("", "line 1, column 1: expected a statement"),
    ("-- only this", "line 1, column 1: expected a statement"),
    ("DROP TABLE a; DROP TABLE b", "line 1, column 15: one statement at a time"),
    ("DROP TABLE a\n  b", "line 2, column 3: expected the end of the statement, got 'b'"),
    ("DROP TABLE 'a'", "line 1, column 12: expected a table, got \"'a'\""),
    ("DROP TABLE ``", "line 1, column 12: expected a table"),
    ("DROP TABLE a.", "line 1, column 14: expected a table, got the end"),
    ("COMMENT ON TABLE t IS 'x", "line 1, column 23: a string, a quoted name or a comment has no end"),
    ("SELECT 1 /* 'x'", "line 1, column 10: a string, a quoted name or a comment has no end"),
    ("SELECT 1 -- 'x\n, `y", "line 2, column 3: a string, a quoted name or a comment has no end"),
    ("SELECT 1 -- x \\\n; DROP TABLE t", "a comment that ends with a backslash goes on in the next line"),
    ("DROP TABLE {# x #} t", "line 1, column 11: unexpected '{# x #}'"),
    ("CREATE TABLE t (a)", "line 1, column 18: expected a type, got ')'"),
    ("CREATE TABLE t (a int b int)", "line 1, column 23: expected )"),
    ("CREATE TABLE t (a struct<b: int)", "line 1, column 33: expected >"),
    ("CREATE TABLE t (a.b int)", "line 1, column 17: expected the name of one column, got a.b"),
    ("CREATE TABLE t (a int FIRST)", "columns of a new table have the order"),
    ("CREATE TABLE t (a int) COMMENT 'x' COMMENT 'y'", "line 1, column 36: COMMENT stands twice"),
    ("CREATE TABLE t (a int) PARTITIONED BY (minutes(a))", "line 1, column 40: unknown transform 'minutes'"),
    ("CREATE TABLE t (a int) PARTITIONED BY (bucket(a))", "line 1, column 48: expected ,"),
    ("CREATE TABLE t (a int) TBLPROPERTIES ('a' = 1, 'a' = 2)", "line 1, column 48: property 'a' is set twice"),
    ("ALTER TABLE t", "line 1, column 14: expected what ALTER TABLE changes"),
    ("ALTER TABLE t FROBNICATE", "line 1, column 15: expected what ALTER TABLE changes"),
    ("ALTER TABLE t CHANGE COLUMN a `b` bigint", "line 1, column 31: expected the name of the column again"),
    ("ALTER TABLE t ALTER COLUMN a RESTART", "line 1, column 30: expected TYPE, COMMENT"),
    ("ALTER TABLE t ADD PARTITION FIELD bucket(x, a)", "line 1, column 45: expected an integer, got 'a'"),
    ("ALTER TABLE t CREATE BRANCH b RETAIN 3", "line 1, column 39: expected DAYS, HOURS or MINUTES, got the end"),
    ("ALTER TABLE t CREATE BRANCH b RETAIN -3 DAYS", "line 1, column 38: expected a number of days"),
    ("ALTER TABLE t CREATE TAG b WITH SNAPSHOT RETENTION 3 DAYS", "line 1, column 28: expected the end"),
    ("ALTER TABLE t WRITE", "line 1, column 20: expected ORDERED BY"),
    ("ALTER TABLE t WRITE UNORDERED ORDERED BY a", "line 1, column 31: expected the end"),
    ("CALL c.system.p(a => 1, 2)", "line 1, column 25: expected a name and =>"),
    ("CALL c.system.p(a => 1, A => 2)", "line 1, column 25: parameter A is passed twice"),
    ("CALL c.system.p(1,)", "line 1, column 19: expected a value, got ')'"),
    ("CALL c.system.p(f(1)", "line 1, column 21: expected ,"),
    ("CALL c.system.p 1", "line 1, column 17: expected ("),
    ("DELETE t", "line 1, column 8: expected FROM, got 't'"),
    ("DELETE FROM t WHERE", "line 1, column 20: expected a condition, got the end"),
    ("DELETE FROM t WHERE a) OR (1 = 1", "line 1, column 22: unexpected ')'"),
    ("DELETE FROM t WHERE f(a]", "line 1, column 24: expected ), got ']'"),
    ("UPDATE t SET a", "line 1, column 15: expected =, got the end"),
    ("UPDATE t SET a = 1, a = 2", "line 1, column 21: column a is set twice"),
    ("MERGE INTO t USING s ON true", "line 1, column 29: expected WHEN MATCHED"),
    ("MERGE INTO t USING s ON true WHEN MATCHED THEN INSERT *", "line 1, column 48: expected UPDATE SET or DELETE"),
    ("MERGE INTO t USING s ON true WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", "2 columns, but 1 values"),
    ("INSERT INTO t", "line 1, column 14: expected a query"),
    ("INSERT INTO t (a, SELECT 1", "line 1, column 26: expected )"),
    ("SHOW COLUMNS t", "line 1, column 14: expected IN or FROM"),
    ("= 1", "line 1, column 1: expected a statement, got '='"),
]  # fmt: skip

REFUSED = [
    ("CREATE TABLE t LIKE u", "line 1, column 16: CREATE TABLE … LIKE is not supported: name the columns"),
    ("CREATE TABLE t (a int) STORED AS orc", "line 1, column 24: STORED of CREATE TABLE is not supported"),
    ("CREATE TABLE t (a int GENERATED ALWAYS AS (1))", "line 1, column 23: generated columns are not supported"),
    ("ALTER TABLE t ADD PARTITION (a = 1)", "use ADD PARTITION FIELD"),
    ("TRUNCATE TABLE t PARTITION (a = 1)", "use DELETE FROM"),
    ("DESCRIBE t PARTITION (a = 1)", "metadata table partitions"),
    ("INSERT OVERWRITE DIRECTORY 'x' SELECT 1", "line 1, column 18"),
    ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", "line 1, column 22: INSERT after WITH or FROM"),
    ("FROM a INSERT INTO t SELECT *", "INSERT after WITH or FROM"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text[:60] or "empty" for text, _ in WRONG])
def test_what_is_not_understood_is_an_error_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        parsed(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[text[:60] for text, _ in REFUSED])
def test_what_is_not_supported_is_refused_with_what_to_do(text: str, message: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        parsed(text)
    assert message in str(caught.value)


TABLES = [
    ("SELECT * FROM c.db.t", ["c.db.t"]),
    ("SELECT * FROM c.db.`t-1` x, d.e, (SELECT * FROM f) JOIN g ON true", ["c.db.t-1", "d.e", "f", "g"]),
    ("WITH a AS (SELECT * FROM a), b AS (SELECT * FROM a) SELECT * FROM a, b, c", ["a", "c"]),
    ("WITH A AS (SELECT 1) SELECT * FROM (WITH b AS (SELECT * FROM a) SELECT * FROM b, c)", ["c"]),
    ("WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT * FROM r", []),
    ("SELECT (SELECT max(x) FROM b.c) FROM t WHERE EXISTS (SELECT 1 FROM d.e WHERE e.x = t.x)", ["t", "b.c", "d.e"]),
    ("SELECT * FROM range(3) LATERAL VIEW explode(x) e AS y", []),
    ("SELECT /*+ BROADCAST(t) */ * FROM a.t", ["a.t"]),
    ("TABLE a.b", ["a.b"]),
    ("SELECT * FROM a.table WHERE x > 1 UNION ALL SELECT * FROM a.b JOIN a.table t USING (x) UNION ALL TABLE a.c", [
        "a.b", "a.c", "a.table", "a.table"]),
    ("SELECT * FROM a.table VERSION AS OF 'x'", ["a.table"]),
    ("FROM a.b |> WHERE x > 1 |> SELECT y", ["a.b"]),
    ("SELECT * FROM a.b.branch_x UNION ALL SELECT * FROM a.b.c.files", ["a.b.branch_x", "a.b.c.files"]),
    ("SELECT 'FROM c.db.t', `FROM c.db.u` FROM v -- FROM w", ["v"]),
    ("VALUES (1)", []),
    ("a IN (SELECT b FROM c.d) AND e", ["c.d"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TABLES, ids=[text[:60] for text, _ in TABLES])
def test_tables_of_a_query(text: str, expected: list[str]) -> None:
    found = tables_in(Statement(text), Piece(0, len(text)))
    assert sorted(str(use.name) for use in found) == sorted(expected)
    for use in found:
        assert use.name.parts[-1] in text[use.name.start : use.name.end]


#: Names of columns that begin statements of Spark, or of sqlglot.
VERBS = (
    "comment", "set", "show", "call", "load", "refresh", "explain", "truncate", "execute", "use", "analyze", "desc",
    "kill", "commit", "cache", "describe", "merge", "update", "delete", "list", "add", "clear", "begin",
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_columns_that_are_called_as_statements_begin_are_columns(verb: str) -> None:
    for text in (f"{verb} = 1 AND {verb} IN (SELECT {verb} FROM c.t)", f"{verb}.x > (SELECT 1 FROM c.t WHERE {verb})"):
        statement, piece = Statement(f"DELETE FROM t WHERE {text}"), Piece(20, 20 + len(text))
        assert [str(use.name) for use in tables_in(statement, piece)] == ["c.t"]
        side = replace(Side.of(Name(("t",), 0, 0), None, "target"), columns=frozenset({verb}))
        edits = requalified(statement, piece, [side])
        outside = text.count(verb) - text[text.index("(") :].count(verb)
        assert edited(statement.text, edits).count(f"target.{verb}") == outside
    with pytest.raises(InvalidArgumentError, match="line 1, column 1"):
        tables_in(Statement("ROLLBACK = 1"), Piece(0, 12))


MOMENTS = [
    ("VERSION AS OF 3", False, "3"),
    ("FOR VERSION AS OF 'tag'", False, "'tag'"),
    ("FOR SYSTEM_VERSION AS OF :v", False, ":v"),
    ("TIMESTAMP AS OF '2024-01-01'", True, "'2024-01-01'"),
    ("FOR SYSTEM_TIME AS OF TIMESTAMP '2024-01-01' - INTERVAL 1 DAY 2 HOURS", True,
     "TIMESTAMP '2024-01-01' - INTERVAL 1 DAY 2 HOURS"),
    ("FOR TIMESTAMP AS OF date_sub(current_date(), (1 + 2)) + f()", True, "date_sub(current_date(), (1 + 2)) + f()"),
]  # fmt: skip


@pytest.mark.parametrize(("clause", "is_time", "value"), MOMENTS, ids=[clause for clause, *_ in MOMENTS])
@pytest.mark.parametrize("after", ["", " x", " AS x WHERE y", ", u", " JOIN u USING (id)"])
def test_moments_of_tables(clause: str, is_time: bool, value: str, after: str) -> None:
    text = f"SELECT * FROM a.t {clause}{after}"
    use = next(use for use in tables_in(Statement(text), Piece(0, len(text))) if use.name.parts == ("a", "t"))
    assert use.moment is not None
    assert (use.moment.is_time, text[use.moment.value.start : use.moment.value.end]) == (is_time, value)
    assert text[use.end :] == after


def test_names_in_front_of_columns_are_found() -> None:
    text = "SELECT c.db.t.x, db.t.s.y, t.z FROM c.db.t WHERE c.db.u.x"
    [use] = tables_in(Statement(text), Piece(0, len(text)))
    cut = edited(text, [Edit(start, end, "") for start, end in use.qualified])
    assert cut == "SELECT t.x, t.s.y, t.z FROM c.db.t WHERE c.db.u.x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM\n  a.b c d", "line 2, column 9: unexpected, got 'd'"),
        ("SELECT * FROM a.b WHERE", "line 1, column 19: the query is not complete or not valid"),
        ("SELECT (1 FROM a.b", "line 1, column 11"),
    ],
)
def test_a_query_that_cannot_be_parsed_is_an_error_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        tables_in(Statement(text), Piece(0, len(text)))
    assert message in str(caught.value)


def test_values_become_literals_by_trees() -> None:
    hostile = "a'b\\'; DROP TABLE t; -- \n`\"\u0000é"
    [token, _] = Statement(quoted_text(hostile)).tokens
    assert (token.kind, token.text) == ("string", hostile)
    [token, _] = Statement(quoted_name("a`b; DROP")).tokens
    assert (token.kind, token.text) == ("quoted", "a`b; DROP")
    [token, _] = Statement(literal(hostile)).tokens
    assert token.text == hostile
    assert [literal(value) for value in (None, True, -3, [1, "x"], {"a": 2}, b"\x01")] == [
        "NULL", "TRUE", "(-3)", "ARRAY(1, 'x')", "MAP('a', 2)", "X'01'"
    ]  # fmt: skip
    with pytest.raises(TypeError, match="expected a value"):
        literal(object())
    lengths = (dt.timedelta(days=-1, microseconds=5), dt.timedelta(hours=30), dt.time(1, 2, 3, 40))
    assert [literal(value) for value in lengths] == [
        "MAKE_DT_INTERVAL((-1), 0, 0, CAST('0.000005' AS DECIMAL(6, 6)))",
        "MAKE_DT_INTERVAL(1, 0, 0, CAST('21600.000000' AS DECIMAL(11, 6)))",
        "MAKE_TIME(1, 2, CAST('3.000040' AS DECIMAL(7, 6)))",
    ]
    with pytest.raises(TypeError, match="has a time zone"):
        literal(dt.time(1, tzinfo=dt.timezone.utc))


def test_scalars_of_numpy_are_of_the_type_that_spark_gives_them() -> None:
    np = pytest.importorskip("numpy")
    scalars = (np.bool_(True), np.int8(-1), np.int16(2), np.int32(3), np.int64(4), np.float32(0.5), np.float64(0.25))
    kinds = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")
    for value, kind in zip(scalars, kinds, strict=True):
        text = literal(value)
        assert text.startswith("CAST(")
        assert text.endswith(f" AS {kind})")
        assert str(value.item()).lstrip("-").lower() in text.lower()
    assert literal(np.str_("x")) == "'x'"
    assert literal(np.array([1, 2], np.int32)) == "ARRAY(CAST(1 AS INT), CAST(2 AS INT))"
    for wrong in (np.datetime64("2024-01-01T00:00:00.000000001"), np.complex64(1), np.uint64(1)):
        with pytest.raises(TypeError, match="as a value of Python"):
            literal(wrong)


def test_texts_are_what_spark_reads_in_them() -> None:
    """Texts of the characters that escapes are made of, read back as Spark's ParserUtils.unescapeSQLString does."""
    named = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}

    def meant(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        return chr(int(code, 16 if found[1] else 8)) if code else named.get(found[3], found[3])

    draw = random.Random(24)
    for _ in range(500):
        text = "".join(draw.choices("\0\0\\'\"0127ux\n\tnb%_é", k=draw.randrange(8)))
        written = literal(text)
        assert written[0] == written[-1] == "'"
        read = re.sub(r"\\(?:u([0-9a-fA-F]{4})|([01][0-7]{2})|(.))", meant, written[1:-1], flags=re.DOTALL)
        assert read == text, written


def test_every_statement_has_a_class_that_is_used() -> None:
    seen = {type(parsed(text)).__name__ for text, _ in STATEMENTS}
    changes = [found for text, _ in STATEMENTS if isinstance(found := parsed(text), s.Alter | s.AlterView)]
    actions = {type(change.action).__name__ for change in changes}
    parts = {"AlterColumn", "Assignment", "MergeClause", "PartitionTerm", "SortTerm", "ColumnDefinition"}
    assert set(s.__all__) == seen | actions | parts


QUALIFIED = [
    ("t.a = 1 AND db.t.b.c > c.db.t.d AND e", None, "target.a = 1 AND target.b.c > target.d AND e"),
    ("x.a = t.b AND EXISTS (SELECT 1 FROM s WHERE s.a = x.a AND b = 2)", "x",
     "target.a = t.b AND EXISTS (SELECT 1 FROM s WHERE s.a = target.a AND b = 2)"),
    ("a IN (SELECT a FROM t WHERE t.a > 1) AND t.b", None, "target.a IN (SELECT a FROM t WHERE t.a > 1) AND target.b"),
    ("exists(arr, a -> a > t.a) AND x.b['t.a']", None, "exists(arr, a -> a > target.a) AND x.b['t.a']"),
    ("CASE WHEN t.a THEN t.`b c`.d END || 't.a' -- t.a", None,
     "CASE WHEN target.a THEN target.`b c`.d END || 't.a' -- t.a"),
    ("count(a) + b[0].c + struct(a AS b).b + f(k => ts)", None,
     "count(target.a) + target.b[0].c + struct(target.a AS b).b + f(k => target.ts)"),
    ("extract(year FROM ts) = 1 AND ts > current_date - INTERVAL 1 DAY", None,
     "extract(year FROM target.ts) = 1 AND target.ts > current_date - INTERVAL 1 DAY"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "alias", "expected"), QUALIFIED, ids=[text[:50] for text, *_ in QUALIFIED])
def test_columns_of_conditions_are_called_after_their_tables(text: str, alias: str | None, expected: str) -> None:
    statement, piece = Statement(text), Piece(0, len(text))
    side = Side.of(Name(("c", "db", "t"), 0, 0), alias, "target", ["a", "b", "ts"])
    side = replace(side, columns=side.known)
    assert edited(text, requalified(statement, piece, [side])) == expected


def test_a_subquery_must_not_hide_the_table() -> None:
    text = "EXISTS (SELECT 1 FROM k.target WHERE a = t.a)"
    side = Side.of(Name(("t",), 0, 0), None, "target")
    with pytest.raises(UnsupportedFeatureError, match="line 1, column 1: a subquery has a table"):
        requalified(Statement(text), Piece(0, len(text)), [side])


#: Fields of structs that are called as the changed text calls tables: of the table, of the source, of both, of neither.
STRUCTS = [
    ("target.id = 1", ["target"], [], "target.target.id = 1"),
    ("TARGET.id = s.target.id", ["Target"], ["x"], "target.TARGET.id = source.target.id"),
    ("source.a.b = t.source.b", ["source"], ["x"], "target.source.a.b = target.source.b"),
    ("source.a = t.id", ["id"], ["source"], "source.source.a = target.id"),
    ("target = t.target", ["target"], [], "target = target.target"),
    ("EXISTS (SELECT 1 FROM u WHERE source.a = t.a)", ["a"], ["b"], "WHERE source.a = target.a)"),
    ("target.id = 1", ["target"], ["target"], "line 1, column 1: 'target' may be a column of several tables"),
    ("t.id = source.id", ["id"], ["id"], "line 1, column 8: 'source' is no table, alias or column"),
    ("target.id = 1", ["id"], ["id"], "line 1, column 1: 'target' is no table, alias or column"),
    ("t.a IN (SELECT target.b FROM u)", ["target"], [], "line 1, column 16: 'target' may be a column of several"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "mine", "others", "expected"), STRUCTS, ids=[text for text, *_ in STRUCTS])
def test_fields_of_structs_are_told_from_tables(text: str, mine: list[str], others: list[str], expected: str) -> None:
    sides = [Side.of(Name(("t",), 0, 0), None, "target", mine), Side.of(None, "s", "source", others)]
    try:
        found = edited(text, requalified(Statement(text), Piece(0, len(text)), sides))
    except InvalidArgumentError as error:
        found = str(error)
    assert expected in found
