"""Properties of named catalogs: arguments, then the environment, then a file.

`icefield.catalog` describes the file and the names in the environment. Every value in the file is read as a string, as
in PyIceberg: ``01234567``, ``on``, ``1.10`` and ``null`` are these strings, not numbers or booleans. Nested keys are
joined by dots.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from icefield._inputs.secrets import guarded
from icefield._inputs.text_files import read_mapping
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["catalog_names", "catalog_properties", "default_catalog"]

_FILES = (".icefield.yaml", ".pyiceberg.yaml")
# Later prefixes win.
_PREFIXES = ("PYICEBERG_", "ICEFIELD_")
_CATALOG = "CATALOG__"


def catalog_properties(name: str) -> dict[str, str]:
    """Return the properties of a catalog from the environment and the configuration file; empty if there are none."""
    properties = _flat(name, _file_catalogs().get(name.lower()))
    properties.update(_environment_catalogs().get(name.lower(), {}))
    return guarded(properties)


def catalog_names() -> list[str]:
    """Return the names of all catalogs in the environment and the configuration file."""
    return sorted({*_file_catalogs(), *_environment_catalogs()})


def default_catalog() -> str:
    """Return the name of the default catalog."""
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


def _file_catalogs() -> dict[str, object]:
    catalogs = _file().get("catalog") or {}
    if not isinstance(catalogs, Mapping):
        msg = "'catalog' in the configuration file must map names to properties"
        raise InvalidArgumentError(msg)
    return {name.lower(): properties for name, properties in catalogs.items()}


def _flat(catalog: str, properties: object, prefix: str = "") -> dict[str, str]:
    """Join nested keys by dots."""
    if not properties:
        return {}
    if not isinstance(properties, Mapping):
        msg = f"the properties of catalog {catalog!r} in the configuration file must be a mapping of names to text"
        raise InvalidArgumentError(msg)
    flat: dict[str, str] = {}
    for key, value in properties.items():
        if isinstance(value, Mapping):
            flat.update(_flat(catalog, value, f"{prefix}{key}."))
        elif isinstance(value, str):
            flat[f"{prefix}{key}"] = value
        else:
            # The value may be a secret, so it is not shown.
            msg = f"property {prefix}{key} of catalog {catalog!r} in the configuration file is a list; expected text"
            raise InvalidArgumentError(msg)
    return flat


def _file() -> Mapping[str, object]:
    path = _find_file()
    return {} if path is None else {key.lower(): value for key, value in read_mapping(path).items()}


def _find_file() -> Path | None:
    from pathlib import Path

    named = [Path(home) for name in ("ICEFIELD_HOME", "PYICEBERG_HOME") if (home := os.environ.get(name))]
    for folder in (*named, *_own_folders()):
        for name in _FILES:
            if (path := folder / name).is_file():
                return path
    return None


def _own_folders() -> Iterator[Path]:
    """Yield the home of the user and the working directory, if they exist."""
    from pathlib import Path

    # A user whose number the system does not know has no home, as in containers; a working directory may be deleted.
    for folder in (Path.home, Path.cwd):
        with suppress(RuntimeError, FileNotFoundError):
            yield folder()
