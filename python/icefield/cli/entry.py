"""The command's beginning and its end: missing packages, errors, warnings, exit codes."""

from __future__ import annotations

import os
import sys
import traceback
import warnings

from icefield._outputs.printable import printable
from icefield._support.optional import require
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    IcefieldError,
    NotInstalledError,
    ValidationException,
)

try:
    for _package in ("click", "rich"):
        require(_package)
    from icefield.cli.commands import icefield
except NotInstalledError as error:
    _missing: NotInstalledError | None = error
else:
    _missing = None

__all__ = ["main"]

_FAILED, _UNKNOWN, _CONFLICT = 1, 3, 4


def main() -> None:
    """Run the command; an error becomes one line on standard error, and an exit code.

    0: done. 1: failed. 2: wrong usage, or not confirmed. 3: the outcome of a commit is unknown. 4: another commit was
    first, and nothing was changed.
    """
    warnings.showwarning = _warn
    try:
        _run()
    except Exception as error:  # noqa: BLE001 - a traceback helps nobody at a prompt
        if os.environ.get("ICEFIELD_TRACEBACK"):
            traceback.print_exc()
        sys.stderr.write(f"icefield: {_line(_message(error))}\n")
        sys.exit(_code(error))


def _run() -> None:
    if _missing is not None:
        raise _missing
    icefield()


def _message(error: Exception) -> str:
    if isinstance(error, IcefieldError | OSError):
        return str(error)
    return f"{type(error).__name__}: {error} (set ICEFIELD_TRACEBACK=1 to see where)"


def _code(error: Exception) -> int:
    if isinstance(error, CommitStateUnknownException):
        return _UNKNOWN
    return _CONFLICT if isinstance(error, CommitFailedException | ValidationException) else _FAILED


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as errors are printed, without the line of code that it comes from."""
    sys.stderr.write(f"icefield: warning: {_line(str(message))}\n")


def _line(message: str) -> str:
    # What a driver or a store says may have several lines.
    return printable(" ".join(line.strip() for line in message.splitlines()))
