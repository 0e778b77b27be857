"""What the answers of a REST catalog mean, as exceptions."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from icefield._inputs.secrets import redacted_url
from icefield.catalog.rest.protocol.messages import Reply
from icefield.errors import (
    AuthorizationExpiredError,
    BadRequestError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    IcefieldError,
    NamespaceNotEmptyError,
    NoSuchCatalogError,
    NoSuchNamespaceError,
    NoSuchTableError,
    NoSuchViewError,
    NotFoundError,
    RESTError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
    UnsupportedFeatureError,
)

__all__ = ["Meanings", "error_of", "is_success", "outcome_of"]

#: The longest text of a server that is repeated.
_LONGEST = 500
#: Types of errors that name what is missing, as Java's server and others write them.
_MISSING: Mapping[str, type[NotFoundError]] = {
    "NoSuchNamespaceException": NoSuchNamespaceError,
    "NoSuchNamespaceError": NoSuchNamespaceError,
    "NamespaceNotFoundException": NoSuchNamespaceError,
    "NoSuchTableException": NoSuchTableError,
    "NoSuchTableError": NoSuchTableError,
    "TableNotFoundException": NoSuchTableError,
    "NoSuchIcebergTableException": NoSuchTableError,
    "NoSuchViewException": NoSuchViewError,
    "NoSuchViewError": NoSuchViewError,
    "NoSuchWarehouseException": NoSuchCatalogError,
}
#: What a route means by a status: the message makes the exception.
Meanings = Mapping[int, Callable[[str], IcefieldError]]


def is_success(reply: Reply) -> bool:
    """Return whether a request succeeded."""
    return 200 <= reply.status < 300  # noqa: PLR2004


def error_of(reply: Reply, meanings: Meanings | None = None) -> IcefieldError:
    """Return the exception for an answer that is not a success.

    Parameters
    ----------
    reply
        The answer.
    meanings
        What the route means by some statuses. A type of error that names what is missing goes before.

    """
    message, kind = _said(reply)
    text = f"{message} ({reply.asked}: HTTP {reply.status}{f', {kind}' if kind else ''})"
    meant = meanings[reply.status](text) if meanings and reply.status in meanings else None
    missing = _MISSING.get(kind or "")
    if missing is not None and reply.status in {400, 404} and not isinstance(meant, missing):
        return missing(text)
    if kind in {"NamespaceNotEmptyException", "NamespaceNotEmptyError"} and not isinstance(
        meant, NamespaceNotEmptyError
    ):
        return NamespaceNotEmptyError(text)
    return meant or _by_status(reply.status, text, kind)


def _by_status(status: int, text: str, kind: str | None) -> IcefieldError:
    if kind == "UnsupportedOperationException" or status in {405, 406, 501}:
        return UnsupportedFeatureError(f"the server does not support this: {text}")
    if status in {400, 409, 413, 414, 415, 422}:
        return BadRequestError(text, status, kind)
    if status == 401:  # noqa: PLR2004
        return UnauthorizedError(f"the server does not accept the credentials: {text}", status, kind)
    if status == 419:  # noqa: PLR2004
        return AuthorizationExpiredError(f"the credentials have expired: {text}", status, kind)
    if status == 403:  # noqa: PLR2004
        return ForbiddenError(f"the credentials do not permit this: {text}", status, kind)
    if status == 429:  # noqa: PLR2004
        return TooManyRequestsError(text, status, kind)
    if status == 503:  # noqa: PLR2004
        return ServiceUnavailableError(text, status, kind)
    if status >= 500:  # noqa: PLR2004
        return ServerError(text, status, kind)
    if status == 404:  # noqa: PLR2004
        return RESTError(f"{text}; is there a REST catalog at the property 'uri'?", status, kind)
    return RESTError(text, status, kind)


def outcome_of(reply: Reply, meanings: Meanings | None = None, *, once: bool = False) -> IcefieldError:
    """Return the exception for the answer to a commit that is not a success: it tells whether the commit was made.

    Parameters
    ----------
    reply
        The answer.
    meanings
        What the route means by some statuses.
    once
        Whether the server carries out a repeated request once. Otherwise a conflict may be with the first attempt.

    """
    message, kind = _said(reply)
    # Proxies have statuses of their own, such as 524, for requests that the server behind them carries out.
    unknown = reply.status == 408 or (reply.status >= 500 and reply.status != 501)  # noqa: PLR2004
    if kind == "CommitStateUnknownException" or unknown or (reply.repeated and not once):
        return CommitStateUnknownException(f"{message} ({reply.asked}: HTTP {reply.status})")
    found = error_of(reply, meanings)
    if meanings and reply.status in meanings:
        return found
    # The request was refused, so that nothing was changed.
    failed = CommitFailedException(str(found))
    failed.__cause__ = found
    return failed


def _said(reply: Reply) -> tuple[str, str | None]:
    """Return the message and the type of an error, whatever form the body has."""
    text = reply.body[: 64 * 1024].decode("utf-8", "replace").strip()
    message: object = None
    kind: object = None
    try:
        found = json.loads(reply.body) if text.startswith("{") else None
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        message, kind = _parts(found)
    if not isinstance(message, str) or not message.strip():
        # A page of a proxy: its words without its tags.
        page = re.sub(r"(?is)<(script|style|head).*?</\1>|<[^>]*>", " ", text)
        message = " ".join(html.unescape(page).split())
    message = redacted_url(message)
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]}…"
    return message or "the server gave no reason", kind if isinstance(kind, str) and kind else None


def _parts(found: dict[str, Any]) -> tuple[object, object]:
    error = found.get("error")
    if isinstance(error, dict):
        return error.get("message"), error.get("type")
    if isinstance(error, str):  # OAuth2, and gateways
        described = found.get("error_description") or found.get("message")
        return f"{error}: {described}" if described else error, None
    message = found.get("message") or found.get("Message") or found.get("detail")
    kind = found.get("type") or found.get("__type") or found.get("code")
    return message, kind
