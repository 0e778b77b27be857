"""Apache Iceberg tables in Python, on a Rust core.

Importing this package imports neither pyarrow nor pyspark nor SQLAlchemy: each is loaded by what needs it.
"""

from __future__ import annotations

from icefield import errors
from icefield._core import __version__
from icefield.errors import IcefieldError

__all__ = [
    "IcefieldError",
    "__version__",
    "errors",
]
