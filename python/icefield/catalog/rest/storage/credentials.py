"""What a server gives to reach the files of a table: properties of storage, and credentials that expire."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from icefield.catalog.rest.protocol.settings import texts_of
from icefield.catalog.rest.storage.signing import Signing, signing_of
from icefield.errors import RESTError

__all__ = ["Vended", "again", "location_of", "now_ms", "replaced", "vended"]

#: Storage properties that a server may set; which files may be read, and what is verified, it may not.
_OF_STORAGE = ("s3.", "gcs.", "adls.", "client.")
_NOT_OF_SERVER = ("proxy-uri",)
#: When credentials expire, in milliseconds from the epoch; names that end with a dot are followed by an account.
_EXPIRIES = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at", "adls.sas-token-expires-at-ms.")
#: Whether the server signs each request to S3.
_SIGNED = "s3.remote-signing-enabled"
#: The same by the names of PyIceberg.
_SIGNER = ("s3.signer", "S3V4RestSigner")
#: Properties that are credentials of S3.
_S3_KEYS = ("s3.access-key-id", "client.access-key-id", "s3.role-arn", "client.role-arn", "s3.anonymous")
#: The credentials of each store; ``client.`` is another prefix of those of S3, and an account may follow a last dot.
_CREDENTIALS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("s3.", "client."): (
        "access-key-id",
        "secret-access-key",
        "session-token",
        "role-arn",
        "role-session-name",
        "anonymous",
        "session-token-expires-at-ms",
    ),
    ("gcs.",): (
        "service-account-key",
        "credentials-json",
        "service-account-path",
        "credential-path",
        "oauth2.token",
        "oauth2.token-expires-at",
        "no-auth",
        "allow-anonymous",
    ),
    ("adls.",): (
        "account-key",
        "auth.shared-key.account.key",
        "sas-token",
        "sas-token.",
        "sas-token-expires-at-ms.",
        "tenant-id",
        "client-id",
        "client-secret",
        "token",
        "connection-string",
    ),
}


#: How long before their end credentials are renewed.
_MARGIN_MS = 300_000


class Vended(NamedTuple):
    """What a server gives for the storage of a table."""

    properties: dict[str, str]
    #: When the first credential expires, in milliseconds from the epoch; None if none does.
    expires_ms: int | None = None
    #: When it is to be renewed: five minutes before, or after half of a shorter life.
    due_ms: float | None = None
    #: How the server signs requests; None if it does not.
    signing: Signing | None = None
    #: What it gives for other places than that of the table, by their prefixes.
    others: tuple[tuple[str, Vended], ...] = ()

    def at(self, location: str) -> Vended:
        """Return the credentials for the table's location, or for one of the other places."""
        return next((other for prefix, other in self.others if location_of(prefix) == location), self)

    def key(self) -> tuple[object, ...]:
        """Return a key that is the same for the same properties."""
        signing = (self.signing.uri, self.signing.endpoint, self.signing.token) if self.signing else ()
        return *sorted(self.properties.items()), signing, *((prefix, other.key()) for prefix, other in self.others)

    def __repr__(self) -> str:
        # Some of the properties are secrets.
        return f"Vended({sorted(self.properties)}, expires_ms={self.expires_ms}, signing={self.signing!r})"


def vended(answer: Mapping[str, Any], location: str, own: Mapping[str, str]) -> Vended:
    """Return the storage properties of a table in an answer.

    Parameters
    ----------
    answer
        The answer: its ``config``, and ``storage-credentials``, which go before.
    location
        Where the table is. Of the credentials of each store, those with the longest prefix of it are taken; those with
        other prefixes are for other places.
    own
        The properties of the catalog.

    """
    found = _for(answer, location, own)
    entries = answer.get("storage-credentials") or []
    named = (entry.get("prefix") for entry in (entries if isinstance(entries, list) else []) if isinstance(entry, dict))
    prefixes = {prefix for prefix in named if isinstance(prefix, str) and prefix and not _covers(prefix, location)}
    others = ((prefix, _for(answer, location_of(prefix), own)) for prefix in sorted(prefixes))
    return found._replace(others=tuple((prefix, other) for prefix, other in others if other != found))


def _for(answer: Mapping[str, Any], location: str, own: Mapping[str, str]) -> Vended:
    """Return what an answer has for a location."""
    found = _of_location(answer, location)
    signing: Signing | None = None
    # Keys make one request of each, and not two.
    if (
        _is_signed({**own, **found})
        and location.startswith(("s3:", "s3a:", "s3n:"))
        and not any(name in {**own, **found} for name in _S3_KEYS)
    ):
        signing = signing_of(answer, texts_of(answer.get("config")), own)
        found[_SIGNED] = "true"
    else:
        found.pop(_SIGNED, None)
    expires = _expiry(found)
    due = None if expires is None else expires - min(_MARGIN_MS, (expires - now_ms()) / 2)
    return Vended(found, expires, due, signing)


def again(answer: Mapping[str, Any], location: str, own: Mapping[str, str], given: Vended) -> Vended:
    """Return the storage properties of a table with other credentials, from an answer that has nothing else.

    Raises
    ------
    RESTError
        If it has none for the location.

    """
    found = vended({**answer, "config": given.properties}, location, own)
    if found.expires_ms is not None and not _of_location({**answer, "config": {}}, location):
        # With the old ones taken for others, the storage would fail without a word of this.
        raise RESTError("the answer of the server has no credentials for the location of the table")
    return found if found.signing is None else found._replace(signing=given.signing)


def location_of(prefix: str) -> str:
    """Return a location that a prefix of credentials is for; ``gs`` alone is one of all of GCS."""
    return prefix if "://" in prefix else f"{prefix}://"


def replaced(below: Mapping[str, str], above: Mapping[str, str]) -> dict[str, str]:
    """Return properties of storage with others above them.

    Credentials of a store replace all others of that store: no key goes with the token of another.
    """
    given = [name for name in above if not name.startswith(_EXPIRIES)]
    stores = [store for store in _CREDENTIALS if any(_is_credential(name, store) for name in given)]
    kept = {name: value for name, value in below.items() if not any(_is_credential(name, store) for store in stores)}
    return {**kept, **above}


def _of_location(answer: Mapping[str, Any], location: str) -> dict[str, str]:
    """Return what an answer has for a location."""
    found = _storage(texts_of(answer.get("config")))
    entries = answer.get("storage-credentials") or []
    usable: list[tuple[str, dict[str, str]]] = []
    for entry in entries if isinstance(entries, list) else []:
        prefix = entry.get("prefix") if isinstance(entry, dict) else None
        if isinstance(prefix, str) and _covers(prefix, location):
            usable.append((prefix, _storage(texts_of(entry.get("config")))))
    for _, config in sorted(usable, key=lambda one: len(one[0])):
        found = replaced(found, config)
    return found


def now_ms() -> float:
    """Return the time in milliseconds from the epoch."""
    return time.time() * 1000


def _is_signed(properties: Mapping[str, str]) -> bool:
    if _SIGNED in properties:
        return properties[_SIGNED].lower() == "true"
    name, value = _SIGNER
    return properties.get(name) == value


def _storage(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in properties.items()
        if name.startswith(_OF_STORAGE) and not name.endswith(_NOT_OF_SERVER)
    }


def _is_credential(name: str, store: tuple[str, ...]) -> bool:
    kinds = _CREDENTIALS[store]
    for prefix in store:
        kind = name.removeprefix(prefix)
        if kind != name and (kind in kinds or any(one.endswith(".") and kind.startswith(one) for one in kinds)):
            return True
    return False


def _covers(prefix: str, location: str) -> bool:
    """Return whether a location begins with a prefix; ``s3`` alone is the prefix of all of S3."""
    # The prefix may be a folder, with or without its last slash.
    same = f"{_plain(location).rstrip('/')}/"
    return same.startswith(_plain(prefix)) or ("://" not in prefix and location.startswith(f"{prefix}:"))


def _plain(location: str) -> str:
    scheme, colon, rest = location.partition("://")
    return f"s3{colon}{rest}" if scheme in {"s3a", "s3n"} else location


def _expiry(properties: Mapping[str, str]) -> int | None:
    found = [
        int(value)
        for name, value in properties.items()
        if (name in _EXPIRIES or name.startswith(_EXPIRIES[-1])) and value.isascii() and value.isdigit()
    ]
    return min(found, default=None)
