"""Catalogs that keep, for each table, the location of its current metadata file."""

from __future__ import annotations

import os
import uuid
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from icefield._arguments import field_texts, property_texts
from icefield._arrow_names import without_nul
from icefield._core import Storage, TableState
from icefield._identifiers import Identifier, IdentifierLike, table_tuple
from icefield._secrets import revealed
from icefield.catalog.base import Catalog, CommitTableResponse
from icefield.errors import (
    InvalidArgumentError,
    MissingFileError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from icefield.table import CreateTableTransaction, Table

if TYPE_CHECKING:
    from icefield.arrow import SchemaLike
    from icefield.partitioning import PartitionSpec
    from icefield.sorting import SortOrder
    from icefield.transaction import Transaction

__all__ = ["PointerCatalog", "absolute_location"]


class PointerCatalog(Catalog):
    """A catalog whose commits swap one pointer. Subclasses implement five operations on pointers, and the namespaces.

    ``_swap`` is the one step that makes a commit visible, and must be atomic.
    """

    @abstractmethod
    def _pointer(self, identifier: IdentifierLike) -> str:
        """Return the location of a table's metadata file; `NoSuchTableError` if the table does not exist."""

    @abstractmethod
    def _add(self, identifier: IdentifierLike, metadata_location: str) -> None:
        """Add a table; `TableAlreadyExistsError` if the name already exists."""

    @abstractmethod
    def _swap(self, identifier: IdentifierLike, base: str, new: str) -> None:
        """Point a table at new metadata if it still points at ``base``.

        Raises
        ------
        CommitFailedException
            If it points elsewhere, or the swap certainly did not happen.
        CommitStateUnknownException
            If the outcome is unknown.

        """

    @abstractmethod
    def _remove(self, identifier: IdentifierLike) -> None:
        """Remove a table; `NoSuchTableError` if the table does not exist."""

    @abstractmethod
    def _rename(self, old: IdentifierLike, new: IdentifierLike) -> None:
        """Rename a table."""

    @property
    def storage(self) -> Storage:
        """The storage with this catalog's properties."""
        return Storage(revealed(self.properties))

    def load_table(self, identifier: IdentifierLike) -> Table:
        """Load the current state of a table."""
        return self._opened(identifier, TableState.load(self.storage, self._pointer(identifier)))

    def load_table_metadata(self, identifier: IdentifierLike) -> CommitTableResponse:
        """Return the current metadata of a table."""
        return _response(TableState.load(self.storage, self._pointer(identifier)))

    def commit_table(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],
        updates: Iterable[Mapping[str, object]],
    ) -> CommitTableResponse:
        """Apply updates to a table if it meets the requirements, all or none; retried if another commit wins."""
        state = TableState.load(self.storage, self._pointer(identifier))
        return _response(state.commit(self, identifier, list(requirements), list(updates)))

    def create_table(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None = None,
        sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        partition_by: Iterable[str] | str | None = None,
        sort_by: Iterable[str] | str | None = None,
    ) -> Table:
        """Create a table."""
        self._check_absent(identifier)
        definition = self._definition(
            identifier, schema, location, partition_spec, sort_order, properties, partition_by, sort_by
        )
        state = TableState.create(self.storage, *definition)
        try:
            self._add(identifier, state.metadata_location)
        except (TableAlreadyExistsError, NoSuchNamespaceError):
            # Another creator was faster: nothing refers to our file.
            state.storage.delete(state.metadata_location)
            raise
        return self._opened(identifier, state)

    def create_table_transaction(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None = None,
        sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        partition_by: Iterable[str] | str | None = None,
        sort_by: Iterable[str] | str | None = None,
    ) -> CreateTableTransaction:
        """Create a table at the end of a transaction, with all that was done in it; the arguments of `create_table`.

        Raises
        ------
        TableAlreadyExistsError
            If there is a table of this name.

        """
        self._check_absent(identifier)
        definition = self._definition(
            identifier, schema, location, partition_spec, sort_order, properties, partition_by, sort_by
        )
        table = self._opened(identifier, TableState.stage(self.storage, *definition))
        return CreateTableTransaction(table, lambda metadata_location: self._add(identifier, metadata_location))

    def create_or_replace_table_transaction(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None = None,
        sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        partition_by: Iterable[str] | str | None = None,
        sort_by: Iterable[str] | str | None = None,
    ) -> Transaction:
        """Create a table, or replace the table of this name, at the end of a transaction."""
        begin = self.replace_table_transaction if self.table_exists(identifier) else self.create_table_transaction
        return begin(
            identifier,
            schema,
            location,
            partition_spec,
            sort_order,
            properties,
            partition_by=partition_by,
            sort_by=sort_by,
        )

    def _check_absent(self, identifier: IdentifierLike) -> None:
        namespace, name = table_tuple(identifier)
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"namespace {'.'.join(namespace)} does not exist in catalog {self.name}")
        if self.table_exists(identifier):
            raise TableAlreadyExistsError(f"{'.'.join((*namespace, name))} already exists")

    def _definition(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        location: str | None,
        partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None,
        sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None,
        properties: Mapping[str, str] | None,
        partition_by: Iterable[str] | str | None,
        sort_by: Iterable[str] | str | None,
    ) -> tuple[object, str, list[str] | dict[str, object], list[str] | dict[str, object], dict[str, str]]:
        """Return the definition of a new table as the core takes it."""
        return (
            without_nul(schema),
            self.default_location(*table_tuple(identifier))
            if location is None
            else absolute_location(location, "the location of the table"),
            field_texts(partition_spec, partition_by, "partitioning"),
            field_texts(sort_order, sort_by, "sort order"),
            {**self._table_defaults(), **property_texts(properties)},
        )

    def register_table(self, identifier: IdentifierLike, metadata_location: str) -> Table:
        """Register a table that exists in storage, by the location of its metadata file."""
        state = TableState.load(self.storage, metadata_location)
        self._add(identifier, metadata_location)
        return self._opened(identifier, state)

    def drop_table(self, identifier: IdentifierLike, purge_requested: bool = False) -> None:
        """Drop a table; its files stay unless a purge is requested."""
        state = None
        left: list[str] = []
        failures = 0
        if purge_requested:
            try:
                state = TableState.load(self.storage, self._pointer(identifier))
            except MissingFileError as error:
                failures, left = 1, [str(error)]
        self._remove(identifier)
        if state is not None:
            warehouse = revealed(self.properties).get("warehouse")
            failures, left = state.purge(absolute_location(warehouse, "the warehouse") if warehouse else None)
        if failures:
            more = [f"and {failures - len(left)} more"] if failures > len(left) else []
            msg = f"table dropped, but some of its files could not be deleted: {'; '.join([*left, *more])}"
            warnings.warn(msg, RuntimeWarning, stacklevel=2)

    def rename_table(self, from_identifier: IdentifierLike, to_identifier: IdentifierLike) -> Table:
        """Rename a table; its files stay where they are."""
        self._rename(from_identifier, to_identifier)
        return self.load_table(to_identifier)

    def _opened(self, identifier: IdentifierLike, state: TableState) -> Table:
        namespace, name = table_tuple(identifier)
        return Table((*namespace, name), state, self)

    def _table_defaults(self) -> dict[str, str]:
        """The table properties from the catalog properties ``table-default.*``."""
        prefix = "table-default."
        given = revealed(self.properties).items()
        return {key.removeprefix(prefix): value for key, value in given if key.startswith(prefix)}

    def table_exists(self, identifier: IdentifierLike) -> bool:
        """Return whether there is a table of this name; its metadata is not read."""
        try:
            self._pointer(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return False
        return True

    def default_location(self, namespace: Identifier, table: str) -> str:
        """Return the default location of a table: under its namespace's location or the warehouse."""
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
            folder = "/".join((absolute_location(warehouse, "the property 'warehouse' of the catalog"), *namespace))
        else:
            folder = absolute_location(folder, f"the property 'location' of the namespace {'.'.join(namespace)}")
        suffix = f"-{uuid.uuid4()}" if self.properties.get("unique-table-location", "").lower() == "true" else ""
        return f"{folder.rstrip('/')}/{table}{suffix}"


def _response(state: TableState) -> CommitTableResponse:
    return CommitTableResponse(state.metadata, state.metadata_location)


def absolute_location(location: str, what: str) -> str:
    """Return a location as a URL: a bare path becomes ``file://`` and absolute, any URL is unchanged.

    Raises
    ------
    InvalidArgumentError
        If it is empty, which would be the working directory; ``what`` is for the message.

    """
    if not location:
        msg = f"{what} is empty"
        raise InvalidArgumentError(msg)
    scheme = urlsplit(location).scheme
    # One letter is a Windows drive.
    if len(scheme) > 1:
        return location.rstrip("/")
    path = Path(os.path.abspath(Path(location).expanduser()))  # noqa: PTH100  (resolve() would follow links)
    return "file://" + ("" if path.as_posix().startswith("/") else "/") + path.as_posix().rstrip("/")
