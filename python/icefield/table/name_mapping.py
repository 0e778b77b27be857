"""Name mappings, under the name of PyIceberg's module; see `icefield.name_mapping`."""

from __future__ import annotations

from icefield.name_mapping import (
    MappedField,
    NameMapping,
    create_mapping_from_schema,
    parse_mapping_from_json,
)

__all__ = [
    "MappedField",
    "NameMapping",
    "create_mapping_from_schema",
    "parse_mapping_from_json",
]
