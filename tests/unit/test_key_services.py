"""Clients of Google's and Azure's key services, on modules with the interface of their packages."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.encryption import AzureKeys, GcpKeys, MemoryKeys
from icefield.encryption.registry import client_of
from icefield.errors import InvalidArgumentError, NotInstalledError, StorageError

ROWS = pa.table({"id": [1, 2, 3]})
RESOURCE = "projects/p/locations/global/keyRings/r/cryptoKeys/k"
#: Three versions of a key of a vault; the last one is the newest.
VERSIONS = MemoryKeys({name: name.encode() * 4 for name in ("k/v1", "k/v2", "k/v3")})
SERVICE = MemoryKeys({RESOURCE: b"0123456789012345"})


def module(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
    found = ModuleType(name)
    vars(found).update(content)
    monkeypatch.setitem(sys.modules, name, found)


class GoogleAPIError(Exception):
    pass


class AzureError(Exception):
    @property
    def message(self) -> str:
        return str(self)


class KeyManagementServiceClient:
    """Google's client; it takes requests as keyword arguments only."""

    made: list[Any] = []  # noqa: RUF012

    def __init__(self, *, credentials: Any = None) -> None:
        self.made.append(credentials)

    def encrypt(self, *, request: dict[str, Any]) -> SimpleNamespace:
        assert request.keys() == {"name", "plaintext"}
        if request["name"] != RESOURCE:
            raise GoogleAPIError("404 not found")
        return SimpleNamespace(ciphertext=SERVICE.wrap_key(request["plaintext"], RESOURCE))

    def decrypt(self, *, request: dict[str, Any]) -> SimpleNamespace:
        assert request.keys() == {"name", "ciphertext"}
        return SimpleNamespace(plaintext=SERVICE.unwrap_key(request["ciphertext"], request["name"]))


class KeyWrapAlgorithm(str, Enum):
    rsa = "RSA-OAEP"
    rsa_256 = "RSA-OAEP-256"


class KeyClient:
    """Azure's client, whose clients of keys take the newest version where the id has none."""

    made: list[Any] = []  # noqa: RUF012
    used: list[KeyWrapAlgorithm] = []  # noqa: RUF012
    newest = "v1"

    def __init__(self, vault_url: str, credential: object) -> None:
        self.made.append((vault_url, credential))

    def get_cryptography_client(self, key_name: str) -> Any:
        version = key_name if "/" in key_name else f"{key_name}/{self.newest}"
        if key_name.count("/") > 1:
            raise ValueError("not a valid ID")

        def call(work: Any, answer: str) -> Any:
            def done(algorithm: KeyWrapAlgorithm, given: bytes) -> SimpleNamespace:
                # The package fails on a plain text.
                self.used.append(algorithm.value)  # type: ignore[arg-type]
                try:
                    return SimpleNamespace(**{answer: work(given, version)})
                except InvalidArgumentError as error:
                    raise AzureError("decryption failed" if version in VERSIONS else "not found") from error

            return done

        return SimpleNamespace(
            wrap_key=call(VERSIONS.wrap_key, "encrypted_key"), unwrap_key=call(VERSIONS.unwrap_key, "key")
        )


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for client in (KeyManagementServiceClient, KeyClient):
        monkeypatch.setattr(client, "made", [])
    monkeypatch.setattr(KeyClient, "used", [])
    module(monkeypatch, "google.cloud.kms", KeyManagementServiceClient=KeyManagementServiceClient)
    module(monkeypatch, "google.api_core.exceptions", GoogleAPIError=GoogleAPIError)
    module(monkeypatch, "google.auth.exceptions", GoogleAuthError=ZeroDivisionError)
    module(monkeypatch, "google.oauth2.credentials", Credentials=lambda token, expiry: (token, expiry))
    module(monkeypatch, "azure.identity", DefaultAzureCredential=lambda: "default")
    module(monkeypatch, "azure.core.exceptions", AzureError=AzureError)
    module(monkeypatch, "azure.keyvault.keys", KeyClient=KeyClient)
    module(monkeypatch, "azure.keyvault.keys.crypto", KeyWrapAlgorithm=KeyWrapAlgorithm)


VAULT = {"azure.keyvault.url": "https://v.vault.azure.net"}


@pytest.mark.parametrize(
    ("properties", "key_id"),
    [
        ({"encryption.kms-type": "gcp"}, RESOURCE),
        ({"encryption.kms-impl": "org.apache.iceberg.gcp.GcpKeyManagementClient"}, RESOURCE),
        ({"encryption.kms-type": "azure", **VAULT}, "k"),
        ({"encryption.kms-impl": "org.apache.iceberg.azure.keymanagement.AzureKeyManagementClient", **VAULT}, "k/v2"),
    ],
)
def test_tables_have_keys_of_the_service(tmp_path: Any, properties: dict[str, str], key_id: str) -> None:
    where = {"type": "sql", "uri": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path)}
    catalog = ice.load_catalog("c", **where, **properties)
    catalog.create_namespace("db")
    own = {"format-version": "3", "encryption.key-id": key_id}
    catalog.create_table("db.t", ROWS.schema, properties=own).append(ROWS)
    again = ice.load_catalog("c", **where, **properties).load_table("db.t")
    assert again.scan().to_arrow() == ROWS
    # Several threads make one client between them.
    client = client_of(properties)
    assert client is not None
    KeyClient.made.clear()
    KeyManagementServiceClient.made.clear()
    with ThreadPoolExecutor(4) as pool:
        wrapped = list(pool.map(lambda _: client.wrap_key(b"0" * 16, key_id), range(8)))
    assert {client.unwrap_key(one, key_id) for one in wrapped} == {b"0" * 16}
    assert len(KeyClient.made) + len(KeyManagementServiceClient.made) == 1


def test_logins_and_settings() -> None:
    token = {"gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "1700000000500"}
    for properties in (token, {"gcs.oauth2.token": "t"}, {}):
        client = client_of({"encryption.kms-type": "gcp", **properties})
        assert isinstance(client, GcpKeys)
        client.wrap_key(b"0" * 16, RESOURCE)
    expires = datetime(2023, 11, 14, 22, 13, 20, 500_000)  # noqa: DTZ001  # as google-auth has times
    assert KeyManagementServiceClient.made == [("t", expires), ("t", None), None]
    for properties in ({}, {"azure.keyvault.key-wrap-algorithm": "RSA-OAEP"}):
        client = client_of({"encryption.kms-type": "AZURE", **VAULT, **properties})
        assert isinstance(client, AzureKeys)
        client.wrap_key(b"0" * 16, "k")
    assert KeyClient.made == [(VAULT["azure.keyvault.url"], "default")] * 2
    assert KeyClient.used == ["RSA-OAEP-256", "RSA-OAEP"]
    # A client of the user's own needs neither a login nor a URL.
    own = AzureKeys(KeyClient("https://other", "mine"))
    own.initialize({})
    assert own.unwrap_key(own.wrap_key(b"0" * 16, "k"), "k") == b"0" * 16
    assert len(KeyClient.made) == 3


def test_what_the_service_refuses_is_told_with_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    google, azure = client_of({"encryption.kms-type": "gcp"}), client_of({"encryption.kms-type": "azure", **VAULT})
    assert google is not None
    assert azure is not None
    with pytest.raises(StorageError, match=r"Google Cloud KMS cannot encrypt by the key 'other': 404 not found"):
        google.wrap_key(b"0" * 16, "other")
    with pytest.raises(StorageError, match=r"Azure Key Vault cannot wrap by the key 'other': not found"):
        azure.wrap_key(b"0" * 16, "other")
    with pytest.raises(InvalidArgumentError, match=r"by the key 'a/b/c': not a valid ID"):
        azure.wrap_key(b"0" * 16, "a/b/c")
    wrapped = azure.wrap_key(b"0" * 16, "k")
    monkeypatch.setattr(KeyClient, "newest", "v2")
    with pytest.raises(StorageError, match="cannot unwrap by the key 'k': decryption failed"):
        azure.unwrap_key(wrapped, "k")
    assert azure.unwrap_key(wrapped, "k/v1") == b"0" * 16


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"encryption.kms-type": "azure"}, "set azure.keyvault.url"),
        (
            {"encryption.kms-type": "azure", **VAULT, "azure.keyvault.key-wrap-algorithm": "rot13"},
            "azure.keyvault.key-wrap-algorithm=rot13: expected one of RSA-OAEP, RSA-OAEP-256",
        ),
        (
            {"encryption.kms-type": "gcp", "gcs.oauth2.token": "t", "gcs.oauth2.token-expires-at": "soon"},
            "gcs.oauth2.token-expires-at: expected milliseconds since 1970, got 'soon'",
        ),
    ],
)
def test_settings_that_cannot_be_used(properties: dict[str, str], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        client_of(properties)


@pytest.mark.parametrize(
    ("kind", "missing", "extra"),
    [
        ("gcp", "google.cloud.kms", "gcp-kms"),
        ("gcp", "google.cloud", "gcp-kms"),
        ("azure", "azure", "azure-kms"),
        ("azure", "azure.identity", "azure-kms"),
    ],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, kind: str, missing: str, extra: str) -> None:
    for name in [name for name in sys.modules if name.startswith(f"{missing}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)  # type: ignore[arg-type]
    with pytest.raises(NotInstalledError, match=rf"pip install 'icefield\[{extra}\]'"):
        client_of({"encryption.kms-type": kind, **VAULT})
