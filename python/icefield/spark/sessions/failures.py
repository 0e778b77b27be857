"""Errors of workers: sent as one sentence, and raised again in the driver with their class.

Only text comes back from a worker: the frames that an error went through, then its class and message. The frames of
errors that icefield raises on purpose are of no use to a reader, so they are dropped. Where in which file something is
damaged follows the message in a line of its own, so that the error in the driver has it too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import isgeneratorfunction
from typing import ParamSpec, TypeVar, cast

from icefield import errors
from icefield.errors import CorruptDataError, IcefieldError, InternalError

__all__ = ["raised_in_task", "sentence"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def sentence(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Reduce errors of this function, which Spark calls in a worker, to their class and message."""
    if isgeneratorfunction(function):

        @wraps(function)
        def stream(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> Iterator[object]:
            try:
                yield from cast("Iterator[object]", function(*args, **kwargs))
            except InternalError:
                raise
            except IcefieldError as error:
                raise _sent(error) from None

        return stream  # type: ignore[return-value]

    @wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except InternalError:
            raise
        except IcefieldError as error:
            raise _sent(error) from None

    return call


class _Unsupported(IcefieldError):
    """An `UnsupportedFeatureError` for Spark, which treats a ``NotImplementedError`` of a plan as an empty table."""

    __module__ = "icefield.errors"


_Unsupported.__qualname__ = errors.UnsupportedFeatureError.__name__


class _Damaged(CorruptDataError):
    """A `CorruptDataError` whose text says where the damage is."""

    __module__ = "icefield.errors"

    def __str__(self) -> str:
        where = {name: getattr(self, name) for name in _WHERE if getattr(self, name) is not None}
        return f"{super().__str__()}\n{_MARK}{json.dumps(where)}" if where else super().__str__()


_Damaged.__qualname__ = CorruptDataError.__name__

_WHERE = ("file", "place", "offset")
_MARK = "where: "


def _sent(error: IcefieldError) -> IcefieldError:
    if isinstance(error, NotImplementedError):
        return _Unsupported(str(error))
    if type(error) is CorruptDataError:
        return _Damaged(str(error), error.file, error.place, error.offset)
    return error.with_traceback(None)


#: The last line of a worker's traceback, where the error is ours, up to what Spark puts after it.
_RAISED = re.compile(
    r"^icefield\.errors\.(?P<name>\w+): (?P<message>.*?)(?=\s*(?:^\s+at \S+\(|^Driver stacktrace|^JVM stacktrace|\Z))",
    re.MULTILINE | re.DOTALL,
)
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")


def raised_in_task(error: Exception) -> IcefieldError | None:
    """Return the icefield error with which a task failed, if Spark's error contains one."""
    found = _RAISED.search(str(error))
    # An error that caused another one is not what the task failed with.
    if found is None or any(text in found["message"] for text in _CHAINED):
        return None
    kind = getattr(errors, found["name"], None)
    if not (isinstance(kind, type) and issubclass(kind, IcefieldError)):
        return None
    message, _, where = found["message"].partition(f"\n{_MARK}")
    if kind is not CorruptDataError or not where:
        return kind(found["message"])
    try:
        known = json.loads(where)
    except ValueError:
        return kind(found["message"])
    return CorruptDataError(message, **{name: known.get(name) for name in _WHERE})
