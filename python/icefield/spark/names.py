"""Names in the text of Spark's expressions."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["quoted", "quoted_path"]


def quoted(name: str) -> str:
    """Write one name so that Spark reads it as it is, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def quoted_path(names: Iterable[str]) -> str:
    """Write the names of a column and of what is inside of it."""
    return ".".join(map(quoted, names))
