"""The folder catalog: Java's and Spark's Hadoop catalog, whose tables and namespaces are folders of a warehouse.

A table is the folder of its name, with ``metadata/v1.metadata.json``, ``v2.metadata.json``, … A commit creates the file
of the next version, which fails where another commit has made it. ``metadata/version-hint.text`` has a version from
which the newest one is looked for; it may be out of date.
"""

from __future__ import annotations

import gzip
import json
import re
import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from icefield._core import TableMetadata, TableState
from icefield._inputs.identifiers import Identifier, IdentifierLike, namespace_tuple, table_tuple
from icefield._inputs.secrets import revealed
from icefield.catalog.base import Catalog, CommitTableResponse, PropertiesUpdateSummary, TableDefinition
from icefield.catalog.folder.folders import folders_of
from icefield.catalog.locations import absolute_location
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    CorruptDataError,
    ExistingFileError,
    InvalidArgumentError,
    MissingFileError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    StorageError,
    TableAlreadyExistsError,
    UnsupportedFeatureError,
)

if TYPE_CHECKING:
    from icefield.catalog.folder.folders import Folders
    from icefield.table import Table

__all__ = ["FolderCatalog"]

_DELETES = "write.metadata.delete-after-commit.enabled"
_HINT = "version-hint.text"
#: The names of a version's file; the last is that of older writers.
_NAMES = ("v{}.metadata.json", "v{}.gz.metadata.json", "v{}.metadata.json.gz")
_VERSION = re.compile(r"v(\d{1,9})(?:\.gz)?\.metadata\.json(?:\.gz)?")
_ATTEMPTS = 100


class _Current(NamedTuple):
    """The newest version of a table."""

    version: int
    location: str


class FolderCatalog(Catalog):
    """A catalog of the folders of a warehouse.

    Parameters
    ----------
    name
        Its name, which is stored nowhere.
    warehouse
        The folder of the warehouse. Object stores must be able to create an object only if it is absent.
    **properties
        Properties of the storage.

    """

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        warehouse = revealed(self.properties).get("warehouse")
        if not warehouse:
            msg = "folder catalogs require the property 'warehouse', for example s3://bucket/warehouse"
            raise NoSuchPropertyException(msg)
        self._warehouse = absolute_location(warehouse, "the property 'warehouse' of the catalog")
        self._is_exclusive = False

    @property
    def _folders(self) -> Folders:
        return folders_of(self.storage, self._warehouse)

    def _folder(self, levels: Identifier) -> str:
        if odd := [part for part in levels if part in {".", ".."} or "/" in part or "\\" in part]:
            raise InvalidArgumentError(f"{odd[0]!r} cannot be the name of a folder, so this catalog cannot have it")
        return "/".join((self._warehouse, *levels))

    # Namespaces

    def list_namespaces(self, namespace: IdentifierLike = ()) -> list[Identifier]:
        """List the folders directly under a namespace that are no tables; by default, under the warehouse."""
        levels = namespace_tuple(namespace)
        if levels:
            self._require_namespace(levels)
        children = self._folders.children(self._folder(levels))
        return sorted((*levels, name) for name, is_table in children.items() if not is_table and "." not in name)

    def create_namespace(self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None) -> None:
        """Create the folder of a namespace, and those above it; namespaces have no properties."""
        levels = namespace_tuple(namespace)
        if not levels:
            raise InvalidArgumentError("the root namespace cannot be created")
        if properties:
            raise UnsupportedFeatureError(f"namespace {'.'.join(levels)}: {_NO_PROPERTIES}")
        folder = self._folder(levels)
        if self._folders.exists(folder):
            raise NamespaceAlreadyExistsError(
                f"namespace {'.'.join(levels)} already exists: there is a folder {folder}"
            )
        above = next(
            (levels[:n] for n in range(1, len(levels)) if self._folders.is_table(self._folder(levels[:n]))), None
        )
        if above:
            raise InvalidArgumentError(f"{'.'.join(above)} is a table, which cannot contain a namespace")
        self._folders.make(folder)

    def drop_namespace(self, namespace: IdentifierLike) -> None:
        """Remove the folder of an empty namespace."""
        levels = namespace_tuple(namespace)
        if not levels:
            raise InvalidArgumentError("the root namespace cannot be dropped")
        self._require_namespace(levels)
        folder = self._folder(levels)
        if (first := self._folders.first(folder)) is not None:
            raise NamespaceNotEmptyError(f"namespace {'.'.join(levels)} is not empty: its folder contains {first}")
        if not self._folders.remove_empty(folder):
            raise NamespaceNotEmptyError(
                f"namespace {'.'.join(levels)} is not empty: something was created in it meanwhile"
            )

    def load_namespace_properties(self, namespace: IdentifierLike) -> dict[str, str]:
        """Return the location of a namespace, which is all that it has."""
        levels = namespace_tuple(namespace)
        self._require_namespace(levels)
        return {"location": self._folder(levels)}

    def update_namespace_properties(
        self,
        namespace: IdentifierLike,
        removals: Iterable[str] | str = (),  # noqa: ARG002
        updates: Mapping[str, str] | None = None,  # noqa: ARG002
    ) -> PropertiesUpdateSummary:
        """Refuse it: namespaces have no properties."""
        raise UnsupportedFeatureError(f"namespace {'.'.join(namespace_tuple(namespace))}: {_NO_PROPERTIES}")

    def _require_namespace(self, levels: Identifier) -> None:
        if not levels:
            return
        folder, folders = self._folder(levels), self._folders
        if not folders.exists(folder) or folders.is_table(folder):
            raise NoSuchNamespaceError(
                f"namespace {'.'.join(levels)} does not exist in catalog {self.name}: there is no folder {folder}"
                if not folders.exists(folder)
                else f"{'.'.join(levels)} is a table of catalog {self.name} and no namespace"
            )

    # Tables

    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the tables directly in a namespace."""
        levels = namespace_tuple(namespace)
        self._require_namespace(levels)
        children = self._folders.children(self._folder(levels))
        return sorted((*levels, name) for name, is_table in children.items() if is_table)

    def table_exists(self, identifier: IdentifierLike) -> bool:
        """Return whether there is a table of this name; its metadata is not read."""
        namespace, name = table_tuple(identifier)
        return self._newest(self._folder((*namespace, name))) is not None

    def load_table_metadata(self, identifier: IdentifierLike) -> CommitTableResponse:
        """Return the current metadata of a table."""
        current = self._require_table(identifier)
        return CommitTableResponse(TableState.load(self.storage, current.location).metadata, current.location)

    def commit_table(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],
        updates: Iterable[Mapping[str, object]],
    ) -> CommitTableResponse:
        """Apply updates to a table if it meets the requirements, by creating the metadata file of its next version."""
        requirements, updates = list(requirements), list(updates)
        self._require_exclusive()
        if any(requirement.get("type") == "assert-create" for requirement in requirements):
            return self._create(identifier, TableMetadata.create(json.dumps(updates)))
        for _ in range(_ATTEMPTS):
            current = self._require_table(identifier)
            base = TableState.load(self.storage, current.location).metadata
            base.check(json.dumps(requirements))
            metadata = base.apply(json.dumps(updates), previous_file=current.location)
            if metadata == base:
                return CommitTableResponse(base, current.location)
            if metadata.location != base.location:
                raise _certain(f"the location of {_full(identifier)} cannot be changed: the folder is its name")
            # Its name follows from the base: all that commit to one version create the same file.
            if (made := self._next(identifier, metadata, current, _is_gzip(base))) is not None:
                self._delete_old(base, metadata)
                return made
        raise CommitFailedException(f"{_full(identifier)}: other commits were faster {_ATTEMPTS} times")

    def stage_table(self, identifier: IdentifierLike, definition: TableDefinition) -> Table:
        """Return a new table that the catalog does not have yet."""
        folder = self.default_location(*table_tuple(identifier))
        given = definition.location
        if given is not None and absolute_location(given, "the location of the table") != folder:
            raise InvalidArgumentError(
                f"{_full(identifier)} cannot be at {given}: the folder of a table has its name, {folder}"
            )
        return super().stage_table(identifier, definition)

    def register_table(self, identifier: IdentifierLike, metadata_location: str, overwrite: bool = False) -> Table:
        """Register the table that is in the folder of this name, by the location of one of its metadata files."""
        if overwrite:
            raise UnsupportedFeatureError("folder catalogs do not register a table over an existing one")
        self._require_exclusive()
        metadata = TableState.load(self.storage, metadata_location).metadata
        self._create(identifier, metadata)
        return self.load_table(identifier)

    def rename_table(self, from_identifier: IdentifierLike, to_identifier: IdentifierLike) -> Table:
        """Refuse it, as Java does: the name of a table is its folder."""
        raise UnsupportedFeatureError(
            f"{_full(from_identifier)} cannot be renamed to {_full(to_identifier)}: in a folder catalog the name of a "
            "table is its folder"
        )

    def drop_table(self, identifier: IdentifierLike, purge_requested: bool = False) -> None:
        """Drop a table with its folder, as Java does; a purge deletes the files that are elsewhere as well.

        Where ``gc.enabled`` is ``false``, only the folder ``metadata`` is deleted.
        """
        namespace, name = table_tuple(identifier)
        folder = self._folder((*namespace, name))
        current = self._require_table(identifier)
        left: list[str] = []
        shared, state = False, None
        try:
            state = TableState.load(self.storage, current.location)
            shared = state.metadata.properties.get("gc.enabled", "true").lower() == "false"
        except (CorruptDataError, MissingFileError) as error:
            left.append(f"{error}")
        # The name is free when its last version is deleted, and what another writer creates there then is not ours to
        # delete. So a version stays until everything else is gone.
        metadata = f"{folder}/metadata"
        self.storage.delete(f"{metadata}/{_HINT}")
        failures, last = len(left), current
        if state is not None and purge_requested:
            last = self._kept_until_the_end(current)
            more, names = state.purge(self._warehouse)
            failures, left = failures + more, left + names
        not_removed = self._folders.remove(metadata if shared else folder, {last.location})
        failures, left = failures + len(not_removed), left + not_removed
        for _, location in sorted(self._versions(metadata)):
            self.storage.delete(location)
        self._folders.prune(metadata if shared else folder)
        if failures:
            shown = [*left[:3], *([f"and {failures - 3} more"] if failures > 3 else [])]  # noqa: PLR2004
            msg = f"table dropped, but some of its files could not be deleted: {'; '.join(shown)}"
            warnings.warn(msg, RuntimeWarning, stacklevel=2)

    def _kept_until_the_end(self, current: _Current) -> _Current:
        """Create one more version like the current one, which a purge does not know."""
        content, above, name = self.storage.read(current.location), *current.location.rpartition("/")[::2]
        copy = _Current(
            current.version + 1, f"{above}/{name.replace(str(current.version), str(current.version + 1), 1)}"
        )
        if not self._put(copy.location, content):
            raise CommitFailedException(
                f"{current.location}: the table was changed while it was dropped; drop it again"
            )
        return copy

    def default_location(self, namespace: Identifier, table: str) -> str:
        """Return the folder of a table."""
        return self._folder((*namespace, table))

    def _check_absent(self, identifier: IdentifierLike) -> None:
        super()._check_absent(identifier)
        namespace, name = table_tuple(identifier)
        folder = self._folder((*namespace, name))
        if not self._folders.exists(folder):
            return
        children = self._folders.children(folder).keys()
        # The folders of a table whose creation has not come to its end are taken over; tables in them would be lost.
        if not children or children - {"data", "metadata"} or self._folders.has_tables(folder):
            raise TableAlreadyExistsError(f"{_full(identifier)} already exists, as a namespace: the folder {folder}")

    # Versions

    def _require_table(self, identifier: IdentifierLike) -> _Current:
        namespace, name = table_tuple(identifier)
        if (current := self._newest(self._folder((*namespace, name)))) is None:
            raise self._missing_table(namespace, name)
        return current

    def _newest(self, folder: str) -> _Current | None:
        metadata = f"{folder}/metadata"
        hint = self._hint(metadata)
        location = None if hint is None else self._file(metadata, hint)
        if hint is None or location is None:
            found = max(self._versions(metadata), default=None)
            if found is None:
                return None
            if hint is not None and found.version < hint:
                raise CorruptDataError(
                    f"{metadata}/{_HINT} has version {hint}, whose metadata file is missing; the newest is version "
                    f"{found.version}: restore the file, or correct the version",
                    f"{metadata}/{_HINT}",
                )
            return found
        current = _Current(hint, location)
        while (following := self._file(metadata, current.version + 1)) is not None:
            current = _Current(current.version + 1, following)
        return current

    def _hint(self, metadata: str) -> int | None:
        """Return the version of the hint; ``None`` if there is no hint, or it is not a version."""
        try:
            text = self.storage.read(f"{metadata}/{_HINT}")
        except MissingFileError:
            return None
        return int(text) if re.fullmatch(rb"\s*[1-9]\d{0,8}\s*", text) else None

    def _file(self, metadata: str, version: int) -> str | None:
        """Return the location of the file of a version; ``None`` if there is none."""
        locations = (f"{metadata}/{name.format(version)}" for name in _NAMES)
        return next((location for location in locations if self.storage.exists(location)), None)

    def _versions(self, metadata: str) -> list[_Current]:
        named = ((name, _VERSION.fullmatch(name)) for name in self._folders.files(metadata))
        return [_Current(int(found[1]), f"{metadata}/{name}") for name, found in named if found]

    # Commits

    def _create(self, identifier: IdentifierLike, metadata: TableMetadata) -> CommitTableResponse:
        namespace, name = table_tuple(identifier)
        self._check_absent(identifier)
        folder = self._folder((*namespace, name))
        if absolute_location(metadata.location, "the location of the table") != folder:
            raise InvalidArgumentError(
                f"{_full(identifier)} cannot be at {metadata.location}: the folder of a table has its name, {folder}"
            )
        made = self._next(identifier, metadata, _Current(0, f"{folder}/metadata/v0"), _is_gzip(metadata))
        if made is None:
            raise TableAlreadyExistsError(f"{_full(identifier)} already exists: another commit created it")
        return made

    def _next(
        self, identifier: IdentifierLike, metadata: TableMetadata, current: _Current, gzipped: bool
    ) -> CommitTableResponse | None:
        """Create the file of the version after the current one; ``None`` if another commit has made it."""
        if "write.metadata.path" in metadata.properties:
            raise _certain(f"{_full(identifier)}: folder catalogs do not support the property write.metadata.path")
        content = metadata.to_json().encode()
        try:
            # Metadata that could not be loaded again are not written.
            TableMetadata.from_json(content)
        except CorruptDataError as error:
            raise _certain(f"the table's new metadata could not be loaded again: {error}") from error
        folder, version = current.location.rpartition("/")[0], current.version + 1
        if self._file(folder, version) is not None:
            return None
        location = f"{folder}/{_NAMES[gzipped].format(version)}"
        if not self._put(location, gzip.compress(content, mtime=0) if gzipped else content):
            return None
        hint = self._hint(folder) or 0
        newest: _Current | None = None
        if metadata.properties.get(_DELETES, "").lower() == "true":
            # The hint may be missing, or that of a slow writer; listing the folder takes longer than the rest.
            newest = max(self._versions(folder))
        elif hint > version:
            newest = self._newest(folder.rpartition("/")[0])
        if newest is not None and newest.version > version and not self._is_in_history(location, newest):
            # Versions between were deleted before, so this one was free again.
            self.storage.delete(location)
            return None
        try:
            # Never back: readers begin at the hint, and versions after it may be gone.
            if hint < version:
                self.storage.write(f"{folder}/{_HINT}", str(version).encode(), overwrite=True)
        except StorageError as error:
            warnings.warn(f"{folder}/{_HINT} was not updated, which is only slower: {error}", stacklevel=4)
        return CommitTableResponse(metadata, location)

    def _is_in_history(self, location: str, newest: _Current) -> bool:
        log = TableState.load(self.storage, newest.location).metadata.metadata_log
        # Another program may write the location in another way.
        return any(_same(entry.metadata_file, location) for entry in log)

    def _put(self, location: str, content: bytes) -> bool:
        """Create a file, and return whether this call made it; after an error it is looked at."""
        try:
            self._write(location, content)
        except StorageError as error:
            try:
                return self.storage.read(location) == content
            except MissingFileError:
                # S3 refuses one of two requests that create an object at the same time.
                if self._folders.is_certain or "ConditionalRequestConflict" in str(error):
                    raise CommitFailedException(str(error)) from error
                raise CommitStateUnknownException(f"{location} may still be created: {error}") from error
            except StorageError as unread:
                raise CommitStateUnknownException(f"{error}; then: {unread}") from error
        return True

    def _write(self, location: str, content: bytes) -> None:
        self.storage.write(location, content)

    def _delete_old(self, base: TableMetadata, metadata: TableMetadata) -> None:
        if metadata.properties.get(_DELETES, "").lower() != "true":
            return
        kept = {entry.metadata_file for entry in metadata.metadata_log}
        own = f"{metadata.location}/metadata"
        for entry in base.metadata_log:
            folder, _, name = entry.metadata_file.rpartition("/")
            # A copied table has files of the original in its log.
            if entry.metadata_file not in kept and _VERSION.fullmatch(name) and _same(folder, own):
                try:
                    self.storage.delete(entry.metadata_file)
                except StorageError as error:
                    warnings.warn(f"an old metadata file was not deleted: {error}", RuntimeWarning, stacklevel=4)

    def _require_exclusive(self) -> None:
        """Find out, once, whether the store refuses to create what exists: servers may ignore that it is asked for."""
        if self._is_exclusive or self._folders.is_certain:
            return
        probe = f"{self._warehouse}/.icefield-probe-{uuid4()}"
        try:
            self._write(probe, b"1")
            try:
                self._write(probe, b"2")
            except ExistingFileError:
                self._is_exclusive = self.storage.read(probe) == b"1"
            finally:
                # What stays is small, and its name says what it was.
                with suppress(StorageError):
                    self.storage.delete(probe)
        except StorageError as error:
            raise _certain(f"{self._warehouse}: the store cannot be written to: {error}") from error
        if not self._is_exclusive:
            raise _certain(
                f"{self._warehouse}: this store replaces an object that is to be created only if it is absent, so "
                "commits of a folder catalog would overwrite each other; use another type of catalog, such as 'sql'"
            )


_NO_PROPERTIES = "namespaces of a folder catalog have no properties, as they are folders"


def _same(one: str, other: str) -> bool:
    """Return whether two locations are the same, whose schemes programs write in different ways."""
    return _canonical_location(one) == _canonical_location(other)


def _canonical_location(location: str) -> str:
    scheme, colon, rest = location.rstrip("/").partition(":")
    kind = {"s3a": "s3", "s3n": "s3", "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss"}.get(scheme, scheme)
    return f"{kind}{colon}{rest.lstrip('/')}"


def _full(identifier: IdentifierLike) -> str:
    namespace, name = table_tuple(identifier)
    return ".".join((*namespace, name))


def _is_gzip(metadata: TableMetadata) -> bool:
    return metadata.properties.get("write.metadata.compression-codec", "none").lower() == "gzip"


def _certain(message: str) -> CommitFailedException:
    """Return the error of a commit that was certainly not made, as the core takes it."""
    return CommitFailedException(message)
