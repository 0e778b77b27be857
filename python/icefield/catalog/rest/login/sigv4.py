"""Requests signed as AWS requires it: Signature Version 4."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, quote, urlsplit

from icefield._support.optional import require
from icefield.errors import InvalidArgumentError, NotInstalledError

if TYPE_CHECKING:
    from icefield.catalog.rest.protocol.auth import Auth
    from icefield.catalog.rest.protocol.messages import Request

__all__ = ["Keys", "SigV4", "sign"]

_ALGORITHM = "AWS4-HMAC-SHA256"


class Keys(NamedTuple):
    """The keys that sign."""

    access_key_id: str
    secret_access_key: str
    session_token: str | None = None


class SigV4:
    """Signs each request; the header of another kind of credentials goes along as ``Original-Authorization``.

    Keys come from ``rest.access-key-id`` and so on, or ``client.*``, or the environment; where botocore is installed,
    from all places where it looks for them, such as profiles, roles and the machine.
    """

    def __init__(self, properties: Mapping[str, str], delegate: Auth, uri: str) -> None:
        self._properties, self._delegate = dict(properties), delegate
        self._session: Any = None
        # glue.eu-west-1.amazonaws.com, s3tables.eu-west-1.amazonaws.com
        host = (urlsplit(uri).hostname or "").split(".")
        of_host = host[:2] if len(host) >= 4 and host[2] == "amazonaws" else ["execute-api", ""]  # noqa: PLR2004
        region = (
            properties.get("rest.signing-region")
            or of_host[1]
            or properties.get("client.region")
            or os.environ.get("AWS_REGION")
            or os.environ.get("AWS_DEFAULT_REGION")
            or self._region_found()
        )
        if not region:
            msg = (
                "requests are signed for a region: set the property 'rest.signing-region', or the region of the "
                "profile 'client.profile-name'"
            )
            raise InvalidArgumentError(msg)
        self._region = region
        self._service = properties.get("rest.signing-name") or of_host[0]

    def headers(self, request: Request) -> Mapping[str, str]:
        """Return the headers of the signature."""
        other = {
            ("original-authorization" if name == "authorization" else name): value
            for name, value in self._delegate.headers(request).items()
        }
        return {**other, **sign(request, other, self._keys(), self._region, self._service, datetime.now(timezone.utc))}

    def renew(self, refused: Mapping[str, str]) -> bool:
        """Renew the credentials that go along."""
        inner = refused.get("original-authorization")
        return inner is not None and self._delegate.renew({"authorization": inner})

    def _keys(self) -> Keys:
        given = self._properties
        for prefix in ("rest.", "client."):
            known, secret = given.get(f"{prefix}access-key-id"), given.get(f"{prefix}secret-access-key")
            if known and secret:
                return Keys(known, secret, given.get(f"{prefix}session-token"))
        if found := self._found():
            return found
        known, secret = os.environ.get("AWS_ACCESS_KEY_ID"), os.environ.get("AWS_SECRET_ACCESS_KEY")
        if known and secret:
            return Keys(known, secret, os.environ.get("AWS_SESSION_TOKEN"))
        msg = (
            "no keys to sign requests with: set the properties 'rest.access-key-id' and 'rest.secret-access-key' or "
            "the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; profiles and roles need botocore"
        )
        raise InvalidArgumentError(msg)

    def _found(self) -> Keys | None:
        """Return the keys that botocore finds, which renews them too."""
        session = self._opened()
        found = None if session is None else session.get_credentials()
        if found is None:
            return None
        frozen = found.get_frozen_credentials()
        return Keys(frozen.access_key, frozen.secret_key, frozen.token)

    def _region_found(self) -> str | None:
        """Return the region of the profile."""
        session = self._opened()
        found: str | None = None if session is None else session.get_config_variable("region")
        return found

    def _opened(self) -> Any:
        """Return botocore's session; None if it is not installed.

        Raises
        ------
        InvalidArgumentError
            If the machine has no such profile.

        """
        if self._session is None:
            try:
                library = require("botocore.session")
            except NotInstalledError:
                return None
            profile = self._properties.get("client.profile-name")
            if profile is not None and profile not in library.Session().available_profiles:
                raise InvalidArgumentError(f"catalog property client.profile-name={profile}: there is no such profile")
            self._session = library.Session(profile=profile)
        return self._session


def sign(
    request: Request, headers: Mapping[str, str], keys: Keys, region: str, service: str, now: datetime
) -> dict[str, str]:
    """Return the headers that sign a request, together with these."""
    url = urlsplit(request.url)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    body = hashlib.sha256(request.body).hexdigest()
    made = {"x-amz-date": stamp, "x-amz-content-sha256": body}
    if keys.session_token:
        made["x-amz-security-token"] = keys.session_token
    host = url.netloc.rpartition("@")[2].lower()
    default = {"http": ":80", "https": ":443"}.get(url.scheme, "")
    signed = {"host": host.removesuffix(default) if default else host, **headers, **made}
    names = ";".join(sorted(signed))
    lines = "".join(f"{name}:{' '.join(signed[name].split())}\n" for name in sorted(signed))
    query = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(url.query, keep_blank_values=True)
    )
    text = "\n".join(
        (
            request.method,
            # Services other than S3 sign the path encoded once more.
            quote(url.path or "/", safe="/~"),
            "&".join(f"{name}={value}" for name, value in query),
            lines,
            names,
            body,
        )
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n{hashlib.sha256(text.encode()).hexdigest()}"
    key = f"AWS4{keys.secret_access_key}".encode()
    for part in (stamp[:8], region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    made["authorization"] = (
        f"{_ALGORITHM} Credential={keys.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return made
