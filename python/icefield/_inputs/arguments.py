"""Arguments of tables and catalogs in the forms that the core expects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import TypeVar, cast

from icefield._core import IDEMPOTENCY_KEY, PartitionSpec, SortOrder
from icefield.errors import ArgumentTypeError, InvalidArgumentError

__all__ = [
    "field_texts",
    "other_names",
    "property_names",
    "property_texts",
    "property_updates",
    "summary_entries",
]

F = TypeVar("F", bound=Callable[..., object])


def other_names(**names: str) -> Callable[[F], F]:
    """Refuse names that other calls have for a parameter, and name the right one: ``other_names(on="join_cols=")``."""

    def of(function: F) -> F:
        @wraps(function)
        def called(*args: object, **kwargs: object) -> object:
            for name, right in names.items():
                if name in kwargs:
                    msg = f"{function.__name__}() has no argument {name!r}: use {right}"
                    raise ArgumentTypeError(msg)
            return function(*args, **kwargs)

        return cast("F", called)

    return of


def property_texts(properties: Mapping[str, object] | None) -> dict[str, str]:
    """Return properties as strings; booleans are in lower case, as Java writes them.

    Raises
    ------
    InvalidArgumentError
        If a name is not a str, or a value is ``None``.

    """
    texts = {}
    for key, value in (properties or {}).items():
        if not isinstance(key, str) or value is None:
            msg = f"expected the name and the value of a property, got {key!r} and {value!r}"
            raise InvalidArgumentError(msg)
        texts[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def summary_entries(properties: Mapping[str, object] | None, idempotency_key: str | None) -> dict[str, str]:
    """Return entries of a snapshot's summary as strings, with the key by which a change is made once.

    Raises
    ------
    InvalidArgumentError
        If they are not a mapping, a name is not a str, or a value is ``None``; if the key is empty.

    """
    given: object = properties
    if given is not None and not isinstance(given, Mapping):
        msg = f"snapshot_properties: expected a mapping, got {given!r:.100}; a branch is passed as branch=..."
        raise ArgumentTypeError(msg)
    texts = property_texts(properties)
    if idempotency_key is None:
        return texts
    if not isinstance(idempotency_key, str) or not idempotency_key:
        raise InvalidArgumentError(f"idempotency_key must be a str that is not empty, got {idempotency_key!r}")
    return {**texts, IDEMPOTENCY_KEY: idempotency_key}


def property_names(names: Iterable[str] | str) -> list[str]:
    """Return names of properties as a list; a single str is one name.

    Raises
    ------
    InvalidArgumentError
        If a name is not a str.

    """
    listed = [names] if isinstance(names, str) else list(names)
    if odd := [name for name in listed if not isinstance(name, str)]:
        msg = f"expected the name of a property, got {odd[0]!r}"
        raise InvalidArgumentError(msg)
    return listed


def property_updates(properties: Mapping[str, object] | None) -> list[dict[str, object]]:
    """Return the updates of the REST protocol that set properties.

    Raises
    ------
    InvalidArgumentError
        If a name is not a str, a value is ``None``, or ``format-version`` is not a number.

    """
    texts = property_texts(properties)
    changes: list[dict[str, object]] = []
    # Reserved by the Java library: never stored as a property, but applied.
    if (version := texts.pop("format-version", None)) is not None:
        if not version.isascii() or not version.isdigit():
            msg = f"table property 'format-version' must be an integer, got {version!r}"
            raise InvalidArgumentError(msg)
        changes.append({"action": "upgrade-format-version", "format-version": int(version)})
    if texts:
        changes.append({"action": "set-properties", "updates": texts})
    return changes


def field_texts(
    fields: PartitionSpec | SortOrder | Mapping[str, object] | Iterable[str] | str | None,
    texts: Iterable[str] | str | None,
    what: str,
) -> list[str] | dict[str, object]:
    """Return partition or sort fields as the core expects them: strings, or the JSON of an object.

    Raises
    ------
    InvalidArgumentError
        If both forms are given.

    """
    if fields is not None and texts is not None:
        msg = f"pass the {what} only once: as an object or as text"
        raise InvalidArgumentError(msg)
    given: object = fields if texts is None else texts
    if given is None:
        return []
    if isinstance(given, str):
        return [given]
    if isinstance(given, PartitionSpec | SortOrder):
        found: dict[str, object] = json.loads(given.to_json())
        return found
    if isinstance(given, Mapping):
        return dict(given)
    if not isinstance(given, Iterable):
        msg = f"{what}: expected an object or the text of each field, got {given!r}"
        raise InvalidArgumentError(msg)
    return list(given)
