"""Compare the public names of PyIceberg with those of icefield, by introspection.

A module of PyIceberg is compared with the module of the same name here: ``pyiceberg.table.sorting`` with
``icefield.table.sorting``. A name, member or signature is the same if every use of PyIceberg's works here: its
parameters by the same positions, keywords and defaults; further ones of ours may follow.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from types import ModuleType
from typing import Any

from pydantic import BaseModel, RootModel
from pyiceberg.typedef import IcebergBaseModel, IcebergRootModel

#: Modules that users of PyIceberg import from. The others are about its inside, or about catalogs of other kinds.
MODULES = (
    "catalog",
    "exceptions",
    "expressions",
    "expressions.literals",
    "expressions.visitors",
    "io",
    "partitioning",
    "schema",
    "table",
    "table.inspect",
    "table.maintenance",
    "table.metadata",
    "table.name_mapping",
    "table.refs",
    "table.snapshots",
    "table.sorting",
    "table.statistics",
    "table.update",
    "table.update.schema",
    "table.update.snapshot",
    "table.update.sorting",
    "table.update.spec",
    "table.update.statistics",
    "transforms",
    "types",
    "view",
    "view.metadata",
)

#: What all models of PyIceberg have, which is pydantic's, or its own for the sake of pydantic.
_MODEL = {*dir(BaseModel), *dir(RootModel), *dir(IcebergBaseModel), *dir(IcebergRootModel), "root"}

#: Where other names are: a module here, or a class here.
ELSEWHERE = {
    "table.update.snapshot": "table.update",
    "table.metadata.TableMetadataCommonFields": "TableMetadata",
    "table.maintenance.MaintenanceTable": "Maintenance",
}


def differences() -> dict[str, str]:
    """Return what differs, by the name in PyIceberg: ``table.Table.append`` and what is other about it."""
    found: dict[str, str] = {}
    for name in MODULES:
        theirs = importlib.import_module(f"pyiceberg.{name}")
        ours = _module(name)
        for what, thing in _public(theirs):
            known = getattr(ours, ELSEWHERE.get(f"{name}.{what}", what), None) if ours else None
            if known is None:
                found[f"{name}.{what}"] = "missing"
            else:
                found.update(_of_thing(f"{name}.{what}", thing, known))
    return found


def compared() -> int:
    """Return how many names are compared; of classes that are not here, only the classes themselves."""
    total = 0
    for name in MODULES:
        ours = _module(name)
        for what, thing in _public(importlib.import_module(f"pyiceberg.{name}")):
            known = getattr(ours, ELSEWHERE.get(f"{name}.{what}", what), None) if ours else None
            total += 1 + (len(list(_members(thing))) if inspect.isclass(thing) and inspect.isclass(known) else 0)
    return total


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(f"icefield.{ELSEWHERE.get(name, name)}")
    except ModuleNotFoundError:
        return None


def _public(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, thing in sorted(vars(module).items()):
        if getattr(thing, "__module__", None) != module.__name__ or name.startswith("_"):
            continue
        # A class with a bracket in its name is pydantic's, of a generic one.
        if "[" not in name and (inspect.isclass(thing) or inspect.isfunction(thing)):
            yield name, thing


def _of_thing(path: str, theirs: Any, ours: Any) -> Iterator[tuple[str, str]]:
    is_class = inspect.isclass(theirs)
    if is_class and not inspect.isclass(ours):
        yield path, "not a class"
        return
    made = not is_class or not (inspect.isabstract(theirs) or issubclass(theirs, Exception | Enum))
    if made and (other := _signature(theirs, ours)):
        yield path, other
    for name, kind in _members(theirs) if is_class else ():
        if other := _member(theirs, ours, name, kind):
            yield f"{path}.{name}", other


def _member(theirs: Any, ours: Any, name: str, kind: str) -> str | None:
    mine = getattr(ours, name, None)
    if mine is None:
        return None if name in _fields(ours) else "missing"
    if kind == "value":
        return "a method" if inspect.isroutine(mine) else None
    return _signature(getattr(theirs, name), mine) if callable(mine) else "not a method"


def _members(kind: type) -> Iterator[tuple[str, str]]:
    """Return the public members that the classes of PyIceberg give a class, and whether each is called."""
    names: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("pyiceberg"):
            continue
        for name, value in vars(base).items():
            routine = inspect.isroutine(value) or isinstance(value, classmethod | staticmethod)
            routine = routine and not isinstance(value, cached_property)
            names[name] = "method" if routine else "value"
        for name in (*getattr(base, "model_fields", ()), *vars(base).get("__annotations__", ())):
            names.setdefault(name, "value")
    for name, what in sorted(names.items()):
        if not name.startswith("_") and name not in _MODEL and not _is_validator(kind, name):
            yield name, what


def _is_validator(kind: type, name: str) -> bool:
    decorators = getattr(kind, "__pydantic_decorators__", None)
    if decorators is None:
        return False
    groups = ("validators", "field_validators", "root_validators", "model_validators", "field_serializers")
    return any(name in getattr(decorators, group) for group in (*groups, "model_serializers"))


def _fields(kind: type) -> set[str]:
    """Return the attributes of instances, which their class does not show."""
    declared = {name for base in kind.__mro__ for name in vars(base).get("__annotations__", ())}
    if kind.__module__.startswith("icefield.catalog"):
        declared |= {"name", "properties"}
    return {*getattr(kind, "__dataclass_fields__", ()), *declared}


def _signature(theirs: Any, ours: Any) -> str | None:
    """Return what is other about a signature."""
    wanted, given = _parameters(theirs), _parameters(ours)
    if wanted is None or given is None:
        return None
    problems = (_parameter(place, one, given) for place, one in enumerate(wanted))
    if other := next((problem for problem in problems if problem), None):
        return other
    names = {one.name for one in wanted}
    variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    more = [one for one in given if one.name not in names and one.default is one.empty and one.kind not in variable]
    return f"{more[0].name} is needed" if more and len(given) > len(wanted) else None


def _parameter(place: int, wanted: inspect.Parameter, given: list[inspect.Parameter]) -> str | None:
    kinds = {one.kind for one in given}
    if wanted.kind is wanted.VAR_KEYWORD:
        return None
    if wanted.kind is wanted.VAR_POSITIONAL:
        return None if wanted.kind in kinds else f"no *{wanted.name}"
    ours = next((one for one in given if one.name == wanted.name), None)
    if (
        ours is None
        and wanted.name != "_"
        and wanted.kind is not wanted.POSITIONAL_ONLY
        and wanted.VAR_KEYWORD not in kinds
    ):
        return f"no parameter {wanted.name}"
    positional = [one for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if wanted.kind is not wanted.KEYWORD_ONLY and wanted.VAR_POSITIONAL not in kinds:
        at = positional[place] if place < len(positional) else None
        if at is None or (wanted.name not in ("_", at.name) and at.kind is not at.POSITIONAL_ONLY):
            return f"{wanted.name} is not the {place + 1}. argument"
    return _default(wanted, ours) if ours is not None else None


def _default(wanted: inspect.Parameter, ours: inspect.Parameter) -> str | None:
    if wanted.default is wanted.empty:
        return None
    if ours.default is ours.empty:
        return f"{wanted.name} has no default"
    same = _same_default(wanted.default, ours.default)
    return None if same else f"{wanted.name} is {ours.default!r} by default, not {wanted.default!r}"


def _parameters(thing: Any) -> list[inspect.Parameter] | None:
    """Return the parameters that a caller passes."""
    try:
        if inspect.isclass(thing):
            # Models have a signature of their fields, which their own constructors know better.
            init = thing.__init__
            if issubclass(thing, BaseModel) and getattr(init, "__module__", "").startswith("pyiceberg"):
                # None stands there for what is needed as well.
                given = list(inspect.signature(init).parameters.values())[1:]
                return [one if one.default is not None else one.replace(default=one.empty) for one in given]
            if issubclass(thing, RootModel):
                return None
        parameters = list(inspect.signature(thing).parameters.values())
    except (TypeError, ValueError):
        return None
    if not inspect.isclass(thing) and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    return parameters


def _same_default(theirs: Any, ours: Any) -> bool:
    if theirs == ours or repr(theirs) == repr(ours):
        return True
    if isinstance(theirs, Enum) and str(getattr(ours, "value", ours)) == str(theirs.value):
        return True
    # Nothing, however it is said; a filter of nothing is one that matches all.
    empty = (None, "", (), [], {}, ...)
    filters_nothing = type(ours).__name__ == type(theirs).__name__ == "AlwaysTrue"
    if filters_nothing or (ours is None and str(theirs) in ("AlwaysTrue()", "[]")):
        return True
    return any(theirs == one for one in empty) and any(ours == one for one in empty)


if __name__ == "__main__":
    print(compared())  # noqa: T201
    for name, what in differences().items():
        print(f"{name}: {what}")  # noqa: T201
