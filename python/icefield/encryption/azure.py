"""Azure Key Vault."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Protocol

from icefield._support.optional import require
from icefield.encryption.client import KeyManagementClient
from icefield.errors import InvalidArgumentError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AzureKeys"]

_URL = "azure.keyvault.url"
_ALGORITHM = "azure.keyvault.key-wrap-algorithm"


class _Vault(Protocol):
    """The methods of ``azure.keyvault.keys.KeyClient`` that are used."""

    def get_cryptography_client(self, key_name: str) -> object:
        """Return the client of a key."""


class AzureKeys(KeyManagementClient):
    """Keys of Azure Key Vault (``encryption.kms-type=azure``), using azure-keyvault-keys and azure-identity.

    Properties are those of Java's client: ``azure.keyvault.url`` and ``azure.keyvault.key-wrap-algorithm`` (by default
    ``RSA-OAEP-256``). The login is what ``azure.identity.DefaultAzureCredential`` finds. The id of a key is its name in
    the vault. A vault decrypts with the newest version of a key; for keys with several versions, the id is
    ``name/version``.

    Parameters
    ----------
    client
        An ``azure.keyvault.keys.KeyClient`` to use, such as one with another credential. By default one is made when
        the first key is needed.

    """

    def __init__(self, client: _Vault | None = None) -> None:
        """Connect to nothing yet."""
        self._client = client
        self._url = ""
        self._algorithm = ""
        self._lock = Lock()

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Read the properties; the service is not called before a key is needed.

        Raises
        ------
        NotInstalledError
            If azure-keyvault-keys or azure-identity is not installed.
        InvalidArgumentError
            If there is no URL of a vault, or the algorithm is unknown.

        """
        known = require("azure.keyvault.keys.crypto").KeyWrapAlgorithm
        name = properties.get(_ALGORITHM, "RSA-OAEP-256")
        try:
            self._algorithm = known(name)
        except ValueError:
            expected = ", ".join(sorted(one.value for one in known))
            raise InvalidArgumentError(f"{_ALGORITHM}={name}: expected one of {expected}") from None
        if self._client is not None:
            return
        require("azure.identity")
        self._url = properties.get(_URL, "")
        if not self._url:
            raise InvalidArgumentError(f"encryption.kms-type=azure: set {_URL} to the URL of the key vault")

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Encrypt with the key with this name.

        Raises
        ------
        StorageError
            If the service refuses or cannot be reached.

        """
        return self._ask("wrap_key", key, wrapping_key_id, "encrypted_key")

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """Decrypt what `wrap_key` returned.

        Raises
        ------
        StorageError
            If the service refuses or cannot be reached.

        """
        return self._ask("unwrap_key", wrapped_key, wrapping_key_id, "key")

    def _ask(self, verb: str, given: bytes, key_id: str, answer: str) -> bytes:
        what = f"Azure Key Vault cannot {verb.partition('_')[0]} by the key {key_id!r}"
        try:
            # The client of a key asks for its newest version when it is made, so none is kept.
            client = self._connected().get_cryptography_client(key_id)
            found = getattr(client, verb)(self._algorithm, given)
        except require("azure.core.exceptions").AzureError as error:
            raise StorageError(f"{what}: {error.message}") from error
        except (ValueError, NotImplementedError) as error:
            # Raised by the client itself: an invalid URL or id, or an algorithm that does not fit the key.
            raise InvalidArgumentError(f"{what}: {error}") from error
        return bytes(getattr(found, answer))

    def _connected(self) -> _Vault:
        # Threads that need a key at the same time share one client.
        with self._lock:
            if self._client is None:
                credential = require("azure.identity").DefaultAzureCredential()
                self._client = require("azure.keyvault.keys").KeyClient(self._url, credential)
            return self._client
