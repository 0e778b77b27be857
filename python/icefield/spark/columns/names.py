"""Names in the text of Spark's expressions, and what the last part of a table's name may select."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["quoted", "quoted_path", "selector"]

_SELECTOR = re.compile(r"(branch|tag)_(.+)|(snapshot_id|at_timestamp)_(\d+)", re.DOTALL)


def selector(last: str) -> tuple[str, str] | None:
    """Return what the last part of a name selects of a table: ``branch``, ``tag``, ``snapshot_id`` or ``at_timestamp``.

    The second is the name of the branch or tag, the id, or the milliseconds. None if the part is none of these.
    """
    found = _SELECTOR.fullmatch(last)
    if found is None:
        return None
    return (found[1], found[2]) if found[1] else (found[3], found[4])


def quoted(name: str) -> str:
    """Quote a name for Spark, whatever characters it contains."""
    return f"`{name.replace('`', '``')}`"


def quoted_path(names: Iterable[str]) -> str:
    """Quote the path of a nested column."""
    return ".".join(map(quoted, names))
