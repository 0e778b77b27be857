"""Requests and answers of HTTP."""

from __future__ import annotations

import json
import math
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from icefield._inputs.secrets import redacted_url
from icefield.errors import RESTError

__all__ = ["Reply", "Request", "asked", "new_key"]


@dataclass(frozen=True)
class Request:
    """A request as it is sent."""

    method: str
    #: With its query.
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    #: For how many seconds after its beginning it may be sent again.
    within: float = math.inf


@dataclass(frozen=True)
class Reply:
    """The answer to a request."""

    status: int
    #: By names in lower case.
    headers: Mapping[str, str]
    body: bytes
    #: What was asked, for messages.
    asked: str
    #: Whether an earlier attempt of the same request may have been carried out.
    repeated: bool = False

    def json(self) -> dict[str, Any]:
        """Return the body, which must be a JSON object.

        Raises
        ------
        RESTError
            If it is not.

        """
        try:
            found = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            what = self.headers.get("content-type", "").partition(";")[0] or "no content type"
            raise RESTError(
                f"{self.asked}: the answer (HTTP {self.status}, {what}, {len(self.body)} bytes) is not JSON: {error}",
                self.status,
            ) from None
        if not isinstance(found, dict):
            raise RESTError(f"{self.asked}: the answer is not a JSON object", self.status)
        return found


def new_key() -> str:
    """Return a new key of a request: a UUID of version 7."""
    made = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    made = made & ~(0xF << 76) & ~(0x3 << 62) | (0x7 << 76) | (0x2 << 62)
    text = f"{made:032x}"
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def asked(request: Request) -> str:
    """Return what a request asks, for messages: its query is left out."""
    return f"{request.method} {redacted_url(request.url.partition('?')[0])}"
