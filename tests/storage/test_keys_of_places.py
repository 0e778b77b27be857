"""Keys of S3 that a REST catalog gives for places: each is used there and nowhere else; and what requests cost."""

from __future__ import annotations

import os
import pickle
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield._core import Storage
from icefield.catalog.rest import RestCatalog
from icefield.distributed import TaskWriter
from worlds.servers.rest import Answer, Asked, Server, served
from worlds.servers.s3 import S3, Used, lend, s3

ROWS = pa.table({"id": range(100), "region": ["eu", "us"] * 50})
#: What each key is for; of several that have an object, the one with the longest prefix.
PLACES = {
    "wh/": "of-the-warehouse",
    "wh/n/t/": "of-the-table",
    "wh/n/t/data/": "of-the-data",
    "wh/n/t/data/region=eu/": "of-europe",
    "other/t": "of-the-metadata",
}


@pytest.fixture
def store() -> Iterator[S3]:
    with s3() as made:
        yield made


@pytest.fixture
def server(tmp_path: Path, store: S3) -> Iterator[Server]:
    with served(tmp_path) as made:
        made.namespaces["n",] = {}
        made.config["overrides"] = {"s3.endpoint": store.url, "s3.region": "r", "s3.path-style-access": "true"}
        yield made


def key(prefix: str, name: str, **more: str) -> dict[str, Any]:
    return {"prefix": prefix, "config": {"s3.access-key-id": name, "s3.secret-access-key": "s", **more}}


def is_for(used: Used) -> bool:
    """Whether a key is for an object."""
    fitting = [prefix for prefix in PLACES if used.object.startswith(prefix)]
    return bool(fitting) and PLACES[max(fitting, key=len)] == used.key_id


@pytest.mark.parametrize(
    ("version", "mode", "expires"),
    [("2", "copy-on-write", False), ("2", "merge-on-read", True), ("3", "merge-on-read", False)],
)
def test_each_place_is_written_with_its_key(
    server: Server, store: S3, version: str, mode: str, *, expires: bool
) -> None:
    store.permits = is_for
    life = {"s3.session-token-expires-at-ms": str(int((time.time() + 3600) * 1000))} if expires else {}
    credentials = [key(f"s3://{prefix}", name, **life) for prefix, name in PLACES.items()]
    server.with_table = {"storage-credentials": credentials}
    properties = {
        "format-version": version,
        "write.metadata.path": "s3://other/t/metadata",
        **{f"write.{verb}.mode": mode for verb in ("delete", "update", "merge")},
    }
    mine = {"s3.access-key-id": "mine", "s3.secret-access-key": "s"}
    catalog = RestCatalog("c", uri=server.uri, **mine)
    table = catalog.create_table(
        "n.t", ROWS.schema, partition_by="region", location="s3://wh/n/t", properties=properties
    )
    for _ in range(3):
        table.append(ROWS)
    table.delete("id = 7")
    table.update({"region": "'eu'"}, "id = 8")
    table.upsert(pa.table({"id": [9, 1000], "region": ["eu", "us"]}), join_cols=["id"])
    table.overwrite(ROWS.slice(0, 2), "id < 2")
    # A worker of another process.
    plan = pickle.loads(pickle.dumps(table.new_write()))
    writer = TaskWriter(plan, pickle.loads(pickle.dumps(table.storage)), ROWS.schema)
    for batch in ROWS.to_batches():
        writer.write(batch)
    table.commit_files(plan, [writer.close()])
    rows = sorted(map(repr, table.scan().to_arrow().to_pylist()))
    tasks = pickle.loads(pickle.dumps(table.scan().tasks()))
    storage = pickle.loads(pickle.dumps(table.storage))
    read = [row for task in tasks for row in task.rows(storage).to_pyarrow().read_all().to_pylist()]
    assert sorted(map(repr, read)) == rows
    table.maintenance.compact(options={"rewrite-all": "true"})
    table.rewrite_manifests().commit()
    expired = table.expire_snapshots(older_than=int(time.time() * 1000) + 1000, retain_last=1)
    assert min(map(len, (expired.data_files, expired.manifests, expired.manifest_lists))) > 0
    lost = ["wh/n/t/data/lost.parquet", "wh/n/t/data/region=eu/lost.parquet", "wh/n/t/lost.parquet"]
    store.objects |= dict.fromkeys(lost, b"lost")
    found = table.maintenance.remove_orphans("0s", dry_run=False, allow_recent=True)
    assert sorted(found.files) == [f"s3://{name}" for name in lost]
    assert not store.objects.keys() & {*lost}
    assert sorted(map(repr, catalog.load_table("n.t").scan().to_arrow().to_pylist())) == rows
    assert store.refused == []
    assert {used.key_id for used in store.used} == {*PLACES.values()} - {"of-the-warehouse"}


def test_work_goes_on_beyond_the_life_of_its_keys(server: Server, store: S3) -> None:
    """Keys are good for two seconds, and each of these takes longer; no request comes with a key that has expired."""
    ends = lend(server, store, 2.0)
    table = RestCatalog("c", uri=server.uri).create_table("n.t", ROWS.schema, location="s3://wh/n/t")
    for start in range(10):
        table.append(ROWS.slice(start * 10, 10))

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 100, 20):
            time.sleep(0.7)
            yield from ROWS.slice(start, 20).to_batches()

    given = len(ends)
    table.append(pa.RecordBatchReader.from_batches(ROWS.schema, batches()))
    assert len(ends) > given
    given = len(ends)
    store.delay = 0.3
    tasks = table.scan().tasks(split_size=1)
    assert len(tasks) > 10
    storage = pickle.loads(pickle.dumps(table.storage))
    found = [row for task in tasks for row in task.rows(storage).to_pyarrow().read_all()["id"].to_pylist()]
    assert sorted(found) == sorted(2 * ROWS["id"].to_pylist())
    assert len(ends) > given + 1
    table.delete("id < 50")
    assert table.scan().count() == 100
    assert store.refused == []


def test_tables_with_keys_of_their_own_share_connections(server: Server, store: S3) -> None:
    store.objects["b/x"] = b"bytes"
    catalog = RestCatalog("c", uri=server.uri, **{"rest-table-cache.max-entries": "0"})
    catalog.create_table("n.t", ROWS.schema)
    end = str(int((time.time() + 3600) * 1000))
    for number in range(1000):
        given = key("s3", f"key{number}", **{"s3.session-token-expires-at-ms": end})
        server.with_table = {"storage-credentials": [given]}
        assert catalog.load_table("n.t").storage.read("s3://b/x") == b"bytes"
    assert [used.key_id for used in store.used] == [f"key{number}" for number in range(1000)]
    # One, and another where a request begins before the last one has given its own back.
    assert 1 <= store.connections <= 5


@pytest.mark.parametrize("kind", ["rest", "sql"])
def test_a_role_is_asked_for_once(
    kind: str, server: Server, store: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The credentials of the machine: of a container, which are asked for as those of a role are."""
    asked = []

    def answer(request: Asked) -> Answer | None:
        if request.path != "/role":
            return None
        asked.append(request.headers["authorization"])
        keys = {
            "AccessKeyId": "of-the-role",
            "SecretAccessKey": "s",
            "Token": "t",
            "Expiration": "2999-01-01T00:00:00Z",
        }
        return 200, keys, {}

    server.instead.append(answer)
    (tmp_path / "token").write_text("of-the-container")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.uri}/role")
    monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", str(tmp_path / "token"))
    if kind == "rest":
        catalog: ice.Catalog = RestCatalog("c", uri=server.uri)
    else:
        of_storage = dict(server.config["overrides"])
        catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse="s3://wh", **of_storage)
        catalog.create_namespace("n")
    for number in range(20):
        catalog.create_table(f"n.t{number}", ROWS.schema, location=f"s3://wh/t{number}")
    for number in range(20):
        table = catalog.load_table(f"n.t{number}")
        assert table.append(ROWS).scan().count() == 100
        table.delete("id = 1")
    assert {used.key_id for used in store.used} == {"of-the-role"}
    # Writes are several at once.
    assert (asked, store.connections < 30) == (["of-the-container"], True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_child_opens_connections_of_its_own(store: S3) -> None:
    """Connections of the parent belong to its threads, which the child has not."""
    given = {"s3.endpoint": store.url, "s3.region": "r", "s3.access-key-id": "k", "s3.secret-access-key": "s"}
    store.objects["b/x"] = b"bytes"
    storage = Storage(given)
    for _ in range(3):
        assert storage.read("s3://b/x") == b"bytes"
        before = store.connections
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            os._exit(0 if storage.read("s3://b/x") == Storage(given).read("s3://b/x") == b"bytes" else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert before < store.connections
        # The parent goes on with its own.
        before = store.connections
        assert (storage.read("s3://b/x"), store.connections) == (b"bytes", before)
