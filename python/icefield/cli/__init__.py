"""The command ``icefield``: look at catalogs, tables and metadata files from a shell.

Each command prints for people, or with ``--json`` one JSON document for machines.
"""

from __future__ import annotations

from icefield.cli.entry import main

__all__ = ["main"]
