"""Tokens of OAuth2: by client credentials, or exchanged for one that expires; renewed before they do."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Mapping
from urllib.parse import urlencode, urljoin

from icefield.catalog.rest.protocol.auth import Nothing
from icefield.catalog.rest.protocol.errors import error_of, is_success
from icefield.catalog.rest.protocol.http import Http
from icefield.catalog.rest.protocol.locks import ProcessLock
from icefield.catalog.rest.protocol.messages import Request
from icefield.catalog.rest.protocol.settings import flag, number, under
from icefield.errors import InvalidArgumentError, OAuthError

__all__ = ["OAuth2", "oauth_of"]

#: A token is replaced when a tenth of its life is left, but at most these seconds before its end.
_MOST_MARGIN = 300.0
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - the name of a kind
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"


def oauth_of(properties: Mapping[str, str], uri: str) -> OAuth2:
    """Return the tokens of a catalog, by the names of its properties in PyIceberg and in Java."""
    own = {name.replace("-", "_"): value for name, value in under(properties, "auth.oauth2.").items()}
    server = own.get("token_url") or properties.get("oauth2-server-uri")
    credential = properties.get("credential")
    if "client_secret" in own:
        credential = f"{own.get('client_id', '')}:{own['client_secret']}"
    token = properties.get("token")
    if credential is None and token is None:
        msg = "OAuth2 requires the property 'credential' (client-id:client-secret) or 'token'"
        raise InvalidArgumentError(msg)
    asked = {
        "scope": own.get("scope") or properties.get("scope") or "catalog",
        **{name: properties[name] for name in ("audience", "resource") if name in properties},
    }
    # Java allows a path on the server of the catalog.
    server = urljoin(uri.rstrip("/") + "/", server or "v1/oauth/tokens")
    return OAuth2(properties, server, credential, token, asked, by_header="client_secret" in own)


class OAuth2:
    """A token that is replaced before it expires, by one thread at a time.

    Parameters
    ----------
    properties
        The properties of the catalog, for the connection.
    server
        The URL of the endpoint that gives tokens.
    credential
        Id and secret of the client, with a colon between them, or the secret alone.
    token
        A first token.
    asked
        Further parameters of a request.
    by_header
        Whether the credential is sent as HTTP Basic authentication, and not in the form.

    """

    def __init__(
        self,
        properties: Mapping[str, str],
        server: str,
        credential: str | None,
        token: str | None,
        asked: Mapping[str, str],
        *,
        by_header: bool,
    ) -> None:
        plain = {name: value for name, value in properties.items() if not name.startswith("header.")}
        self._http = Http(plain, Nothing())
        self._server, self._asked, self._by_header = server, dict(asked), by_header
        self._credential = credential
        self._life = number(properties, "token-expires-in-ms", 3_600_000, least=1) / 1000
        self._refreshes = flag(properties, "token-refresh-enabled", True)  # noqa: FBT003
        self._exchanges = flag(properties, "token-exchange-enabled", True)  # noqa: FBT003
        self._lock = ProcessLock()
        self._token = token
        #: When the token is to be replaced, in seconds from the epoch; None if that is not known.
        self._due = None if token is None else _due(_expiry(token))

    def headers(self, request: Request) -> Mapping[str, str]:  # noqa: ARG002
        """Return the header with a token that is valid for a while."""
        return {"authorization": f"Bearer {self.token()}"}

    def token(self) -> str | None:
        """Return a token that is valid for a while."""
        with self._lock:
            if self._token is None or (self._refreshes and self._due is not None and time.time() >= self._due):
                self._replace(must=self._token is None)
            return self._token

    @property
    def is_lasting(self) -> bool:
        """Whether the token is one that was given and does not say when it expires."""
        with self._lock:
            return self._token is not None and self._due is None

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Replace the token, unless another thread has done so since."""
        with self._lock:
            if refused.get("authorization") != f"Bearer {self._token}":
                return True
            return self._replace(must=self._credential is not None)

    def _replace(self, *, must: bool) -> bool:
        """Ask for a token; a failure is raised only where there is no other."""
        try:
            if self._credential is not None:
                self._take(self._by_credential())
            elif self._exchanges and self._token is not None and _expiry(self._token) is not None:
                self._take(self._by_exchange(self._token))
            else:
                return False
        except Exception:
            if must:
                raise
            # The token may still be good: it is asked for again after a while.
            self._due = time.time() + 10
            return False
        return True

    def _by_credential(self) -> dict[str, object]:
        client, colon, secret = (self._credential or "").partition(":")
        if not colon:
            client, secret = "", client
        form, headers = {"grant_type": "client_credentials", **self._asked}, {}
        if self._by_header:
            text = base64.b64encode(f"{client}:{secret}".encode()).decode()
            headers["authorization"] = f"Basic {text}"
        else:
            form.update({"client_id": client} if client else {}, client_secret=secret)
        return self._ask(form, headers)

    def _by_exchange(self, token: str) -> dict[str, object]:
        form = {
            "grant_type": _EXCHANGE,
            "subject_token": token,
            "subject_token_type": _ACCESS_TOKEN,
            **self._asked,
        }
        return self._ask(form, {"authorization": f"Bearer {token}"})

    def _ask(self, form: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, object]:
        sent = {**headers, "content-type": "application/x-www-form-urlencoded"}
        # Two tokens instead of one do no harm.
        reply = self._http.send(Request("POST", self._server, sent, urlencode(form).encode()), repeatable=True)
        if not is_success(reply):
            raise OAuthError(f"no token was given: {error_of(reply)}", reply.status)
        return reply.json()

    def _take(self, answer: Mapping[str, object]) -> None:
        token = answer.get("access_token")
        if not isinstance(token, str) or not token:
            raise OAuthError(f"the answer of {self._server} has no access_token")
        if not token.isascii() or not token.isprintable():
            raise OAuthError(f"the access_token of {self._server} is not the value of a header")
        self._token = token
        life = answer.get("expires_in")
        now = time.time()
        if isinstance(life, (int, float)) and not isinstance(life, bool) and life > 0:
            self._due = _due(now + life)
        else:
            self._due = _due(_expiry(token) or now + self._life)


def _due(end: float | None) -> float | None:
    """Return when a token with this end is to be replaced."""
    if end is None:
        return None
    return end - min(max((end - time.time()) / 10, 0), _MOST_MARGIN)


def _expiry(token: str) -> float | None:
    """Return when a JSON web token expires; None if it is not one, or does not expire."""
    parts = token.split(".")
    if len(parts) != 3:  # noqa: PLR2004
        return None
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
