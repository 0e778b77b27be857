"""The Hive catalog on a metastore of our own: what it stores, locks, lost answers, old servers, and errors."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.hive import HiveCatalog
from icefield.catalog.hive.client import Connection
from icefield.catalog.hive.locks import Lock
from icefield.encryption import MemoryKeys
from icefield.errors import CommitFailedException, CorruptDataError

pytest.importorskip("thriftpy2")

from worlds.servers.metastore import Handler, metastore

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})
QUICKLY = {
    "commit.status-check.num-retries": "1",
    "commit.status-check.min-wait-ms": "1",
    "commit.retry.num-retries": "1",
    "commit.retry.min-wait-ms": "1",
}


@pytest.fixture
def server() -> Iterator[Handler]:
    with metastore() as server:
        yield server


def opened(server: Handler, folder: Path, **properties: str) -> HiveCatalog:
    given = {"lock-check-min-wait-time": "0.01", **properties}
    catalog = ice.load_catalog("h", uri=f"thrift://127.0.0.1:{server.port}", warehouse=str(folder), **given)
    assert isinstance(catalog, HiveCatalog)
    return catalog


@pytest.fixture
def catalog(server: Handler, tmp_path: Path) -> HiveCatalog:
    catalog = opened(server, tmp_path)
    catalog.create_namespace("db", {"comment": "rows", "owner": "me", "k": "v"})
    return catalog


def test_what_hive_has_of_a_table(catalog: HiveCatalog, server: Handler, tmp_path: Path) -> None:
    assert (server.databases["db"].description, server.databases["db"].ownerName) == ("rows", "me")
    assert catalog.load_namespace_properties("db")["location"] == f"file://{tmp_path}/db.db"
    columns = {"id": pa.int64(), "at": pa.timestamp("us", "UTC"), "p": pa.struct([("x", pa.decimal128(9, 2))])}
    table = catalog.create_table("db.t", pa.schema(columns), properties={"a": "b", "long": "x" * 5000})
    first = table.metadata_location
    stored = server.tables["db", "t"]
    stored.parameters["theirs"] = "1"
    stored.owner = "them"
    table.transaction().set_properties({"c": "d"}).remove_properties("a").commit_transaction()
    stored = server.tables["db", "t"]
    assert stored.parameters == {
        "EXTERNAL": "TRUE",
        "table_type": "ICEBERG",
        "metadata_location": table.metadata_location,
        "previous_metadata_location": first,
        "uuid": table.metadata.table_uuid,
        "c": "d",
        "theirs": "1",
        "write.parquet.compression-codec": "zstd",
    }
    assert (stored.owner, stored.tableType, stored.sd.location) == ("them", "EXTERNAL_TABLE", table.location())
    shown = [(column.name, column.type) for column in stored.sd.cols]
    assert shown == [("id", "bigint"), ("at", "timestamp with local time zone"), ("p", "struct<x:decimal(9,2)>")]
    assert stored.sd.serdeInfo.serializationLib.endswith("LazySimpleSerDe")
    table.transaction().set_properties({"engine.hive.enabled": "true"}).commit_transaction()
    stored = server.tables["db", "t"]
    assert stored.sd.serdeInfo.serializationLib == "org.apache.iceberg.mr.hive.HiveIcebergSerDe"
    assert stored.parameters["storage_handler"] == "org.apache.iceberg.mr.hive.HiveIcebergStorageHandler"
    older = opened(server, tmp_path, **{"hive.hive2-compatible": "true", "ugi": "me:us"})
    older.load_table("db.t").transaction().set_properties({"e": "f"}).commit_transaction()
    assert server.tables["db", "t"].sd.cols[1].type == "timestamp"
    assert "set_ugi" in server.asked


def test_keys_of_encrypted_tables_are_those_of_the_metastore(catalog: HiveCatalog, server: Handler) -> None:
    catalog.key_management = MemoryKeys({"a": b"0123456789012345", "b": b"1123456789012345"})
    rows = pa.table({"id": [1]})
    encrypted = {**QUICKLY, "format-version": "3", "encryption.key-id": "a"}
    table = catalog.create_table("db.t", rows.schema, properties=encrypted)
    stored = server.tables["db", "t"].parameters
    assert stored["encryption.key-id"] == "a"
    # Java's library checks the hash of its own last commit against the metadata of ours.
    stored["metadata_hash"] = "of Java's"
    table = table.append(rows)
    stored = server.tables["db", "t"].parameters
    assert "metadata_hash" not in stored
    stored["encryption.key-id"] = "b"
    with pytest.raises(CorruptDataError, match=r"has encryption\.key-id=a, but the metastore has b"):
        catalog.load_table("db.t")
    with pytest.raises(CommitFailedException, match="the metastore has b"):
        table.append(rows)
    stored["encryption.key-id"] = "a"
    assert catalog.load_table("db.t").append(rows).scan().count() == 2


def test_a_commit_holds_the_lock_of_its_table(catalog: HiveCatalog, server: Handler) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties=QUICKLY)
    server.asked.clear()
    table.append(ROWS)
    changing = [call for call in server.asked if call in {"lock", "unlock", "alter_table_with_environment_context"}]
    assert changing == ["lock", "alter_table_with_environment_context", "unlock"]
    assert server.locks == {}
    table.transaction().set_properties({"engine.hive.lock-enabled": "false"}).commit_transaction()
    server.asked.clear()
    table.append(ROWS)
    assert "lock" not in server.asked
    assert catalog.load_table("db.t").scan().count() == 4


def test_a_table_that_another_program_locks(catalog: HiveCatalog, server: Handler, tmp_path: Path) -> None:
    catalog.create_table("db.t", ROWS.schema, properties=QUICKLY)
    server.locks[100] = ("db", "t")
    impatient = opened(server, tmp_path, **{"lock-check-retries": "2"})
    server.asked.clear()
    with pytest.raises(ice.CommitFailedException, match=r"db\.t is locked by another program"):
        impatient.load_table("db.t").append(ROWS)
    # Two attempts of the commit.
    assert server.asked.count("check_lock") == 4
    assert list(server.locks) == [100]
    with pytest.raises(ice.CommitFailedException, match=r"db\.t is locked by another program"):
        opened(server, tmp_path, **{"hive.lock-timeout-ms": "1"}).load_table("db.t").append(ROWS)
    assert list(server.locks) == [100]
    unlocked = opened(server, tmp_path, **{"hive.lock-enabled": "false"})
    unlocked.load_table("db.t").append(ROWS)
    with pytest.raises(ice.InvalidArgumentError, match="lock-check-retries must be a number"):
        opened(server, tmp_path, **{"lock-check-retries": "often"})._lock_times()


def test_a_lock_that_was_lost_stops_the_commit(
    server: Handler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = opened(server, tmp_path, **{"hive.lock-heartbeat-interval-ms": "1"})
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema, properties=QUICKLY)
    table.append(ROWS)
    server.forgets = True
    require = Lock.require

    def when_lost(lock: Lock) -> None:
        until = time.monotonic() + 120
        while lock.lost is None and time.monotonic() < until:
            time.sleep(0.001)
        require(lock)

    monkeypatch.setattr(Lock, "require", when_lost)
    with pytest.raises(ice.CommitFailedException, match=r"the lock of db\.t was lost"):
        table.append(ROWS)
    assert server.locks == {}


def test_a_rename_holds_the_lock_and_sends_the_condition(catalog: HiveCatalog, server: Handler) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties=QUICKLY)
    server.asked.clear()
    catalog.rename_table("db.t", "db.u")
    changing = [call for call in server.asked if call in {"lock", "unlock", "alter_table_with_environment_context"}]
    assert changing == ["lock", "alter_table_with_environment_context", "unlock"]
    # A commit of a writer without lock, between the look at the table and the change.
    catalog.rename_table("db.u", "db.t")
    exists, unlocked = catalog._exists, catalog.load_table("db.t")

    def then_committed(*arguments: Any) -> bool:
        found = exists(*arguments)
        catalog._exists = exists  # type: ignore[method-assign]
        server.locks.clear()
        unlocked.append(ROWS)
        return found

    catalog._exists = then_committed  # type: ignore[method-assign, assignment]
    with pytest.raises(ice.StorageError, match="The table has been modified"):
        catalog.rename_table("db.t", "db.u")
    assert catalog.load_table("db.t").scan().count() == 2
    assert table.refresh().scan().count() == 2


def test_the_properties_of_the_base_decide_about_the_lock(catalog: HiveCatalog, server: Handler) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties=QUICKLY)
    for value, locks in [("false", True), ("true", False), ("true", True)]:
        server.asked.clear()
        table.transaction().set_properties({"engine.hive.lock-enabled": value, "n": str(locks)}).commit_transaction()
        assert ("lock" in server.asked) == locks, value


def test_a_lock_that_may_have_been_lost_leaves_the_outcome_unknown(
    catalog: HiveCatalog, server: Handler, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties=QUICKLY)
    base, new = table.metadata_location, catalog.create_table("db.other", ROWS.schema).metadata_location
    passed = 0.0
    monkeypatch.setattr("icefield.catalog.hive.locks.time.monotonic", lambda: passed)
    ask = Connection.ask

    def stopped(self: Connection, call: str, *arguments: object) -> Any:
        nonlocal passed
        answer = ask(self, call, *arguments)
        # The process is stopped for longer than a metastore keeps a lock.
        passed += 400 * (call == "alter_table_with_environment_context")
        return answer

    monkeypatch.setattr(Connection, "ask", stopped)
    with pytest.raises(ice.CommitStateUnknownException, match="has not heard of it for 400 seconds"):
        catalog.swap_pointer("db.t", base, new)
    assert server.locks == {}


def test_what_hive_deletes_follows_from_what_may_be_deleted(catalog: HiveCatalog, server: Handler) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties={"gc.enabled": "false"})
    assert server.tables["db", "t"].parameters["external.table.purge"] == "false"
    table.transaction().remove_properties("gc.enabled").commit_transaction()
    assert "external.table.purge" not in server.tables["db", "t"].parameters


def test_without_locks_the_condition_of_hive_decides(server: Handler, tmp_path: Path) -> None:
    catalog = opened(server, tmp_path, **{"hive.lock-enabled": "false"})
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", ROWS.schema, properties=QUICKLY)
    base = table.metadata_location
    table.append(ROWS)
    stale = server.tables["db", "t"]
    catalog._require_base = lambda *_: None  # type: ignore[method-assign, assignment]
    with pytest.raises(ice.CommitFailedException, match="The table has been modified"):
        catalog.swap_pointer("db.t", base, base)
    assert server.tables["db", "t"].parameters == stale.parameters


@pytest.mark.parametrize("when", ["before", "after"])
def test_connections_that_break(catalog: HiveCatalog, server: Handler, when: str) -> None:
    table = catalog.create_table("db.t", ROWS.schema, properties=QUICKLY)
    server.breaks = {"alter_table_with_environment_context": when}
    if when == "after":
        table.append(ROWS)
    else:
        with pytest.raises(ice.CommitStateUnknownException, match="alter_table_with_environment_context"):
            table.append(ROWS)
    assert server.locks == {}
    assert catalog.load_table("db.t").scan().count() == (2 if when == "after" else 0)
    server.breaks = {"lock": "before"}
    catalog.load_table("db.t").append(ROWS)
    server.breaks = {"create_table": when}
    if when == "after":
        catalog.create_table("db.u", ROWS.schema)
    else:
        with pytest.raises(ice.CommitStateUnknownException, match="create_table"):
            catalog.create_table("db.u", ROWS.schema)
    server.breaks = {"get_all_databases": "before"}
    with pytest.raises(ice.StorageError, match="catalog h: metastore 127.0.0.1:.* get_all_databases"):
        catalog.list_namespaces()


def test_old_metastores(tmp_path: Path) -> None:
    with metastore(old=True) as server:
        catalog = opened(server, tmp_path)
        catalog.create_namespace("db")
        catalog.create_table("db.t", ROWS.schema).append(ROWS)
        assert catalog.list_tables("db") == [("db", "t")]
        assert catalog.load_table("db.t").scan().count() == 2
        assert "get_table" in server.asked


REFUSED: list[tuple[Callable[[ice.Catalog], object], type[Exception], str]] = [
    (lambda c: c.load_table("db.csv"), ice.NoSuchTableError, "db.csv of catalog h is not an Iceberg table"),
    (lambda c: c.drop_table("db.csv"), ice.NoSuchTableError, "not an Iceberg table"),
    (lambda c: c.rename_table("db.csv", "db.u"), ice.NoSuchTableError, "not an Iceberg table"),
    (lambda c: c.drop_namespace("db"), ice.NamespaceNotEmptyError, "it contains csv"),
    (lambda c: c.create_table("db.csv", ROWS.schema), ice.TableAlreadyExistsError, "already exists"),
    (lambda c: c.create_table("db.A", ROWS.schema), ice.InvalidArgumentError, "'A' cannot be a name in Hive"),
    (lambda c: c.create_namespace("a-b"), ice.InvalidArgumentError, "'a-b' cannot be a name in Hive"),
    (lambda c: c.create_namespace("a.b"), ice.InvalidArgumentError, "have one level"),
    (lambda c: c.load_table("a.b.c"), ice.NoSuchTableError, "have one level"),
    (lambda c: c.list_tables("nowhere"), ice.NoSuchNamespaceError, "nowhere does not exist"),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_refusals(
    catalog: HiveCatalog,
    server: Handler,
    call: Callable[[ice.Catalog], object],
    kind: type[Exception],
    message: str,
) -> None:
    server.tables["db", "csv"] = server.types.Table(dbName="db", tableName="csv", parameters={})
    with pytest.raises(kind, match=message):
        call(catalog)
    assert list(server.tables) == [("db", "csv")]
    assert catalog.list_tables("db") == []


def test_metastores_that_cannot_be_had(server: Handler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    several = f"thrift://127.0.0.1:1,thrift://127.0.0.1:{server.port}"
    assert ice.load_catalog("h", uri=several).list_namespaces() == [("default",)]
    with pytest.raises(ice.StorageError, match=r"catalog h: no metastore can be reached: 127.0.0.1:1: .*refused"):
        ice.load_catalog("h", uri="thrift://127.0.0.1:1").list_namespaces()
    with pytest.raises(ice.InvalidArgumentError, match=r"expected thrift://host:9083, got 'host:9083'"):
        ice.load_catalog("h", type="hive", uri="host:9083")
    with pytest.raises(ice.errors.NoSuchPropertyException, match="'uri'"):
        ice.load_catalog("h", type="hive")
    with pytest.raises(ice.UnsupportedFeatureError, match="Kerberos is not supported"):
        ice.load_catalog("h", uri="thrift://host:9083", **{"hive.kerberos-authentication": "true"})
    with pytest.raises(ice.InvalidArgumentError, match=r"hive\.lock-enbaled; did you mean hive\.lock-enabled"):
        ice.load_catalog("h", uri="thrift://host:9083", **{"hive.lock-enbaled": "false"})
    for name in [name for name in sys.modules if name.partition(".")[0] == "thriftpy2"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "thriftpy2", None)
    with pytest.raises(ice.errors.NotInstalledError, match=r"pip install 'icefield\[hive\]'"):
        ice.load_catalog("h", uri=several).list_namespaces()
