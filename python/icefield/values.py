"""Single values: their binary and JSON forms, and bounds of a given length (Appendix D of the table specification).

The Python objects for each type:

============================================  =============================================  =======================
type                                          accepted                                       returned
============================================  =============================================  =======================
boolean                                       `bool`                                         `bool`
int, long                                     `int`                                          `int`
float, double                                 `float`, `int`                                 `float`
decimal                                       `Decimal`, `int`, text                         `Decimal`
date                                          `date`, days as `int`, ISO text                days as `int`
time                                          `time`, microseconds as `int`, ISO text        microseconds as `int`
timestamp, timestamptz                        `datetime`, microseconds as `int`, ISO text    microseconds as `int`
timestamp_ns, timestamptz_ns                  `datetime`, nanoseconds as `int`, ISO text     nanoseconds as `int`
string                                        `str`                                          `str`
uuid                                          `UUID`, 16 `bytes`, text                       `UUID`
fixed, binary, geometry, geography            `bytes`                                        `bytes`
struct, list, map                             `dict` by name, `list`, `dict`                 the same
============================================  =============================================  =======================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefield._core import truncate_bound as truncated_bound
from icefield._core import value_from_bytes, value_from_json, value_to_bytes, value_to_json
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from icefield.types import Type

__all__ = ["from_bytes", "from_json", "to_bytes", "to_json", "truncate_bound"]

_LONGEST = 2**31 - 1


def to_bytes(value: object, type: Type | str) -> bytes:
    """Return the binary form of a value, as in the bounds of manifests.

    Parameters
    ----------
    value
        A value of the type; see the table above.
    type
        A primitive type or its name.

    Raises
    ------
    InvalidArgumentError
        If the value is not of the type.
    UnsupportedFeatureError
        If the type has no binary form.

    """
    return value_to_bytes(value, type)


def from_bytes(data: bytes, type: Type | str) -> Any:
    """Read the binary form of a value.

    Four bytes of a ``long`` or ``double`` are read as an ``int`` or ``float``: the column was promoted since.

    Raises
    ------
    CorruptDataError
        If there are too few bytes, or they are not valid UTF-8.

    """
    return value_from_bytes(data, type)


def to_json(value: object, type: Type | str) -> str:
    """Return the JSON form of a value, as in the default values of schemas.

    Raises
    ------
    InvalidArgumentError
        If the value is not of the type.
    UnsupportedFeatureError
        If the type has no JSON form here (variant, geometry, geography, unknown).

    """
    return value_to_json(value, type)


def from_json(text: str | bytes, type: Type | str) -> Any:
    """Read the JSON form of a value; ``null`` becomes ``None``.

    Raises
    ------
    CorruptDataError
        If the text is not valid JSON, or not a value of the type.

    """
    return value_from_json(text, type)


def truncate_bound(value: object, type: Type | str, length: int, upper: bool = False) -> Any:
    """Truncate a bound of a column.

    Parameters
    ----------
    value
        Minimum or maximum of a column; strings and binary values are truncated, all others are unchanged.
    type
        A primitive type or its name.
    length
        Code points of a string, bytes of a binary value.
    upper
        Whether it is an upper bound: then the last unit that can be incremented is.

    Returns
    -------
    object
        The bound, or ``None`` where no upper bound of that length exists.

    Raises
    ------
    InvalidArgumentError
        If the value is not of the type, or the length is negative.

    """
    if not 0 <= length <= _LONGEST:
        msg = f"length must be between 0 and {_LONGEST}, got {length}"
        raise InvalidArgumentError(msg)
    return truncated_bound(value, type, length, upper=upper)
