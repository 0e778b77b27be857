"""A catalog in memory, for tests and experiments."""

from __future__ import annotations

import uuid

from icefield.catalog.sql import SqlCatalog

__all__ = ["InMemoryCatalog"]


class InMemoryCatalog(SqlCatalog):
    """A SQL catalog on a database in memory; its warehouse is in memory too unless one is set."""

    def __init__(self, name: str = "memory", **properties: str) -> None:
        properties.setdefault("warehouse", f"memory://{uuid.uuid4().hex}/warehouse")
        super().__init__(name, **{**properties, "uri": "sqlite://"})
