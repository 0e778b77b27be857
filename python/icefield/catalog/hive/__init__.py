"""The catalog in a Hive metastore."""

from __future__ import annotations

from icefield.catalog.hive.catalog import HiveCatalog

__all__ = ["HiveCatalog"]
