"""Names of tables and namespaces: dotted strings, or tuples where a part contains a dot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from icefield.errors import InvalidArgumentError, NoSuchIdentifierError

__all__ = ["Identifier", "IdentifierLike", "namespace_tuple", "parts_of", "table_tuple"]

Identifier: TypeAlias = tuple[str, ...]
IdentifierLike: TypeAlias = str | Sequence[str]


def parts_of(name: IdentifierLike) -> Identifier:
    """Parts of a name, which may contain dots where they are passed as a tuple.

    Raises
    ------
    NoSuchIdentifierError
        If a part is empty.
    InvalidArgumentError
        If a part contains NUL.

    """
    given: object = name
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        msg = f"identifier must be a str or a tuple of str, got {name!r}"
        raise InvalidArgumentError(msg)
    parts = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
    if not all(isinstance(part, str) and part for part in parts):
        msg = f"identifier has an empty part: {name!r}"
        raise NoSuchIdentifierError(msg)
    if any("\0" in part for part in parts):
        msg = f"identifier must not contain NUL: {name!r}"
        raise InvalidArgumentError(msg)
    return parts


def namespace_tuple(name: IdentifierLike) -> Identifier:
    """Parts of a namespace's name; ``()`` is the root.

    Raises
    ------
    InvalidArgumentError
        If a part is empty, or contains a dot (catalogs join the parts by dots).

    """
    if not name:
        return ()
    parts = parts_of(name)
    if any("." in part for part in parts):
        msg = f"a part of a namespace must not contain a dot: {name!r}"
        raise InvalidArgumentError(msg)
    return parts


def table_tuple(name: IdentifierLike) -> tuple[Identifier, str]:
    """Namespace and name of a table.

    Raises
    ------
    NoSuchIdentifierError
        If the namespace is missing, or a part is empty.

    """
    parts = parts_of(name) if name else ()
    if len(parts) < 2:  # noqa: PLR2004
        msg = f"table identifier must be NAMESPACE.TABLE, got {name!r}"
        raise NoSuchIdentifierError(msg)
    return namespace_tuple(parts[:-1]), parts[-1]
