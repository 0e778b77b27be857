"""Names of parameters that are written otherwise: former ones, accepted for one more release, and other calls'."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast

from icefield.errors import ArgumentTypeError

__all__ = ["CalledNumber", "former_names", "other_names", "warn_of_form"]

F = TypeVar("F", bound=Callable[..., object])


class CalledNumber(int):
    """The value of a property that was a method."""

    def __call__(self) -> int:
        """Return the number, with a warning."""
        warn_of_form("last_sequence_number()", "last_sequence_number, which is a property")
        return int(self)


def former_names(**names: str) -> Callable[[F], F]:
    """Accept parameters under their former names too: ``former_names(data="df")``."""

    def of(function: F) -> F:
        @wraps(function)
        def called(*args: object, **kwargs: object) -> object:
            for former, present in names.items():
                if former in kwargs:
                    warn_of_form(f"{function.__name__}({former}=...)", f"{present}=...")
                    kwargs[present] = kwargs.pop(former)
            return function(*args, **kwargs)

        return cast("F", called)

    return of


def other_names(**names: str) -> Callable[[F], F]:
    """Refuse names that other calls have for a parameter, and say what is meant: ``other_names(on="join_cols")``."""

    def of(function: F) -> F:
        @wraps(function)
        def called(*args: object, **kwargs: object) -> object:
            for name, mend in names.items():
                if name in kwargs:
                    msg = f"{function.__name__}() has no argument {name!r}: use {mend}"
                    raise ArgumentTypeError(msg)
            return function(*args, **kwargs)

        return cast("F", called)

    return of


def warn_of_form(former: str, present: str) -> None:
    """Warn of a call that is accepted for one more release."""
    warnings.warn(f"{former} is deprecated: use {present}", DeprecationWarning, stacklevel=3)
