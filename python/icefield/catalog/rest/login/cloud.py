"""Access tokens of Google and of Microsoft Entra, from wherever their libraries find a login."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from icefield._support.optional import require
from icefield.catalog.rest.protocol.locks import ProcessLock
from icefield.catalog.rest.protocol.settings import under
from icefield.errors import IcefieldError, OAuthError

if TYPE_CHECKING:
    from icefield.catalog.rest.protocol.messages import Request

__all__ = ["Entra", "Google"]

#: How long before their end tokens are replaced, in seconds.
_MARGIN = 60.0


class _Cloud(ABC):
    """A token of a cloud, which its library renews."""

    is_lasting = False
    #: The name of the cloud in messages.
    _name = ""

    def __init__(self) -> None:
        self._asking = ProcessLock()

    @abstractmethod
    def _token(self, *, refused: str | None = None) -> str:
        """Return a token that is valid for a while, and another than the one that the server refused."""

    def token(self) -> str | None:
        """Return the token."""
        with self._asking:
            try:
                return self._token()
            except IcefieldError:
                raise
            except Exception as error:
                # Each library has many classes of errors, and some of them are those of its HTTP client.
                raise OAuthError(f"{self._name} gave no token: {error}") from error

    def headers(self, request: Request) -> Mapping[str, str]:  # noqa: ARG002
        """Return the header with the token."""
        return {"authorization": f"Bearer {self.token()}"}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Return whether there is another token than the one that the server refused."""
        known = refused.get("authorization", "").removeprefix("Bearer ")
        with self._asking:
            try:
                return self._token(refused=known) != known
            except Exception as error:
                raise OAuthError(f"{self._name} gave no token: {error}") from error


class Google(_Cloud):
    """The login of google-auth: a file with credentials, or what the machine has.

    Properties have PyIceberg's names, ``auth.google.credentials_path`` and ``auth.google.scopes``, or Java's,
    ``gcp.auth.credentials-path`` and ``gcp.auth.scopes``.
    """

    _name = "Google"

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__()
        own = under(properties, "auth.google.")
        path = own.get("credentials_path") or properties.get("gcp.auth.credentials-path")
        scopes = _words(own.get("scopes") or properties.get("gcp.auth.scopes")) or [
            "https://www.googleapis.com/auth/cloud-platform"
        ]
        library = require("google.auth")
        self._request: Any = require("google.auth.transport.requests").Request()
        try:
            found = library.load_credentials_from_file(path, scopes=scopes) if path else library.default(scopes=scopes)
        except (OSError, ValueError, require("google.auth.exceptions").GoogleAuthError) as error:
            raise OAuthError(f"Google has no login: {error}") from error
        self._credentials: Any = found[0]

    def _token(self, *, refused: str | None = None) -> str:
        known = self._credentials
        if not known.valid or known.token == refused:
            known.refresh(self._request)
        return str(known.token)


class Entra(_Cloud):
    """The login that azure-identity finds: variables of the environment, a managed identity, the Azure CLI.

    ``auth.entra.scopes`` says what the token is for; other properties that begin with ``auth.entra.`` are arguments of
    ``DefaultAzureCredential``, such as ``auth.entra.managed_identity_client_id``.
    """

    _name = "Microsoft Entra"

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__()
        own = under(properties, "auth.entra.")
        self._scopes = _words(own.pop("scopes", None)) or ["https://storage.azure.com/.default"]
        self._credential: Any = require("azure.identity").DefaultAzureCredential(**own)
        self._known = ""
        self._expires = 0.0

    def _token(self, *, refused: str | None = None) -> str:
        if time.time() >= self._expires - _MARGIN or self._known == refused:
            found = self._credential.get_token(*self._scopes)
            self._known, self._expires = str(found.token), float(found.expires_on)
        return self._known


def _words(text: str | None) -> list[str]:
    return (text or "").replace(",", " ").split()
