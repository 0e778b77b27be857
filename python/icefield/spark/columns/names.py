"""Names in the text of Spark's expressions."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["quoted", "quoted_path"]


def quoted(name: str) -> str:
    """Quote a name for Spark, whatever characters it contains."""
    return f"`{name.replace('`', '``')}`"


def quoted_path(names: Iterable[str]) -> str:
    """Quote the path of a nested column."""
    return ".".join(map(quoted, names))
