"""The compiled module: a section for each folder of ``crates/python/src``, in the order of ``ROOMS`` in ``lib.rs``."""

import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import IO, Any, ClassVar, Final, TypeAlias, TypedDict, final, type_check_only
from typing import Literal as OneOf

import pyarrow as pa
from typing_extensions import Self, disjoint_base

from icefield._inputs.renewal import StorageRenewal
from icefield.metadata import (
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    SnapshotRefType,
    StatisticsFile,
    Summary,
)
from icefield.sorting import NullOrder, SortDirection

__version__: str

# capsule: Arrow data by the PyCapsule interface

@final
class ArrowSchema:
    """A schema for any library that takes Arrow data by the PyCapsule interface."""

    def __new__(cls, schema: object, /) -> ArrowSchema: ...
    def __arrow_c_schema__(self) -> object: ...
    def to_pyarrow(self) -> pa.Schema:
        """Return the schema as a ``pyarrow.Schema``."""

    def __len__(self) -> int: ...

@final
class ArrowArray:
    """An array for any library that takes Arrow data by the PyCapsule interface."""

    def __new__(cls, array: object, /) -> ArrowArray: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def to_pyarrow(self) -> pa.Array[Any]:
        """Return the array as a ``pyarrow.Array``; no buffer is copied."""

    def __len__(self) -> int: ...

@final
class ArrowTable:
    """Rows in memory, for any library that takes Arrow data by the PyCapsule interface."""

    def __new__(cls, rows: object, /) -> ArrowTable: ...
    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""

    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_pyarrow(self) -> pa.Table:
        """Return the rows as a ``pyarrow.Table``; no buffer is copied."""

    def __len__(self) -> int: ...

@final
class ArrowStream:
    """Rows as they are read, for any library that takes Arrow data by the PyCapsule interface; it can be read once."""

    def __new__(cls, rows: object, /) -> ArrowStream: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def to_pyarrow(self) -> pa.RecordBatchReader:
        """Return the rows as a ``pyarrow.RecordBatchReader`` that raises the exceptions of icefield."""

    def raise_failure(self) -> None:
        """Raise the exception that the reader failed with, if it has failed."""

# clock

def set_clock(time_ms: int | None) -> None:
    """Stop the clock at a time, in milliseconds from the epoch; ``None``: use that of the system again."""

# types and schemas

_Json: TypeAlias = str | bytes | dict[str, Any] | list[Any]

@disjoint_base
class Type:
    """A type of the table specification ("Schemas and Data Types").

    Constructed from its name, such as ``Type("decimal(9, 2)")``, or its JSON form; ``icefield.types`` has a class for
    each kind, and every type is an instance of the class of its kind.
    """

    def __new__(cls, text: Type | _Json, /) -> Self: ...
    @property
    def is_primitive(self) -> bool:
        """Whether the type has no fields inside and is not a variant."""

    @property
    def is_struct(self) -> bool:
        """Whether the type is a struct."""

    @property
    def is_list(self) -> bool:
        """Whether the type is a list."""

    @property
    def is_map(self) -> bool:
        """Whether the type is a map."""

    @property
    def fields(self) -> list[NestedField]:
        """The fields inside: of a struct all, of a list the element, of a map the key and the value, else none."""

    @property
    def element_field(self) -> NestedField | None:
        """The element of a list, as a field; ``None`` for other types, as of all that follow."""

    @property
    def element_id(self) -> int | None:
        """Field id of the element of a list."""

    @property
    def element_type(self) -> Type | None:
        """Type of the element of a list."""

    @property
    def element_required(self) -> bool | None:
        """Whether the element of a list is never null."""

    @property
    def key_field(self) -> NestedField | None:
        """The key of a map, as a field."""

    @property
    def key_id(self) -> int | None:
        """Field id of the key of a map."""

    @property
    def key_type(self) -> Type | None:
        """Type of the key of a map."""

    @property
    def value_field(self) -> NestedField | None:
        """The value of a map, as a field."""

    @property
    def value_id(self) -> int | None:
        """Field id of the value of a map."""

    @property
    def value_type(self) -> Type | None:
        """Type of the value of a map."""

    @property
    def value_required(self) -> bool | None:
        """Whether the value of a map is never null."""

    @property
    def precision(self) -> int | None:
        """Number of digits of a decimal."""

    @property
    def scale(self) -> int | None:
        """Number of digits of a decimal after the point."""

    @property
    def length(self) -> int | None:
        """Length of a fixed, in bytes."""

    @property
    def crs(self) -> str | None:
        """Coordinate reference system of a geometry or geography."""

    @property
    def algorithm(self) -> str | None:
        """How the edges of a geography run."""

    def minimum_format_version(self) -> int | None:
        """Return the first version of the table format that has the type; ``None`` if no known one has."""

    def to_json(self) -> str:
        """Return the JSON form (Appendix C) as text."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

class PrimitiveType(Type):
    """A type without fields inside, and not a variant."""

    def __new__(cls, text: Type | _Json, /) -> Self: ...

@final
class UnknownType(PrimitiveType):
    """Always null: the type of a column whose type is not known yet (v3)."""

    def __new__(cls) -> UnknownType: ...

@final
class BooleanType(PrimitiveType):
    """True or false."""

    def __new__(cls) -> BooleanType: ...

@final
class IntegerType(PrimitiveType):
    """32-bit signed integer."""

    min: ClassVar[int]
    max: ClassVar[int]
    def __new__(cls) -> IntegerType: ...

@final
class LongType(PrimitiveType):
    """64-bit signed integer."""

    min: ClassVar[int]
    max: ClassVar[int]
    def __new__(cls) -> LongType: ...

@final
class FloatType(PrimitiveType):
    """32-bit IEEE 754."""

    min: ClassVar[float]
    max: ClassVar[float]
    def __new__(cls) -> FloatType: ...

@final
class DoubleType(PrimitiveType):
    """64-bit IEEE 754."""

    def __new__(cls) -> DoubleType: ...

@final
class DateType(PrimitiveType):
    """Calendar day."""

    def __new__(cls) -> DateType: ...

@final
class TimeType(PrimitiveType):
    """Time of day in microseconds."""

    def __new__(cls) -> TimeType: ...

@final
class TimestampType(PrimitiveType):
    """Microseconds, no zone."""

    def __new__(cls) -> TimestampType: ...

@final
class TimestamptzType(PrimitiveType):
    """Microseconds, UTC."""

    def __new__(cls) -> TimestamptzType: ...

@final
class TimestampNanoType(PrimitiveType):
    """Nanoseconds, no zone (v3)."""

    def __new__(cls) -> TimestampNanoType: ...

@final
class TimestamptzNanoType(PrimitiveType):
    """Nanoseconds, UTC (v3)."""

    def __new__(cls) -> TimestamptzNanoType: ...

@final
class StringType(PrimitiveType):
    """UTF-8 text."""

    def __new__(cls) -> StringType: ...

@final
class UUIDType(PrimitiveType):
    """Universally unique identifier."""

    def __new__(cls) -> UUIDType: ...

@final
class BinaryType(PrimitiveType):
    """Bytes."""

    def __new__(cls) -> BinaryType: ...

@final
class DecimalType(PrimitiveType):
    """Fixed-point decimal of at most 38 digits."""

    def __new__(cls, precision: int, scale: int) -> DecimalType: ...
    @property
    def precision(self) -> int:
        """Number of digits."""

    @property
    def scale(self) -> int:
        """Number of digits after the point."""

@final
class FixedType(PrimitiveType):
    """Bytes of one length."""

    def __new__(cls, length: int) -> FixedType: ...
    @property
    def length(self) -> int:
        """Length in bytes."""

    def __len__(self) -> int: ...

@final
class GeometryType(PrimitiveType):
    """Planar shapes (v3); without ``crs`` in ``OGC:CRS84``."""

    def __new__(cls, crs: str | None = None) -> GeometryType: ...
    @property
    def crs(self) -> str:
        """Coordinate reference system."""

@final
class GeographyType(PrimitiveType):
    """Shapes on the ellipsoid (v3); without ``algorithm`` with spherical edges."""

    def __new__(cls, crs: str | None = None, algorithm: str | None = None) -> GeographyType: ...
    @property
    def crs(self) -> str:
        """Coordinate reference system."""

    @property
    def algorithm(self) -> str:
        """How edges run."""

@final
class StructType(Type):
    """Named fields."""

    def __new__(cls, *fields: NestedField) -> StructType: ...
    def field(self, field_id: int) -> NestedField | None:
        """Return the field with this id, not looking inside of the fields."""

    def field_by_name(self, name: str, case_sensitive: bool = True) -> NestedField | None:
        """Return the field with this name, not looking inside of the fields."""

    def __len__(self) -> int: ...

@final
class ListType(Type):
    """Elements of one type."""

    def __new__(
        cls,
        element_id: int,
        element: Type | str | None = None,
        element_required: bool = True,
        *,
        element_type: Type | str | None = None,
    ) -> ListType:
        """Take the field id and the type of the element; ``element_type`` is another name of ``element``."""

    @property
    def element_field(self) -> NestedField:
        """The element, as a field."""

    @property
    def element_id(self) -> int:
        """Field id of the element."""

    @property
    def element_type(self) -> Type:
        """Type of the element."""

    @property
    def element_required(self) -> bool:
        """Whether the element is never null."""

@final
class MapType(Type):
    """Pairs of key and value; keys are never null."""

    def __new__(
        cls, key_id: int, key_type: Type | str, value_id: int, value_type: Type | str, value_required: bool = True
    ) -> MapType: ...
    @property
    def key_field(self) -> NestedField:
        """The key, as a field."""

    @property
    def key_id(self) -> int:
        """Field id of the key."""

    @property
    def key_type(self) -> Type:
        """Type of the key."""

    @property
    def value_field(self) -> NestedField:
        """The value, as a field."""

    @property
    def value_id(self) -> int:
        """Field id of the value."""

    @property
    def value_type(self) -> Type:
        """Type of the value."""

    @property
    def value_required(self) -> bool:
        """Whether the value is never null."""

@final
class VariantType(Type):
    """Semi-structured value (v3)."""

    def __new__(cls) -> VariantType: ...

@final
class NestedField:
    """A column of a schema, a field of a struct, the element of a list, or the key or value of a map."""

    def __new__(
        cls,
        field_id: int,
        name: str,
        field_type: Type | str,
        required: bool = False,
        doc: str | None = None,
        initial_default: object = None,
        write_default: object = None,
    ) -> NestedField: ...
    @staticmethod
    def from_json(json: _Json) -> NestedField:
        """Return the field of a JSON form (Appendix C)."""

    @property
    def field_id(self) -> int:
        """Field id, unique within the schema."""

    @property
    def name(self) -> str:
        """Name of the field."""

    @property
    def field_type(self) -> Type:
        """Type of the field."""

    @property
    def required(self) -> bool:
        """Whether the field is never null."""

    @property
    def optional(self) -> bool:
        """Whether the field may be null."""

    @property
    def doc(self) -> str | None:
        """Comment of the field."""

    @property
    def initial_default(self) -> Any:
        """The value in rows of files written before the field was added, as `icefield.values` converts it."""

    @property
    def write_default(self) -> Any:
        """The value in rows written without one, as `icefield.values` converts it."""

    def to_json(self) -> str:
        """Return the JSON form (Appendix C) as text."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Schema:
    """The columns of a table: their names, types and field ids."""

    def __new__(cls, *fields: NestedField, schema_id: int = 0, identifier_field_ids: Sequence[int] = ...) -> Schema: ...
    @staticmethod
    def from_json(json: _Json) -> Schema:
        """Return the schema of a JSON form (Appendix C)."""

    @staticmethod
    def from_text(text: str) -> Schema:
        """Parse a list of columns: ``id long not null, name string comment 'who', place struct<lat double>``.

        Each is a name, a type of the specification, and then ``not null`` and ``comment '…'`` where wanted. Field ids
        are new ones. Raises ``InvalidArgumentError`` with the place of what is wrong.
        """

    @staticmethod
    def of_file(location: str, properties: Mapping[str, str] | None = None) -> Schema:
        """Read the schema of a Parquet, ORC or Avro file, or one that a file holds as JSON or as a list of columns.

        ``properties`` are those of the storage. Field ids are new ones, unless JSON has them.
        """

    @staticmethod
    def from_arrow(schema: object, *, format_version: int = 3) -> Schema:
        """Return the schema of Arrow columns: an object with ``__arrow_c_schema__`` or ``__arrow_c_stream__``.

        Field ids are those that the columns carry (``PARQUET:field_id``); columns without one get new ids above them. A
        type that the format version does not have raises ``InvalidArgumentError``.
        """

    def to_arrow(self) -> pa.Schema:
        """Return the schema as a ``pyarrow.Schema``."""

    def as_arrow(self) -> pa.Schema:
        """Return the schema as a ``pyarrow.Schema``; the name that PyIceberg has for it."""

    def __arrow_c_schema__(self) -> object: ...
    def to_json(self) -> str:
        """Return the JSON form (Appendix C) as text."""

    @property
    def schema_id(self) -> int:
        """Id of the schema within the table."""

    @property
    def identifier_field_ids(self) -> list[int]:
        """Ids of the fields that identify a row."""

    @property
    def fields(self) -> list[NestedField]:
        """The columns, in their order."""

    @property
    def columns(self) -> list[NestedField]:
        """The columns; the other name that PyIceberg has for them."""

    @property
    def column_names(self) -> list[str]:
        """Full names of all fields, nested ones included, in the order of the schema."""

    @property
    def field_ids(self) -> list[int]:
        """Ids of all fields, nested ones included."""

    @property
    def highest_field_id(self) -> int:
        """The highest field id; 0 if there are no fields."""

    def identifier_field_names(self) -> set[str]:
        """Return the full names of the fields that identify a row."""

    def check_format_version_compatibility(self, format_version: int) -> None:
        """Raise if a version of the table format lacks one of the types or defaults."""

    def select_ids(self, field_ids: Sequence[int], *, full_types: bool = True) -> Schema:
        """Return the schema of the fields with these ids, and of what is around them.

        A struct that is named has all of its fields, or without ``full_types`` those only that are named too.
        """

    def as_struct(self) -> StructType:
        """Return the columns as a struct type."""

    def find_field(self, name_or_id: str | int, case_sensitive: bool = True) -> NestedField:
        """Return the field with this id or full name (``"a.b"``); an unknown one raises ``InvalidArgumentError``."""

    def find_type(self, name_or_id: str | int, case_sensitive: bool = True) -> Type:
        """Return the type of the field with this id or full name; an unknown one raises ``InvalidArgumentError``."""

    def find_column_name(self, column_id: int) -> str | None:
        """Return the full name of the field with this id, or ``None``."""

    def select(self, *names: str, case_sensitive: bool = True) -> Schema:
        """Return the schema of some of the fields, with their ids; an unknown one raises ``InvalidArgumentError``."""

    def _repr_html_(self) -> str: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# values

def value_to_bytes(value: object, type: Type | str) -> bytes:
    """Return the binary form of a value (Appendix D, "Binary single-value serialization")."""

def value_from_bytes(data: bytes, type: Type | str) -> Any:
    """Return the value of a binary form."""

def value_to_json(value: object, type: Type | str) -> str:
    """Return the JSON form of a value (Appendix D, "JSON single-value serialization") as text."""

def value_from_json(text: _Json, type: Type | str) -> Any:
    """Return the value of a JSON form."""

def truncate_bound(value: object, type: Type | str, length: int, *, upper: bool = False) -> Any:
    """Return a bound of at most ``length`` code points or bytes, not above the value, or with ``upper`` not below it.

    ``None`` if there is no such upper bound.
    """

# transforms

@disjoint_base
class Transform:
    """How partition values, and the keys that files are sorted by, are computed from the values of a column.

    Constructed from its text, such as ``"bucket[16]"``.
    """

    def __new__(cls, text: Transform | str, /) -> Self: ...
    def __call__(self, array: object, /) -> pa.Array[Any]: ...
    def apply(self, array: object, /) -> pa.Array[Any]:
        """Return the results for an array, as a ``pyarrow.Array``: the same as calling the transform."""

    def array(self, array: object, /) -> ArrowArray:
        """Return the results for an array, for any library that takes Arrow data."""

    def scalar(self, value: object, /, type: Type | str) -> Any:
        """Return the result for one value of a column of type ``type``."""

    def result_type(self, source: Type | str) -> Type | None:
        """Return the type of the results for a column of a type; ``None`` if the transform does not accept it."""

    def can_transform(self, source: Type | str) -> bool:
        """Return whether the transform accepts columns of a type."""

    def transform(self, source: Type | str) -> Callable[[Any], Any]:
        """Return a function from a value of a column of this type to its result."""

    def pyarrow_transform(self, source: Type | str) -> Callable[[Any], pa.Array[Any]]:
        """Return a function from an array of a column of this type to the array of results."""

    def to_human_string(self, source_type: Type | str, value: object, /) -> str:
        """Return a result for a column of a type as partition paths have it, before escaping."""

    def satisfies_order_of(self, other: Transform | str, /) -> bool:
        """Return whether data sorted by this transform is also sorted by ``other``."""

    @property
    def name(self) -> str:
        """The name without a number: ``"bucket"`` of ``bucket[16]``."""

    @property
    def num_buckets(self) -> int | None:
        """Number of buckets of ``bucket``; ``None`` for other transforms."""

    @property
    def width(self) -> int | None:
        """Width of ``truncate``; ``None`` for other transforms."""

    @property
    def preserves_order(self) -> bool:
        """Whether smaller values never have greater results."""

    @property
    def dedup_name(self) -> str:
        """The name by which duplicates are found: no two fields of one column in a spec may have the same."""

    @property
    def is_identity(self) -> bool:
        """Whether the results are the values themselves."""

    @property
    def is_void(self) -> bool:
        """Whether all results are null."""

    @property
    def is_known(self) -> bool:
        """Whether this version knows the transform; others are kept, but have no results."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class BucketTransform(Transform):
    """Hash of a value, modulo the number of buckets."""

    def __new__(cls, num_buckets: int) -> BucketTransform: ...
    @property
    def num_buckets(self) -> int:
        """Number of buckets."""

@final
class TruncateTransform(Transform):
    """Numbers truncated to multiples of a width, strings and binary values to that many code points or bytes."""

    def __new__(cls, width: int) -> TruncateTransform: ...
    @property
    def width(self) -> int:
        """The width."""

@final
class IdentityTransform(Transform):
    """The values themselves."""

    def __new__(cls) -> IdentityTransform: ...

@final
class VoidTransform(Transform):
    """Null for every value."""

    def __new__(cls) -> VoidTransform: ...

@final
class UnknownTransform(Transform):
    """A transform that this version does not know: it is kept as written, and has no results."""

    def __new__(cls, transform: Transform | str) -> UnknownTransform: ...

class TimeTransform(Transform):
    """Years, months, days or hours from 1970, of dates and timestamps."""

@final
class YearTransform(TimeTransform):
    """Years from 1970."""

    def __new__(cls) -> YearTransform: ...

@final
class MonthTransform(TimeTransform):
    """Months from 1970-01."""

    def __new__(cls) -> MonthTransform: ...

@final
class DayTransform(TimeTransform):
    """Days from 1970-01-01."""

    def __new__(cls) -> DayTransform: ...

@final
class HourTransform(TimeTransform):
    """Hours from 1970-01-01T00, of timestamps."""

    def __new__(cls) -> HourTransform: ...

def murmur3_32(data: bytes, /) -> int:
    """Return the 32-bit murmur3 hash of bytes, with seed 0, as a signed number (Appendix B)."""

# expressions

@disjoint_base
class Term:
    """What a predicate tests: a column by its name, or a transform of one."""

    def __new__(
        cls, name: str, transform: Transform | str | None = None, extract: tuple[str, Type | str] | None = None
    ) -> Self: ...
    @property
    def name(self) -> str:
        """Name of the column."""

    @property
    def transform(self) -> Transform | None:
        """The transform of the column; ``None`` if the term is the column itself, or a value inside of it."""

    def bind(self, schema: Schema, case_sensitive: bool = True) -> BoundTerm:
        """Return the term over the field ids of a schema; an unknown column raises ``InvalidArgumentError``."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Reference(Term):
    """A column by its name; dots lead into structs."""

    def __new__(cls, name: str) -> Reference: ...

@disjoint_base
class Literal:
    """A literal of a predicate; which type it becomes is settled by the column.

    Each is an instance of the class of its kind; they compare by their values.
    """

    def __new__(cls, value: object, type: Type | str | None = None, /) -> Self:
        """Take a value of Python, or with a type one that `icefield.values` converts."""

    @property
    def value(self) -> Any:
        """The value, as `icefield.values` converts it: of a date the days from 1970-01-01."""

    @property
    def type(self) -> Type:
        """The type that it was written as."""

    def to(self, type_var: Type | str) -> Literal:
        """Return the literal as a value of another type; one that does not have it raises ``InvalidArgumentError``."""

    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __lt__(self, other: Literal, /) -> bool: ...
    def __le__(self, other: Literal, /) -> bool: ...
    def __gt__(self, other: Literal, /) -> bool: ...
    def __ge__(self, other: Literal, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class BooleanLiteral(Literal):
    """A literal that is true or false."""

    def __new__(cls, value: bool) -> BooleanLiteral:
        """Take a bool."""

@final
class LongLiteral(Literal):
    """A literal of type ``long`` or ``int``."""

    def __new__(cls, value: int) -> LongLiteral:
        """Take an integer of 64 bits."""

@final
class FloatLiteral(Literal):
    """A literal of type ``float``."""

    def __new__(cls, value: float) -> FloatLiteral:
        """Take a number."""

@final
class DoubleLiteral(Literal):
    """A literal of type ``double``."""

    def __new__(cls, value: float) -> DoubleLiteral:
        """Take a number."""

@final
class DecimalLiteral(Literal):
    """A literal of a decimal type; its scale is that of the value."""

    def __new__(cls, value: decimal.Decimal | str | int) -> DecimalLiteral:
        """Take a number of at most 38 digits."""

@final
class DateLiteral(Literal):
    """A literal of type ``date``: its days from 1970-01-01."""

    def __new__(cls, value: dt.date | int) -> DateLiteral:
        """Take a date, or its days."""

@final
class TimeLiteral(Literal):
    """A literal of type ``time``: its microseconds from midnight."""

    def __new__(cls, value: dt.time | int) -> TimeLiteral:
        """Take a time, or its microseconds."""

@final
class TimestampLiteral(Literal):
    """A literal of a type of timestamps: its microseconds from 1970, or nanoseconds of such a type."""

    def __new__(cls, value: dt.datetime | int) -> TimestampLiteral:
        """Take a datetime without a time zone, or its microseconds."""

@final
class StringLiteral(Literal):
    """A literal of type ``string``."""

    def __new__(cls, value: str) -> StringLiteral:
        """Take a text."""

@final
class UUIDLiteral(Literal):
    """A literal of type ``uuid``."""

    def __new__(cls, value: uuid.UUID | bytes | str) -> UUIDLiteral:
        """Take a UUID, its 16 bytes or its text."""

@final
class FixedLiteral(Literal):
    """A literal of a type ``fixed``; its length is that of the value."""

    def __new__(cls, value: bytes) -> FixedLiteral:
        """Take bytes."""

@final
class BinaryLiteral(Literal):
    """A literal of type ``binary``."""

    def __new__(cls, value: bytes) -> BinaryLiteral:
        """Take bytes."""

@disjoint_base
class Expression:
    """A filter on the columns of a table, by their names."""

    def to_json(self) -> str:
        """Return the JSON form of the REST protocol as text."""

    def bind(self, schema: Schema, case_sensitive: bool = True) -> BoundExpression:
        """Return the expression over the field ids of a schema; an unknown column raises ``InvalidArgumentError``."""

    def rewrite_not(self) -> Expression:
        """Return an equal expression without ``NOT``."""

    def project(
        self, spec: object, schema: Schema, inclusive: bool = True, *, case_sensitive: bool = True
    ) -> BoundExpression:
        """Return an expression over partition values.

        With ``inclusive``, it is true for all partitions that may have matching rows; without, only for those whose
        rows all match.
        """

    def residual(
        self, spec: object, schema: Schema, partition: object, *, case_sensitive: bool = True
    ) -> BoundExpression:
        """Return what is left to test of the rows of a partition."""

    def evaluate(self, rows: object, schema: Schema | None = None, *, case_sensitive: bool = True) -> pa.BooleanArray:
        """Return which rows match, without nulls."""

    def __and__(self, other: Expression | str, /) -> Expression: ...
    def __rand__(self, other: Expression | str, /) -> Expression: ...
    def __or__(self, other: Expression | str, /) -> Expression: ...
    def __ror__(self, other: Expression | str, /) -> Expression: ...
    def __invert__(self) -> Expression: ...
    def __bool__(self) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@disjoint_base
class BoundExpression:
    """A filter on the columns of a schema, by their field ids; `Expression.bind` makes it.

    Each is an instance of the class of its kind, as expressions are.
    """

    def to_json(self) -> str:
        """Return the JSON form of the REST protocol as text; literals are single values of their columns' types."""

    def rewrite_not(self) -> BoundExpression:
        """Return an equal expression without ``NOT``."""

    @property
    def field_ids(self) -> list[int]:
        """Ids of the fields that the expression tests, ascending."""

    def project(self, spec: object, inclusive: bool = True) -> BoundExpression:
        """Return an expression over partition values.

        With ``inclusive``, it is true for all partitions that may have matching rows; without, only for those whose
        rows all match.
        """

    def residual(self, spec: object, schema: Schema, partition: object) -> BoundExpression:
        """Return what is left to test of the rows of a partition.

        The partition is given as values in the order of the spec, or as a dict by field name.
        """

    def evaluate(self, rows: object) -> pa.BooleanArray:
        """Return which rows match, without nulls."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@disjoint_base
class BoundTerm:
    """What a bound predicate tests: a column by its field id, a transform of one, or a value inside of a variant."""

    def ref(self) -> BoundReference:
        """Return the column that the term is made of."""

    @property
    def transform(self) -> Transform | None:
        """The transform of the column; ``None`` if the term is the column itself, or a value inside of it."""

    @property
    def type(self) -> Type:
        """The type of what is tested."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class BoundReference(BoundTerm):
    """A column by its field id."""

    @property
    def field(self) -> NestedField:
        """The column: its id, name and type; required if neither it nor a struct around it can be null."""

class BoundPredicate(BoundExpression):
    """A test of one bound term."""

    @property
    def term(self) -> BoundTerm:
        """What is tested."""

class BoundUnaryPredicate(BoundPredicate):
    """A test of a bound term without literals."""

class BoundLiteralPredicate(BoundPredicate):
    """A comparison of a bound term with one literal."""

    @property
    def literal(self) -> Literal:
        """What the term is compared with, as a value of the term's type."""

class BoundSetPredicate(BoundPredicate):
    """A comparison of a bound term with several literals."""

    @property
    def literals(self) -> set[Literal]:
        """What the term is compared with, as values of the term's type."""

    @property
    def value_set(self) -> set[Any]:
        """The values of the literals."""

@final
class BoundAlwaysTrue(BoundExpression):
    """`AlwaysTrue`, bound."""

@final
class BoundAlwaysFalse(BoundExpression):
    """`AlwaysFalse`, bound."""

@final
class BoundAnd(BoundExpression):
    """`And`, bound."""

    @property
    def left(self) -> BoundExpression:
        """The first side."""

    @property
    def right(self) -> BoundExpression:
        """The other side."""

@final
class BoundOr(BoundExpression):
    """`Or`, bound."""

    @property
    def left(self) -> BoundExpression:
        """The first side."""

    @property
    def right(self) -> BoundExpression:
        """The other side."""

@final
class BoundNot(BoundExpression):
    """`Not`, bound."""

    @property
    def child(self) -> BoundExpression:
        """What is negated."""

@final
class BoundIsNull(BoundUnaryPredicate):
    """`IsNull`, bound."""

@final
class BoundNotNull(BoundUnaryPredicate):
    """`NotNull`, bound."""

@final
class BoundIsNaN(BoundUnaryPredicate):
    """`IsNaN`, bound."""

@final
class BoundNotNaN(BoundUnaryPredicate):
    """`NotNaN`, bound."""

@final
class BoundEqualTo(BoundLiteralPredicate):
    """`EqualTo`, bound."""

@final
class BoundNotEqualTo(BoundLiteralPredicate):
    """`NotEqualTo`, bound."""

@final
class BoundLessThan(BoundLiteralPredicate):
    """`LessThan`, bound."""

@final
class BoundLessThanOrEqual(BoundLiteralPredicate):
    """`LessThanOrEqual`, bound."""

@final
class BoundGreaterThan(BoundLiteralPredicate):
    """`GreaterThan`, bound."""

@final
class BoundGreaterThanOrEqual(BoundLiteralPredicate):
    """`GreaterThanOrEqual`, bound."""

@final
class BoundStartsWith(BoundLiteralPredicate):
    """`StartsWith`, bound."""

@final
class BoundNotStartsWith(BoundLiteralPredicate):
    """`NotStartsWith`, bound."""

@final
class BoundIn(BoundSetPredicate):
    """`In`, bound."""

@final
class BoundNotIn(BoundSetPredicate):
    """`NotIn`, bound."""

@final
class BoundStIntersects(BoundPredicate):
    """`StIntersects`, bound."""

    @property
    def envelope(self) -> tuple[float, float, float, float]:
        """The box, as ``(xmin, ymin, xmax, ymax)``."""

@final
class BoundStDisjoint(BoundPredicate):
    """`StDisjoint`, bound."""

    @property
    def envelope(self) -> tuple[float, float, float, float]:
        """The box, as ``(xmin, ymin, xmax, ymax)``."""

def parse_expression(text: str) -> Expression:
    """Return the expression of a text like SQL; an invalid one raises ``InvalidArgumentError``."""

def filter_expression(filter: Expression | str) -> Expression:
    """Return the expression of a filter of rows: text means what SQL means, where null passes neither != nor NOT."""

def expression_from_json(json: _Json | bool, schema: Schema | None = None) -> Expression:
    """Return the expression of the REST protocol's JSON.

    With a schema, literals are single values of their columns' types.
    """

def joined_expression(expressions: list[Expression | str], *, conjunction: bool) -> Expression:
    """Return all of the expressions joined by ``AND``, or by ``OR``."""

class UnboundPredicate(Expression):
    """A test of one term."""

    @property
    def term(self) -> Term:
        """What is tested."""

class UnaryPredicate(UnboundPredicate):
    """A test without literals."""

class LiteralPredicate(UnboundPredicate):
    """A comparison with one literal."""

    @property
    def literal(self) -> Literal:
        """What the term is compared with."""

    @property
    def value(self) -> Literal:
        """What the term is compared with; the other name that PyIceberg has for it."""

class SetPredicate(UnboundPredicate):
    """A comparison with several literals."""

    @property
    def literals(self) -> set[Literal]:
        """What the term is compared with."""

@final
class AlwaysTrue(Expression):
    """Match every row."""

    def __new__(cls) -> AlwaysTrue: ...

@final
class AlwaysFalse(Expression):
    """Match no row."""

    def __new__(cls) -> AlwaysFalse: ...

@final
class And(Expression):
    """Match rows that all match."""

    def __new__(cls, left: Expression | str, right: Expression | str, *rest: Expression | str) -> And:
        """Join expressions; where one of them is a constant, the result is what is left of the others."""

    @property
    def left(self) -> Expression:
        """The first side."""

    @property
    def right(self) -> Expression:
        """The other side."""

@final
class Or(Expression):
    """Match rows that any matches."""

    def __new__(cls, left: Expression | str, right: Expression | str, *rest: Expression | str) -> Or:
        """Join expressions; where one of them is a constant, the result is what is left of the others."""

    @property
    def left(self) -> Expression:
        """The first side."""

    @property
    def right(self) -> Expression:
        """The other side."""

@final
class Not(Expression):
    """Match rows that the child does not match."""

    def __new__(cls, child: Expression | str) -> Not:
        """Negate an expression; the result is the child of another `Not`, and the other one of the constants."""

    @property
    def child(self) -> Expression:
        """What is negated."""

@final
class IsNull(UnaryPredicate):
    """Match null."""

    def __new__(cls, term: Term | str) -> IsNull: ...

@final
class NotNull(UnaryPredicate):
    """Match values that are not null."""

    def __new__(cls, term: Term | str) -> NotNull: ...

@final
class IsNaN(UnaryPredicate):
    """Match NaN."""

    def __new__(cls, term: Term | str) -> IsNaN: ...

@final
class NotNaN(UnaryPredicate):
    """Match values that are not NaN."""

    def __new__(cls, term: Term | str) -> NotNaN: ...

@final
class EqualTo(LiteralPredicate):
    """Match what equals the literal."""

    def __new__(cls, term: Term | str, literal: object) -> EqualTo: ...

@final
class NotEqualTo(LiteralPredicate):
    """Match what does not equal the literal, null included."""

    def __new__(cls, term: Term | str, literal: object) -> NotEqualTo: ...

@final
class LessThan(LiteralPredicate):
    """Match values less than the literal."""

    def __new__(cls, term: Term | str, literal: object) -> LessThan: ...

@final
class LessThanOrEqual(LiteralPredicate):
    """Match values less than or equal to the literal."""

    def __new__(cls, term: Term | str, literal: object) -> LessThanOrEqual: ...

@final
class GreaterThan(LiteralPredicate):
    """Match values greater than the literal."""

    def __new__(cls, term: Term | str, literal: object) -> GreaterThan: ...

@final
class GreaterThanOrEqual(LiteralPredicate):
    """Match values greater than or equal to the literal."""

    def __new__(cls, term: Term | str, literal: object) -> GreaterThanOrEqual: ...

@final
class StartsWith(LiteralPredicate):
    """Match strings that start with the literal."""

    def __new__(cls, term: Term | str, literal: object) -> StartsWith: ...

@final
class NotStartsWith(LiteralPredicate):
    """Match strings that do not start with the literal, and null."""

    def __new__(cls, term: Term | str, literal: object) -> NotStartsWith: ...

@final
class In(SetPredicate):
    """Match values equal to one of the literals."""

    def __new__(cls, term: Term | str, literals: Iterable[object]) -> In: ...

@final
class NotIn(SetPredicate):
    """Match values equal to none of the literals, including null."""

    def __new__(cls, term: Term | str, literals: Iterable[object]) -> NotIn: ...

@final
class StIntersects(UnboundPredicate):
    """Match geometries that have a point in a box, given as ``(xmin, ymin, xmax, ymax)``; its edges belong to it."""

    def __new__(cls, term: Term | str, envelope: Iterable[float]) -> StIntersects: ...
    @property
    def envelope(self) -> tuple[float, float, float, float]:
        """The box."""

@final
class StDisjoint(UnboundPredicate):
    """Match geometries that have no point in a box, given as ``(xmin, ymin, xmax, ymax)``, empty ones too."""

    def __new__(cls, term: Term | str, envelope: Iterable[float]) -> StDisjoint: ...
    @property
    def envelope(self) -> tuple[float, float, float, float]:
        """The box."""

# manifests

def read_manifest_list(data: bytes, /) -> ArrowTable:
    """Return the manifests of a manifest list, one row each."""

def read_manifest(
    data: bytes,
    /,
    *,
    manifest: Mapping[str, object] | None = None,
    partition_type: object = None,
    metrics: bool = True,
    metrics_of: list[int] | None = None,
    live_only: bool = False,
) -> ArrowTable:
    """Return the entries of a manifest, one row each.

    ``manifest`` is its row in the manifest list, from which entries inherit; ``partition_type`` the type of its tuples.
    Metrics are those of all columns, or of the fields ``metrics_of``, or none. With ``live_only``, deleted files are
    left out.
    """

def manifest_cache_info() -> tuple[int, int, int, int, int]:
    """Return the state of the manifest cache: manifests, bytes, the limit in bytes, hits and misses."""

def clear_manifest_cache() -> None:
    """Remove all manifests from the cache."""

def resize_manifest_cache(max_bytes: int, /) -> None:
    """Set the limit of the manifest cache, in bytes; 0 turns it off."""

# Puffin files and deletion vectors

@final
class DeletionVector:
    """The deleted rows of one data file (table specification v3, "Deletion Vectors")."""

    def __new__(cls, positions: Sequence[int] = ..., /) -> DeletionVector:
        """Take row positions, in any order, repeated or not."""

    @staticmethod
    def from_bytes(blob: bytes, /, *, record_count: int | None = None) -> DeletionVector:
        """Read a blob of type ``deletion-vector-v1``.

        Length, magic, checksum and bitmap are checked, and the number of rows where ``record_count`` is given; anything
        else than what the specification says raises ``CorruptDataError``.
        """

    def to_bytes(self) -> bytes:
        """Write the blob."""

    @property
    def cardinality(self) -> int:
        """How many rows are deleted."""

    def positions(self) -> pa.UInt64Array:
        """Return the deleted positions, ascending."""

    def live_mask(self, *, first_row: int, row_count: int) -> pa.BooleanArray:
        """Return which rows of a window of the data file are live: ``row_count`` values, ``True`` for each live row."""

    def union(self, other: DeletionVector) -> DeletionVector:
        """Return the union of both."""

    def __contains__(self, position: int, /) -> bool: ...
    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...

# data and delete files

@disjoint_base
class ContentFile:
    """A file of a table, as a manifest describes it ("Data File Fields"): a `DataFile` or a `DeleteFile`."""

    @property
    def content(self) -> OneOf["data", "position_deletes", "equality_deletes"]:
        """What the file holds."""

    @property
    def file_path(self) -> str:
        """Its location."""

    @property
    def file_format(self) -> OneOf["parquet", "orc", "avro", "puffin"] | None:
        """Its format."""

    @property
    def spec_id(self) -> int:
        """The partition spec that it was written with."""

    @property
    def partition(self) -> tuple[object, ...] | dict[str, object]:
        """Partition values as they were passed: in the order of the spec, or by the names of its fields."""

    @property
    def record_count(self) -> int:
        """Number of rows, or of deleted positions."""

    @property
    def file_size_in_bytes(self) -> int:
        """Length in bytes."""

    @property
    def column_sizes(self) -> dict[int, int] | None:
        """Bytes of each column, by field id."""

    @property
    def value_counts(self) -> dict[int, int] | None:
        """Number of values of each column, including nulls and NaNs."""

    @property
    def null_value_counts(self) -> dict[int, int] | None:
        """Number of nulls of each column."""

    @property
    def nan_value_counts(self) -> dict[int, int] | None:
        """Number of NaNs of each column."""

    @property
    def lower_bounds(self) -> dict[int, bytes] | None:
        """Lower bound of each column, as the bytes of a single value (`icefield.values.to_bytes`)."""

    @property
    def upper_bounds(self) -> dict[int, bytes] | None:
        """Upper bound of each column, as the bytes of a single value."""

    @property
    def key_metadata(self) -> bytes | None:
        """How the file is encrypted."""

    @property
    def split_offsets(self) -> list[int] | None:
        """Offsets at which the file may be split, ascending."""

    @property
    def equality_ids(self) -> list[int] | None:
        """Field ids that an equality delete file compares."""

    @property
    def sort_order_id(self) -> int | None:
        """The sort order that its rows are in."""

    @property
    def first_row_id(self) -> int | None:
        """Row id of its first row (version 3)."""

    @property
    def referenced_data_file(self) -> str | None:
        """The only data file that its deletes apply to."""

    @property
    def content_offset(self) -> int | None:
        """Where in its file a deletion vector begins."""

    @property
    def content_size_in_bytes(self) -> int | None:
        """Length of a deletion vector."""

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class DataFile(ContentFile):
    """A data file.

    Parameters are the fields of the specification. ``partition`` is a sequence of values in the order of the partition
    spec, or a dict by the names of its fields; values are converted to the types of the table when the file is added
    to one. Bounds are the bytes of single values.
    """

    def __new__(
        cls,
        *,
        content: OneOf["data"] | int | None = None,
        file_path: str,
        file_format: str,
        spec_id: int = 0,
        partition: Sequence[object] | Mapping[str, object] = (),
        record_count: int,
        file_size_in_bytes: int,
        column_sizes: Mapping[int, int] | None = None,
        value_counts: Mapping[int, int] | None = None,
        null_value_counts: Mapping[int, int] | None = None,
        nan_value_counts: Mapping[int, int] | None = None,
        lower_bounds: Mapping[int, bytes] | None = None,
        upper_bounds: Mapping[int, bytes] | None = None,
        key_metadata: bytes | None = None,
        split_offsets: Sequence[int] | None = None,
        equality_ids: Sequence[int] | None = None,
        sort_order_id: int | None = None,
        first_row_id: int | None = None,
        referenced_data_file: str | None = None,
        content_offset: int | None = None,
        content_size_in_bytes: int | None = None,
    ) -> DataFile: ...

@final
class ManifestFile:
    """A manifest, as a manifest list describes it ("Manifest Lists").

    Parameters are the fields of the specification, as in a row of `icefield.manifests.read_list`.
    """

    def __new__(
        cls,
        *,
        manifest_path: str,
        manifest_length: int,
        partition_spec_id: int,
        content: OneOf["data", "deletes"] | int = "data",
        sequence_number: int = -1,
        min_sequence_number: int = -1,
        added_snapshot_id: int | None = None,
        added_files_count: int | None = None,
        existing_files_count: int | None = None,
        deleted_files_count: int | None = None,
        added_rows_count: int | None = None,
        existing_rows_count: int | None = None,
        deleted_rows_count: int | None = None,
        partitions: Sequence[Mapping[str, object]] | None = None,
        key_metadata: bytes | None = None,
        first_row_id: int | None = None,
    ) -> ManifestFile: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    @property
    def manifest_path(self) -> str:
        """Location."""

    @property
    def manifest_length(self) -> int:
        """Length in bytes."""

    @property
    def partition_spec_id(self) -> int:
        """The partition spec of its files."""

    @property
    def content(self) -> OneOf["data", "deletes"]:
        """What it lists."""

    @property
    def sequence_number(self) -> int:
        """Sequence number of the snapshot that added it; -1 before that, 0 in version 1."""

    @property
    def min_sequence_number(self) -> int:
        """The smallest data sequence number of its live files; -1 where they inherit that of the snapshot."""

    @property
    def added_snapshot_id(self) -> int | None:
        """The snapshot that added it; ``None`` before that."""

    @property
    def added_files_count(self) -> int | None:
        """Number of added files."""

    @property
    def existing_files_count(self) -> int | None:
        """Number of existing files."""

    @property
    def deleted_files_count(self) -> int | None:
        """Number of deleted files."""

    @property
    def added_rows_count(self) -> int | None:
        """Number of rows of added files."""

    @property
    def existing_rows_count(self) -> int | None:
        """Number of rows of existing files."""

    @property
    def deleted_rows_count(self) -> int | None:
        """Number of rows of deleted files."""

    @property
    def partitions(self) -> list[dict[str, object]] | None:
        """The values of each partition field: whether one is null or NaN, and bounds as the bytes of single values."""

    @property
    def key_metadata(self) -> bytes | None:
        """How it is encrypted."""

    @property
    def first_row_id(self) -> int | None:
        """First row id of its rows without one (version 3)."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class ManifestWriter:
    """A writer of one manifest, without snapshot id."""

    def __new__(
        cls, state: TableState, spec_id: int, content: OneOf["data", "deletes"], location: str | None = None
    ) -> ManifestWriter: ...
    def add(self, file: ContentFile, sequence_number: int | None = None) -> None:
        """Add a file that the commit adds."""

    def existing(
        self, file: ContentFile, snapshot_id: int, sequence_number: int, file_sequence_number: int | None = None
    ) -> None:
        """Add a file that the table has."""

    def finish(self) -> ManifestFile:
        """Write the manifest."""

@final
class DeleteFile(ContentFile):
    """A file of position or equality deletes, or a deletion vector (its format is ``puffin``).

    Parameters are those of `DataFile`. A deletion vector needs ``referenced_data_file``, ``content_offset`` and
    ``content_size_in_bytes``, equality deletes need ``equality_ids``.
    """

    def __new__(
        cls,
        *,
        content: OneOf["position_deletes", "equality_deletes"] | int | None = None,
        file_path: str,
        file_format: str,
        spec_id: int = 0,
        partition: Sequence[object] | Mapping[str, object] = (),
        record_count: int,
        file_size_in_bytes: int,
        column_sizes: Mapping[int, int] | None = None,
        value_counts: Mapping[int, int] | None = None,
        null_value_counts: Mapping[int, int] | None = None,
        nan_value_counts: Mapping[int, int] | None = None,
        lower_bounds: Mapping[int, bytes] | None = None,
        upper_bounds: Mapping[int, bytes] | None = None,
        key_metadata: bytes | None = None,
        split_offsets: Sequence[int] | None = None,
        equality_ids: Sequence[int] | None = None,
        sort_order_id: int | None = None,
        first_row_id: int | None = None,
        referenced_data_file: str | None = None,
        content_offset: int | None = None,
        content_size_in_bytes: int | None = None,
    ) -> DeleteFile: ...

# variants

@final
class Variant:
    """A value of any type: numbers, texts, dates, objects, arrays (Parquet's ``VariantEncoding.md``).

    Two variants are equal if their values have the same types and are equal, however they are encoded.
    """

    def __new__(cls, metadata: bytes, value: bytes) -> Variant:
        """Take the two parts; anything that the specification does not allow raises ``CorruptDataError``."""

    @staticmethod
    def from_python(object: object, /) -> Variant:
        """Encode a Python object: see the table of ``icefield.variant``."""

    @staticmethod
    def from_json(text: str, /) -> Variant:
        """Encode the value of a JSON text, with the types of `icefield.variant.from_json`."""

    @property
    def metadata(self) -> bytes:
        """The dictionary of field names."""

    @property
    def value(self) -> bytes:
        """The encoded value."""

    def to_python(self) -> Any:
        """Return the Python object that stands for the value."""

    def to_json(self) -> str:
        """Return the JSON text of the value."""

    def get(self, path: str, /) -> Variant | None:
        """Return the value at a path such as ``$.a.b[0]`` or ``$['user.name']``; None where there is none."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

def variants_from_json(texts: object, /) -> pa.StructArray:
    """Return an array of the variants of JSON texts."""

def variants_from_python(objects: Iterable[object], /) -> pa.StructArray:
    """Return an array of the variants of Python objects."""

def variants_to_json(array: object, /) -> pa.StringArray:
    """Return the JSON texts of an array of variants."""

def variants_to_python(array: object, /) -> list[Any]:
    """Return the Python objects of an array of variants."""

def read_puffin(data: bytes, /) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return the properties of a Puffin file, and its blobs with their decompressed bytes."""

# storage

HIDDEN: str

def shown_property(name: str, value: str) -> str:
    """Return the value of a property as messages show it: without secrets."""

def redacted(text: str) -> str:
    """Return a text without the users, passwords and queries of the URLs in it."""

@final
class Storage:
    """Where files are: the local disk, memory, S3, GCS, Azure or HTTP, by the scheme of a location.

    ``relocate`` maps old prefixes of locations to new ones, for tables that were moved or copied. Properties that
    storage does not read, such as the credentials of a catalog, are dropped. ``renewal`` gets other credentials before
    those in the properties expire: ``due_ms`` and ``expires_ms`` say when to ask and when they expire, in milliseconds
    from the epoch, or ``None``; ``renew()`` returns other properties, and both times for them. With the property
    ``s3.remote-signing-enabled`` its ``sign(method, region, uri, headers, body)`` signs each request to S3: it returns
    the URL to send it to, headers to add, and whether the signature may be used again. ``prefixes`` has storages whose
    credentials are used for locations that begin with their prefix, the longest one that fits.
    """

    def __new__(
        cls,
        properties: Mapping[str, str] = ...,
        relocate: Mapping[str, str] = ...,
        renewal: StorageRenewal | None = None,
        prefixes: Mapping[str, Storage] = ...,
    ) -> Storage: ...
    @property
    def renewal(self) -> StorageRenewal | None:
        """What renews its credentials; ``None`` if they do not expire."""
    def with_keys(self, client: object) -> Storage:
        """Return a storage that can read and write encrypted tables, whose keys the client has.

        It pickles without the client.
        """
    def with_list_keys(self, keys: dict[str, bytes]) -> Storage:
        """Return a storage that can read the manifest lists whose keys are given, as `Inspect.list_keys` has them."""

    @property
    def has_keys(self) -> bool:
        """Whether it can read and write encrypted tables."""

    def read(self, path: str) -> bytes:
        """Return all bytes of a file; a missing one raises ``MissingFileError``."""

    def exists(self, path: str) -> bool:
        """Return whether the file exists."""

    def write(self, path: str, data: bytes, *, overwrite: bool = False) -> None:
        """Write a whole file; an existing one raises ``ExistingFileError`` unless it is to be replaced."""

    def delete(self, path: str) -> None:
        """Delete a file; a missing one is not an error."""

    def list(self, folder: str) -> Sequence[tuple[str, int]]:
        """Return the files below a folder, with their lengths in bytes."""

    def resolve(self, path: str) -> str:
        """Return the location that a path is read from, after ``relocate``, as a URL."""

# tables

def aes_gcm_encrypt(key: bytes, data: bytes) -> bytes:
    """Encrypt bytes by a key of 16, 24 or 32 bytes: a random nonce, the ciphertext, the tag."""

def aes_gcm_decrypt(key: bytes, data: bytes) -> bytes:
    """Decrypt what `aes_gcm_encrypt` returned; other bytes raise ``InvalidArgumentError``."""

@final
class TableState:
    """A table as one metadata file describes it; a commit returns a new state."""

    @staticmethod
    def load(storage: Storage, metadata_location: str) -> TableState:
        """Read a metadata file."""

    @staticmethod
    def of(storage: Storage, metadata_location: str, metadata: TableMetadata) -> TableState:
        """Take metadata that are at hand, such as those that a catalog has answered with, and read nothing.

        The location is that of the metadata file; it is empty where there is none.
        """

    def refresh(self, catalog: object, identifier: object) -> TableState:
        """Return the state that the catalog has now."""

    @staticmethod
    def create(
        storage: Storage,
        schema: object,
        location: str,
        partition: Sequence[str] | _Json,
        sort: Sequence[str] | _Json,
        properties: Mapping[str, str],
    ) -> TableState:
        """Write the metadata file of a new table."""

    @staticmethod
    def stage(
        storage: Storage,
        schema: object,
        location: str,
        partition: Sequence[str] | _Json,
        sort: Sequence[str] | _Json,
        properties: Mapping[str, str],
    ) -> TableState:
        """Define a new table that is written nowhere yet."""

    @staticmethod
    def create_by(
        storage: Storage, catalog: object, identifier: object, requirements: _Json, updates: _Json
    ) -> TableState:
        """Create a table by updates of the REST protocol, if there is none of its name."""

    def commit(self, catalog: object, identifier: object, requirements: _Json, updates: _Json) -> TableState:
        """Commit updates of the REST protocol, if the table meets the requirements, and return the new state."""

    def purge(self, warehouse: str | None = None) -> tuple[int, list[str]]:
        """Delete the files that the metadata names.

        Return how many could not be read or deleted, and the first reasons. Nothing is deleted outside of the folders
        of the table, by way of a link, or in the folder ``warehouse`` itself or above it.
        """

    @property
    def storage(self) -> Storage:
        """Where the files of the table are."""

    @property
    def metadata_location(self) -> str:
        """Location of the metadata file."""

    @property
    def metadata(self) -> TableMetadata:
        """The metadata."""

    def metadata_json(self) -> str:
        """Return the metadata as JSON text."""

    @property
    def location(self) -> str:
        """The base location of the table."""

    @property
    def format_version(self) -> int:
        """Version of the table format."""

    @property
    def table_uuid(self) -> str | None:
        """UUID of the table; old tables of version 1 may have none."""

    @property
    def current_snapshot_id(self) -> int | None:
        """Id of the current snapshot; ``None`` if the table is empty."""

    def schema(self, schema_id: int | None = None) -> Schema:
        """Return the schema with this id, or the current one."""

# transactions

@type_check_only
class SnapshotKind(TypedDict):
    """How a snapshot is made; with ``make`` at once, otherwise when it is committed."""

    branch: str
    snapshot_properties: dict[str, str]
    stage_only: bool
    merge: bool
    make: bool

@type_check_only
class FileChanges(TypedDict):
    """Files that are added and removed, and the checks that are asked for."""

    added: list[DataFile]
    added_deletes: list[tuple[DeleteFile, int | None]]
    removed: list[DataFile]
    removed_deletes: list[DeleteFile]
    removed_paths: list[str]
    filters: list[object]
    case_sensitive: bool
    from_snapshot: int | None
    conflict_filter: object
    data_sequence_number: int | None
    referenced: list[str]
    checks: list[str]

@final
class Transaction:
    """Changes of a table, applied to its current state at each attempt to commit them."""

    def __new__(cls, state: TableState, idempotency_key: str | None = None) -> Transaction: ...
    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata with the changes so far."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""

    def count(self, traffic: Traffic | None = None) -> None:
        """Count what the changes from now on read and write; nothing is counted without."""

    def stage(self, updates: _Json) -> None:
        """Add updates of the REST protocol, created from `metadata`."""

    def append(
        self,
        rows: object,
        *,
        branch: str = ...,
        snapshot_properties: Mapping[str, str] = ...,
        allow_missing: bool = True,
        ignore_extra: bool = False,
        evolve: bool = False,
        dry_run: bool = False,
        properties: Mapping[str, str] = ...,
    ) -> _RowCounts:
        """Write rows to data files, to be appended with the other changes: what is done."""

    def append_files(self, files: Sequence[DataFile], manifests: Sequence[ManifestFile], kind: SnapshotKind) -> None:
        """Append data files, and those of manifests, that are written already."""

    def rewrite_manifests(
        self,
        columns: Sequence[str] | None,
        function: Callable[[pa.Table], object] | None,
        only: Callable[[pa.Table], object] | None,
        deleted: Sequence[str],
        added: Sequence[ManifestFile],
        kind: SnapshotKind,
        *,
        with_deletes: bool = False,
        dry_run: bool = False,
    ) -> tuple[int, int, int, int, int, int] | None:
        """Write manifests of data files again, their entries grouped in another way; take out and add manifests.

        With ``with_deletes``, manifests of delete files are written again as well.

        With ``dry_run`` nothing is done, and the numbers and bytes of replaced and of new manifests, the number of
        those that stay, and that of entries are returned.
        """

    def change_files(self, operation: str, changes: FileChanges, kind: SnapshotKind) -> None:
        """Add and remove files that are described, by the operation of this name."""

    def replace(
        self,
        schema: object,
        location: str | None,
        partition: Sequence[str] | _Json,
        sort: Sequence[str] | _Json,
        properties: Mapping[str, str],
    ) -> None:
        """Replace the table by a definition; its location stays where none is passed."""

    def create(self, catalog: object, identifier: object) -> TableState:
        """Create the table, of which no catalog knows yet, with the changes."""

    def set_current_snapshot(self, snapshot_id: int, make: bool) -> None:
        """Make a snapshot the current one, whichever is by then."""

    def cherry_pick(self, snapshot_id: int, make: bool) -> None:
        """Make the changes of a snapshot again at the end of the main branch."""

    def add_files(
        self,
        paths: Sequence[str],
        *,
        branch: str = ...,
        snapshot_properties: Mapping[str, str] = ...,
        check_duplicates: bool = True,
        partitions: Mapping[str, Mapping[str, object]] = ...,
        read_rows: bool = False,
        dry_run: bool = False,
    ) -> _RowCounts:
        """Take files that others have written into the table with the other changes: what is done."""

    def commit(self, catalog: object, identifier: object) -> TableState:
        """Commit the changes."""

    def abort(self) -> None:
        """Abandon the changes and delete the files written for them."""

@type_check_only
class MergeClause(TypedDict):
    """A clause of a merge; functions are called with rows and the schema of what is asked for."""

    name: str
    when: str
    filter: JoinCondition | None
    condition: Callable[[pa.Table, pa.Schema | None], pa.Array] | None
    action: str
    taken: list[tuple[str, str]]
    texts: list[tuple[str, str]]
    computed: list[str]
    function: Callable[[pa.Table, pa.Schema | None], pa.Array] | None

def column_in_text(text: str, columns: Sequence[str]) -> str | None:
    """Return the part of a text that looks like one of some columns; None where the text is plainly a value."""

@final
class JoinCondition:
    """A filter of joined rows, in which two columns may be compared."""

    def __new__(cls, condition: object) -> JoinCondition: ...

#: Rows removed and added; files dropped, rewritten and marked; bytes of rewritten files; files added, and their bytes;
#: bytes of dropped files.
_RowCounts: TypeAlias = tuple[int, int, int, int, int, int, int, int, int]

@final
class FoundRows:
    """Rows of a branch that a filter matches."""

    def rows(self) -> ArrowStream:
        """Return the rows, with all columns of the table and, from version 3 on, ``_row_id``."""

@final
class RowChanges:
    """How rows are changed in a transaction."""

    def __new__(
        cls,
        transaction: Transaction,
        *,
        branch: str = ...,
        snapshot_properties: Mapping[str, str] = ...,
        mode: str | None = None,
        isolation: str | None = None,
        dry_run: bool = False,
        memory_limit: int | None = None,
        properties: Mapping[str, str] = ...,
    ) -> RowChanges: ...
    def delete(self, filter: Expression | str | None, *, case_sensitive: bool = True) -> _RowCounts:
        """Delete the rows that a filter matches; all without one."""

    def overwrite(
        self,
        rows: object,
        filter: Expression | str | None,
        *,
        case_sensitive: bool = True,
        allow_missing: bool = True,
        evolve: bool = False,
        check_rows: bool = False,
    ) -> _RowCounts:
        """Delete the rows that a filter matches, all without one, and add others."""

    def overwrite_partitions(
        self, rows: object, *, rewrite: bool = False, allow_missing: bool = True, evolve: bool = False
    ) -> _RowCounts:
        """Add rows in place of all others of their partitions."""

    def find(self, filter: Expression | str | None, *, case_sensitive: bool = True) -> FoundRows:
        """Find the rows that a filter matches; all without one."""

    def update(self, found: FoundRows, rows: object) -> _RowCounts:
        """Remove found rows and add others in their place."""

    def upsert(
        self,
        rows: object,
        join_columns: Sequence[str],
        *,
        update_matched: bool = True,
        insert_others: bool = True,
        case_sensitive: bool = True,
        allow_missing: bool = True,
        evolve: bool = False,
        memory_limit: int | None = None,
    ) -> tuple[int, int, _RowCounts]:
        """Change the rows of the table that have the keys of others, and add the rest."""

    def merge(
        self,
        rows: object,
        on: Sequence[tuple[str, str]],
        clauses: Sequence[MergeClause],
        *,
        mentions: Sequence[str] = ...,
        case_sensitive: bool = True,
        allow_missing: bool = True,
        ignore_extra: bool = False,
        evolve: bool = False,
        memory_limit: int | None = None,
    ) -> tuple[int, int, int, _RowCounts]:
        """Change, delete and add rows by those of a source: rows updated, inserted and deleted, counts."""

@final
class KeyedBatch:
    """Upserts and deletes by key that become one snapshot."""

    def __new__(
        cls,
        transaction: Transaction,
        columns: Sequence[str],
        *,
        case_sensitive: bool = True,
        memory_limit: int | None = None,
    ) -> KeyedBatch: ...
    @property
    def is_empty(self) -> bool:
        """Whether there are no changes."""

    def upsert(self, rows: object, *, allow_missing: bool = True) -> None:
        """Take rows that replace those with their keys."""

    def delete(self, rows: object) -> None:
        """Take keys whose rows are deleted."""

    def write(self, branch: str, snapshot_properties: Mapping[str, str]) -> tuple[int, int]:
        """Write the changes and add their snapshot to the transaction.

        Return the numbers of rows written and of keys.
        """

# partitioning

@final
class PartitionField:
    """A field of a partition spec: a transform of a column, and the name and id of its values."""

    def __new__(
        cls, source_id: int | Sequence[int], field_id: int, transform: Transform | str, name: str
    ) -> PartitionField: ...
    @property
    def source_id(self) -> int | None:
        """Id of the column; for a transform of several columns, that of the first one."""

    @property
    def source_ids(self) -> list[int]:
        """Ids of all columns that the transform is computed from."""

    @property
    def field_id(self) -> int:
        """Id of the partition values, from 1000 on."""

    @property
    def transform(self) -> Transform:
        """The transform."""

    @property
    def name(self) -> str:
        """Name of the partition values."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class PartitionSpec:
    """How the files of a table are partitioned ("Partitioning")."""

    def __new__(cls, *fields: PartitionField, spec_id: int = 0) -> PartitionSpec: ...
    @staticmethod
    def from_json(json: _Json) -> PartitionSpec:
        """Return the spec of a JSON form; fields without ids, of old tables, get ids from 1000 on."""

    def to_json(self) -> str:
        """Return the JSON form (Appendix C) as text."""

    @property
    def spec_id(self) -> int:
        """Id of the spec within the table."""

    @property
    def fields(self) -> list[PartitionField]:
        """The fields, in the order of the partition values."""

    @property
    def last_assigned_field_id(self) -> int:
        """The highest id of a field; 999 if there are no fields."""

    def is_unpartitioned(self) -> bool:
        """Return whether no field has values."""

    def fields_by_source_id(self, field_id: int) -> list[PartitionField]:
        """Return the fields that are computed from this column."""

    def compatible_with(self, other: PartitionSpec) -> bool:
        """Return whether both specs partition in the same way, whatever their ids."""

    def partition_type(self, schema: Schema) -> StructType:
        """Return the type of the partition values of a table with this schema."""

    @property
    def source_id_to_fields_map(self) -> dict[int, list[PartitionField]]:
        """The fields by the ids of the columns that they are made of."""

    def partition_to_path(self, data: Sequence[object] | Mapping[str, object], schema: Schema) -> str:
        """Return the folders of a partition: ``"day=2020-01-01/id_bucket=3"``."""

    def check_compatible(self, schema: Schema, allow_missing_fields: bool = False) -> None:
        """Raise unless the spec can partition new files of a table with this schema.

        With ``allow_missing_fields``, its columns may have been dropped.
        """

    def check(self, schema: Schema) -> None:
        """Raise ``InvalidArgumentError`` if new files of a table with this schema cannot be partitioned by the spec."""

    def __len__(self) -> int: ...
    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# sorting

@final
class SortField:
    """A field of a sort order."""

    def __new__(
        cls,
        source_id: int | Sequence[int],
        transform: Transform | str | None = None,
        direction: str | None = None,
        null_order: str | None = None,
    ) -> SortField: ...
    @property
    def source_id(self) -> int | None:
        """Id of the column; for a transform of several columns, that of the first one."""

    @property
    def source_ids(self) -> list[int]:
        """Ids of all columns that the transform is computed from."""

    @property
    def transform(self) -> Transform:
        """The transform."""

    @property
    def direction(self) -> SortDirection:
        """``asc`` or ``desc``."""

    @property
    def null_order(self) -> NullOrder:
        """``nulls-first`` or ``nulls-last``."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class SortOrder:
    """How the rows of a file are sorted ("Sorting")."""

    def __new__(cls, *fields: SortField, order_id: int | None = None) -> SortOrder: ...
    @staticmethod
    def from_json(json: _Json) -> SortOrder:
        """Return the order of a JSON form."""

    def to_json(self) -> str:
        """Return the JSON form (Appendix C) as text."""

    @property
    def order_id(self) -> int:
        """Id of the order within the table; 0 is the unsorted order."""

    @property
    def fields(self) -> list[SortField]:
        """The fields, most significant first."""

    @property
    def is_unsorted(self) -> bool:
        """Whether there are no fields."""

    def satisfies(self, other: SortOrder) -> bool:
        """Return whether rows in this order are in the other order as well."""

    def check_compatible(self, schema: Schema) -> None:
        """Raise unless new files of a table with this schema can have the order."""

    def check(self, schema: Schema) -> None:
        """Raise ``InvalidArgumentError`` if new files of a table with this schema cannot have the order."""

    def __len__(self) -> int: ...
    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# name mappings

@final
class MappedField:
    """The names of one field, and of the fields inside it."""

    def __new__(
        cls, field_id: int | None = None, names: Sequence[str] = ..., fields: Sequence[MappedField] | None = None
    ) -> MappedField: ...
    @property
    def field_id(self) -> int | None:
        """Id of the field; without one, the field and the fields inside it are not read."""

    @property
    def names(self) -> list[str]:
        """The names that the field may have."""

    @property
    def fields(self) -> list[MappedField]:
        """The fields inside: those of a struct, ``element`` of a list, ``key`` and ``value`` of a map."""

    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class NameMapping:
    """Field ids by name, for data files without ids ("Name Mapping Serialization")."""

    def __new__(cls, *fields: MappedField) -> NameMapping: ...
    @staticmethod
    def from_json(json: _Json) -> NameMapping:
        """Return the mapping of a JSON form: the text of the property ``schema.name-mapping.default``."""

    @staticmethod
    def from_schema(schema: Schema) -> NameMapping:
        """Return the mapping of a schema: each field by its name."""

    def to_json(self) -> str:
        """Return the JSON form as text."""

    @property
    def fields(self) -> list[MappedField]:
        """The fields of the top level."""

    def find(self, *names: str) -> MappedField | None:
        """Return the mapping of a field, by its name and those of its ancestors; ``None`` if there is none."""

    def __len__(self) -> int: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

# metadata

def table_properties() -> list[tuple[str, str | None, str, str, str, str]]:
    """Return every known table property: name, default, accepted values, support, its reason, and description."""

def nearest_name(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that was probably meant, or ``None``."""

@final
class Snapshot:
    """A state of the rows of a table ("Snapshots")."""

    @staticmethod
    def from_json(json: _Json) -> Snapshot:
        """Return the snapshot of a JSON form (Appendix C)."""

    @property
    def snapshot_id(self) -> int:
        """Id of the snapshot."""

    @property
    def parent_snapshot_id(self) -> int | None:
        """Id of the snapshot before it, if there is one."""

    @property
    def sequence_number(self) -> int:
        """The place of the snapshot among all commits; 0 in version 1."""

    @property
    def timestamp_ms(self) -> int:
        """The time of the commit, in milliseconds from the epoch."""

    @property
    def operation(self) -> str | None:
        """``append``, ``replace``, ``overwrite`` or ``delete``."""

    @property
    def summary(self) -> Summary | None:
        """The summary of the changes as texts, ``operation`` included."""

    @property
    def manifest_list(self) -> str | None:
        """Location of the manifest list."""

    @property
    def manifests(self) -> list[str] | None:
        """Locations of the manifests, if metadata of version 1 has no manifest list."""

    @property
    def schema_id(self) -> int | None:
        """Id of the schema that was current."""

    @property
    def first_row_id(self) -> int | None:
        """The first row id of the rows that the snapshot added (version 3)."""

    @property
    def added_rows(self) -> int | None:
        """An upper bound of the number of rows that were assigned ids (version 3)."""

    @property
    def key_id(self) -> str | None:
        """Id of the key that the manifest list is encrypted with, if it is."""

    def to_json(self) -> str:
        """Return the JSON form (Appendix C) as text."""

    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class SnapshotRef:
    """A branch or tag ("Snapshot References")."""

    @staticmethod
    def from_json(json: _Json) -> SnapshotRef:
        """Return the reference of a JSON form (Appendix C)."""

    @property
    def snapshot_id(self) -> int:
        """Id of the snapshot that is referenced."""

    @property
    def snapshot_ref_type(self) -> SnapshotRefType:
        """``branch`` or ``tag``."""

    @property
    def min_snapshots_to_keep(self) -> int | None:
        """Minimum number of snapshots of the branch that expiry keeps."""

    @property
    def max_snapshot_age_ms(self) -> int | None:
        """Maximum age of the snapshots of the branch that expiry keeps, in milliseconds."""

    @property
    def max_ref_age_ms(self) -> int | None:
        """Maximum age of the reference before expiry removes it, in milliseconds."""

    def to_json(self) -> str:
        """Return the JSON form (Appendix C) as text."""

    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class TableMetadata:
    """The metadata of a table in one state ("Table Metadata"); it never changes, changes return a new one."""

    @staticmethod
    def from_json(json: _Json) -> TableMetadata:
        """Return the metadata of a metadata file: its text or bytes, of any format version, or a dict of its JSON."""

    @staticmethod
    def from_answer(answer: bytes) -> tuple[TableMetadata | None, str] | None:
        """Return the metadata in an answer of the REST protocol, and its other fields as JSON text.

        The metadata is ``None`` if there is none, and all of it if the answer is no JSON object that is read here.
        """

    @staticmethod
    def create(updates: Sequence[_Json] | str, *, now_ms: int | None = None) -> TableMetadata:
        """Return the metadata of a new table that updates of the REST protocol create."""

    def to_json(self) -> str:
        """Return the JSON text, as the format version requires it."""

    def apply(
        self, updates: Sequence[_Json] | str, *, now_ms: int | None = None, previous_file: str | None = None
    ) -> TableMetadata:
        """Return the metadata after these updates of the REST protocol."""

    def check(self, requirements: Sequence[_Json] | str) -> None:
        """Raise ``CommitFailedException`` unless the metadata meets all these requirements of the REST protocol."""

    def requirements_for(self, updates: Sequence[_Json] | str) -> list[str]:
        """Return the requirements of a commit of these updates, as JSON texts."""

    def upgrade(self, version: int, *, now_ms: int | None = None) -> TableMetadata:
        """Return the metadata in a later format version."""

    @property
    def format_version(self) -> int:
        """Version of the table format."""

    @property
    def table_uuid(self) -> str | None:
        """UUID of the table; old tables of version 1 may have none."""

    @property
    def location(self) -> str:
        """The base location, below which new files are written."""

    @property
    def last_sequence_number(self) -> int:
        """The highest sequence number of all snapshots; 0 in version 1."""

    @property
    def last_updated_ms(self) -> int:
        """The time of the last change, in milliseconds from the epoch."""

    @property
    def last_column_id(self) -> int:
        """The highest id that a column has had."""

    @property
    def schemas(self) -> list[Schema]:
        """All schemas."""

    @property
    def current_schema_id(self) -> int:
        """Id of the current schema."""

    def schema(self) -> Schema:
        """Return the current schema."""

    def schema_by_id(self, schema_id: int) -> Schema | None:
        """Return the schema with this id, or ``None``."""

    @property
    def partition_specs(self) -> list[PartitionSpec]:
        """All partition specs."""

    @property
    def default_spec_id(self) -> int:
        """Id of the spec that new files are written with."""

    def spec(self) -> PartitionSpec:
        """Return the spec that new files are written with."""

    def specs(self) -> dict[int, PartitionSpec]:
        """Return all partition specs by their ids."""

    @property
    def last_partition_id(self) -> int:
        """The highest id that a partition field has had."""

    @property
    def sort_orders(self) -> list[SortOrder]:
        """All sort orders."""

    @property
    def default_sort_order_id(self) -> int:
        """Id of the order that new files are sorted in."""

    def sort_order(self) -> SortOrder:
        """Return the order that new files are sorted in."""

    @property
    def properties(self) -> dict[str, str]:
        """The table properties."""

    @property
    def current_snapshot_id(self) -> int | None:
        """Id of the current snapshot; ``None`` if the table is empty."""

    def current_snapshot(self) -> Snapshot | None:
        """Return the current snapshot; ``None`` if the table is empty."""

    @property
    def snapshots(self) -> list[Snapshot]:
        """All snapshots, oldest first."""

    def snapshot_by_id(self, snapshot_id: int) -> Snapshot | None:
        """Return the snapshot with this id, or ``None``."""

    def snapshot_by_name(self, name: str) -> Snapshot | None:
        """Return the snapshot of this branch or tag, or ``None``."""

    def snapshot_as_of(self, timestamp_ms: int) -> Snapshot | None:
        """Return the snapshot that was current at this time, in milliseconds from the epoch, or ``None``."""

    def ancestors(self, snapshot_id: int) -> list[Snapshot]:
        """Return the snapshot and those of its ancestors that have not been expired, newest first."""

    def snapshots_between(
        self,
        *,
        branch: str | None = None,
        start_snapshot_id: int | None = None,
        start_timestamp_ms: int | None = None,
        end_snapshot_id: int | None = None,
        end_timestamp_ms: int | None = None,
    ) -> tuple[int | None, int | None] | None:
        """Return the snapshots of a branch after a start, up to an end, each a snapshot or a time.

        That is the id of the snapshot before the first one and that of the last one, ``None`` where the range is open;
        ``None`` if there are no such snapshots. ``InvalidArgumentError`` if the start is not before the end, or if
        snapshots after the start have been expired.
        """

    @property
    def refs(self) -> dict[str, SnapshotRef]:
        """All branches and tags by their names."""

    @property
    def snapshot_log(self) -> list[SnapshotLogEntry]:
        """Changes of the current snapshot: pairs of milliseconds from the epoch and an id, oldest first."""

    @property
    def metadata_log(self) -> list[MetadataLogEntry]:
        """Earlier metadata files: pairs of milliseconds from the epoch and a location, oldest first."""

    @property
    def statistics(self) -> list[StatisticsFile]:
        """The statistics files of snapshots ("Table Statistics")."""

    @property
    def partition_statistics(self) -> list[PartitionStatisticsFile]:
        """The partition statistics files of snapshots ("Partition Statistics")."""

    @property
    def next_row_id(self) -> int:
        """The first row id that no row has yet (version 3)."""

    def __eq__(self, other: object, /) -> bool: ...

# ORC files

@final
class OrcFile:
    """An ORC file of a storage, or of bytes in memory, open for reading."""

    def __new__(
        cls,
        source: str | bytes,
        /,
        *,
        storage: Storage | None = None,
        keys: object = None,
        timestamp_unit: str = "us",
        out_of_range: str = "null",
        strings: str = "utf8",
        trim_char: bool = True,
        schema: object | None = None,
        positional: bool = False,
        case_sensitive: bool = True,
        overflow: str = "null",
    ) -> OrcFile: ...
    def schema(self, columns: Sequence[str | int] | None = None) -> ArrowSchema:
        """Return the schema that the columns are read with."""

    @property
    def type_description(self) -> str:
        """The type of the rows in ORC's notation, such as ``struct<id:bigint>``."""

    @property
    def nrows(self) -> int:
        """Number of rows."""

    @property
    def nstripes(self) -> int:
        """Number of stripes."""

    @property
    def nstripe_statistics(self) -> int:
        """Number of stripes with statistics."""

    @property
    def file_version(self) -> str:
        """Version of the file format: ``0.11``, ``0.12`` or ``UNSTABLE-PRE-2.0``."""

    @property
    def writer(self) -> str:
        """Name of the implementation that wrote the file."""

    @property
    def writer_version(self) -> str:
        """Version of the writer by the fixes that it has."""

    @property
    def software_version(self) -> str:
        """Version of the software that wrote the file."""

    @property
    def compression(self) -> str:
        """Name of the compression codec."""

    @property
    def compression_size(self) -> int:
        """Size of a compression chunk in bytes; 0 without compression."""

    @property
    def row_index_stride(self) -> int:
        """Rows of a row group; 0 without row indexes."""

    @property
    def lengths(self) -> tuple[int, int, int, int, int]:
        """Lengths in bytes of the file, its content, the stripe statistics, the footer and the postscript."""

    @property
    def metadata(self) -> dict[str, bytes]:
        """The user's metadata."""

    def read(
        self,
        columns: Sequence[str | int] | None = None,
        *,
        predicate: object = None,
        rows: tuple[int, int] | None = None,
        threads: int = 1,
    ) -> ArrowTable:
        """Return all rows, of some columns if they are named, in the order of the file."""

    def read_stripe(
        self, stripe: int, columns: Sequence[str | int] | None = None, *, predicate: object = None
    ) -> ArrowArray:
        """Return the rows of one stripe, which counts from 0, as a struct array."""

    def batches(
        self,
        columns: Sequence[str | int] | None = None,
        *,
        predicate: object = None,
        rows: tuple[int, int] | None = None,
        batch_size: int = 8192,
    ) -> OrcBatches:
        """Return the rows batch by batch."""

    def stream(
        self,
        columns: Sequence[str | int] | None = None,
        *,
        predicate: object = None,
        rows: tuple[int, int] | None = None,
        batch_size: int = 8192,
        threads: int = 1,
    ) -> ArrowStream:
        """Return the rows as they are read; with several ``threads``, stripes are read ahead."""

    def inspect(self, *, runs: bool = False) -> str:
        """Return a description of all parts of the file as JSON; with ``runs``, also of the runs of each stream."""

    def lacking_in_filters(self, stripe: int) -> list[tuple[int, str, int | None]]:
        """Return the columns of a stripe with values that are missing in their Bloom filter."""

    def file_statistics(self) -> str:
        """Return the statistics of the file by column, as JSON."""

    def stripe_statistics(self) -> str:
        """Return the statistics of each stripe by column, as JSON."""

@final
class OrcBatches:
    """The batches of an ORC file, one after the other."""

    def next_batch(self) -> ArrowArray | None:
        """Return the next batch as a struct array; ``None`` at the end."""

@final
class OrcWriter:
    """A writer of one ORC file; after an error, or without `close`, nothing of it stays in a storage."""

    def __new__(
        cls,
        place: str | IO[bytes],
        options: Mapping[str, object],
        /,
        *,
        schema: object | None = None,
        storage: Storage | None = None,
    ) -> OrcWriter: ...
    def write(self, rows: object) -> None:
        """Append rows; after an error the file is discarded."""

    def flush(self) -> None:
        """End the stripe, so that the next rows begin another one."""

    @property
    def memory(self) -> int:
        """Bytes that are buffered for the stripe."""

    def close(self) -> tuple[int, int]:
        """Write the rest of the file, and return its length in bytes and its number of rows."""

    def abort(self) -> None:
        """Discard the file."""

def orc_merge(
    inputs: Sequence[str | bytes], place: str | IO[bytes], /, *, storage: Storage | None = None
) -> tuple[int, int]:
    """Concatenate files without decoding them, and return the length in bytes and the number of rows of the result."""

# scans

@final
class Scan:
    """What is read of a table: a snapshot or the changes of some, some of the columns, some of the rows."""

    def __new__(
        cls,
        table: TableState,
        *,
        row_filter: Expression | str | None = None,
        selected_fields: Sequence[str] | None = None,
        case_sensitive: bool = True,
        snapshot_id: int | None = None,
        as_of_ms: int | None = None,
        reference: str | None = None,
        limit: int | None = None,
        observer: Callable[[dict[str, int], int], object] | None = None,
    ) -> Scan: ...
    @staticmethod
    def incremental(
        table: TableState,
        *,
        changelog: bool,
        from_snapshot: int | str | None = None,
        from_inclusive: bool = False,
        to_snapshot: int | str | None = None,
        branch: str | None = None,
        row_filter: Expression | str | None = None,
        selected_fields: Sequence[str] | None = None,
        case_sensitive: bool = True,
        limit: int | None = None,
        remove_carryovers: bool = False,
        net_changes: bool = False,
        compute_updates: bool = False,
        identifier_columns: Sequence[str] | None = None,
    ) -> Scan:
        """Return a scan of what snapshots changed: the rows that ``append`` snapshots added, or a changelog.

        A snapshot is an id or the name of a tag. The rows of a changelog are compared if carryovers are to be removed,
        or net changes or updates computed.
        """

    @property
    def schema(self) -> Schema:
        """The columns that are read."""

    def plan_request(self, *, stats_fields: Sequence[str] | None = None, min_rows: int | None = None) -> dict[str, Any]:
        """Return the request by which a server is asked for a plan of this scan, as JSON of the REST protocol."""

    def planned_by_server(self, pages: Sequence[dict[str, Any] | str | bytes], storage: Storage) -> Scan:
        """Return this scan of the files that a server planned, pages of scan tasks, in a storage."""

    def engine_read(self) -> EngineRead:
        """Return how the Parquet reader of an engine would read the columns of this scan."""

    @property
    def snapshot_id(self) -> int | None:
        """Id of the snapshot that is read; ``None`` if the table is empty."""

    @property
    def changed_snapshot_ids(self) -> list[int] | None:
        """Ids of the snapshots whose changes are read, oldest first; ``None`` for a scan of a snapshot."""

    def empty(self) -> ArrowTable:
        """Return a table without rows, with the columns that are read."""

    def stream(
        self,
        *,
        schema: object | None = None,
        batch_size: int | None = None,
        memory_limit: int | None = None,
        dictionary_columns: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> ArrowStream:
        """Return the rows as they are read, in the types of ``schema`` if it is given."""

    def collect(
        self,
        *,
        batch_size: int | None = None,
        memory_limit: int | None = None,
        dictionary_columns: Sequence[str] | None = None,
    ) -> ArrowTable:
        """Return all rows."""

    def count(self) -> int:
        """Return the number of rows."""

    def plan(self, *, metrics: bool = False, metrics_of: Sequence[str] | None = None) -> Plan:
        """Return the files that are read, with all metrics, or those of some columns, or none."""

    def plan_stream(self) -> ArrowStream:
        """Return the files that are read, as they are found, with the columns of `Plan.files`."""

    def bounds(self, column: str) -> tuple[ArrowArray, str | None]:
        """Return the smallest and the largest value of a column as an array of both, and why they are unknown.

        Both are null if there is no value, or if they are unknown; the reason is ``None`` if they are known.
        """

    def tasks(
        self,
        plan: Plan,
        *,
        places: AbstractSet[int] | None = None,
        split_size: int | None = None,
        lookback: int | None = None,
        open_file_cost: int | None = None,
        parallelism: int | None = None,
    ) -> list[ReadTask]:
        """Return the tasks of a plan of this scan.

        If ``places`` are given, only of the files at these places in `Plan.files`.
        """

@final
class Traffic:
    """What a change has read and written so far."""

    def __new__(cls) -> Traffic: ...
    @property
    def read(self) -> int:
        """Bytes that were read."""

    @property
    def written(self) -> int:
        """Bytes that were written."""

    @property
    def files(self) -> int:
        """Files that were written whole."""

@final
class Progress:
    """The progress of a scan."""

    def __new__(cls) -> Progress: ...
    @property
    def files(self) -> int:
        """Number of files to read."""

    @property
    def opened(self) -> int:
        """Number of files that have been opened."""

@final
class Plan:
    """The files that a scan reads."""

    def files(self) -> ArrowTable:
        """Return the data files, one row each; of a changelog, the changes."""

    def tasks(
        self,
        split_size: int | None = None,
        *,
        lookback: int | None = None,
        open_file_cost: int | None = None,
        parallelism: int | None = None,
    ) -> ArrowTable:
        """Return the pieces of data files, one row each.

        The columns are the number of the task, the place of the file in `files`, its location, and the first byte and
        the number of bytes of the piece.
        """

    def skippable_by(self, field_ids: Sequence[int]) -> list[int]:
        """Return those of some string columns, whose bounds the plan has, that a filter could skip files by."""

    def obstacles(self, read: EngineRead) -> ArrowTable:
        """Return for each file why an engine does not read it itself: a kind and a text, both null if it may."""

    @property
    def report(self) -> dict[str, int]:
        """Counts of what was scanned and skipped, by their names."""

    @property
    def report_text(self) -> str:
        """The report as text for people."""

    def __len__(self) -> int: ...

@final
class EngineRead:
    """How the Parquet reader of an engine reads the columns of a scan."""

    @property
    def columns(self) -> list[tuple[str, int, str]]:
        """The columns that it reads, those of the filter included: name, field id, and the name to read it by."""

    @property
    def obstacle(self) -> str | None:
        """Why the engine cannot read any of the files; ``None`` if it can."""

    @property
    def partition_columns(self) -> list[str]:
        """Columns whose metrics `Plan.obstacles` needs."""

@final
class ReadTask:
    """Parts of data files that one worker reads, on this machine or another."""

    def __new__(cls, data: bytes) -> ReadTask: ...
    @staticmethod
    def from_bytes(data: bytes) -> ReadTask:
        """Return the task of what `to_bytes` returned."""

    def to_bytes(self) -> bytes:
        """Return all that another machine needs to read the task, except for the properties of the storage."""

    @property
    def column_names(self) -> list[str]:
        """Names of the columns of the rows, in their order."""

    @property
    def size_in_bytes(self) -> int:
        """Bytes of the parts of data files that it reads."""

    def rows(
        self,
        storage: Storage,
        *,
        schema: object | None = None,
        batch_size: int | None = None,
        memory_limit: int | None = None,
        dictionary_columns: Sequence[str] | None = None,
    ) -> ArrowStream:
        """Return the rows as they are read, in the types of ``schema`` if it is given."""

    def __len__(self) -> int: ...

@final
class MicroBatches:
    """A table as a stream of micro-batches.

    An offset is a pair: the id of a snapshot, and the number of the files it added that were read.
    """

    def __new__(
        cls,
        table: TableState,
        *,
        from_timestamp: int | None = None,
        skip_deletes: bool = False,
        skip_overwrites: bool = False,
        branch: str | None = None,
    ) -> MicroBatches: ...
    def initial(self) -> tuple[int, int]:
        """Return the offset of a stream that has read nothing."""

    def latest(
        self,
        start: tuple[int, int],
        *,
        max_files: int | None = None,
        max_rows: int | None = None,
        last_snapshot_id: int | None = None,
    ) -> tuple[int, int]:
        """Return the end of the batch that begins at an offset: ``start`` if there is nothing new."""

    def scan(
        self,
        start: tuple[int, int],
        end: tuple[int, int],
        *,
        selected_fields: Sequence[str] | None = None,
        case_sensitive: bool = True,
    ) -> Scan:
        """Return a scan of the files between two offsets."""

# metadata tables

@final
class Inspect:
    """The metadata tables of a table in one state."""

    def __new__(cls, table: TableState, /) -> Inspect: ...
    @staticmethod
    def names() -> list[str]:
        """Return the names of all metadata tables."""

    @staticmethod
    def has_snapshots(name: str, /) -> bool:
        """Return whether a metadata table is read as of a snapshot."""

    def schema(
        self, name: str, /, *, selected_fields: Sequence[str] | None = None, case_sensitive: bool = True
    ) -> Schema:
        """Return the schema of a metadata table."""

    def stream(
        self,
        name: str,
        /,
        *,
        row_filter: Expression | str | None = None,
        selected_fields: Sequence[str] | None = None,
        case_sensitive: bool = True,
        snapshot_id: int | None = None,
        as_of_ms: int | None = None,
        reference: str | None = None,
        part: tuple[int, int] | None = None,
        schema: object | None = None,
    ) -> ArrowStream:
        """Return the rows of a metadata table as they are read, in the types of ``schema`` if it is given.

        With ``part``, one part of some: ``(0, 4)`` is the first of four.
        """

    def list_keys(
        self,
        name: str,
        /,
        *,
        snapshot_id: int | None = None,
        as_of_ms: int | None = None,
        reference: str | None = None,
    ) -> dict[str, bytes]:
        """Return the keys of the encrypted manifest lists that a metadata table is read from, by their ids."""

    def most_parts(
        self,
        name: str,
        /,
        *,
        snapshot_id: int | None = None,
        as_of_ms: int | None = None,
        reference: str | None = None,
    ) -> int:
        """Return the maximum number of parts that a metadata table can be read in."""

    def partition_statistics(
        self, *, snapshot_id: int | None = None, as_of_ms: int | None = None, reference: str | None = None
    ) -> ArrowStream | None:
        """Return the rows of the partition statistics file of a snapshot; None if it has none."""

# maintenance

@type_check_only
class ExpiryRequest(TypedDict):
    """What is to expire, and which files are then deleted."""

    snapshot_ids: list[int]
    older_than_ms: int | None
    retain_last: int | None
    clean_expired_metadata: bool
    cleanup: OneOf["all", "metadata", "nothing"]
    external: OneOf["keep", "delete"]
    dry_run: bool

#: Entry of a snapshot's summary: the key by which its change is made once.
IDEMPOTENCY_KEY: Final[str]

def snapshot_of_key(metadata: TableMetadata, branch: str, key: str) -> int | None:
    """Return the snapshot of a branch that a change with this idempotency key has made."""

def resolve_commit(
    state: TableState,
    snapshot_id: int | None,
    files: list[str],
    base: str | None,
    location: str | None,
    *,
    clean_up: bool,
) -> tuple[OneOf["committed", "not committed", "unknown"], list[str]]:
    """Return what became of a commit, by a newer state of the table, and the files that were deleted."""

def expire_snapshots(
    state: TableState, catalog: object, identifier: object, request: ExpiryRequest
) -> tuple[TableState | None, list[int], list[str], int, list[str], dict[str, list[str]], int]:
    """Expire snapshots, and delete the files that only they name.

    Returns the new state, snapshot ids, branches and tags, the number of files that could not be read or deleted, what
    the first of them said, the deleted files by their kind, and their bytes.
    """

@type_check_only
class MaintenanceRequest(TypedDict):
    """Which files a call of maintenance is about, and how it commits."""

    filter: object | None
    case_sensitive: bool
    branch: str
    snapshot_properties: dict[str, str]
    options: dict[str, str]
    memory_limit: int | None
    dry_run: bool

def check_compaction(strategy: str | None, sort_order: str | None, options: Mapping[str, str]) -> None:
    """Reject arguments of a compaction that are wrong for every table."""

def check_position_rewrite(options: Mapping[str, str]) -> None:
    """Reject options of a rewrite of position deletes that are wrong for every table."""

def compact_data_files(
    state: TableState,
    catalog: object,
    identifier: object,
    request: MaintenanceRequest,
    *,
    strategy: str | None,
    sort_order: str | None,
    on_plan: Callable[[int, int], object] | None = None,
    on_group: Callable[[int, int, int, int, int], object] | None = None,
    traffic: Traffic | None = None,
) -> tuple[TableState | None, list[int], bool, list[int], list[str]]:
    """Rewrite data files of the wrong size, or with many deletes.

    ``on_plan`` is called with the number of groups and their bytes, ``on_group`` after each group, from any thread,
    with its number, its files and their bytes, and its new files and theirs.

    Returns the new state, the snapshots, whether an earlier run made them, and the numbers of groups, replaced files,
    new files, replaced bytes, failed files and removed delete files, and the errors that others outlived.
    """

@final
class CompactionPlan:
    """The plan of a compaction by workers."""

    def __new__(
        cls,
        state: TableState,
        catalog: object,
        identifier: object,
        request: MaintenanceRequest,
        *,
        strategy: str | None,
        sort_order: str | None,
    ) -> Self: ...
    @property
    def groups(self) -> list[tuple[int, int, int]]:
        """Numbers of files, their bytes, and the expected number of new files of each group."""

    def task(self, number: int) -> bytes:
        """Return the task that rewrites a group, for `rewrite_group`."""

    def commit(
        self, state: TableState, catalog: object, identifier: object, results: list[bytes]
    ) -> tuple[TableState | None, list[int], bool, list[int], list[str]]:
        """Commit the results of workers in one snapshot; returns what `compact_data_files` does."""

def rewrite_group(task: bytes, storage: Storage, *, attempt: int, memory_limit: int | None = None) -> bytes:
    """Rewrite a group on a worker, and return the result for the commit."""

def rewrite_position_deletes(
    state: TableState,
    catalog: object,
    identifier: object,
    request: MaintenanceRequest,
    *,
    traffic: Traffic | None = None,
) -> tuple[TableState | None, list[int], bool, list[int], list[str]]:
    """Rewrite position delete files.

    Returns the new state, the snapshots, whether an earlier run made them, the numbers of replaced and new files and of
    their bytes, and the errors of groups and commits that others outlived.
    """

def convert_equality_deletes(
    state: TableState,
    catalog: object,
    identifier: object,
    request: MaintenanceRequest,
    *,
    traffic: Traffic | None = None,
) -> tuple[TableState | None, list[int], bool, list[int]]:
    """Replace equality deletes by deletes of positions.

    Returns the new state, the snapshots, whether an earlier run made them, and the numbers of removed equality delete
    files, replaced other delete files, new delete files, data files and deleted rows.
    """

def remove_dangling_deletes(
    state: TableState, catalog: object, identifier: object, request: MaintenanceRequest
) -> tuple[TableState | None, int | None, list[str]]:
    """Remove delete files that apply to no data file.

    Returns the new state, the snapshot, and the locations of the files.
    """

@type_check_only
class OrphanRequest(TypedDict):
    """Which orphan files to delete."""

    older_than_ms: int
    location: str | None
    equal_schemes: list[tuple[str, str]]
    equal_authorities: list[tuple[str, str]]
    prefix_mismatch_mode: str
    other_folders: list[tuple[str, str]]
    warehouse: str | None
    dry_run: bool

def remove_orphans(
    state: TableState, catalog: object, identifier: object, request: OrphanRequest
) -> tuple[list[tuple[str, int]], int, int, list[str]]:
    """Delete files that nothing in the table names.

    Returns them with their sizes, the number of listed files, the number of files that were not deleted, and what the
    first of them said.
    """

def fsck(
    state: TableState, *, level: str, most: int
) -> tuple[list[tuple[bool, str, str, str, str, str, str]], dict[str, int]]:
    """Check a table: metadata against manifests against files.

    Returns findings (whether it is an error, the check, the file, the field, the expected and the found value, the file
    that describes it), and the numbers of errors, warnings, and of what was checked.
    """

@type_check_only
class RepairRequest(TypedDict):
    """What is to be repaired, and how it commits."""

    level: str
    branch: str
    snapshot_properties: dict[str, str]
    remove_missing_files: bool
    remove_missing_deletes: bool
    most: int
    dry_run: bool

def repair(
    state: TableState, catalog: object, identifier: object, request: RepairRequest
) -> tuple[
    TableState | None,
    int | None,
    list[tuple[str, str, str, str, str, str]],
    list[tuple[tuple[bool, str, str, str, str, str, str], str]],
    dict[str, int],
]:
    """Repair what is certain in the current snapshot of a branch.

    Returns the new state, the snapshot, corrections (the check, the file, the field, the value before and after, the
    file that describes it), findings that were left with the reason, and counts by name.
    """

@final
class RowDiff:
    """What was compared, and how many rows differ; complete when all differences were read."""

    @property
    def rows(self) -> tuple[int, int, int, int, int]:
        """Numbers of added, removed and changed rows, and of rows that were read of either side."""

    @property
    def cells(self) -> list[tuple[str, int]]:
        """Names of columns with changed values, and their numbers."""

    @property
    def only(self) -> tuple[list[str], list[str]]:
        """Names of the columns that only one side has."""

    @property
    def common_files(self) -> int:
        """Number of files that both sides have and that were not read."""

def diff_rows(
    left: object, right: object, *, keys: list[str] | None = None, memory_limit: int | None = None
) -> tuple[RowDiff, ArrowStream]:
    """Compare rows with rows."""

def diff_scans(
    left: Scan, right: Scan, *, keys: list[str] | None = None, memory_limit: int | None = None
) -> tuple[RowDiff, ArrowStream]:
    """Compare two scans of one table, without the files that both have."""

def rewrite_table_path(
    state: TableState,
    source_prefix: str,
    target_prefix: str,
    *,
    start_version: str | None,
    end_version: str | None,
    staging_location: str | None,
    create_file_list: bool,
) -> tuple[str, str, str | None, int, int, int]:
    """Write the metadata of a table to a staging location, with another prefix of all paths.

    Returns the name of the last metadata file, the staging location, the list of files, and the numbers of rewritten
    manifests, rewritten deletes and all files.
    """

def copy_table(
    state: TableState, location: str, *, source_prefix: str | None, dry_run: bool
) -> tuple[str, str | None, int, int, int, int, int]:
    """Copy a table with its history to another location.

    Returns the metadata file of the copy, the version that an earlier copy has, and the numbers of copied files, their
    bytes, files that were there, rewritten manifests and rewritten deletes.
    """

def doctor(state: TableState) -> list[tuple[str, str, str, int, int, str]]:
    """Find what makes a table slow or large.

    Returns findings: the name, the subject, the message, the cost in bytes and in requests, and the call that repairs.
    """

def compute_partition_stats(
    state: TableState, catalog: object, identifier: object, *, snapshot_id: int | None = None
) -> tuple[TableState, str, int, int | None] | None:
    """Compute the statistics of the partitions of a snapshot.

    Returns the new state, the file, its bytes, and the number of partitions if the file is new; None without files.
    """

def export_metadata(
    state: TableState, put: Callable[[str, bytes], object], *, snapshots: list[int], values: bool
) -> tuple[dict[str, str], int, int]:
    """Export the metadata of a table without rows.

    ``put`` is called with the name and the bytes of each file. Returns the folders of the export by those of the table,
    and the numbers of snapshots and of manifests.
    """

def compute_table_stats(
    state: TableState,
    catalog: object,
    identifier: object,
    *,
    columns: list[str] | None = None,
    snapshot_id: int | None = None,
) -> tuple[TableState, str, list[tuple[int, int]]] | None:
    """Compute the number of distinct values of columns.

    Returns the new state, the statistics file, and for each column its field id and number; ``None`` without a
    snapshot.
    """

@final
class FolderTable:
    """What a folder in Hive's layout has: the definition of a table, and its files."""

    @property
    def schema(self) -> Schema:
        """The columns."""

    @property
    def partition_spec(self) -> PartitionSpec:
        """The partition columns by identity."""

    @property
    def paths(self) -> list[str]:
        """Locations of the files."""

    @property
    def bytes(self) -> int:
        """Bytes of the files."""

def look_at_folder(
    storage: Storage,
    folder: str,
    format: str | None,
    partition_types: Mapping[str, object],
    properties: Mapping[str, str],
) -> FolderTable:
    """Look at a folder with data files in Hive's layout."""

# distributed writes

@final
class WritePlan:
    """What all writers of a distributed write have in common: the table, its properties, and the id of the write."""

    def __new__(
        cls, table: TableState, /, *, properties: Mapping[str, str] = ..., widened_by: object = None
    ) -> WritePlan: ...
    @staticmethod
    def from_bytes(data: bytes) -> WritePlan:
        """Return the plan of what `to_bytes` returned."""

    def to_bytes(self) -> bytes:
        """Return all that another machine needs to write, except for the properties of the storage."""

    @property
    def write_id(self) -> str:
        """Id of the write, which is part of the names of its files."""

    @property
    def schema(self) -> Schema:
        """The columns of the table as the commit leaves it."""

    def check(self, storage: Storage, schema: object, *, allow_missing: bool = True) -> None:
        """Raise ``ValidationError`` if rows of this schema cannot be written, without writing any."""

    def discard(self, storage: Storage, written: Sequence[bytes], *, search: bool) -> tuple[int, list[str]]:
        """Delete the files of a write that was certainly not committed.

        Return how many could not be deleted, and the first reasons. With ``search``, files that no task has reported
        are looked for as well.
        """

    def discard_lost(self, storage: Storage, committed: Sequence[bytes]) -> tuple[int, list[str]]:
        """Delete the files of attempts that lost: those of this write that no committed task has reported.

        Return how many could not be deleted, and the first reasons.
        """

    def append(
        self,
        table: TableState,
        catalog: object,
        identifier: object,
        written: Sequence[bytes],
        *,
        branch: str = ...,
        snapshot_properties: Mapping[str, str] = ...,
    ) -> tuple[TableState, int | None, int, bool]:
        """Commit the files that tasks have written.

        Return the new state, the id of the snapshot, the number of rows, and whether an earlier run has made the
        change.
        """

    def replace_partitions(
        self,
        table: TableState,
        catalog: object,
        identifier: object,
        written: Sequence[bytes],
        *,
        branch: str = ...,
        isolation: str | None = None,
        snapshot_properties: Mapping[str, str] = ...,
    ) -> tuple[TableState, int | None, bool, _RowCounts]:
        """Commit the files that tasks have written, in place of everything in their partitions.

        Return the new state, the id of the snapshot, whether an earlier run has made the change, and its numbers as
        `RowChanges` returns them.
        """

@final
class RowChangePlan:
    """What all workers of a change of rows have in common: the table, its files with such rows, and its id."""

    def __new__(
        cls,
        table: TableState,
        command: str,
        filter: Expression | str | None,
        *,
        exact: bool = False,
        mode: str | None = None,
        isolation: str | None = None,
        branch: str = ...,
        case_sensitive: bool = True,
        properties: Mapping[str, str] = ...,
        widened_by: object = None,
    ) -> RowChangePlan: ...
    @staticmethod
    def from_bytes(data: bytes) -> RowChangePlan:
        """Return the plan of what `to_bytes` returned."""

    def to_bytes(self) -> bytes:
        """Return all that another machine needs to take rows out, except for the properties of the storage."""

    @property
    def write(self) -> WritePlan:
        """The write of new rows."""

    @property
    def command(self) -> str:
        """The kind of the change by its name."""

    @property
    def branch(self) -> str:
        """The branch that is changed."""

    @property
    def mode(self) -> OneOf["auto", "copy-on-write", "merge-on-read"]:
        """How rows are taken out of files."""

    @property
    def exact(self) -> bool:
        """Whether every row that the filter matches is taken out."""

    @property
    def snapshot_id(self) -> int | None:
        """Id of the snapshot whose rows are changed; ``None`` if the table is empty."""

    @property
    def file_count(self) -> int:
        """Number of data files that may have rows to take out."""

    def tasks(
        self,
        selected_fields: Sequence[str] | None = None,
        *,
        whole_files: bool = False,
        split_size: int | None = None,
        lookback: int | None = None,
        open_file_cost: int | None = None,
        parallelism: int | None = None,
    ) -> list[ReadTask]:
        """Return the tasks that read the rows which the filter matches.

        With ``whole_files``, no file is in two tasks.
        """

    def discard(self, storage: Storage, written: Sequence[bytes], *, search: bool) -> tuple[int, list[str]]:
        """Delete the files of a change that was certainly not committed.

        Return how many could not be deleted, and the first reasons. With ``search``, files that no worker has reported
        are looked for as well.
        """

    def discard_lost(self, storage: Storage, committed: Sequence[bytes]) -> tuple[int, list[str]]:
        """Delete the files of attempts that lost: those of this change that no committed worker has reported.

        Return how many could not be deleted, and the first reasons.
        """

    def commit(
        self,
        table: TableState,
        catalog: object,
        identifier: object,
        removed: Sequence[bytes],
        added: Sequence[bytes],
        *,
        snapshot_properties: Mapping[str, str] = ...,
    ) -> tuple[TableState, int | None, bool, _RowCounts]:
        """Commit what workers took out and the new rows that they have written.

        Return the new state, the id of the snapshot, whether an earlier run has made the change, and its numbers as
        `RowChanges` returns them.
        """

@final
class RowRemover:
    """A worker that takes rows out of data files."""

    def __new__(
        cls,
        plan: RowChangePlan,
        storage: Storage,
        *,
        task: int = 0,
        attempt: int = 0,
        memory_limit: int | None = None,
        unique: bool = False,
    ) -> RowRemover: ...
    def remove(self, rows: object) -> None:
        """Take out the rows at the places in the columns ``_file`` and ``_pos``."""

    def close(self) -> tuple[bytes, int, int, int]:
        """Write what the change needs.

        Return its description for `RowChangePlan.commit`, and the numbers of new files, of rows taken out and of bytes.
        """

    def abort(self) -> None:
        """Discard what was taken out; this has no effect after `close`."""

@final
class TaskWriter:
    """A writer of the data files of one task of a distributed write."""

    def __new__(
        cls,
        plan: WritePlan,
        storage: Storage,
        schema: object,
        *,
        task: int = 0,
        attempt: int = 0,
        allow_missing: bool = True,
        clustered: bool = False,
        memory_limit: int | None = None,
        dry_run: bool = False,
    ) -> TaskWriter: ...
    def write(self, rows: object) -> None:
        """Take rows to write.

        They are written while the next ones are taken, so an error may be that of rows taken before. After an error
        nothing more can be written: call `abort`.
        """

    def close(self) -> tuple[bytes, int, int, int]:
        """Close the files.

        Return their description for `WritePlan.append`, and the numbers of files, rows and bytes.
        """

    def abort(self) -> None:
        """Delete the files; this has no effect after `close`."""

# evolution

@final
class SchemaChange:
    """Changes of the current schema ("Schema Evolution").

    Each is checked when it is made, and one that fails leaves the others as they are.
    """

    def __new__(
        cls, metadata: TableMetadata, *, case_sensitive: bool = True, allow_incompatible: bool = False
    ) -> SchemaChange: ...
    def add_column(
        self,
        parent: str | None,
        name: str,
        field_type: Type | str,
        *,
        doc: str | None = None,
        required: bool = False,
        default_value: object = None,
    ) -> None:
        """Add a column at the end of a struct, or of the schema without a ``parent``.

        Field ids in its type are replaced by new ones.
        """

    def delete_column(self, path: str) -> None:
        """Delete a column."""

    def rename_column(self, path: str, new_name: str) -> None:
        """Rename a column."""

    def require_column(self, path: str) -> None:
        """Make a column required, which is an incompatible change."""

    def make_column_optional(self, path: str) -> None:
        """Make a column optional."""

    def update_type(self, path: str, field_type: Type | str) -> None:
        """Promote the type of a column; other changes of a type raise ``InvalidArgumentError``."""

    def update_doc(self, path: str, doc: str | None) -> None:
        """Set or remove the comment of a column."""

    def update_default(self, path: str, value: object) -> None:
        """Set or remove the default value of a column in rows written without one."""

    def move_first(self, path: str) -> None:
        """Move a column to the front of its struct."""

    def move_before(self, path: str, before: str) -> None:
        """Move a column before another one of its struct."""

    def move_after(self, path: str, after: str) -> None:
        """Move a column after another one of its struct."""

    def union_by_name(self, schema: object) -> None:
        """Add the columns of a schema that are missing, by name, and promote types as needed."""

    def set_identifier_fields(self, names: Sequence[str]) -> None:
        """Set the columns that identify a row."""

    def apply(self) -> Schema:
        """Return the changed schema."""

    def updates(self) -> list[str]:
        """Return the updates of the REST protocol that make the changes, as JSON texts."""

@final
class SpecChange:
    """Changes of the default partition spec ("Partition Evolution").

    Each is checked when it is made, and one that fails leaves the others as they are.
    """

    def __new__(cls, metadata: TableMetadata, *, case_sensitive: bool = True) -> SpecChange: ...
    def add_field(self, column: str, transform: Transform | str, name: str | None = None) -> None:
        """Add a transform of a column; without a ``name``, it is named after both."""

    def add_text(self, text: str, name: str | None = None) -> None:
        """Add a field by its text, such as ``bucket(16, id) as shard``."""

    def remove_field(self, name: str) -> None:
        """Remove a field by its name."""

    def remove_text(self, text: str) -> None:
        """Remove a field by its text, such as ``bucket(16, id)``."""

    def rename_field(self, name: str, new_name: str) -> None:
        """Rename a field."""

    def apply(self) -> PartitionSpec:
        """Return the changed spec."""

    def updates(self) -> list[str]:
        """Return the updates of the REST protocol that make the changes, as JSON texts."""

def sort_order_updates(metadata: TableMetadata, fields: Sequence[str | tuple[str, str, str]]) -> list[str]:
    """Return the updates of the REST protocol that set the sort order, as JSON texts."""

def create_ref(
    metadata: TableMetadata,
    name: str,
    snapshot_id: int,
    *,
    is_branch: bool,
    max_ref_age_ms: int | None = None,
    max_snapshot_age_ms: int | None = None,
    min_snapshots_to_keep: int | None = None,
) -> str:
    """Return the update that creates a branch or tag, as JSON text; ages are in milliseconds."""

def remove_ref(metadata: TableMetadata, name: str, *, is_branch: bool) -> str:
    """Return the update that removes a branch or tag, as JSON text."""

def replace_ref(metadata: TableMetadata, name: str, snapshot_id: int, *, is_branch: bool) -> str:
    """Return the update that moves a branch or tag to a snapshot, as JSON text."""

def replace_branch(metadata: TableMetadata, name: str, by: str, *, fast_forward: bool) -> str:
    """Return the update that moves a branch to the snapshot of another branch or tag, as JSON text."""

def rename_branch(metadata: TableMetadata, name: str, new_name: str) -> list[str]:
    """Return the updates that rename a branch, as JSON text."""

def set_retention(
    metadata: TableMetadata,
    name: str,
    *,
    max_ref_age_ms: int | None = None,
    max_snapshot_age_ms: int | None = None,
    min_snapshots_to_keep: int | None = None,
) -> str:
    """Return the update that sets how long a branch or tag is kept, and what of a branch, as JSON text."""

def check_cherry_pick(metadata: TableMetadata, snapshot_id: int) -> None:
    """Raise ``ValidationException`` for a snapshot that cannot be picked into the main branch."""

def set_current_snapshot(metadata: TableMetadata, snapshot_id: int) -> str:
    """Return the update that makes a snapshot the current one, as JSON text."""

def rollback_to_snapshot(metadata: TableMetadata, snapshot_id: int) -> str:
    """Return the update that makes an ancestor of the current snapshot the current one, as JSON text."""

def rollback_to_timestamp(metadata: TableMetadata, timestamp_ms: int) -> str:
    """Return the update that makes the last ancestor before a time, in milliseconds, the current one, as JSON text."""
