"""How the schema, the partition spec, the sort order and the references of a table change."""

from __future__ import annotations

from icefield.table.update.change import Change
from icefield.table.update.schema import UpdateSchema
from icefield.table.update.snapshots import ManageSnapshots
from icefield.table.update.sorting import UpdateSortOrder
from icefield.table.update.spec import UpdateSpec

__all__ = ["Change", "ManageSnapshots", "UpdateSchema", "UpdateSortOrder", "UpdateSpec"]
