"""What statements that write do with the rows that they are given, and beside other writers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice
import icefield.spark as ice_spark
from icefield.spark.sql.running import Run
from icefield.spark.sql.statements import defining

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.spark.sql import SqlSession


@pytest.fixture
def session(spark: SparkSession, catalog: ice.Catalog) -> Iterator[SqlSession]:
    with ice_spark.session(spark, {"c": catalog}) as made:
        made.sql("USE c.db")
        yield made


@pytest.fixture
def setting(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    names: list[str] = []

    def set_(name: str, value: str) -> None:
        names.append(name)
        spark.conf.set(name, value)

    yield set_
    for name in names:
        spark.conf.unset(name)


def rows(session: SqlSession, text: str) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in session.sql(text).collect()), key=str)


#: Where a struct is inside of a column: its type, a value of it, and what reads the struct again.
PLACES = [
    ("{}", "{}", "{}"),
    ("STRUCT<k: {}>", "named_struct('k', {})", "{}.k"),
    ("ARRAY<{}>", "array({})", "{}[0]"),
    ("MAP<STRING, {}>", "map('x', {})", "{}['x']"),
    ("ARRAY<STRUCT<k: MAP<INT, {}>>>", "array(named_struct('k', map(1, {})))", "{}[0].k[1]"),
]


def test_fields_of_structs_are_found_by_name_where_columns_are(session: SqlSession) -> None:
    draw = random.Random(1)
    columns = ", ".join(
        f"c{n} {kind.format('STRUCT<a: INT, b: BIGINT, c: INT>')}" for n, (kind, *_) in enumerate(PLACES)
    )
    session.sql(f"CREATE TABLE s ({columns})")
    for into in ("BY NAME", "(" + ", ".join(f"c{n}" for n in range(len(PLACES))) + ")", ""):
        given = []
        for n, (_, value, _) in enumerate(PLACES):
            fields = [("a", 1), ("B", 2), ("c", 3)]
            if into:
                draw.shuffle(fields)
            else:
                fields = [(f"z{value}", value) for _, value in fields]
            struct = "named_struct(" + ", ".join(f"'{name}', {number}" for name, number in fields) + ")"
            given.append(f"{value.format(struct)} AS c{n}")
        session.sql(f"INSERT OVERWRITE s {into} SELECT {', '.join(given)}")
        for n, (*_, read) in enumerate(PLACES):
            struct = read.format(f"c{n}")
            assert rows(session, f"SELECT {struct}.a, {struct}.b, {struct}.c FROM s") == [(1, 2, 3)], (into, n)


def test_values_in_nested_types_fit_or_fail_whatever_ansi_is(
    session: SqlSession, setting: Callable[[str, str], None]
) -> None:
    setting("spark.sql.ansi.enabled", "false")
    session.sql("CREATE TABLE n (l ARRAY<INT>, m MAP<STRING, INT>, s STRUCT<a: INT, d: DECIMAL(5, 2)>)")
    session.sql("INSERT INTO n VALUES (array(7L, NULL), map('k', 8), struct(9S, 1.5))")
    session.sql("INSERT INTO n VALUES (array(), NULL, struct(NULL, NULL))")
    before = rows(session, "SELECT l, m['k'], s.a, cast(s.d AS string) FROM n")
    assert before == [([7, None], 8, 9, "1.50"), ([], None, None, None)]
    for wrong, message in (
        ("VALUES (array(3000000000), NULL, NULL)", "CAST_OVERFLOW"),
        ("VALUES (NULL, map('k', 3000000000), NULL)", "CAST_OVERFLOW"),
        ("VALUES (NULL, NULL, struct(1, 12345.5))", "NUMERIC_VALUE_OUT_OF_RANGE"),
        ("VALUES (array('x'), NULL, NULL)", "column 'l.element': string is not stored as int"),
        ("VALUES (NULL, map('k', true), NULL)", "column 'm.value': boolean is not stored as int"),
        ("VALUES (NULL, NULL, struct(1))", "column 's'"),
        ("VALUES (struct(1), NULL, NULL)", "column 'l'"),
        ("BY NAME SELECT named_struct('a', 1) AS s", "column 's'"),
        ("BY NAME SELECT named_struct('a', 1, 'd', 1, 'e', 2) AS s", "column 's'"),
        ("(s) SELECT named_struct('a', 1, 'x', 1)", "column 's'"),
    ):
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the message says which
            session.sql(f"INSERT INTO n {wrong}")
        assert message in str(caught.value), wrong
    assert rows(session, "SELECT l, m['k'], s.a, cast(s.d AS string) FROM n") == before


@pytest.mark.parametrize("partitioning", ["", "PARTITIONED BY (p)", "PARTITIONED BY (p, q)"])
def test_dynamic_overwrites_replace_the_partitions_of_their_rows(
    session: SqlSession, setting: Callable[[str, str], None], partitioning: str
) -> None:
    setting("spark.sql.sources.partitionOverwriteMode", "Dynamic")
    session.sql(f"CREATE TABLE d (id INT, p STRING, q STRING) {partitioning}")
    old = [(1, "a", "x"), (2, "a", "y"), (3, "b", "x")]
    session.sql("INSERT INTO d VALUES (1, 'a', 'x'), (2, 'a', 'y'), (3, 'b', 'x')")
    clauses = {"": "id, p, q"}
    if partitioning:
        clauses["PARTITION (p = 'a')"] = "id, q"
    if ", q" in partitioning:
        clauses["PARTITION (p = 'a', q = 'x')"] = "id"
    for clause, columns in clauses.items():
        session.sql(f"INSERT OVERWRITE d {clause} SELECT {columns} FROM d WHERE id > 9")
        assert rows(session, "SELECT * FROM d") == old, clause
    session.sql("INSERT OVERWRITE d SELECT 4, 'a', 'x'")
    kept = {"": [], "PARTITIONED BY (p)": old[2:], "PARTITIONED BY (p, q)": old[1:]}[partitioning]
    assert rows(session, "SELECT * FROM d") == [*kept, (4, "a", "x")]


#: Changes of `t` by what they read of it, and the same by other rows.
READING = [
    ("INSERT OVERWRITE t SELECT id + 10, p FROM {}", "static"),
    ("INSERT OVERWRITE t SELECT id + 10, p FROM {}", "dynamic"),
    ("INSERT OVERWRITE t PARTITION (p = 'a') SELECT id + 10 FROM {}", "static"),
    ("INSERT INTO t REPLACE WHERE id < 100 SELECT id + 10, p FROM {}", "static"),
    ("DELETE FROM t WHERE id < (SELECT max(id) FROM {})", "static"),
    ("UPDATE t SET id = (SELECT max(id) + 10 FROM {})", "static"),
    (
        "MERGE INTO t USING (SELECT DISTINCT id FROM {}) k ON t.id = k.id WHEN MATCHED THEN UPDATE SET id = k.id + 9",
        "static",
    ),
]


@pytest.mark.parametrize(("text", "mode"), READING, ids=[f"{text[:22]}-{mode}" for text, mode in READING])
def test_rows_that_others_add_to_a_table_that_is_read_and_changed_are_not_lost(
    session: SqlSession,
    catalog: ice.Catalog,
    setting: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    mode: str,
) -> None:
    setting("spark.sql.sources.partitionOverwriteMode", mode)
    for name in ("t", "other"):
        session.sql(f"CREATE TABLE {name} (id BIGINT, p STRING) PARTITIONED BY (p)")
        session.sql(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'a')")
    as_read = Run.as_read

    def beside_another(run: Run, table: ice.Table) -> AbstractContextManager[None]:
        """Let another writer in between what a statement has read and what it changes."""
        added = catalog.load_table("db.t")
        added.append(pa.table({"id": [77], "p": ["a"]}, added.schema().as_arrow()))
        return as_read(run, table)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "as_read", beside_another)
        with pytest.raises(ice.errors.ValidationException):
            session.sql(text.format("t"))
        assert rows(session, "SELECT id FROM t") == [(1,), (2,), (77,)]
        session.sql(text.format("other"))
    session.sql(text.format("t"))


def test_branches_are_written_to_if_they_exist(session: SqlSession, setting: Callable[[str, str], None]) -> None:
    session.sql("CREATE TABLE b (id INT) TBLPROPERTIES ('write.wap.enabled' = 'true')")
    session.sql("INSERT INTO b.branch_main VALUES (1)")
    session.sql("ALTER TABLE b CREATE BRANCH side")
    session.sql("ALTER TABLE b CREATE TAG label")
    changes = ("INSERT INTO {} VALUES (9)", "INSERT OVERWRITE {} VALUES (9)", "DELETE FROM {}", "UPDATE {} SET id = 9",
               "TRUNCATE TABLE {}", "MERGE INTO {} USING b AS k ON true WHEN MATCHED THEN DELETE")  # fmt: skip
    for change in changes:
        for part, message in (
            ("branch_nosuch", "there is no branch nosuch"),
            ("branch_label", "label is a tag"),
            ("tag_label", "label is a tag"),
            ("tag_side", "side is a tag, which cannot be written to"),
            ("tag_nosuch", "nosuch is a tag"),
        ):
            with pytest.raises(ice.errors.InvalidArgumentError, match=message):
                session.sql(change.format(f"b.{part}"))
    assert rows(session, "SELECT name FROM b.refs") == [("label",), ("main",), ("side",)]
    session.sql("TRUNCATE TABLE b.branch_side")
    assert rows(session, "SELECT * FROM b.branch_side") == []
    setting("spark.wap.branch", "audit")
    session.sql("TRUNCATE TABLE b")
    assert rows(session, "SELECT * FROM b VERSION AS OF 'audit'") == []
    assert rows(session, "SELECT * FROM b VERSION AS OF 'main'") == [(1,)]


@pytest.mark.parametrize("taken", ["no", "replaced", "written to"])
def test_a_failed_table_of_a_query_is_dropped_unless_it_is_anothers(
    session: SqlSession, catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch, taken: str
) -> None:
    theirs = pa.table({"id": pa.array([5], pa.int32())})

    def failing(*_: object, **__: object) -> None:
        if taken == "replaced":
            catalog.drop_table("db.made")
            catalog.create_table("db.made", theirs.schema)
        if taken != "no":
            catalog.load_table("db.made").append(theirs)
        raise OSError("gone")

    monkeypatch.setattr(defining, "append", failing)
    with pytest.raises(OSError, match="gone"):
        session.sql("CREATE TABLE made AS SELECT 1 AS id")
    assert catalog.table_exists("db.made") == (taken != "no")
    if taken != "no":
        assert rows(session, "SELECT id FROM made") == [(5,)]


def test_properties_that_java_carries_out_are_carried_out(session: SqlSession, catalog: ice.Catalog) -> None:
    session.sql("CREATE TABLE p (id INT) TBLPROPERTIES ('write.wap.enabled' = 'true')")
    for number in (1, 2):
        session.sql(f"INSERT INTO p VALUES ({number})")
    table = catalog.load_table("db.p")
    first, second = (one.snapshot_id for one in table.snapshots())
    table.append(pa.table({"id": pa.array([3], pa.int32())}), snapshot_properties={"wap.id": "w"})
    staged = next(one.snapshot_id for one in table.refresh().snapshots() if one.snapshot_id not in (first, second))
    session.sql(f"ALTER TABLE p SET TBLPROPERTIES ('Current-Snapshot-Id' = {first}, 'own' = 'x')")
    assert rows(session, "SELECT * FROM p") == [(1,)]
    session.sql(f"ALTER TABLE p SET TBLPROPERTIES ('cherry-pick-snapshot-id' = '{staged}')")
    assert rows(session, "SELECT * FROM p") == [(1,), (3,)]
    moved = f"{table.location()}/moved"
    session.sql(f"ALTER TABLE p SET TBLPROPERTIES ('location' = '{moved}')")
    table.refresh()
    assert table.location() == moved
    assert table.properties["own"] == "x"
    before = table.metadata_location
    for properties, message in (
        (f"'current-snapshot-id' = {first}, 'cherry-pick-snapshot-id' = {second}", "their order would decide"),
        ("'current-snapshot-id' = 'x'", "expected the id of a snapshot"),
        *((f"'{name}' = 'x', 'other' = 'y'", f"'{name}' is no property") for name in (
            "uuid", "snapshot-count", "current-schema", "sort-order", "Default-Partition-Spec", "identifier-fields")),
    ):  # fmt: skip
        with pytest.raises(ice.errors.InvalidArgumentError, match=message):
            session.sql(f"ALTER TABLE p SET TBLPROPERTIES ({properties})")
    assert table.refresh().metadata_location == before


def test_orders_in_tasks_leave_the_distribution(session: SqlSession, catalog: ice.Catalog) -> None:
    session.sql("CREATE TABLE o (id INT) TBLPROPERTIES ('write.distribution-mode' = 'range')")
    for order, mode in (
        ("LOCALLY ORDERED BY id", "range"),
        ("DISTRIBUTED BY PARTITION LOCALLY ORDERED BY id DESC", "hash"),
        ("LOCALLY ORDERED BY id", "hash"),
        ("UNORDERED", "none"),
        ("ORDERED BY id", "range"),
    ):
        session.sql(f"ALTER TABLE o WRITE {order}")
        table = catalog.load_table("db.o")
        assert table.properties["write.distribution-mode"] == mode
        assert bool(table.sort_order().fields) == ("ORDERED BY" in order)
