"""The credentials of requests to a REST catalog."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from icefield.catalog.rest.protocol.messages import Request

__all__ = ["Auth", "Basic", "Bearer", "Foreign", "HasToken", "MakesHeader", "Nothing"]


class Auth(Protocol):
    """Makes the credentials of requests, for any number of threads.

    A class of your own, named by ``auth.type=custom`` and ``auth.impl``, has these two methods, or `auth_header` alone
    as PyIceberg's ``AuthManager`` has it. Properties that begin with ``auth.custom.`` are its arguments.
    """

    def headers(self, request: Request) -> Mapping[str, str]:
        """Return the headers that are the credentials of a request."""

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Replace the credentials after the server refused these headers; return whether there are others now."""


@runtime_checkable
class HasToken(Protocol):
    """Credentials that are a token, or none at all."""

    def token(self) -> str | None:
        """Return the token, empty if there are no credentials; None if they are of another kind."""

    @property
    def is_lasting(self) -> bool:
        """Whether the token never expires, so that who has it has all rights of the user for ever."""


class Nothing:
    """No credentials."""

    is_lasting = False

    def token(self) -> str | None:
        """Return that there is no token."""
        return ""

    def headers(self, request: Request) -> Mapping[str, str]:  # noqa: ARG002
        """Return no headers."""
        return {}

    def renew(self, refused: Mapping[str, str]) -> bool:  # noqa: ARG002
        """Return that there are no others."""
        return False


class Bearer(Nothing):
    """A token that stays the same."""

    is_lasting = True

    def __init__(self, token: str) -> None:
        self._token = token
        self._headers = {"authorization": f"Bearer {token}"}

    def token(self) -> str | None:
        """Return the token."""
        return self._token

    def headers(self, request: Request) -> Mapping[str, str]:  # noqa: ARG002
        """Return the header with the token."""
        return self._headers


class Basic(Nothing):
    """A user and a password."""

    def __init__(self, username: str, password: str) -> None:
        text = base64.b64encode(f"{username}:{password}".encode()).decode()
        self._headers = {"authorization": f"Basic {text}"}

    def token(self) -> str | None:
        """Return that the credentials are no token."""
        return None

    def headers(self, request: Request) -> Mapping[str, str]:  # noqa: ARG002
        """Return the header with both."""
        return self._headers


class Foreign(Nothing):
    """A class like PyIceberg's ``AuthManager``, which makes the header ``Authorization`` each time."""

    def __init__(self, manager: MakesHeader) -> None:
        self._manager = manager

    def token(self) -> str | None:
        """Return that the credentials may be of any kind."""
        return None

    def headers(self, request: Request) -> Mapping[str, str]:  # noqa: ARG002
        """Return the header that the class makes."""
        made = self._manager.auth_header()
        return {} if made is None else {"authorization": made}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Return whether the class makes another header now."""
        return self._manager.auth_header() != refused.get("authorization")


class MakesHeader(Protocol):
    """What PyIceberg's classes do."""

    def auth_header(self) -> str | None:
        """Return the value of the header ``Authorization``."""
