"""Name mappings, under the name of PyIceberg's module; see `icefield.name_mapping`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield.name_mapping import (
    MappedField,
    NameMapping,
)

if TYPE_CHECKING:
    from icefield.schema import Schema

__all__ = [
    "MappedField",
    "NameMapping",
    "create_mapping_from_schema",
    "parse_mapping_from_json",
]


def create_mapping_from_schema(schema: Schema) -> NameMapping:
    """Return the mapping of the columns of a schema: each by its present name."""
    return NameMapping.from_schema(schema)


def parse_mapping_from_json(mapping: str) -> NameMapping:
    """Return the mapping of a JSON form, such as the value of the table property."""
    return NameMapping.from_json(mapping)
