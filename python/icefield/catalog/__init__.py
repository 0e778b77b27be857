"""Catalogs: names of tables, and which metadata is theirs now.

`load_catalog` opens one by the properties given, those of the environment, and those of the configuration file (see
`icefield.catalog.configuration`).
"""

from __future__ import annotations

from importlib import import_module

from icefield._secrets import guarded
from icefield.catalog.base import Catalog, PropertiesUpdateSummary
from icefield.catalog.configuration import catalog_names, catalog_properties, default_catalog
from icefield.catalog.identifier import Identifier, IdentifierLike
from icefield.errors import InvalidArgumentError, NoSuchCatalogError, UnsupportedFeatureError

__all__ = [
    "Catalog",
    "Identifier",
    "IdentifierLike",
    "PropertiesUpdateSummary",
    "list_catalogs",
    "load_catalog",
]

# Kinds of catalogs: the value of the property ``type``, and the class that serves it.
CATALOGS = {
    "in-memory": "icefield.catalog.memory:InMemoryCatalog",
    "sql": "icefield.catalog.sql:SqlCatalog",
}

# The kind that a URI's scheme means where ``type`` is not given.
_SCHEMES = {"sqlite": "sql", "postgres": "sql", "postgresql": "sql"}


def load_catalog(name: str | None = None, **properties: str | None) -> Catalog:
    """Open a catalog.

    Parameters
    ----------
    name
        Its name; without one the configured default.
    **properties
        Properties of the catalog and its storage; they win over the environment, which wins over the file. ``type``
        chooses the kind (``sql``, ``in-memory``); without it the scheme of ``uri`` does.

    Raises
    ------
    NoSuchCatalogError
        If nothing says what the catalog is.

    """
    given: object = name
    if given is not None and not isinstance(given, str):
        msg = f"the name of a catalog is text, not {given!r}"
        raise InvalidArgumentError(msg)
    name = default_catalog() if name is None else name
    merged = catalog_properties(name)
    merged.update(guarded({key: value for key, value in properties.items() if value is not None}))
    kind = merged.get("type") or _SCHEMES.get(merged.get("uri", "").partition(":")[0].partition("+")[0].lower())
    if kind is None:
        known = ", ".join(catalog_names()) or "none"
        msg = (
            f"catalog {name!r} is not configured: give a 'uri' or a 'type' ({', '.join(CATALOGS)}); configured: {known}"
        )
        raise NoSuchCatalogError(msg)
    if kind not in CATALOGS:
        msg = f"catalogs of type {kind!r} are not supported; supported: {', '.join(CATALOGS)}"
        raise UnsupportedFeatureError(msg)
    module, _, attribute = CATALOGS[kind].partition(":")
    opened: Catalog = getattr(import_module(module), attribute)(name, **merged)
    return opened


def list_catalogs() -> list[str]:
    """List the names of the catalogs that the environment and the configuration file know."""
    return catalog_names()
