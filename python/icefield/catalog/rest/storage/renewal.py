"""Storage credentials that a server vends for a while: renewed in this process and on executors."""

from __future__ import annotations

import logging
import random
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from icefield._core import Storage, shown_property
from icefield.catalog.rest.protocol.auth import Bearer, Nothing
from icefield.catalog.rest.protocol.errors import error_of, is_success
from icefield.catalog.rest.protocol.http import Http
from icefield.catalog.rest.protocol.locks import ProcessLock
from icefield.catalog.rest.protocol.messages import Request
from icefield.catalog.rest.protocol.settings import under
from icefield.catalog.rest.storage import credentials
from icefield.catalog.rest.storage.credentials import Vended, again, replaced
from icefield.catalog.rest.storage.signing import SignedRequest, Signing, signed_by
from icefield.errors import IcefieldError, UnsupportedFeatureError

if TYPE_CHECKING:
    from icefield._inputs.identifiers import Identifier

__all__ = ["CatalogRenewal", "ExecutorRenewal", "Lender", "ServerRoute", "transport_of"]

#: Properties of how a server is reached; secrets are not among them.
_TRANSPORT = (
    "rest.client.max-retries",
    "rest.client.connection-timeout-ms",
    "rest.client.socket-timeout-ms",
    "rest.client.proxy.hostname",
    "rest.client.proxy.port",
    "ssl.",
    "tls.",
)
#: The most tables whose credentials a process keeps.
_MOST_RENEWED = 1000

_LOGGER = logging.getLogger("icefield")
#: Credentials that this process renewed, by the route, its token and the location, the last ones at the end.
_RENEWED: OrderedDict[tuple[str, str, str], Vended] = OrderedDict()
_RENEWING = ProcessLock()

#: Method, region, URL, headers and body of a request to S3.
Unsigned = tuple[str, str, str, "list[tuple[str, str]]", "str | None"]
Renewed = tuple[dict[str, str], "float | None", "float | None"]


class ServerRoute(NamedTuple):
    """How an executor asks the server about one table."""

    url: str
    #: The access token, which expires; empty if the server wants none.
    token: str
    #: How the server is reached.
    properties: dict[str, str]

    def __repr__(self) -> str:
        return f"ServerRoute({self.url!r})"


class Lender(Protocol):
    """A catalog whose server vends credentials."""

    def _vended_again(self, name: Identifier, uuid: str | None, location: str, given: Vended) -> Vended:
        """Ask for other credentials of a table."""

    def _credentials_route(self, name: Identifier) -> ServerRoute | None:
        """Return how an executor asks for them; None if it cannot."""

    def _signer_route(self, name: Identifier, signing: Signing) -> ServerRoute | None:
        """Return how an executor has requests signed; None if it cannot."""

    def _signed(self, name: Identifier, signing: Signing, request: Unsigned) -> SignedRequest:
        """Have a request signed."""


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
    uuid
        The UUID of the table; credentials of another one of its name are not taken.

    """

    def __init__(
        self,
        catalog: Lender,
        name: Identifier,
        location: str,
        given: Vended,
        below: Mapping[str, str],
        uuid: str | None = None,
    ) -> None:
        self._catalog, self._name, self._below, self._uuid = catalog, name, below, uuid
        self.given, self.location = given, location

    @property
    def due_ms(self) -> float | None:
        """When to ask for other credentials."""
        return self.given.due_ms

    @property
    def expires_ms(self) -> float | None:
        """When the credentials expire."""
        return self.given.expires_ms

    def renew(self) -> Renewed:
        """Ask the catalog for other credentials."""
        self.given = self._catalog._vended_again(self._name, self._uuid, self.location, self.given)  # noqa: SLF001
        return replaced(self._below, self.given.properties), self.due_ms, self.expires_ms

    def sign(
        self, method: str, region: str, uri: str, headers: list[tuple[str, str]], body: str | None
    ) -> SignedRequest:
        """Have the server of the catalog sign a request to S3."""
        if (signing := self.given.signing) is None:
            raise UnsupportedFeatureError("the server does not sign requests for this table")
        return self._catalog._signed(self._name, signing, (method, region, uri, headers, body))  # noqa: SLF001

    def __reduce__(self) -> tuple[object, ...]:
        # Without what storage does not read, and without credentials of the user that those of the table replace.
        parts: Any = Storage(replaced(self._below, self.given.properties)).__reduce__()
        route: ServerRoute | None = None
        try:
            if self.expires_ms is not None:
                route = self._catalog._credentials_route(self._name)  # noqa: SLF001
        except IcefieldError as error:
            # The credentials are valid for a while, which may be all that the job needs.
            _LOGGER.warning("executors cannot renew the credentials of the storage: %s", error)
        signing = self.given.signing
        signer = None if signing is None else self._catalog._signer_route(self._name, signing)  # noqa: SLF001
        return ExecutorRenewal, (self.location, self.given, parts[1][0], route, signer)


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
    signer
        How requests to S3 are signed; None if they are not, or the server would want a secret.

    """

    def __init__(
        self,
        location: str,
        given: Vended,
        below: Mapping[str, str],
        route: ServerRoute | None,
        signer: ServerRoute | None = None,
    ) -> None:
        self.location, self.given, self._below, self._route = location, given, below, route
        self._signer = signer
        self._connecting = ProcessLock()
        #: Tasks that run at the same time do not renew at the same time.
        self._early = random.uniform(0, 0.2)  # noqa: S311 - spreads requests
        #: The connection to the signer, which is used by each request.
        self._http: Http | None = None

    @property
    def due_ms(self) -> float | None:
        """When to ask for other credentials: sooner than the driver, by a part of the time that is left."""
        due, expires = self.given.due_ms, self.given.expires_ms
        return due if due is None or expires is None else due - self._early * max(expires - due, 0)

    @property
    def expires_ms(self) -> float | None:
        """When the credentials expire."""
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
                "credentials of a table, and takes a bearer token that expires (or set the catalog property "
                "rest.client.executors-get-token=true)"
            )
            raise UnsupportedFeatureError(msg)
        key = self._route.url, self._route.token, self.location
        # Tasks of one process come one after the other, each with the credentials that the driver had.
        with _RENEWING:
            known = _RENEWED.get(key)
            if known is None or (known.due_ms is not None and known.due_ms <= credentials.now_ms()):
                known = self._asked(self._route)
                _RENEWED[key] = known
                while len(_RENEWED) > _MOST_RENEWED:
                    _RENEWED.popitem(last=False)
        self.given = known
        return replaced(self._below, self.given.properties), self.due_ms, self.expires_ms

    def _asked(self, route: ServerRoute) -> Vended:
        url, token, properties = route
        http = Http(properties, Bearer(token) if token else Nothing())
        try:
            reply = http.send(Request("GET", url), repeatable=True)
        finally:
            http.close()
        if not is_success(reply):
            raise error_of(reply)
        return again(reply.json(), self.location, self._below, self.given)

    def sign(
        self, method: str, region: str, uri: str, headers: list[tuple[str, str]], body: str | None
    ) -> SignedRequest:
        """Have the server sign a request to S3.

        Raises
        ------
        UnsupportedFeatureError
            If the server takes no bearer token.

        """
        if self._signer is None or self.given.signing is None:
            msg = (
                "outside of the process with the catalog, requests to S3 are signed only if the server takes a bearer "
                "token that expires (or set the catalog property rest.client.executors-get-token=true)"
            )
            raise UnsupportedFeatureError(msg)
        url, token, properties = self._signer
        with self._connecting:
            if self._http is None:
                self._http = Http(properties, Bearer(token) if token else Nothing())
            http = self._http
        return signed_by(
            lambda request: http.send(request, repeatable=True),
            url,
            self.given.signing,
            (method, region, uri, headers, body),
        )

    def __reduce__(self) -> tuple[object, ...]:
        return ExecutorRenewal, (self.location, self.given, self._below, self._route, self._signer)


def transport_of(properties: Mapping[str, str]) -> dict[str, str] | None:
    """Return the connection properties that may be sent to workers; None if reaching the server takes secrets."""
    if "rest.client.proxy.password" in properties:
        return None
    made = {name: value for name, value in properties.items() if name.startswith(_TRANSPORT)}
    for name, value in under(properties, "header.").items():
        # A server may want a header that is no secret, such as `x-goog-user-project`.
        if shown_property(name.lower(), value) == value:
            made[f"header.{name}"] = value
    return made
