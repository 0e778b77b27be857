"""The command's beginning and its end: missing packages, errors, warnings."""

from __future__ import annotations

import sys
import warnings

from icefield._optional import require
from icefield._printable import printable
from icefield.errors import IcefieldError, NotInstalledError

try:
    for _package in ("click", "rich"):
        require(_package)
    from icefield.cli.commands import icefield
except NotInstalledError as error:
    _missing: NotInstalledError | None = error
else:
    _missing = None

__all__ = ["main"]


def main() -> None:
    """Run the command; an icefield error becomes one line on standard error and exit code 1."""
    warnings.showwarning = _warn
    try:
        if _missing is not None:
            raise _missing
        icefield()
    except IcefieldError as error:
        sys.stderr.write(f"icefield: {_line(error)}\n")
        sys.exit(1)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as errors are printed, without the line of code that it comes from."""
    sys.stderr.write(f"icefield: warning: {_line(message)}\n")


def _line(message: Exception | str) -> str:
    # What a driver or a store says may have several lines.
    return printable(" ".join(line.strip() for line in str(message).splitlines()))
