"""A catalog that lives as long as its process: for tests and for trying things."""

from __future__ import annotations

import uuid

from icefield.catalog.sql import SqlCatalog

__all__ = ["InMemoryCatalog"]


class InMemoryCatalog(SqlCatalog):
    """A SQL catalog on a database in memory; its warehouse too is in memory unless one is given."""

    def __init__(self, name: str = "memory", **properties: str) -> None:
        properties.setdefault("warehouse", f"memory://{uuid.uuid4().hex}/warehouse")
        super().__init__(name, **{**properties, "uri": "sqlite://"})
