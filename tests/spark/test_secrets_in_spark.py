"""What goes to executors has the storage of the table, and no credential of the catalog."""

from __future__ import annotations

import os
import pickle
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice

pytest.importorskip("pyspark")

from pyspark import cloudpickle

from icefield.catalog.memory import InMemoryCatalog
from icefield.distributed import Storage
from icefield.errors import StorageError
from icefield.spark import spark_schema
from icefield.spark.reads import streaming
from icefield.spark.reads.reading import of_scan
from icefield.spark.sinks.batch import Written
from icefield.spark.source import Source
from icefield.spark.tables import handover
from icefield.spark.tables.opening import SourceOptions
from icefield.spark.writes.writing import write_task

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HUSH = "hush-4711"
SCHEMA = pa.schema([("n", pa.int64())])
#: Properties that are of the catalog alone.
SECRETS = {
    "token": HUSH,
    "credential": f"me:{HUSH}",
    "jdbc.password": HUSH,
    "header.Authorization": f"Bearer {HUSH}",
    "auth.oauth2.client_secret": HUSH,
    "oauth2-server-uri": f"https://me:{HUSH}@host/token",
}


class Catalog(InMemoryCatalog):
    """A catalog whose storage has no credentials: what that pickles is looked at in tests/unit/test_secrets.py."""

    @property
    def storage(self) -> Storage:
        return Storage({})


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    catalog = Catalog("c", warehouse=str(tmp_path), uri=f"postgresql://u:{HUSH}@h/d", **SECRETS)
    catalog.create_namespace("a")
    return catalog.create_table("a.t", SCHEMA).append(pa.table({"n": [1, 2]}, schema=SCHEMA))


class Given:
    """Options of a source, and the table that they are taken to name."""

    def __init__(self, table: ice.Table, **more: str) -> None:
        self.table = table
        self.options = {"path": "a.t", "catalog": "c", "uri": f"postgresql://u:{HUSH}@h/d", **SECRETS, **more}

    def source(self, monkeypatch: pytest.MonkeyPatch) -> Source:
        monkeypatch.setattr(SourceOptions, "open", lambda _: self.table)
        return Source(self.options)


def test_what_the_data_source_sends_to_tasks(table: ice.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark pickles the source itself, the reader and the partitions for tasks; the source for the planner too."""
    given = Given(table)
    source = given.source(monkeypatch)
    schema = source.schema()
    planner = pickle.loads(cloudpickle.dumps(source))
    assert planner.options["token"] == HUSH
    reader = planner.reader(schema)
    stream = streaming.STREAM_READER(given.options, schema, None)
    stream.initialOffset()
    sent = [reader, stream, planner, *reader.partitions()]
    sent += [Source({**given.options, "path": f"a.t.{what}"}) for what in ()]
    for one in sent:
        assert HUSH.encode() not in cloudpickle.dumps(one), one
    streamed = given.source(monkeypatch)
    streamed.streamReader(schema)
    assert HUSH.encode() not in cloudpickle.dumps(streamed)
    received = pickle.loads(cloudpickle.dumps(reader))
    read = [batch for part in reader.partitions() for batch in received.read(pickle.loads(pickle.dumps(part)))]
    assert [row["n"] for batch in read for row in batch.to_pylist()] == [1, 2]


def test_the_writer_of_the_data_source(table: ice.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks and the committer get the same pickle: the options wait in a file for the committer."""
    local = tmp_path / "blocks"
    local.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path}/none,{local}")
    given = Given(table, **{"snapshot-property.by": "me", "idempotency-key": "k"})
    for ending in ("commit", "abort"):
        writer = given.source(monkeypatch).writer(spark_schema(table.schema()), overwrite=False)
        to_tasks, to_committer = cloudpickle.dumps(writer), cloudpickle.dumps(writer)
        assert HUSH.encode() not in to_tasks + to_committer
        (file,) = local.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert HUSH in file.read_text()
        message = Written(
            write_task(pickle.loads(to_tasks)._write, iter([pa.record_batch({"n": [3]}, SCHEMA)]), clustered=False)
        )
        committer = pickle.loads(to_committer)
        if ending == "commit":
            committer.commit([message])
        else:
            committer.abort([message, None])
        assert list(local.iterdir()) == []
    assert table.refresh().scan().count() == 3
    assert table.current_snapshot().summary["by"] == "me"
    # A file that somebody has deleted is named, and nothing of the write is left.
    lost = given.source(monkeypatch).writer(spark_schema(table.schema()), overwrite=False)
    message = Written(write_task(lost._write, iter([pa.record_batch({"n": [4]}, SCHEMA)]), clustered=False))
    committer = pickle.loads(cloudpickle.dumps(lost))
    (file,) = local.iterdir()
    file.unlink()
    with pytest.raises(
        StorageError, match=r"icefield-writer-.*\.json, which cannot be read .*a catalog that is configured"
    ):
        committer.commit([message])
    assert len(list(table.storage.list(f"{table.location()}/data"))) == 2


@pytest.mark.parametrize(
    ("properties", "waits"),
    [
        ({}, False),
        ({"uri": "sqlite:///c.db", "warehouse": "wh", "type": "sql"}, False),
        ({"uri": "sqlite+pysqlcipher://:x@/c.db"}, True),
        ({"uri": f"postgresql://u:{HUSH}@h/d"}, True),
        ({"s3.endpoint": f"http://u:{HUSH}@h"}, True),
    ],
)
def test_which_options_wait_in_a_file(properties: dict[str, str], waits: bool) -> None:
    assert SourceOptions.of({"path": "a.t", **properties}).may_have_secrets == waits
    assert HUSH not in repr(SourceOptions.of({"path": "a.t", **properties}))


def test_closures_of_reads_and_appends(spark: SparkSession, table: ice.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every function that these send to executors is looked at."""
    from pyspark.sql.classic.dataframe import DataFrame as Classic

    import icefield.spark as ice_spark

    sent: list[bytes] = []
    map_in_arrow = Classic.mapInArrow

    def spying(self: DataFrame, function: Any, *args: Any, **more: Any) -> DataFrame:
        sent.append(cloudpickle.dumps(function))
        return map_in_arrow(self, function, *args, **more)

    monkeypatch.setattr(Classic, "mapInArrow", spying)
    ice_spark.append(spark.range(1).selectExpr("id AS n"), table)
    of_scan(spark, table.scan(), native=False)
    of_scan(spark, table.incremental_changelog_scan(net_changes=True))
    ice_spark.read_inspect(spark, table, "files")
    assert len(sent) == 4
    assert [HUSH.encode() in one for one in sent] == [False] * 4


def test_files_of_options_are_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.chdir(tmp_path)
    path = handover.keep({"token": HUSH})
    assert Path(path).parent != tmp_path
    assert handover.kept(path) == {"token": HUSH}
    handover.forget(path)
    handover.forget(path)
    assert not os.path.exists(path)
