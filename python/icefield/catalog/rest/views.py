"""Views of a REST catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from icefield.catalog.locations import absolute_location
from icefield.catalog.rest.client import Client
from icefield.catalog.rest.protocol import endpoints
from icefield.catalog.rest.protocol.errors import Meanings, error_of, is_success
from icefield.catalog.rest.protocol.messages import Reply
from icefield.catalog.rest.protocol.names import dotted, identifiers_of, named, table_of
from icefield.catalog.rest.tables import RestTables
from icefield.errors import (
    CommitFailedException,
    CorruptDataError,
    IcefieldError,
    NoSuchViewError,
    RESTError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
    ViewAlreadyExistsError,
)
from icefield.view import View
from icefield.view.metadata import checked

if TYPE_CHECKING:
    from icefield._inputs.identifiers import Identifier, IdentifierLike
    from icefield.view.catalog import ViewDefinition

__all__ = ["RestViews"]


class RestViews(RestTables):
    """The methods of a REST catalog that are about views."""

    def list_views(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the views directly in a namespace; a server without views has none."""
        levels = self._levels(namespace)
        if not self._client.config.endpoints.offer(endpoints.LIST_VIEWS):
            self.load_namespace_properties(levels)
            return []
        found: list[Identifier] = []
        missing = self._missing_namespace(levels)
        for page in self._client.pages(endpoints.LIST_VIEWS, {"namespace": levels}, "identifiers", missing):
            found += identifiers_of(page)
        return found

    def view_exists(self, identifier: IdentifierLike) -> bool:
        """Return whether there is a view of this name."""
        names = _names(identifier)
        if (found := self._exists(endpoints.VIEW_EXISTS, names)) is not None:
            return found
        if not self._client.config.endpoints.offer(endpoints.LOAD_VIEW):
            return False
        reply = self._client.get(endpoints.LOAD_VIEW, names)
        if not is_success(reply) and reply.status != 404:  # noqa: PLR2004
            raise error_of(reply)
        return is_success(reply)

    def load_view(self, identifier: IdentifierLike) -> View:
        """Load the current state of a view."""
        _require(self._client, endpoints.LOAD_VIEW)
        return self._view(identifier, self._client.get(endpoints.LOAD_VIEW, _names(identifier)))

    def create_defined_view(self, identifier: IdentifierLike, definition: ViewDefinition) -> View:
        """Create a view by its definition; the server chooses its location if there is none."""
        _require(self._client, endpoints.CREATE_VIEW)
        namespace, name = table_of(identifier)
        body: dict[str, object] = {
            "name": name,
            "schema": definition.columns,
            "view-version": definition.version.to_json(),
            "properties": definition.properties,
        }
        if definition.location is not None:
            body["location"] = absolute_location(definition.location, "the location of the view")
        meanings = self._meanings_of_new_view(identifier)
        return self._view(
            identifier, self._send_change(endpoints.CREATE_VIEW, {"namespace": namespace}, body, meanings)
        )

    def commit_view(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],
        updates: Iterable[Mapping[str, object]],
    ) -> View:
        """Apply updates to a view if it meets the requirements, all or none."""
        _require(self._client, endpoints.REPLACE_VIEW)
        body = {"identifier": named(identifier), "requirements": list(requirements), "updates": list(updates)}
        meanings: Meanings = {
            **self._missing_view_meant(identifier),
            409: lambda text: CommitFailedException(f"the view was changed meanwhile: {text}"),
        }
        return self._view(identifier, self._send_change(endpoints.REPLACE_VIEW, _names(identifier), body, meanings))

    def register_view(self, identifier: IdentifierLike, metadata_location: str) -> View:
        """Register a view that exists in storage, by the location of its metadata file."""
        self._client.config.endpoints.require(endpoints.REGISTER_VIEW, "registering views")
        namespace, name = table_of(identifier)
        body = {"name": name, "metadata-location": metadata_location}
        meanings = self._meanings_of_new_view(identifier)
        return self._view(
            identifier, self._send_change(endpoints.REGISTER_VIEW, {"namespace": namespace}, body, meanings)
        )

    def drop_view(self, identifier: IdentifierLike) -> None:
        """Drop a view; what becomes of its files is the server's choice."""
        _require(self._client, endpoints.DROP_VIEW)
        self._client.change(
            endpoints.DROP_VIEW,
            _names(identifier),
            self._missing_view_meant(identifier),
            is_made=lambda error: isinstance(error, NoSuchViewError),
        )

    def rename_view(self, from_identifier: IdentifierLike, to_identifier: IdentifierLike) -> View:
        """Rename a view, within its namespace or into another."""
        _require(self._client, endpoints.RENAME_VIEW)
        to = dotted(*table_of(to_identifier))
        meanings: Meanings = {
            **self._missing_view_meant(from_identifier),
            409: lambda _: ViewAlreadyExistsError(f"{to} already exists"),
        }
        body = {"source": named(from_identifier), "destination": named(to_identifier)}

        def is_made(error: IcefieldError) -> bool:
            return (
                isinstance(error, (NoSuchViewError, TableAlreadyExistsError))
                and not self.view_exists(from_identifier)
                and self.view_exists(to_identifier)
            )

        self._client.change(endpoints.RENAME_VIEW, {}, meanings, body, is_made=is_made)
        return self.load_view(to_identifier)

    def _view(self, identifier: IdentifierLike, reply: Reply) -> View:
        if not is_success(reply):
            raise error_of(reply, self._missing_view_meant(identifier))
        answer = reply.json()
        metadata, where = answer.get("metadata"), answer.get("metadata-location") or ""
        if not isinstance(metadata, dict):
            raise RESTError(f"{reply.asked}: the answer has no view metadata", reply.status)
        # Some servers write null for an empty list.
        metadata = {**metadata, "version-log": metadata.get("version-log") or []}
        try:
            checked(metadata, reply.asked)
        except (CorruptDataError, UnsupportedFeatureError) as error:
            raise RESTError(str(error), reply.status) from error
        namespace, name = table_of(identifier)
        return View((*namespace, name), metadata, str(where), self)

    def _meanings_of_new_view(self, identifier: IdentifierLike) -> Meanings:
        namespace, name = table_of(identifier)
        return {
            **self._missing_namespace(namespace),
            409: lambda _: ViewAlreadyExistsError(f"{dotted(namespace, name)} already exists; load_view opens a view"),
        }

    def _missing_view_meant(self, identifier: IdentifierLike) -> Meanings:
        return {404: lambda _: self._missing_view(_parts(identifier))}


def _parts(identifier: IdentifierLike) -> Identifier:
    namespace, name = table_of(identifier)
    return (*namespace, name)


def _names(identifier: IdentifierLike) -> dict[str, str | Identifier]:
    namespace, name = table_of(identifier)
    return {"namespace": namespace, "view": name}


def _require(client: Client, route: endpoints.Route) -> None:
    client.config.endpoints.require(route, "views")
