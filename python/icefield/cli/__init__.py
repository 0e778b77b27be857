"""The command ``icefield``: look at catalogs, tables and metadata files from a shell.

Each command prints for people, or with ``--json`` one JSON document for machines.
"""

from __future__ import annotations

import sys

from icefield._optional import require
from icefield.errors import IcefieldError

__all__ = ["main"]


def main() -> None:
    """Run the command; an error of ours is one line on standard error and exit code 1."""
    try:
        for package in ("click", "rich"):
            require(package)
        from icefield.cli.commands import icefield

        icefield()
    except IcefieldError as error:
        # What a driver or a store says may have several lines.
        message = " ".join(line.strip() for line in str(error).splitlines())
        sys.stderr.write(f"icefield: {message}\n")
        sys.exit(1)
