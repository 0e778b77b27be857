"""SQLite for the SQL catalog: waiting for other writers, the journal, files that cannot be written."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

from icefield._support.optional import require
from icefield.errors import InvalidArgumentError, StorageError

if TYPE_CHECKING:
    import sqlalchemy as sa
    from typing_extensions import Self

__all__ = ["missing_database", "open_sqlite", "use_write_ahead_log"]

#: Seconds that a statement waits for another writer.
_BUSY_SECONDS = 60.0
#: Seconds of it that are spent inside SQLite at a time: it does not see Ctrl-C.
_UNSEEN_SECONDS = 0.25
#: What a path on Windows begins with.
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
#: Bytes 18 and 19 of a database with a write-ahead log.
_WRITE_AHEAD = b"\2\2"

_Result = TypeVar("_Result")


def open_sqlite(url: sa.URL) -> sa.Engine:
    """Open an engine that waits for other writers. The journal mode of an existing database is unchanged.

    Raises
    ------
    InvalidArgumentError
        If the URL has a host, as ``sqlite://folder/catalog.db`` does.
    StorageError
        If the folder of the database cannot be made.

    """
    if url.host:
        path = "/".join((url.host, url.database or ""))
        msg = (
            f"catalog property 'uri' is sqlite://{path}, which names a host, but SQLite has none: "
            f"use sqlite:///{path} (relative to the current folder), or sqlite:////folder/catalog.db"
        )
        raise InvalidArgumentError(msg)
    create: Callable[..., sa.Engine] = require("sqlalchemy").create_engine
    options: dict[str, object] = {
        "connect_args": {"timeout": _UNSEEN_SECONDS, "check_same_thread": False, "factory": _Connection}
    }
    if url.database in {None, "", ":memory:"}:
        options["poolclass"] = require("sqlalchemy.pool").StaticPool
    elif url.database and not url.database.startswith("file:"):
        url = _reachable(url, Path(url.database))
    engine = create(url, **options)

    def connected(connection: sqlite3.Connection, _record: object) -> None:
        # Transactions are begun below, where it is known whether they will write.
        connection.isolation_level = None

    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("icefield_write")
        # A reader that turned writer could not wait for others: it would hold an outdated snapshot.
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    listen = require("sqlalchemy.event").listen
    listen(engine, "connect", connected)
    listen(engine, "begin", begin)
    return engine


def missing_database(url: sa.URL) -> Path | None:
    """Return the file of a SQLite database, if it is not there.

    Raises
    ------
    InvalidArgumentError
        If it is on a drive of Windows, and this is another system: it would be a file of that name in this folder.

    """
    database = url.database
    in_memory = database in {None, "", ":memory:"}
    if url.drivername not in {"sqlite", "sqlite+pysqlite"} or url.host or in_memory or database is None:
        return None
    if database.startswith("file:"):
        return None
    if os.name != "nt" and _DRIVE.match(database):
        msg = f"catalog property 'uri' is sqlite:///{database}, on a drive of Windows, which this machine does not have"
        raise InvalidArgumentError(msg)
    path = Path(database)
    return None if path.exists() else path


def use_write_ahead_log(engine: sa.Engine) -> None:
    """Let readers and a writer of a new database never wait for each other; others keep the journal that they have."""
    with closing(engine.raw_connection()) as connection, suppress(sqlite3.OperationalError):
        connection.cursor().execute("PRAGMA journal_mode=WAL")


def _reachable(url: sa.URL, path: Path) -> sa.URL:
    """Create the folder of a database; return the URL, read-only if the database cannot be written."""
    folder = path.expanduser().parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot create the folder {folder} of the catalog: {error.strerror}") from error
    if not _is_frozen(path):
        return url
    database = f"file:{quote(str(path.absolute()))}"
    return url.set(database=database, query={**url.query, "mode": "ro", "immutable": "1", "uri": "true"})


def _is_frozen(path: Path) -> bool:
    """Return whether SQLite cannot read a database without writing next to it (a log on a read-only mount)."""
    # A file that is closed loses the locks of all connections that this process has to it: another process takes
    # itself for the last one then, and deletes the log under them. So it is opened only where nobody can write.
    if os.access(path.absolute().parent, os.W_OK):
        return False
    try:
        with path.open("rb") as file:
            head = file.read(20)
    except OSError:
        return False
    # Data that is only in the log is not in the database yet.
    logged = _size(path.with_name(f"{path.name}-wal")) > 0
    return head[18:20] == _WRITE_AHEAD and not logged


def _size(path: Path) -> int:
    """Return the bytes of a file, 0 if it is missing: the last connection to close deletes the log at any moment."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _patiently(call: Callable[..., _Result], *arguments: object) -> _Result:
    """Call, again and again while another connection has the database locked; between the calls Python sees Ctrl-C."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return call(*arguments)
        except sqlite3.OperationalError as error:
            if "is locked" not in str(error) or time.monotonic() >= until:
                raise


class _Cursor(sqlite3.Cursor):
    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        return _patiently(super().execute, sql, parameters)


class _Connection(sqlite3.Connection):
    def cursor(self, *arguments: Any, **options: Any) -> Any:
        return super().cursor(*arguments, **{"factory": _Cursor, **options})

    def commit(self) -> None:
        _patiently(super().commit)
