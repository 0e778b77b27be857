"""Name mappings: field ids for data files that have none ("Column Projection", "Name Mapping Serialization")."""

from __future__ import annotations

from icefield._core import MappedField, NameMapping

__all__ = [
    "MappedField",
    "NameMapping",
]

#: The table property that holds a mapping, as JSON.
NAME_MAPPING_PROPERTY = "schema.name-mapping.default"
