"""Which Python runs in Spark's workers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["drivers_python"]

#: What PySpark starts where neither ``PYSPARK_PYTHON`` nor the session names a Python.
_UNNAMED = "python3"


@contextmanager
def drivers_python() -> Iterator[None]:
    """Let functions that are made inside run in the driver's Python where the workers are on this machine.

    Otherwise a script that is started by ``/path/.venv/bin/python`` has workers of the system's ``python3``, which
    has no icefield. A Python that was named is left alone, as are clusters, where the driver's path means nothing.
    """
    from pyspark import SparkContext

    context = SparkContext._active_spark_context  # noqa: SLF001
    if (
        context is None
        or context.pythonExec != _UNNAMED
        or os.environ.get("PYSPARK_PYTHON")
        or not sys.executable
        or str(context.master).partition("[")[0] != "local"
    ):
        yield
        return
    context.pythonExec = sys.executable
    try:
        yield
    finally:
        context.pythonExec = _UNNAMED
