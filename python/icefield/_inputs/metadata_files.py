"""Metadata files in the folder of a table."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING

from icefield.errors import StorageError

if TYPE_CHECKING:
    from icefield._core import Storage

__all__ = ["newest_metadata"]


def newest_metadata(storage: Storage, folder: str) -> str | None:
    """Return the metadata file with the highest version in the folder of a table, or in a folder ``metadata``."""
    if folder.endswith((".json", ".gz")):
        return None
    folder = folder.rstrip("/")
    # A storage lists all that is below a folder, which may be a whole disk: only folders of metadata are listed.
    inside = folder if folder.endswith("/metadata") else f"{folder}/metadata"
    found: list[tuple[int, str]] = []
    with suppress(StorageError):
        for path, _ in storage.list(inside):
            version = re.fullmatch(r"v?(\d+)\b.*metadata\.json(\.gz)?", path.rpartition("/")[2])
            if version is not None:
                found.append((int(version[1]), path))
    return max(found)[1] if found else None
