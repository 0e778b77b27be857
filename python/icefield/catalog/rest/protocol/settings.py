"""Properties of a REST catalog, as values of the types that they stand for."""

from __future__ import annotations

import json
from collections.abc import Mapping

from icefield.errors import InvalidArgumentError

__all__ = ["flag", "number", "texts_of", "under"]


def flag(properties: Mapping[str, str], name: str, default: bool) -> bool:
    """Return a property that is ``true`` or ``false``.

    Raises
    ------
    InvalidArgumentError
        If it is neither.

    """
    given = properties.get(name)
    if given is None:
        return default
    if (text := given.strip().lower()) not in {"true", "false"}:
        raise InvalidArgumentError(f"catalog property {name}: expected true or false, got {given!r}")
    return text == "true"


def number(properties: Mapping[str, str], name: str, default: int, *, least: int = 0) -> int:
    """Return a property that is a whole number.

    Raises
    ------
    InvalidArgumentError
        If it is not, or below the least.

    """
    given = properties.get(name)
    if given is None:
        return default
    try:
        found = int(given)
    except ValueError:
        found = least - 1
    if found < least:
        raise InvalidArgumentError(f"catalog property {name}: expected an integer of at least {least}, got {given!r}")
    return found


def under(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the properties that begin with a prefix, without it."""
    return {name.removeprefix(prefix): value for name, value in properties.items() if name.startswith(prefix)}


def texts_of(found: object) -> dict[str, str]:
    """Return the properties of an answer as texts; null and other types of JSON are tolerated."""
    if not isinstance(found, dict):
        return {}
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in found.items()
        if value is not None
    }
