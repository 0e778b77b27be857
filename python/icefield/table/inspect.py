"""Metadata tables, under the name of PyIceberg's module; see `icefield.inspect`."""

from __future__ import annotations

from icefield.inspect import (
    InspectTable,
)

__all__ = [
    "InspectTable",
]
