"""Spark's workers: which Python they run, and what a task does first in them."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from threading import Lock
from weakref import WeakKeyDictionary
from zipimport import zipimporter

from pyspark import SparkContext

__all__ = ["begin_task", "drivers_python", "name_drivers_python"]

#: The default of PySpark, if neither ``PYSPARK_PYTHON`` nor the session names an interpreter.
_UNNAMED = "python3"


def name_drivers_python() -> None:
    """Set, for a Java machine that is yet to start, which Python the driver runs.

    At a format that it does not know Spark looks for Python data sources with ``PYSPARK_DRIVER_PYTHON``, or else
    ``PYSPARK_PYTHON``, or else the ``python3`` of PATH. The last is another Python where a script is run by the path of
    its environment's interpreter, and would not find icefield there. What is set is kept.
    """
    if (
        SparkContext._gateway is None  # noqa: SLF001
        and "PYSPARK_GATEWAY_PORT" not in os.environ  # under spark-submit, Java runs already
        and not os.environ.get("PYSPARK_PYTHON")
        and not os.environ.get("PYSPARK_DRIVER_PYTHON")
        and sys.executable
        and not _is_this_python(shutil.which(_UNNAMED))
    ):
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable


def _is_this_python(path: str | None) -> bool:
    """Return whether an interpreter is that of this environment; two environments may link to the same file."""
    return path is not None and PurePath(path).parent == PurePath(sys.executable).parent


#: Contexts whose Python is the driver's for now, and for how many blocks.
_BORROWED: WeakKeyDictionary[SparkContext, int] = WeakKeyDictionary()
_BORROWING = Lock()


@contextmanager
def drivers_python() -> Iterator[None]:
    """Run functions created in this context with the driver's Python, if the workers are on this machine.

    Otherwise a script that is started by ``/path/.venv/bin/python`` has workers of the system's ``python3``, without
    icefield. An explicit interpreter is kept; so are clusters, where the driver's path is meaningless. Several threads
    may be in such a context at a time: the last one to leave undoes it.
    """
    context = SparkContext._active_spark_context  # noqa: SLF001
    if (
        context is None
        or os.environ.get("PYSPARK_PYTHON")
        or not sys.executable
        or str(context.master).partition("[")[0] != "local"
    ):
        yield
        return
    with _BORROWING:
        count = _BORROWED.get(context, 0)
        borrows = count > 0 or context.pythonExec == _UNNAMED
        if borrows:
            _BORROWED[context] = count + 1
            context.pythonExec = sys.executable
    try:
        yield
    finally:
        if borrows:
            with _BORROWING:
                _BORROWED[context] -= 1
                if not _BORROWED[context]:
                    del _BORROWED[context]
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
