"""Types of catalogs: built-in ones, those of installed packages, and classes named in a configuration.

A package provides a type by an entry point in the group ``icefield.catalogs``: its name is the value of the property
``type``, its object a subclass of `Catalog`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from icefield.catalog.base import Catalog
from icefield.errors import InvalidArgumentError, NotInstalledError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "OWN_KINDS", "class_named", "class_of_kind", "kinds"]

#: The group of entry points.
GROUP = "icefield.catalogs"

#: Built-in types: the value of the property ``type``, and the class.
OWN_KINDS = {
    "dynamodb": "icefield.catalog.dynamodb:DynamoDbCatalog",
    "glue": "icefield.catalog.glue:GlueCatalog",
    "hadoop": "icefield.catalog.folder:FolderCatalog",
    "hive": "icefield.catalog.hive:HiveCatalog",
    "in-memory": "icefield.catalog.memory:InMemoryCatalog",
    "rest": "icefield.catalog.rest:RestCatalog",
    "sql": "icefield.catalog.sql:SqlCatalog",
}


def kinds() -> list[str]:
    """Return the known values of the property ``type``, built-in ones first."""
    return [*OWN_KINDS, *sorted(name for name in _installed() if name not in OWN_KINDS)]


def class_of_kind(kind: str) -> type[Catalog]:
    """Return the class of a type of catalog.

    Raises
    ------
    InvalidArgumentError
        If an installed package names something that is not a `Catalog`.
    KeyError
        If the type is unknown.

    """
    if own := OWN_KINDS.get(kind):
        module, _, attribute = own.partition(":")
        return _checked(getattr(import_module(module), attribute), f"type {kind!r}")
    return _checked(_installed()[kind].load(), f"type {kind!r}")


def class_named(name: str) -> type[Catalog]:
    """Return the class that ``py-catalog-impl`` names: ``package.module.Class``.

    Raises
    ------
    InvalidArgumentError
        If that is not the name of a class, or the class is not a `Catalog`.
    NotInstalledError
        If its module is not installed.

    """
    what = f"the property py-catalog-impl={name!r}"
    module, _, attribute = name.rpartition(".")
    if not module:
        raise InvalidArgumentError(f"{what}: expected the full name of a class, such as 'package.module.Class'")
    try:
        found = getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{what}: {error}") from error
    except AttributeError as error:
        raise InvalidArgumentError(f"{what}: {error}") from error
    return _checked(found, what)


def _installed() -> dict[str, EntryPoint]:
    # It takes longer to import than all else that `import icefield` imports.
    from importlib.metadata import entry_points

    return {entry.name.lower(): entry for entry in entry_points(group=GROUP)}


def _checked(found: object, what: str) -> type[Catalog]:
    if not isinstance(found, type) or not issubclass(found, Catalog):
        raise InvalidArgumentError(f"{what}: {found!r} is not a subclass of icefield.catalog.base.Catalog")
    return found
