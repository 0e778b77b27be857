"""Views: queries with names in a catalog, which engines run.

`Catalog.load_view` and `Catalog.create_view` of `icefield.catalog` return a `View`.
"""

from __future__ import annotations

from icefield.view.handle import View
from icefield.view.metadata import SQLViewRepresentation, ViewHistoryEntry, ViewVersion

__all__ = ["SQLViewRepresentation", "View", "ViewHistoryEntry", "ViewVersion"]
