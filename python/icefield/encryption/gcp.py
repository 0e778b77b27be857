"""Google Cloud Key Management Service."""

from __future__ import annotations

from datetime import datetime, timezone
from threading import Lock
from typing import TYPE_CHECKING

from icefield._support.optional import require
from icefield.encryption.client import KeyManagementClient
from icefield.errors import InvalidArgumentError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GcpKeys"]

_TOKEN = "gcs.oauth2.token"  # noqa: S105
_EXPIRES = "gcs.oauth2.token-expires-at"


class GcpKeys(KeyManagementClient):
    """Keys of Google Cloud KMS (``encryption.kms-type=gcp``), using the package google-cloud-kms.

    The id of a key is its resource name, ``projects/P/locations/L/keyRings/R/cryptoKeys/K``. The login is that of
    Java's client: the access token ``gcs.oauth2.token``, valid until ``gcs.oauth2.token-expires-at`` (milliseconds
    since 1970), or else the application default credentials.

    Parameters
    ----------
    client
        A ``google.cloud.kms.KeyManagementServiceClient`` to use, such as one with an endpoint or credentials of its
        own. By default one is made when the first key is needed.

    """

    def __init__(self, client: object = None) -> None:
        """Connect to nothing yet."""
        self._client = client
        self._login: dict[str, object] = {}
        self._lock = Lock()

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Read the login; the service is not called before a key is needed.

        Raises
        ------
        NotInstalledError
            If google-cloud-kms is not installed.
        InvalidArgumentError
            If the time at which the token expires is not a number.

        """
        if self._client is not None:
            return
        require("google.cloud.kms")
        if token := properties.get(_TOKEN):
            expiry = _time(properties[_EXPIRES]) if _EXPIRES in properties else None
            self._login["credentials"] = require("google.oauth2.credentials").Credentials(token, expiry=expiry)

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Encrypt with the key with this resource name.

        Raises
        ------
        StorageError
            If the service refuses or cannot be reached.

        """
        return self._ask("encrypt", {"name": wrapping_key_id, "plaintext": key}, "ciphertext")

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """Decrypt what `wrap_key` returned.

        Raises
        ------
        StorageError
            If the service refuses or cannot be reached.

        """
        return self._ask("decrypt", {"name": wrapping_key_id, "ciphertext": wrapped_key}, "plaintext")

    def _ask(self, verb: str, request: dict[str, object], answer: str) -> bytes:
        failures = (
            require("google.api_core.exceptions").GoogleAPIError,
            require("google.auth.exceptions").GoogleAuthError,
        )
        try:
            found = getattr(self._connected(), verb)(request=request)
        except failures as error:
            raise StorageError(f"Google Cloud KMS cannot {verb} by the key {request['name']!r}: {error}") from error
        return bytes(getattr(found, answer))

    def _connected(self) -> object:
        # Threads that need a key at the same time share one client.
        with self._lock:
            if self._client is None:
                self._client = require("google.cloud.kms").KeyManagementServiceClient(**self._login)
            return self._client


def _time(text: str) -> datetime:
    """Return the time as google-auth takes it: in UTC, without a zone."""
    try:
        return datetime.fromtimestamp(int(text) / 1000, timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError, OSError):
        raise InvalidArgumentError(f"{_EXPIRES}: expected milliseconds since 1970, got {text!r}") from None
