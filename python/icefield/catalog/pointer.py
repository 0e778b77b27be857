"""Catalogs that keep, for each table, the location of its current metadata file."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from icefield._core import TableState
from icefield._inputs.identifiers import IdentifierLike, table_tuple
from icefield._inputs.secrets import revealed
from icefield.catalog.base import Catalog, CommitTableResponse, TableDefinition
from icefield.catalog.locations import absolute_location
from icefield.errors import (
    AlreadyExistsError,
    CommitFailedException,
    CorruptDataError,
    MissingFileError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
    ViewAlreadyExistsError,
)
from icefield.view import View
from icefield.view.metadata import changed, check, created, file_name, from_bytes, to_bytes

if TYPE_CHECKING:
    from icefield.table import Table
    from icefield.view.catalog import ViewDefinition
    from icefield.view.metadata import Document

__all__ = ["PointerCatalog"]


class PointerCatalog(Catalog):
    """A catalog whose commits swap one pointer. Subclasses implement five operations on pointers, and the namespaces.

    `swap_pointer` is the one step that makes a commit visible, and must be atomic.
    """

    # The compiled core calls these by name.

    def _pointer(self, identifier: IdentifierLike) -> str:
        return self.load_pointer(identifier)

    def _add(self, identifier: IdentifierLike, metadata_location: str) -> None:
        self.add_pointer(identifier, metadata_location)

    def _swap(self, identifier: IdentifierLike, base: str, new: str) -> None:
        self.swap_pointer(identifier, base, new)

    @abstractmethod
    def load_pointer(self, identifier: IdentifierLike) -> str:
        """Return the location of a table's metadata file; `NoSuchTableError` if the table does not exist."""

    @abstractmethod
    def add_pointer(self, identifier: IdentifierLike, metadata_location: str) -> None:
        """Add a table; `TableAlreadyExistsError` if the name already exists."""

    @abstractmethod
    def swap_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        """Point a table at new metadata if it still points at ``base``.

        Raises
        ------
        CommitFailedException
            If it points elsewhere, or the swap certainly did not happen.
        CommitStateUnknownException
            If the outcome is unknown.

        """

    @abstractmethod
    def remove_pointer(self, identifier: IdentifierLike) -> None:
        """Remove a table; `NoSuchTableError` if the table does not exist."""

    @abstractmethod
    def rename_pointer(self, old: IdentifierLike, new: IdentifierLike) -> None:
        """Rename a table."""

    # Pointers of views: a catalog that has views implements these too, and `list_views`.

    def load_view_pointer(self, identifier: IdentifierLike) -> str:
        """Return the location of a view's metadata file; `NoSuchViewError` if the view does not exist."""
        raise self._missing_view(identifier)

    def add_view_pointer(self, identifier: IdentifierLike, metadata_location: str) -> None:  # noqa: ARG002
        """Add a view; `TableAlreadyExistsError` if a table or view has the name."""
        raise UnsupportedFeatureError(f"{type(self).__name__} {self.name!r} has no views")

    def swap_view_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:  # noqa: ARG002
        """Point a view at new metadata if it still points at ``base``; the errors of `swap_pointer`."""
        raise self._missing_view(identifier)

    def remove_view_pointer(self, identifier: IdentifierLike) -> None:
        """Remove a view; `NoSuchViewError` if the view does not exist."""
        raise self._missing_view(identifier)

    def rename_view_pointer(self, old: IdentifierLike, new: IdentifierLike) -> None:  # noqa: ARG002
        """Rename a view."""
        raise self._missing_view(old)

    def load_table(self, identifier: IdentifierLike) -> Table:
        """Load the current state of a table."""
        return self.table_at(identifier, self.load_pointer(identifier))

    def load_table_metadata(self, identifier: IdentifierLike) -> CommitTableResponse:
        """Return the current metadata of a table."""
        return _response(TableState.load(self.storage, self.load_pointer(identifier)))

    def commit_table(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],
        updates: Iterable[Mapping[str, object]],
    ) -> CommitTableResponse:
        """Apply updates to a table if it meets the requirements, all or none; retried if another commit wins."""
        requirements, updates = list(requirements), list(updates)
        if any(requirement.get("type") == "assert-create" for requirement in requirements):
            return _response(TableState.create_by(self.storage, self, identifier, requirements, updates))
        state = TableState.load(self.storage, self.load_pointer(identifier))
        return _response(state.commit(self, identifier, requirements, updates))

    def create_defined_table(self, identifier: IdentifierLike, definition: TableDefinition) -> Table:
        """Create a table by its definition: write its metadata file, then add the pointer."""
        self._check_absent(identifier)
        state = TableState.create(self.storage, *self._parts(identifier, definition))
        try:
            self.add_pointer(identifier, state.metadata_location)
        except (TableAlreadyExistsError, NoSuchNamespaceError):
            # Another creator was faster: nothing refers to our file.
            with suppress(StorageError):
                state.storage.delete(state.metadata_location)
            raise
        return self._opened(identifier, state)

    def register_table(self, identifier: IdentifierLike, metadata_location: str, overwrite: bool = False) -> Table:
        """Register a table that exists in storage, by the location of its metadata file."""
        state = TableState.load(self.storage, metadata_location)
        try:
            self.add_pointer(identifier, metadata_location)
        except TableAlreadyExistsError:
            # A view of this name is never replaced.
            if not overwrite or not self.table_exists(identifier):
                raise
            self.swap_pointer(identifier, self.load_pointer(identifier), metadata_location)
        return self._opened(identifier, state)

    def drop_table(self, identifier: IdentifierLike, purge_requested: bool = False) -> None:
        """Drop a table; its files stay unless a purge is requested."""
        state = None
        left: list[str] = []
        failures = 0
        if purge_requested:
            where = ""
            # Of a table that was replaced meanwhile, the files of the other are deleted with its name.
            while (now := self.load_pointer(identifier)) != where:
                where, state, failures, left = now, None, 0, []
                try:
                    state = TableState.load(self.storage, where)
                except MissingFileError as error:
                    failures, left = 1, [str(error)]
        self.remove_pointer(identifier)
        if state is not None:
            warehouse = revealed(self.properties).get("warehouse")
            failures, left = state.purge(absolute_location(warehouse, "the warehouse") if warehouse else None)
        if failures:
            more = [f"and {failures - len(left)} more"] if failures > len(left) else []
            msg = f"table dropped, but some of its files could not be deleted: {'; '.join([*left, *more])}"
            warnings.warn(msg, RuntimeWarning, stacklevel=2)

    def rename_table(self, from_identifier: IdentifierLike, to_identifier: IdentifierLike) -> Table:
        """Rename a table; its files stay where they are."""
        self.rename_pointer(from_identifier, to_identifier)
        return self.load_table(to_identifier)

    # Views

    def load_view(self, identifier: IdentifierLike) -> View:
        """Load the current state of a view."""
        where = self.load_view_pointer(identifier)
        return self._view(identifier, from_bytes(self.storage.read(where), where), where)

    def view_exists(self, identifier: IdentifierLike) -> bool:
        """Return whether there is a view of this name; its metadata is not read."""
        try:
            self.load_view_pointer(identifier)
        except (NoSuchViewError, NoSuchNamespaceError):
            return False
        return True

    def create_defined_view(self, identifier: IdentifierLike, definition: ViewDefinition) -> View:
        """Create a view by its definition: write its metadata file, then add the pointer."""
        namespace, name = table_tuple(identifier)
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"namespace {'.'.join(namespace)} does not exist in catalog {self.name}")
        if definition.location is None:
            location = self._unoccupied(self.default_location(namespace, name))
        else:
            location = absolute_location(definition.location, "the location of the view")
        document = created(location, definition.columns, definition.version, definition.properties)
        where = self._written(document, 0)
        try:
            self._add_view(identifier, where)
        except (AlreadyExistsError, NoSuchNamespaceError, UnsupportedFeatureError):
            # Nothing refers to our file.
            with suppress(StorageError):
                self.storage.delete(where)
            raise
        return self._view(identifier, document, where)

    def commit_view(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],
        updates: Iterable[Mapping[str, object]],
    ) -> View:
        """Apply updates to a view if it meets the requirements, all or none."""
        base = self.load_view_pointer(identifier)
        document = from_bytes(self.storage.read(base), base)
        check(document, requirements)
        made = changed(document, updates)
        number = base.rpartition("/")[2].partition("-")[0]
        where = self._written(made, int(number) + 1 if number.isascii() and number.isdigit() else 0)
        try:
            self.swap_view_pointer(identifier, base, where)
        except (CommitFailedException, NoSuchViewError):
            with suppress(StorageError):
                self.storage.delete(where)
            raise
        return self._view(identifier, made, where)

    def register_view(self, identifier: IdentifierLike, metadata_location: str) -> View:
        """Register a view that exists in storage, by the location of its metadata file."""
        document = from_bytes(self.storage.read(metadata_location), metadata_location)
        self._add_view(identifier, metadata_location)
        return self._view(identifier, document, metadata_location)

    def rename_view(self, from_identifier: IdentifierLike, to_identifier: IdentifierLike) -> View:
        """Rename a view, within its namespace or into another; its files stay where they are."""
        try:
            self.rename_view_pointer(from_identifier, to_identifier)
        except TableAlreadyExistsError as error:
            raise ViewAlreadyExistsError(str(error)) from error
        return self.load_view(to_identifier)

    def drop_view(self, identifier: IdentifierLike) -> None:
        """Drop a view, and delete its current metadata file unless its property ``gc.enabled`` is ``false``."""
        known = None
        # Metadata that cannot be read do not keep a view.
        with suppress(StorageError, CorruptDataError, UnsupportedFeatureError):
            known = self.load_view(identifier)
        self.remove_view_pointer(identifier)
        if known is not None and known.properties.get("gc.enabled", "true").lower() != "false":
            with suppress(StorageError):
                self.storage.delete(known.metadata_location)

    def _add_view(self, identifier: IdentifierLike, where: str) -> None:
        try:
            self.add_view_pointer(identifier, where)
        except TableAlreadyExistsError as error:
            raise ViewAlreadyExistsError(str(error)) from error

    def _unoccupied(self, location: str) -> str:
        """Return a folder for a new view: one that has files may be that of a table that was renamed."""
        from uuid import uuid4

        return f"{location}-{uuid4()}" if self.storage.list(location) else location

    def _written(self, document: Document, number: int) -> str:
        where = file_name(document, number)
        self.storage.write(where, to_bytes(document))
        return where

    def _view(self, identifier: IdentifierLike, document: Document, where: str) -> View:
        namespace, name = table_tuple(identifier)
        return View((*namespace, name), document, where, self)

    def table_exists(self, identifier: IdentifierLike) -> bool:
        """Return whether there is a table of this name; its metadata is not read."""
        try:
            self.load_pointer(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return False
        return True


def _response(state: TableState) -> CommitTableResponse:
    return CommitTableResponse(state.metadata, state.metadata_location)
