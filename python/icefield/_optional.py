"""Optional packages, imported when they are first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from icefield.errors import NotInstalledError

__all__ = ["require"]

# The extra of pyproject.toml that brings each package.
_EXTRAS = {
    "boto3": "glue",
    "duckdb": "duckdb",
    "httpx": "rest",
    "pandas": "pandas",
    "polars": "polars",
    "psycopg": "postgres",
    "pyspark": "spark",
    "sqlglot": "spark",
    "thriftpy2": "hive",
}


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
        package = name.partition(".")[0]
        if error.name != package:
            raise
        extra = _EXTRAS.get(package)
        remedy = f"pip install 'icefield[{extra}]'" if extra else f"pip install {package}"
        msg = f"{package} is required but not installed: {remedy}"
        raise NotInstalledError(msg, name=package) from None
