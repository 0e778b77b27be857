"""The methods of a catalog that are about views."""

from __future__ import annotations

import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from icefield._core import Storage, TableState
from icefield._inputs.arguments import property_texts
from icefield._inputs.frames import schema_of
from icefield._inputs.identifiers import parts_of
from icefield._inputs.secrets import revealed
from icefield.errors import (
    ArgumentTypeError,
    CommitFailedException,
    CommitStateUnknownException,
    IcefieldError,
    NoSuchNamespaceError,
    NoSuchViewError,
    UnsupportedFeatureError,
)
from icefield.view.handle import View
from icefield.view.metadata import ViewVersion, replacing

if TYPE_CHECKING:
    from icefield._inputs.identifiers import Identifier, IdentifierLike
    from icefield.arrow import SchemaLike

__all__ = ["ViewCatalog", "ViewDefinition"]

#: Attempts to replace a view that others change meanwhile, and the first wait between them, in seconds.
_TRIES = 8
_WAIT = 0.02


@dataclass(frozen=True)
class ViewDefinition:
    """The definition of a view to create, made of the arguments of `icefield.catalog.Catalog.create_view`."""

    #: The columns as a schema in JSON, with field ids.
    columns: dict[str, Any]
    version: ViewVersion
    #: The base location; ``None`` for the default.
    location: str | None
    properties: dict[str, str]


class ViewCatalog(ABC):
    """The views of a catalog; a catalog that does not support views lists none, and refuses to create one."""

    name: str
    properties: dict[str, str]

    def list_views(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the views directly in a namespace; a catalog without views has none."""
        levels = parts_of(namespace) if namespace else ()
        if not self.namespace_exists(levels):
            raise NoSuchNamespaceError(f"namespace {'.'.join(levels)} does not exist")
        return []

    @abstractmethod
    def namespace_exists(self, namespace: IdentifierLike) -> bool:
        """Return whether there is a namespace of this name."""

    @abstractmethod
    def load_table(self, identifier: IdentifierLike) -> Any:
        """Load the current state of a table."""

    def load_view(self, identifier: IdentifierLike) -> View:
        """Load the current state of a view.

        Raises
        ------
        NoSuchViewError
            If it does not exist.

        """
        raise self._missing_view(identifier)

    def view_exists(self, identifier: IdentifierLike) -> bool:
        """Return whether there is a view of this name."""
        name = parts_of(identifier)
        try:
            return name in self.list_views(name[:-1])
        except NoSuchNamespaceError:
            return False

    def create_view(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        queries: Mapping[str, str] | ViewVersion | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        view_version: ViewVersion | None = None,
        default_namespace: IdentifierLike | None = None,
        default_catalog: str | None = None,
    ) -> View:
        """Create a view.

        Parameters
        ----------
        identifier
            Namespace and name.
        schema
            The columns of the query, as in `create_table`.
        queries, view_version
            The query by its dialect of SQL: ``{"spark": "SELECT …", "duckdb": "SELECT …"}``; or a version with these
            and the defaults of its names, which may have PyIceberg's name ``view_version``.
        location
            The base location of its metadata files; by default as for tables.
        properties
            Properties of the view.
        default_namespace, default_catalog
            Where names in the query are found that have no namespace, or no catalog; by default in those of the view.

        Raises
        ------
        NoSuchNamespaceError
            If the namespace does not exist.
        ViewAlreadyExistsError
            If there is a view or table of this name.
        UnsupportedFeatureError
            If the catalog has no views.

        """
        if (queries is None) == (view_version is None):
            raise ArgumentTypeError("create_view() takes either queries or view_version")
        wanted = queries if queries is not None else view_version
        version = _version(identifier, wanted, default_namespace, default_catalog)
        version.to_json()
        given = {
            **self._view_properties("view-default."),
            **property_texts(properties),
            **self._view_properties("view-override."),
        }
        return self.create_defined_view(identifier, ViewDefinition(_schema_json(schema), version, location, given))

    def create_defined_view(self, identifier: IdentifierLike, definition: ViewDefinition) -> View:  # noqa: ARG002
        """Create a view by its definition; `create_view` calls it."""
        raise UnsupportedFeatureError(f"{type(self).__name__} {self.name!r} has no views")

    def replace_view(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        queries: Mapping[str, str] | ViewVersion,
        *,
        default_namespace: IdentifierLike | None = None,
        default_catalog: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """Replace the query of a view; its former versions and its other properties stay.

        Parameters
        ----------
        identifier, schema, queries, default_namespace, default_catalog
            As in `create_view`.
        properties
            Properties to set.

        Raises
        ------
        NoSuchViewError
            If there is no such view.
        ValidationException
            If the view has a query in a dialect that is not among these; the property ``replace.drop-dialect.allowed``
            of the view permits it.
        CommitFailedException
            If every attempt lost to another change.
        CommitStateUnknownException
            If the outcome is unknown.

        """
        version = _version(identifier, queries, default_namespace, default_catalog)
        columns = _schema_json(schema)
        given = {**property_texts(properties), **self._view_properties("view-override.")}
        for attempt in range(_TRIES):
            known = self.load_view(identifier)
            updates = replacing(known.metadata, columns, version, given)
            if not updates:
                return known
            try:
                return self.commit_view(identifier, [{"type": "assert-view-uuid", "uuid": known.uuid()}], updates)
            except CommitFailedException as failure:
                # The view itself was replaced, or the catalog refuses.
                if attempt == _TRIES - 1 or failure.__cause__ is not None:
                    raise
            except CommitStateUnknownException:
                if (found := self._change_found(identifier, known, updates)) is None:
                    raise
                return found
            time.sleep(_WAIT * 2**attempt * random.uniform(0.5, 1))  # noqa: S311 - spreads clients
        raise AssertionError  # the last attempt has returned or raised

    def _change_found(
        self, identifier: IdentifierLike, known: View, updates: Iterable[Mapping[str, Any]]
    ) -> View | None:
        """Return the view if a change of it, whose outcome is unknown, was made."""
        added = [one["view-version"] for one in updates if one["action"] == "add-view-version"]
        try:
            now = self.load_view(identifier)
        except IcefieldError:
            return None
        parts = ("timestamp-ms", "representations", "default-namespace", "default-catalog")
        for version in added:
            if now.uuid() == known.uuid() and any(
                all(one.get(part) == version.get(part) for part in parts) for one in now.metadata["versions"]
            ):
                return now
        return None

    def create_or_replace_view(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        queries: Mapping[str, str] | ViewVersion,
        *,
        default_namespace: IdentifierLike | None = None,
        default_catalog: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """Replace a view as `replace_view` does, or create it."""
        names = {"default_namespace": default_namespace, "default_catalog": default_catalog}
        try:
            return self.replace_view(identifier, schema, queries, properties=properties, **names)  # type: ignore[arg-type]
        except NoSuchViewError:
            return self.create_view(identifier, schema, queries, None, properties, **names)  # type: ignore[arg-type]

    def commit_view(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],  # noqa: ARG002
        updates: Iterable[Mapping[str, object]],  # noqa: ARG002
    ) -> View:
        """Apply updates to a view if it meets the requirements, all or none.

        Parameters
        ----------
        identifier
            The view.
        requirements, updates
            ``ViewRequirement`` and ``ViewUpdate`` objects of the REST protocol.

        Raises
        ------
        NoSuchViewError
            If it does not exist.
        CommitFailedException
            If it does not meet a requirement, or was changed meanwhile; nothing was changed.
        CommitStateUnknownException
            If the outcome is unknown.

        """
        raise self._missing_view(identifier)

    def register_view(self, identifier: IdentifierLike, metadata_location: str) -> View:  # noqa: ARG002
        """Register a view that exists in storage, by the location of its metadata file.

        Raises
        ------
        ViewAlreadyExistsError
            If there is a view or table of this name.
        UnsupportedFeatureError
            If the catalog cannot.

        """
        raise UnsupportedFeatureError(f"{type(self).__name__} {self.name!r} does not register views")

    def rename_view(self, from_identifier: IdentifierLike, to_identifier: IdentifierLike) -> View:  # noqa: ARG002
        """Rename a view, within its namespace or into another.

        Raises
        ------
        NoSuchViewError
            If it does not exist.
        ViewAlreadyExistsError
            If there is a view or table of the new name.

        """
        raise self._missing_view(from_identifier)

    def drop_view(self, identifier: IdentifierLike) -> None:
        """Drop a view.

        Raises
        ------
        NoSuchViewError
            If it does not exist.

        """
        raise self._missing_view(identifier)

    def _missing_view(self, identifier: IdentifierLike) -> NoSuchViewError:
        return NoSuchViewError(f"view {'.'.join(parts_of(identifier))} does not exist in catalog {self.name}")

    def _view_properties(self, prefix: str) -> dict[str, str]:
        given = revealed(self.properties).items()
        return {key.removeprefix(prefix): value for key, value in given if key.startswith(prefix)}


def _version(
    identifier: IdentifierLike,
    queries: Mapping[str, str] | ViewVersion | None,
    default_namespace: IdentifierLike | None,
    default_catalog: str | None,
) -> ViewVersion:
    given = queries if isinstance(queries, ViewVersion) else ViewVersion(queries)
    if not given.default_namespace:
        given = replace(given, default_namespace=parts_of(identifier)[:-1])
    if default_namespace is not None:
        given = replace(given, default_namespace=parts_of(default_namespace) if default_namespace else ())
    if default_catalog is not None:
        given = replace(given, default_catalog=default_catalog)
    return replace(given, timestamp_ms=time.time_ns() // 1_000_000)


def _schema_json(schema: SchemaLike) -> dict[str, Any]:
    """Return the JSON of a schema, with field ids."""
    staged = TableState.stage(Storage({}), schema_of(schema), "file:///nowhere", [], [], {"format-version": "3"})
    columns: dict[str, Any] = json.loads(staged.schema().to_json())
    return columns
