"""SQLite beneath the catalog: its journal, files that cannot be written, waiting for others, Ctrl-C."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.sql import SqlCatalog
from icefield.errors import NoSuchNamespaceError, NoSuchTableError

ROWS = pa.table({"id": pa.array([1, 2], pa.int64())})


def opened(path, **properties):
    return SqlCatalog("c", uri=f"sqlite:///{path}", warehouse=str(path.parent / "wh"), **properties)


def journal(path):
    with closing(sqlite3.connect(path)) as raw:
        return raw.execute("PRAGMA journal_mode").fetchone()[0]


@pytest.fixture
def theirs(tmp_path):
    """Make a database as PyIceberg does, with a table."""
    from pyiceberg.catalog.sql import SqlCatalog as Theirs

    path = tmp_path / "theirs.db"
    catalog = Theirs("c", uri=f"sqlite:///{path}", warehouse=f"file://{tmp_path}/wh")
    catalog.create_namespace("a")
    catalog.create_table("a.t", ROWS.schema).append(ROWS)
    catalog.engine.dispose()
    return path


def test_reading_leaves_a_database_as_it_is(theirs):
    before = theirs.read_bytes()
    with opened(theirs) as catalog:
        assert catalog.list_namespaces() == [("a",)]
        assert catalog.list_tables("a") == [("a", "t")]
        assert catalog.load_table("a.t").scan().count() == 2
        assert not catalog.table_exists("a.u")
    assert theirs.read_bytes() == before
    assert [path.name for path in theirs.parent.glob("theirs.db*")] == ["theirs.db"]
    assert journal(theirs) == "delete"


def test_writing_keeps_the_journal_too(theirs):
    with opened(theirs) as catalog:
        catalog.load_table("a.t").append(ROWS)
        assert catalog.load_table("a.t").scan().count() == 4
    assert journal(theirs) == "delete"


def test_a_new_database_has_a_write_ahead_log(tmp_path):
    with opened(tmp_path / "ours.db") as catalog:
        catalog.create_namespace("a")
    assert journal(tmp_path / "ours.db") == "wal"


READ_ONLY = """
import ctypes, sys
# Root may write everywhere: give that up first.
libc = ctypes.CDLL(None, use_errno=True)
header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capset(header, none) == 0
import sqlite3
from icefield.catalog.sql import SqlCatalog
from icefield.errors import StorageError
path, warehouse = sys.argv[1:]
try:
    open(path + "x", "wb")
    sys.exit("the folder can be written")
except PermissionError:
    pass
with SqlCatalog("c", uri="sqlite:///" + path, warehouse=warehouse) as catalog:
    print(catalog.list_tables("a"), catalog.load_table("a.t").scan().count())
    try:
        catalog.create_namespace("b")
    except StorageError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="permissions as Linux has them")
@pytest.mark.parametrize("whose", ["theirs", "ours"])
def test_a_read_only_mount_is_read(theirs, tmp_path, whose):
    folder = tmp_path / "mount #1"
    folder.mkdir()
    path = folder / "catalog.db"
    if whose == "theirs":
        theirs.rename(path)
    else:
        with opened(path) as catalog:
            catalog.create_namespace("a")
            catalog.create_table("a.t", ROWS.schema).append(ROWS)
        assert journal(path) == "wal"
    path.chmod(0o444)
    folder.chmod(0o555)
    try:
        command = [sys.executable, "-c", READ_ONLY, str(path), str(tmp_path / "wh")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    finally:
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "[('a', 't')] 2"
    assert "readonly" in done.stdout
    assert [file.name for file in folder.glob("catalog.db*")] == ["catalog.db"]


class Locked:
    """Another process that is writing."""

    def __init__(self, path):
        self._raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def __enter__(self):
        self._raw.execute("BEGIN IMMEDIATE")
        return self._raw

    def __exit__(self, *_):
        self._raw.close()


@pytest.fixture
def ctrl_c():
    """A process that was started in the background ignores Ctrl-C, and tests may have their own handler."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("whose", ["theirs", "ours"])
@pytest.mark.parametrize("write", ["append", "properties", "namespace"])
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_ends_the_wait_for_a_lock(theirs, tmp_path, whose, write):
    path = theirs if whose == "theirs" else tmp_path / "ours.db"
    with opened(path) as catalog:
        if whose == "ours":
            catalog.create_namespace("a")
            catalog.create_table("a.t", ROWS.schema).append(ROWS)
        table = catalog.load_table("a.t")
        files = sorted(path for path in (tmp_path / "wh").rglob("*") if path.is_file())
        location = table.metadata_location
        calls = {
            "append": lambda: table.append(ROWS),
            "properties": lambda: table.update_properties({"k": "v"}),
            "namespace": lambda: catalog.create_namespace("b"),
        }
        with Locked(path):
            pressed = []

            def press():
                pressed.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)

            timer = threading.Timer(1, press)
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                calls[write]()
            ended = time.monotonic()
        assert ended - pressed[0] < 30  # it was sixty seconds; the machine may be busy
        assert sorted(path for path in (tmp_path / "wh").rglob("*") if path.is_file()) == files
        assert catalog.load_table("a.t").metadata_location == location
        assert catalog.list_namespaces() == [("a",)]
        # What was stopped can be done again.
        assert table.append(ROWS).scan().count() == 4


def test_a_write_waits_for_another_one(theirs):
    with opened(theirs) as catalog, Locked(theirs) as raw:
        threading.Timer(0.8, lambda: raw.execute("ROLLBACK")).start()
        catalog.create_namespace("b")
        assert catalog.namespace_exists("b")


def test_a_commit_waits_for_a_reader(theirs):
    """A rollback journal lets no commit pass while somebody reads."""
    with opened(theirs) as catalog, closing(sqlite3.connect(theirs, check_same_thread=False)) as raw:
        raw.isolation_level = None
        raw.execute("BEGIN")
        raw.execute("SELECT * FROM iceberg_tables").fetchall()
        threading.Timer(0.8, lambda: raw.execute("ROLLBACK")).start()
        catalog.create_namespace("b")
        assert catalog.namespace_exists("b")


def test_another_name_on_the_same_database_is_told(theirs):
    uri = f"sqlite:///{theirs}"
    other = SqlCatalog("other", uri=uri)
    held = "this database holds the catalog 'c': open it under that name"
    with pytest.raises(NoSuchTableError, match=rf"table a\.t does not exist in catalog other; {held}"):
        other.load_table("a.t")
    with pytest.raises(NoSuchNamespaceError, match=f"namespace a does not exist in catalog other; {held}"):
        other.list_tables("a")
    with pytest.warns(UserWarning, match=f"catalog other is empty; {held}"):
        assert other.list_namespaces() == []
    other.create_namespace("x")
    assert other.list_namespaces() == [("x",)]
    with pytest.raises(NoSuchTableError, match=r"table a\.t does not exist in catalog other; there is no namespace a$"):
        other.load_table("a.t")
    with (
        pytest.warns(UserWarning, match="holds the catalogs 'c', 'other'"),
        ice.load_catalog("third", uri=uri) as third,
    ):
        third.list_namespaces()
    other.close()


def test_reading_does_not_create_a_database(tmp_path):
    path = tmp_path / "mistyped" / "catalog.db"
    with opened(path) as catalog:
        with pytest.warns(UserWarning, match=f"catalog c is empty; there is no database {path} yet"):
            assert catalog.list_namespaces() == []
        assert not catalog.namespace_exists("a")
        assert not catalog.table_exists("a.t")
        assert catalog.catalog_names() == []
        for read in (catalog.list_tables, catalog.load_namespace_properties, catalog.list_namespaces):
            with pytest.raises(NoSuchNamespaceError, match="namespace a does not exist.*; there is no database"):
                read("a")
        with pytest.raises(NoSuchTableError, match="there is no database"):
            catalog.load_table("a.t")
        assert list(tmp_path.iterdir()) == []
    again = opened(path)
    # What is written creates it, and what another process creates is seen.
    with opened(path) as catalog:
        catalog.create_namespace("a")
        assert catalog.list_namespaces() == again.list_namespaces() == [("a",)]
        again.create_table("a.t", ROWS)
        assert catalog.load_table("a.t").scan().count() == 0
    again.close()


@pytest.mark.parametrize(
    "verb",
    [
        lambda catalog: catalog.load_table("a.t").append(ROWS),
        lambda catalog: catalog.create_table("a.u", ROWS),
        lambda catalog: catalog.register_table("a.u", catalog.load_table("a.t").metadata_location),
        lambda catalog: catalog.list_tables("a"),
        lambda catalog: catalog.list_views("a"),
        lambda catalog: catalog.rename_table("a.t", "a.u"),
        lambda catalog: catalog.drop_table("a.t"),
        lambda catalog: catalog.create_namespace("b"),
        lambda catalog: catalog.drop_namespace("empty"),
        lambda catalog: catalog.load_namespace_properties("a"),
        lambda catalog: catalog.update_namespace_properties("a", updates={"k": "v"}),
        lambda catalog: catalog.list_namespaces(),
        lambda catalog: catalog.catalog_names(),
    ],
)
@pytest.mark.parametrize("layout", ["V0", "V1"])
def test_a_database_that_another_process_creates_is_used_by_every_verb(tmp_path, verb, layout):
    path = tmp_path / "catalog.db"
    with opened(path) as catalog:
        with ice.load_catalog("c", uri=f"sqlite:///{path}", warehouse=str(tmp_path), schema_version=layout) as other:
            other.create_namespace("a")
            other.create_namespace("empty")
            other.create_table("a.t", ROWS)
        # A statement about the tables of two databases is a warning of SQLAlchemy, so an error here.
        verb(catalog)
        assert "a" in {name for (name,) in catalog.list_namespaces()}


def test_listings_of_the_command_line_create_nothing(tmp_path):
    from click.testing import CliRunner

    from icefield.cli.commands import icefield

    uri = f"sqlite:///{tmp_path}/nope/catalog.db"
    with pytest.warns(UserWarning, match="there is no database"):
        CliRunner().invoke(icefield, ["--catalog", "c", "--uri", uri, "catalog", "list"], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="it has drives")
def test_a_drive_of_windows_is_refused_where_there_are_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (r"C:\Users\me\c.db", "d:/c.db"):
        with pytest.raises(ice.InvalidArgumentError, match="drive of Windows"):
            ice.load_catalog("c", uri=f"sqlite:///{path}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_forked_child_opens_connections_of_its_own_however_many_engines_there_were(theirs):
    for _ in range(20):
        opened(theirs).close()
    catalog = opened(theirs)
    parents = catalog._engine.pool
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        own = catalog._engine.pool is not parents and catalog.list_namespaces() == [("a",)]
        os.write(writer, b"own" if own else b"not")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reader, 3) == b"own"
    assert catalog._engine.pool is parents
    assert catalog.list_namespaces() == [("a",)]


def test_an_empty_database_has_nothing_to_tell(tmp_path):
    with opened(tmp_path / "new.db") as catalog:
        catalog.create_namespace("x")
        catalog.drop_namespace("x")
        assert catalog.list_namespaces() == []
        with pytest.raises(NoSuchTableError, match="in catalog c; there is no namespace a$"):
            catalog.load_table("a.t")


def test_a_log_may_vanish_while_it_is_looked_at(tmp_path, monkeypatch):
    # The last connection to close deletes the log: a catalog that opens meanwhile saw it there, and then did not.
    path = tmp_path / "catalog.db"
    with closing(SqlCatalog("icefield", uri=f"sqlite:///{path}", warehouse=str(tmp_path))) as catalog:
        catalog.create_namespace("db")
    stat = Path.stat
    answers = []

    def vanishing(self, **options):
        if not self.name.endswith("-wal"):
            return stat(self, **options)
        if answers and answers.pop():
            return stat(path)
        raise FileNotFoundError(2, "No such file or directory", str(self))

    for seen in ([], [True]):
        answers[:] = seen
        monkeypatch.setattr(Path, "stat", vanishing)
        # Only where nobody can write beside it is it looked at.
        monkeypatch.setattr(os, "access", lambda *_: False)
        again = SqlCatalog("icefield", uri=f"sqlite:///{path}", warehouse=str(tmp_path))
        monkeypatch.undo()
        assert again.list_namespaces() == [("db",)]
        assert not answers


def test_connections_outlive_other_processes_however_often_a_database_is_opened(tmp_path):
    """A file that is closed loses the locks of its process: another one deleted the log under its connections."""
    path = tmp_path / "c.db"
    first = opened(path)
    first.create_namespace("a")
    table = first.create_table("a.t", ROWS.schema)
    script = """
import sys
from icefield.catalog.sql import SqlCatalog
import pyarrow as pa
catalog = SqlCatalog("c", uri=f"sqlite:///{sys.argv[1]}", warehouse=sys.argv[2])
table = catalog.load_table("a.t").append(pa.table({"id": pa.array([7], pa.int64())}))
print(table.scan().count())
"""
    told = []
    for _ in range(2):
        with closing(opened(path)) as second:
            assert second.load_table("a.t").metadata_location == table.refresh().metadata_location
        command = [sys.executable, "-c", script, path, tmp_path / "wh"]
        told.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
        table.append(ROWS)
    assert told == [1, 4]
    assert table.refresh().scan().count() == opened(path).load_table("a.t").scan().count() == 6
