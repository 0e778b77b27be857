"""Mistakes with catalogs, storage and ORC files: the class of the error, and the words that help."""

import datetime as dt
import os

import pyarrow as pa
import pytest
from test_mistakes import ROWS, told

import icefield as ice
from icefield.errors import (
    CorruptDataError,
    InvalidArgumentError,
    NamespaceAlreadyExistsError,
    NoSuchCatalogError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)


def test_a_warehouse_that_is_a_file(tmp_path):
    (tmp_path / "warehouse").write_text("no folder")
    catalog = ice.load_catalog("file", type="in-memory", warehouse=str(tmp_path / "warehouse"))
    catalog.create_namespace("db")
    with pytest.raises(StorageError) as error:
        catalog.create_table("db.t", ROWS)
    told(error, "cannot write", "warehouse is a file, not a folder")
    assert not isinstance(error.value, FileNotFoundError)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"PAR1", "a Parquet file (PAR1)"),
        (b"Obj\x01", "an Avro file"),
        (b"\x1f\x8b\x08\x00", "gzip data"),
        (b"PK\x03\x04", "a zip archive"),
    ],
)
@pytest.mark.parametrize("tail", [b"\x00" * 9, b"\xff" * 9, b"\x08\x01" * 40 + b"PAR1"])
def test_files_that_are_not_orc(tmp_path, head, words, tail):
    (tmp_path / "file").write_bytes(head + b"\x00" * 40 + tail)
    with pytest.raises(CorruptDataError) as error:
        ice.orc.read_table(str(tmp_path / "file"))
    told(error, words, "not an ORC file")


def test_wrong_keys_of_orc(tmp_path):
    path = str(tmp_path / "secret.orc")
    options = {"encrypt": {"master": ["name"]}, "keys": {"master": b"0" * 16}}
    ice.orc.write_table(pa.table({"id": [1], "name": ["a"]}), path, **options)
    wrong = {"master": b"1" * 16}
    with pytest.raises(CorruptDataError, match="its key may be wrong"):
        ice.orc.read_table(path, keys=wrong)
    for use_threads in (False, True):
        file = ice.orc.ORCFile(path, keys=wrong)
        with pytest.raises(OSError, match="its key may be wrong"):
            file.to_reader(use_threads=use_threads).read_all()


@pytest.mark.parametrize(
    ("warehouse", "words"),
    [
        ("s3://bucket/x", "set s3.access-key-id and s3.secret-access-key (or AWS_ACCESS_KEY_ID"),
        ("abfss://c@account.dfs.core.windows.net/x", "set adls.account-key, adls.sas-token"),
    ],
)
def test_stores_without_credentials(warehouse, words, monkeypatch):
    for name in [name for name in os.environ if name.startswith(("AWS_", "AZURE_"))]:
        monkeypatch.delenv(name)
    catalog = ice.load_catalog("remote", type="in-memory", warehouse=warehouse)
    catalog.create_namespace("db")
    with pytest.raises(StorageError) as error:
        catalog.create_table("db.t", ROWS)
    told(error, words)


def test_catalogs_opened_wrongly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for uri, words in {
        "hive://x": ("a Hive metastore", "sqlite:///folder/catalog.db"),
        "wh/catalog.db": ("is a path, not a URL", "use sqlite:///wh/catalog.db"),
        "sqlite://wh/c.db": ("names a host", "use sqlite:///wh/c.db"),
    }.items():
        with pytest.raises((UnsupportedFeatureError, InvalidArgumentError)) as error:
            ice.load_catalog("c", uri=uri)
        told(error, *words)
    with pytest.raises(NoSuchCatalogError) as error:
        ice.load_catalog("nosuch")
    told(error, "'nosuch' is not configured", "set 'uri' or 'type'", "configured: ")
    uri = "sqlite:///wh/c.db"
    with ice.load_catalog("mine", uri=uri, warehouse="wh") as mine, ice.load_catalog("other", uri=uri) as other:
        mine.create_namespace("db")
        folder = mine.create_table("db.t", ROWS).location()
        with pytest.raises(NamespaceAlreadyExistsError, match="db already exists; create_namespace_if_not_exists"):
            mine.create_namespace("db")
        with pytest.raises(TableAlreadyExistsError, match=r"db\.t already exists; load_table opens it"):
            mine.create_table("db.t", ROWS)
        with pytest.raises(NoSuchTableError) as error:
            other.load_table("db.t")
        told(error, "does not exist in catalog other", "holds the catalog 'mine': open it under that name")
        with pytest.warns(UserWarning, match="catalog other is empty; this database holds the catalog 'mine'"):
            other.list_namespaces()
        with pytest.raises(InvalidArgumentError) as error:
            ice.Table.from_metadata(folder)
        told(error, "is a folder: pass a metadata file; the newest one is ", "00000-")


def test_timestamps_of_orc_that_nanoseconds_do_not_have(tmp_path):
    path = tmp_path / "a.orc"
    ice.orc.write_table(pa.table({"t": pa.array([dt.datetime(1, 1, 1)], pa.timestamp("us"))}), path)  # noqa: DTZ001
    with pytest.raises(InvalidArgumentError) as error:
        ice.orc.read_table(path, timestamp_unit="ns")
    told(error, "a.orc", "column 1", "coarser timestamp_unit", "out_of_range")
