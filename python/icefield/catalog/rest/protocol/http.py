"""Requests to a REST catalog: sent, repeated where that is safe, bounded in time and size."""

from __future__ import annotations

import html
import json
import logging
import os
import random
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

from icefield._core import HIDDEN, __version__, shown_property
from icefield._inputs.secrets import redacted_url
from icefield._support.optional import require
from icefield.catalog.rest.protocol.auth import HasToken
from icefield.catalog.rest.protocol.connection import Connections
from icefield.catalog.rest.protocol.locks import ProcessLock
from icefield.catalog.rest.protocol.messages import Reply, Request, asked
from icefield.catalog.rest.protocol.settings import flag, number, under
from icefield.errors import IcefieldError, InvalidArgumentError, RESTError, ServiceUnavailableError

if TYPE_CHECKING:
    import httpx

    from icefield.catalog.rest.protocol.auth import Auth

__all__ = ["Http", "UnansweredError"]

#: Statuses after which a request that changes nothing is repeated.
_REPEATED = frozenset({408, 429, 502, 503, 504})
#: Statuses of credentials that are not, or no longer, accepted.
_UNAUTHORIZED = frozenset({401, 419})
#: The longest wait that a server may ask for, in seconds.
_LONGEST_WAIT = 60.0
#: Maximum bytes of an answer, after decompression.
_LARGEST_ANSWER = 1 << 30
#: Shorter words of headers are names of kinds, such as ``Bearer``; shorter secrets are hidden where they are a word.
_SHORTEST_SECRET = 7
#: Properties whose values are hidden however short they are.
_PASSWORDS = (
    "auth.basic.password",
    "rest.auth.basic.password",
    "auth.oauth2.client_secret",
    "auth.oauth2.client-secret",
    "rest.client.proxy.password",
)
#: Valid names and values of headers.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?")
_LOGGER = logging.getLogger("icefield")


class UnansweredError(ServiceUnavailableError):
    """A request without an answer; ``sent`` is whether the server may have received it."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent

    def __reduce__(self) -> tuple[object, ...]:
        return ServiceUnavailableError, (str(self),)


class Http:
    """Sends requests with the credentials of a catalog, by any number of threads.

    Parameters
    ----------
    properties
        The properties of the catalog, with secrets revealed.
    auth
        What makes the credentials of each request.

    """

    def __init__(self, properties: Mapping[str, str], auth: Auth) -> None:
        self._properties = dict(properties)
        self._auth = auth
        self._retries = number(properties, "rest.client.max-retries", 5)
        self._connect = number(properties, "rest.client.connection-timeout-ms", 10_000, least=1) / 1000
        #: How long the server may be silent, and how long all of an answer may take.
        self._silence = number(properties, "rest.client.socket-timeout-ms", 60_000, least=1) / 1000
        self._whole = 10 * self._silence
        self._headers = _headers(properties)
        self._secrets = _secrets(properties)
        require("httpx")
        self._making = ProcessLock()
        #: By process and scheme; certificates are read for ``https`` only.
        self._clients: dict[tuple[int, str], Connections] = {}

    def close(self) -> None:
        """Close the connections; the next request opens new ones."""
        with self._making:
            clients, self._clients = self._clients, {}
        for (process, _), client in clients.items():
            if process == os.getpid():
                client.close()

    def token_of_workers(self) -> str | None:
        """Return the bearer token that other processes get, empty if requests have none.

        None if requests have other credentials, or a token that never expires, which does not travel unless
        ``rest.client.executors-get-token`` says so.
        """
        if any(name.lower() == "authorization" for name in self._headers) or not isinstance(self._auth, HasToken):
            return None
        token = self._auth.token()
        may_travel = flag(self._properties, "rest.client.executors-get-token", False)  # noqa: FBT003
        return None if token and self._auth.is_lasting and not may_travel else token

    def send(self, request: Request, *, repeatable: bool, has_credentials: bool = False) -> Reply:
        """Send a request and return its answer, whatever its status.

        Parameters
        ----------
        request
            The request, without credentials.
        repeatable
            Whether the server may receive it more than once.
        has_credentials
            Whether the request has credentials of its own, instead of those of the catalog.

        Raises
        ------
        UnansweredError
            If there is no answer.
        RESTError
            If the answer is a redirect.

        """
        attempt, renewed, processed = 0, False, False
        end = time.monotonic() + request.within
        while True:
            # A request may wait for its token, which is asked for by another request.
            with _before(request, processed=processed):
                signed = {} if has_credentials else self._auth.headers(request)
                _check_credentials(signed, request)
            wait: float | None = None
            try:
                reply = self._exchange(request, {**self._headers, **request.headers, **signed})
            except UnansweredError as error:
                # A request that was never sent failed to connect: trying again at once does not help.
                if not (error.sent and repeatable and error.__cause__ is not None and attempt < self._retries):
                    raise
                wait, why, processed = _backoff(attempt), str(error), True
                if time.monotonic() + wait > end:
                    raise
            else:
                if not has_credentials and reply.status in _UNAUTHORIZED and not renewed:
                    with _before(request, processed=processed):
                        renewed = self._auth.renew(signed)
                    if renewed:
                        continue
                wait = self._wait(reply, attempt, repeatable=repeatable) if attempt < self._retries else None
                if wait is None or time.monotonic() + wait > end:
                    return replace(reply, repeated=processed, body=self._hidden(reply, request, signed))
                why = f"HTTP {reply.status}"
                processed = processed or reply.status != 429  # noqa: PLR2004
            attempt += 1
            _LOGGER.info("%s: %s; trying again in %.1f s", asked(request), why, wait)
            time.sleep(wait)

    def _hidden(self, reply: Reply, request: Request, signed: Mapping[str, str]) -> bytes:
        """Return the body, without the secrets that an error may repeat."""
        if reply.status < 400:  # noqa: PLR2004
            return reply.body
        own = request.headers.get("authorization", "")
        words = (word for value in (own, *signed.values()) for word in value.split() if len(word) >= _SHORTEST_SECRET)
        return _without(reply.body, {*self._secrets, *words})

    def _wait(self, reply: Reply, attempt: int, *, repeatable: bool) -> float | None:
        """Return how long to wait before the request is repeated; None if it must not be."""
        after = _seconds_after(reply.headers.get("retry-after"))
        # The protocol allows to repeat any request after 429, and after 503 with this header.
        if not (
            (repeatable and reply.status in _REPEATED)
            or reply.status == 429  # noqa: PLR2004
            or (reply.status == 503 and after is not None)  # noqa: PLR2004
        ):
            return None
        if after is None:
            return _backoff(attempt)
        return after if after <= _LONGEST_WAIT else None

    def _exchange(self, request: Request, headers: Mapping[str, str]) -> Reply:
        library = require("httpx")
        what = asked(request)
        try:
            answer = self._opened(request.url.partition(":")[0].lower()).open(request, headers)
            try:
                body = self._body(answer, what)
            finally:
                answer.close()
        except (library.InvalidURL, library.UnsupportedProtocol, UnicodeError) as error:
            raise InvalidArgumentError(f"{what}: {error}") from None
        except (library.ConnectError, library.ConnectTimeout, library.PoolTimeout, library.ProxyError) as error:
            raise UnansweredError(_text(what, "cannot connect", error), sent=False) from None
        except library.TimeoutException:
            # Repeating it would multiply the time that the caller waits.
            raise UnansweredError(f"{what}: no answer within {self._silence:g} s", sent=True) from None
        except library.DecodingError as error:
            raise UnansweredError(_text(what, "the answer cannot be decompressed", error), sent=True) from None
        except library.HTTPError as error:
            raise UnansweredError(_text(what, "the connection broke", error), sent=True) from error
        found: dict[str, str] = {}
        for raw, value in answer.headers.raw:
            name, text = raw.decode("latin-1").lower(), value.decode("latin-1")
            found[name] = f"{found[name]}, {text}" if name in found else text
        if 300 <= answer.status_code < 400 and answer.status_code != 304:  # noqa: PLR2004
            # Following it could carry the credentials elsewhere.
            where = redacted_url(found.get("location", "nowhere"))
            raise RESTError(
                f"{what}: the server redirects to {where}; set the property 'uri' to where it is", answer.status_code
            )
        return Reply(answer.status_code, found, body, what)

    def _body(self, answer: httpx.Response, what: str) -> bytes:
        end = time.monotonic() + self._whole
        body = bytearray()
        for part in answer.iter_bytes():
            body += part
            if time.monotonic() > end:
                raise UnansweredError(f"{what}: the answer took longer than {self._whole:g} s", sent=True)
            if len(body) > _LARGEST_ANSWER:
                raise UnansweredError(f"{what}: the answer is larger than {_LARGEST_ANSWER:,} bytes", sent=True)
        return bytes(body)

    def _opened(self, scheme: str) -> Connections:
        # A child must not use the connections of its parent.
        key = os.getpid(), scheme
        with self._making:
            if (found := self._clients.get(key)) is None:
                found = self._clients[key] = Connections(
                    self._properties, is_secure=scheme == "https", silence=self._silence, connect=self._connect
                )
            return found


@contextmanager
def _before(request: Request, *, processed: bool) -> Iterator[None]:
    """Let errors of getting credentials tell whether an earlier attempt at the request may have been carried out."""
    try:
        yield
    except UnansweredError as error:
        raise UnansweredError(str(error), sent=processed) from error
    except IcefieldError as error:
        if processed:
            raise UnansweredError(f"{asked(request)}: {error}", sent=True) from error
        raise


def _check_credentials(headers: Mapping[str, str], request: Request) -> None:
    """Refuse credentials that are not what a header may say, without showing them, as the library would."""
    for name, value in headers.items():
        if not _VALUE.fullmatch(value):
            raise InvalidArgumentError(
                f"{asked(request)}: the credentials cannot be sent as the header {name}: they are empty, not ASCII, or "
                "have a line break or a space at an end"
            )


def _text(what: str, problem: str, error: Exception) -> str:
    return f"{what}: {problem}: {redacted_url(str(error) or type(error).__name__)}"


def _secrets(properties: Mapping[str, str]) -> set[str]:
    """Return the secrets among the properties of a catalog."""
    found = {properties[name] for name in _PASSWORDS if name in properties}
    if credential := properties.get("credential"):
        found.add(credential.partition(":")[2] or credential)
    for name, value in properties.items():
        if shown_property(name.lower(), value) != value:
            # Such as `Bearer TOKEN`, or `session=TOKEN; user=me`.
            words = re.split(r"[\s;,]+", value)
            texts = (value, *words, *(word.partition("=")[2] for word in words))
            found |= {text for text in texts if len(text) >= _SHORTEST_SECRET}
    return found - {""}


def _without(body: bytes, secrets: Iterable[str]) -> bytes:
    """Return a text of a server without secrets, in whatever form it repeats them."""
    forms = {
        form
        for secret in secrets
        for form in (
            secret,
            json.dumps(secret)[1:-1],
            json.dumps(secret, ensure_ascii=False)[1:-1],
            json.dumps(secret)[1:-1].replace("/", "\\/"),
            quote(secret, safe=""),
            quote_plus(secret),
            html.escape(secret),
        )
    }
    # The longest first, as one may be a part of another.
    for form in sorted(forms, key=len, reverse=True):
        text = re.escape(form.encode("utf-8", "surrogatepass"))
        if len(form) < _SHORTEST_SECRET:
            text = rb"(?<![0-9A-Za-z])%b(?![0-9A-Za-z])" % text
        body = re.sub(text, HIDDEN.encode(), body)
    return body


def _backoff(attempt: int) -> float:
    return float(min(0.25 * 2**attempt, 16) * random.uniform(1, 1.1))  # noqa: S311 - spreads clients


def _seconds_after(header: str | None) -> float | None:
    """Return the seconds of a ``Retry-After``, which may be a date."""
    if not header:
        return None
    try:
        return max(float(header), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None


def _headers(properties: Mapping[str, str]) -> dict[str, str]:
    made = {"accept": "application/json", "user-agent": f"icefield/{__version__}"}
    # What the server may give: keys of storage, because to have each request signed takes two.
    made["x-iceberg-access-delegation"] = "vended-credentials"
    if agent := properties.get("rest.client.user-agent"):
        made["user-agent"] = agent
    made.update({name.lower(): value for name, value in under(properties, "header.").items()})
    for name, value in made.items():
        if not _NAME.fullmatch(name):
            raise InvalidArgumentError(f"catalog property header.{name}: not the name of an HTTP header")
        if value and not _VALUE.fullmatch(value):
            raise InvalidArgumentError(f"catalog property header.{name}: not the value of an HTTP header")
    return made
