"""Names of tables and namespaces: dotted text, or tuples where a part holds a dot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from icefield.errors import InvalidArgumentError

__all__ = ["Identifier", "IdentifierLike", "namespace_tuple", "table_tuple"]

Identifier: TypeAlias = tuple[str, ...]
IdentifierLike: TypeAlias = str | Sequence[str]


def _parts(name: IdentifierLike) -> Identifier:
    given: object = name
    if not isinstance(given, Sequence) or isinstance(given, bytes):
        msg = f"a name is text, or a tuple of texts, not {name!r}"
        raise InvalidArgumentError(msg)
    parts = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
    if not all(isinstance(part, str) and part for part in parts):
        msg = f"a name has an empty part: {name!r}"
        raise InvalidArgumentError(msg)
    if any("\0" in part for part in parts):
        msg = f"a name cannot hold a NUL, which ends texts in databases and paths: {name!r}"
        raise InvalidArgumentError(msg)
    return parts


def namespace_tuple(name: IdentifierLike) -> Identifier:
    """Parts of a namespace's name; ``()`` is the root.

    Raises
    ------
    InvalidArgumentError
        If a part is empty, or holds a dot (catalogs join the parts by dots).

    """
    if not name:
        return ()
    parts = _parts(name)
    if any("." in part for part in parts):
        msg = f"a level of a namespace cannot hold a dot: {name!r}"
        raise InvalidArgumentError(msg)
    return parts


def table_tuple(name: IdentifierLike) -> tuple[Identifier, str]:
    """Namespace and name of a table.

    Raises
    ------
    InvalidArgumentError
        If there is no namespace, or a part is empty.

    """
    parts = _parts(name) if name else ()
    if len(parts) < 2:  # noqa: PLR2004
        msg = f"a table is named NAMESPACE.TABLE, not {name!r}"
        raise InvalidArgumentError(msg)
    return namespace_tuple(parts[:-1]), parts[-1]
