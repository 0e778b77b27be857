"""Connections to a server, by httpx.

Requests go to its transport where no proxy of the environment is to be considered: the client of httpx costs a third
of a request's processor time, for what a catalog does not use.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, cast
from urllib.request import getproxies

from icefield._support.optional import require
from icefield.catalog.rest.protocol.settings import flag, number
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    import httpx

    from icefield.catalog.rest.protocol.messages import Request

__all__ = ["Connections"]


class Connections:
    """The connections of a process for the URLs of a scheme, with the cookies that the server sets.

    Parameters
    ----------
    properties
        The properties of the catalog, with secrets revealed.
    is_secure
        Whether the scheme is ``https``: certificates are read for it only.
    silence, connect
        How long the server may be silent, and how long a connection may take to be made, in seconds.

    """

    def __init__(self, properties: Mapping[str, str], *, is_secure: bool, silence: float, connect: float) -> None:
        library = require("httpx")
        most = number(properties, "rest.client.max-connections", 100, least=1)
        verify = _verification(properties) if is_secure else False
        limits = library.Limits(max_connections=most, max_keepalive_connections=most, keepalive_expiry=30)
        timeout = library.Timeout(silence, connect=connect)
        self._extensions = {"timeout": timeout.as_dict()}
        self._cookies: httpx.Cookies = library.Cookies()
        self._client: httpx.Client | None = None
        self._transport: httpx.HTTPTransport | None = None
        if (proxy := _proxy(properties)) is None and getproxies():
            self._client = client = library.Client(
                verify=verify, timeout=timeout, limits=limits, follow_redirects=False
            )
            self._headers = dict(client.headers)
        else:
            self._transport = library.HTTPTransport(verify=verify, limits=limits, proxy=proxy)
            with library.Client(verify=False) as client:
                # What the library decompresses.
                self._headers = {"accept-encoding": client.headers["accept-encoding"], "connection": "keep-alive"}

    def open(self, request: Request, headers: Mapping[str, str]) -> httpx.Response:
        """Send a request, and return its answer, whose body is still to be read, and which is to be closed."""
        made: httpx.Request = require("httpx").Request(
            request.method,
            request.url,
            headers={**self._headers, **headers},
            content=request.body or None,
            extensions=self._extensions,
        )
        if self._transport is None:
            return cast("httpx.Client", self._client).send(made, stream=True)
        if self._cookies:
            self._cookies.set_cookie_header(made)
        answer = self._transport.handle_request(made)
        answer.request = made
        if "set-cookie" in answer.headers:
            self._cookies.extract_cookies(answer)
        return answer

    def close(self) -> None:
        """Close the connections."""
        for one in (self._client, self._transport):
            if one is not None:
                one.close()


def _verification(properties: Mapping[str, str]) -> ssl.SSLContext | bool:
    """Return how certificates of the server are checked, with the certificate of this client if there is one."""
    # PyIceberg turns it off by `ssl.cabundle: False`.
    if not flag(properties, "tls.verify", True) or properties.get("ssl.cabundle", "").lower() == "false":  # noqa: FBT003
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif bundle := properties.get("ssl.cabundle"):
        try:
            is_folder = os.path.isdir(bundle)  # noqa: PTH112
            context = ssl.create_default_context(
                cafile=None if is_folder else bundle, capath=bundle if is_folder else None
            )
        except (OSError, ssl.SSLError) as error:
            raise InvalidArgumentError(f"catalog property ssl.cabundle={bundle}: {error}") from None
    elif "ssl.client.cert" not in properties:
        return True
    else:
        context = require("httpx").create_ssl_context()
    if certificate := properties.get("ssl.client.cert"):
        try:
            context.load_cert_chain(certificate, properties.get("ssl.client.key"))
        except (OSError, ssl.SSLError) as error:
            raise InvalidArgumentError(f"catalog property ssl.client.cert={certificate}: {error}") from None
    return context


def _proxy(properties: Mapping[str, str]) -> httpx.Proxy | None:
    host, port = properties.get("rest.client.proxy.hostname"), properties.get("rest.client.proxy.port")
    if not host:
        return None
    user, password = properties.get("rest.client.proxy.username"), properties.get("rest.client.proxy.password")
    made: httpx.Proxy = require("httpx").Proxy(
        f"http://{host}:{port or 80}", auth=(user, password or "") if user is not None else None
    )
    return made
