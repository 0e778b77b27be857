"""Files on a server that speaks TLS: what of its certificate is believed."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from worlds.servers.certificates import self_signed

OPEN = "import sys, icefield; print(icefield.Table.from_metadata(sys.argv[1]).schema())"


@pytest.fixture(
    params=[("TLSv1_2", "RSA"), ("TLSv1_3", "elliptic curve")], ids=["TLS 1.2, RSA", "TLS 1.3, elliptic curve"]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Serve the metadata of a table, and return its location."""

    class Files(SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *_: object) -> None:
            pass

    catalog = ice.load_catalog("here", uri=f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=pa.schema({"n": pa.int64()}))
    version, kind = request.param
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*self_signed(tmp_path, kind))
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        # Handshakes that fail are what is tested.
        server.handle_error = lambda *_: None
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield table.metadata_location.replace(tmp_path.as_uri(), f"https://127.0.0.1:{server.server_port}")
        server.shutdown()


def test_any_certificate_is_accepted_where_none_is_verified(place):
    table = ice.Table.from_metadata(place, **{"tls.verify": "false"})
    assert table.schema().column_names == ["n"]


# Elsewhere it is the system that knows whom to believe.
@pytest.mark.parametrize("believed", [True, False] if sys.platform == "linux" else [False], ids=["believed", "unknown"])
def test_the_owner_of_a_certificate_is_known_or_refused(tmp_path, place, believed):
    done = subprocess.run(
        [sys.executable, "-c", OPEN, place],
        env=os.environ | ({"SSL_CERT_FILE": str(tmp_path / "server.pem")} if believed else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) is believed, done.stderr
    assert ("1: n: optional long" in done.stdout) is believed, done.stdout
    assert ("certificate" in done.stderr) is not believed, done.stderr
