"""Schemas: the columns of a table ("Schemas and Data Types").

A `Schema` is immutable; a table's schema evolves through ``Table.update_schema``.
"""

from __future__ import annotations

from icefield._core import Schema

__all__ = ["Schema"]
