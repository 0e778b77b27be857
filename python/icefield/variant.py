"""Variants: values of any type in one column (table specification v3; Parquet's ``VariantEncoding.md``).

A scan gives a column of variants as Arrow structs of ``metadata`` and ``value`` (extension type
``arrow.parquet.variant``), whether a file stores them shredded or not. `to_python` and `to_json` decode whole columns,
`from_python` and `from_json` make columns to append.

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

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from icefield._core import (
    Variant,
    variants_from_json,
    variants_from_python,
    variants_to_json,
    variants_to_python,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Variant", "from_json", "from_python", "to_json", "to_python"]


def from_json(texts: object, /) -> pa.StructArray:
    """Return a column of variants from JSON texts.

    Types are those of ``parse_json`` in Spark: an integer is the smallest that holds the number, a number with a point
    is a decimal if it has at most 38 digits, and every other number is a double.

    Parameters
    ----------
    texts
        Anything with ``__arrow_c_array__`` or ``__arrow_c_stream__``: a column of texts.

    Returns
    -------
    pyarrow.StructArray
        Structs of ``metadata`` and ``value``, to be appended to a column of variants: null where the text is null, a
        variant that is null where it is ``null``.

    Raises
    ------
    InvalidArgumentError
        If a text is not JSON, or has an object with two fields of one name; it names the row and the place.

    """
    return variants_from_json(texts)


def from_python(objects: Iterable[object], /) -> pa.StructArray:
    """Return a column of variants from Python objects.

    Parameters
    ----------
    objects
        What `Variant.from_python` takes, and `Variant` itself; None is a row without a variant, and
        ``Variant.from_python(None)`` a variant that is null.

    Returns
    -------
    pyarrow.StructArray
        Structs of ``metadata`` and ``value``, to be appended to a column of variants.

    Raises
    ------
    InvalidArgumentError
        If an object is no value of a variant; it names the row.

    """
    return variants_from_python(objects)


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
