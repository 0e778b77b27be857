"""A script that is started by the path of its Python has workers that find the package."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark")

SCRIPT = """
import icefield as ice, icefield.spark as ice_spark
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
catalog = ice.load_catalog("c", uri="sqlite:///c.db", warehouse="wh")
catalog.create_namespace("a")
df = spark.range(3)
table = catalog.create_table("a.t", ice_spark.schema_of(df))
ice_spark.append(df, table)
assert ice_spark.read(spark, table, native=False).count() == 3
ice_spark.register(spark)
assert spark.sql("SELECT icefield_bucket(4, id) FROM {t}", t=ice_spark.read(spark, table)).count() == 3
options = {"catalog": "c", "uri": "sqlite:///c.db", "warehouse": "wh"}
assert spark.read.format("icefield").options(**options).load("a.t").count() == 3
print("read", spark.sparkContext.pythonExec)
"""


def test_workers_run_in_the_driver_s_python(tmp_path: Path) -> None:
    # What Spark would start otherwise.
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho a Python without icefield >&2\nexit 1\n")
    other.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    environment["PATH"] = f"{other.parent}{os.pathsep}{environment['PATH']}"
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.endswith("read python3\n"), done.stdout + done.stderr
    assert "replaced a statically registered data source" not in done.stderr
