"""Partition transforms, exact and vectorised ("Partition Transforms", Appendix B of the table specification).

A transform called with anything that exports an Arrow array (pyarrow, Polars, pandas, DuckDB) returns a
``pyarrow.Array`` of the results, null for null::

    >>> import icefield as ice, pyarrow as pa
    >>> ice.transforms.bucket(16)(pa.array(["iceberg", None])).to_pylist()
    [9, None]
    >>> ice.transforms.year.scalar("2017-11-16", type="date")
    47
    >>> ice.transforms.month.to_human_string("date", 574)
    '2017-11'

A transform is an instance of the class of its kind, by PyIceberg's names: ``BucketTransform(16)`` is ``bucket(16)``.
The GIL is released while an array is transformed, and no buffer is copied on its way in or out.
"""

from __future__ import annotations

from operator import index
from typing import SupportsIndex

from icefield._core import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    TimeTransform,
    Transform,
    TruncateTransform,
    UnknownTransform,
    VoidTransform,
    YearTransform,
)
from icefield.errors import ArgumentTypeError, InvalidArgumentError

__all__ = [
    "BucketTransform",
    "DayTransform",
    "HourTransform",
    "IdentityTransform",
    "MonthTransform",
    "TimeTransform",
    "Transform",
    "TruncateTransform",
    "UnknownTransform",
    "VoidTransform",
    "YearTransform",
    "bucket",
    "day",
    "hour",
    "identity",
    "month",
    "parse",
    "parse_transform",
    "truncate",
    "void",
    "year",
]

identity = Transform("identity")
"""The values themselves."""

void = Transform("void")
"""Null for every value."""

year = Transform("year")
"""Years from 1970, of dates and timestamps."""

month = Transform("month")
"""Months from 1970-01, of dates and timestamps."""

day = Transform("day")
"""Days from 1970-01-01, of dates and timestamps."""

hour = Transform("hour")
"""Hours from 1970-01-01T00, of timestamps."""


def bucket(num_buckets: int, *values: object) -> Transform:
    """Hash of a value, modulo the number of buckets.

    The result is called with the values: ``bucket(16)(array)``.

    Parameters
    ----------
    num_buckets
        From 1 to 2147483647.
    *values
        Refused, with a message.

    """
    return Transform(f"bucket[{_width('bucket', num_buckets, values)}]")


def truncate(width: int, *values: object) -> Transform:
    """Truncate numbers to multiples of ``width``, strings to that many code points, binary values to that many bytes.

    The result is called with the values: ``truncate(16)(array)``.

    Parameters
    ----------
    width
        From 1 to 2147483647.
    *values
        Refused, with a message.

    """
    return Transform(f"truncate[{_width('truncate', width, values)}]")


def parse(text: str) -> Transform:
    """Parse a transform (``"bucket[16]"``).

    An unknown transform is kept as written, and returns no results.
    """
    return Transform(text)


#: The name that PyIceberg has for `parse`.
parse_transform = parse


def _width(name: str, number: int, values: tuple[object, ...]) -> int:
    """Refuse a number that would make an unknown transform, and values."""
    if values or hasattr(number, "__arrow_c_array__") or hasattr(number, "__arrow_c_stream__"):
        msg = f"{name} takes its number alone, and returns a function of values: {name}(16)(values)"
        raise ArgumentTypeError(msg)
    if not isinstance(number, SupportsIndex) or index(number) < 1:
        msg = f"transform parameter must be a positive integer, got {number!r}"
        raise InvalidArgumentError(msg)
    return index(number)
