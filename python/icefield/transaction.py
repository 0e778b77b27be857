"""Changes of a table that become visible together, and what they are collected by."""

from __future__ import annotations

from icefield.table import Transaction
from icefield.table.update import Change

__all__ = ["Change", "Transaction"]
