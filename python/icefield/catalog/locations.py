"""Locations as catalogs take them."""

from __future__ import annotations

from icefield._inputs.locations import absolute_location

__all__ = ["absolute_location"]
