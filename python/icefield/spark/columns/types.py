"""Iceberg schemas as Spark schemas, and the exact Arrow types that Spark takes.

Spark is strict about Arrow: since 4.2 the first batch of a Python source must have exactly the schema that Spark
expects, so the table of types is kept here and held by tests instead of being taken from a private function of PySpark.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import types as st

from icefield.errors import UnsupportedFeatureError
from icefield.schema import Schema
from icefield.types import ListType, MapType, NestedField, StructType, Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Key under which Spark's Parquet reader and writer look for the field id (an ``int``).
FIELD_ID = "parquet.field.id"


def spark_schema(schema: Schema) -> st.StructType:
    """Return the Spark schema of an Iceberg schema, field ids in the metadata of its fields.

    Parameters
    ----------
    schema
        The Iceberg schema.

    Returns
    -------
    pyspark.sql.types.StructType
        One nullable or required field a column; ``uuid`` as string; ``fixed``, geometries and geographies (WKB) as
        binary; nanosecond timestamps as timestamps of microseconds; ``unknown`` as void.

    Raises
    ------
    UnsupportedFeatureError
        If this PySpark has no type for a column; the message names the column.

    """
    return st.StructType([_field(field, field.name) for field in schema.fields])


def readable_columns(schema: Schema) -> st.StructType:
    """Return the columns of `spark_schema` that this PySpark has a type for."""
    found = []
    for field in schema.fields:
        with suppress(UnsupportedFeatureError):
            found.append(_field(field, field.name))
    return st.StructType(found)


def _field(field: NestedField, path: str) -> st.StructField:
    metadata: dict[str, int | str] = {FIELD_ID: field.field_id}
    if field.doc:
        metadata["comment"] = field.doc
    return st.StructField(field.name, _type(field.field_type, path), not field.required, metadata)


def _type(kind: Type, path: str) -> st.DataType:
    if kind.is_struct:
        return st.StructType([_field(field, f"{path}.{field.name}") for field in kind.fields])
    if kind.element_type is not None:
        return st.ArrayType(_type(kind.element_type, f"{path}.element"), not kind.element_required)
    if kind.key_type is not None and kind.value_type is not None:
        key, value = _type(kind.key_type, f"{path}.key"), _type(kind.value_type, f"{path}.value")
        return st.MapType(key, value, not kind.value_required)
    if kind.precision is not None and kind.scale is not None:
        return st.DecimalType(kind.precision, kind.scale)
    return st.BinaryType() if kind.length is not None else _primitive(str(kind), path)


#: Iceberg primitive to the name of the class in ``pyspark.sql.types``.
_CLASSES = {
    "boolean": "BooleanType",
    "int": "IntegerType",
    "long": "LongType",
    "float": "FloatType",
    "double": "DoubleType",
    "date": "DateType",
    "time": "TimeType",
    "timestamp": "TimestampNTZType",
    "timestamptz": "TimestampType",
    "timestamp_ns": "TimestampNTZType",
    "timestamptz_ns": "TimestampType",
    "string": "StringType",
    "uuid": "StringType",
    "binary": "BinaryType",
    "unknown": "NullType",
    "variant": "VariantType",
}


def _primitive(kind: str, path: str) -> st.DataType:
    if kind.startswith(("geometry", "geography")):
        return st.BinaryType()
    name = _CLASSES.get(kind)
    if name is None or not hasattr(st, name):
        import pyspark

        msg = f"column {path!r}: PySpark {pyspark.__version__} has no type for Iceberg's {kind}; select other columns"
        raise UnsupportedFeatureError(msg)
    found: st.DataType = getattr(st, name)()
    return found


def schema_of(columns: DataFrame | st.StructType) -> Schema:
    """Return the Iceberg schema of the columns of a DataFrame, or of a schema of Spark, for ``create_table``.

    Raises
    ------
    UnsupportedFeatureError
        If Iceberg has no type for a column (intervals); the message names it.

    """
    return iceberg_schema(columns if isinstance(columns, st.StructType) else columns.schema)


def iceberg_schema(schema: st.StructType) -> Schema:
    """Return the Iceberg schema of Spark columns, for a new table; ids are numbered through.

    Raises
    ------
    UnsupportedFeatureError
        If Iceberg has no type for a column (intervals); the message names it.

    """
    return Schema(*_iceberg_fields(schema, count(1), ""))


def _iceberg_fields(schema: st.StructType, numbers: Iterator[int], path: str) -> list[NestedField]:
    ids = [next(numbers) for _ in schema.fields]
    return [
        NestedField(
            field_id,
            field.name,
            _iceberg_type(field.dataType, numbers, path + field.name),
            required=_is_required(field.dataType, field.nullable),
            doc=field.metadata.get("comment") or None,
        )
        for field_id, field in zip(ids, schema.fields, strict=True)
    ]


_ICEBERG_NAMES = {
    "tinyint": "int",
    "smallint": "int",
    "int": "int",
    "bigint": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamptz",
    "timestamp_ntz": "timestamp",
    "string": "string",
    "binary": "binary",
    "void": "unknown",
    "variant": "variant",
}


def _is_required(kind: st.DataType, nullable: bool) -> bool:
    """Return whether values are required; those of void never are, even if Spark says so of an empty array."""
    return not nullable and kind.simpleString() != "void"


def _iceberg_type(kind: st.DataType, numbers: Iterator[int], path: str) -> Type:
    if isinstance(kind, st.StructType):
        return StructType(*_iceberg_fields(kind, numbers, f"{path}."))
    if isinstance(kind, st.ArrayType):
        element_id = next(numbers)
        element = _iceberg_type(kind.elementType, numbers, f"{path}.element")
        return ListType(element_id, element, _is_required(kind.elementType, kind.containsNull))
    if isinstance(kind, st.MapType):
        key_id, value_id = next(numbers), next(numbers)
        key = _iceberg_type(kind.keyType, numbers, f"{path}.key")
        value = _iceberg_type(kind.valueType, numbers, f"{path}.value")
        return MapType(key_id, key, value_id, value, _is_required(kind.valueType, kind.valueContainsNull))
    return Type(_iceberg_name(kind, path))


def _iceberg_name(kind: st.DataType, path: str) -> str:
    if isinstance(kind, st.DecimalType):
        return f"decimal({kind.precision}, {kind.scale})"
    name = kind.simpleString()
    if name.startswith("time("):
        return "time"
    if name.startswith(("char(", "varchar(", "string ")):
        return "string"
    if name not in _ICEBERG_NAMES:
        raise UnsupportedFeatureError(f"column {path!r}: Iceberg has no type for Spark's {name}")
    return _ICEBERG_NAMES[name]


def arrow_schema(schema: st.StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects for a Spark schema.

    Parameters
    ----------
    schema
        The Spark schema.

    Returns
    -------
    pyarrow.Schema
        Columns in the order of ``schema``, plain (never large, view or dictionary) types, timestamps in
        microseconds, zone ``UTC``.

    """
    return pa.schema([_arrow_field(field.name, field.dataType, field.nullable) for field in schema.fields])


def _arrow_field(name: str, kind: st.DataType, nullable: bool) -> pa.Field:
    return pa.field(name, _arrow_type(kind), nullable)


def _arrow_type(kind: st.DataType) -> pa.DataType:
    if isinstance(kind, st.StructType):
        return pa.struct([_arrow_field(field.name, field.dataType, field.nullable) for field in kind.fields])
    if isinstance(kind, st.ArrayType):
        return pa.list_(_arrow_field("element", kind.elementType, kind.containsNull))
    if isinstance(kind, st.MapType):
        key, value = _arrow_type(kind.keyType), _arrow_field("value", kind.valueType, kind.valueContainsNull)
        return pa.map_(pa.field("key", key, nullable=False), value)
    if isinstance(kind, st.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    plain = {
        "boolean": pa.bool_(),
        "tinyint": pa.int8(),
        "smallint": pa.int16(),
        "int": pa.int32(),
        "bigint": pa.int64(),
        "float": pa.float32(),
        "double": pa.float64(),
        "date": pa.date32(),
        "timestamp_ntz": pa.timestamp("us"),
        "timestamp": pa.timestamp("us", "UTC"),
        "string": pa.string(),
        "binary": pa.binary(),
        "void": pa.null(),
    }
    name = kind.simpleString()
    if name.startswith("time("):
        return pa.time64("ns")
    if name == "variant":
        parts = [pa.field("value", pa.binary(), nullable=False), pa.field("metadata", pa.binary(), nullable=False)]
        return pa.struct(parts)
    if name not in plain:
        msg = f"no Arrow type for Spark's {name}"
        raise UnsupportedFeatureError(msg)
    return plain[name]
