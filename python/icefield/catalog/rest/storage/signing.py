"""Requests to S3 that a REST server signs, because it hands out no keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from icefield._inputs.secrets import redacted_url
from icefield.catalog.rest.protocol.errors import error_of, is_success
from icefield.catalog.rest.protocol.messages import Reply, Request
from icefield.errors import RESTError

__all__ = ["SignedRequest", "Signing", "signed_by", "signing_of", "url_of"]

#: The route of servers that do not say where they sign.
_OF_OLD = "v1/aws/s3/sign"
#: Where to ask, and the names that older servers have for it.
_URI = ("signer.uri", "s3.signer.uri")
_ENDPOINT = ("signer.endpoint", "s3.signer.endpoint")

#: Where to send a request, the headers to add, and whether its signature may be used again.
SignedRequest = tuple[str, list[tuple[str, str]], bool]


class Signing(NamedTuple):
    """What a server says about how it signs the requests for a table."""

    #: Where it signs, if that is not at the catalog: a URL, and a path below it.
    uri: str | None
    endpoint: str | None
    #: The access token of the table; None for that of the catalog.
    token: str | None
    #: What each request to the signer carries.
    headers: dict[str, str]
    properties: dict[str, str]

    def __repr__(self) -> str:
        return f"Signing({self.uri and redacted_url(self.uri)!r}, {self.endpoint!r})"


def signing_of(answer: Mapping[str, Any], config: Mapping[str, str], own: Mapping[str, str]) -> Signing:
    """Return how the requests for a table are signed.

    Parameters
    ----------
    answer
        What the server answered about the table: its ``remote-signing-config``.
    config
        The properties in the answer.
    own
        The properties of the catalog, for what the answer does not say.

    """
    said = answer.get("remote-signing-config")
    more: Mapping[str, Any] = said if isinstance(said, dict) else {}
    headers, properties = more.get("headers") or {}, more.get("properties") or {}
    return Signing(
        _first(_URI, config) or _first(_URI, own),
        _first(_ENDPOINT, config) or _first(_ENDPOINT, own),
        config.get("token"),
        {name: ", ".join(_texts(values)) for name, values in headers.items()} if isinstance(headers, dict) else {},
        {name: str(value) for name, value in properties.items()} if isinstance(properties, dict) else {},
    )


def url_of(signing: Signing, catalog: str, route: str | None) -> str:
    """Return where requests are signed.

    Parameters
    ----------
    signing
        What the server says.
    catalog
        The URL of the catalog.
    route
        The URL of the route by which the server signs requests for the table; None if it has none.

    """
    endpoint = signing.endpoint
    if endpoint and urlsplit(endpoint).scheme in {"http", "https"}:
        return endpoint
    if not endpoint and not signing.uri and route:
        return route
    return f"{(signing.uri or catalog).rstrip('/')}/{(endpoint or _OF_OLD).strip().lstrip('/')}"


def signed_by(
    send: Callable[[Request], Reply],
    url: str,
    signing: Signing,
    request: tuple[str, str, str, list[tuple[str, str]], str | None],
) -> SignedRequest:
    """Ask a server to sign a request.

    Parameters
    ----------
    send
        Sends a request to the server.
    url, signing
        Where and how to ask.
    request
        Method, region, URL, headers and body; there is a body if objects are to be deleted.

    Raises
    ------
    IcefieldError
        If the server does not sign it, or its answer has no signed request.

    """
    method, region, uri, headers, body = request
    many: dict[str, list[str]] = {}
    for name, value in headers:
        many.setdefault(name, []).append(value)
    asked: dict[str, object] = {"region": region, "method": method, "uri": uri, "headers": many}
    if signing.properties:
        asked["properties"] = signing.properties
    if body:
        asked["body"] = body
    asked["provider"] = "s3"
    content = json.dumps(asked, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    reply = send(Request("POST", url, {"content-type": "application/json", **signing.headers}, content))
    if not is_success(reply):
        raise error_of(reply)
    answer = reply.json()
    where, given = answer.get("uri"), answer.get("headers")
    if not isinstance(where, str) or not isinstance(given, dict):
        raise RESTError(f"{reply.asked}: the answer has no uri or no headers of the signed request", reply.status)
    added = [(name, value) for name, values in given.items() for value in _texts(values)]
    return where, added, reply.headers.get("cache-control") == "private"


def _first(names: tuple[str, ...], properties: Mapping[str, str]) -> str | None:
    return next((properties[name] for name in names if properties.get(name)), None)


def _texts(values: object) -> list[str]:
    return [str(value) for value in values] if isinstance(values, list) else [str(values)]
