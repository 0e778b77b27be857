"""Optional packages, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from icefield.errors import NotInstalledError

__all__ = ["package_of", "require"]

# The extra of pyproject.toml that brings each package.
_EXTRAS = {
    "azure.identity": "azure-kms",
    "azure.keyvault.keys": "azure-kms",
    "boto3": "glue",
    "duckdb": "duckdb",
    "google.auth": "gcp-auth",
    "google.cloud.kms": "gcp-kms",
    "httpx": "rest",
    "pandas": "pandas",
    "polars": "polars",
    "psycopg": "postgres",
    "pyspark": "spark",
    "sqlglot": "spark",
    "thriftpy2": "hive",
}


def package_of(name: str) -> str:
    """Return the package that a module belongs to: its first name, but in namespaces of many packages."""
    inside = (package for package in _EXTRAS if f"{name}.".startswith(f"{package}."))
    return next(inside, name.partition(".")[0])


def require(name: str) -> Any:
    """Import an optional package.

    Raises
    ------
    NotInstalledError
        If the package (and not one of its dependencies) is missing.

    """
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        package = package_of(name)
        # Of a namespace such as `google`, any part may be missing.
        if not f"{package}.".startswith(f"{error.name}."):
            raise
        extra = _EXTRAS.get(package)
        remedy = f"pip install 'icefield[{extra}]'" if extra else f"pip install {package}"
        msg = f"{package} is required but not installed: {remedy}"
        raise NotInstalledError(msg, name=package) from None
