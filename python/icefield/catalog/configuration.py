"""Properties of named catalogs: arguments, then the environment, then a file.

Files: ``.icefield.yaml`` or ``.pyiceberg.yaml`` in ``$ICEFIELD_HOME`` or ``$PYICEBERG_HOME``, the home folder, the
current folder; the first that is found is read::

    default-catalog: local
    catalog:
      local:
        uri: sqlite:///warehouse/catalog.db
        warehouse: warehouse

Environment: ``ICEFIELD_CATALOG__LOCAL__URI=...`` (or ``PYICEBERG_...``); ``_`` stands for ``-`` and ``__`` for ``.`` in
the names of properties: ``ICEFIELD_CATALOG__LOCAL__S3__ACCESS_KEY_ID`` is ``s3.access-key-id``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icefield._optional import require
from icefield._secrets import guarded
from icefield.errors import InvalidArgumentError

__all__ = ["catalog_names", "catalog_properties", "default_catalog"]

_FILES = (".icefield.yaml", ".pyiceberg.yaml")
# Later prefixes win.
_PREFIXES = ("PYICEBERG_", "ICEFIELD_")
_CATALOG = "CATALOG__"


def catalog_properties(name: str) -> dict[str, str]:
    """Give what the environment and the file say about a catalog; empty if nothing."""
    properties = dict(_file_catalogs().get(name.lower(), {}))
    properties.update(_environment_catalogs().get(name.lower(), {}))
    return guarded(properties)


def catalog_names() -> list[str]:
    """Give the names of all catalogs that the environment and the file know."""
    return sorted({*_file_catalogs(), *_environment_catalogs()})


def default_catalog() -> str:
    """Give the name of the catalog that is meant where none is named."""
    for prefix in reversed(_PREFIXES):
        if name := os.environ.get(f"{prefix}DEFAULT_CATALOG"):
            return name
    return str(_file().get("default-catalog", "default"))


def _environment_catalogs() -> dict[str, dict[str, str]]:
    catalogs: dict[str, dict[str, str]] = {}
    for prefix in _PREFIXES:
        start = prefix + _CATALOG
        for variable, value in os.environ.items():
            if not variable.upper().startswith(start):
                continue
            name, separator, key = variable[len(start) :].lower().partition("__")
            if separator:
                key = key.replace("__", ".").replace("_", "-")
                catalogs.setdefault(name.replace("_", "-"), {})[key] = value
    return catalogs


def _file_catalogs() -> dict[str, dict[str, str]]:
    catalogs = _file().get("catalog") or {}
    if not isinstance(catalogs, Mapping):
        msg = "'catalog' in the configuration file must map names to properties"
        raise InvalidArgumentError(msg)
    return {str(name).lower(): _flat(properties) for name, properties in catalogs.items()}


def _flat(properties: Any, prefix: str = "") -> dict[str, str]:
    """Join nested keys by dots; numbers and booleans as the text that a person would write."""
    if properties is None:
        return {}
    if not isinstance(properties, Mapping):
        msg = f"the properties of a catalog must be a mapping, not {properties!r}"
        raise InvalidArgumentError(msg)
    flat: dict[str, str] = {}
    for key, value in properties.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}."))
        elif isinstance(value, bool):
            flat[f"{prefix}{key}"] = str(value).lower()
        elif value is not None:
            flat[f"{prefix}{key}"] = str(value)
    return flat


def _file() -> Mapping[str, Any]:
    path = _find_file()
    if path is None:
        return {}
    content = require("yaml").safe_load(path.read_text(encoding="utf-8"))
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        msg = f"{path}: must be a mapping"
        raise InvalidArgumentError(msg)
    return {str(key).lower(): value for key, value in content.items()}


def _find_file() -> Path | None:
    homes = (os.environ.get("ICEFIELD_HOME"), os.environ.get("PYICEBERG_HOME"), str(Path.home()), str(Path.cwd()))
    for home in homes:
        for name in _FILES:
            if home and (path := Path(home) / name).is_file():
                return path
    return None
