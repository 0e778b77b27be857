"""Declarations of procedures: parameters, result columns, and how values become arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal, TypeAlias

from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.scan.moments import instant_of

if TYPE_CHECKING:
    from icefield.catalog import Catalog

__all__ = [
    "LETTER_CASE",
    "Arguments",
    "Column",
    "Parameter",
    "ParameterType",
    "Procedure",
    "ResultType",
    "table_parts",
    "unsupported",
]

ParameterType: TypeAlias = Literal[
    "table", "string", "long", "int", "boolean", "timestamp", "array<long>", "array<string>", "map<string,string>"
]
ResultType: TypeAlias = Literal["long", "int", "string", "timestamp"]
#: Arguments of a procedure by the names of its parameters; those that were not passed are missing. `LETTER_CASE` may be
#: among them.
Arguments: TypeAlias = dict[str, object]
#: No parameter, but a setting of Spark's session: whether names of columns are case-sensitive; by default they are.
LETTER_CASE = "case-sensitive"

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a procedure."""

    name: str
    type: ParameterType
    required: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.type}" if self.required else f"[{self.name} {self.type}]"


@dataclass(frozen=True)
class Column:
    """A column of the rows that a procedure returns."""

    name: str
    type: ResultType
    nullable: bool = False


@dataclass(frozen=True)
class Procedure:
    """A procedure of Java's connector, made of operations of tables and catalogs."""

    name: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    run: Callable[[Catalog, Arguments], list[tuple[object, ...]]]
    #: Whether it can remove what cannot be restored, so that a command asks first.
    destructive: bool = False

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def arguments(self, positional: Sequence[object] = (), named: Mapping[str, object] | None = None) -> Arguments:
        """Return values as arguments, in the types of the parameters.

        Parameters
        ----------
        positional
            Values in the order of the parameters.
        named
            Values by the names of the parameters, in any case of letters. ``None`` is as if it were not passed.

        Raises
        ------
        InvalidArgumentError
            If a parameter is unknown, missing or passed twice, or a value is of another type; the message lists the
            parameters.

        """
        if len(positional) > len(self.parameters):
            raise self._error(f"got {len(positional)} values for {len(self.parameters)} parameters")
        found = {one.name: value for one, value in zip(self.parameters, positional, strict=False)}
        known = {one.name.lower(): one.name for one in self.parameters}
        for given, value in (named or {}).items():
            name = known.get(given.lower())
            if name is None:
                near = get_close_matches(given.lower(), known, 1)
                raise self._error(f"unknown parameter {given!r}{f'; did you mean {near[0]}?' if near else ''}")
            if name in found:
                raise self._error(f"parameter {name!r} is passed twice")
            found[name] = value
        arguments: Arguments = {}
        for one in self.parameters:
            value = found.get(one.name)
            if value is not None:
                arguments[one.name] = self._converted(one, value)
            elif one.required:
                raise self._error(f"parameter {one.name!r} is missing")
        return arguments

    def _error(self, message: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{self.name}: {message}; it is {self}")

    def _converted(self, parameter: Parameter, value: object) -> object:
        try:
            return _CONVERSIONS[parameter.type](value)
        except InvalidArgumentError as error:
            raise self._error(f"parameter {parameter.name!r}: {error}") from error
        except (TypeError, ValueError, OverflowError):
            raise self._error(f"parameter {parameter.name!r}: expected {parameter.type}, got {value!r}") from None


def table_parts(value: object) -> tuple[str, ...]:
    """Return the parts of the name of a table, with backquotes around those that have dots."""
    if isinstance(value, tuple | list) and all(isinstance(part, str) for part in value):
        return tuple(map(str, value))
    if not isinstance(value, str):
        raise TypeError
    parts, at = [], 0
    while True:
        found = _PART.match(value, at)
        if found is None:
            raise ValueError
        parts.append(found[2] if found[1] is None else found[1].replace("``", "`"))
        at = found.end()
        if at == len(value):
            return tuple(parts)
        if value[at] != ".":
            raise ValueError
        at += 1


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _integer(bits: int) -> Callable[[object], int]:
    def converted(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise TypeError
        number = int(value)
        if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
            raise OverflowError
        return number

    return converted


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    return _FLAGS[value.lower()] if isinstance(value, str) and value.lower() in _FLAGS else _fail()


def _fail() -> bool:
    raise ValueError


def _timestamp(value: object) -> datetime:
    """Return an aware time: text needs an offset, as a procedure has no time zone."""
    if isinstance(value, str):
        return instant_of(value, "the time")
    if not isinstance(value, datetime):
        raise TypeError
    if value.utcoffset() is None:
        raise InvalidArgumentError(f"{value!r} has no time zone: add one, as in .replace(tzinfo=timezone.utc)")
    return value


def _listed(value: object) -> list[object]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")] if value else []
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise TypeError
    return list(value)


def _longs(value: object) -> list[int]:
    return [_integer(64)(one) for one in _listed(value)]


def _strings(value: object) -> list[str]:
    return [_string(one) for one in _listed(value)]


def _map(value: object) -> dict[str, str]:
    """Return texts by texts: a mapping, or ``key=value,key=value``."""
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",")] if value else []
        if not all(equals for _, equals, _ in pairs):
            raise ValueError
        return {key.strip(): text.strip() for key, _, text in pairs}
    if not isinstance(value, Mapping):
        raise TypeError
    return {_string(key): _string(text) for key, text in value.items()}


_CONVERSIONS: dict[ParameterType, Callable[[object], object]] = {
    "table": table_parts,
    "string": _string,
    "long": _integer(64),
    "int": _integer(32),
    "boolean": _boolean,
    "timestamp": _timestamp,
    "array<long>": _longs,
    "array<string>": _strings,
    "map<string,string>": _map,
}


def unsupported(name: str, instead: str) -> UnsupportedFeatureError:
    """Return the error for a procedure that is not supported."""
    return UnsupportedFeatureError(f"procedure {name} is not supported: {instead}")
