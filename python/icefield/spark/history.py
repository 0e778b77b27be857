"""The names and types of a table's columns through all its schemas.

Spark's Parquet reader finds columns by id but tests pushed filters by name: if another
column of an old file has the name of a filtered column, row groups are dropped that should not be. So a column may be
read under its own name only if name and id belonged together in every schema; all others are read under a name that no
file can contain.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield.metadata import TableMetadata
    from icefield.types import NestedField, Type

__all__ = ["History"]

# Types that Spark's reader reads as Iceberg defines them. The others need a cast or a default.
_PLAIN = frozenset(
    {"boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary"}
)
_WIDER = {("int", "long"), ("float", "double")}


@dataclass(frozen=True)
class _Field:
    field_id: int
    root: int
    name: str
    type: str
    has_default: bool


class History:
    """All fields of all schemas of a table."""

    def __init__(self, fields: list[_Field]) -> None:
        self._prefix = "_icefield"
        while any(field.name.lower().startswith(self._prefix) for field in fields):
            self._prefix += "_"
        names, ids, types = defaultdict(set), defaultdict(set), defaultdict(list)
        plain: dict[int, bool] = defaultdict(lambda: True)
        for field in fields:
            ids[field.name.lower()].add(field.field_id)
            names[field.field_id].add(field.name)
            types[field.field_id].append(field.type)
            plain[field.root] &= not field.has_default and _is_plain(field.type)
        renamed = {i for i, found in names.items() if len(found) > 1} | {
            field_id for found in ids.values() if len(found) > 1 for field_id in found
        }
        changed = {field_id for field_id, found in types.items() if len(set(found)) > 1}
        self._moved = {field.root for field in fields if field.field_id in renamed | changed}
        for field in fields:
            if field.field_id in changed:
                plain[field.root] &= _only_widened(types[field.field_id])
        self._plain = plain

    @classmethod
    def of(cls, metadata: TableMetadata) -> History | None:
        """Read the history from table metadata; None if some schemas are missing."""
        schemas = sorted(metadata.schemas, key=lambda schema: schema.schema_id)
        if [schema.schema_id for schema in schemas] != list(range(len(schemas))):
            return None
        return cls([found for schema in schemas for field in schema.fields for found in _fields(field, "", None)])

    def is_plain(self, root: int) -> bool:
        """Return whether Spark reads a top-level column correctly from files of every schema."""
        return self._plain[root]

    def keeps_name(self, root: int) -> bool:
        """Return whether a top-level column, with all nested fields, had one name and one type in all schemas."""
        return root not in self._moved

    def alias(self, root: int) -> str:
        """Return a name for a top-level column that no file contains."""
        return f"{self._prefix}_{root}"


def _is_plain(kind: str) -> bool:
    return kind in _PLAIN or kind in {"struct", "list", "map"} or kind.startswith("decimal(")


def _only_widened(types: list[str]) -> bool:
    """Return whether a type changed only in ways that Spark's reader supports."""
    return all(
        old == new or (old, new) in _WIDER or (old.startswith("decimal(") and new.startswith("decimal("))
        for old, new in pairwise(types)
    )


def _fields(field: NestedField, path: str, root: int | None) -> Iterator[_Field]:
    """Yield a field and all nested fields."""
    top = field.field_id if root is None else root
    name, kind = path + field.name, field.field_type
    yield _Field(field.field_id, top, name, _kind(kind), field.initial_default is not None)
    for inner in kind.fields:
        yield from _fields(inner, f"{name}.", top)


def _kind(kind: Type) -> str:
    """Return the name of a type, without nested types."""
    if kind.is_struct:
        return "struct"
    if kind.is_list:
        return "list"
    return "map" if kind.is_map else str(kind)
