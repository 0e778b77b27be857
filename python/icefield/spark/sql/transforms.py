"""Functions of a catalog in queries, ``catalog.system.bucket(16, id)``: those of `icefield.spark.functions`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from icefield.spark.sql.queries import Edit

if TYPE_CHECKING:
    from icefield.spark.sql.grammar.text import Piece, Statement

__all__ = ["PREFIX", "transforms_in"]

#: What icefield registers for a function begins so.
PREFIX = "icefield_"
#: The functions of Java's catalogs.
_CALLED = ("bucket", "truncate", "years", "months", "days", "hours")
_VERSION = "iceberg_version"


def transforms_in(statement: Statement, piece: Piece, is_ours: Callable[[str | None], bool]) -> Iterator[Edit]:
    """Return what calls of such functions in a piece are replaced by.

    Parameters
    ----------
    statement, piece
        The statement, and a part of it.
    is_ours
        Whether a catalog is one of icefield; of None, whether the current one is.

    Raises
    ------
    UnsupportedFeatureError
        At ``iceberg_version()``; with line and column.

    """
    tokens = statement.tokens
    for at in range(3, len(tokens)):
        system, dot, name, opened = tokens[at - 3 : at + 1]
        known = name.text.lower()
        if opened.text != "(" or dot.text != "." or system.text.lower() != "system":
            continue
        if (known not in _CALLED and known != _VERSION) or not piece.start <= name.start < piece.end:
            continue
        begin, catalog = system.start, None
        if at > 4 and tokens[at - 4].text == ".":  # noqa: PLR2004 - the catalog and its dot
            begin, catalog = tokens[at - 5].start, tokens[at - 5].text
            if at > 5 and tokens[at - 6].text == ".":  # noqa: PLR2004
                continue
        if not is_ours(catalog):
            continue
        if known == _VERSION:
            raise statement.refusal(begin, "iceberg_version() is that of the Java library, which is not here")
        yield Edit(begin, name.end, PREFIX + known)
