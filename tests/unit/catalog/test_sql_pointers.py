"""The SQL catalog's rows: namespaces, names of tables, and the swap that makes a commit visible."""

import json
import os
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog import load_catalog
from icefield.catalog.sql import SqlCatalog, database
from icefield.errors import (
    CommitFailedException,
    InvalidArgumentError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NoSuchViewError,
    StorageError,
    TableAlreadyExistsError,
)


@pytest.fixture(params=["file", "memory"])
def catalog(request, tmp_path):
    uri = "sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/deep/folder/catalog.db"
    with SqlCatalog("test", uri=uri, warehouse=str(tmp_path)) as opened:
        yield opened


def test_namespaces_nest(catalog):
    catalog.create_namespace("a.b.c", {"owner": "me"})
    catalog.create_namespace("a_b")
    assert catalog.list_namespaces() == [("a",), ("a_b",)]
    assert catalog.list_namespaces("a") == [("a", "b")]
    assert catalog.list_namespaces(("a", "b")) == [("a", "b", "c")]
    assert catalog.list_namespaces("a.b.c") == []
    assert catalog.namespace_exists("a.b")
    assert not catalog.namespace_exists("a.c")
    assert catalog.load_namespace_properties("a.b.c") == {"owner": "me"}
    assert catalog.load_namespace_properties("a") == {}


@pytest.mark.parametrize("name", ["a%", "a_", "a\\", "a'b", 'a"b', "ä", "日本", "a b"])
def test_names_are_taken_literally(catalog, name):
    catalog.create_namespace((name,))
    catalog.create_namespace("ax.y")
    assert catalog.list_namespaces((name,)) == []
    catalog.add_pointer((name, "t'1"), "file:/m")
    assert catalog.list_tables((name,)) == [(name, "t'1")]
    assert catalog.load_pointer((name, "t'1")) == "file:/m"


@pytest.mark.parametrize(
    ("there", "other"),
    [("sales", "Sales"), ("sales", "SALES"), ("a_c", "abc"), ("a%c", "abbc"), ("ä", "Ä"), ("a b", "a_b"), ("x", "x_")],
)
def test_names_that_only_resemble_one_another_are_others(catalog, there, other):
    """By every road: databases may compare with wildcards, and without letter case."""
    catalog.create_namespace((there, "below"), {"owner": "me"})
    catalog.add_pointer((there, "below", "t"), "file:/m")
    missing = (NoSuchNamespaceError, NoSuchTableError)
    assert not catalog.namespace_exists((other,))
    assert not catalog.namespace_exists((other, "below"))
    assert not catalog.table_exists((other, "below", "t"))
    for road in (
        lambda: catalog.list_namespaces((other,)),
        lambda: catalog.list_tables((other, "below")),
        lambda: catalog.list_views((other,)),
        lambda: catalog.load_namespace_properties((other, "below")),
        lambda: catalog.update_namespace_properties((other,), updates={"a": "b"}),
        lambda: catalog.drop_namespace((other,)),
        lambda: catalog.create_table((other, "t"), pa.schema([("id", pa.int64())])),
        lambda: catalog.add_pointer((other, "t"), "file:/n"),
        lambda: catalog.rename_pointer((there, "below", "t"), (other, "t")),
        lambda: catalog.remove_pointer((other, "below", "t")),
        lambda: catalog.drop_view((other, "below", "t")),
    ):
        with pytest.raises((*missing, ice.errors.NoSuchViewError)):
            road()
    catalog.create_namespace((other,))
    assert catalog.list_namespaces((other,)) == []
    assert catalog.list_namespaces((there,)) == [(there, "below")]
    catalog.drop_namespace((other,))
    assert catalog.list_tables((there, "below")) == [(there, "below", "t")]


def test_namespace_errors(catalog):
    catalog.create_namespace("a.b")
    with pytest.raises(NamespaceAlreadyExistsError, match=r"a\.b already exists"):
        catalog.create_namespace("a.b")
    catalog.create_namespace_if_not_exists("a.b")
    with pytest.raises(NoSuchNamespaceError, match="namespace x does not exist in catalog test"):
        catalog.drop_namespace("x")
    with pytest.raises(LookupError):
        catalog.load_namespace_properties("x")
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_namespaces("x")
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_tables("x")
    with pytest.raises(NamespaceNotEmptyError, match=r"contains a\.b"):
        catalog.drop_namespace("a")
    catalog.drop_namespace("a.b")
    assert not catalog.namespace_exists("a")
    for wrong in ("a..b", ".", ("a.b",), ("",)):
        with pytest.raises(InvalidArgumentError):
            catalog.create_namespace(wrong)


def test_namespace_properties_change_together(catalog):
    catalog.create_namespace("a", {"x": "1", "y": "2"})
    summary = catalog.update_namespace_properties("a", removals=["x", "z"], updates={"y": "3", "w": "4"})
    assert (summary.removed, summary.updated, summary.missing) == (["x"], ["w", "y"], ["z"])
    assert catalog.load_namespace_properties("a") == {"y": "3", "w": "4"}
    with pytest.raises(InvalidArgumentError, match="both removed and set: y"):
        catalog.update_namespace_properties("a", removals=["y"], updates={"y": "5"})
    assert catalog.load_namespace_properties("a") == {"y": "3", "w": "4"}
    assert catalog.update_namespace_properties("a", "yw").missing == ["yw"]
    assert catalog.update_namespace_properties("a", "y").removed == ["y"]
    with pytest.raises(InvalidArgumentError, match="name of a property, got 5"):
        catalog.update_namespace_properties("a", [5])


def test_a_namespace_property_is_a_text(catalog):
    catalog.create_namespace("a", {"flag": True, "n": 1})
    assert catalog.load_namespace_properties("a") == {"flag": "true", "n": "1"}
    for change in (
        lambda: catalog.create_namespace("b", {"k": None}),
        lambda: catalog.create_namespace("b", {"exists": "false"}),
        lambda: catalog.update_namespace_properties("a", updates={"n": None}),
    ):
        with pytest.raises(InvalidArgumentError, match="property"):
            change()
    assert not catalog.namespace_exists("b")
    assert catalog.load_namespace_properties("a")["n"] == "1"


def test_pointers(catalog):
    catalog.create_namespace("a")
    with pytest.raises(NoSuchNamespaceError):
        catalog.add_pointer("b.t", "m1")
    catalog.add_pointer("a.t", "m1")
    with pytest.raises(TableAlreadyExistsError):
        catalog.add_pointer("a.t", "m2")
    assert catalog.list_tables("a") == [("a", "t")]
    assert catalog.table_exists("a.t")
    with pytest.raises(NamespaceNotEmptyError, match="contains t"):
        catalog.drop_namespace("a")
    catalog.swap_pointer("a.t", "m1", "m2")
    with pytest.raises(CommitFailedException, match="another commit"):
        catalog.swap_pointer("a.t", "m1", "m3")
    assert catalog.load_pointer("a.t") == "m2"
    with pytest.raises(NoSuchTableError):
        catalog.swap_pointer("a.u", "m1", "m3")
    catalog.add_pointer("a.other", "m9")
    with pytest.raises(TableAlreadyExistsError):
        catalog.rename_pointer("a.t", "a.other")
    with pytest.raises(NoSuchNamespaceError):
        catalog.rename_pointer("a.t", "nowhere.t")
    with pytest.raises(NoSuchTableError):
        catalog.rename_pointer("a.gone", "a.new")
    catalog.rename_pointer("a.t", "a.new")
    assert catalog.list_tables("a") == [("a", "new"), ("a", "other")]
    catalog.remove_pointer("a.new")
    with pytest.raises(NoSuchTableError, match=r"table a\.new does not exist in catalog test"):
        catalog.remove_pointer("a.new")


def test_the_catalog_name_is_part_of_every_key(tmp_path):
    uri = f"sqlite:///{tmp_path}/catalog.db"
    one, two = SqlCatalog("one", uri=uri), SqlCatalog("two", uri=uri)
    one.create_namespace("a", {"k": "1"})
    assert not two.namespace_exists("a")
    two.create_namespace("a", {"k": "2"})
    one.add_pointer("a.t", "m1")
    two.add_pointer("a.t", "m2")
    two.swap_pointer("a.t", "m2", "m3")
    assert (one.load_pointer("a.t"), two.load_pointer("a.t")) == ("m1", "m3")
    two.remove_pointer("a.t")
    two.drop_namespace("a")
    assert one.load_namespace_properties("a") == {"k": "1"}


def test_of_many_swaps_each_wins_once(tmp_path):
    uri = f"sqlite:///{tmp_path}/catalog.db"
    SqlCatalog("c", uri=uri).create_namespace("a")
    SqlCatalog("c", uri=uri).add_pointer("a.t", "0")
    start = threading.Barrier(4)

    def work(_):
        catalog = SqlCatalog("c", uri=uri)
        start.wait()
        won = 0
        while won < 25:
            base = catalog.load_pointer("a.t")
            try:
                catalog.swap_pointer("a.t", base, str(int(base) + 1))
            except CommitFailedException:
                continue
            won += 1

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert SqlCatalog("c", uri=uri).load_pointer("a.t") == "100"


def test_of_many_creators_one_wins(tmp_path):
    start = threading.Barrier(4)

    def create(number):
        start.wait()
        catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/new.db")
        catalog.create_namespace_if_not_exists("a")
        try:
            catalog.add_pointer("a.t", str(number))
        except TableAlreadyExistsError:
            return 0
        return 1

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(create, range(4))) == 1


def test_a_thread_shares_the_memory_catalog():
    catalog = load_catalog("m", type="in-memory")
    catalog.create_namespace("a")
    catalog.add_pointer("a.t", "0")

    def bump(_):
        while True:
            base = catalog.load_pointer("a.t")
            try:
                return catalog.swap_pointer("a.t", base, str(int(base) + 1))
            except CommitFailedException:
                continue

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(bump, range(64)))
    assert catalog.load_pointer("a.t") == "64"


GOLDEN = next(
    (
        Path(folder)
        for folder in (os.environ.get("ICEFIELD_GOLDEN"), "tests/data/golden", "../shared/golden")
        if folder and (Path(folder) / "tables/jdbc_catalog").is_dir()
    ),
    None,
)


@pytest.mark.golden
@pytest.mark.skipif(GOLDEN is None, reason="this golden set has no jdbc_catalog")
@pytest.mark.parametrize("layout", ["V0", "V1"])
@pytest.mark.parametrize("upgrade", [False, True])
def test_databases_of_java(tmp_path, layout, upgrade):
    expected = json.loads((GOLDEN / "expected/jdbc_catalog/catalog.json").read_text())
    file = expected["files"][layout]
    shutil.copy(GOLDEN / "tables/jdbc_catalog" / file, tmp_path)
    properties = {"schema_version": "v1"} if upgrade else {}
    catalog = SqlCatalog(expected["catalog_name"], uri=f"sqlite:///{tmp_path}/{file}", **properties)
    for name, content in expected["namespaces"].items():
        found = catalog.load_namespace_properties(name)
        assert content.items() <= found.items()
    for name, table in expected["tables"].items():
        assert catalog.load_pointer(name) == table["metadata_location"]
        namespace = tuple(name.split(".")[:-1])
        assert (*namespace, name.rpartition(".")[2]) in catalog.list_tables(namespace)
        catalog.swap_pointer(name, table["metadata_location"], "file:/new")
        assert catalog.load_pointer(name) == "file:/new"
    with sqlite3.connect(tmp_path / file) as raw:
        columns = [row[1] for row in raw.execute("PRAGMA table_info(iceberg_tables)")]
    raw.close()
    assert ("iceberg_type" in columns) == (layout == "V1" or upgrade)


def test_views_of_others_are_no_tables(tmp_path):
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db")
    catalog.create_namespace("a")
    with sqlite3.connect(tmp_path / "c.db") as raw:
        raw.execute("INSERT INTO iceberg_tables VALUES ('c', 'a', 'v', 'm', NULL, 'VIEW')")
        raw.execute("INSERT INTO iceberg_tables VALUES ('c', 'a', 't', 'm', NULL, NULL)")
    raw.close()
    assert catalog.list_tables("a") == [("a", "t")]
    with pytest.raises(NoSuchTableError):
        catalog.load_pointer("a.v")
    with pytest.raises(TableAlreadyExistsError):
        catalog.add_pointer("a.v", "m")
    catalog.remove_pointer("a.t")
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("a")


@pytest.mark.parametrize("typed", [True, False], ids=["V1", "V0"])
def test_views(tmp_path, typed):
    with sqlite3.connect(tmp_path / "c.db") as raw:
        if not typed:
            raw.execute(
                "CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location, "
                "previous_metadata_location, PRIMARY KEY (catalog_name, table_namespace, table_name))"
            )
    raw.close()
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db")
    catalog.create_namespace("a.b")
    with sqlite3.connect(tmp_path / "c.db") as raw:
        kind = ", 'VIEW'" if typed else ""
        for owner, namespace, name in (("c", "a", "v"), ("c", "a", "u"), ("c", "a.b", "w"), ("d", "a", "x")):
            raw.execute(f"INSERT INTO iceberg_tables VALUES ('{owner}', '{namespace}', '{name}', 'm', NULL{kind})")
    raw.close()
    found = [("a", "u"), ("a", "v")] if typed else []
    assert catalog.list_views("a") == found
    assert (catalog.view_exists("a.v"), catalog.view_exists("a.x"), catalog.view_exists("z.v")) == (typed, False, False)
    with pytest.raises(NoSuchNamespaceError):
        catalog.list_views("z")
    if typed:
        catalog.drop_view("a.v")
        assert catalog.list_views("a") == [("a", "u")]
    with pytest.raises(NoSuchViewError, match=r"view a\.v does not exist in catalog c"):
        catalog.drop_view("a.v")
    catalog.add_pointer("a.t", "m")
    with pytest.raises(NoSuchViewError):
        catalog.drop_view("a.t")
    assert ("a", "t") in catalog.list_tables("a")


def test_a_view_is_not_replaced_by_a_table(tmp_path):
    catalog = SqlCatalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", ice.Schema(ice.NestedField(1, "id", "long")))
    with sqlite3.connect(tmp_path / "c.db") as raw:
        raw.execute("INSERT INTO iceberg_tables VALUES ('c', 'a', 'v', 'm', NULL, 'VIEW')")
    raw.close()
    with pytest.raises(TableAlreadyExistsError):
        catalog.register_table("a.v", table.metadata_location, overwrite=True)
    assert catalog.list_views("a") == [("a", "v")]


def test_pyiceberg_shares_the_database(tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog as Theirs
    from pyiceberg.schema import Schema
    from pyiceberg.types import LongType, NestedField

    uri = f"sqlite:///{tmp_path}/c.db"
    ours = SqlCatalog("c", uri=uri, warehouse=str(tmp_path))
    ours.create_namespace("a.b", {"owner": "us"})
    theirs = Theirs("c", uri=uri, warehouse=f"file://{tmp_path}")
    assert theirs.load_namespace_properties("a.b")["owner"] == "us"
    table = theirs.create_table("a.b.t", Schema(NestedField(1, "id", LongType(), required=False)))
    assert ours.load_pointer("a.b.t") == table.metadata_location
    theirs.create_namespace("z", {"k": "v"})
    assert ours.load_namespace_properties("z") == {"k": "v"}
    assert ours.list_namespaces() == [("a",), ("z",)]
    theirs.engine.dispose()


def test_what_is_wrong_with_the_database(tmp_path):
    with pytest.raises(NoSuchPropertyException, match="'uri'"):
        SqlCatalog("c")
    with pytest.raises(
        InvalidArgumentError, match="not a valid database URL; expected, for example, sqlite:///folder/catalog.db"
    ):
        SqlCatalog("c", uri="what is this")
    (tmp_path / "garbage.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageError, match="not a database"):
        SqlCatalog("c", uri=f"sqlite:///{tmp_path}/garbage.db")
    assert issubclass(ice.errors.StorageError, OSError)


def test_secrets_are_not_printed(tmp_path):
    catalog = SqlCatalog(
        "c", **{"uri": f"sqlite:///{tmp_path}/c.db", "s3.secret-access-key": "hush", "warehouse": "s3://b/w"}
    )
    assert "hush" not in repr(catalog)
    assert "s3://b/w" in repr(catalog)
    with pytest.raises(StorageError, match="catalog the database") as failure:
        SqlCatalog("c", uri="postgresql://me:hush@127.0.0.1:1/db")
    assert "hush" not in str(failure.value)


def test_connections_to_postgres_have_limits() -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    engine = database._open("postgresql://me@nowhere/db?connect_timeout=3")
    found: dict[str, object] = {}

    def stop(_: object, __: object, ___: object, parameters: dict[str, object]) -> None:
        found.update(parameters)
        raise sqlalchemy.exc.ArgumentError("stop")

    sqlalchemy.event.listen(engine, "do_connect", stop)
    with pytest.raises(sqlalchemy.exc.ArgumentError):
        engine.connect()
    assert found["connect_timeout"] == "3"
    assert found["tcp_user_timeout"] == 60_000
    assert found["keepalives_count"] == 3
