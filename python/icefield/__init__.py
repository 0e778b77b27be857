"""Apache Iceberg tables in Python, on a Rust core.

Importing this package imports neither pyarrow nor pyspark nor SQLAlchemy: each is loaded by what needs it.
"""

from __future__ import annotations

from icefield import errors, transforms, types, values
from icefield._core import __version__, murmur3_32
from icefield.errors import IcefieldError
from icefield.schema import Schema
from icefield.types import NestedField

__all__ = [
    "IcefieldError",
    "NestedField",
    "Schema",
    "__version__",
    "errors",
    "murmur3_32",
    "transforms",
    "types",
    "values",
]
