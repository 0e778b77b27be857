"""Apache Iceberg tables in Python, on a Rust core.

Importing this package imports neither pyarrow nor pyspark nor SQLAlchemy: each is loaded by what needs it.
"""

from __future__ import annotations

from icefield import errors, types
from icefield._core import __version__
from icefield.errors import IcefieldError
from icefield.schema import Schema
from icefield.types import NestedField

__all__ = [
    "IcefieldError",
    "NestedField",
    "Schema",
    "__version__",
    "errors",
    "types",
]
