"""Write the public names of the package, with the parameters of what can be called, into tests/unit/public_api.txt.

First each name once, where it is documented; then what exists only because PyIceberg's users import it; then the other
addresses of all these: the short ones of ``icefield``, and PyIceberg's.

`make public-api` runs it, and a test compares the file with the package. Annotations are left out: how they print
depends on the version of Python, and users' code is type-checked in `tests/typing`.
"""

from __future__ import annotations

import dataclasses
import inspect
import runpy
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import SimpleNamespace
from typing import is_typeddict

ROOT = Path(__file__).parents[1]
#: What follows the name of a module in the second list, and the heading of the third.
FOR_PYICEBERG = ", for PyIceberg's users"
OTHERS = "other addresses"
LISTED = ROOT / "tests" / "unit" / "public_api.txt"


def outline() -> str:
    """Return the text of the file."""
    reference = SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "reference.py")))
    lines: list[str] = []
    homes = {id(entry.value): entry.path for entry in reference.entries() if callable(entry.value)}
    documented = {entry.value for entry in reference.entries() if inspect.isclass(entry.value)}
    listed = sorted(reference.names(), key=lambda entry: (entry.module, entry.name))
    own = [entry for entry in listed if homes.get(id(entry.value), entry.path) == entry.path]
    for theirs in (False, True):
        module = None
        for entry in own:
            if (entry.module in reference.OF_PYICEBERG or entry.path in reference.NAMES_OF_PYICEBERG) != theirs:
                continue
            if entry.module != module:
                lines += ["", f"{entry.module}{FOR_PYICEBERG if theirs else ''}"]
                module = entry.module
            if inspect.isclass(entry.value):
                lines += _class(entry.name, entry.value, reference.members(entry.value), documented)
            else:
                lines.append(f"  {entry.name}" + (_parameters(entry.value) if inspect.isroutine(entry.value) else ""))
    lines += ["", OTHERS]
    lines += [f"  {entry.path} = {homes[id(entry.value)]}" for entry in listed if entry not in own]
    return "\n".join(lines[1:]) + "\n"


def _class(name: str, value: type, members: list[str], documented: set[type]) -> Iterator[str]:
    bases = [base.__name__ for base in value.__bases__ if base is not object and not base.__name__.startswith("_")]
    yield f"  class {name}" + (f"({', '.join(bases)})" if bases else "")
    if _is_made(value):
        yield f"    {_parameters(value)}"
    names = set(members)
    if issubclass(value, Enum):
        # Whether they are in the dictionary of the class depends on the version of Python.
        names |= set(value.__members__)
    elif dataclasses.is_dataclass(value):
        names |= {field.name for field in dataclasses.fields(value)}
    elif is_typeddict(value):
        names |= value.__required_keys__ | value.__optional_keys__
    above = [base for base in value.__mro__[1:] if base in documented]
    for member in sorted(name for name in names if not name.startswith("_")):
        found = inspect.getattr_static(value, member, None)
        # What a class has from its base, or does in its own way behind the same signature, is not another name.
        shown = _member(value, member)
        if found is not None and any(shown == _member(base, member) for base in above if hasattr(base, member)):
            continue
        yield f"    {shown}"


def _member(of: type, name: str) -> str:
    found = inspect.getattr_static(of, name, None)
    is_called = inspect.isroutine(found) or isinstance(found, (classmethod, staticmethod))
    return name + (_parameters(getattr(of, name)) if is_called else "")


def _is_made(value: type) -> bool:
    """Return whether the class has a constructor of its own, or of its base, that users call."""
    if issubclass(value, (Enum, BaseException)) or getattr(value, "_is_protocol", False):
        return False
    made = [getattr(value, "__init__"), getattr(value, "__new__")]  # noqa: B009
    ours = any(inspect.isfunction(function) and function.__module__ != "typing" for function in made)
    return ours or getattr(value, "__text_signature__", None) is not None


def _parameters(value: Callable[..., object]) -> str:
    """Return the names of parameters, as they may be passed, and their defaults."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_default(parameter.default))
        for parameter in signature.parameters.values()
        if parameter.name not in {"self", "$self"}
    ]
    return str(inspect.Signature(parameters))


class _Shown:
    """A default that prints as the same text in all versions of Python."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _default(value: object) -> object:
    if value is inspect.Parameter.empty:
        return value
    if isinstance(value, Enum):
        return _Shown(f"{type(value).__name__}.{value.name}")
    if isinstance(value, type):
        return _Shown(value.__name__)
    is_plain = value is None or isinstance(value, (bool, int, float, str, bytes)) or value in ((), [], {})
    return value if is_plain else _Shown("...")


if __name__ == "__main__":
    LISTED.write_text(outline(), encoding="utf-8")
