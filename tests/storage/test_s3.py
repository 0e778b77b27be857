"""Tables on S3, against a real server process on loopback (moto's), over real HTTP."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield._core import Storage
from worlds.servers.rest import Answer, Asked, served

BUCKET = "warehouse"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Start the server and make one bucket."""
    pytest.importorskip("moto.server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 180
        while True:
            try:
                urllib.request.urlopen(f"{url}/moto-api/data.json", timeout=1).close()
                break
            except OSError:
                if time.monotonic() > deadline or server.poll() is not None:
                    pytest.fail("moto's server does not answer")
                time.sleep(0.2)
        urllib.request.urlopen(urllib.request.Request(f"{url}/{BUCKET}", method="PUT"), timeout=120).close()
        yield url
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def properties(endpoint: str) -> dict[str, str]:
    """Give the storage properties, named as PyIceberg names them."""
    return {
        "s3.endpoint": endpoint,
        "s3.access-key-id": "someone",
        "s3.secret-access-key": "not-to-be-seen",
        "s3.region": "us-east-1",
    }


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_a_table_lives_on_s3(scheme: str, properties: dict[str, str], tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = ice.load_catalog("cloud", uri=uri, warehouse=f"{scheme}://{BUCKET}/{scheme}", **properties)
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array(range(1000)), "name": [f"n {n}%2F" for n in range(1000)]})
    table = catalog.create_table("db.t", schema=rows.schema, partition_by=["bucket(4, id)"])
    table.append(rows)
    table.append(rows.slice(0, 10))

    again = ice.load_catalog("cloud", uri=uri, **properties).load_table("db.t")
    assert again.scan().to_arrow().num_rows == 1010
    found = again.scan(row_filter="id = 7", selected_fields=("name",)).to_arrow()
    assert found.to_pylist() == [{"name": "n 7%2F"}] * 2
    static = ice.Table.from_metadata(again.metadata_location, **properties)
    assert static.scan().count() == 1010


def test_a_purge_takes_many_objects_by_one_request(properties: dict[str, str], tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = ice.load_catalog("cloud", uri=uri, warehouse=f"s3://{BUCKET}/purged", **properties)
    catalog.create_namespace("db")
    # Keys that are not the same in XML; more of them than one request takes.
    rows = pa.table({"name": [f"<{n}> & 'é'" for n in range(300)]})
    table = catalog.create_table("db.t", schema=rows.schema, partition_by=["name"])
    table.append(rows)
    other = catalog.create_table("db.tt", schema=rows.schema)
    storage = table.storage
    files = storage.list(table.location())
    assert len(files) == 300 + 4
    storage.delete(files[7][0])
    catalog.purge_table("db.t")
    assert storage.list(table.location()) == []
    assert storage.exists(other.metadata_location)


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, None),
        ({"s3.sse.type": "s3"}, "AES256"),
        ({"s3.server-side-encryption": "aws:kms", "s3.sse-kms-key-id": "k"}, "aws:kms"),
    ],
)
def test_objects_are_stored_encrypted_where_that_is_asked_for(
    asked: dict[str, str], found: str | None, endpoint: str, properties: dict[str, str]
) -> None:
    name = f"sealed/{found}".replace(":", "-")
    Storage({**properties, **asked}).write(f"s3://{BUCKET}/{name}", b"x")
    boto3 = pytest.importorskip("boto3")
    keys = {"aws_access_key_id": "someone", "aws_secret_access_key": "not-to-be-seen", "region_name": "us-east-1"}
    answer = boto3.client("s3", endpoint_url=endpoint, **keys).head_object(Bucket=BUCKET, Key=name)
    # Buckets may encrypt by themselves, with a key of their own.
    assert answer.get("ServerSideEncryption") in ({None, "AES256"} if found is None else {found})
    assert answer.get("SSEKMSKeyId") == asked.get("s3.sse-kms-key-id")


def test_a_wrong_key_is_an_error_without_the_secret(endpoint: str, tmp_path: Path) -> None:
    catalog = ice.load_catalog(
        "cloud",
        uri=f"sqlite:///{tmp_path}/catalog.db",
        warehouse="s3://no-such-bucket/w",
        **{
            "s3.endpoint": endpoint,
            "s3.secret-access-key": "not-to-be-seen",
            "s3.access-key-id": "a",
            "s3.region": "r",
        },
    )
    catalog.create_namespace("db")
    with pytest.raises(ice.IcefieldError) as caught:
        catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]))
    assert "no-such-bucket" in str(caught.value)
    assert "not-to-be-seen" not in f"{caught.value} {caught.value!r} {catalog!r}"


def test_a_folder_catalog_lives_on_s3(properties: dict[str, str]) -> None:
    catalog = ice.load_catalog("folders", type="hadoop", warehouse=f"s3://{BUCKET}/folders", **properties)
    catalog.create_namespace("a.b")
    assert (catalog.list_namespaces(), catalog.list_namespaces("a")) == ([("a",)], [("a", "b")])
    table = catalog.create_table("a.b.t", schema=pa.schema({"id": pa.int64()}))
    for _ in range(2):
        table.append(pa.table({"id": [1, 2]}))
    assert table.metadata_location.endswith("/folders/a/b/t/metadata/v3.metadata.json")
    assert catalog.list_tables("a.b") == [("a", "b", "t")]
    # Two commits on top of one version: the server makes one object.
    base = catalog._newest(catalog._folder(("a", "b", "t")))
    versions = [
        catalog._next("a.b.t", table.metadata, base._replace(version=3), gzipped=False),
        catalog._next("a.b.t", table.metadata.apply([{"action": "remove-properties", "removals": ["x"]}]), base, False),
    ]
    assert [made is not None for made in versions] == [True, False]
    assert catalog._put(f"{base.location}.other", b"1")
    assert not catalog._put(f"{base.location}.other", b"2")
    assert catalog.load_table("a.b.t").scan().count() == 4
    with pytest.raises(ice.NamespaceNotEmptyError):
        catalog.drop_namespace("a.b")
    catalog.drop_table("a.b.t")
    assert catalog.list_tables("a.b") == []
    catalog.drop_namespace("a.b")
    assert Storage(properties).list(f"s3://{BUCKET}/folders") == []


def test_the_server_of_a_catalog_signs_all_requests(endpoint: str, tmp_path: Path) -> None:
    """S3 is not where the properties say it is: only the signer knows, so what is not signed fails."""
    auth, awsrequest = pytest.importorskip("botocore.auth"), pytest.importorskip("botocore.awsrequest")
    keys = pytest.importorskip("botocore.credentials").Credentials("of-the-server", "hush")
    asked: list[tuple[str, str]] = []

    def sign(request: Asked) -> Answer | None:
        if request.path != "/v1/namespaces/n/tables/t/sign":
            return None
        assert request.headers["authorization"] == "Bearer of-the-user"
        body = request.body
        asked.append((body["method"], body["uri"]))
        assert (body.get("body") is not None) == (body["method"] == "POST" and "delete" in body["uri"])
        uri = body["uri"].replace(elsewhere, endpoint)
        signed = awsrequest.AWSRequest(body["method"], uri, data=body.get("body"))
        auth.S3SigV4Auth(keys, "s3", body["region"]).add_auth(signed)
        headers = {name: [value] for name, value in signed.headers.items()}
        return 200, {"uri": uri, "headers": headers}, {"cache-control": "private"}

    elsewhere = "http://127.0.0.1:9"
    with served(tmp_path) as server:
        server.namespaces["n",] = {}
        server.instead.append(sign)
        table_route = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"
        server.config["endpoints"] = [
            *(f"{method} {table_route}" for method in ("GET", "POST")),
            "POST /v1/{prefix}/namespaces/{namespace}/tables",
            f"POST {table_route}/sign",
        ]
        server.with_table = {"config": {"s3.remote-signing-enabled": "true", "s3.endpoint": elsewhere}}
        catalog = ice.load_catalog("c", type="rest", uri=server.uri, token="of-the-user")
        rows = pa.table({"id": range(10), "noise": [os.urandom(1 << 20) for _ in range(10)]})
        table = catalog.create_table("n.t", rows.schema, location=f"s3://{BUCKET}/signed/t")
        table.append(rows)
        assert {method for method, _ in asked} == {"PUT", "POST"}  # a large file takes several requests
        assert [uri for _, uri in asked if "uploadId=" in uri]
        given = {"token": "of-the-user", "rest.client.executors-get-token": "true"}
        again = ice.load_catalog("c", type="rest", uri=server.uri, **given).load_table("n.t")
        assert again.scan(selected_fields=("id",)).to_arrow().to_pydict() == {"id": list(range(10))}
        # A worker, which has the token and nothing else of the catalog.
        storage = pickle.loads(pickle.dumps(again.storage))
        files = [path for path, _ in storage.list(again.location())]
        assert storage.read(files[0])
        before = len(asked)
        assert storage.read(files[0])
        assert len(asked) == before, "the signature of a read is used again"
        for path in files:
            storage.delete(path)
        assert storage.list(again.location()) == []
        assert [uri for method, uri in asked if method == "POST" and "delete" in uri]
    with pytest.raises(ice.UnsupportedFeatureError, match="for the tables of a REST catalog"):
        Storage({"s3.remote-signing-enabled": "true", "s3.region": "r"}).read(f"s3://{BUCKET}/signed")
