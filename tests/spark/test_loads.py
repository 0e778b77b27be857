"""How often a query of Spark reads the metadata of its table, whose columns, filters and tasks it asks for apart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Asked(SimpleHTTPRequestHandler):
    """Serves a folder and notes which files were asked for."""

    def __init__(self, *given: object, files: list[str], **named: object) -> None:
        self.files = files
        super().__init__(*given, **named)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.files.append(Path(self.path).name)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Keep quiet."""


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[tuple[str, list[str]]]:
    """Serve ``tmp_path``; give the address, and the files that were asked for."""
    files: list[str] = []
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Asked, files=files, directory=tmp_path)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", files
        server.shutdown()


def test_the_metadata_of_a_table_is_read_by_what_plans(
    spark: SparkSession, catalog: ice.Catalog, options: dict[str, str], asked: tuple[str, list[str]], tmp_path: Path
) -> None:
    """At most once for each of columns, filters and tasks; tasks carry what they need and read none."""
    address, files = asked
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]))
    for first in range(0, 80, 10):
        table.append(pa.table({"id": range(first, first + 10)}))
    metadata = table.metadata_location.replace(f"file://{tmp_path}", address)
    catalog.register_table("db.served", metadata)
    files.clear()
    reader = spark.read.format("icefield").options(**options).option("split-size", 1).option("file-open-cost", 1)
    frame = reader.load("db.served")
    assert files == [Path(metadata).name]
    assert frame.rdd.getNumPartitions() == 8
    assert frame.count() == 80
    assert sorted(row.id for row in frame.where("id >= 70").collect()) == list(range(70, 80))
    # One of the columns, and two for each of the three plans.
    assert 1 <= len(files) <= 7
    assert set(files) == {Path(metadata).name}
