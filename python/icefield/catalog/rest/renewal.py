"""Storage credentials that a server vends for a while: renewed in this process and on executors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from icefield._core import Storage
from icefield.catalog.rest.auth import Bearer, Nothing
from icefield.catalog.rest.credentials import Vended, replaced, vended
from icefield.catalog.rest.errors import error_of, is_success
from icefield.catalog.rest.http import Http
from icefield.catalog.rest.messages import Request
from icefield.errors import UnsupportedFeatureError

if TYPE_CHECKING:
    from icefield._inputs.identifiers import Identifier

__all__ = ["CatalogRenewal", "CredentialsRoute", "ExecutorRenewal", "Lender", "transport_of"]

#: Properties of how a server is reached; secrets are not among them.
_TRANSPORT = ("rest.client.max-retries", "rest.client.connection-timeout-ms", "rest.client.socket-timeout-ms", "ssl.")

Renewed = tuple[dict[str, str], "float | None", "float | None"]


class CredentialsRoute(NamedTuple):
    """How an executor asks for the credentials of one table."""

    url: str
    #: The access token of the catalog, which expires; empty if the server wants none.
    token: str
    #: How the server is reached.
    properties: dict[str, str]

    def __repr__(self) -> str:
        return f"CredentialsRoute({self.url!r})"


class Lender(Protocol):
    """A catalog whose server vends credentials."""

    def _vended_again(self, name: Identifier, location: str, given: Vended) -> Vended:
        """Ask for other credentials of a table."""

    def _credentials_route(self, name: Identifier) -> CredentialsRoute | None:
        """Return how an executor asks for them; None if it cannot."""


class CatalogRenewal:
    """Renews the credentials of a table's storage through its catalog.

    Executors get `ExecutorRenewal` instead, because a catalog does not travel: it has secrets.

    Parameters
    ----------
    catalog
        The catalog of the table.
    name, location
        The table.
    given
        Its credentials.
    below
        The storage properties that the credentials are added to.

    """

    def __init__(
        self, catalog: Lender, name: Identifier, location: str, given: Vended, below: Mapping[str, str]
    ) -> None:
        self._catalog, self._name, self._below = catalog, name, below
        self.given, self.location = given, location

    @property
    def due_ms(self) -> float | None:
        """When to ask for others."""
        return self.given.due_ms

    @property
    def expires_ms(self) -> float | None:
        """When they expire."""
        return self.given.expires_ms

    def renew(self) -> Renewed:
        """Ask the catalog for other credentials."""
        self.given = self._catalog._vended_again(self._name, self.location, self.given)  # noqa: SLF001
        return replaced(self._below, self.given.properties), self.due_ms, self.expires_ms

    def __reduce__(self) -> tuple[object, ...]:
        # Without what storage does not read, and without credentials of the user that those of the table replace.
        parts: Any = Storage(replaced(self._below, self.given.properties)).__reduce__()
        route = self._catalog._credentials_route(self._name)  # noqa: SLF001
        return ExecutorRenewal, (self.location, self.given, parts[1][0], route)


class ExecutorRenewal:
    """Renews the credentials of a table's storage where its catalog is not: on executors.

    Parameters
    ----------
    location
        Where the table is.
    given
        Its credentials.
    below
        The storage properties that the credentials are added to.
    route
        How to ask for others; None if the server does not offer it, or would want a secret.

    """

    def __init__(self, location: str, given: Vended, below: Mapping[str, str], route: CredentialsRoute | None) -> None:
        self.location, self.given, self._below, self._route = location, given, below, route

    @property
    def due_ms(self) -> float | None:
        """When to ask for others."""
        return self.given.due_ms

    @property
    def expires_ms(self) -> float | None:
        """When they expire."""
        return self.given.expires_ms

    def renew(self) -> Renewed:
        """Ask the server for other credentials.

        Raises
        ------
        UnsupportedFeatureError
            If the server does not offer that.

        """
        if self._route is None:
            msg = (
                "outside of the process with the catalog, they are renewed only if the server offers a route for the "
                "credentials of a table, and takes a bearer token"
            )
            raise UnsupportedFeatureError(msg)
        url, token, properties = self._route
        http = Http(properties, Bearer(token) if token else Nothing())
        try:
            reply = http.send(Request("GET", url), repeatable=True)
        finally:
            http.close()
        if not is_success(reply):
            raise error_of(reply)
        self.given = vended({**reply.json(), "config": self.given.properties}, self.location, self._below)
        return replaced(self._below, self.given.properties), self.due_ms, self.expires_ms

    def __reduce__(self) -> tuple[object, ...]:
        return ExecutorRenewal, (self.location, self.given, self._below, self._route)


def transport_of(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of how a server is reached that may travel."""
    return {name: value for name, value in properties.items() if name.startswith(_TRANSPORT)}
