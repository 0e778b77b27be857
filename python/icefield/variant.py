"""Variants: values of any type in one column (table specification v3; Parquet's ``VariantEncoding.md``).

A scan gives a column of variants as Arrow structs of ``metadata`` and ``value`` (extension type
``arrow.parquet.variant``), whether a file stores them shredded or not. `to_python` and `to_json` decode whole columns.

::

    >>> from icefield.variant import Variant
    >>> event = Variant.from_python({"kind": "login", "tags": ["a", 2]})
    >>> event.to_json()
    '{"kind":"login","tags":["a",2]}'
    >>> event.get("$.tags[1]").to_python()
    2

Which Python objects stand for a value:

===========================  ===========================================  ==========================================
type                         taken                                        given
===========================  ===========================================  ==========================================
null                         ``None``                                     ``None``
boolean                      `bool`                                       `bool`
int8, int16, int32, int64    `int` of 64 bits: the smallest that fits     `int`
decimal4, -8, -16            `Decimal`, `int` of up to 38 digits          `Decimal`
double                       `float`                                      `float`
float                                                                     `float`
string                       `str`                                        `str`
binary                       `bytes`, `bytearray`, `memoryview`           `bytes`
date                         `date`                                       `date`; as text beyond the year 9999
time                         `time`                                       `time`; as `int` where it is no time of day
timestamp, in UTC or not     `datetime`, with a zone or without           `datetime`; as text beyond the year 9999
timestamp in nanoseconds                                                  `datetime`; as text where it is not exact
uuid                         `UUID`                                       `UUID`
object                       `dict` with `str` keys                       `dict`, ordered by name
array                        `list`, `tuple`                              `list`
===========================  ===========================================  ==========================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefield._core import Variant, variants_to_json, variants_to_python

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Variant", "to_json", "to_python"]


def to_json(array: object, /) -> pa.StringArray:
    """Return the JSON text of each variant of a column.

    Numbers and decimals are JSON numbers with all their digits; NaN and the infinities are strings, as are dates,
    times, timestamps (ISO 8601), uuids, and binary in base64.

    Parameters
    ----------
    array
        Anything with ``__arrow_c_array__`` or ``__arrow_c_stream__``: structs of the binary columns ``metadata`` and
        ``value``, as a scan gives them.

    Returns
    -------
    pyarrow.StringArray
        ``null`` as text for a variant that is null, null for a row that has none.

    Raises
    ------
    CorruptDataError
        If a variant cannot be read; it names the row.

    """
    return variants_to_json(array)


def to_python(array: object, /) -> list[Any]:
    """Return the Python object of each variant of a column.

    Parameters
    ----------
    array
        Anything with ``__arrow_c_array__`` or ``__arrow_c_stream__``: structs of the binary columns ``metadata`` and
        ``value``, as a scan gives them.

    Returns
    -------
    list
        One object a row; None for a variant that is null and for a row that has none.

    Raises
    ------
    CorruptDataError
        If a variant cannot be read; it names the row.

    """
    return variants_to_python(array)
