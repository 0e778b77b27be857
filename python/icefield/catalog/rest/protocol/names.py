"""Names of tables and namespaces in a REST catalog, whose parts may contain dots where they are passed as a tuple."""

from __future__ import annotations

from typing import Any

from icefield._inputs.identifiers import Identifier, IdentifierLike, parts_of
from icefield.errors import NoSuchIdentifierError

__all__ = ["dotted", "identifiers_of", "levels_of", "named", "table_of"]


def levels_of(namespace: IdentifierLike) -> Identifier:
    """Return the levels of a namespace; ``()`` is the root.

    Raises
    ------
    NoSuchIdentifierError
        If a level is empty.

    """
    return parts_of(namespace) if namespace else ()


def table_of(identifier: IdentifierLike) -> tuple[Identifier, str]:
    """Return the namespace and the name of a table or view.

    Raises
    ------
    NoSuchIdentifierError
        If the namespace is missing, or a part is empty.

    """
    parts = levels_of(identifier)
    if len(parts) < 2:  # noqa: PLR2004 - a namespace and a name
        raise NoSuchIdentifierError(f"table identifier must be NAMESPACE.TABLE, got {identifier!r}")
    return parts[:-1], parts[-1]


def dotted(*parts: str | Identifier) -> str:
    """Return a name for messages."""
    return ".".join(part if isinstance(part, str) else ".".join(part) for part in parts)


def named(identifier: IdentifierLike) -> dict[str, object]:
    """Return the name of a table or view as requests write it."""
    namespace, name = table_of(identifier)
    return {"namespace": list(namespace), "name": name}


def identifiers_of(found: list[Any]) -> list[Identifier]:
    """Return the names that an answer lists; entries of another form are left out."""
    made: list[Identifier] = []
    for entry in found:
        if not isinstance(entry, dict):
            continue
        namespace, name = entry.get("namespace"), entry.get("name")
        if isinstance(namespace, list) and isinstance(name, str) and all(isinstance(level, str) for level in namespace):
            made.append((*namespace, name))
    return made
