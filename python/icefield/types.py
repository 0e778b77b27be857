"""The types of the table specification, by the names that PyIceberg gives them.

Each name here makes a `Type`; a `Type` is also made of its text (``Type("decimal(9, 2)")``), and wherever a type is
expected, its text is accepted.
"""

from __future__ import annotations

from icefield._core import NestedField, Type

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
    "IntegerType",
    "ListType",
    "LongType",
    "MapType",
    "NestedField",
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

# Functions named as PyIceberg's classes: code written for those reads the same here.
# ruff: noqa: N802


def UnknownType() -> Type:
    """Always null: the type of a column whose type is not known yet (v3)."""
    return Type("unknown")


def BooleanType() -> Type:
    """True or false."""
    return Type("boolean")


def IntegerType() -> Type:
    """32-bit signed integer."""
    return Type("int")


def LongType() -> Type:
    """64-bit signed integer."""
    return Type("long")


def FloatType() -> Type:
    """32-bit IEEE 754."""
    return Type("float")


def DoubleType() -> Type:
    """64-bit IEEE 754."""
    return Type("double")


def DecimalType(precision: int, scale: int) -> Type:
    """Fixed-point decimal of at most 38 digits."""
    return Type(f"decimal({precision}, {scale})")


def DateType() -> Type:
    """Calendar day."""
    return Type("date")


def TimeType() -> Type:
    """Time of day in microseconds."""
    return Type("time")


def TimestampType() -> Type:
    """Microseconds, no zone."""
    return Type("timestamp")


def TimestamptzType() -> Type:
    """Microseconds, UTC."""
    return Type("timestamptz")


def TimestampNanoType() -> Type:
    """Nanoseconds, no zone (v3)."""
    return Type("timestamp_ns")


def TimestamptzNanoType() -> Type:
    """Nanoseconds, UTC (v3)."""
    return Type("timestamptz_ns")


def StringType() -> Type:
    """UTF-8 text."""
    return Type("string")


def UUIDType() -> Type:
    """Universally unique identifier."""
    return Type("uuid")


def FixedType(length: int) -> Type:
    """Bytes of one length."""
    return Type(f"fixed[{length}]")


def BinaryType() -> Type:
    """Bytes."""
    return Type("binary")


def VariantType() -> Type:
    """Semi-structured value (v3)."""
    return Type("variant")


def GeometryType(crs: str | None = None) -> Type:
    """Planar shapes (v3); without ``crs`` in ``OGC:CRS84``."""
    return Type("geometry" if crs is None else f"geometry({crs})")


def GeographyType(crs: str | None = None, algorithm: str | None = None) -> Type:
    """Shapes on the ellipsoid (v3); without ``algorithm`` with spherical edges."""
    if algorithm is not None:
        return Type(f"geography({crs or 'OGC:CRS84'}, {algorithm})")
    return Type("geography" if crs is None else f"geography({crs})")


def StructType(*fields: NestedField) -> Type:
    """Named fields."""
    return Type.struct_of(*fields)


def ListType(element_id: int, element: Type | str, element_required: bool = True) -> Type:
    """Elements of one type."""
    return Type.list_of(element_id, element, element_required)


def MapType(
    key_id: int, key_type: Type | str, value_id: int, value_type: Type | str, value_required: bool = True
) -> Type:
    """Pairs of key and value; keys are never null."""
    return Type.map_of(key_id, key_type, value_id, value_type, value_required)
