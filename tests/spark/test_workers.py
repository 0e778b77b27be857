"""Spark's workers: they run the Python of the script, and a task leaves them ready for the next one."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import zipfile
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


def test_archives_of_spark_are_not_read_again_before_every_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has Python's importers look for changes before each task; those of its own archives are dropped."""
    from icefield.spark.workers import begin_task

    places = {name: tmp_path / name for name in ("spark/python/lib/pyspark.zip", "files/one.jar", "files/mine.zip")}
    for number, place in enumerate(places.values()):
        place.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr(f"kept_in_archive_{number}/__init__.py", "")
            archive.writestr(f"kept_in_archive_{number}/inner.py", f"value = {number}")
            archive.writestr(f"kept_in_archive_{number}/later.py", f"value = {number}")
        monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("ICEFIELD_THREADS", "2")

    def known() -> set[str]:
        return {name for name, place in places.items() if any(map(str(place).__eq__, sys.path_importer_cache))}

    for number in range(len(places)):
        inner = importlib.import_module(f"kept_in_archive_{number}.inner")
        assert inner.value == number
    assert known() == set(places)
    begin_task()
    assert known() == {"files/mine.zip"}
    assert not any(path.startswith(str(places["files/one.jar"])) for path in sys.path_importer_cache)
    assert os.environ["ICEFIELD_THREADS"] == "2"
    importlib.invalidate_caches()
    for number in range(len(places)):
        later = importlib.import_module(f"kept_in_archive_{number}.later")
        assert later.value == number
