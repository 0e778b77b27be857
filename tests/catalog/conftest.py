"""Services of AWS that moto plays, for the catalogs that stand on them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("catalog.laws")


@pytest.fixture(scope="session")
def aws() -> Iterator[dict[str, str]]:
    """Start moto's server in a thread, and give the properties that lead to it."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "client.region": "us-east-1",
        "client.access-key-id": "someone",
        "client.secret-access-key": "not-to-be-seen",
        "glue.endpoint": f"http://{host}:{port}",
        "dynamodb.endpoint": f"http://{host}:{port}",
    }
    server.stop()
