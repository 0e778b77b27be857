"""Partitions as people read them: as the names of folders have them, ``time_month=2013-01``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from icefield.errors import IcefieldError
from icefield.table import Table

if TYPE_CHECKING:
    from icefield.transforms import Transform
    from icefield.types import Type


__all__ = ["PartitionTexts"]


class PartitionTexts:
    """Formats the partitions of a table."""

    def __init__(self, table: Table) -> None:
        types = {}
        for schema in table.schemas().values():
            for field in (field for spec in table.specs().values() for field in spec.fields):
                kind = None if field.source_id is None else schema.find_type(field.source_id)
                if kind is not None:
                    types[field.source_id] = kind
        self._specs = {
            spec_id: {field.name: (field.transform, types.get(field.source_id)) for field in spec.fields}
            for spec_id, spec in table.specs().items()
        }

    def text(self, partition: Mapping[str, object] | None, spec_id: int | None) -> str:
        """Write a partition value; of a spec that is not known, all its fields that are not null."""
        given = partition or {}
        fields = self._specs.get(spec_id) if spec_id is not None else None
        if fields is None:
            every = {name: how for spec in self._specs.values() for name, how in spec.items()}
            fields = {name: every[name] for name, value in given.items() if value is not None and name in every}
        return ", ".join(f"{name}={_value_text(given.get(name), *how)}" for name, how in fields.items())


def _value_text(value: object, transform: Transform | None, kind: Type | None) -> str:
    if value is None or transform is None or kind is None:
        return "null" if value is None else str(value)
    try:
        return str(transform.to_human_string(kind, value))
    except (IcefieldError, TypeError, ValueError):
        return str(value)
