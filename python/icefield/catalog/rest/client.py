"""Requests to the server of a REST catalog: its configuration first, then its routes."""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from icefield._inputs.secrets import redacted_url
from icefield.catalog.rest.login.chosen import auth_of
from icefield.catalog.rest.protocol import endpoints
from icefield.catalog.rest.protocol.endpoints import Endpoints, Paths, Route
from icefield.catalog.rest.protocol.errors import Meanings, error_of, is_success
from icefield.catalog.rest.protocol.http import Http
from icefield.catalog.rest.protocol.locks import ProcessLock
from icefield.catalog.rest.protocol.messages import Reply, Request, new_key
from icefield.catalog.rest.protocol.settings import flag, number, texts_of
from icefield.errors import IcefieldError, InvalidArgumentError, NoSuchPropertyException, RESTError

__all__ = ["Client", "Names"]

Names = Mapping[str, "str | tuple[str, ...]"]
#: Properties that only the user sets: where secrets go, what is verified, which files may be read.
_OF_USER = ("credential", "oauth2-server-uri", "auth.", "rest.", "ssl.", "tls.", "io.", "type", "py-catalog-impl")
#: More pages than any catalog has: the server repeats itself.
_MOST_PAGES = 1_000_000
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_LOGGER = logging.getLogger("icefield")


class Client:
    """Asks a server with the properties of a catalog, by any number of threads.

    Parameters
    ----------
    properties
        The properties, with secrets revealed.

    Raises
    ------
    NoSuchPropertyException
        If ``uri`` is missing.
    InvalidArgumentError
        If a property is invalid.

    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        uri = properties.get("uri")
        if not uri:
            raise NoSuchPropertyException("REST catalogs require the property 'uri', for example http://localhost:8181")
        _check_uri(uri)
        self._given = dict(properties)
        self._uri = uri
        self._http = Http(properties, auth_of(properties, uri))
        self._asking = ProcessLock()
        self._config: _Config | None = None

    @property
    def config(self) -> _Config:
        """The configuration that the server answers with; it is asked once."""
        with self._asking:
            if self._config is None:
                self._config = self._asked()
                self._http = self._config.http or self._http
            return self._config

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        self._http.close()

    def token_of_workers(self) -> str | None:
        """Return the access token that other processes get; `Http` says which."""
        return self._http.token_of_workers()

    def post(self, request: Request, token: str | None = None) -> Reply:
        """Send a request that changes nothing to any URL, with another token if there is one."""
        if token is None:
            return self._http.send(request, repeatable=True)
        authorized = {**request.headers, "authorization": f"Bearer {token}"}
        return self._http.send(replace(request, headers=authorized), repeatable=True, has_credentials=True)

    def get(self, route: Route, names: Names, query: Mapping[str, str] | None = None) -> Reply:
        """Ask for something; the answer may have any status."""
        return self.send(route, names, query=query)

    def json(self, route: Route, names: Names, meanings: Meanings, body: object = None) -> dict[str, Any]:
        """Ask for something, and return the JSON object of the answer; empty if it has no content.

        Raises
        ------
        IcefieldError
            By the meanings of the status.

        """
        reply = self.send(route, names, body=body)
        if not is_success(reply):
            raise error_of(reply, meanings)
        return reply.json() if reply.body else {}

    def change(
        self,
        route: Route,
        names: Names,
        meanings: Meanings,
        body: object = None,
        *,
        query: Mapping[str, str] | None = None,
        is_made: Callable[[IcefieldError], bool],
    ) -> None:
        """Ask for a change.

        Parameters
        ----------
        route, names, meanings, body, query
            As in `json` and `send`.
        is_made
            Whether an error of a request that was sent again says that the server made the change at the first time.

        Raises
        ------
        IcefieldError
            By the meanings of the status.

        """
        reply = self.send(route, names, query=query, body=body)
        if is_success(reply):
            return
        error = error_of(reply, meanings)
        # With keys the server answers what it did at the first time.
        if reply.repeated and not self.config.has_keys:
            with suppress(IcefieldError):
                if is_made(error):
                    return
        raise error

    def send(
        self,
        route: Route,
        names: Names,
        *,
        query: Mapping[str, str] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request, with a key where the server carries out a request with the same key once."""
        config = self.config
        url = config.paths.of(route, names) + (f"?{_encoded(query)}" if query else "")
        made = dict(headers or {})
        content = b""
        if body is not None:
            content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
            made["content-type"] = "application/json"
        reads = route.method in {"GET", "HEAD"}
        has_key = config.has_keys and not reads and route != endpoints.REPORT_METRICS
        if has_key:
            made["idempotency-key"] = new_key()
        within = config.key_life if has_key else math.inf
        return self._http.send(Request(route.method, url, made, content, within), repeatable=reads or has_key)

    def pages(
        self, route: Route, names: Names, field: str, meanings: Meanings, query: Mapping[str, str] | None = None
    ) -> Iterator[list[Any]]:
        """Yield the lists of all pages of an answer.

        Raises
        ------
        RESTError
            If the server sends a page twice.

        """
        size = self.config.properties.get("rest-page-size")
        token = ""
        seen: set[str] = set()
        for _ in range(_MOST_PAGES):
            asked = {**(query or {}), "pageToken": token, **({"pageSize": size} if size else {})}
            reply = self.get(route, names, asked)
            if not is_success(reply):
                raise error_of(reply, meanings)
            answer = reply.json()
            found = answer.get(field) or []
            if not isinstance(found, list):
                raise RESTError(f"{reply.asked}: {field} is not a list", reply.status)
            yield found
            following = answer.get("next-page-token") or ""
            if not following:
                return
            if not isinstance(following, str) or following in seen:
                raise RESTError(f"{reply.asked}: the server sends the same page again and again", reply.status)
            seen.add(following)
            token = following

    def _asked(self) -> _Config:
        paths = Paths(self._uri)
        warehouse = self._given.get("warehouse")
        url = paths.of(endpoints.CONFIG, {}) + (f"?{_encoded({'warehouse': warehouse})}" if warehouse else "")
        reply = self._http.send(Request("GET", url), repeatable=True)
        if not is_success(reply):
            raise error_of(reply)
        return _Config(reply, self._given, self._uri)


class _Config:
    """The configuration of the server, merged with the properties of the user."""

    def __init__(self, reply: Reply, given: Mapping[str, str], uri: str) -> None:
        answer = reply.json()
        defaults, overrides = (_of_server(answer, name, reply) for name in ("defaults", "overrides"))
        merged = {**defaults, **given, **overrides}
        self.properties: dict[str, str] = merged
        number(merged, "rest-page-size", 1, least=1)
        moved = overrides.get("uri", uri)
        if moved != uri:
            _check_uri(moved)
            if urlsplit(uri).scheme == "https" and urlsplit(moved).scheme != "https":
                raise RESTError(f"{reply.asked}: the server moves the catalog to {redacted_url(moved)}, unencrypted")
        self.paths = Paths(moved, merged.get("prefix", ""), merged.get("namespace-separator", "%1F"))
        listed = answer.get("endpoints") or []
        self.endpoints = Endpoints(
            (text for text in listed if isinstance(text, str)) if isinstance(listed, list) else (),
            views=flag(merged, "view-endpoints-supported", False),  # noqa: FBT003
        )
        #: Whether the server carries out requests with the same key once.
        self.has_keys = isinstance(answer.get("idempotency-key-lifetime"), str)
        #: For how long it knows a key, in seconds.
        self.key_life = _seconds_of(answer.get("idempotency-key-lifetime"))
        #: The connection with headers and a token that the server gave; None if it gave none.
        self.http: Http | None = None
        if any(name == "token" or name.startswith("header.") for name in (*defaults, *overrides)):
            own = {name: value for name, value in merged.items() if name != "token" or "auth.type" not in given}
            if "token" in overrides:
                # The server exchanged the credential for a token.
                own.pop("credential", None)
            self.http = Http(own, auth_of(own, uri))


def _seconds_of(duration: object) -> float:
    """Return the seconds of a duration of ISO 8601, such as ``PT30M``; anything else counts as half an hour."""
    found = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    parts = [float(part or 0) for part in found.groups()] if found else []
    return sum(part * unit for part, unit in zip(parts, (86_400, 3600, 60, 1), strict=True)) if any(parts) else 1800.0


def _encoded(query: Mapping[str, str]) -> str:
    return urlencode(query, safe="", quote_via=quote)


def _of_server(answer: Mapping[str, Any], name: str, reply: Reply) -> dict[str, str]:
    found = answer.get(name) or {}
    if not isinstance(found, dict):
        raise RESTError(f"{reply.asked}: {name} is not a JSON object", reply.status)
    made = {}
    for key, value in texts_of(found).items():
        if key.startswith(_OF_USER):
            _LOGGER.info("%s: the server's property %s is ignored: only the user sets it", reply.asked, key)
        else:
            made[key] = value
    return made


def _check_uri(uri: str) -> None:
    try:
        url = urlsplit(uri)
        valid = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        valid = False
    if not valid or url.query or url.fragment:
        msg = f"the uri of a REST catalog must be http://host/path or https://host/path, got {redacted_url(uri)!r}"
        raise InvalidArgumentError(msg)
    if url.username is not None or url.password is not None:
        msg = (
            f"the uri {redacted_url(uri)} has a user and a password: set the properties 'auth.type=basic', "
            "'auth.basic.username' and 'auth.basic.password'"
        )
        raise InvalidArgumentError(msg)
