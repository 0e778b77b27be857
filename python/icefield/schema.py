"""Schemas: the columns of a table ("Schemas and Data Types"), and walks over them.

A `Schema` is immutable; a table's schema evolves through ``Table.update_schema``. A visitor is called for each part of
a schema or type, children first (`visit`), or parents first, who ask for the results of their children
(`pre_order_visit`)::

    >>> import icefield as ice
    >>> schema = ice.Schema(ice.NestedField(1, "id", "long"), ice.NestedField(2, "at", ice.types.StructType(
    ...     ice.NestedField(3, "x", "int"))))
    >>> index_name_by_id(schema)
    {1: 'id', 2: 'at', 3: 'at.x'}
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from icefield._core import Schema
from icefield.errors import ArgumentTypeError, UnsupportedFeatureError
from icefield.types import (
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
    "PreOrderSchemaVisitor",
    "Schema",
    "SchemaVisitor",
    "SchemaVisitorPerPrimitiveType",
    "index_by_id",
    "index_by_name",
    "index_name_by_id",
    "pre_order_visit",
    "prune_columns",
    "visit",
]

T = TypeVar("T")


class SchemaVisitor(ABC, Generic[T]):
    """What is done with each part of a schema, given the results of its children."""

    def before_field(self, field: NestedField) -> None:
        """Do something before a field is visited."""

    def after_field(self, field: NestedField) -> None:
        """Do something after a field was visited."""

    def before_list_element(self, element: NestedField) -> None:
        """Do something before the element of a list is visited."""
        self.before_field(element)

    def after_list_element(self, element: NestedField) -> None:
        """Do something after the element of a list was visited."""
        self.after_field(element)

    def before_map_key(self, key: NestedField) -> None:
        """Do something before the key of a map is visited."""
        self.before_field(key)

    def after_map_key(self, key: NestedField) -> None:
        """Do something after the key of a map was visited."""
        self.after_field(key)

    def before_map_value(self, value: NestedField) -> None:
        """Do something before the value of a map is visited."""
        self.before_field(value)

    def after_map_value(self, value: NestedField) -> None:
        """Do something after the value of a map was visited."""
        self.after_field(value)

    @abstractmethod
    def schema(self, schema: Schema, struct_result: T) -> T:
        """Visit a schema, given the result of its columns as a struct."""

    @abstractmethod
    def struct(self, struct: StructType, field_results: builtins.list[T]) -> T:
        """Visit a struct, given the results of its fields."""

    @abstractmethod
    def field(self, field: NestedField, field_result: T) -> T:
        """Visit a field of a struct, given the result of its type."""

    @abstractmethod
    def list(self, list_type: ListType, element_result: T) -> T:
        """Visit a list, given the result of the type of its element."""

    @abstractmethod
    def map(self, map_type: MapType, key_result: T, value_result: T) -> T:
        """Visit a map, given the results of the types of its key and value."""

    @abstractmethod
    def primitive(self, primitive: PrimitiveType) -> T:
        """Visit a primitive type."""

    def variant(self, variant: VariantType) -> T:
        """Visit a variant; a visitor without this method, as PyIceberg's are, raises `UnsupportedFeatureError`."""
        msg = f"{type(self).__name__} has no method 'variant' to visit {variant}"
        raise UnsupportedFeatureError(msg)


class SchemaVisitorPerPrimitiveType(SchemaVisitor[T]):
    """A visitor with a method for each primitive type."""

    def primitive(self, primitive: PrimitiveType) -> T:
        """Call the method for the type."""
        method: Callable[[PrimitiveType], T] = getattr(self, _VISITED[type(primitive)])
        return method(primitive)

    @abstractmethod
    def visit_fixed(self, fixed_type: FixedType) -> T:
        """Visit `FixedType`."""

    @abstractmethod
    def visit_decimal(self, decimal_type: DecimalType) -> T:
        """Visit `DecimalType`."""

    @abstractmethod
    def visit_boolean(self, boolean_type: BooleanType) -> T:
        """Visit `BooleanType`."""

    @abstractmethod
    def visit_integer(self, integer_type: IntegerType) -> T:
        """Visit `IntegerType`."""

    @abstractmethod
    def visit_long(self, long_type: LongType) -> T:
        """Visit `LongType`."""

    @abstractmethod
    def visit_float(self, float_type: FloatType) -> T:
        """Visit `FloatType`."""

    @abstractmethod
    def visit_double(self, double_type: DoubleType) -> T:
        """Visit `DoubleType`."""

    @abstractmethod
    def visit_date(self, date_type: DateType) -> T:
        """Visit `DateType`."""

    @abstractmethod
    def visit_time(self, time_type: TimeType) -> T:
        """Visit `TimeType`."""

    @abstractmethod
    def visit_timestamp(self, timestamp_type: TimestampType) -> T:
        """Visit `TimestampType`."""

    @abstractmethod
    def visit_timestamp_ns(self, timestamp_type: TimestampNanoType) -> T:
        """Visit `TimestampNanoType`."""

    @abstractmethod
    def visit_timestamptz(self, timestamptz_type: TimestamptzType) -> T:
        """Visit `TimestamptzType`."""

    @abstractmethod
    def visit_timestamptz_ns(self, timestamptz_ns_type: TimestamptzNanoType) -> T:
        """Visit `TimestamptzNanoType`."""

    @abstractmethod
    def visit_string(self, string_type: StringType) -> T:
        """Visit `StringType`."""

    @abstractmethod
    def visit_uuid(self, uuid_type: UUIDType) -> T:
        """Visit `UUIDType`."""

    @abstractmethod
    def visit_binary(self, binary_type: BinaryType) -> T:
        """Visit `BinaryType`."""

    @abstractmethod
    def visit_unknown(self, unknown_type: UnknownType) -> T:
        """Visit `UnknownType`."""

    @abstractmethod
    def visit_geometry(self, geometry_type: GeometryType) -> T:
        """Visit `GeometryType`."""

    @abstractmethod
    def visit_geography(self, geography_type: GeographyType) -> T:
        """Visit `GeographyType`."""


#: The methods for primitive types.
_VISITED: dict[type[PrimitiveType], str] = {
    FixedType: "visit_fixed",
    DecimalType: "visit_decimal",
    BooleanType: "visit_boolean",
    IntegerType: "visit_integer",
    LongType: "visit_long",
    FloatType: "visit_float",
    DoubleType: "visit_double",
    DateType: "visit_date",
    TimeType: "visit_time",
    TimestampType: "visit_timestamp",
    TimestampNanoType: "visit_timestamp_ns",
    TimestamptzType: "visit_timestamptz",
    TimestamptzNanoType: "visit_timestamptz_ns",
    StringType: "visit_string",
    UUIDType: "visit_uuid",
    BinaryType: "visit_binary",
    UnknownType: "visit_unknown",
    GeometryType: "visit_geometry",
    GeographyType: "visit_geography",
}


class PreOrderSchemaVisitor(ABC, Generic[T]):
    """What is done with each part of a schema, given functions that return the results of its children."""

    @abstractmethod
    def schema(self, schema: Schema, struct_result: Callable[[], T]) -> T:
        """Visit a schema."""

    @abstractmethod
    def struct(self, struct: StructType, field_results: builtins.list[Callable[[], T]]) -> T:
        """Visit a struct."""

    @abstractmethod
    def field(self, field: NestedField, field_result: Callable[[], T]) -> T:
        """Visit a field of a struct."""

    @abstractmethod
    def list(self, list_type: ListType, element_result: Callable[[], T]) -> T:
        """Visit a list."""

    @abstractmethod
    def map(self, map_type: MapType, key_result: Callable[[], T], value_result: Callable[[], T]) -> T:
        """Visit a map."""

    @abstractmethod
    def primitive(self, primitive: PrimitiveType) -> T:
        """Visit a primitive type."""

    def variant(self, variant: VariantType) -> T:
        """Visit a variant; a visitor without this method, as PyIceberg's are, raises `UnsupportedFeatureError`."""
        msg = f"{type(self).__name__} has no method 'variant' to visit {variant}"
        raise UnsupportedFeatureError(msg)


def visit(obj: Schema | Type, visitor: SchemaVisitor[T]) -> T:
    """Visit the parts of a schema or type, children first, and return the result for the whole."""
    if isinstance(obj, Schema):
        return visitor.schema(obj, visit(obj.as_struct(), visitor))
    if isinstance(obj, StructType):
        return visitor.struct(obj, [_visit_field(field, visitor) for field in obj.fields])
    if isinstance(obj, ListType):
        visitor.before_list_element(obj.element_field)
        result = visit(obj.element_type, visitor)
        visitor.after_list_element(obj.element_field)
        return visitor.list(obj, result)
    if isinstance(obj, MapType):
        visitor.before_map_key(obj.key_field)
        key = visit(obj.key_type, visitor)
        visitor.after_map_key(obj.key_field)
        visitor.before_map_value(obj.value_field)
        value = visit(obj.value_type, visitor)
        visitor.after_map_value(obj.value_field)
        return visitor.map(obj, key, value)
    if isinstance(obj, VariantType):
        return visitor.variant(obj)
    if isinstance(obj, PrimitiveType):
        return visitor.primitive(obj)
    msg = f"expected a Schema or a Type, got {type(obj).__name__}"
    raise ArgumentTypeError(msg)


def _visit_field(field: NestedField, visitor: SchemaVisitor[T]) -> T:
    visitor.before_field(field)
    result = visit(field.field_type, visitor)
    visitor.after_field(field)
    return visitor.field(field, result)


def pre_order_visit(obj: Schema | Type, visitor: PreOrderSchemaVisitor[T]) -> T:
    """Visit a schema or type; the visitor asks for the results of the parts inside."""
    if isinstance(obj, Schema):
        return visitor.schema(obj, lambda: pre_order_visit(obj.as_struct(), visitor))
    if isinstance(obj, StructType):
        return visitor.struct(obj, [_field_later(field, visitor) for field in obj.fields])
    if isinstance(obj, ListType):
        return visitor.list(obj, lambda: pre_order_visit(obj.element_type, visitor))
    if isinstance(obj, MapType):
        key, value = obj.key_type, obj.value_type
        return visitor.map(obj, lambda: pre_order_visit(key, visitor), lambda: pre_order_visit(value, visitor))
    if isinstance(obj, VariantType):
        return visitor.variant(obj)
    if isinstance(obj, PrimitiveType):
        return visitor.primitive(obj)
    msg = f"expected a Schema or a Type, got {type(obj).__name__}"
    raise ArgumentTypeError(msg)


def _field_later(field: NestedField, visitor: PreOrderSchemaVisitor[T]) -> Callable[[], T]:
    return lambda: visitor.field(field, lambda: pre_order_visit(field.field_type, visitor))


def index_by_id(schema_or_type: Schema | Type) -> dict[int, NestedField]:
    """Return all fields by their ids, nested ones included."""
    schema = _schema_of(schema_or_type)
    return {field_id: schema.find_field(field_id) for field_id in schema.field_ids}


def index_by_name(schema_or_type: Schema | Type) -> dict[str, int]:
    """Return the ids of all fields by their full names."""
    return {name: field_id for field_id, name in index_name_by_id(schema_or_type).items()}


def index_name_by_id(schema_or_type: Schema | Type) -> dict[int, str]:
    """Return the full names of all fields by their ids."""
    schema = _schema_of(schema_or_type)
    return dict(zip(schema.field_ids, schema.column_names, strict=True))


def _schema_of(schema_or_type: Schema | Type) -> Schema:
    return schema_or_type if isinstance(schema_or_type, Schema) else Schema(*schema_or_type.fields)


def prune_columns(schema: Schema, selected: Iterable[int], select_full_types: bool = True) -> Schema:
    """Return the schema of some of the fields, and of what is around them, with the id of the schema.

    Identifier fields that it still has remain such.

    Parameters
    ----------
    schema
        The schema.
    selected
        Ids of fields, at any depth.
    select_full_types
        Whether a struct that is selected has all of its fields, or those only that are selected too.

    """
    pruned = schema.select_ids(list(selected), full_types=select_full_types)
    remaining = set(pruned.field_ids)
    identifiers = [field_id for field_id in schema.identifier_field_ids if field_id in remaining]
    return Schema(*pruned.fields, schema_id=schema.schema_id, identifier_field_ids=identifiers)
