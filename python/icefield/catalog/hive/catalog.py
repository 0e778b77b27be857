"""The catalog of a Hive metastore, as Java's and PyIceberg's: a table of Hive has the location of the metadata."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from icefield._inputs.arguments import property_texts
from icefield._inputs.identifiers import Identifier, IdentifierLike
from icefield._inputs.secrets import revealed
from icefield.catalog.base import PropertiesUpdateSummary
from icefield.catalog.hive.client import Metastore, RefusedError, protocol
from icefield.catalog.hive.locks import LockTimes, locked
from icefield.catalog.locations import absolute_location
from icefield.catalog.metastore import (
    LOCATION,
    PREVIOUS,
    TABLE_TYPE,
    MetastoreCatalog,
    changed,
    column_type,
    nothing_sent,
)
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    CorruptDataError,
    InvalidArgumentError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    StorageError,
    TableAlreadyExistsError,
)

if TYPE_CHECKING:
    from icefield._core import TableMetadata
    from icefield.catalog.hive.client import Connection
    from icefield.catalog.hive.locks import Lock
    from icefield.table import Table

__all__ = ["HiveCatalog"]

#: Hive stores names in lower case, and other programs would not find any other.
_NAME = re.compile(r"[a-z0-9_]{1,128}")
_KEY_ID = "encryption.key-id"
#: Longer values of properties are in the metadata alone.
_LONGEST = 4000
_HIVE = "org.apache.iceberg.mr.hive.HiveIceberg"
#: What Java's library and Hive know of the state before a commit: readers would believe it, or refuse the table.
_OF_FORMER_STATE = frozenset(
    {
        "COLUMN_STATS_ACCURATE",
        "current-schema",
        "current-snapshot-id",
        "current-snapshot-summary",
        "current-snapshot-timestamp-ms",
        "default-partition-spec",
        "default-sort-order",
        "metadata_hash",
        "numFiles",
        "numRows",
        "rawDataSize",
        "snapshot-count",
        "totalSize",
    }
)
#: Whether Hive deletes the files of a table that it drops.
_PURGE = "external.table.purge"
_UNCHANGED_STATISTICS = {"DO_NOT_UPDATE_STATS": "true"}


class HiveCatalog(MetastoreCatalog):
    """The databases and tables of a Hive metastore.

    Parameters
    ----------
    name
        Its name, which is stored nowhere.
    **properties
        ``uri`` (``thrift://host:9083``, or several with commas between them), ``warehouse``, ``hive.lock-enabled`` and
        others, and the properties of the storage.

    """

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._metastore = Metastore(name, self.properties)

    def _is_set(self, name: str, default: str = "false") -> bool:
        return self.properties.get(name, default).lower() == "true"

    def _checked(self, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise InvalidArgumentError(
                f"{name!r} cannot be a name in Hive, which has lower-case letters, digits and underscores, 128 at most"
            )
        return name

    def _lock_times(self) -> LockTimes:
        given = revealed(self.properties)

        def number(name: str, default: float) -> float:
            try:
                return float(given.get(name, default))
            except ValueError:
                msg = f"catalog property {name} must be a number, got {given[name]!r}"
                raise InvalidArgumentError(msg) from None

        default = LockTimes()
        retries = int(number("lock-check-retries", 0)) if "lock-check-retries" in given else None
        return LockTimes(
            number("lock-check-min-wait-time", default.min_wait),
            number("lock-check-max-wait-time", default.max_wait),
            retries,
            number("hive.lock-timeout-ms", default.timeout * 1000) / 1000,
            number("hive.lock-heartbeat-interval-ms", default.heartbeat_interval * 1000) / 1000,
        )

    # Pointers

    def load_pointer(self, identifier: IdentifierLike) -> str:
        """Return the location of the metadata file of a table."""
        with self._metastore.open() as connection:
            return self._location_in(identifier, self._table(connection, identifier).parameters)

    def load_table(self, identifier: IdentifierLike) -> Table:
        """Load the current state of a table.

        Raises
        ------
        NoSuchTableError
            If it does not exist.
        CorruptDataError
            If the metadata file has another ``encryption.key-id`` than the metastore.

        """
        with self._metastore.open() as connection:
            parameters = self._table(connection, identifier).parameters
        table = self.table_at(identifier, self._location_in(identifier, parameters))
        _require_key(parameters, table.metadata, table.metadata_location)
        return table

    def _table(self, connection: Connection, identifier: IdentifierLike) -> Any:
        database, name = self._names(identifier)
        try:
            return self._metastore.table(connection, database, name)
        except RefusedError as error:
            if error.kind == "NoSuchObjectException":
                raise self._missing_table((database,), name) from None
            raise

    def add_pointer(self, identifier: IdentifierLike, metadata_location: str) -> None:
        """Add a table, unless there is one of this name."""
        database, name = self._names(identifier)
        self._checked(name)
        with nothing_sent():
            metadata = self._metadata(metadata_location)
        now = int(time.time())
        table = protocol().Table(
            tableName=name,
            dbName=database,
            owner=metadata.properties.get("owner") or self._owner(),
            createTime=now,
            lastAccessTime=now,
            retention=0,
            sd=self._descriptor(metadata),
            partitionKeys=[],
            parameters=self._parameters({}, metadata, None, metadata_location, None),
            tableType="EXTERNAL_TABLE",
        )
        try:
            with self._metastore.open() as connection:
                connection.ask("create_table", table)
        except RefusedError as error:
            # The metastore repeats changes of its database whose answer it did not get.
            if self._is_at(identifier, metadata_location, error):
                return
            if error.kind == "AlreadyExistsException":
                raise TableAlreadyExistsError(f"{database}.{name} already exists") from None
            if not self.namespace_exists(database):
                raise self._missing_database(database) from None
            raise CommitFailedException(str(error)) from error
        except CommitStateUnknownException as error:
            if not self._is_at(identifier, metadata_location, error):
                raise

    def _owner(self) -> str:
        user = revealed(self.properties).get("ugi", "").partition(":")[0]
        if user:
            return user
        import getpass

        try:
            return getpass.getuser()
        except (KeyError, OSError):
            return "icefield"

    def swap_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        """Point a table at new metadata if it still points at ``base``, with a lock or the condition of Hive 4."""
        database, name = self._names(identifier)
        with nothing_sent():
            metadata, former = self._metadata(new), self._metadata(base)
        # Writers beside this commit know the base alone: its properties say whether they hold a lock.
        with self._open() as connection, self._lock(connection, database, name, former.properties) as lock:
            with nothing_sent():
                table = self._table(connection, identifier)
                self._require_base(identifier, table.parameters, base)
                if former is not None:
                    _require_key(table.parameters, former, base)
            table.parameters = self._parameters(table.parameters, metadata, former, new, base)
            table.sd = self._descriptor(metadata, table.sd)
            expected = {"expected_parameter_key": LOCATION, "expected_parameter_value": base}
            context = protocol().EnvironmentContext(properties={**_UNCHANGED_STATISTICS, **expected})
            if lock is not None:
                lock.require()
            try:
                connection.ask("alter_table_with_environment_context", database, name, table, context)
            except RefusedError as error:
                # The metastore repeats changes of its database whose answer it did not get.
                if not self._is_at(identifier, new, error):
                    raise CommitFailedException(str(error)) from error
            if lock is not None and (lost := lock.lost):
                # Another commit may have passed since, and ours may have overwritten it or been overwritten.
                msg = f"{database}.{name}: the lock was lost while the commit was made: {lost}"
                raise CommitStateUnknownException(msg)

    @contextmanager
    def _open(self) -> Iterator[Connection]:
        """Open a connection for a commit, which is not made without one."""
        with nothing_sent():
            opened = self._metastore.open()
            connection = opened.__enter__()
        try:
            yield connection
        finally:
            opened.__exit__(None, None, None)

    @contextmanager
    def _lock(
        self, connection: Connection, database: str, name: str, properties: Mapping[str, str]
    ) -> Iterator[Lock | None]:
        default = self.properties.get("hive.lock-enabled", self.properties.get("engine.hive.lock-enabled", "true"))
        if properties.get("engine.hive.lock-enabled", default).lower() != "true":
            yield None
            return
        with nothing_sent():
            times = self._lock_times()
        with locked(self._metastore, connection, database, name, times) as lock:
            yield lock

    def _parameters(
        self,
        stored: Mapping[str, str],
        metadata: TableMetadata,
        former: TableMetadata | None,
        new: str,
        base: str | None,
    ) -> dict[str, str]:
        """Return the parameters of a table: those of Hive, the properties of the table, and where its metadata is."""
        removed = former.properties.keys() - metadata.properties.keys() if former else set()
        removed |= _OF_FORMER_STATE
        if "gc.enabled" in removed:
            removed |= {_PURGE}
        kept = {key: value for key, value in (stored or {}).items() if key not in removed}
        given = {key: value for key, value in metadata.properties.items() if len(value) <= _LONGEST}
        engine = (
            {"storage_handler": f"{_HIVE}StorageHandler"}
            if metadata.properties.get("engine.hive.enabled", "").lower() == "true"
            else {}
        )
        return {
            **kept,
            **given,
            # What Hive's DROP TABLE deletes is what may be deleted.
            **({_PURGE: metadata.properties["gc.enabled"]} if "gc.enabled" in metadata.properties else {}),
            **engine,
            **({"uuid": metadata.table_uuid} if metadata.table_uuid else {}),
            "EXTERNAL": "TRUE",
            TABLE_TYPE: "ICEBERG",
            LOCATION: new,
            **({PREVIOUS: base} if base else {}),
        }

    def _descriptor(self, metadata: TableMetadata, stored: Any = None) -> Any:
        """Return the columns and the location of a table as Hive has them."""
        made = protocol()
        zoned = "timestamp" if self._is_set("hive.hive2-compatible") else "timestamp with local time zone"
        own = metadata.properties.get("engine.hive.enabled", "").lower() == "true"
        return made.StorageDescriptor(
            cols=[
                made.FieldSchema(name=field.name, type=column_type(field.field_type, zoned), comment=field.doc or "")
                for field in metadata.schema().fields
            ],
            location=metadata.location,
            inputFormat=f"{_HIVE}InputFormat" if own else "org.apache.hadoop.mapred.FileInputFormat",
            outputFormat=f"{_HIVE}OutputFormat" if own else "org.apache.hadoop.mapred.FileOutputFormat",
            compressed=False,
            numBuckets=0,
            serdeInfo=made.SerDeInfo(
                name=stored.serdeInfo.name if stored and stored.serdeInfo else None,
                serializationLib=f"{_HIVE}SerDe" if own else "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
                parameters={},
            ),
            bucketCols=[],
            sortCols=[],
            parameters={},
        )

    def remove_pointer(self, identifier: IdentifierLike) -> None:
        """Remove a table; its files stay."""
        database, name = self._names(identifier)
        with self._metastore.open() as connection:
            # What is not an Iceberg table stays.
            self._location_in(identifier, self._table(connection, identifier).parameters)
            try:
                connection.ask("drop_table", database, name, False)  # noqa: FBT003 - the protocol has no names
            except RefusedError as error:
                if error.kind != "NoSuchObjectException":
                    raise
                raise self._missing_table((database,), name) from None

    def rename_pointer(self, old: IdentifierLike, new: IdentifierLike) -> None:
        """Rename a table in one step, unless there is one of the new name."""
        database, name = self._names(old)
        to_database, to_name = self._names(new)
        self._checked(to_name)
        if not self.namespace_exists(to_database):
            raise self._missing_database(to_database)
        properties: Mapping[str, str] = {}
        # The table can be renamed without its metadata, which say only whether its commits take a lock.
        with suppress(CorruptDataError, StorageError):
            properties = self._metadata(self.load_pointer(old)).properties
        # Without the lock, the entry of a commit made meanwhile would be overwritten with that of the base.
        with self._metastore.open() as connection, self._lock(connection, database, name, properties) as lock:
            table = self._table(connection, old)
            location = self._location_in(old, table.parameters)
            if self._exists(connection, new):
                raise TableAlreadyExistsError(f"{to_database}.{to_name} already exists")
            table.dbName, table.tableName = to_database, to_name
            expected = {"expected_parameter_key": LOCATION, "expected_parameter_value": location}
            context = protocol().EnvironmentContext(properties={**_UNCHANGED_STATISTICS, **expected})
            if lock is not None:
                lock.require()
            try:
                connection.ask("alter_table_with_environment_context", database, name, table, context)
            except RefusedError as error:
                if self._exists(connection, new):
                    raise TableAlreadyExistsError(f"{to_database}.{to_name} already exists") from error
                raise

    def _exists(self, connection: Connection, identifier: IdentifierLike) -> bool:
        try:
            self._table(connection, identifier)
        except NoSuchTableError:
            return False
        return True

    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the Iceberg tables of a database."""
        database = self._database(namespace)
        self._load_database(database)
        with self._metastore.open() as connection:
            names = list(connection.read("get_all_tables", database))
            found: list[Identifier] = []
            for start in range(0, len(names), 500):
                tables = self._metastore.tables(connection, database, names[start : start + 500])
                found += [(database, table.tableName) for table in tables if self._is_iceberg(table.parameters)]
        return sorted(found)

    def _check_absent(self, identifier: IdentifierLike) -> None:
        self._checked(self._names(identifier)[1])
        super()._check_absent(identifier)

    # Databases

    def list_namespaces(self, namespace: IdentifierLike = ()) -> list[Identifier]:
        """List the databases; below them there are none."""
        if namespace:
            self._load_database(self._database(namespace))
            return []
        return sorted((name,) for name in self._metastore.ask("get_all_databases"))

    def create_namespace(self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None) -> None:
        """Create a database; the properties ``location``, ``comment`` and ``owner`` are its own in Hive."""
        name = self._checked(self._new_database(namespace))
        given = property_texts(properties)
        database = protocol().Database(name=name)
        warehouse = revealed(self.properties).get("warehouse")
        if "location" not in given and warehouse:
            folder = absolute_location(warehouse, "the property 'warehouse' of the catalog")
            given = {**given, "location": self._folder_of(folder, (name,))}
        _describe(database, given)
        try:
            with self._metastore.open() as connection:
                connection.ask("create_database", database)
        except RefusedError as error:
            if error.kind != "AlreadyExistsException":
                raise
            raise NamespaceAlreadyExistsError(f"namespace {name} already exists") from None

    def drop_namespace(self, namespace: IdentifierLike) -> None:
        """Drop a database without tables; its folder stays."""
        name = self._database(namespace)
        self._load_database(name)
        try:
            with self._metastore.open() as connection:
                connection.ask("drop_database", name, False, False)  # noqa: FBT003 - the protocol has no names
        except RefusedError as error:
            if error.kind == "NoSuchObjectException":
                raise self._missing_database(name) from None
            if error.kind != "InvalidOperationException":
                raise
            inside = self._metastore.ask("get_all_tables", name)
            found = f"it contains {inside[0]}" if inside else str(error)
            raise NamespaceNotEmptyError(f"namespace {name} is not empty: {found}") from None

    def load_namespace_properties(self, namespace: IdentifierLike) -> dict[str, str]:
        """Return the properties of a database."""
        return _properties(self._load_database(self._database(namespace)))

    def update_namespace_properties(
        self, namespace: IdentifierLike, removals: Iterable[str] | str = (), updates: Mapping[str, str] | None = None
    ) -> PropertiesUpdateSummary:
        """Remove and set properties of a database."""
        name = self._database(namespace)
        database = self._load_database(name)
        properties, summary = changed(_properties(database), removals, updates)
        _describe(database, properties)
        with self._metastore.open() as connection:
            connection.ask("alter_database", name, database)
        return summary

    def _load_database(self, name: str) -> Any:
        try:
            return self._metastore.ask("get_database", name)
        except RefusedError as error:
            if error.kind != "NoSuchObjectException":
                raise
            raise self._missing_database(name) from None

    def _missing_database(self, name: str) -> NoSuchNamespaceError:
        return NoSuchNamespaceError(f"namespace {name} does not exist in catalog {self.name}")


def _properties(database: Any) -> dict[str, str]:
    own = {"location": database.locationUri, "comment": database.description, "owner": database.ownerName}
    return {**(database.parameters or {}), **{key: value for key, value in own.items() if value}}


def _describe(database: Any, properties: Mapping[str, str]) -> None:
    parameters = dict(properties)
    database.locationUri = parameters.pop("location", None)
    database.description = parameters.pop("comment", None)
    database.ownerName = parameters.pop("owner", None)
    database.parameters = parameters


def _require_key(stored: Mapping[str, str], metadata: TableMetadata, location: str) -> None:
    """Refuse metadata with another key than that of the metastore."""
    # By a changed file others could stop encryption.
    trusted = (stored or {}).get(_KEY_ID)
    found = metadata.properties.get(_KEY_ID)
    if trusted is not None and trusted != found:
        msg = f"{location}: has {_KEY_ID}={found}, but the metastore has {trusted}: the file was changed"
        raise CorruptDataError(msg)
