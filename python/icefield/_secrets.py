"""Properties that hold secrets print redacted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

__all__ = ["redacted", "redacted_url"]

_SECRET = re.compile(
    r"secret|password|token|credential|private|account[-.]key|access[-.]key|sas|signature|auth", re.IGNORECASE
)
_HIDDEN = "***"


def redacted(properties: Mapping[str, str]) -> dict[str, str]:
    """Give the properties with every secret replaced by stars."""
    return {
        key: _HIDDEN if _SECRET.search(key) else redacted_url(value) if "://" in value else value
        for key, value in properties.items()
    }


def redacted_url(url: str) -> str:
    """Give a URL without the user's password and without a query that may hold one."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return _HIDDEN
    if "@" not in parts.netloc and not _SECRET.search(parts.query):
        return url
    user, at, host = parts.netloc.rpartition("@")
    netloc = f"{user.partition(':')[0]}:{_HIDDEN}@{host}" if at and ":" in user else parts.netloc
    query = _HIDDEN if _SECRET.search(parts.query) else parts.query
    return urlunsplit((parts.scheme, netloc, parts.path, query, parts.fragment))
