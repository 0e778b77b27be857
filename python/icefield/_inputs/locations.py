"""Which texts are locations with a scheme, and which are paths of this machine."""

from __future__ import annotations

import os
import re

from icefield.errors import InvalidArgumentError

__all__ = ["absolute_location", "has_scheme"]

#: As the storage has it: one letter is a drive of Windows, and before anything but a slash a colon is part of a name.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def has_scheme(location: str) -> bool:
    """Return whether a location begins with a scheme, such as ``s3://`` or ``file:/``; ``C:/data`` does not."""
    return _SCHEME.match(location) is not None


def absolute_location(location: str, what: str) -> str:
    """Return a location as a URL: a bare path becomes ``file://`` and absolute, any URL is unchanged.

    Raises
    ------
    InvalidArgumentError
        If it is empty, which would be the working directory; ``what`` is for the message.

    """
    if not location:
        msg = f"{what} is empty"
        raise InvalidArgumentError(msg)
    if has_scheme(location):
        return location.rstrip("/")
    from pathlib import Path

    path = Path(os.path.abspath(Path(location).expanduser()))  # noqa: PTH100  (resolve() would follow links)
    return "file://" + ("" if path.as_posix().startswith("/") else "/") + path.as_posix().rstrip("/")
