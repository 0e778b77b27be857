"""Where PySpark finds the data source ``icefield`` without registration.

At the first format that it does not know, PySpark (4.1 and later) imports every module whose name begins with
``pyspark_`` and takes its ``DefaultSource``, in every session that uses any Python source. So this module is quick to
import and never raises: `icefield.spark` is imported when the source is used, and says then what it lacks.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DefaultSource"]

with suppress(Exception):  # no PySpark, or one without Python data sources
    from pyspark.sql.datasource import DataSource

    class DefaultSource(DataSource):
        """The data source ``icefield``; an object of it is one of `icefield.spark.source.Source`."""

        def __new__(cls, options: Mapping[str, str]) -> DataSource:  # type: ignore[misc]
            """Make the source; without pyarrow the error says how to install it."""
            made: DataSource = import_module("icefield.spark.source").Source(options)
            return made

        @classmethod
        def name(cls) -> str:
            """Return the name of the format."""
            return "icefield"
