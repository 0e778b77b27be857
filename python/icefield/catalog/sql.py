"""The SQL catalog: tables and layout of the JDBC catalog that Java and PyIceberg share, on SQLite or Postgres.

Two tables: ``iceberg_tables`` (the current metadata location of each table) and ``iceberg_namespace_properties``. Any
of the three libraries may open a database that another wrote; the catalog's name is part of every key. A database of
the layout V0 lacks the column ``iceberg_type``: it is used unchanged, and upgraded where the property
``schema_version`` (or, as Java spells it, ``jdbc.schema-version``) says ``v1``.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from icefield._inputs.arguments import property_names, property_texts
from icefield._inputs.identifiers import Identifier, IdentifierLike, namespace_tuple, table_tuple
from icefield._inputs.secrets import revealed
from icefield._optional import require
from icefield.catalog.base import PropertiesUpdateSummary
from icefield.catalog.pointer import PointerCatalog
from icefield.catalog.sqlite import missing_database, open_sqlite, use_write_ahead_log
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    InvalidArgumentError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NotInstalledError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["SqlCatalog"]

_TABLE = "TABLE"
_VIEW = "VIEW"
# Java's marker of a namespace without properties; never shown.
_EXISTS = "exists"


class _TakenError(StorageError):
    """A key to be added already exists."""


class SqlCatalog(PointerCatalog):
    """A catalog in a SQL database.

    Parameters
    ----------
    name
        The catalog's name, part of every key: Java and PyIceberg must open it under the same one.
    uri
        A SQLAlchemy URL: ``sqlite:///folder/catalog.db`` (folder and file are created when something is written),
        ``postgresql://user@host/database``.
    warehouse
        The location of tables that are created without one.
    **properties
        ``init_catalog_tables`` (default true), ``schema_version`` (``v1`` upgrades an older layout), and the properties
        of the storage.

    """

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        uri = revealed(self.properties).get("uri")
        if not uri:
            msg = "SQL catalogs require the property 'uri', for example sqlite:///warehouse/catalog.db"
            raise NoSuchPropertyException(msg)
        # Until something is written, a file that is not there is a database with nothing in it.
        self._missing = missing_database(_url(uri)) if _creates_tables(self.properties) else None
        self._making = threading.Lock()
        self._database = _Database(uri if self._missing is None else "sqlite://", self.properties)

    @property
    def _engine(self) -> sa.Engine:
        return self._database.engine

    @property
    def _layout(self) -> _Layout:
        """The tables of the open database; ask with a connection: connecting may open another one."""
        return self._database.layout

    def _make_database(self) -> None:
        """Open the file of the database, which is created unless another process did."""
        with self._making:
            if self._missing is not None:
                self._database = _Database(revealed(self.properties)["uri"], self.properties)
                self._missing = None

    # Pointers

    def load_pointer(self, identifier: IdentifierLike) -> str:
        """Return the location of the metadata file of a table."""
        namespace, table = table_tuple(identifier)
        with self._read() as connection:
            location = self._layout.tables.c.metadata_location
            found = connection.execute(_sa().select(location).where(self._is_table(namespace, table))).scalar()
            hint = "" if found else self._elsewhere(connection)
        if not found:
            raise self._missing_table(namespace, table, hint)
        return str(found)

    def add_pointer(self, identifier: IdentifierLike, metadata_location: str) -> None:
        """Add a table, unless there is one of this name."""
        namespace, table = table_tuple(identifier)
        row = {
            "catalog_name": self.name,
            "table_namespace": ".".join(namespace),
            "table_name": table,
            "metadata_location": metadata_location,
            "previous_metadata_location": None,
        }
        try:
            with self._write() as connection:
                if self._layout.typed:
                    row["iceberg_type"] = _TABLE
                self._require_namespace(connection, namespace)
                connection.execute(self._layout.tables.insert().values(row))
        except _TakenError:
            raise TableAlreadyExistsError(f"{'.'.join((*namespace, table))} already exists") from None

    def swap_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        """Point a table at new metadata if it still points at ``base``, in one statement."""
        namespace, table = table_tuple(identifier)
        executed = False
        try:
            with self._write() as connection:
                tables = self._layout.tables
                statement = (
                    tables.update()
                    .where(self._is_table(namespace, table), tables.c.metadata_location == base)
                    .values(metadata_location=new, previous_metadata_location=base)
                )
                changed = connection.execute(statement).rowcount
                executed = True
        except StorageError as error:
            # Before the statement ran, nothing was changed; after it, the answer to COMMIT may have been lost.
            if executed and self._pointer_or_none(identifier) != new:
                raise CommitStateUnknownException(str(error)) from error
            if not executed:
                raise CommitFailedException(str(error)) from error
            return
        except (KeyboardInterrupt, SystemExit) as stop:
            # SQLite has rolled back anything uncommitted; a server may still be about to commit.
            if executed and (self._engine.name != "sqlite" or self._pointer_or_none(identifier) != base):
                raise
            raise CommitFailedException("the commit was stopped before it was made") from stop
        if changed != 1:
            self.load_pointer(identifier)  # dropped or renamed: says so
            raise CommitFailedException(f"{'.'.join((*namespace, table))} was changed by another commit")

    def _pointer_or_none(self, identifier: IdentifierLike) -> str | None:
        try:
            return self.load_pointer(identifier)
        except (StorageError, NoSuchTableError):
            return None

    def remove_pointer(self, identifier: IdentifierLike) -> None:
        """Remove a table; its files stay."""
        namespace, table = table_tuple(identifier)
        with self._write() as connection:
            removed = connection.execute(self._layout.tables.delete().where(self._is_table(namespace, table))).rowcount
        if removed != 1:
            raise self._missing_table(namespace, table)

    def rename_pointer(self, old: IdentifierLike, new: IdentifierLike) -> None:
        """Rename a table, unless there is one of the new name."""
        namespace, table = table_tuple(old)
        to_namespace, to_table = table_tuple(new)
        values = {"table_namespace": ".".join(to_namespace), "table_name": to_table}
        try:
            with self._write() as connection:
                self._require_namespace(connection, to_namespace)
                statement = self._layout.tables.update().where(self._is_table(namespace, table)).values(values)
                changed = connection.execute(statement).rowcount
        except _TakenError:
            raise TableAlreadyExistsError(f"{'.'.join((*to_namespace, to_table))} already exists") from None
        if changed != 1:
            raise self._missing_table(namespace, table)

    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the tables directly in a namespace."""
        return self._names(namespace, lambda layout: layout.is_table())

    # Views

    def list_views(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the views directly in a namespace, which other programs have made; the layout V0 has none."""
        return self._names(namespace, lambda layout: layout.is_view())

    def drop_view(self, identifier: IdentifierLike) -> None:
        """Drop a view; its files stay."""
        namespace, view = table_tuple(identifier)
        with self._write() as connection:
            tables = self._layout.tables
            statement = tables.delete().where(
                tables.c.catalog_name == self.name,
                tables.c.table_namespace == ".".join(namespace),
                tables.c.table_name == view,
                self._layout.is_view(),
            )
            removed = connection.execute(statement).rowcount
        if removed != 1:
            super().drop_view(identifier)

    # Namespaces

    def list_namespaces(self, namespace: IdentifierLike = ()) -> list[Identifier]:
        """List the namespaces directly under one; by default, under the root."""
        levels = namespace_tuple(namespace)
        with self._read() as connection:
            if levels:
                self._require_namespace(connection, levels)
            found = self._all_namespaces(connection, levels)
            hint = "" if found or levels else self._elsewhere(connection)
        if hint:
            warnings.warn(f"catalog {self.name} is empty{hint}", UserWarning, stacklevel=2)
        depth = len(levels) + 1
        return sorted({name[:depth] for name in found if len(name) >= depth})

    def create_namespace(self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace; its parents exist implicitly."""
        levels = namespace_tuple(namespace)
        if not levels:
            raise InvalidArgumentError("the root namespace cannot be created")
        given = property_texts(properties)
        if _EXISTS in given:
            raise InvalidArgumentError(f"property {_EXISTS!r} is reserved by the catalog")
        try:
            with self._write() as connection:
                if self._namespace_is_there(connection, levels):
                    raise _namespace_taken(levels)
                self._set_properties(connection, levels, {_EXISTS: "true", **given})
        except _TakenError:
            raise _namespace_taken(levels) from None

    def drop_namespace(self, namespace: IdentifierLike) -> None:
        """Drop an empty namespace."""
        levels = namespace_tuple(namespace)
        if not levels:
            raise InvalidArgumentError("the root namespace cannot be dropped")
        name = ".".join(levels)
        with self._write() as connection:
            tables, properties = self._layout.tables, self._layout.properties
            self._require_namespace(connection, levels)
            # Views count as well as tables: they are rows of the same table.
            tables_here = (
                _sa()
                .select(tables.c.table_name)
                .where(tables.c.catalog_name == self.name, tables.c.table_namespace == name)
            )
            if (first := connection.execute(tables_here).scalar()) is not None:
                raise NamespaceNotEmptyError(f"namespace {name} is not empty: it contains {first}")
            beneath = [child for child in self._all_namespaces(connection, levels) if len(child) > len(levels)]
            if beneath:
                raise NamespaceNotEmptyError(f"namespace {name} is not empty: it contains {'.'.join(beneath[0])}")
            connection.execute(
                properties.delete().where(properties.c.catalog_name == self.name, properties.c.namespace == name)
            )

    def load_namespace_properties(self, namespace: IdentifierLike) -> dict[str, str]:
        """Return the properties of a namespace."""
        levels = namespace_tuple(namespace)
        with self._read() as connection:
            self._require_namespace(connection, levels)
            found = self._properties(connection, levels)
        found.pop(_EXISTS, None)
        return found

    def update_namespace_properties(
        self, namespace: IdentifierLike, removals: Iterable[str] | str = (), updates: Mapping[str, str] | None = None
    ) -> PropertiesUpdateSummary:
        """Remove and set properties of a namespace, all or none."""
        levels = namespace_tuple(namespace)
        removals, updates = set(property_names(removals)), property_texts(updates)
        if both := sorted(removals & updates.keys()):
            raise InvalidArgumentError(f"properties cannot be both removed and set: {', '.join(both)}")
        if _EXISTS in removals or _EXISTS in updates:
            raise InvalidArgumentError(f"property {_EXISTS!r} is reserved by the catalog")
        with self._write() as connection:
            table = self._layout.properties
            self._require_namespace(connection, levels)
            existing = self._properties(connection, levels)
            here = (table.c.catalog_name == self.name) & (table.c.namespace == ".".join(levels))
            gone = sorted(removals & existing.keys())
            connection.execute(table.delete().where(here, table.c.property_key.in_([*gone, *updates])))
            # A namespace that existed only through its tables now exists on its own.
            marked = {} if _EXISTS in existing else {_EXISTS: "true"}
            self._set_properties(connection, levels, {**marked, **updates})
        return PropertiesUpdateSummary(gone, sorted(updates), sorted(removals - existing.keys()))

    def namespace_exists(self, namespace: IdentifierLike) -> bool:
        """Return whether a namespace of this name exists, on its own or through its contents."""
        with self._read() as connection:
            return self._namespace_is_there(connection, namespace_tuple(namespace))

    # Rows

    def _names(self, namespace: IdentifierLike, kind: Callable[[_Layout], sa.ColumnElement[bool]]) -> list[Identifier]:
        levels = namespace_tuple(namespace)
        with self._read() as connection:
            tables = self._layout.tables
            here = (tables.c.catalog_name == self.name) & (tables.c.table_namespace == ".".join(levels))
            self._require_namespace(connection, levels)
            found = connection.execute(_sa().select(tables.c.table_name).where(here, kind(self._layout)))
            return sorted((*levels, str(name)) for (name,) in found)

    def _is_table(self, namespace: Identifier, table: str) -> sa.ColumnElement[bool]:
        tables = self._layout.tables
        found: sa.ColumnElement[bool] = _sa().and_(
            tables.c.catalog_name == self.name,
            tables.c.table_namespace == ".".join(namespace),
            tables.c.table_name == table,
            self._layout.is_table(),
        )
        return found

    def _all_namespaces(self, connection: sa.Connection, above: Identifier) -> list[Identifier]:
        """Return a namespace and those under it that have properties or contain something."""
        select = _sa().select
        statements = [
            select(column).distinct().where(catalog == self.name, *_within(column, above))
            for catalog, column in (
                (self._layout.tables.c.catalog_name, self._layout.tables.c.table_namespace),
                (self._layout.properties.c.catalog_name, self._layout.properties.c.namespace),
            )
        ]
        names = {str(name) for statement in statements for (name,) in connection.execute(statement)}
        return sorted(tuple(name.split(".")) for name in names if name)

    def _namespace_is_there(self, connection: sa.Connection, levels: Identifier) -> bool:
        return not levels or bool(self._all_namespaces(connection, levels))

    def _require_namespace(self, connection: sa.Connection, levels: Identifier) -> None:
        if not self._namespace_is_there(connection, levels):
            hint = self._elsewhere(connection)
            raise NoSuchNamespaceError(f"namespace {'.'.join(levels)} does not exist in catalog {self.name}{hint}")

    def _elsewhere(self, connection: sa.Connection) -> str:
        """Name the other catalogs of the database where it holds nothing of this one, or the file that is not there."""
        if self._missing is not None:
            return f"; there is no database {self._missing} yet: the first namespace that is created makes it"
        names: set[str] = set()
        for table in (self._layout.tables, self._layout.properties):
            names.update(str(name) for (name,) in connection.execute(_sa().select(table.c.catalog_name).distinct()))
        if not names or self.name in names:
            return ""
        listed = ", ".join(repr(name) for name in sorted(names))
        return f"; this database holds the catalog{'s' if len(names) > 1 else ''} {listed}: open it under that name"

    def _properties(self, connection: sa.Connection, levels: Identifier) -> dict[str, str]:
        table = self._layout.properties
        statement = (
            _sa()
            .select(table.c.property_key, table.c.property_value)
            .where(table.c.catalog_name == self.name, table.c.namespace == ".".join(levels))
        )
        return {str(key): str(value) for key, value in connection.execute(statement)}

    def _set_properties(self, connection: sa.Connection, levels: Identifier, values: Mapping[str, str]) -> None:
        rows = [
            {
                "catalog_name": self.name,
                "namespace": ".".join(levels),
                "property_key": key,
                "property_value": value,
            }
            for key, value in values.items()
        ]
        if rows:
            connection.execute(self._layout.properties.insert(), rows)

    # Connections

    @contextmanager
    def _read(self) -> Iterator[sa.Connection]:
        if self._missing is not None and self._missing.exists():
            self._make_database()
        with _errors(self.name), self._database.one_at_a_time, self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[sa.Connection]:
        if self._missing is not None:
            self._make_database()
        with (
            _errors(self.name),
            self._database.one_at_a_time,
            self._engine.connect().execution_options(icefield_write=True) as connection,
            connection.begin(),
        ):
            yield connection

    def catalog_names(self) -> list[str]:
        """Return the names of all catalogs in this database, whether or not this one is among them."""
        names: set[str] = set()
        with self._read() as connection:
            for table in (self._layout.tables, self._layout.properties):
                found = connection.execute(_sa().select(table.c.catalog_name).distinct())
                names.update(str(name) for (name,) in found)
        return sorted(names)

    def close(self) -> None:
        """Let go of connections."""
        self._engine.dispose()


class _Database:
    """The connections to a database, and its tables."""

    def __init__(self, uri: str, properties: Mapping[str, str]) -> None:
        self.engine = _open(uri)
        # A database in memory has a single connection, which threads share one at a time.
        one_connection = isinstance(self.engine.pool, require("sqlalchemy.pool").StaticPool)
        self.one_at_a_time: AbstractContextManager[object] = threading.RLock() if one_connection else nullcontext()
        self.layout = _Layout(self.engine, properties)


class _Layout:
    """The two tables, as they are in this database."""

    def __init__(self, engine: sa.Engine, properties: Mapping[str, str]) -> None:
        sa = _sa()
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
        with _errors("the database"):
            if _creates_tables(properties):
                self._create(engine, metadata)
            wanted = properties.get("schema_version", properties.get("jdbc.schema-version", "")).lower()
            self.typed = self._is_typed(engine)
            if not self.typed and wanted == "v1":
                self._upgrade(engine)

    def is_table(self) -> sa.ColumnElement[bool]:
        """Leave out views; rows of the layout V0 have no type and are tables."""
        kind = self.tables.c.iceberg_type
        found: sa.ColumnElement[bool] = (kind == _TABLE) | kind.is_(None) if self.typed else _sa().true()
        return found

    def is_view(self) -> sa.ColumnElement[bool]:
        """Keep views alone."""
        found: sa.ColumnElement[bool] = self.tables.c.iceberg_type == _VIEW if self.typed else _sa().false()
        return found

    @staticmethod
    def _create(engine: sa.Engine, metadata: sa.MetaData) -> None:
        there = set(_sa().inspect(engine).get_table_names())
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
        columns = _sa().inspect(engine).get_columns("iceberg_tables")
        return any(column["name"] == "iceberg_type" for column in columns)

    def _upgrade(self, engine: sa.Engine) -> None:
        try:
            with engine.connect().execution_options(icefield_write=True) as connection, connection.begin():
                connection.execute(_sa().text("ALTER TABLE iceberg_tables ADD COLUMN iceberg_type VARCHAR(5)"))
        except (_exc().OperationalError, _exc().ProgrammingError):
            if not self._is_typed(engine):  # else another process was first
                raise
        self.typed = True


def _namespace_taken(levels: Identifier) -> NamespaceAlreadyExistsError:
    name = ".".join(levels)
    return NamespaceAlreadyExistsError(
        f"namespace {name} already exists; create_namespace_if_not_exists takes it as it is"
    )


def _sa() -> Any:
    return require("sqlalchemy")


def _exc() -> Any:
    return require("sqlalchemy.exc")


def _creates_tables(properties: Mapping[str, str]) -> bool:
    return properties.get("init_catalog_tables", "true").lower() != "false"


def _within(column: sa.Column[str], above: Identifier) -> list[sa.ColumnElement[bool]]:
    """Keep the namespace ``above`` and everything under it, by its exact name: LIKE of SQLite takes ``A`` for ``a``."""
    if not above:
        return []
    name = ".".join(above)
    beneath = f"{name}."
    return [(column == name) | (_sa().func.substr(column, 1, len(beneath)) == beneath)]


@contextmanager
def _errors(where: str) -> Iterator[None]:
    """Errors of the database as ours: without the statement and its parameters, and without the URL."""
    try:
        yield
    except (_exc().SQLAlchemyError, sqlite3.Error) as error:
        reason = getattr(error, "orig", None) or error
        taken = isinstance(error, _exc().IntegrityError)
        raise (_TakenError if taken else StorageError)(f"catalog {where}: {reason}") from error


#: Open engines.
_ENGINES: weakref.WeakSet[sa.Engine] = weakref.WeakSet()


def _forked() -> None:
    """Forget the connections of the parent in a forked child: a connection must not be shared, so it opens its own."""
    for engine in list(_ENGINES):
        engine.dispose(close=False)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def _url(uri: str) -> sa.URL:
    try:
        url: sa.URL = _sa().make_url(uri)
    except _exc().ArgumentError:
        # What cannot be parsed is not shown: it may hold a password.
        msg = "catalog property 'uri' is not a valid database URL; expected, for example, sqlite:///folder/catalog.db"
        raise InvalidArgumentError(msg) from None
    return url


def _open(uri: str) -> sa.Engine:
    """Open an engine for the database of this URL."""
    url = _url(uri)
    if url.drivername in {"postgres", "postgresql"}:
        require("psycopg")
        url = url.set(drivername="postgresql+psycopg")
    backend = url.get_backend_name()
    if backend not in {"sqlite", "postgresql"}:
        msg = f"catalogs in a {backend!r} database are not supported; supported: sqlite, postgresql"
        raise UnsupportedFeatureError(msg)
    try:
        engine = open_sqlite(url) if backend == "sqlite" else _sa().create_engine(url, pool_pre_ping=True)
    except _exc().NoSuchModuleError:
        raise InvalidArgumentError(f"unknown database driver {url.drivername!r}") from None
    except _exc().ArgumentError as error:
        raise InvalidArgumentError(f"catalog property 'uri': {error}") from None
    except ImportError as error:
        raise NotInstalledError(f"the driver of the catalog's database is not installed: {error}") from None
    _ENGINES.add(engine)
    return engine
