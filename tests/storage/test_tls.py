"""Files on a server that speaks TLS: what of its certificate is believed."""

from __future__ import annotations

import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import icefield as ice

OPEN = "import sys, icefield; print(icefield.Table.from_metadata(sys.argv[1]).schema())"
KEYS = {
    "elliptic curve": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RSA": lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048),
}


def self_signed(folder: Path, kind: str) -> tuple[Path, Path]:
    """Write a certificate for 127.0.0.1 that its owner alone signed, and its key."""
    key = KEYS[kind]()
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a server of tests")])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / "server.pem").write_bytes(certificate.public_bytes(pem))
    (folder / "server.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return folder / "server.pem", folder / "server.key"


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
