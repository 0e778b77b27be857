"""Keys of S3 that a profile of AWS has, against a server on a loopback port."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import icefield as ice
from worlds.servers.s3 import S3, s3


@pytest.fixture
def store() -> Iterator[S3]:
    with s3() as made:
        yield made


def test_a_profile_has_the_keys_and_renews_them(store: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("botocore")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    # A program that gives other keys each time, which botocore takes for old ones soon.
    program, count = tmp_path / "keys.py", tmp_path / "count"
    program.write_text(
        "import datetime, json, pathlib\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "number = len(count.read_text()) if count.exists() else 0\n"
        "count.write_text('x' * (number + 1))\n"
        "end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2 if number < 3 else 9000)\n"
        "keys = {'Version': 1, 'AccessKeyId': f'key{number}', 'SecretAccessKey': 's', 'SessionToken': 't'}\n"
        "print(json.dumps({**keys, 'Expiration': end.isoformat()}))\n"
    )
    config = tmp_path / "config"
    config.write_text(
        f"[profile work]\nregion = eu-north-1\ncredential_process = {sys.executable} {program}\n[profile empty]\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    of_storage = {"s3.endpoint": store.url, "s3.path-style-access": "true"}
    store.objects["b/x"] = b"bytes"

    def opened(**more: str) -> ice.Catalog:
        return ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse="s3://wh", **of_storage, **more)

    catalog = opened(**{"s3.profile-name": "work"})
    for _ in range(6):
        assert catalog.storage.read("s3://b/x") == b"bytes"
    used = [one.key_id for one in store.used]
    assert used == sorted(used)
    assert len({*used}) > 1
    assert used[-2:] == ["key3", "key3"]
    assert catalog.storage.__reduce__()[1][0]["s3.region"] == "eu-north-1"
    own = opened(
        **{"s3.profile-name": "work", "s3.access-key-id": "own", "s3.secret-access-key": "s", "s3.region": "r"}
    )
    assert own.storage.read("s3://b/x") == b"bytes"
    assert store.used[-1].key_id == "own"
    for name, says in (("none", "there is no such profile"), ("empty", "the profile has no keys")):
        with pytest.raises(ice.InvalidArgumentError, match=f"s3.profile-name={name}: {says}"):
            _ = opened(**{"s3.profile-name": name}).storage
