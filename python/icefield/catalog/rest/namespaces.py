"""Namespaces of a REST catalog."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from icefield._inputs.arguments import property_names, property_texts
from icefield.catalog.base import Catalog, PropertiesUpdateSummary
from icefield.catalog.rest.client import Client
from icefield.catalog.rest.protocol import endpoints
from icefield.catalog.rest.protocol.errors import Meanings, is_success
from icefield.catalog.rest.protocol.names import dotted, levels_of
from icefield.catalog.rest.protocol.settings import texts_of
from icefield.errors import (
    IcefieldError,
    InvalidArgumentError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
)

if TYPE_CHECKING:
    from icefield._inputs.identifiers import Identifier, IdentifierLike

__all__ = ["RestNamespaces"]


class RestNamespaces(Catalog):
    """The methods of a REST catalog that are about namespaces."""

    @property
    @abstractmethod
    def _client(self) -> Client:
        """The connection to the server."""

    def list_namespaces(self, namespace: IdentifierLike = ()) -> list[Identifier]:
        """List the namespaces directly under one; by default, under the root."""
        levels = levels_of(namespace)
        query = {"parent": self._client.config.paths.joined(levels)} if levels else {}
        found: list[Identifier] = []
        missing = self._missing_namespace(levels)
        for page in self._client.pages(endpoints.LIST_NAMESPACES, {}, "namespaces", missing, query):
            found += [tuple(name) for name in page if isinstance(name, list) and name]
        return found

    def create_namespace(self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace; most servers require that its parent exists."""
        levels = self._levels(namespace)
        wanted = property_texts(properties)
        body = {"namespace": list(levels), "properties": wanted}
        name = dotted(levels)
        meanings: Meanings = {
            404: lambda text: NoSuchNamespaceError(f"the parent of namespace {name} does not exist: {text}"),
            409: lambda _: NamespaceAlreadyExistsError(
                f"namespace {name} already exists; create_namespace_if_not_exists accepts that"
            ),
        }

        def is_made(error: IcefieldError) -> bool:
            if not isinstance(error, NamespaceAlreadyExistsError):
                return False
            return wanted.items() <= self.load_namespace_properties(levels).items()

        self._client.change(endpoints.CREATE_NAMESPACE, {}, meanings, body, is_made=is_made)

    def drop_namespace(self, namespace: IdentifierLike) -> None:
        """Drop an empty namespace."""
        levels = self._levels(namespace)
        meanings = {
            **self._missing_namespace(levels),
            409: lambda text: NamespaceNotEmptyError(f"namespace {dotted(levels)} is not empty: {text}"),
        }
        self._client.change(
            endpoints.DROP_NAMESPACE,
            {"namespace": levels},
            meanings,
            is_made=lambda error: isinstance(error, NoSuchNamespaceError),
        )

    def load_namespace_properties(self, namespace: IdentifierLike) -> dict[str, str]:
        """Return the properties of a namespace."""
        levels = self._levels(namespace)
        answer = self._client.json(endpoints.LOAD_NAMESPACE, {"namespace": levels}, self._missing_namespace(levels))
        return texts_of(answer.get("properties"))

    def update_namespace_properties(
        self, namespace: IdentifierLike, removals: Iterable[str] | str = (), updates: Mapping[str, str] | None = None
    ) -> PropertiesUpdateSummary:
        """Remove and set properties of a namespace, all or none."""
        levels = self._levels(namespace)
        removed, updated = sorted(set(property_names(removals))), property_texts(updates)
        if both := [name for name in removed if name in updated]:
            raise InvalidArgumentError(f"properties cannot be both removed and set: {', '.join(both)}")
        answer = self._client.json(
            endpoints.UPDATE_NAMESPACE,
            {"namespace": levels},
            self._missing_namespace(levels),
            {"removals": removed, "updates": updated},
        )
        found = [answer.get(name) for name in ("removed", "updated", "missing")]
        # The change is made, whatever the answer says about it.
        return PropertiesUpdateSummary(*(sorted(map(str, one)) if isinstance(one, list) else [] for one in found))

    def namespace_exists(self, namespace: IdentifierLike) -> bool:
        """Return whether there is a namespace of this name."""
        levels = levels_of(namespace)
        if not levels:
            return True
        found = self._exists(endpoints.NAMESPACE_EXISTS, {"namespace": levels})
        return super().namespace_exists(levels) if found is None else found

    def _exists(self, route: endpoints.Route, names: Mapping[str, str | Identifier]) -> bool | None:
        """Ask whether something exists; None if the server does not say."""
        if not self._client.config.endpoints.offer(route):
            return None
        reply = self._client.get(route, names)
        if is_success(reply):
            return True
        # For any other status, the answer to a GET has the reason.
        return False if reply.status == 404 else None  # noqa: PLR2004

    def _levels(self, namespace: IdentifierLike) -> Identifier:
        levels = levels_of(namespace)
        if not levels:
            raise InvalidArgumentError("expected the name of a namespace, got the root")
        return levels

    def _missing_namespace(self, levels: Identifier) -> Meanings:
        name = dotted(levels) or "the root"
        return {404: lambda _: NoSuchNamespaceError(f"namespace {name} does not exist in catalog {self.name}")}
