"""Which texts are locations with a scheme, and which are paths of this machine."""

from __future__ import annotations

import re

__all__ = ["has_scheme"]

#: As the storage has it: one letter is a drive of Windows, and before anything but a slash a colon is part of a name.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def has_scheme(location: str) -> bool:
    """Return whether a location begins with a scheme, such as ``s3://`` or ``file:/``; ``C:/data`` does not."""
    return _SCHEME.match(location) is not None
