"""Files in a table's folder that nothing in the table references: how they are found and deleted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from icefield._core import remove_orphans as core_remove_orphans
from icefield._inputs.secrets import revealed
from icefield._outputs.layout import counted, size_of
from icefield._outputs.printable import printable
from icefield.errors import IcefieldError, InvalidArgumentError
from icefield.scan.moments import milliseconds_of

if TYPE_CHECKING:
    from icefield._core import OrphanRequest, TableState
    from icefield._inputs.identifiers import Identifier
    from icefield.table.catalog import TableCatalog

    AnyCatalog: TypeAlias = TableCatalog[Any, Any, Any]

__all__ = ["RemovedOrphans"]

Loaded = TypeVar("Loaded")
PrefixMismatchMode: TypeAlias = Literal["error", "ignore", "delete"]

#: By default, and at least without `allow_recent`.
_DEFAULT_AGE = timedelta(days=3)
_MINIMUM_AGE = timedelta(days=1)


@dataclass(frozen=True, slots=True, repr=False)
class RemovedOrphans:
    """What a removal of orphan files has deleted, or with ``dry_run`` would delete."""

    #: Locations of the files, sorted.
    files: list[str]
    #: Their sizes in bytes, in the same order.
    sizes: list[int]
    #: Number of files that were listed.
    listed: int
    #: Whether nothing was deleted, because of ``dry_run``.
    dry_run: bool
    #: Number of files that were not deleted: links, and files that the store did not delete.
    failures: int
    #: What the first of them said.
    first_failures: list[str]

    @property
    def bytes(self) -> int:
        """Size of the files together."""
        return sum(self.sizes)

    def __repr__(self) -> str:
        parts = [counted(len(self.files), "file"), size_of(self.bytes), f"of {counted(self.listed, 'listed file')}"]
        parts += ["not deleted (dry run)"] if self.dry_run else []
        parts += [counted(self.failures, "failure")] if self.failures else []
        return printable(f"RemovedOrphans({', '.join(parts)})")


def find_and_remove(
    state: TableState,
    catalog: AnyCatalog,
    identifier: Identifier,
    *,
    older_than: datetime | str | int | None,
    location: str | None,
    dry_run: bool,
    equal_schemes: Mapping[str, str] | None,
    equal_authorities: Mapping[str, str] | None,
    prefix_mismatch_mode: PrefixMismatchMode,
    allow_recent: bool,
    check_catalog: bool,
) -> RemovedOrphans:
    """Find orphan files and delete them; `Maintenance.remove_orphans` says how."""
    now = datetime.now(timezone.utc)
    before = milliseconds_of(now - _DEFAULT_AGE if older_than is None else older_than, "older_than")
    if before is None:
        raise InvalidArgumentError("older_than: expected a time")
    newest = milliseconds_of(now - _MINIMUM_AGE, "older_than")
    if newest is not None and before > newest and not allow_recent:
        msg = (
            "older_than: files that are less than 24 hours old may belong to a write that has not been committed yet; "
            "pass allow_recent=True if nothing writes to the table"
        )
        raise InvalidArgumentError(msg)
    request: OrphanRequest = {
        "older_than_ms": before,
        "location": location,
        "equal_schemes": list((equal_schemes or {}).items()),
        "equal_authorities": list((equal_authorities or {}).items()),
        "prefix_mismatch_mode": prefix_mismatch_mode,
        "other_folders": list((_SHARED.get() or Neighbours()).of(catalog, identifier)) if check_catalog else [],
        "warehouse": revealed(catalog.properties).get("warehouse"),
        "dry_run": dry_run,
    }
    found, listed, failures, first = core_remove_orphans(state, catalog, identifier, request)
    return RemovedOrphans([path for path, _ in found], [size for _, size in found], listed, dry_run, failures, first)


#: Properties that name a folder for files of a table; Java's older names too.
_FOLDERS = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")


#: How long it is taken for granted where a table has its files, in seconds: about as long as a listing may take, during
#: which a table may move as well.
_KNOWN_FOR = 600.0


class Neighbours:
    """Where the tables and views of a catalog have files: folders, and known files outside of these."""

    def __init__(self) -> None:
        self._catalog: AnyCatalog | None = None
        self._places: dict[str, tuple[float, tuple[str, ...]]] = {}

    def of(self, catalog: AnyCatalog, own: Identifier) -> Iterator[tuple[str, str]]:
        """List the places of all but one table. Those are loaded that are new, or were loaded some time ago."""
        if self._catalog is not catalog:
            self._catalog, self._places = catalog, {}
        found: set[str] = set()
        for name, load in _named_places(catalog):
            found.add(name)
            known = self._places.get(name)
            if name == f"table {'.'.join(own)}":
                continue
            if known is None or monotonic() - known[0] > _KNOWN_FOR:
                known = self._places[name] = (monotonic(), tuple(load()))
            yield from ((name, place) for place in known[1])
        for gone in self._places.keys() - found:
            del self._places[gone]


_SHARED: ContextVar[Neighbours | None] = ContextVar("_SHARED", default=None)


@contextmanager
def other_tables_loaded_once() -> Iterator[None]:
    """Load the tables of a catalog once for all removals of orphan files within the block, not for each of them."""
    token = _SHARED.set(Neighbours())
    try:
        yield
    finally:
        _SHARED.reset(token)


def _named_places(catalog: AnyCatalog) -> Iterator[tuple[str, Callable[[], Iterator[str]]]]:
    """List the tables and views of a catalog, each with a function that returns its places."""
    for namespace in _namespaces(catalog, ()):
        for identifier in catalog.list_tables(namespace):
            name = f"table {'.'.join(identifier)}"
            yield name, partial(_places_of_table, catalog, identifier, name)
        for identifier in catalog.list_views(namespace):
            name = f"view {'.'.join(identifier)}"
            yield name, partial(_places_of_view, catalog, identifier, name)


def _places_of_view(catalog: AnyCatalog, identifier: Identifier, name: str) -> Iterator[str]:
    view = _loaded(catalog.load_view, identifier, name)
    given = (view.location(), view.properties.get("write.metadata.path"), view.metadata_location)
    yield from filter(None, given)


def _places_of_table(catalog: AnyCatalog, identifier: Identifier, name: str) -> Iterator[str]:
    """List folders of a table, and files that are in folders that it had before it was moved or renamed."""
    table = _loaded(catalog.load_table, identifier, name)
    folders = [table.location(), *filter(None, map(table.properties.get, _FOLDERS))]
    yield from folders
    files = [table.metadata_location, *(entry.metadata_file for entry in table.metadata_log())]
    files += [snapshot.manifest_list for snapshot in table.snapshots() if snapshot.manifest_list]
    within = tuple(f"{folder.rstrip('/')}/" for folder in folders)
    # A folder that overlaps with a file in these folders overlaps with them.
    yield from dict.fromkeys(file for file in files if not file.startswith(within))


def _loaded(load: Callable[[Identifier], Loaded], identifier: Identifier, name: str) -> Loaded:
    try:
        return load(identifier)
    except IcefieldError as error:
        msg = (
            f"{name} cannot be loaded, so it is unknown whether it shares a folder with this table: {error}; pass "
            "check_catalog=False if you know that it does not"
        )
        raise InvalidArgumentError(msg) from error


def _namespaces(catalog: AnyCatalog, below: Identifier) -> Iterator[Identifier]:
    for found in catalog.list_namespaces(below):
        yield found
        yield from _namespaces(catalog, found)
