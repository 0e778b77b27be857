"""Tables on Azure, against a real server process on loopback (Azurite), over real HTTP.

Azurite is a program of Node: ``make test`` installs it where there is npm. Elsewhere these tests are skipped.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice

# The account that Azurite always has.
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "warehouse"


def create_container(endpoint: str) -> None:
    """Make the container, with a request signed by the account's key."""
    date = formatdate(usegmt=True)
    headers = {"x-ms-date": date, "x-ms-version": "2021-12-02"}
    canonical = "".join(f"{name}:{value}\n" for name, value in sorted(headers.items()))
    resource = f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
    text = "PUT\n" + "\n" * 11 + canonical + resource
    digest = hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
    request = urllib.request.Request(f"{endpoint}/{CONTAINER}?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(request, timeout=120).close()


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the server and make one container."""
    program = os.environ.get("ICEFIELD_AZURITE") or shutil.which("azurite-blob")
    if not program or not Path(program).exists():
        pytest.skip("no Azurite: it comes with npm (ICEFIELD_AZURITE names its azurite-blob)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = tmp_path_factory.mktemp("azurite")
    options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--location", str(folder), "--silent"]
    options += ["--skipApiVersionCheck", "--disableTelemetry"]
    server = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 180
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                if time.monotonic() > deadline or server.poll() is not None:
                    pytest.fail("Azurite does not answer")
                time.sleep(0.1)
        url = f"http://127.0.0.1:{port}/{ACCOUNT}"
        create_container(url)
        yield url
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def properties(endpoint: str) -> dict[str, str]:
    """Give the storage properties, named as PyIceberg names them."""
    return {"adls.endpoint": endpoint, "adls.account-name": ACCOUNT, "adls.account-key": KEY}


@pytest.mark.parametrize(
    "warehouse", [f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/wh", f"az://{CONTAINER}/wh"]
)
def test_a_table_lives_on_azure(warehouse: str, properties: dict[str, str], tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    catalog = ice.load_catalog("cloud", uri=uri, warehouse=warehouse, **properties)
    catalog.create_namespace("db")
    rows = pa.table({"id": pa.array(range(1000)), "name": [f"n {n}%2F" for n in range(1000)]})
    name = f"db.t{warehouse.partition(':')[0]}"
    table = catalog.create_table(name, schema=rows.schema, partition_by=["bucket(4, id)"])
    table.append(rows)
    table.append(rows.slice(0, 10))
    assert table.location().startswith(warehouse)
    read = catalog.load_table(name).scan(row_filter="id < 10").to_arrow()
    assert sorted(read["id"].to_pylist()) == sorted([*range(10)] * 2)
    assert catalog.load_table(name).scan().count() == 1010
    assert KEY not in repr(catalog) + repr(catalog.storage) + repr(table)
    catalog.drop_table(name, purge_requested=True)
    assert catalog.storage.list(table.location()) == []


def test_two_writers_of_one_object(endpoint: str, properties: dict[str, str]) -> None:
    storage = ice.load_catalog("c", type="in-memory", warehouse="memory://x/y", **properties).storage
    path = f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/once"
    storage.write(path, b"first")
    with pytest.raises(ice.IcefieldError, match="exists already"):
        storage.write(path, b"second")
    assert storage.read(path) == b"first"
    storage.delete(path)
    assert not storage.exists(path)


def test_a_wrong_key_is_told_without_showing_it(properties: dict[str, str]) -> None:
    wrong = base64.b64encode(b"not the key of this account at all").decode()
    wrong_properties = {**properties, "adls.account-key": wrong}
    catalog = ice.load_catalog("c", type="in-memory", warehouse="memory://x/y", **wrong_properties)
    with pytest.raises(ice.IcefieldError) as raised:
        catalog.storage.read(f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net/once")
    assert wrong not in str(raised.value)
    assert CONTAINER in str(raised.value)
