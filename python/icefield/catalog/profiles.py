"""Keys of S3 that a profile of AWS has on this machine."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

from icefield._support.optional import require
from icefield.errors import InvalidArgumentError, StorageError

__all__ = ["with_profile"]

#: Properties of S3 that come before a profile.
_OWN_KEYS = tuple(f"{prefix}.{name}" for prefix in ("s3", "client") for name in ("access-key-id", "anonymous"))


def with_profile(properties: dict[str, str]) -> dict[str, str]:
    """Return properties of storage with the keys and the region that the profile ``s3.profile-name`` has now.

    Raises
    ------
    InvalidArgumentError
        If there is no such profile, or it has no keys.
    StorageError
        If its keys cannot be had.

    """
    name = properties.get("s3.profile-name")
    if not name or any(own in properties for own in _OWN_KEYS):
        return properties
    failures = require("botocore.exceptions")
    where = f"catalog property s3.profile-name={name}"
    files = (os.environ.get(variable) for variable in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"))
    try:
        session = _of_profile(name, os.getpid(), *files)
        credentials = session.get_credentials()
        # Those that expire are renewed by botocore.
        keys = None if credentials is None else credentials.get_frozen_credentials()
        region = session.get_config_variable("region")
    except failures.ProfileNotFound:
        raise InvalidArgumentError(f"{where}: there is no such profile") from None
    except failures.BotoCoreError as error:
        raise StorageError(f"{where}: {error}") from error
    if keys is None:
        raise InvalidArgumentError(f"{where}: the profile has no keys")
    made = {"s3.access-key-id": keys.access_key, "s3.secret-access-key": keys.secret_key}
    if keys.token:
        made["s3.session-token"] = keys.token
    if region and not {"s3.region", "client.region"} & properties.keys():
        made["s3.region"] = region
    return {**properties, **made}


@cache
def _of_profile(name: str, _process: int, *_files: str | None) -> Any:
    """Return botocore's session of a profile, which keeps its keys and renews them."""
    return require("botocore.session").Session(profile=name)
