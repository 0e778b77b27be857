"""The schema of an Avro file, as the columns of a table ("Appendix A: Format-specific Requirements", Avro)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import count

from icefield.errors import CorruptDataError, InvalidArgumentError
from icefield.schema import Schema
from icefield.types import ListType, MapType, NestedField, StructType, Type

__all__ = ["schema_of_avro"]

#: Types without parts; an enumeration is read as its symbols.
_PRIMITIVES = {
    "boolean": "boolean",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "bytes": "binary",
    "string": "string",
    "enum": "string",
    "null": "unknown",
}
_LOGICAL = {
    ("int", "date"): "date",
    ("int", "time-millis"): "time",
    ("long", "time-micros"): "time",
    ("long", "local-timestamp-millis"): "timestamp",
    ("long", "local-timestamp-micros"): "timestamp",
    ("long", "local-timestamp-nanos"): "timestamp_ns",
    ("fixed", "uuid"): "uuid",
    ("string", "uuid"): "uuid",
}
#: Instants, unless `adjust-to-utc` is false.
_INSTANTS = {"timestamp-millis": "timestamptz", "timestamp-micros": "timestamptz", "timestamp-nanos": "timestamptz_ns"}
_MOST_LEVELS = 100


def schema_of_avro(data: bytes, path: str) -> Schema:
    """Return the schema of an Avro file; its field ids are new ones.

    Parameters
    ----------
    data
        The file.
    path
        What errors call it.

    Raises
    ------
    CorruptDataError
        If it is not a valid Avro file.
    InvalidArgumentError
        If its records cannot be rows of a table.

    """
    try:
        document = json.loads(_Header(data).metadata()["avro.schema"])
        named: dict[str, Mapping[str, object]] = {}
        fields = _Types(named).fields(document)
    except (IndexError, KeyError, TypeError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CorruptDataError(f"{path}: the header of the Avro file is not valid ({error!r})") from error
    return Schema(*fields)


class _Header:
    """The beginning of an Avro file: a map of metadata."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 4

    def metadata(self) -> dict[str, bytes]:
        found = {}
        while size := self._long():
            if size < 0:  # followed by the length in bytes
                size = -size
                self._long()
            for _ in range(size):
                name = self._bytes().decode()
                found[name] = self._bytes()
        return found

    def _long(self) -> int:
        value = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:  # noqa: PLR2004 - the last byte of a number
                return (value >> 1) ^ -(value & 1)

    def _bytes(self) -> bytes:
        size = self._long()
        if size < 0 or self._at + size > len(self._data):
            raise IndexError(size)
        self._at += size
        return self._data[self._at - size : self._at]


class _Types:
    """The types of a schema, with the ids of their fields."""

    def __init__(self, named: dict[str, Mapping[str, object]]) -> None:
        self._named = named
        self._ids: Iterator[int] = count(1)
        self._level = 0

    def fields(self, record: object) -> list[NestedField]:
        if not isinstance(record, Mapping) or record.get("type") != "record":
            raise InvalidArgumentError("the Avro file does not hold records: a table needs columns")
        self._remember(record)
        made = []
        for field in record["fields"]:
            field_id = next(self._ids)
            kind, required = self._nullable(field["type"])
            made.append(NestedField(field_id, field["name"], kind, required, field.get("doc")))
        return made

    def _remember(self, kind: Mapping[str, object]) -> None:
        for name in (kind["name"], f"{kind.get('namespace', '')}.{kind['name']}"):
            self._named[str(name)] = kind

    def _nullable(self, kind: object) -> tuple[Type, bool]:
        """Return a type, and whether there is always a value."""
        if not isinstance(kind, list):
            return self._type(kind), kind != "null"
        others = [one for one in kind if one != "null"]
        if len(others) != 1:
            raise InvalidArgumentError(f"the Avro file has a union of {len(others)} types: a column has one")
        return self._type(others[0]), len(others) == len(kind)

    def _type(self, kind: object) -> Type:
        self._level += 1
        if self._level > _MOST_LEVELS:
            raise InvalidArgumentError(f"types are nested more than {_MOST_LEVELS} levels deep, or contain themselves")
        made = self._made({"type": kind} if isinstance(kind, str) else kind)
        self._level -= 1
        return made

    def _made(self, kind: object) -> Type:
        if not isinstance(kind, Mapping):
            raise TypeError(kind)
        name = kind["type"]
        if isinstance(name, Mapping | list):  # {"type": {"type": ...}}
            return self._nullable(name)[0]
        if name in {"enum", "fixed"}:
            self._remember(kind)
        if name == "record":
            return StructType(*self.fields(kind))
        if name == "array":
            return self._array(kind)
        if name == "map":
            key_id, value_id = next(self._ids), next(self._ids)
            value, required = self._nullable(kind["values"])
            return MapType(key_id, "string", value_id, value, required)
        text = _text(str(name), kind)
        return self._made(self._named[str(name)]) if text is None else Type(text)

    def _array(self, kind: Mapping[str, object]) -> Type:
        """Return a list, or a map whose keys are not texts: an array of pairs."""
        pair = kind["items"]
        if kind.get("logicalType") == "map" and isinstance(pair, Mapping):
            key, value = self.fields(pair)
            return MapType(key.field_id, key.field_type, value.field_id, value.field_type, value.required)
        element_id = next(self._ids)
        element, required = self._nullable(pair)
        return ListType(element_id, element, required)


def _text(name: str, kind: Mapping[str, object]) -> str | None:
    """Return a type without parts; ``None`` for the name of a type that was declared before."""
    logical = str(kind.get("logicalType"))
    if logical == "decimal" and name in {"bytes", "fixed"}:
        return f"decimal({kind['precision']}, {kind.get('scale', 0)})"
    if name == "long" and logical in _INSTANTS:
        instant = _INSTANTS[logical]
        return instant.replace("tz", "") if kind.get("adjust-to-utc") is False else instant
    if name == "fixed" and logical != "uuid":
        return f"fixed[{kind['size']}]"
    return _LOGICAL.get((name, logical)) or _PRIMITIVES.get(name)
