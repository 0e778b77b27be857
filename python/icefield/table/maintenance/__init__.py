"""Maintenance of a table: compaction, deletes, expiry of snapshots, removal of orphan files, statistics."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from types import TracebackType
from typing import TYPE_CHECKING, Literal, TypeAlias

from icefield._core import compute_partition_stats
from icefield._outputs.layout import counted, size_of
from icefield._outputs.printable import printable
from icefield.errors import InvalidArgumentError
from icefield.scan.moments import age_in_milliseconds, milliseconds_of
from icefield.table.maintenance.compacting import Compacts
from icefield.table.maintenance.orphans import PrefixMismatchMode, RemovedOrphans
from icefield.table.maintenance.repairs import Repairs
from icefield.table.update.change import in_lines, warn_of_lost

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield._core import ExpiryRequest, TableState
    from icefield.table.maintenance.compacting import RunOnTable

    #: What the core returns of an expiry.
    Expired: TypeAlias = tuple[TableState | None, list[int], list[str], int, list[str], dict[str, list[str]], int]

__all__ = ["ColumnStatistics", "ExpireSnapshots", "ExpiredSnapshots", "Maintenance", "PartitionStatistics"]


@dataclass(frozen=True, slots=True, repr=False)
class ExpiredSnapshots:
    """What an expiry has done to a table, or with ``dry_run`` would do."""

    #: Ids of the snapshots that expired.
    snapshot_ids: list[int]
    #: Branches and tags that expired.
    refs: list[str]
    #: Locations of the deleted files, by their kind.
    data_files: list[str]
    delete_files: list[str]
    manifests: list[str]
    manifest_lists: list[str]
    statistics_files: list[str]
    #: Locations of files that stay, since they are not in the folders of the table.
    external_files: list[str]
    #: Number of files that could not be read or deleted.
    failures: int
    #: What the first of them said.
    first_failures: list[str]
    #: Size of the deleted files, as the manifests and the metadata say. That of manifest lists is recorded nowhere, so
    #: they are left out.
    bytes: int = 0

    @property
    def deleted_files(self) -> list[str]:
        """Locations of all deleted files."""
        return [
            *self.data_files, *self.delete_files, *self.manifests, *self.manifest_lists, *self.statistics_files
        ]  # fmt: skip

    def __repr__(self) -> str:
        kinds = {
            "data file": self.data_files,
            "delete file": self.delete_files,
            "manifest": self.manifests,
            "manifest list": self.manifest_lists,
            "statistics file": self.statistics_files,
            "file outside that stays": self.external_files,
        }
        parts = [counted(len(self.snapshot_ids), "snapshot")]
        parts += [f"references {', '.join(self.refs)}"] if self.refs else []
        parts += [counted(len(files), kind) for kind, files in kinds.items() if files]
        parts += [size_of(self.bytes)] if self.bytes else []
        parts += [counted(self.failures, "failure")] if self.failures else []
        return printable(f"ExpiredSnapshots({', '.join(parts)})")


class ExpireSnapshots:
    """An expiry of snapshots ("Snapshot Retention Policy"), made by `commit` or at the end of the ``with`` block.

    What is not set is decided by the table's properties (``history.expire.*``) and the retention of its branches and
    tags.
    """

    def __init__(self, run: Callable[[ExpiryRequest], Expired]) -> None:
        self._run = run
        self._request: ExpiryRequest = {
            "snapshot_ids": [],
            "older_than_ms": None,
            "retain_last": None,
            "clean_expired_metadata": False,
            "cleanup": "all",
            "external": "keep",
            "dry_run": False,
        }
        self._finished = False
        #: Whether it was made or looked at: then it is not lost.
        self._tried = False

    def by_id(self, snapshot_id: int) -> Self:
        """Expire a snapshot, whatever its age."""
        return self.by_ids([snapshot_id])

    def by_ids(self, snapshot_ids: Iterable[int]) -> Self:
        """Expire snapshots, whatever their age."""
        self._request["snapshot_ids"] += snapshot_ids
        return self

    def older_than(self, timestamp: datetime | timedelta | str | int) -> Self:
        """Expire the snapshots before a time, of branches without a ``max-snapshot-age-ms`` of their own.

        Parameters
        ----------
        timestamp
            Milliseconds from the epoch, an aware datetime, or ISO text with an offset; or an age, as a ``timedelta`` or
            text such as ``"7d"`` or ``"12h"``.

        """
        # Where this raises, the caller knows that the change is lost.
        self._tried, tried = True, self._tried
        self._request["older_than_ms"] = milliseconds_of(_moment(timestamp), "timestamp", round_up=True)
        self._tried = tried
        return self

    def retain_last(self, count: int) -> Self:
        """Keep this number of snapshots of branches without a ``min-snapshots-to-keep`` of their own."""
        self._request["retain_last"] = count
        return self

    def clean_expired_metadata(self, clean: bool = True) -> Self:
        """Also remove schemas and partition specs that no snapshot uses any more."""
        self._request["clean_expired_metadata"] = clean
        return self

    def cleanup(self, level: Literal["all", "metadata", "nothing"]) -> Self:
        """Delete all files that only expired snapshots name, all but data and delete files, or none."""
        self._request["cleanup"] = level
        return self

    def external(self, files: Literal["keep", "delete"]) -> Self:
        """Keep or delete files that are not in the folders of the table; by default they stay.

        Its folders are its location, ``write.data.path`` and ``write.metadata.path``. Files elsewhere were taken into
        the table by `Table.add_files`, and may be those of other tables too.
        """
        self._request["external"] = files
        return self

    def dry_run(self) -> ExpiredSnapshots:
        """Return what `commit` would do, and change nothing."""
        self._tried = True
        return _result(self._run({**self._request, "dry_run": True}))

    def commit(self) -> ExpiredSnapshots:
        """Expire the snapshots, then delete files.

        A file stays while a snapshot that is kept has it, or is the one that removed it. If files could not be
        deleted there is a ``RuntimeWarning``; the snapshots have expired all the same.

        Raises
        ------
        InvalidArgumentError
            If a snapshot is that of a branch or tag, or the table has ``gc.enabled=false``.
        CommitFailedException
            If every attempt lost to another commit; no file was deleted.
        CommitStateUnknownException
            If the outcome is unknown; no file was deleted.

        """
        if self._finished:
            raise InvalidArgumentError("this change was already made; start a new one")
        self._finished = self._tried = True
        done = _result(self._run(self._request))
        if done.failures:
            more = [f"and {done.failures - len(done.first_failures)} more"]
            shown = "; ".join(done.first_failures + (more if done.failures > len(done.first_failures) else []))
            msg = f"snapshots expired, but some files could not be read or deleted: {shown}"
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        return done

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._tried = True
        elif not self._finished:
            self.commit()

    def __repr__(self) -> str:
        state = "made" if self._finished else "not committed"
        set_so_far = {name: value for name, value in self._request.items() if name != "dry_run" and value}
        return in_lines(f"{type(self).__name__}, {state}", (f"{name}: {value}" for name, value in set_so_far.items()))

    def __del__(self) -> None:
        if not getattr(self, "_tried", True):
            warn_of_lost(self, "commit()")


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """A statistics file and the numbers in it."""

    #: Location of the file.
    path: str
    #: Estimated number of distinct values by column.
    distinct: dict[str, int]


@dataclass(frozen=True, slots=True)
class PartitionStatistics:
    """A partition statistics file."""

    #: Location of the file.
    path: str
    #: Its size in bytes.
    bytes: int
    #: The number of partitions in it; None if the snapshot had the file before.
    partitions: int | None


class Maintenance(Compacts, Repairs):
    """The maintenance of a table."""

    def __init__(
        self,
        expire: Callable[[ExpiryRequest], Expired],
        run: RunOnTable,
        remove_orphans: Callable[..., RemovedOrphans],
        compute_stats: Callable[[list[str] | None, int | None], ColumnStatistics | None],
    ) -> None:
        super().__init__(run)
        self._expire = expire
        self._remove_orphans = remove_orphans
        self._compute_stats = compute_stats

    def compute_table_stats(
        self, columns: Iterable[str] | None = None, *, snapshot_id: int | None = None
    ) -> ColumnStatistics | None:
        """Count the distinct values of columns, and add them to the table as a statistics file.

        All rows are read once. Each column gets a theta sketch of Apache DataSketches, whose standard error is about
        1.6 %; Spark uses the numbers with ``spark.sql.iceberg.report-column-stats``. Earlier statistics of the snapshot
        are replaced.

        Parameters
        ----------
        columns
            Columns of primitive types, nested ones with dots; by default all that are not nested.
        snapshot_id
            The snapshot; by default the current one.

        Returns
        -------
        ColumnStatistics
            The file and the numbers; None if the table has no snapshot.

        Raises
        ------
        InvalidArgumentError
            If a column is unknown or not of a primitive type, or the snapshot is unknown.

        Examples
        --------
        >>> table.maintenance.compute_table_stats(["region"]).distinct  # doctest: +SKIP
        {'region': 14}

        """
        return self._compute_stats(None if columns is None else list(columns), snapshot_id)

    def compute_partition_stats(self, *, snapshot_id: int | None = None) -> PartitionStatistics | None:
        """Count the rows, files and deletes of each partition, and add them to the table as a statistics file.

        Only manifests are read, and if an earlier snapshot has such a file, only those that were written since. A
        snapshot that has statistics keeps them. `InspectTable.partition_statistics` reads the file.

        Parameters
        ----------
        snapshot_id
            The snapshot; by default the current one.

        Returns
        -------
        PartitionStatistics
            The file; None if the table has no snapshot, or no file in it.

        Raises
        ------
        InvalidArgumentError
            If the table is not partitioned, or the snapshot is unknown.
        UnsupportedFeatureError
            If the table is encrypted: metadata has no place for the key of the file.

        Examples
        --------
        >>> table.maintenance.compute_partition_stats().partitions  # doctest: +SKIP
        14

        """

        def run(
            state: TableState, catalog: object, identifier: object
        ) -> tuple[TableState | None, PartitionStatistics | None]:
            done = compute_partition_stats(state, catalog, identifier, snapshot_id=snapshot_id)
            return (None, None) if done is None else (done[0], PartitionStatistics(*done[1:]))

        return self._run(run)[1]

    def remove_orphans(
        self,
        older_than: datetime | timedelta | str | int | None = None,
        *,
        location: str | None = None,
        dry_run: bool = True,
        equal_schemes: Mapping[str, str] | None = None,
        equal_authorities: Mapping[str, str] | None = None,
        prefix_mismatch_mode: PrefixMismatchMode = "error",
        allow_recent: bool = False,
        check_catalog: bool = True,
    ) -> RemovedOrphans:
        """Find files in the table's folder that nothing in the table references, and delete them.

        Writers that were killed leave such files, and so do deletions that failed. Files of a write that is not
        committed yet look the same, so only old files count. Everything that any snapshot, branch or tag references is
        kept, and so are the metadata files of the table's log. Files and folders whose names begin with ``_`` or ``.``
        are kept, except folders of partition fields with such names.

        Parameters
        ----------
        older_than
            Only files last modified before this time, or longer ago than this age, such as ``"7d"``; by default, three
            days ago.
        location
            The folder to search; by default the table's location. It may be ``write.data.path``, for example.
        dry_run
            Delete nothing, and return what would be deleted.
        equal_schemes, equal_authorities
            Schemes (``{"s3a,oss": "s3"}``) or authorities (hosts and buckets) in paths that mean the same store.
            ``s3``, ``s3a`` and ``s3n`` are always equal; so are ``gs`` and ``gcs``, and the schemes of Azure.
        prefix_mismatch_mode
            What to do with a file whose path the table references with another scheme or authority: ``"error"``,
            ``"ignore"`` keeps it, ``"delete"`` deletes it.
        allow_recent
            Allow an age below 24 hours, if nothing writes to the table.
        check_catalog
            Load all other tables of the catalog, to see whether one has files in the folder.

        Raises
        ------
        InvalidArgumentError
            If another table has files in the folder, if it is the warehouse, a root or above the table's location, if
            the table has ``gc.enabled=false``, or if the age is below 24 hours.
        ValidationException
            If files differ from referenced ones in scheme or authority only.

        Examples
        --------
        >>> table.maintenance.remove_orphans().bytes  # doctest: +SKIP
        52031
        >>> table.maintenance.remove_orphans(dry_run=False)  # doctest: +SKIP

        """
        done = self._remove_orphans(
            older_than=None if older_than is None else _moment(older_than),
            location=location,
            dry_run=dry_run,
            equal_schemes=equal_schemes,
            equal_authorities=equal_authorities,
            prefix_mismatch_mode=prefix_mismatch_mode,
            allow_recent=allow_recent,
            check_catalog=check_catalog,
        )
        if done.failures and not dry_run:
            shown = "; ".join(done.first_failures)
            msg = f"{counted(done.failures, 'orphan file')} could not be deleted: {shown}"
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
        return done

    def expire_snapshots(self) -> ExpireSnapshots:
        """Expire snapshots, and delete the files that only they name.

        Examples
        --------
        >>> table.maintenance.expire_snapshots().older_than("2024-01-01T00:00:00Z").commit()  # doctest: +SKIP

        """
        return ExpireSnapshots(self._expire)


def _moment(given: datetime | timedelta | str | int) -> datetime | str | int:
    """Return the time that is an age ago; times as they are."""
    if isinstance(given, str):
        milliseconds = age_in_milliseconds(given)
        if milliseconds is None:
            return given
        try:
            age = timedelta(milliseconds=milliseconds)
        except OverflowError as error:
            raise InvalidArgumentError(f"timestamp: {given!r} is too long ago") from error
    elif isinstance(given, timedelta):
        age = given
    else:
        return given
    if age < timedelta(0):
        raise InvalidArgumentError(f"timestamp: the age {given!r} is negative")
    try:
        return datetime.now(timezone.utc) - age
    except OverflowError as error:
        raise InvalidArgumentError(f"timestamp: {given!r} is too long ago") from error


def _result(done: Expired) -> ExpiredSnapshots:
    _, snapshot_ids, refs, failures, first, files, size = done
    return ExpiredSnapshots(
        snapshot_ids,
        refs,
        files["data_files"],
        files["delete_files"],
        files["manifests"],
        files["manifest_lists"],
        files["statistics"],
        files["external"],
        failures,
        first,
        size,
    )
