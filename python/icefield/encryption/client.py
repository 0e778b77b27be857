"""The interface of clients of key management services."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["KeyManagementClient"]


class KeyManagementClient(ABC):
    """A client of a key management service, which encrypts and decrypts keys with keys of its own.

    A class that ``encryption.kms-impl`` names is made without arguments and then initialized. It is called by several
    threads.
    """

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Receive the properties of the catalog, secrets included; called once, before anything else.

        By default nothing is taken.
        """
        del properties

    @abstractmethod
    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Return a key encrypted with a key of the service.

        Parameters
        ----------
        key
            The bytes to encrypt: 16, 24 or 32.
        wrapping_key_id
            The id of the key of the service, as the table property ``encryption.key-id`` has it.

        """

    @abstractmethod
    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """Return the key that `wrap_key` encrypted with the same key of the service."""
