"""What the columns of a table were called through all its schemas, and what they held.

Spark's Parquet reader finds columns by id but tests pushed filters by name: a filter on a column whose name another
column of an old file bears drops row groups that it should not. So a column may be read under its own name only if name
and id belonged together in every schema; all others are read under a name that no file can bear.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

__all__ = ["History"]

# What Spark's reader makes of a file as Iceberg means it. The others need a cast or a default.
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
    def of(cls, metadata: Mapping[str, Any]) -> History | None:
        """Read the history from table metadata JSON; None if some schemas are not there any more."""
        schemas = sorted(metadata.get("schemas") or [], key=lambda schema: schema["schema-id"])
        known = {schema["schema-id"] for schema in schemas}
        if not known or known != set(range(max(known) + 1)):
            return None
        return cls([field for schema in schemas for field in _fields(schema["fields"], "", None)])

    def is_plain(self, root: int) -> bool:
        """Say whether Spark reads a top-level column as Iceberg means it, from files of every schema."""
        return self._plain[root]

    def keeps_name(self, root: int) -> bool:
        """Say whether a top-level column, and all within it, had one name and one type through all schemas."""
        return root not in self._moved

    def alias(self, root: int) -> str:
        """Give a name for a top-level column that no file bears."""
        return f"{self._prefix}_{root}"


def _is_plain(kind: str) -> bool:
    return kind in _PLAIN or kind in {"struct", "list", "map"} or kind.startswith("decimal(")


def _only_widened(types: list[str]) -> bool:
    """Say whether a type changed in ways that Spark's reader knows."""
    return all(
        old == new or (old, new) in _WIDER or (old.startswith("decimal(") and new.startswith("decimal("))
        for old, new in pairwise(types)
    )


def _fields(fields: list[dict[str, Any]], path: str, root: int | None) -> Iterator[_Field]:
    for field in fields:
        top = field["id"] if root is None else root
        name = path + field["name"]
        default = field.get("initial-default") is not None
        yield from _field(field["id"], name, field["type"], top, has_default=default)


def _field(field_id: int, name: str, kind: Any, root: int, *, has_default: bool = False) -> Iterator[_Field]:
    if isinstance(kind, str):
        yield _Field(field_id, root, name, kind, has_default)
        return
    yield _Field(field_id, root, name, kind["type"], has_default)
    if kind["type"] == "struct":
        yield from _fields(kind["fields"], f"{name}.", root)
    elif kind["type"] == "list":
        yield from _field(kind["element-id"], f"{name}.element", kind["element"], root)
    else:
        yield from _field(kind["key-id"], f"{name}.key", kind["key"], root)
        yield from _field(kind["value-id"], f"{name}.value", kind["value"], root)
