"""S3 on a loopback port, in a thread: objects in memory, and a rule about which key may do what."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from worlds.servers.rest import Answer, Asked, Server


class Used(NamedTuple):
    """A request that the server got: the object is ``bucket/key``, of a list the prefix."""

    key_id: str
    method: str
    object: str


class S3:
    """What the server has, and who used it."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.used: list[Used] = []
        #: Whether a request is permitted; others are refused, and kept in `refused`.
        self.permits: Callable[[Used], bool] = lambda _: True
        self.refused: list[Used] = []
        #: Seconds that an answer takes.
        self.delay = 0.0
        #: How many connections were opened.
        self.connections = 0
        self.lock = threading.Lock()
        self.url = ""

    def permit(self, used: Used) -> bool:
        with self.lock:
            self.used.append(used)
            if self.permits(used):
                return True
            self.refused.append(used)
            return False


def lend(catalog: Server, store: S3, life: float) -> dict[str, float]:
    """Let a REST catalog give keys of the store that are good for some seconds; return when each of them ends."""
    ends: dict[str, float] = {}

    def answer(asked: Asked) -> Answer | None:
        name, end = f"key{len(ends)}", time.time() + life
        config = {"s3.access-key-id": name, "s3.secret-access-key": "s"}
        config["s3.session-token-expires-at-ms"] = str(int(end * 1000))
        given = {"storage-credentials": [{"prefix": "s3", "config": config}]}
        if asked.path.endswith("/credentials"):
            ends[name] = end
            return 200, given, {}
        if "/tables" in asked.path and not asked.path.endswith("/metrics"):
            ends[name], catalog.with_table = end, given
        return None

    catalog.instead.append(answer)
    path = "/v1/{prefix}/namespaces/{namespace}/tables"
    catalog.config["endpoints"] = [
        *(f"{method} {path}/{{table}}" for method in ("GET", "POST", "DELETE")),
        f"POST {path}",
        f"GET {path}/{{table}}/credentials",
    ]
    catalog.config["overrides"] = {"s3.endpoint": store.url, "s3.region": "r", "s3.path-style-access": "true"}
    store.permits = lambda used: time.time() < ends.get(used.key_id, 0)
    return ends


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: Otherwise the body waits for the acknowledgement of the headers.
    disable_nagle_algorithm = True
    server: _Http

    def setup(self) -> None:
        super().setup()
        with self.server.told.lock:
            self.server.told.connections += 1

    def _handle(self) -> None:
        told = self.server.told
        url = urlsplit(self.path)
        query = parse_qs(url.query, keep_blank_values=True)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        name = unquote(url.path).lstrip("/")
        if "prefix" in query:
            name = f"{name.rstrip('/')}/{query['prefix'][0]}"
        signed = re.search(r"Credential=([^/]+)/", self.headers.get("authorization", ""))
        key_id = signed[1] if signed else ""
        if self.command == "POST" and "delete" in query:
            self._delete_many(key_id, name.rstrip("/"), body)
        elif not told.permit(Used(key_id, self.command, name)):
            self._send(403, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
        else:
            time.sleep(told.delay)
            self._answer(name, query, body)

    def _answer(self, name: str, query: dict[str, list[str]], body: bytes) -> None:
        told = self.server.told
        if "prefix" in query:
            self._list(name)
        elif self.command == "PUT":
            if self.headers.get("if-none-match") == "*" and name in told.objects:
                self._send(412)
            else:
                told.objects[name] = body
                self._send(200)
        elif self.command == "DELETE":
            told.objects.pop(name, None)
            self._send(204)
        elif name not in told.objects:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            self._get(told.objects[name])

    def _get(self, data: bytes) -> None:
        if found := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("range", "")):
            first, last = int(found[1]), min(int(found[2] or len(data)), len(data) - 1)
            span = {"content-range": f"bytes {first}-{last}/{len(data)}"}
            self._send(206, data[first : last + 1], span)
        else:
            self._send(200, data)

    def _list(self, prefix: str) -> None:
        bucket = prefix.partition("/")[0]
        found = sorted(name for name in self.server.told.objects if name.startswith(prefix))
        entries = "".join(
            f"<Contents><Key>{escape(name.partition('/')[2])}</Key><Size>{len(self.server.told.objects[name])}</Size>"
            '<LastModified>2015-10-21T07:28:00.000Z</LastModified><ETag>"x"</ETag></Contents>'
            for name in found
        )
        answer = f"<ListBucketResult><Name>{bucket}</Name><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>"
        self._send(200, answer.encode())

    def _delete_many(self, key_id: str, bucket: str, body: bytes) -> None:
        names = [f"{bucket}/{unescape(name)}" for name in re.findall(r"<Key>(.*?)</Key>", body.decode())]
        answer = ""
        for name in names:
            key = escape(name.partition("/")[2])
            if self.server.told.permit(Used(key_id, "DELETE", name)):
                self.server.told.objects.pop(name, None)
                answer += f"<Deleted><Key>{key}</Key></Deleted>"
            else:
                answer += f"<Error><Key>{key}</Key><Code>AccessDenied</Code><Message>no</Message></Error>"
        self._send(200, f"<DeleteResult>{answer}</DeleteResult>".encode())

    def _send(self, status: int, content: bytes = b"", headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        own = {"last-modified": "Wed, 21 Oct 2015 07:28:00 GMT", "etag": '"x"', "content-length": str(len(content))}
        for name, value in {**own, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _handle  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    told: S3


@contextmanager
def s3() -> Iterator[S3]:
    """Run a server."""
    made = S3()
    http = _Http(("127.0.0.1", 0), _Handler)
    http.told = made
    made.url = f"http://127.0.0.1:{http.server_address[1]}"
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield made
    finally:
        http.shutdown()
        http.server_close()
