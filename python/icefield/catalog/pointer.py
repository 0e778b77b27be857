"""Catalogs that keep, for each table, the location of its current metadata file."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from icefield._core import TableState
from icefield._inputs.identifiers import IdentifierLike
from icefield._inputs.secrets import revealed
from icefield.catalog.base import Catalog, CommitTableResponse, TableDefinition
from icefield.catalog.locations import absolute_location
from icefield.errors import MissingFileError, NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError

if TYPE_CHECKING:
    from icefield.table import Table

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
            try:
                state = TableState.load(self.storage, self.load_pointer(identifier))
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

    def table_exists(self, identifier: IdentifierLike) -> bool:
        """Return whether there is a table of this name; its metadata is not read."""
        try:
            self.load_pointer(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return False
        return True


def _response(state: TableState) -> CommitTableResponse:
    return CommitTableResponse(state.metadata, state.metadata_location)
