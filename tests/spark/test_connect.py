"""A session of Spark Connect, in a process of its own beside a server that it starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("grpc")

SCRIPT = """
import os

import icefield as ice, icefield.spark as ice_spark
from pyspark.sql import SparkSession

# The server and its workers are in folders of their own.
folder = os.getcwd()
options = {"catalog": "c", "uri": f"sqlite:///{folder}/c.db", "warehouse": f"{folder}/wh"}
catalog = ice.load_catalog("c", uri=options["uri"], warehouse=options["warehouse"])
catalog.create_namespace("a")
spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert not hasattr(spark, "_jsparkSession")
spark.conf.set("spark.sql.shuffle.partitions", "2")
df = spark.range(10).selectExpr("id", "cast(id AS STRING) AS s")
table = catalog.create_table("a.t", ice_spark.schema_of(df))
for _ in range(2):
    ice_spark.append(df, table, idempotency_key="once")
assert table.scan().count() == 10
assert ice_spark.read(spark, table, filter="id > 5").count() == 4
ice_spark.register(spark)
assert spark.sql("SELECT icefield_bucket(4, id) FROM {t}", t=ice_spark.read(spark, table)).count() == 10
df.write.format("icefield").options(**options).mode("append").save("a.t")
assert spark.read.format("icefield").options(**options).load("a.t").count() == 20
table.refresh()
assert ice_spark.read_inspect(spark, table, "snapshots").count() == 2
assert ice_spark.changes(spark, table).count() == 20
assert dict(ice_spark.explain(spark, table).counts) == {"Spark Connect": len(table.scan().plan_files())}
# The server's tasks write; conditions are Spark's alone.
assert ice_spark.delete(spark, table, "id + 0 = 9").rows_removed == 2
assert ice_spark.delete(spark, table, ice.expressions.EqualTo("id", 8)).rows_removed == 2
assert ice_spark.update(spark, table, {"s": "concat(s, '!')"}, "id < 3").rows_added == 6
merge = ice_spark.merge(df.where("id = 3 OR id = 9"), table, "id").when_matched_delete().when_not_matched_insert_all()
done = merge.execute()
assert (done.rows_deleted, done.rows_inserted) == (2, 1)
assert ice_spark.write(df, table, "overwrite", filter="id < 5").rows_removed == 8
assert table.refresh().scan().count() == 17
try:
    ice_spark.once(df, 0)
except ice.InvalidArgumentError as error:
    assert "Spark Connect" in str(error), error


def fail(batches):
    yield from batches
    raise RuntimeError("this task fails")


failing = spark.range(0, 100, 1, 2).selectExpr("id", "'x' AS s").mapInArrow(fail, "id BIGINT, s STRING")
try:
    ice_spark.append(failing, table)
except Exception as error:
    assert "this task fails" in str(error), error
else:
    raise AssertionError("the append did not fail")
named = set(table.refresh().inspect.all_files()["file_path"].to_pylist())
assert {path for path, _ in table.storage.list(f"{table.location()}/data")} == named
assert spark.getTags() == set()

# SQL, of which the client parses what Spark's server does not.
session = ice_spark.session(spark, {"c": catalog})


def rows(text, args=None):
    return sorted(tuple(row) for row in session.sql(text, args).collect())


for text in (
    "CREATE TABLE c.a.people (id BIGINT NOT NULL, name STRING, home STRUCT<city: STRING>, born DATE) "
    "PARTITIONED BY (bucket(2, id)) TBLPROPERTIES ('format-version' = '3')",
    "INSERT INTO c.a.people SELECT id, concat('n', id), named_struct('city', 'x'), DATE'2000-01-01' FROM range(4)",
    "ALTER TABLE c.a.people ADD COLUMN age INT DEFAULT 7",
    "ALTER TABLE c.a.people CREATE TAG first",
    "UPDATE c.a.people SET name = upper(name), home.city = 'y' WHERE id IN (SELECT max(id) FROM c.a.people)",
    "DELETE FROM c.a.people AS p WHERE p.id = 0 AND length(p.name) = 2",
    "CREATE TEMPORARY VIEW news AS SELECT id + 2 AS id, 'new' AS name FROM range(3)",
    "MERGE INTO c.a.people t USING news s ON t.id = s.id WHEN MATCHED AND s.id = 2 THEN DELETE "
    "WHEN MATCHED THEN UPDATE SET name = s.name WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, s.name)",
):
    assert (session.sql(text).columns, session.sql("SELECT 1").count()) == ([], 1), text
assert rows("SELECT id, name, home.city, age FROM c.a.people ORDER BY id") == [
    (1, "n1", "x", 7), (3, "new", "y", 7), (4, "new", None, 7)
]
# The frames of a session can be used together, and later.
before = session.sql("SELECT p.id FROM c.a.people FOR VERSION AS OF 'first' p")
joined = session.sql("SELECT * FROM c.a.people p JOIN news n USING (id) WHERE p.id > :least", {"least": 3})
assert rows("SELECT count(*) FROM c.a.people.tag_first") == [(4,)]
assert rows("SELECT count(*) FROM c.a.people.snapshots") == [(4,)]
session.sql("INSERT OVERWRITE c.a.people (id, name) VALUES (9, 'last')")
assert rows("SELECT id, age FROM c.a.people") == [(9, 7)]
assert (before.count(), joined.count()) == (4, 1)
assert session.sql("SELECT id FROM c.a.people").union(before).count() == 5
assert ("a", "people", False) in rows("SHOW TABLES IN c.a")
assert ("age", "int", None) in rows("DESCRIBE TABLE c.a.people")
session.sql("CALL c.system.rollback_to_snapshot(table => 'a.people', snapshot_id => "
            + str(catalog.load_table("a.people").snapshot_by_name("first").snapshot_id) + ")")
assert rows("SELECT count(DISTINCT name) FROM c.a.people") == [(4,)]
session.sql("CREATE OR REPLACE TABLE c.a.copy AS SELECT id, name FROM c.a.people")
session.sql("USE c.a")
assert rows("SELECT current_catalog(), count(*) FROM copy") == [("c", 4)]
for text, message in (
    ("SELECT no FROM copy", "UNRESOLVED_COLUMN"),
    ("SELECT * FROM nothing", "line 1, column 15: "),
    ("UPDATE copy SET id = 'x'", "id"),
    ("ALTER TABLE copy DO SOMETHING", "line 1, column 18: "),
):
    try:
        session.sql(text)
    except Exception as error:
        assert message in str(error), error
    else:
        raise AssertionError(text)
session.sql("DROP TABLE copy PURGE")
session.close()
assert [view.name for view in spark.catalog.listTables()] == ["news"]
spark.stop()
print("all of it")
"""


def test_reads_appends_changes_and_sql(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.endswith("all of it\n"), done.stdout + done.stderr
