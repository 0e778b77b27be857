"""How the schema, the partition spec, the sort order and the references of a table change."""

from __future__ import annotations

from icefield.table.update import ManageSnapshots, UpdateSchema, UpdateSortOrder, UpdateSpec

__all__ = ["ManageSnapshots", "UpdateSchema", "UpdateSortOrder", "UpdateSpec"]
