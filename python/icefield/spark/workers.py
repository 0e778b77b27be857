"""The Python interpreter of Spark's workers."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["drivers_python"]

#: The default of PySpark, if neither ``PYSPARK_PYTHON`` nor the session names an interpreter.
_UNNAMED = "python3"


@contextmanager
def drivers_python() -> Iterator[None]:
    """Run functions created in this context with the driver's Python, if the workers are on this machine.

    Otherwise a script that is started by ``/path/.venv/bin/python`` has workers of the system's ``python3``, without
    icefield. An explicit interpreter is kept; so are clusters, where the driver's path is meaningless.
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
