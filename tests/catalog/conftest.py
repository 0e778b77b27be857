"""Services of AWS that moto plays, for the catalogs that stand on them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.register_assert_rewrite("catalog.laws")


def with_versions(update: Any) -> Any:
    """Let updates of tables look at ``VersionId``, as Glue does and moto does not."""
    from moto.core.exceptions import JsonRESTError

    one_at_a_time = threading.Lock()

    def update_table(self: Any) -> Any:
        database, wanted = self.parameters["DatabaseName"], self.parameters.get("VersionId")
        with one_at_a_time:
            table = self.glue_backend.get_table(database, self.parameters["TableInput"]["Name"])
            if wanted not in {None, str(table._current_version)}:
                error = JsonRESTError("ConcurrentModificationException", "the table has another version")
                error.code = 400
                raise error
            return update(self)

    return update_table


def one_at_a_time(act: Any) -> Any:
    """Let one thread at a time check a condition and change an item, as DynamoDB does and moto does not."""
    lock = threading.Lock()

    def locked(self: Any) -> Any:
        with lock:
            return act(self)

    return locked


@pytest.fixture(scope="session")
def aws() -> Iterator[dict[str, str]]:
    """Start moto's server in a thread, and give the properties that lead to it."""
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    glue = pytest.importorskip("moto.glue.responses").GlueResponse
    glue.update_table = with_versions(glue.update_table)
    dynamodb = pytest.importorskip("moto.dynamodb.responses").DynamoHandler
    dynamodb.call_action = one_at_a_time(dynamodb.call_action)
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
