"""The region of a bucket, for which S3 is asked where nobody gave one."""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import icefield as ice
from worlds.servers.certificates import self_signed

KEYS = {"s3.access-key-id": "k", "s3.secret-access-key": "s"}


class Answers:
    """What the server says about buckets, and what it was asked for."""

    def __init__(self) -> None:
        #: By bucket: the status, and the region that the answer has.
        self.buckets: dict[str, tuple[int, str | None]] = {}
        #: Buckets that were asked for, and the regions in the signatures of what was read.
        self.asked: list[str] = []
        self.signed: list[str] = []
        #: Servers that a proxy was asked to reach.
        self.reached: list[str] = []
        self.url = ""


@contextmanager
def served(tls: tuple[Path, Path] | None = None) -> Iterator[Answers]:
    """Serve S3; with a certificate, as a proxy that answers for every server."""
    answers = Answers()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        host = ""

        def bucket(self) -> str:
            return self.host.partition(".s3")[0] if ".s3" in self.host else self.path.strip("/").split("/")[0]

        def do_CONNECT(self) -> None:
            assert tls is not None
            answers.reached.append(self.path)
            self.host = self.path.partition(":")[0]
            self.send_response(200)
            self.end_headers()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.connection = context.wrap_socket(self.connection, server_side=True)
            self.rfile, self.wfile = self.connection.makefile("rb", -1), self.connection.makefile("wb", 0)
            self.close_connection = False

        def do_HEAD(self) -> None:
            answers.asked.append(self.bucket())
            status, region = answers.buckets[self.bucket()]
            if status == 0:
                self.close_connection = True
                return
            self.send_response(status)
            if region is not None:
                self.send_header("x-amz-bucket-region", region)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self) -> None:
            answers.signed.append(self.headers["Authorization"].partition("Credential=")[2].split("/")[2])
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.send_header("Last-Modified", "Sat, 28 Nov 2026 00:00:00 GMT")
            self.send_header("ETag", '"e"')
            self.end_headers()
            self.wfile.write(b"bytes")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        answers.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield answers
        server.shutdown()


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


def read(where: str, **properties: Any) -> bytes:
    with_dots = {name.replace("__", ".").replace("_", "-"): value for name, value in properties.items()}
    catalog = ice.load_catalog("c", type="in-memory", warehouse="s3://wh", **KEYS, **with_dots)
    return catalog.storage.read(where)


@pytest.mark.parametrize("status", [200, 301, 400, 403])
def test_any_answer_about_a_bucket_has_its_region(status: int) -> None:
    with served() as s3:
        s3.buckets = {"one": (status, "eu-north-1"), "two.dots": (status, "ap-south-2")}
        for bucket, region in (("one", "eu-north-1"), ("two.dots", "ap-south-2")):
            for given in ({}, {"s3__region": "us-west-1"}, {"client__region": region}):
                more = {"s3__endpoint": s3.url, "s3__resolve_region": "true", **given}
                assert read(f"s3://{bucket}/x", **more) == b"bytes"
                assert s3.signed.pop() == region
        # Once for each bucket: later catalogs of the process know it.
        assert s3.asked == ["one", "two.dots"]


@pytest.mark.parametrize(
    "answer", [(404, None), (403, None), (200, ""), (200, "x.evil.example/"), (500, None), (0, None)]
)
def test_without_an_answer_the_region_is_the_given_one_or_the_first_of_amazon(answer: tuple[int, str | None]) -> None:
    with served() as s3:
        s3.buckets["b"] = answer
        more = {"s3__endpoint": s3.url, "s3__resolve_region": "true"}
        assert read("s3://b/x", s3__region="eu-west-3", **more) == b"bytes"
        asked = len(s3.asked)
        assert asked >= 1
        assert read("s3://b/x", **more) == b"bytes"
        assert s3.signed == ["eu-west-3", "us-east-1"]
        assert len(s3.asked) == asked


@pytest.mark.parametrize("more", [{}, {"s3__region": "r"}, {"s3__resolve_region": "false"}])
def test_a_server_of_ones_own_is_not_asked(more: dict[str, str]) -> None:
    with served() as s3:
        assert read("s3://b/x", s3__endpoint=s3.url, **more) == b"bytes"
        assert s3.asked == []
        assert s3.signed == [more.get("s3__region", "us-east-1")]


def test_amazon_is_asked_where_no_region_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with served(self_signed(tmp_path, "RSA")) as s3:
        s3.buckets = {"bucket": (403, "eu-central-1"), "with.dots": (200, "eu-central-2")}
        through = {"s3__proxy_uri": s3.url, "tls__verify": "false"}
        assert read("s3://bucket/x", s3__region="eu-west-1", **through) == b"bytes"
        assert read("s3://bucket/x", s3__resolve_region="false", **through) == b"bytes"
        monkeypatch.setenv("AWS_REGION", "eu-west-2")
        assert read("s3://bucket/x", **through) == b"bytes"
        monkeypatch.delenv("AWS_REGION")
        assert s3.asked == []
        assert read("s3://bucket/x", **through) == b"bytes"
        assert read("s3://with.dots/x", **through) == b"bytes"
        assert s3.signed == ["eu-west-1", "us-east-1", "eu-west-2", "eu-central-1", "eu-central-2"]
        assert s3.asked == ["bucket", "with.dots"]
        assert "bucket.s3.amazonaws.com:443" in s3.reached
        assert "s3.amazonaws.com:443" in s3.reached
        assert all("eu-" in server or "us-east-1" in server for server in s3.reached if server.count(".") > 3)


def test_the_property_of_an_endpoint_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with served() as s3:
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")
        assert read("s3://b/x", s3__endpoint=s3.url) == b"bytes"


def test_a_wrong_flag_is_refused() -> None:
    with pytest.raises(ice.InvalidArgumentError, match=r"property s3\.resolve-region: expected true or false"):
        read("s3://b/x", s3__resolve_region="maybe")
