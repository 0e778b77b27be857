"""Metadata that a stranger hands over: what it makes us read, and what errors repeat of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import IcefieldError, StorageError

ROWS = pa.table({"n": pa.array([1], pa.int64())})
HUSH = "hush-4711"


class Server(BaseHTTPRequestHandler):
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = json.dumps({"SecretAccessKey": HUSH}).encode()
        status = int(self.path.split("/")[1])
        self.send_response(status)
        if status // 100 == 3:
            self.send_header("Location", "/200/internal")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - the name that the server calls

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    made = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Server,), {"asked": asked}))
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{made.server_port}", asked
    made.shutdown()
    made.server_close()


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    catalog = ice.load_catalog("c", type="in-memory", warehouse=str(tmp_path / "w"))
    catalog.create_namespace("a")
    return catalog.create_table("a.t", ROWS).append(ROWS)


def pointed_at(table: ice.Table, path: Path, manifest_list: str) -> str:
    text = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    text["snapshots"][0]["manifest-list"] = manifest_list
    path.write_text(json.dumps(text))
    return str(path)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 400, 401, 403, 404, 409, 410, 418])
def test_what_a_web_server_answers_is_not_repeated_and_redirects_are_not_followed(
    table: ice.Table, tmp_path: Path, server: tuple[str, list[str]], status: int
) -> None:
    url, asked = server
    evil = pointed_at(table, tmp_path / "evil.metadata.json", f"{url}/{status}/x.avro")
    for read in (
        lambda: ice.Table.from_metadata(evil).scan().to_arrow(),
        lambda: ice.orc.read_table(f"{url}/{status}/x"),
    ):
        with pytest.raises(IcefieldError) as raised:
            read()
        assert HUSH not in str(raised.value)
        assert f"{url}/{status}/x" in str(raised.value)
        if status // 100 == 3:
            assert "redirects are not followed" in str(raised.value)
    assert asked
    assert not [path for path in asked if "internal" in path]


def test_only_locations_that_are_allowed_are_read_and_written(
    table: ice.Table, tmp_path: Path, server: tuple[str, list[str]]
) -> None:
    url, asked = server
    (tmp_path / "secret.avro").write_text("secret")
    for allowed in ("warehouse", f"s3://b/t, {tmp_path}/w", f"file://{tmp_path}/w/"):
        catalog = ice.load_catalog(
            "mine", **{"type": "in-memory", "warehouse": str(tmp_path / "w"), "io.allowed-locations": allowed}
        )
        catalog.create_namespace("a")
        opened = catalog.register_table("a.t", table.metadata_location)
        assert opened.scan().count() == 1
        for place in (f"{url}/200/x", str(tmp_path / "secret.avro"), f"{tmp_path}/w/../secret.avro"):
            evil = pointed_at(table, tmp_path / "w" / "evil.metadata.json", place)
            asked.clear()
            with pytest.raises(StorageError, match=r"io\.allowed-locations does not allow"):
                ice.Table.from_metadata(evil, **{"io.allowed-locations": str(tmp_path / "w")}).scan().to_arrow()
            with pytest.raises(StorageError, match=r"io\.allowed-locations does not allow"):
                catalog.register_table(f"a.evil{len(catalog.list_tables('a'))}", evil).scan().to_arrow()
            assert not asked
        with pytest.raises(StorageError, match=r"io\.allowed-locations does not allow"):
            catalog.register_table("a.out", pointed_at(table, tmp_path / "out.metadata.json", "x"))
        with pytest.raises(StorageError, match=r"io\.allowed-locations does not allow"):
            catalog.create_table("a.far", ROWS, location=str(tmp_path / "far"))
        assert not (tmp_path / "far").exists()
        # Executors are bound by it as well.
        assert "io.allowed-locations" in repr(opened.storage)
