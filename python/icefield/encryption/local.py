"""Keys without a service: in a file that only its owner can read, or in memory."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from icefield._core import aes_gcm_decrypt, aes_gcm_encrypt
from icefield.encryption.client import KeyManagementClient
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["KeyFile", "MemoryKeys"]

#: Lengths of AES keys in bytes.
_LENGTHS = (16, 24, 32)
#: What others must not have of a key file: any right.
_OTHERS = 0o077


class MemoryKeys(KeyManagementClient):
    """Keys in memory, for tests.

    Parameters
    ----------
    keys
        Keys of 16, 24 or 32 bytes by their ids.

    Raises
    ------
    InvalidArgumentError
        If a key has another length.

    """

    _where = "the keys in memory"

    def __init__(self, keys: Mapping[str, bytes]) -> None:
        """Keep the keys."""
        self._keys = dict(keys)
        for key_id, key in self._keys.items():
            _check_length(key, f"the key {key_id!r}")

    def wrap_key(self, key: bytes, wrapping_key_id: str) -> bytes:
        """Encrypt with AES GCM: nonce, ciphertext and tag."""
        return aes_gcm_encrypt(self._key(wrapping_key_id), key)

    def unwrap_key(self, wrapped_key: bytes, wrapping_key_id: str) -> bytes:
        """Decrypt what `wrap_key` returned.

        Raises
        ------
        InvalidArgumentError
            If there is no such key, or another one encrypted these bytes.

        """
        try:
            return aes_gcm_decrypt(self._key(wrapping_key_id), wrapped_key)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"the key {wrapping_key_id!r} of {self._where}: {error}") from error

    def _key(self, key_id: str) -> bytes:
        try:
            return self._keys[key_id]
        except KeyError:
            raise InvalidArgumentError(f"there is no key {key_id!r} among {self._where}") from None

    def __iter__(self) -> Iterator[str]:
        """Iterate over the ids of the keys."""
        return iter(self._keys)

    def __repr__(self) -> str:
        """Show the ids, and no key."""
        return f"{type(self).__name__}({sorted(self._keys)})"


class KeyFile(MemoryKeys):
    """Keys in a JSON file: an object of base64 texts by ids (``encryption.kms-type=file``).

    The file is named by the property ``encryption.kms.key-file``. It must not be readable by others, since all tables
    of its keys can be read with it. Make one by `create`.
    """

    #: The property with the path of the file.
    PROPERTY = "encryption.kms.key-file"

    def __init__(self) -> None:
        """Have no keys before `initialize`."""
        super().__init__({})

    def initialize(self, properties: Mapping[str, str]) -> None:
        """Read the file.

        Raises
        ------
        InvalidArgumentError
            If the property is not set, others can read the file, or it is not a file of keys.

        """
        path = properties.get(self.PROPERTY)
        if not path:
            raise InvalidArgumentError(f"encryption.kms-type=file: set {self.PROPERTY} to the path of the key file")
        self._keys = dict(_read(Path(path)))
        self._where = f"the keys of {path}"

    @staticmethod
    def create(path: str | Path, *key_ids: str, length: int = 32) -> None:
        """Write a file with new random keys, which only its owner can read.

        Parameters
        ----------
        path
            The file; it must not exist.
        *key_ids
            The ids of the keys.
        length
            Bytes of each key: 16, 24 or 32.

        Raises
        ------
        InvalidArgumentError
            If the length is another one, or the file exists.

        """
        if length not in _LENGTHS:
            raise InvalidArgumentError(f"length: expected one of {_LENGTHS}, got {length!r}")
        keys = {key_id: base64.b64encode(os.urandom(length)).decode() for key_id in key_ids}
        try:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            raise InvalidArgumentError(f"{path} exists already: keys are not replaced") from None
        with os.fdopen(file, "w") as written:
            json.dump(keys, written, indent=2)


def _once(path: Path, pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # Which of two keys encrypted the files is not known.
        raise InvalidArgumentError(f"{path}: the key file has an id twice")
    return found


def _read(path: Path) -> Mapping[str, bytes]:
    try:
        # One handle: the file that is checked is the one that is read.
        with path.open(encoding="utf-8") as file:
            if os.name == "posix" and (mode := os.fstat(file.fileno()).st_mode & _OTHERS):
                raise InvalidArgumentError(
                    f"{path}: others than its owner have access to this key file (mode {mode:03o}): chmod 600 {path}"
                )
            found = json.load(file, object_pairs_hook=partial(_once, path))
    except OSError as error:
        raise InvalidArgumentError(f"{path}: the key file cannot be read: {error.strerror}") from error
    except ValueError as error:
        if isinstance(error, InvalidArgumentError):
            raise
        # The message of the parser could have a key in it.
        raise InvalidArgumentError(f"{path}: the key file is not a JSON object of keys") from None
    if not isinstance(found, dict):
        raise InvalidArgumentError(f"{path}: the key file is not a JSON object of keys")
    return {key_id: _decoded(key, f"{path}: the key {key_id!r}") for key_id, key in found.items()}


def _decoded(key: object, what: str) -> bytes:
    try:
        decoded = base64.b64decode(str(key), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidArgumentError(f"{what} is not base64") from None
    return _check_length(decoded, what)


def _check_length(key: bytes, what: str) -> bytes:
    if len(key) not in _LENGTHS:
        raise InvalidArgumentError(f"{what} has {len(key)} bytes: expected one of {_LENGTHS}")
    return key
