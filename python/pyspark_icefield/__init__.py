"""Where PySpark finds the data source ``icefield`` without registration.

At the first format that it does not know, PySpark (4.1 and later) imports every module whose name begins with
``pyspark_`` and takes its ``DefaultSource``. This one must therefore be quick to import and must never raise.
"""

from __future__ import annotations

from contextlib import suppress

__all__ = ["DefaultSource"]

with suppress(Exception):
    from icefield.spark.source import Source as DefaultSource
