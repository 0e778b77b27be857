"""Options that the committer of a write needs and its tasks must not have.

Spark pickles a writer twice in its planner: for the tasks, which run on any machine, and for the committer, another
process on the machine of the driver. Both get the same pickle. So options that may hold credentials of the catalog are
not in it: they wait in a file that only this user can read, in a folder that Spark itself deletes, and the pickle has
its path.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from icefield.errors import StorageError

__all__ = ["forget", "keep", "kept"]


def keep(options: Mapping[str, str]) -> str:
    """Write options to a file of the driver that only this user can read, and return its path."""
    # Spark deletes these folders when the driver ends, even if nothing was committed.
    folders = [folder for folder in os.environ.get("SPARK_LOCAL_DIRS", "").split(",") if folder]
    folder = next((folder for folder in folders if Path(folder).is_dir()), None)
    handle, path = tempfile.mkstemp(prefix="icefield-writer-", suffix=".json", dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(dict(options), file)
    return path


def kept(path: str) -> dict[str, str]:
    """Read the options.

    Raises
    ------
    StorageError
        If the file is gone; it says what to do.

    """
    try:
        options: dict[str, str] = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise StorageError(
            f"the options of the catalog waited for the commit in {path}, which cannot be read ({error.strerror}): "
            "use the name of a catalog that is configured in a file or in the environment, and no properties"
        ) from error
    return options


def forget(path: str) -> None:
    """Delete the file."""
    with suppress(OSError):
        Path(path).unlink()
