"""The SQL catalog: tables and layout of the JDBC catalog that Java and PyIceberg share, on SQLite or Postgres.

Two tables: ``iceberg_tables`` (the current metadata location of each table) and ``iceberg_namespace_properties``. Any
of the three libraries may open a database that another wrote; the catalog's name is part of every key. A database of
the layout V0 lacks the column ``iceberg_type``: it is used unchanged, and upgraded where the property
``schema_version`` (or, as Java spells it, ``jdbc.schema-version``) says ``v1``.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from icefield._inputs.arguments import property_names, property_texts
from icefield._inputs.identifiers import Identifier, IdentifierLike, namespace_tuple, table_tuple
from icefield._inputs.secrets import revealed
from icefield.catalog.base import PropertiesUpdateSummary
from icefield.catalog.pointer import PointerCatalog
from icefield.catalog.sql.database import (
    TABLE,
    VIEW,
    Database,
    Layout,
    TakenError,
    creates_tables,
    errors_of,
    sqlalchemy,
    url_of,
)
from icefield.catalog.sql.sqlite import missing_database
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    InvalidArgumentError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NoSuchViewError,
    NotFoundError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ["SqlCatalog"]

_NO_VIEWS = (
    "the database has the layout V0, which has no views: open the catalog once with the property schema_version=v1 "
    "(jdbc.schema-version in Java), which adds a column"
)
# Java's marker of a namespace without properties; never shown.
_EXISTS = "exists"


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
        self._missing = missing_database(url_of(uri)) if creates_tables(self.properties) else None
        self._making = threading.Lock()
        self._database = Database(uri if self._missing is None else "sqlite://", self.properties)

    @property
    def _engine(self) -> sa.Engine:
        return self._database.engine

    @property
    def _layout(self) -> Layout:
        """The tables of the open database; ask with a connection: connecting may open another one."""
        return self._database.layout

    def _make_database(self) -> None:
        """Open the file of the database, which is created unless another process did."""
        with self._making:
            if self._missing is not None:
                self._database = Database(revealed(self.properties)["uri"], self.properties)
                self._missing = None

    # Pointers, of tables and of views: rows of the same table

    def load_pointer(self, identifier: IdentifierLike) -> str:
        """Return the location of the metadata file of a table."""
        return self._load(TABLE, identifier)

    def add_pointer(self, identifier: IdentifierLike, metadata_location: str) -> None:
        """Add a table, unless there is a table or view of this name."""
        self._insert(TABLE, identifier, metadata_location)

    def swap_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        """Point a table at new metadata if it still points at ``base``, in one statement."""
        self._exchange(TABLE, identifier, base, new)

    def remove_pointer(self, identifier: IdentifierLike) -> None:
        """Remove a table; its files stay."""
        self._remove(TABLE, identifier)

    def rename_pointer(self, old: IdentifierLike, new: IdentifierLike) -> None:
        """Rename a table, unless there is a table or view of the new name."""
        self._move(TABLE, old, new)

    def load_view_pointer(self, identifier: IdentifierLike) -> str:
        """Return the location of the metadata file of a view; the layout V0 has none."""
        return self._load(VIEW, identifier)

    def add_view_pointer(self, identifier: IdentifierLike, metadata_location: str) -> None:
        """Add a view, unless there is a table or view of this name.

        Raises
        ------
        UnsupportedFeatureError
            If the database has the layout V0.

        """
        self._insert(VIEW, identifier, metadata_location)

    def swap_view_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        """Point a view at new metadata if it still points at ``base``, in one statement."""
        self._exchange(VIEW, identifier, base, new)

    def remove_view_pointer(self, identifier: IdentifierLike) -> None:
        """Remove a view; its files stay."""
        self._remove(VIEW, identifier)

    def rename_view_pointer(self, old: IdentifierLike, new: IdentifierLike) -> None:
        """Rename a view, unless there is a table or view of the new name."""
        self._move(VIEW, old, new)

    def _load(self, kind: str, identifier: IdentifierLike) -> str:
        namespace, name = table_tuple(identifier)
        with self._read() as connection:
            location = self._layout.tables.c.metadata_location
            found = connection.execute(sqlalchemy().select(location).where(self._is(kind, namespace, name))).scalar()
            hint = "" if found else self._elsewhere(connection)
        if not found:
            raise self._absent(kind, namespace, name, hint)
        return str(found)

    def _insert(self, kind: str, identifier: IdentifierLike, metadata_location: str) -> None:
        namespace, name = table_tuple(identifier)
        row = {
            "catalog_name": self.name,
            "table_namespace": ".".join(namespace),
            "table_name": name,
            "metadata_location": metadata_location,
            "previous_metadata_location": None,
        }
        try:
            with self._write() as connection:
                if self._layout.typed:
                    row["iceberg_type"] = kind
                elif kind == VIEW:
                    raise UnsupportedFeatureError(_NO_VIEWS)
                self._require_namespace(connection, namespace)
                connection.execute(self._layout.tables.insert().values(row))
        except TakenError:
            raise TableAlreadyExistsError(f"{'.'.join((*namespace, name))} already exists") from None

    def _exchange(self, kind: str, identifier: IdentifierLike, base: str, new: str) -> None:
        namespace, name = table_tuple(identifier)
        executed = False
        try:
            with self._write() as connection:
                tables = self._layout.tables
                statement = (
                    tables.update()
                    .where(self._is(kind, namespace, name), tables.c.metadata_location == base)
                    .values(metadata_location=new, previous_metadata_location=base)
                )
                changed = connection.execute(statement).rowcount
                executed = True
        except StorageError as error:
            # Before the statement ran, nothing was changed; after it, the answer to COMMIT may have been lost.
            if executed and self._pointer_or_none(kind, identifier) != new:
                raise CommitStateUnknownException(str(error)) from error
            if not executed:
                raise CommitFailedException(str(error)) from error
            return
        except (KeyboardInterrupt, SystemExit) as stop:
            # SQLite has rolled back anything uncommitted; a server may still be about to commit.
            if executed and (self._engine.name != "sqlite" or self._pointer_or_none(kind, identifier) != base):
                raise
            raise CommitFailedException("the commit was stopped before it was made") from stop
        if changed != 1:
            self._load(kind, identifier)  # dropped or renamed: says so
            raise CommitFailedException(f"{'.'.join((*namespace, name))} was changed by another commit")

    def _pointer_or_none(self, kind: str, identifier: IdentifierLike) -> str | None:
        try:
            return self._load(kind, identifier)
        except (StorageError, NoSuchTableError, NoSuchViewError):
            return None

    def _remove(self, kind: str, identifier: IdentifierLike) -> None:
        namespace, name = table_tuple(identifier)
        with self._write() as connection:
            removed = connection.execute(self._layout.tables.delete().where(self._is(kind, namespace, name))).rowcount
        if removed != 1:
            raise self._absent(kind, namespace, name)

    def _move(self, kind: str, old: IdentifierLike, new: IdentifierLike) -> None:
        namespace, name = table_tuple(old)
        to_namespace, to_name = table_tuple(new)
        values = {"table_namespace": ".".join(to_namespace), "table_name": to_name}
        try:
            with self._write() as connection:
                self._require_namespace(connection, to_namespace)
                statement = self._layout.tables.update().where(self._is(kind, namespace, name)).values(values)
                changed = connection.execute(statement).rowcount
        except TakenError:
            raise TableAlreadyExistsError(f"{'.'.join((*to_namespace, to_name))} already exists") from None
        if changed != 1:
            raise self._absent(kind, namespace, name)

    def _absent(self, kind: str, namespace: Identifier, name: str, hint: str = "") -> NotFoundError:
        if kind == VIEW:
            return NoSuchViewError(f"view {'.'.join((*namespace, name))} does not exist in catalog {self.name}{hint}")
        return self._missing_table(namespace, name, hint)

    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the tables directly in a namespace."""
        return self._names(namespace, lambda layout: layout.is_table())

    def list_views(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the views directly in a namespace; the layout V0 has none."""
        return self._names(namespace, lambda layout: layout.is_view())

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
        except TakenError:
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
                sqlalchemy()
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
        try:
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
        except TakenError as error:
            msg = f"namespace {'.'.join(levels)} was changed by another at the same time; change it again"
            raise CommitFailedException(msg) from error
        return PropertiesUpdateSummary(gone, sorted(updates), sorted(removals - existing.keys()))

    def namespace_exists(self, namespace: IdentifierLike) -> bool:
        """Return whether a namespace of this name exists, on its own or through its contents."""
        with self._read() as connection:
            return self._namespace_is_there(connection, namespace_tuple(namespace))

    # Rows

    def _names(self, namespace: IdentifierLike, kind: Callable[[Layout], sa.ColumnElement[bool]]) -> list[Identifier]:
        levels = namespace_tuple(namespace)
        with self._read() as connection:
            tables = self._layout.tables
            here = (tables.c.catalog_name == self.name) & (tables.c.table_namespace == ".".join(levels))
            self._require_namespace(connection, levels)
            found = connection.execute(sqlalchemy().select(tables.c.table_name).where(here, kind(self._layout)))
            return sorted((*levels, str(name)) for (name,) in found)

    def _is(self, kind: str, namespace: Identifier, name: str) -> sa.ColumnElement[bool]:
        tables = self._layout.tables
        found: sa.ColumnElement[bool] = sqlalchemy().and_(
            tables.c.catalog_name == self.name,
            tables.c.table_namespace == ".".join(namespace),
            tables.c.table_name == name,
            self._layout.is_view() if kind == VIEW else self._layout.is_table(),
        )
        return found

    def _all_namespaces(self, connection: sa.Connection, above: Identifier) -> list[Identifier]:
        """Return a namespace and those under it that have properties or contain something."""
        select = sqlalchemy().select
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
            names.update(
                str(name) for (name,) in connection.execute(sqlalchemy().select(table.c.catalog_name).distinct())
            )
        if not names or self.name in names:
            return ""
        listed = ", ".join(repr(name) for name in sorted(names))
        return f"; this database holds the catalog{'s' if len(names) > 1 else ''} {listed}: open it under that name"

    def _properties(self, connection: sa.Connection, levels: Identifier) -> dict[str, str]:
        table = self._layout.properties
        statement = (
            sqlalchemy()
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
        with errors_of(self.name), self._database.one_at_a_time, self._engine.connect() as connection:
            yield connection

    @contextmanager
    def _write(self) -> Iterator[sa.Connection]:
        if self._missing is not None:
            self._make_database()
        with (
            errors_of(self.name),
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
                found = connection.execute(sqlalchemy().select(table.c.catalog_name).distinct())
                names.update(str(name) for (name,) in found)
        return sorted(names)

    def close(self) -> None:
        """Let go of connections."""
        self._engine.dispose()


def _namespace_taken(levels: Identifier) -> NamespaceAlreadyExistsError:
    name = ".".join(levels)
    return NamespaceAlreadyExistsError(
        f"namespace {name} already exists; create_namespace_if_not_exists takes it as it is"
    )


def _within(column: sa.Column[str], above: Identifier) -> list[sa.ColumnElement[bool]]:
    """Keep the namespace ``above`` and everything under it, by its exact name: LIKE of SQLite takes ``A`` for ``a``."""
    if not above:
        return []
    name = ".".join(above)
    beneath = f"{name}."
    return [(column == name) | (sqlalchemy().func.substr(column, 1, len(beneath)) == beneath)]
