"""Tables whose files lie where a location provider says: executors ask it too, for encrypted tables as for others."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import icefield as ice
from icefield.encryption import KeyFile

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ice_spark = pytest.importorskip("icefield.spark")

MODULE = """
class Elsewhere:
    def __init__(self, table_location, table_properties):
        self.folder = table_properties["my.folder"]

    def new_data_location(self, data_file_name, partition_key=None):
        parts = [] if partition_key is None else [partition_key.to_path()]
        return "/".join([self.folder, *parts, data_file_name])
"""


@pytest.fixture(scope="module")
def installed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Send a package with a provider to the executors, as docs/writing.md says."""
    packed = tmp_path_factory.mktemp("packages") / "elsewhere.zip"
    with zipfile.ZipFile(packed, "w") as into:
        into.writestr("elsewhere.py", MODULE)
        into.writestr("elsewhere-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: elsewhere\nVersion: 1\n")
        into.writestr(
            "elsewhere-1.dist-info/entry_points.txt",
            "[icefield.location_providers]\nelsewhere = elsewhere:Elsewhere\n",
        )
    spark.sparkContext.addPyFile(str(packed))


@pytest.mark.parametrize("encrypted", [False, True])
def test_executors_ask_the_provider(spark: SparkSession, tmp_path: Path, installed: None, encrypted: bool) -> None:
    folder, properties, options = tmp_path / "elsewhere", {"format-version": "3"}, {}
    if encrypted:
        key_file = tmp_path / "keys.json"
        KeyFile.create(key_file, "mine")
        options = {"encryption.kms-type": "file", "encryption.kms.key-file": str(key_file)}
        properties["encryption.key-id"] = "mine"
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"), **options)
    catalog.create_namespace("db")
    rows = spark.range(40).selectExpr("id", "cast(id AS STRING) AS s", "cast(id % 2 AS INT) AS half").repartition(2)
    properties |= {"write.location-provider.impl": "elsewhere", "my.folder": str(folder)}
    table = catalog.create_table("db.t", ice_spark.schema_of(rows), partition_by=["half"], properties=properties)
    ice_spark.append(rows, table)
    ice_spark.update(spark, table, {"s": "concat(s, '!')"}, "id % 10 = 1", mode="merge-on-read")
    ice_spark.delete(spark, table, "id + 0 = 2", mode="copy-on-write")
    merge = ice_spark.merge(rows.selectExpr("id + 39 AS id", "'new' AS s", "half"), table, "id")
    done = merge.when_matched_update_all().when_not_matched_insert_all().execute()
    assert (done.rows_updated, done.rows_inserted) == (1, 39)
    ice_spark.compact(spark, table, options={"rewrite-all": "true"})
    found = table.refresh().scan("id < 41").to_arrow().sort_by("id").to_pydict()
    assert found["id"] == [0, 1, *range(3, 41)]
    assert (found["s"][1], found["s"][-2:]) == ("1!", ["new", "new"])
    assert ice_spark.read(spark, table).count() == 78
    paths = {path.removeprefix("file://") for path in table.inspect.all_files()["file_path"].to_pylist()}
    # Nothing is left of what did not become part of the table.
    assert {str(path) for path in folder.rglob("*") if path.is_file()} == paths
    starts = {Path(path).read_bytes()[:4] for path in paths if path.endswith(".parquet")}
    assert starts == ({b"PARE"} if encrypted else {b"PAR1"})

    def fail(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        raise RuntimeError("this task fails")

    failing = rows.coalesce(1).mapInArrow(fail, rows.schema)
    with pytest.raises(Exception, match="this task fails"):
        ice_spark.append(failing, table, distribution="none")
    assert {str(path) for path in folder.rglob("*") if path.is_file()} == paths, "the task deletes its own files"
