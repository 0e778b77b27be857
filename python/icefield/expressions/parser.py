"""Parsing of filters, under the name of PyIceberg's module; see `icefield.expressions.parse`."""

from __future__ import annotations

from icefield.expressions import parse

__all__ = ["parse"]
