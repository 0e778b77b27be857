"""Event logs of Spark, which many people may read, have no credential in them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

HUSH = "hush-4711"

#: Every way to Spark, with credentials of the storage among the properties of the catalog.
PROGRAM = f"""
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import icefield as ice
import icefield.spark as ice_spark

folder = Path(sys.argv[1])
secrets = {{
    "s3.access-key-id": "AKIA{HUSH}",
    "s3.secret-access-key": "{HUSH}",
    "s3.session-token": "{HUSH}",
    "adls.account-key": "{HUSH}",
    "gcs.oauth2.token": "{HUSH}",
}}
options = {{"uri": f"sqlite:///{{folder}}/catalog.db", "warehouse": str(folder), **secrets}}
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false")
    .config("spark.eventLog.enabled", "true")
    .config("spark.eventLog.dir", f"file://{{folder}}/events")
    .config("spark.eventLog.compress", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .getOrCreate()
)
catalog = ice.load_catalog("c", **options)
catalog.create_namespace("n")
df = spark.range(10).selectExpr("id", "concat('row ', id) AS name")
table = catalog.create_table("n.t", df.toArrow().schema)
ice_spark.append(df, table)
ice_spark.delete(spark, table, "id % 5 = 1")
ice_spark.merge(df.where("id > 7"), table, "id").when_matched_update_all().execute()
ice_spark.read(spark, table, native=False).count()
df.write.format("icefield").options(catalog="c", **options).mode("append").save("n.t")
spark.read.format("icefield").options(catalog="c", **options).load("n.t").groupBy("name").count().collect()
session = ice_spark.session(spark, {{"c": catalog}})
session.sql("UPDATE c.n.t SET name = upper(name) WHERE id > 3")
print(session.sql("SELECT * FROM c.n.t").count())
spark.stop()
"""


def test_event_logs_have_no_credentials(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split()[-1] == "18"
    logs = [path for path in (tmp_path / "events").rglob("*") if path.is_file() and not path.name.startswith(".")]
    lines = [line for path in logs for line in path.read_text(encoding="utf-8").splitlines()]
    events = [json.loads(line)["Event"] for line in lines]
    assert events.count("SparkListenerJobEnd") >= 6
    assert [line[:300] for line in lines if HUSH in line] == []
    # Nor has what Spark printed.
    assert HUSH not in done.stdout + done.stderr
