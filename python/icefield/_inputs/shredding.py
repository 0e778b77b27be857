"""How the variants of a write are shredded, as values of table properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from icefield.errors import ArgumentTypeError

__all__ = ["Shredding", "shredding_properties"]

#: Whether variants are shredded, or the type of each column that is.
Shredding = bool | Mapping[str, str]

_ALL: Final = "write.parquet.shred-variants"
_COLUMN: Final = f"{_ALL}.column."


def shredding_properties(shred: Shredding | None, properties: Mapping[str, str]) -> dict[str, str]:
    """Return the values of table properties that a write has instead of the table's.

    Parameters
    ----------
    shred
        The argument of the write.
    properties
        The properties of the table.

    Raises
    ------
    ArgumentTypeError
        If it is neither a flag nor types by the names of columns.

    """
    if shred is None:
        return {}
    if shred is True:
        return {_ALL: "true"}
    if shred is False:
        # An empty type takes that of the table back.
        return {_ALL: "false", **{name: "" for name in properties if name.startswith(_COLUMN)}}
    if not isinstance(shred, Mapping):
        raise ArgumentTypeError(
            f"shred: expected True, False, or types by the names of columns "
            f'({{"v": "struct<a: long, b: string>"}}), got {shred!r}'
        )
    for column, text in shred.items():
        if not (isinstance(column, str) and isinstance(text, str) and text.strip()):
            raise ArgumentTypeError(
                f'shred: expected a type as text for the name of a column, such as "struct<a: long, b: string>", '
                f"got {text!r} for {column!r}"
            )
    return {f"{_COLUMN}{column}": text for column, text in shred.items()}
