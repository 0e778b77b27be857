"""The types of the table specification, by the names that PyIceberg gives them.

Every type is an instance of the class of its kind, and of `Type`. A `Type` is also made of its text
(``Type("decimal(9, 2)")``), and wherever a type is expected, its text is accepted::

    >>> from icefield.types import DecimalType, ListType, Type
    >>> isinstance(Type("decimal(9, 2)"), DecimalType), DecimalType(9, 2).precision
    (True, 9)
    >>> str(ListType(1, "string").element_type)
    'string'
"""

from __future__ import annotations

from icefield._core import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    GeographyType,
    GeometryType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
    TimestampNanoType,
    TimestampType,
    TimestamptzNanoType,
    TimestamptzType,
    TimeType,
    Type,
    UnknownType,
    UUIDType,
    VariantType,
)

__all__ = [
    "BinaryType",
    "BooleanType",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FixedType",
    "FloatType",
    "GeographyType",
    "GeometryType",
    "IcebergType",
    "IntegerType",
    "ListType",
    "LongType",
    "MapType",
    "NestedField",
    "PrimitiveType",
    "StringType",
    "StructType",
    "TimeType",
    "TimestampNanoType",
    "TimestampType",
    "TimestamptzNanoType",
    "TimestamptzType",
    "Type",
    "UUIDType",
    "UnknownType",
    "VariantType",
]

#: The name that PyIceberg has for `Type`.
IcebergType = Type
