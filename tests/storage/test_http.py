"""Tables and files on a web server, which serves ranges as stores do; some of its URLs are signed for ``GET`` alone."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote, urlsplit

import pyarrow as pa
import pytest

import icefield as ice

SIGNATURE = "canary/+="


@pytest.fixture
def host(tmp_path: Path) -> Iterator[str]:
    """Serve ``tmp_path``: all of it, but for ``signed/`` only what is signed, and no ``HEAD`` there."""

    class Files(BaseHTTPRequestHandler):
        def answer(self, *, body: bool) -> None:
            url = urlsplit(self.path)
            place = unquote(url.path).lstrip("/")
            if place.startswith("signed/") and (not body or parse_qs(url.query).get("sig") != [SIGNATURE]):
                self.send_error(403)
                return
            try:
                data = (tmp_path / place).read_bytes()
            except OSError:
                self.send_error(404)
                return
            if asked := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
                first, last = int(asked[1]), min(int(asked[2]), len(data) - 1)
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
                data = data[first : last + 1]
            else:
                self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

        def do_GET(self) -> None:
            self.answer(body=True)

        def do_HEAD(self) -> None:
            self.answer(body=False)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Files) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_table_is_read_from_a_web_server(tmp_path, host):
    catalog = ice.load_catalog("here", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    table = catalog.create_table("n.t", schema=pa.schema({"day": pa.string(), "n": pa.int64()}), partition_by="day")
    rows = pa.table({"day": ["a b", "c:d%", "a b"], "n": [1, 2, 3]})
    table.append(rows)
    place = table.metadata_location.replace(f"file://{tmp_path}", host)
    found = ice.Table.from_metadata(place, relocate={f"file://{tmp_path}": host})
    assert found.scan().to_arrow().sort_by("n").equals(rows.sort_by("n"))
    with pytest.raises(ice.IcefieldError):
        found.append(rows)


def test_a_signed_url_opens_what_it_is_signed_for(tmp_path, host):
    rows = pa.table({"n": list(range(10_000)), "text": [f"text {number}" for number in range(10_000)]})
    (tmp_path / "signed").mkdir()
    place = tmp_path / "signed" / "a b+c%.orc"
    ice.orc.write_table(rows, str(place))
    url = f"{host}/signed/{quote(place.name)}"
    signed = f"{url}?sig={quote(SIGNATURE, safe='')}"
    assert ice.orc.read_table(signed).equals(rows)
    assert ice.orc.ORCFile(signed).nrows == len(rows)
    for other in (url, f"{url}?sig=other", f"{host}/signed/nothing.orc?sig={quote(SIGNATURE, safe='')}"):
        with pytest.raises(ice.IcefieldError) as raised:
            ice.orc.read_table(other)
        assert "canary" not in str(raised.value)
        assert "signed/" in str(raised.value)
