"""Spark's workers: which Python they run, and what a task does first in them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from zipimport import zipimporter

__all__ = ["begin_task", "drivers_python"]

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


def begin_task() -> None:
    """Prepare the worker that runs a task for its work, and for the next task."""
    # Spark runs one worker per core; more threads would only compete with the other workers.
    os.environ.setdefault("ICEFIELD_THREADS", "1")
    _forget_archives()


def _forget_archives() -> None:
    """Take Spark's own archives out of Python's cache of importers.

    Before each task Spark has that cache checked (`importlib.invalidate_caches`), and for that Python reads the
    directories of all archives again: of Spark's libraries, of a jar of Spark, and of each jar of
    ``spark.jars.packages``. It takes 60 ms, and 300 ms beside the jar of the Java library. These archives never change,
    and the next import from one makes its importer again. Archives of the user (``addPyFile``) stay.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter) and _is_of_spark(PurePath(importer.archive)):
            sys.path_importer_cache.pop(path, None)


def _is_of_spark(archive: PurePath) -> bool:
    return archive.suffix == ".jar" or archive.parts[-3:-1] == ("python", "lib")
