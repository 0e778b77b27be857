"""AWS Key Management Service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefield._support.optional import require
from icefield.encryption.client import KeyManagementClient
from icefield.errors import InvalidArgumentError, StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["AwsKeys"]


class AwsKeys(KeyManagementClient):
    """Keys of AWS Key Management Service (``encryption.kms-type=aws``), by boto3.

    Properties are those of Java's client: ``kms.endpoint`` and ``kms.encryption-algorithm-spec``; region and
    credentials are ``client.region``, ``client.access-key-id``, ``client.secret-access-key`` and
    ``client.session-token``, or what boto3 finds by itself.
    """

    def __init__(self) -> None:
        """Connect to nothing yet."""
        self._client: Any = None
        self._algorithm = "SYMMETRIC_DEFAULT"

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Make the client; the service is first asked when a key is needed.

        Raises
        ------
        NotInstalledError
            If boto3 is not installed.
        InvalidArgumentError
            If there is no region.

        """
        self._algorithm = properties.get("kms.encryption-algorithm-spec", self._algorithm)
        try:
            self._client = require("boto3").client(
                "kms",
                endpoint_url=properties.get("kms.endpoint"),
                region_name=properties.get("client.region"),
                aws_access_key_id=properties.get("client.access-key-id"),
                aws_secret_access_key=properties.get("client.secret-access-key"),
                aws_session_token=properties.get("client.session-token"),
            )
        except require("botocore.exceptions").BotoCoreError as error:
            raise InvalidArgumentError(f"encryption.kms-type=aws: {error}") from error

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Encrypt with the key with this id, ARN or alias.

        Raises
        ------
        StorageError
            If the service refuses or cannot be reached.

        """
        return self._ask("encrypt", wrapping_key_id, "CiphertextBlob", Plaintext=key)

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """Decrypt what `wrap_key` returned.

        Raises
        ------
        StorageError
            If the service refuses or cannot be reached.

        """
        return self._ask("decrypt", wrapping_key_id, "Plaintext", CiphertextBlob=wrapped_key)

    def _ask(self, verb: str, key_id: str, answer: str, **given: bytes) -> bytes:
        exceptions = require("botocore.exceptions")
        try:
            found = getattr(self._client, verb)(KeyId=key_id, EncryptionAlgorithm=self._algorithm, **given)
        except (exceptions.BotoCoreError, exceptions.ClientError) as error:
            raise StorageError(f"AWS KMS cannot {verb} by the key {key_id!r}: {error}") from error
        return bytes(found[answer])
