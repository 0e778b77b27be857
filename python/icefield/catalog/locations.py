"""Locations as catalogs take them."""

from __future__ import annotations

import os

from icefield._inputs.locations import has_scheme
from icefield.errors import InvalidArgumentError

__all__ = ["absolute_location"]


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
