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
spark.stop()
print("all of it")
"""


def test_reads_appends_and_changes(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.endswith("all of it\n"), done.stdout + done.stderr
