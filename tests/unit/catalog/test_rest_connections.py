"""What connections to a REST catalog keep, and the ways that requests go."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.rest.protocol.auth import Nothing
from icefield.catalog.rest.protocol.http import Http
from icefield.catalog.rest.protocol.messages import Request
from icefield.errors import InvalidArgumentError, NoSuchTableError, ServiceUnavailableError
from worlds.servers.rest import Asked, Server


def test_cookies_of_the_server_are_sent_back(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(server, "usual", lambda _: (200, {}, {"set-cookie": "node=7; Path=/"}))
    http = Http({}, Nothing())
    for _ in range(2):
        assert http.send(Request("GET", f"{server.uri}/v1/config"), repeatable=True).headers["set-cookie"]
    http.close()
    assert [one.headers.get("cookie") for one in server.asked] == [None, "node=7"]


@contextmanager
def proxy() -> Iterator[tuple[str, list[str]]]:
    """A proxy that answers itself, and the URLs that it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{made.server_address[1]}", asked
        made.shutdown()


@pytest.mark.parametrize("by", ["property", "environment"])
def test_requests_go_through_a_proxy(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "http://catalog.invalid/v1/config"
    with proxy() as (address, asked):
        host, _, port = address.partition(":")
        own = {"rest.client.proxy.hostname": host, "rest.client.proxy.port": port} if by == "property" else {}
        if by == "environment":
            monkeypatch.setenv("http_proxy", f"http://{address}")
        http = Http({**own, "rest.client.max-retries": "0"}, Nothing())
        assert http.send(Request("GET", url), repeatable=True).body == b"{}"
        assert asked == [url]
        if by == "environment":
            monkeypatch.setenv("no_proxy", "catalog.invalid")
            http = Http({"rest.client.max-retries": "0"}, Nothing())
            with pytest.raises(ServiceUnavailableError, match="cannot connect"):
                http.send(Request("GET", url), repeatable=True)


def test_headers_that_come_twice_are_one(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def answered(_: Asked) -> tuple[int, object, dict[str, str]]:
        return 200, {}, {"X-One": "a", "x-one": "b"}

    monkeypatch.setattr(server, "usual", answered)
    reply = Http({}, Nothing()).send(Request("GET", f"{server.uri}/v1/config"), repeatable=True)
    assert reply.headers["x-one"] == "a, b"


def test_tables_are_loaded_several_at_a_time(server: Server) -> None:
    catalog = ice.load_catalog("c", uri=server.uri)
    names = [("n", f"t{number}") for number in range(12)]
    for name in names:
        catalog.create_table(name, pa.schema({"id": pa.int64()}))
    # No answer comes before there are as many requests.
    together = threading.Barrier(4, timeout=20)
    most, now, counting = [0], [0], threading.Lock()

    def wait(asked: Asked) -> None:
        if asked.method == "GET" and "/tables/" in asked.path:
            with counting:
                now[0] += 1
                most[0] = max(most[0], now[0])
            together.wait()
            with counting:
                now[0] -= 1

    server.instead.append(wait)
    assert [table.name() for table in catalog.load_tables(names, workers=4)] == names
    assert most == [4]
    server.instead.clear()
    catalog.drop_table(names[2])
    assert [table.name() for table in catalog.load_tables(names, missing_ok=True)] == names[:2] + names[3:]
    found: list[tuple[str, ...]] = []
    with pytest.raises(NoSuchTableError, match="t2"):
        found.extend(table.name() for table in catalog.load_tables(names))
    assert found == names[:2]
    loading = catalog.load_tables(iter(names), workers=1)
    assert next(loading).name() == names[0]
    loading.close()  # type: ignore[attr-defined]
    assert not [one for one in threading.enumerate() if one.name.startswith("icefield-load")]
    with pytest.raises(InvalidArgumentError, match="workers: expected at least 1, got 0"):
        catalog.load_tables(names, workers=0)
    assert list(catalog.load_tables([])) == []
