"""What a server gives to reach the files of a table: properties of storage, and credentials that expire."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any, NamedTuple

from icefield._core import Storage, TableState
from icefield.catalog.rest.client import texts_of
from icefield.errors import IcefieldError, UnsupportedFeatureError

__all__ = ["Renewing", "Vended", "vended"]

#: Storage properties that a server may set; which files may be read, and what is verified, it may not.
_OF_STORAGE = ("s3.", "gcs.", "adls.", "client.")
_NOT_OF_SERVER = ("proxy-uri",)
#: When credentials expire, in milliseconds from the epoch; names that end with a dot are followed by an account.
_EXPIRIES = ("s3.session-token-expires-at-ms", "gcs.oauth2.token-expires-at", "adls.sas-token-expires-at-ms.")
#: Properties that are credentials of S3.
_S3_KEYS = ("s3.access-key-id", "client.access-key-id", "s3.role-arn", "client.role-arn", "s3.anonymous")


#: How long before their end credentials are renewed, and how long after a failure that is tried again.
_MARGIN_MS = 300_000
_PAUSE_MS = 10_000
_LOGGER = logging.getLogger("icefield")


class Vended(NamedTuple):
    """What a server gives for the storage of a table."""

    properties: dict[str, str]
    #: When the first credential expires, in milliseconds from the epoch; None if none does.
    expires_ms: int | None = None
    #: When it is to be renewed: five minutes before, or after half of a shorter life.
    due_ms: float | None = None


class Renewing:
    """Renews the credentials of the storage of one table.

    Parameters
    ----------
    given
        The credentials of the table as it was opened.
    renew
        Asks the server for others, and makes a storage of them.

    """

    def __init__(self, given: Vended, renew: Callable[[], tuple[Vended, Storage]]) -> None:
        self._given, self._renew = given, renew
        self._storage: Storage | None = None
        self._renewing = Lock()

    def due(self, state: TableState) -> TableState:
        """Return the state, with other credentials if those in use are about to expire."""
        due = self._given.due_ms
        if due is None or _now_ms() < due:
            return state
        with self._renewing:
            # Another thread may have been faster.
            if self._given.due_ms == due:
                try:
                    self._given, self._storage = self._renew()
                except IcefieldError as error:
                    _LOGGER.warning("the credentials of the storage cannot be renewed: %s", error)
                    self._given = self._given._replace(due_ms=_now_ms() + _PAUSE_MS)
        return self.newest(state)

    def newest(self, state: TableState) -> TableState:
        """Return the state with the credentials of the last renewal, if there was one."""
        if self._storage is None:
            return state
        return TableState.of(self._storage, state.metadata_location, state.metadata)


def vended(answer: Mapping[str, Any], location: str, own: Mapping[str, str]) -> Vended:
    """Return the storage properties of a table in an answer.

    Parameters
    ----------
    answer
        The answer: its ``config``, and ``storage-credentials``, which go before.
    location
        Where the table is. Of the credentials of each store, those with the longest prefix of it are taken.
    own
        The properties of the catalog.

    Raises
    ------
    UnsupportedFeatureError
        If the server would sign each request for S3 itself.

    """
    found = _storage(texts_of(answer.get("config")))
    entries = answer.get("storage-credentials") or []
    usable: list[tuple[str, dict[str, str]]] = []
    for entry in entries if isinstance(entries, list) else []:
        prefix = entry.get("prefix") if isinstance(entry, dict) else None
        if isinstance(prefix, str) and _covers(prefix, location):
            usable.append((prefix, _storage(texts_of(entry.get("config")))))
    for _, config in sorted(usable, key=lambda one: len(one[0])):
        # A longer prefix replaces the credentials of a shorter one whole: no key without its token.
        for store in _OF_STORAGE:
            if any(name.startswith(store) for name in config):
                found = {name: value for name, value in found.items() if not _is_credential(name, store)}
        found.update(config)
    signs = found.get("s3.remote-signing-enabled", "").lower() == "true"
    if (
        signs
        and location.startswith(("s3:", "s3a:", "s3n:"))
        and not any(name in {**own, **found} for name in _S3_KEYS)
    ):
        msg = (
            "the server wants to sign each request to S3 itself (s3.remote-signing-enabled), which is not supported: "
            "let it vend credentials, or set 's3.access-key-id' and 's3.secret-access-key'"
        )
        raise UnsupportedFeatureError(msg)
    expires = _expiry(found)
    return Vended(found, expires, None if expires is None else expires - min(_MARGIN_MS, (expires - _now_ms()) / 2))


def _now_ms() -> float:
    return time.time() * 1000


def _storage(properties: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in properties.items()
        if name.startswith(_OF_STORAGE) and not name.endswith(_NOT_OF_SERVER)
    }


def _is_credential(name: str, store: str) -> bool:
    words = ("key", "token", "sas", "secret", "credential")
    return name.startswith(store) and any(word in name for word in words)


def _covers(prefix: str, location: str) -> bool:
    """Return whether a location begins with a prefix; ``s3`` alone is the prefix of all of S3."""
    same = _plain(location)
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
