"""The database of a SQL catalog: its connections, its two tables, and errors of it as icefield's."""

from __future__ import annotations

import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from icefield._support.optional import require
from icefield.catalog.sql.sqlite import open_sqlite, use_write_ahead_log
from icefield.errors import InvalidArgumentError, NotInstalledError, StorageError, UnsupportedFeatureError

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["TABLE", "VIEW", "Database", "Layout", "TakenError", "creates_tables", "errors_of", "sqlalchemy", "url_of"]

#: What the column ``iceberg_type`` says.
TABLE = "TABLE"
VIEW = "VIEW"


class TakenError(StorageError):
    """A key to be added already exists."""


class Database:
    """The connections to a database, and its tables."""

    def __init__(self, uri: str, properties: Mapping[str, str]) -> None:
        self.engine = _open(uri)
        # A database in memory has a single connection, which threads share one at a time.
        one_connection = isinstance(self.engine.pool, require("sqlalchemy.pool").StaticPool)
        self.one_at_a_time: AbstractContextManager[object] = threading.RLock() if one_connection else nullcontext()
        self.layout = Layout(self.engine, properties)


class Layout:
    """The two tables, as they are in this database."""

    def __init__(self, engine: sa.Engine, properties: Mapping[str, str]) -> None:
        sa = sqlalchemy()
        metadata = sa.MetaData()
        self.tables = sa.Table(
            "iceberg_tables",
            metadata,
            sa.Column("catalog_name", sa.String(255), primary_key=True),
            sa.Column("table_namespace", sa.String(255), primary_key=True),
            sa.Column("table_name", sa.String(255), primary_key=True),
            sa.Column("metadata_location", sa.String(1000)),
            sa.Column("previous_metadata_location", sa.String(1000)),
            sa.Column("iceberg_type", sa.String(5)),
        )
        self.properties = sa.Table(
            "iceberg_namespace_properties",
            metadata,
            sa.Column("catalog_name", sa.String(255), primary_key=True),
            sa.Column("namespace", sa.String(255), primary_key=True),
            sa.Column("property_key", sa.String(255), primary_key=True),
            sa.Column("property_value", sa.String(1000)),
        )
        with errors_of("the database"):
            if creates_tables(properties):
                self._create(engine, metadata)
            wanted = properties.get("schema_version", properties.get("jdbc.schema-version", "")).lower()
            self.typed = self._is_typed(engine)
            if not self.typed and wanted == "v1":
                self._upgrade(engine)

    def is_table(self) -> sa.ColumnElement[bool]:
        """Leave out views; rows of the layout V0 have no type and are tables."""
        kind = self.tables.c.iceberg_type
        found: sa.ColumnElement[bool] = (kind == TABLE) | kind.is_(None) if self.typed else sqlalchemy().true()
        return found

    def is_view(self) -> sa.ColumnElement[bool]:
        """Keep views alone."""
        found: sa.ColumnElement[bool] = self.tables.c.iceberg_type == VIEW if self.typed else sqlalchemy().false()
        return found

    @staticmethod
    def _create(engine: sa.Engine, metadata: sa.MetaData) -> None:
        there = set(sqlalchemy().inspect(engine).get_table_names())
        if set(metadata.tables) <= there:
            return
        if engine.name == "sqlite" and not there:
            use_write_ahead_log(engine)
        for last in (False, True):
            try:
                with engine.connect().execution_options(icefield_write=True) as connection, connection.begin():
                    metadata.create_all(connection)
            except (_exc().OperationalError, _exc().ProgrammingError, _exc().IntegrityError):
                # Another process may have made them in the same moment: then the second try finds them.
                if last:
                    raise
            else:
                return

    def _is_typed(self, engine: sa.Engine) -> bool:
        columns = sqlalchemy().inspect(engine).get_columns("iceberg_tables")
        return any(column["name"] == "iceberg_type" for column in columns)

    def _upgrade(self, engine: sa.Engine) -> None:
        try:
            with engine.connect().execution_options(icefield_write=True) as connection, connection.begin():
                connection.execute(sqlalchemy().text("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"))
        except (_exc().OperationalError, _exc().ProgrammingError):
            if not self._is_typed(engine):  # else another process was first
                raise
        self.typed = True


def sqlalchemy() -> Any:
    """Return the package."""
    return require("sqlalchemy")


def _exc() -> Any:
    return require("sqlalchemy.exc")


def creates_tables(properties: Mapping[str, str]) -> bool:
    """Return whether the tables of a new database are made."""
    return properties.get("init_catalog_tables", "true").lower() != "false"


@contextmanager
def errors_of(where: str) -> Iterator[None]:
    """Errors of the database as ours: without the statement and its parameters, and without the URL."""
    try:
        yield
    except (_exc().SQLAlchemyError, sqlite3.Error) as error:
        reason = getattr(error, "orig", None) or error
        taken = isinstance(error, _exc().IntegrityError)
        raise (TakenError if taken else StorageError)(f"catalog {where}: {reason}") from error


#: Open engines.
_ENGINES: weakref.WeakSet[sa.Engine] = weakref.WeakSet()


def _forked() -> None:
    """Forget the connections of the parent in a forked child: a connection must not be shared, so it opens its own."""
    for engine in list(_ENGINES):
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def url_of(uri: str) -> sa.URL:
    """Return the URL of a database.

    Raises
    ------
    InvalidArgumentError
        If it cannot be parsed.

    """
    try:
        url: sa.URL = sqlalchemy().make_url(uri)
    except _exc().ArgumentError:
        # What cannot be parsed is not shown: it may hold a password.
        msg = "catalog property 'uri' is not a valid database URL; expected, for example, sqlite:///folder/catalog.db"
        raise InvalidArgumentError(msg) from None
    return url


#: Limits of libpq, so that no commit waits forever for a server that went away: to connect, and for signs of life.
_LIMITS = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def _open_postgres(url: sa.URL) -> sa.Engine:
    # What the URL sets goes before.
    limits = {name: value for name, value in _LIMITS.items() if name not in url.query}
    engine: sa.Engine = sqlalchemy().create_engine(url, pool_pre_ping=True, connect_args=limits)
    return engine


def _open(uri: str) -> sa.Engine:
    """Open an engine for the database of this URL."""
    url = url_of(uri)
    if url.drivername in {"postgres", "postgresql"}:
        require("psycopg")
        url = url.set(drivername="postgresql+psycopg")
    backend = url.get_backend_name()
    if backend not in {"sqlite", "postgresql"}:
        msg = f"catalogs in a {backend!r} database are not supported; supported: sqlite, postgresql"
        raise UnsupportedFeatureError(msg)
    try:
        engine = open_sqlite(url) if backend == "sqlite" else _open_postgres(url)
    except _exc().NoSuchModuleError:
        raise InvalidArgumentError(f"unknown database driver {url.drivername!r}") from None
    except _exc().ArgumentError as error:
        raise InvalidArgumentError(f"catalog property 'uri': {error}") from None
    except ImportError as error:
        raise NotInstalledError(f"the driver of the catalog's database is not installed: {error}") from None
    _ENGINES.add(engine)
    return engine
