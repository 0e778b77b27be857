"""What a scan asks a web server for: how many requests, of which files, how many bytes."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pytest

import icefield as ice

ROWS = 20_000


class Server:
    """The files of a folder, and what was asked for of them: name and number of bytes."""

    def __init__(self, folder: Path) -> None:
        self.asked: list[tuple[str, int]] = []
        #: Seconds that an answer takes; how many answers were on their way at once, at the most.
        self.delay = 0.0
        self.most_at_once = 0
        asked, counting, server = self.asked, threading.Lock(), self
        on_their_way = [0]

        class Files(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with counting:
                    on_their_way[0] += 1
                    server.most_at_once = max(server.most_at_once, on_their_way[0])
                time.sleep(server.delay)
                with counting:
                    on_their_way[0] -= 1
                place = unquote(urlsplit(self.path).path).lstrip("/")
                data = (folder / place).read_bytes()
                size = len(data)
                if found := re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", "")):
                    first, last = int(found[1]), min(int(found[2]), size - 1)
                    data = data[first : last + 1]
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
                else:
                    self.send_response(200)
                asked.append((Path(place).name, len(data)))
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_HEAD(self) -> None:
                asked.append((f"HEAD {self.path}", 0))
                self.send_response(200)
                self.send_header("Content-Length", str((folder / unquote(self.path).lstrip("/")).stat().st_size))
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Files)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def files(self) -> list[tuple[str, int]]:
        """Give what was asked for of data files since the last call."""
        found = [one for one in self.asked if one[0].endswith(".parquet")]
        self.asked.clear()
        return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    served = Server(tmp_path)
    yield served
    served.http.shutdown()
    served.http.server_close()


@pytest.fixture
def table(tmp_path: Path, server: Server) -> ice.Table:
    """Make a table of five files, each of four row groups, that is read from the server."""
    properties = {
        "format-version": "3",
        "write.parquet.row-group-limit": str(ROWS // 4),
        "write.parquet.page-row-limit": "1000",
        "write.parquet.compression-codec": "uncompressed",
        "write.parquet.bloom-filter-enabled.column.code": "true",
    }
    with ice.load_catalog("here", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}") as catalog:
        catalog.create_namespace("n")
        schema = {"id": pa.int64(), "code": pa.int64(), "text": pa.string(), "noise": pa.float64()}
        made = catalog.create_table("n.t", schema=pa.schema(schema), properties=properties)
        for start in range(0, 5 * ROWS, ROWS):
            draw = np.random.default_rng(start)
            ids = np.arange(start, start + ROWS)
            texts = [f"{n % 50:03} {n // 5000}" for n in ids]
            columns = [ids, draw.integers(0, 1 << 60, ROWS), texts, draw.random(ROWS)]
            made.append(pa.table(dict(zip(schema, columns, strict=True))))
    place = made.metadata_location.replace(f"file://{tmp_path}", server.url)
    found = ice.Table.from_metadata(place, relocate={f"file://{tmp_path}": server.url})
    server.files()
    return found


def test_a_file_costs_a_request_for_its_footer_and_one_for_a_piece(table: ice.Table, server: Server) -> None:
    assert table.scan().to_arrow().num_rows == 5 * ROWS
    first = server.files()
    # The sizes of files are known from manifests. What lies close is fetched in one request.
    assert not [name for name, _ in first if name.startswith("HEAD")]
    assert len(first) <= 5 * (1 + 4)
    assert table.scan().to_arrow().num_rows == 5 * ROWS
    again = server.files()
    # The footers are there.
    assert len(again) == len(first) - 5


def test_files_are_fetched_while_others_are_decoded(
    table: ice.Table, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ICEFIELD_THREADS", "1")
    assert table.scan().to_arrow().num_rows == 5 * ROWS
    server.delay, server.most_at_once = 0.1, 0
    assert table.scan().to_arrow().num_rows == 5 * ROWS
    assert server.most_at_once == 2


def test_a_limit_opens_one_file(table: ice.Table, server: Server) -> None:
    assert table.scan(limit=10).to_arrow().num_rows == 10
    found = server.files()
    assert len({name for name, _ in found}) == 1
    size = table.scan().plan_files().files[0]["file_size_in_bytes"]
    # Nothing twice; how far the reader is ahead within the file when the last row is taken depends on the machine.
    assert sum(size for _, size in found) < (64 << 10) + size


@pytest.mark.parametrize(
    ("condition", "rows", "share"),
    [
        # The last page of each column is read, too.
        ("id = 31000", 1, 0.05),
        ("id >= 31000 AND id < 31010", 10, 0.05),
        ("text = '007 3'", 100, 0.06),
        ("text = '007x 3'", 0, 0.01),
        ("code = 576460752303423488", 0, 0.12),
        ("_pos >= 31 AND _pos < 41", 50, 0.25),
        ("_row_id = 31000", 1, 0.06),
    ],
)
def test_pages_and_row_groups_that_cannot_match_are_not_fetched(
    table: ice.Table, server: Server, condition: str, rows: int, share: float
) -> None:
    whole = table.scan().to_arrow().num_rows
    assert whole == 5 * ROWS
    server.files()
    found = table.scan(condition).to_arrow()
    assert found.num_rows == rows
    read = sum(size for _, size in server.files())
    size = sum(file["file_size_in_bytes"] for file in table.scan().plan_files().files)
    assert read < share * size, f"{read} of {size} bytes"


def test_checks_ask_once_for_what_branches_and_vectors_share(tmp_path: Path, server: Server) -> None:
    catalog = ice.load_catalog("here", uri=f"sqlite:///{tmp_path}/c.db", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("n")
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("n.t", pa.schema({"part": pa.int64(), "id": pa.int64()}), partition_by="part")
    table.update_properties(properties)
    parts = 8
    table.append(pa.table({"part": [*range(parts)] * 2, "id": [1] * parts + [2] * parts}))
    table.delete("id = 2")
    vectors = table.inspect.delete_files()["file_path"].to_pylist()
    for _ in range(3):
        table.append(pa.table({"part": [0], "id": [1]}))
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_tag(snapshot.snapshot_id, f"tag{snapshot.snapshot_id}").commit()
    place = table.metadata_location.replace(f"file://{tmp_path}", server.url)
    opened = ice.Table.from_metadata(place, relocate={f"file://{tmp_path}": server.url})
    server.asked.clear()
    assert opened.fsck("footers").ok
    asked = [name for name, _ in server.asked]
    manifests = [name for name in asked if name.endswith("avro") and not name.startswith(("snap-", "HEAD"))]
    # For its entries, and once for the current snapshot and all tags.
    assert {manifests.count(name) for name in set(manifests)} == {2}
    # Its size, the end of its footer, and the footer.
    assert (len(vectors), len(set(vectors))) == (parts, 1)
    assert len([name for name in asked if name.endswith(".puffin")]) == 3
