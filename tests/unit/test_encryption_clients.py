"""Clients of key management services: their methods, properties and requests; and what cannot be encrypted."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet
import pytest
from test_encryption import ROWS, Refusing, again, encrypted, files, opened

import icefield as ice
from icefield.encryption import AwsKeys, KeyFile
from icefield.encryption.registry import client_of
from icefield.errors import (
    IcefieldError,
    InvalidArgumentError,
    NotInstalledError,
    UnsupportedFeatureError,
    ValidationException,
)


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    return opened(tmp_path)


def test_a_client_has_two_methods(catalog: ice.Catalog) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a client with wrap_key and unwrap_key, got str"):
        catalog.key_management = "keyA"  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"write.format.default": "orc"}, "ORC files of encrypted tables"),
        ({"write.delete.format.default": "orc", "write.delete.mode": "merge-on-read"}, None),
        ({"encryption.data-key-length": "24"}, "keys of 16 and 32 bytes"),
        ({"encryption.data-key-length": "24", "write.format.default": "avro"}, None),
    ],
)
def test_what_cannot_be_encrypted_is_refused(
    catalog: ice.Catalog, properties: dict[str, str], says: str | None
) -> None:
    table = encrypted(catalog, **properties)
    if says is None:
        table = table.append(ROWS)
        table.delete("id = 3")
        assert table.refresh().scan().count() == 199
        return
    with pytest.raises(UnsupportedFeatureError, match=says):
        table.append(ROWS)
    assert files(table) == []


def test_plain_files_are_not_added(catalog: ice.Catalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="version 3"):
        catalog.create_table("db.old", ROWS.schema, properties={"encryption.key-id": "keyA"})
    table = encrypted(catalog)
    pa.parquet.write_table(ROWS, tmp_path / "rows.parquet")
    with pytest.raises(ValidationException, match=r"rows\.parquet: is not encrypted"):
        table.add_files([str(tmp_path / "rows.parquet")])
    assert table.refresh().current_snapshot() is None


def test_clients_are_named_by_properties(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "keys.json"
    KeyFile.create(file, "mine")
    table = ice.load_catalog(
        "file",
        type="in-memory",
        warehouse=str(tmp_path),
        **{"encryption.kms-type": "file", "encryption.kms.key-file": str(file)},
    )
    table.create_namespace("db")
    made = encrypted(table, **{"encryption.key-id": "mine"}).append(ROWS)
    assert made.scan().count() == 200
    assert json.loads(file.read_text())["mine"] not in repr(table.key_management)
    own = client_of({"encryption.kms-impl": f"{__name__}.Refusing"})
    assert isinstance(own, Refusing)
    assert client_of({}) is None
    with pytest.raises(InvalidArgumentError, match="exists already"):
        KeyFile.create(file, "other")
    file.chmod(0o640)
    bad = tmp_path / "bad.json"
    bad.write_text('{"k": "QUJD"}')
    bad.chmod(0o600)
    twice = tmp_path / "twice.json"
    twice.write_text('{"k": "MDEyMzQ1Njc4OTAxMjM0NQ==", "k": "MTEyMzQ1Njc4OTAxMjM0NQ=="}')
    twice.chmod(0o600)
    for properties, kind, says in [
        ({"encryption.kms-type": "file"}, InvalidArgumentError, "set encryption.kms.key-file"),
        (
            {"encryption.kms-type": "file", "encryption.kms.key-file": str(file)},
            InvalidArgumentError,
            "mode 040.*chmod 600",
        ),
        ({"encryption.kms-type": "file", "encryption.kms.key-file": str(bad)}, InvalidArgumentError, "'k' has 3 bytes"),
        ({"encryption.kms-type": "file", "encryption.kms.key-file": str(twice)}, InvalidArgumentError, "an id twice"),
        (
            {"encryption.kms-type": "file", "encryption.kms.key-file": str(tmp_path / "no")},
            InvalidArgumentError,
            "No such file",
        ),
        ({"encryption.kms-type": "vault"}, UnsupportedFeatureError, "aws, azure, file, gcp"),
        ({"encryption.kms-type": "aws", "encryption.kms-impl": "x.Y"}, InvalidArgumentError, "cannot both"),
        (
            {"encryption.kms-impl": "org.apache.iceberg.encryption.kms.MemoryMockKMS"},
            UnsupportedFeatureError,
            "Java class",
        ),
        ({"encryption.kms-impl": "nothing.like.This"}, NotInstalledError, "nothing"),
        ({"encryption.kms-impl": "json.nothing"}, InvalidArgumentError, "nothing"),
        ({"encryption.kms-impl": "json.JSONDecoder"}, InvalidArgumentError, "not a subclass"),
    ]:
        with pytest.raises(kind, match=says):
            client_of(properties)
    monkeypatch.setattr("icefield.encryption.aws.require", lambda name: __import__("missing_" + name))
    with pytest.raises(ModuleNotFoundError):
        AwsKeys().initialize({"client.region": "us-east-1"})


def test_keys_of_aws(tmp_path: Path) -> None:
    moto = pytest.importorskip("moto")
    boto3 = pytest.importorskip("boto3")
    login = {"client.region": "us-east-1", "client.access-key-id": "a", "client.secret-access-key": "s"}
    with moto.mock_aws():
        service = boto3.client("kms", "us-east-1", aws_access_key_id="a", aws_secret_access_key="s")
        key_id = service.create_key()["KeyMetadata"]["KeyId"]
        keys = client_of({"encryption.kms-type": "aws", **login})
        table = encrypted(opened(tmp_path, keys), **{"encryption.key-id": key_id}).append(ROWS)
        assert again(table, client_of({"encryption.kms-type": "aws", **login})).scan().count() == 200
        with pytest.raises(IcefieldError, match="AWS KMS cannot encrypt by the key 'unknown'"):
            encrypted(table.catalog, "db.u", **{"encryption.key-id": "unknown"}).append(ROWS)  # type: ignore[arg-type]
