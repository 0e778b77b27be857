"""Views of a REST catalog: queries with names, which engines run and this library only keeps."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icefield._core import TableState
from icefield._inputs.arguments import property_texts
from icefield._inputs.frames import schema_of
from icefield.catalog.locations import absolute_location
from icefield.catalog.rest import endpoints
from icefield.catalog.rest.client import Client, texts_of
from icefield.catalog.rest.errors import Meanings, error_of, is_success
from icefield.catalog.rest.messages import Reply
from icefield.catalog.rest.names import dotted, identifiers_of, levels_of, named, table_of
from icefield.catalog.rest.tables import RestTables
from icefield.errors import (
    CommitFailedException,
    IcefieldError,
    InvalidArgumentError,
    NoSuchViewError,
    RESTError,
    TableAlreadyExistsError,
)
from icefield.schema import Schema

if TYPE_CHECKING:
    from icefield._inputs.identifiers import Identifier, IdentifierLike
    from icefield.arrow import SchemaLike

__all__ = ["RestViews", "View"]

#: How often a view is replaced on top of what others made of it meanwhile.
_TRIES = 4
#: What stands for the last schema, or version, that the same request adds.
_LAST = -1


@dataclass(frozen=True)
class View:
    """A view as it was when it was loaded."""

    #: Namespace and name.
    identifier: Identifier
    #: The metadata of the view, as the specification of views has them in JSON.
    metadata: Mapping[str, Any]

    @property
    def uuid(self) -> str:
        """The view's uuid."""
        return str(self.metadata.get("view-uuid"))

    @property
    def location(self) -> str:
        """The base location of the view."""
        return str(self.metadata.get("location"))

    @property
    def properties(self) -> dict[str, str]:
        """Properties of the view."""
        return texts_of(self.metadata.get("properties"))

    @property
    def version(self) -> Mapping[str, Any]:
        """The current version, in JSON."""
        return self._one("versions", "version-id", self.metadata.get("current-version-id"))

    @property
    def queries(self) -> dict[str, str]:
        """The query by its dialect of SQL, such as ``spark``."""
        found = self.version.get("representations")
        return {
            str(one["dialect"]): str(one["sql"])
            for one in (found if isinstance(found, list) else [])
            if isinstance(one, dict) and "dialect" in one and "sql" in one
        }

    def sql(self, dialect: str) -> str:
        """Return the query in a dialect, whatever the case of its name.

        Raises
        ------
        NoSuchViewError
            If the view has no query in this dialect; the message names those that it has.

        """
        queries = {name.lower(): text for name, text in self.queries.items()}
        if (found := queries.get(dialect.lower())) is None:
            known = ", ".join(sorted(self.queries)) or "none"
            raise NoSuchViewError(
                f"view {dotted(self.identifier)} has no query in the dialect {dialect}; it has: {known}"
            )
        return found

    def schema(self) -> Schema:
        """Return the columns of the current version."""
        return Schema.from_json(json.dumps(self._one("schemas", "schema-id", self.version.get("schema-id"))))

    def _one(self, field: str, name: str, wanted: object) -> Mapping[str, Any]:
        for one in self.metadata.get(field) or []:
            if isinstance(one, dict) and one.get(name) == wanted:
                return one
        raise RESTError(f"view {dotted(self.identifier)}: its metadata have no {name} {wanted} in {field}")


class RestViews(RestTables):
    """What a REST catalog does with views."""

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
        """Load a view.

        Raises
        ------
        NoSuchViewError
            If it does not exist.

        """
        _require(self._client, endpoints.LOAD_VIEW)
        return self._view(identifier, self._client.get(endpoints.LOAD_VIEW, _names(identifier)), {})

    def create_view(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        queries: Mapping[str, str],
        *,
        default_namespace: IdentifierLike = (),
        default_catalog: str | None = None,
        location: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> View:
        """Create a view.

        Parameters
        ----------
        identifier
            Namespace and name.
        schema
            The columns of the query, as in `create_table`.
        queries
            The query by its dialect of SQL: ``{"spark": "SELECT …"}``.
        default_namespace, default_catalog
            Where names in the query are found that have no namespace; without a catalog, in that of the view.
        location
            The base location; by default the server chooses it.
        properties
            Properties of the view.

        Raises
        ------
        NoSuchNamespaceError
            If the namespace does not exist.
        TableAlreadyExistsError
            If there is a table or view of this name.

        """
        _require(self._client, endpoints.CREATE_VIEW)
        namespace, name = table_of(identifier)
        body: dict[str, object] = {
            "name": name,
            "schema": self._columns(schema),
            "view-version": _version(1, 0, queries, default_namespace, default_catalog),
            "properties": property_texts(properties),
        }
        if location is not None:
            body["location"] = absolute_location(location, "the location of the view")
        meanings: Meanings = {
            **self._missing_namespace(namespace),
            409: lambda _: TableAlreadyExistsError(f"{dotted(namespace, name)} already exists; load_view opens a view"),
        }
        reply = self._send_change(endpoints.CREATE_VIEW, {"namespace": namespace}, body, meanings)
        return self._view(identifier, reply, {})

    def replace_view(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        queries: Mapping[str, str],
        *,
        default_namespace: IdentifierLike = (),
        default_catalog: str | None = None,
    ) -> View:
        """Replace the query of a view; its former versions and its properties stay.

        Parameters
        ----------
        identifier, schema, queries, default_namespace, default_catalog
            As in `create_view`.

        Raises
        ------
        NoSuchViewError
            If there is no such view.
        CommitFailedException
            If every attempt lost to another change.

        """
        _require(self._client, endpoints.REPLACE_VIEW)
        columns = self._columns(schema)
        meanings: Meanings = {409: lambda text: CommitFailedException(f"the view was changed meanwhile: {text}")}
        attempt = 0
        while True:
            attempt += 1
            known = self.load_view(identifier)
            updates, is_same = _updates(known, columns, _version(0, _LAST, queries, default_namespace, default_catalog))
            if is_same:
                return known
            body = {
                "identifier": named(identifier),
                "requirements": [{"type": "assert-view-uuid", "uuid": known.uuid}],
                "updates": updates,
            }
            try:
                reply = self._send_change(endpoints.REPLACE_VIEW, _names(identifier), body, meanings)
            except CommitFailedException as failure:
                if attempt == _TRIES or failure.__cause__ is not None:
                    raise
            else:
                return self._view(identifier, reply, {})

    def drop_view(self, identifier: IdentifierLike) -> None:
        """Drop a view; its files stay."""
        _require(self._client, endpoints.DROP_VIEW)
        self._client.change(
            endpoints.DROP_VIEW,
            _names(identifier),
            self._missing_view(identifier),
            is_made=lambda error: isinstance(error, NoSuchViewError),
        )

    def rename_view(self, from_identifier: IdentifierLike, to_identifier: IdentifierLike) -> View:
        """Rename a view, within its namespace or into another."""
        _require(self._client, endpoints.RENAME_VIEW)
        to = dotted(*table_of(to_identifier))
        meanings: Meanings = {
            **self._missing_view(from_identifier),
            409: lambda _: TableAlreadyExistsError(f"{to} already exists"),
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

    def _view(self, identifier: IdentifierLike, reply: Reply, meanings: Meanings) -> View:
        if not is_success(reply):
            raise error_of(reply, {**self._missing_view(identifier), **meanings})
        metadata = reply.json().get("metadata")
        if not isinstance(metadata, dict):
            raise RESTError(f"{reply.asked}: the answer has no view metadata", reply.status)
        namespace, name = table_of(identifier)
        return View((*namespace, name), metadata)

    def _missing_view(self, identifier: IdentifierLike) -> Meanings:
        name = dotted(*table_of(identifier))
        return {404: lambda _: NoSuchViewError(f"view {name} does not exist in catalog {self.name}")}

    def _columns(self, schema: SchemaLike) -> dict[str, Any]:
        """Return the JSON of a schema, with field ids."""
        state = TableState.stage(self.storage, schema_of(schema), "file:///nowhere", [], [], {"format-version": "3"})
        columns: dict[str, Any] = json.loads(state.schema().to_json())
        return columns


def _names(identifier: IdentifierLike) -> dict[str, str | Identifier]:
    namespace, name = table_of(identifier)
    return {"namespace": namespace, "view": name}


def _require(client: Client, route: endpoints.Route) -> None:
    client.config.endpoints.require(route, "views")


def _version(
    number: int, schema_id: int, queries: Mapping[str, str], namespace: IdentifierLike, catalog: str | None
) -> dict[str, object]:
    given: object = queries
    if not isinstance(given, Mapping) or not queries or not all(isinstance(text, str) for text in queries.values()):
        raise InvalidArgumentError(
            f"expected the query by its dialect, such as {{'spark': 'SELECT 1'}}, got {queries!r}"
        )
    made: dict[str, object] = {
        "version-id": number,
        "timestamp-ms": time.time_ns() // 1_000_000,
        "schema-id": schema_id,
        "summary": {"engine-name": "icefield"},
        "representations": [{"type": "sql", "sql": text, "dialect": dialect} for dialect, text in queries.items()],
        "default-namespace": list(levels_of(namespace)),
    }
    if catalog is not None:
        made["default-catalog"] = catalog
    return made


def _updates(
    known: View, columns: Mapping[str, Any], version: dict[str, object]
) -> tuple[list[dict[str, object]], bool]:
    """Return the updates that make a version the current one, and whether it is that already.

    What the view has already is named by its id: Java's server refuses to add it again.
    """
    schemas, versions = (
        [one for one in known.metadata.get(field) or [] if isinstance(one, dict)] for field in ("schemas", "versions")
    )
    updates: list[dict[str, object]] = []
    same = next((one for one in schemas if one.get("fields") == columns["fields"]), None)
    if same is None:
        updates.append({"action": "add-schema", "schema": columns})
    else:
        version["schema-id"] = same.get("schema-id")
    parts = ("schema-id", "representations", "default-namespace", "default-catalog", "summary")
    former = next((one for one in versions if all(one.get(part) == version.get(part) for part in parts)), None)
    if former is not None:
        number = former.get("version-id")
        is_current = number == known.metadata.get("current-version-id")
        return [{"action": "set-current-view-version", "view-version-id": number}], is_current
    numbers = [one["version-id"] for one in versions if isinstance(one.get("version-id"), int)]
    version["version-id"] = 1 + max(numbers, default=0)
    updates.append({"action": "add-view-version", "view-version": version})
    updates.append({"action": "set-current-view-version", "view-version-id": _LAST})
    return updates, False
