"""The base class of all catalogs."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from icefield._core import Storage, TableState
from icefield._inputs.arguments import property_texts
from icefield._inputs.identifiers import table_tuple
from icefield._inputs.secrets import revealed
from icefield.catalog.locations import absolute_location
from icefield.catalog.migration import MigrationRequest, migrate_folder
from icefield.catalog.profiles import with_profile
from icefield.encryption.registry import client_of
from icefield.errors import InvalidArgumentError, NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from icefield.metrics import commit_report, reporter_of, scan_report, takes_reports
from icefield.table import CreateTableTransaction, Table, Transaction
from icefield.table.catalog import (
    CommitTableResponse,
    Migration,
    PropertiesUpdateSummary,
    TableCatalog,
    TableDefinition,
)

if TYPE_CHECKING:
    from pathlib import Path

    from icefield._inputs.identifiers import Identifier, IdentifierLike
    from icefield.encryption import KeyManagementClient
    from icefield.metadata import TableMetadata
    from icefield.metrics import Report, Reporter
    from icefield.scan import DataScan, PlanReporter
    from icefield.types import Type

__all__ = ["Catalog", "CommitTableResponse", "PropertiesUpdateSummary", "TableDefinition"]

_LOGGER = logging.getLogger("icefield")

#: The definition of a new table as the core takes it: schema, location, partition spec, sort order, properties.
TableParts: TypeAlias = tuple[object, str, list[str] | dict[str, object], list[str] | dict[str, object], dict[str, str]]


class Catalog(TableCatalog[Table, Transaction, CreateTableTransaction]):
    """The names of tables and their current metadata.

    Parameters
    ----------
    name
        The name of the catalog; for SQL catalogs a part of every key.
    **properties
        Properties of the catalog and its storage. Secrets among them are never printed.

    """

    @staticmethod
    def identifier_to_tuple(identifier: IdentifierLike) -> Identifier:
        """Return the parts of the name of a table or namespace; a tuple may have parts with dots."""
        return tuple(identifier.split(".")) if isinstance(identifier, str) else tuple(identifier)

    @staticmethod
    def table_name_from(identifier: IdentifierLike) -> str:
        """Return the last part of the name of a table."""
        return table_tuple(identifier)[1]

    @staticmethod
    def namespace_from(identifier: IdentifierLike) -> Identifier:
        """Return the namespace of the name of a table."""
        return table_tuple(identifier)[0]

    @staticmethod
    def namespace_to_string(identifier: IdentifierLike, err: type[Exception] = ValueError) -> str:
        """Return the name of a namespace with dots between its parts; ``err`` is raised where a part is empty."""
        parts = Catalog.identifier_to_tuple(identifier)
        if not parts or not all(part.strip() for part in parts):
            raise err(f"expected the name of a namespace, got {identifier!r}")
        return ".".join(parts)

    @staticmethod
    def identifier_to_database(identifier: IdentifierLike, err: type[Exception] = ValueError) -> str:
        """Return the name of a namespace of one level; ``err`` is raised for any other."""
        parts = Catalog.identifier_to_tuple(identifier)
        if len(parts) != 1:
            raise err(f"expected the name of a namespace of one level, got {identifier!r}")
        return parts[0]

    @staticmethod
    def identifier_to_database_and_table(
        identifier: IdentifierLike, err: type[Exception] = ValueError
    ) -> tuple[str, str]:
        """Return the two parts of the name of a table in a namespace of one level; ``err`` is raised for any other."""
        parts = Catalog.identifier_to_tuple(identifier)
        if len(parts) != 2:  # noqa: PLR2004 - a namespace and a table
            raise err(f"expected the name of a table in a namespace of one level, got {identifier!r}")
        return parts[0], parts[1]

    def supports_server_side_planning(self) -> bool:
        """Return whether a server plans the scans of tables, as those of REST catalogs may."""
        return False

    #: The storage and the properties that it was made of.
    _storage: tuple[dict[str, str], Storage] | None = None

    @property
    def storage(self) -> Storage:
        """The storage with those of this catalog's properties that are for storage.

        It is made once and again after a change of properties, as it keeps its connections and credentials. What it
        pickles has no other properties of the catalog: it goes to executors.
        """
        properties = self._storage_properties()
        if self._storage is None or self._storage[0] != properties:
            self._storage = properties, self._with_keys(Storage(properties))
        return self._storage[1]

    #: The client of the keys of encrypted tables, and whether it was asked for.
    _keys: tuple[KeyManagementClient | None] | None = None

    @property
    def key_management(self) -> KeyManagementClient | None:
        """The client of the service with the keys of encrypted tables; None without one.

        It is made as the properties ``encryption.kms-type`` or ``encryption.kms-impl`` say, once, and may also be set.
        Tables that are loaded afterwards use it. It is not pickled.
        """
        if self._keys is None:
            self._keys = (client_of(revealed(self.properties)),)
        return self._keys[0]

    @key_management.setter
    def key_management(self, client: KeyManagementClient | None) -> None:
        if client is not None and not all(callable(getattr(client, one, None)) for one in ("wrap_key", "unwrap_key")):
            raise InvalidArgumentError(
                f"key_management: expected a client with wrap_key and unwrap_key, got {type(client).__name__}"
            )
        self._keys = (client,)
        self._forget_storages()

    def _forget_storages(self) -> None:
        """Make storages again, for those made with the former client of keys still decrypt with it."""
        self._storage = None

    def _with_keys(self, storage: Storage) -> Storage:
        client = self.key_management
        return storage if client is None else storage.with_keys(client)

    def _attached(self, identifier: Identifier, state: TableState) -> TableState:  # noqa: ARG002
        # Other tables need no client, which may ask for an SDK or a file that is not here.
        if state.storage.has_keys or not state.metadata.properties.get("encryption.key-id"):
            return state
        return TableState.of(self._with_keys(state.storage), state.metadata_location, state.metadata)

    #: What takes reports about scans and commits, and its function; None if the properties have not been asked.
    _reporter: tuple[Reporter | None, Callable[[Report], object] | None] | None = None

    @property
    def metrics_reporter(self) -> Any:
        """What takes the reports about scans and commits (`icefield.metrics`); None without one.

        It is made as the property ``metrics-reporter-impl`` says, once, and may also be set. It is not pickled.
        Its type is that of the class which the property names, so that a type checker lets you use what that class has.
        """
        return self._reporters[0]

    @metrics_reporter.setter
    def metrics_reporter(self, reporter: Reporter | None) -> None:
        self._reporter = reporter, None if reporter is None else takes_reports(reporter, "metrics_reporter")

    @property
    def _reporters(self) -> tuple[Reporter | None, Callable[[Report], object] | None]:
        if self._reporter is None:
            # Properties that a server or the metadata of a table has are not asked: they would choose what code runs.
            self.metrics_reporter = reporter_of(revealed(self.properties))
        return self._reporter or (None, None)

    @property
    def _takes_reports(self) -> bool:
        try:
            return self._reporters[1] is not None
        except Exception as error:  # noqa: BLE001 - it may be missing on an executor, which reads nevertheless
            _LOGGER.warning("no reports: %s", error)
            self.metrics_reporter = None
            return False

    def _take_report(self, identifier: Identifier, report: Report) -> None:  # noqa: ARG002
        if (take := self._reporters[1]) is not None:
            take(report)

    def _report(self, identifier: Identifier, make: Callable[[str], Report | None]) -> None:
        try:
            if (report := make(self._name_of_report(identifier))) is not None:
                self._take_report(identifier, report)
        except Exception as error:  # noqa: BLE001 - a report is never worth an error
            _LOGGER.warning("the report about %s failed: %s", ".".join(identifier), error)

    def _name_of_report(self, identifier: Identifier) -> str:
        """Return the full name of a table, as Java writes it."""
        if not {"/", ":"} & set(self.name):
            return ".".join((self.name, *identifier))
        return f"{self.name.rstrip('/')}/{'.'.join(identifier)}"

    def _plan_reporter(self, identifier: Identifier) -> PlanReporter | None:
        if not self._takes_reports:
            return None

        def report(scan: DataScan, counts: Mapping[str, int], nanoseconds: int, /) -> None:
            self._report(identifier, lambda name: scan_report(name, scan, counts, nanoseconds))

        return report

    def _report_commit(
        self, identifier: Identifier, metadata: TableMetadata, snapshot_ids: list[int], attempts: int, nanoseconds: int
    ) -> None:
        for snapshot in snapshot_ids if self._takes_reports else ():

            def make(name: str, snapshot: int = snapshot) -> Report | None:
                return commit_report(name, metadata, snapshot, attempts, nanoseconds)

            self._report(identifier, make)

    def _storage_properties(self) -> dict[str, str]:
        properties = revealed(self.properties)
        allowed = properties.get("io.allowed-locations")
        if allowed is not None and (warehouse := properties.get("warehouse")):
            own = absolute_location(warehouse, "the property 'warehouse' of the catalog")
            named = (location.strip() for location in allowed.split(","))
            properties["io.allowed-locations"] = ",".join(own if name == "warehouse" else name for name in named)
        return with_profile(properties)

    def load_table(self, identifier: IdentifierLike) -> Table:
        """Load the current state of a table.

        Raises
        ------
        NoSuchTableError
            If it does not exist.

        """
        found = self.load_table_metadata(identifier)
        return self._opened(identifier, TableState.of(self.storage, found.metadata_location, found.metadata))

    def load_tables(
        self, identifiers: Iterable[IdentifierLike], *, workers: int = 8, missing_ok: bool = False
    ) -> Iterator[Table]:
        """Load many tables, several at a time, and yield them in the order of their names.

        Most of the time of loading a table is that of waiting for a server, or for the storage of its metadata file.

        Parameters
        ----------
        identifiers
            Their names, such as those of `list_tables`.
        workers
            How many are loaded at a time.
        missing_ok
            Leave out tables that do not exist, as those that were dropped since they were listed.

        Raises
        ------
        NoSuchTableError
            If a table does not exist; those before it have been yielded.

        Examples
        --------
        >>> for table in catalog.load_tables(catalog.list_tables("nyc")):  # doctest: +SKIP
        ...     print(table.name(), len(table.snapshots()))

        """
        if workers < 1:
            raise InvalidArgumentError(f"workers: expected at least 1, got {workers}")
        return self._loaded(iter(identifiers), workers, missing_ok=missing_ok)

    def _loaded(self, names: Iterator[IdentifierLike], workers: int, *, missing_ok: bool) -> Iterator[Table]:
        from concurrent.futures import ThreadPoolExecutor  # few programs need it

        pool = ThreadPoolExecutor(workers, thread_name_prefix="icefield-load")
        try:
            # As many again wait in line, so that no worker waits for what is made of the tables.
            begun = deque(pool.submit(self.load_table, name) for name in islice(names, 2 * workers))
            made: list[Table] = []
            while begun:
                with suppress(*((NoSuchTableError,) if missing_ok else ())):
                    made.append(begun.popleft().result())
                if made:
                    yield made.pop()
                begun.extend(pool.submit(self.load_table, name) for name in islice(names, 1))
        finally:
            pool.shutdown(cancel_futures=True)

    def table_at(self, identifier: IdentifierLike, metadata_location: str) -> Table:
        """Return a table of this catalog as a metadata file describes it; your own catalog may use it.

        Raises
        ------
        MissingFileError
            If there is no such file.

        """
        return self._opened(identifier, TableState.load(self.storage, metadata_location))

    def create_defined_table(self, identifier: IdentifierLike, definition: TableDefinition) -> Table:
        """Create a table by its definition; `create_table` calls it.

        It is created as `create_table_transaction` does, by `commit_table`; your own catalog may do otherwise.
        """
        return self._creation(identifier, definition).commit_transaction()

    def stage_table(self, identifier: IdentifierLike, definition: TableDefinition) -> Table:
        """Return a new table that the catalog does not have yet; a catalog whose server stages tables asks it here."""
        return self._opened(identifier, TableState.stage(self.storage, *self._parts(identifier, definition)))

    def _creation(self, identifier: IdentifierLike, definition: TableDefinition) -> CreateTableTransaction:
        self._check_absent(identifier)
        return CreateTableTransaction(self.stage_table(identifier, definition))

    def _replacement(self, identifier: IdentifierLike, definition: TableDefinition) -> Transaction:
        return self.load_table(identifier).transaction().replace(definition)

    def migrate(
        self,
        identifier: IdentifierLike,
        folder: str | Path,
        *,
        format: Literal["parquet", "orc", "avro"] | None = None,
        partitioning: Mapping[str, Type | str] | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        snapshot_properties: Mapping[str, str] | None = None,
        validate: Literal["footer", "data"] = "footer",
        dry_run: bool = False,
    ) -> Migration[Table]:
        """Create a table of a folder with data files in Hive's layout; no file is moved or written again.

        The files may be below folders ``name=value``, which become partitions by identity. The schema is the union of
        the schemas of all files, by name, with all columns optional; partition columns that are not in the files
        follow. The table and its files appear in one commit, with a name mapping if the files have no field ids.

        Parameters
        ----------
        identifier
            Namespace and name of the table.
        folder
            The folder. Empty files, and files and folders whose names begin with ``_`` or ``.``, are left out.
        format
            The format of all files; by default each may have its own, which its first bytes tell.
        partitioning
            Types of partition columns by name. Otherwise they are inferred from all of their values, as Spark does:
            ``int``, ``long``, ``decimal(38, 0)``, ``double``, ``date``, ``timestamp`` or ``string``.
            ``__HIVE_DEFAULT_PARTITION__`` is null.
        location
            Location of the table; by default the folder. With another location the folder's files are shared with
            those that wrote them: then ``gc.enabled`` is ``false``, as in Java's ``snapshot``.
        properties
            Table properties, as for `create_table`.
        snapshot_properties
            Entries of the snapshot's summary.
        validate
            As in `Table.add_files`.
        dry_run
            Only look at the folder, and return what would be created.

        Raises
        ------
        TableAlreadyExistsError
            If there is a table of this name.
        InvalidArgumentError
            If there are no files, or their partitions or columns contradict each other; nothing was created.
        CorruptDataError
            If a file is no data file.
        UnsupportedFeatureError
            If the folder is a table of another format with a log of its own.

        """
        self._check_absent(identifier)
        request = MigrationRequest(
            absolute_location(str(folder), "the folder"),
            format,
            partitioning or {},
            location,
            property_texts(properties),
        )
        return migrate_folder(
            self.storage,
            request,
            lambda schema, **parts: self.create_table_transaction(identifier, schema, **parts),
            snapshot_properties,
            validate=validate,
            dry_run=dry_run,
        )

    def default_location(self, namespace: Identifier, table: str) -> str:
        """Return the default location of a table: under its namespace's location or the warehouse."""
        from uuid import uuid4

        # One folder per name: none contains that of another table.
        if odd := [part for part in (*namespace, table) if part in {".", ".."} or "/" in part or "\\" in part]:
            msg = f"{odd[0]!r} cannot be used as the name of a folder: pass a location"
            raise InvalidArgumentError(msg)
        folder = self.load_namespace_properties(namespace).get("location")
        if folder is None:
            warehouse = self.properties.get("warehouse")
            if warehouse is None:
                msg = "table location is missing: pass one, or set the catalog property 'warehouse'"
                raise InvalidArgumentError(msg)
            folder = self._folder_of(absolute_location(warehouse, "the property 'warehouse' of the catalog"), namespace)
        else:
            folder = absolute_location(folder, f"the property 'location' of the namespace {'.'.join(namespace)}")
        suffix = f"-{uuid4()}" if self.properties.get("unique-table-location", "").lower() == "true" else ""
        return f"{folder.rstrip('/')}/{table}{suffix}"

    def _folder_of(self, warehouse: str, namespace: Identifier) -> str:
        """Return the folder of a namespace that has no location."""
        return "/".join((warehouse, *namespace))

    def _check_absent(self, identifier: IdentifierLike) -> None:
        namespace, name = table_tuple(identifier)
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"namespace {'.'.join(namespace)} does not exist in catalog {self.name}")
        if self.table_exists(identifier):
            full = ".".join((*namespace, name))
            raise TableAlreadyExistsError(
                f"{full} already exists; load_table opens it, and create_table_if_not_exists does either"
            )

    def _parts(self, identifier: IdentifierLike, definition: TableDefinition) -> TableParts:
        """Return the definition of a new table as the core takes it."""
        location = definition.location
        return (
            definition.schema,
            self.default_location(*table_tuple(identifier))
            if location is None
            else absolute_location(location, "the location of the table"),
            definition.partition_spec,
            definition.sort_order,
            {**self._table_defaults(), **definition.properties},
        )

    def _opened(self, identifier: IdentifierLike, state: TableState) -> Table:
        namespace, name = table_tuple(identifier)
        return Table((*namespace, name), state, self)

    def _table_defaults(self) -> dict[str, str]:
        """The table properties from the catalog properties ``table-default.*``."""
        prefix = "table-default."
        given = revealed(self.properties).items()
        return {key.removeprefix(prefix): value for key, value in given if key.startswith(prefix)}
