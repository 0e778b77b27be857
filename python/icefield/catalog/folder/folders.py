"""Folders of a warehouse: on the local disk, and in object stores, where a folder is what keys have in common."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from icefield.errors import StorageError

if TYPE_CHECKING:
    from icefield._core import Storage

__all__ = ["Folders", "folders_of"]

#: The object that makes an empty folder of an object store exist.
_MARKER = ".icefield-folder"
_METADATA = ".metadata.json"


class Folders(ABC):
    """The folders below a location."""

    #: Whether a write that failed has certainly left nothing that may still appear.
    is_certain: bool

    @abstractmethod
    def exists(self, folder: str) -> bool:
        """Return whether there is such a folder."""

    @abstractmethod
    def children(self, folder: str) -> dict[str, bool]:
        """Return the folders directly in a folder by name, and whether each is that of a table."""

    @abstractmethod
    def is_table(self, folder: str) -> bool:
        """Return whether a folder is that of a table, as Java decides it: by its metadata files."""

    @abstractmethod
    def files(self, folder: str) -> list[str]:
        """Return the names of the files directly in a folder; none if it does not exist."""

    @abstractmethod
    def make(self, folder: str) -> None:
        """Make a folder, and those above it."""

    @abstractmethod
    def first(self, folder: str) -> str | None:
        """Return the name of something in a folder, or ``None`` if it is empty."""

    @abstractmethod
    def has_tables(self, folder: str) -> bool:
        """Return whether there are metadata files of tables below a folder, except those of the folder itself."""

    @abstractmethod
    def remove(self, folder: str, kept: Collection[str] = ()) -> list[str]:
        """Remove all that is in a folder but the files of some locations; return why something could not be removed."""

    @abstractmethod
    def prune(self, folder: str) -> None:
        """Remove a folder and those in it if they are empty."""

    @abstractmethod
    def remove_empty(self, folder: str) -> bool:
        """Remove a folder without anything in it; return whether it was empty."""


def folders_of(storage: Storage, location: str) -> Folders:
    """Return the folders of the storage of a location."""
    return _LocalFolders() if location.startswith("file:") else _ObjectFolders(storage)


class _LocalFolders(Folders):
    is_certain = True

    def exists(self, folder: str) -> bool:
        with _errors(folder) as path:
            return path.is_dir()

    def children(self, folder: str) -> dict[str, bool]:
        with _errors(folder) as path:
            if not path.is_dir():
                return {}
            return {each.name: self.is_table(f"{folder}/{each.name}") for each in path.iterdir() if each.is_dir()}

    def is_table(self, folder: str) -> bool:
        return any(name.endswith(_METADATA) for name in self.files(f"{folder}/metadata"))

    def files(self, folder: str) -> list[str]:
        with _errors(folder) as path:
            return [each.name for each in path.iterdir() if each.is_file()] if path.is_dir() else []

    def make(self, folder: str) -> None:
        with _errors(folder) as path:
            path.mkdir(parents=True, exist_ok=True)

    def first(self, folder: str) -> str | None:
        with _errors(folder) as path:
            return next((each.name for each in path.iterdir()), None)

    def has_tables(self, folder: str) -> bool:
        with _errors(folder) as path:
            found = (above for above, _, files in os.walk(path) if any(name.endswith(_METADATA) for name in files))
            return any(Path(above) != path / "metadata" for above in found)

    def remove(self, folder: str, kept: Collection[str] = ()) -> list[str]:
        left: list[str] = []
        stay = set()
        for location in kept:
            with _errors(location) as path:
                stay |= {path, *path.parents}
        with _errors(folder) as path:
            # Never by way of a link: what it leads to belongs to somebody else.
            if path.is_symlink():
                path.unlink()
            for above, folders, files in os.walk(path, topdown=False):
                for name in (*files, *folders):
                    each = Path(above, name)
                    if each in stay:
                        continue
                    try:
                        each.rmdir() if name in folders and not each.is_symlink() else each.unlink()
                    except OSError as error:
                        left.append(f"{each}: {error.strerror}")
            if path.is_dir() and path not in stay and not left:
                path.rmdir()
        return left

    def prune(self, folder: str) -> None:
        with _errors(folder) as path:
            for above, _, _ in os.walk(path, topdown=False):
                with suppress(OSError):  # it is not empty
                    Path(above).rmdir()

    def remove_empty(self, folder: str) -> bool:
        with _errors(folder) as path:
            try:
                path.unlink() if path.is_symlink() else path.rmdir()
            except OSError:
                if path.is_dir() and next(path.iterdir(), None) is None:
                    raise
                return not path.is_dir()
        return True


class _ObjectFolders(Folders):
    is_certain = False

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def exists(self, folder: str) -> bool:
        return self._storage.exists(f"{folder}/{_MARKER}") or bool(self._below(folder))

    def children(self, folder: str) -> dict[str, bool]:
        found: dict[str, bool] = {}
        for key, size in self._below(folder):
            name, slash, rest = key.partition("/")
            # Hadoop makes empty objects for folders.
            if slash or (size == 0 and name != _MARKER):
                found[name] = found.get(name, False) or _is_metadata(rest)
        return found

    def is_table(self, folder: str) -> bool:
        return any(_is_metadata(key) for key, _ in self._below(folder))

    def files(self, folder: str) -> list[str]:
        return [key for key, _ in self._below(folder) if "/" not in key]

    def make(self, folder: str) -> None:
        self._storage.write(f"{folder}/{_MARKER}", b"", overwrite=True)

    def first(self, folder: str) -> str | None:
        return next((key.partition("/")[0] for key, _ in self._below(folder) if key != _MARKER), None)

    def has_tables(self, folder: str) -> bool:
        return any(key.endswith(_METADATA) and not _is_metadata(key) for key, _ in self._below(folder))

    def remove(self, folder: str, kept: Collection[str] = ()) -> list[str]:
        left: list[str] = []
        for key, _ in self._below(folder):
            if f"{folder}/{key}" in kept:
                continue
            try:
                self._storage.delete(f"{folder}/{key}")
            except StorageError as error:
                left.append(str(error))
        return left

    def prune(self, folder: str) -> None:
        """Do nothing: a folder is there as long as something is in it."""

    def remove_empty(self, folder: str) -> bool:
        self._storage.delete(f"{folder}/{_MARKER}")
        return True

    def _below(self, folder: str) -> list[tuple[str, int]]:
        """Return the keys below a folder, without the folder, and their sizes."""
        start = len(folder) + 1
        return [(path[start:], size) for path, size in self._storage.list(folder) if len(path) > start]


def _is_metadata(key: str) -> bool:
    """Return whether a key within the folder of a table is that of a metadata file."""
    return key.startswith("metadata/") and key.endswith(_METADATA) and key.count("/") == 1


@contextmanager
def _errors(folder: str) -> Iterator[Path]:
    """Yield the path of a local folder, and convert errors of the system."""
    path = "/" + folder.removeprefix("file:").lstrip("/")
    try:
        yield Path(path[1:] if os.name == "nt" else path)
    except OSError as error:
        raise StorageError(f"{folder}: {error.strerror or error}") from error
