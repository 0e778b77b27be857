"""Spark's workers: they run the Python of the script, and a task leaves them ready for the next one."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("pyspark")

from icefield.spark.sessions import workers

#: What reading imports of the room of sessions; and of that of changes nothing.
SESSIONS = (".audit", ".failures", ".packed", ".session", ".workers")

SCRIPT = """
import icefield as ice, icefield.spark as ice_spark
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
catalog = ice.load_catalog("c", uri="sqlite:///c.db", warehouse="wh")
catalog.create_namespace("a")
df = spark.range(3)
table = catalog.create_table("a.t", ice_spark.schema_of(df))
options = {"catalog": "c", "uri": "sqlite:///c.db", "warehouse": "wh"}
# Before anything else of ours has run in the session: nothing has been registered.
assert spark.read.format("icefield").options(**options).load("a.t").count() == 0
ice_spark.append(df, table)
assert ice_spark.read(spark, table, native=False).count() == 3
ice_spark.register(spark)
assert spark.sql("SELECT icefield_bucket(4, id) FROM {t}", t=ice_spark.read(spark, table)).count() == 3
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


def test_threads_share_the_driver_s_python(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first thread to leave does not take the setting from the others; the last one undoes it."""
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    context = spark.sparkContext
    monkeypatch.setattr(context, "pythonExec", "python3")
    with workers.drivers_python():
        entered, leave = threading.Event(), threading.Event()

        def other() -> str:
            with workers.drivers_python():
                entered.set()
                leave.wait(60)
                return str(context.pythonExec)

        with ThreadPoolExecutor(1) as pool:
            seen = pool.submit(other)
            assert entered.wait(60)
            with workers.drivers_python():
                pass
            assert context.pythonExec == sys.executable
            leave.set()
            assert seen.result() == sys.executable
        assert context.pythonExec == sys.executable
    assert context.pythonExec == "python3"
    # An interpreter that somebody has chosen is kept.
    monkeypatch.setattr(context, "pythonExec", "/opt/python")
    with workers.drivers_python():
        assert context.pythonExec == "/opt/python"
    assert context.pythonExec == "/opt/python"


@pytest.mark.parametrize(
    ("environment", "python", "expected"),
    [
        ({}, "/usr/bin/python3", sys.executable),
        ({}, None, sys.executable),
        ({}, str(Path(sys.executable).parent / "python3"), None),
        ({"PYSPARK_PYTHON": "/opt/python"}, "/usr/bin/python3", None),
        ({"PYSPARK_DRIVER_PYTHON": "/opt/python"}, "/usr/bin/python3", "/opt/python"),
        ({"PYSPARK_GATEWAY_PORT": "1"}, "/usr/bin/python3", None),
    ],
)
def test_which_python_looks_for_data_sources(
    environment: dict[str, str], python: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(workers.SparkContext, "_gateway", None)
    monkeypatch.setattr(workers.shutil, "which", lambda _name: python)
    workers.name_drivers_python()
    assert os.environ.get("PYSPARK_DRIVER_PYTHON") == expected


def test_the_module_that_spark_looks_for_is_light(tmp_path: Path) -> None:
    """Every session that uses any Python source imports it; what is missing is said when the source is used."""
    (tmp_path / "pyarrow").mkdir()
    (tmp_path / "pyarrow" / "__init__.py").write_text("raise ModuleNotFoundError('no pyarrow', name='pyarrow')")
    script = """
import sys
import pyspark.sql.datasource
before = set(sys.modules)
import pyspark_icefield
print(sorted(name for name in set(sys.modules) - before if name.partition(".")[0] in ("icefield", "pyarrow", "pandas")))
source = pyspark_icefield.DefaultSource
print(source.name(), issubclass(source, pyspark.sql.datasource.DataSource))
try:
    print(type(source({"path": "a.t"})))
except ImportError as error:
    print(error)
"""
    paths = {"missing": [str(tmp_path), *sys.path], "there": sys.path}
    found = {}
    for name, path in paths.items():
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(one for one in path if one)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found[name] = done.stdout.splitlines()
    assert found["missing"][:2] == found["there"][:2] == ["[]", "icefield True"]
    assert found["there"][2] == "<class 'icefield.spark.source.Source'>"
    assert found["missing"][2] == "pyarrow is required but not installed: pip install pyarrow"


def test_what_a_worker_imports() -> None:
    """Workers start again and again, and imported all of the package for whatever they did."""
    script = """
import sys
import icefield.spark.reads.parts
print(sorted(name for name in sys.modules if name.startswith(("icefield.spark.changing", "icefield.spark.s"))))
print("pyarrow.compute" in sys.modules, "sqlglot" in sys.modules)
import icefield.spark as ice_spark
missing = [name for name in ice_spark.__all__ if not hasattr(ice_spark, name) or name not in dir(ice_spark)]
print(missing)
print(hasattr(ice_spark, "nosuch"))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(one for one in sys.path if one)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    sessions = [f"icefield.spark.sessions{name}" for name in ("", *SESSIONS)]
    assert done.stdout.splitlines() == [str(sessions), "False False", "[]", "False"], done.stderr


def test_archives_of_spark_are_not_read_again_before_every_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark has Python's importers look for changes before each task; those of its own archives are dropped."""
    from icefield.spark.sessions.workers import begin_task

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
