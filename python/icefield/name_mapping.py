"""Name mappings: field ids for data files that have none ("Column Projection", "Name Mapping Serialization")."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield._core import MappedField, NameMapping

if TYPE_CHECKING:
    from icefield._core import Schema

__all__ = [
    "NAME_MAPPING_PROPERTY",
    "MappedField",
    "NameMapping",
    "create_mapping_from_schema",
    "parse_mapping_from_json",
]

NAME_MAPPING_PROPERTY = "schema.name-mapping.default"
"""The table property that holds a mapping, as JSON."""


def create_mapping_from_schema(schema: Schema) -> NameMapping:
    """Return the mapping of the columns of a schema: each by its present name."""
    return NameMapping.from_schema(schema)


def parse_mapping_from_json(mapping: str) -> NameMapping:
    """Return the mapping of a JSON form, such as the value of the table property."""
    return NameMapping.from_json(mapping)
