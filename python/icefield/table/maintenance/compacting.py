"""Compaction of data files, and maintenance of delete files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from icefield._core import CompactionPlan as CoreCompactionPlan
from icefield._core import (
    compact_data_files,
    convert_equality_deletes,
    remove_dangling_deletes,
    rewrite_position_deletes,
)
from icefield._inputs.arguments import summary_entries
from icefield._outputs.layout import counted, size_of
from icefield._outputs.printable import printable
from icefield._outputs.progress import Steps, changing
from icefield.distributed.compaction import CompactionPlan
from icefield.errors import ArgumentTypeError, InvalidArgumentError
from icefield.metadata import MAIN_BRANCH

if TYPE_CHECKING:
    from icefield._core import MaintenanceRequest, TableState
    from icefield.expressions import RowFilter

__all__ = [
    "CompactedFiles",
    "CompactedGroup",
    "ConvertedDeletes",
    "RemovedDeletes",
    "RewrittenDeletes",
]

#: What the core returns of maintenance, the new state first.
Maintained = TypeVar("Maintained", bound="tuple[TableState | None, *tuple[object, ...]]")


class RunOnTable(Protocol):
    """Calls a function of the core with a table, its catalog and its name, and takes over the new state."""

    def __call__(self, run: Callable[[TableState, object, object], Maintained], /) -> Maintained:
        """Call it."""


@dataclass(frozen=True, slots=True)
class CompactedGroup:
    """Data files that were rewritten together."""

    #: The number of the group, from 0.
    number: int
    #: Numbers and bytes of the replaced files and of the new ones.
    files: int
    bytes: int
    added_files: int
    added_bytes: int


@dataclass(frozen=True, slots=True, repr=False)
class CompactedFiles:
    """What a compaction has done, or with ``dry_run`` would do: the counts of Java's ``rewrite_data_files``."""

    #: Number of data files that were replaced.
    rewritten_data_files_count: int
    #: Number of data files that replace them; with ``dry_run`` the expected one, by their sizes.
    added_data_files_count: int
    #: Bytes of the replaced files.
    rewritten_bytes_count: int
    #: Number of data files of groups that could not be rewritten; only with partial progress.
    failed_data_files_count: int
    #: Number of delete files that were removed.
    removed_delete_files_count: int
    #: Number of groups that were found.
    groups: int
    #: Ids of the snapshots, oldest first.
    snapshot_ids: list[int]
    #: Whether an earlier run with the same idempotency key made the compaction.
    made_before: bool
    #: What groups or commits failed with; only with partial progress.
    failures: list[str]

    def __repr__(self) -> str:
        if self.made_before:
            return "CompactedFiles(made before)"
        parts = [
            (
                f"{counted(self.rewritten_data_files_count, 'data file')} of {size_of(self.rewritten_bytes_count)} to "
                f"{self.added_data_files_count:,}"
            ),
            counted(self.groups, "group"),
        ]
        removed, failed = self.removed_delete_files_count, self.failed_data_files_count
        parts += [f"{counted(removed, 'delete file')} removed"] if removed else []
        parts += [f"{counted(failed, 'data file')} failed"] if failed else []
        parts += [f"failures: {'; '.join(self.failures)}"] if self.failures else []
        return printable(f"CompactedFiles({', '.join(parts)})")


@dataclass(frozen=True, slots=True)
class RewrittenDeletes:
    """What a rewrite of position deletes has done, or would do: the counts of Java's procedure."""

    #: Numbers of the replaced delete files, and of those that replace them.
    rewritten_delete_files_count: int
    added_delete_files_count: int
    #: Their bytes; with ``dry_run`` those of the new ones are not known.
    rewritten_bytes_count: int
    added_bytes_count: int
    #: Ids of the snapshots, oldest first.
    snapshot_ids: list[int]
    #: Whether an earlier run with the same idempotency key made it.
    made_before: bool
    #: What groups or commits failed with; only with partial progress.
    failures: list[str]


@dataclass(frozen=True, slots=True)
class ConvertedDeletes:
    """What a conversion of equality deletes has done, or would do."""

    #: Number of equality delete files that were removed.
    converted_delete_files_count: int
    #: Number of other delete files that the new ones replace.
    replaced_delete_files_count: int
    #: Number of new deletion vectors, or position delete files.
    added_delete_files_count: int
    #: Number of data files with rows that these delete, and of the rows.
    data_files_count: int
    deleted_rows_count: int
    #: The snapshot; None if nothing was committed.
    snapshot_id: int | None
    #: Whether an earlier run with the same idempotency key made it.
    made_before: bool


@dataclass(frozen=True, slots=True)
class RemovedDeletes:
    """Delete files that applied to no data file."""

    #: Their locations. The files stay until snapshots that have them expire.
    delete_files: list[str]
    #: The snapshot that removed them; None if nothing was committed.
    snapshot_id: int | None


class Compacts:
    """Compaction of data files, and maintenance of delete files."""

    def __init__(self, run: RunOnTable) -> None:
        self._run = run

    def compact(
        self,
        where: RowFilter | None = None,
        *,
        strategy: str | None = None,
        sort_order: str | Sequence[str] | None = None,
        options: Mapping[str, object] | None = None,
        branch: str = MAIN_BRANCH,
        case_sensitive: bool = True,
        snapshot_properties: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        memory_limit: int | None = None,
        dry_run: bool = False,
        progress: bool = False,
        on_group: Callable[[CompactedGroup], object] | None = None,
    ) -> CompactedFiles:
        """Rewrite data files that are too small or too large, or that have lost many rows.

        The same files are chosen and grouped as by Java's ``rewrite_data_files``, and rows do not change: from version
        3 on they keep their ids. Rows that equality deletes of other commits delete meanwhile stay deleted; another
        commit that deletes rows of the files by position, or removes them, is a conflict.

        Parameters
        ----------
        where
            Compact only files that may have rows that match.
        strategy
            ``"binpack"`` packs files together, ``"sort"`` also sorts the rows of each group, beyond memory in temporary
            files. By default ``"sort"`` if a sort order is given.
        sort_order
            Fields as in ``"day(time) desc, id"``, or a curve through several columns: ``"zorder(a, b)"`` or
            ``"hilbert(a, b)"``. By default the sort order of the table.
        options
            Java's options by name: ``target-file-size-bytes``, ``min-file-size-bytes``, ``max-file-size-bytes``,
            ``min-input-files``, ``rewrite-all``, ``max-file-group-size-bytes``, ``max-file-group-input-files``,
            ``max-files-to-rewrite``, ``delete-file-threshold``, ``delete-ratio-threshold``, ``rewrite-job-order``,
            ``output-spec-id``, ``use-starting-sequence-number``, ``remove-dangling-deletes``,
            ``max-concurrent-file-group-rewrites``, ``partial-progress.enabled``, ``partial-progress.max-commits`` and
            ``partial-progress.max-failed-commits``; for sorting ``compression-factor``, for curves
            ``var-length-contribution`` and ``max-output-size``.
        branch
            The branch that is compacted.
        case_sensitive
            Whether column names are case-sensitive.
        snapshot_properties
            Entries of the summaries of the snapshots.
        idempotency_key
            Makes the compaction once, as for `Table.append`. With partial progress only the last snapshot has the key,
            so that a call that was interrupted goes on where it ended.
        memory_limit
            Bytes that reading and writing may take, about; by default 512 MiB.
        dry_run
            Only return what would be done. Numbers of new files follow from sizes. Of groups with files of other
            partition specs, the columns are read that the new partitions follow from. That equality deletes leave
            no row of a group is not seen.
        progress
            Show a progress line, as for `Table.append`.
        on_group
            Called after each group, from any thread, before it is committed. An exception ends the compaction.

        Raises
        ------
        InvalidArgumentError
            If an option is unknown or has a value that is not allowed.
        ValidationException
            If another commit changed the files, or with partial progress more commits failed than may.
        CommitStateUnknownException
            If the outcome is unknown; nothing was deleted.

        Examples
        --------
        >>> table.maintenance.compact("day = '2026-01-01'", sort_order="zorder(x, y)")  # doctest: +SKIP

        """
        request = _request(
            where, case_sensitive, branch, snapshot_properties, idempotency_key, options, memory_limit, dry_run
        )
        order = _order(sort_order)
        steps = Steps("groups")

        def planned(groups: int, _: int) -> None:
            steps.total = groups

        def rewritten(*numbers: int) -> None:
            steps.done += 1
            if on_group is not None:
                on_group(CompactedGroup(*numbers))

        with changing(progress and not dry_run, steps) as traffic:
            _, snapshots, before, numbers, failures = self._run(
                lambda state, catalog, name: compact_data_files(
                    state,
                    catalog,
                    name,
                    request,
                    strategy=strategy,
                    sort_order=order,
                    on_plan=planned,
                    on_group=rewritten,
                    traffic=traffic,
                )
            )
        return _compacted(snapshots, before, numbers, failures)

    def new_compaction(
        self,
        where: RowFilter | None = None,
        *,
        strategy: str | None = None,
        sort_order: str | Sequence[str] | None = None,
        options: Mapping[str, object] | None = None,
        branch: str = MAIN_BRANCH,
        case_sensitive: bool = True,
        snapshot_properties: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> CompactionPlan:
        """Plan a compaction by workers (`icefield.distributed`); only manifests are read.

        Parameters
        ----------
        where, strategy, sort_order, options, branch, case_sensitive, snapshot_properties, idempotency_key
            As for `compact`. Options about commits and concurrency have no effect: the engine decides.

        Examples
        --------
        >>> plan = table.maintenance.new_compaction()  # doctest: +SKIP
        >>> results = [rewrite_files(task, table.storage) for task in plan.tasks()]  # doctest: +SKIP
        >>> table.maintenance.commit_compaction(plan, results)  # doctest: +SKIP

        """
        request = _request(
            where, case_sensitive, branch, snapshot_properties, idempotency_key, options, None, dry_run=False
        )
        found: list[CoreCompactionPlan] = []

        def plan(state: TableState, catalog: object, name: object) -> tuple[None]:
            order = _order(sort_order)
            found.append(CoreCompactionPlan(state, catalog, name, request, strategy=strategy, sort_order=order))
            return (None,)

        self._run(plan)
        return CompactionPlan(found[0])

    def commit_compaction(self, plan: CompactionPlan, results: Sequence[bytes]) -> CompactedFiles:
        """Commit what workers wrote, in one snapshot.

        If it fails, the files are kept.

        Parameters
        ----------
        plan
            The compaction, made by `new_compaction` of this table.
        results
            Results of `icefield.distributed.rewrite_files`, at most one of each task.

        Raises
        ------
        InvalidArgumentError
            If a result is of another compaction, or two are of one task.
        ValidationException, CommitStateUnknownException
            As for `compact`.

        """
        _, snapshots, before, numbers, failures = self._run(
            lambda state, catalog, name: plan.commit(state, catalog, name, results)
        )
        return _compacted(snapshots, before, numbers, failures)

    def rewrite_position_deletes(
        self,
        where: RowFilter | None = None,
        *,
        options: Mapping[str, object] | None = None,
        branch: str = MAIN_BRANCH,
        case_sensitive: bool = True,
        snapshot_properties: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        memory_limit: int | None = None,
        dry_run: bool = False,
        progress: bool = False,
    ) -> RewrittenDeletes:
        """Rewrite small position delete files to fewer ones; from version 3 on to deletion vectors.

        The same files are chosen as by Java's ``rewrite_position_delete_files``, but without ``rewrite-all`` those stay
        that would not become fewer: by default each data file has a delete file of its own. Positions of data files
        that are gone are left out. From version 3 on, delete files of common data files are rewritten together.

        Parameters
        ----------
        where
            Rewrite only the delete files of partitions that may have rows that match.
        options
            Java's options by name, those of `compact` about sizes, groups and partial progress.
        branch, case_sensitive, snapshot_properties, idempotency_key, memory_limit, dry_run, progress
            As for `compact`.

        Raises
        ------
        InvalidArgumentError, ValidationException, CommitStateUnknownException
            As for `compact`.

        """
        request = _request(
            where, case_sensitive, branch, snapshot_properties, idempotency_key, options, memory_limit, dry_run
        )
        with changing(progress and not dry_run) as traffic:
            _, snapshots, before, (rewritten, added, size, added_size), failures = self._run(
                lambda state, catalog, name: rewrite_position_deletes(state, catalog, name, request, traffic=traffic)
            )
        return RewrittenDeletes(rewritten, added, size, added_size, snapshots, before, failures)

    def convert_equality_deletes(
        self,
        where: RowFilter | None = None,
        *,
        branch: str = MAIN_BRANCH,
        case_sensitive: bool = True,
        snapshot_properties: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        memory_limit: int | None = None,
        dry_run: bool = False,
        progress: bool = False,
    ) -> ConvertedDeletes:
        """Replace equality deletes by deletion vectors, in version 2 by position delete files.

        Scans then skip the deleted rows by position, and no longer compare every row. The snapshot is a ``delete``,
        although no row changes: writers that began earlier see that deletes were added for their files.

        Parameters
        ----------
        where
            Read only data files that may have rows that match. An equality delete file is then removed only if it
            applies to no other data file.
        branch, case_sensitive, snapshot_properties, idempotency_key, memory_limit, dry_run, progress
            As for `compact`.

        Raises
        ------
        ValidationException
            If another commit removed one of the data files.
        CommitStateUnknownException
            As for `compact`.

        """
        request = _request(
            where, case_sensitive, branch, snapshot_properties, idempotency_key, None, memory_limit, dry_run
        )
        with changing(progress and not dry_run) as traffic:
            _, snapshots, before, numbers = self._run(
                lambda state, catalog, name: convert_equality_deletes(state, catalog, name, request, traffic=traffic)
            )
        converted, replaced, added, files, rows = numbers
        return ConvertedDeletes(converted, replaced, added, files, rows, next(iter(snapshots), None), before)

    def remove_dangling_deletes(
        self,
        *,
        branch: str = MAIN_BRANCH,
        case_sensitive: bool = True,
        snapshot_properties: Mapping[str, str] | None = None,
        dry_run: bool = False,
    ) -> RemovedDeletes:
        """Remove delete files that apply to no data file.

        These are delete files that are older than all data files of their partition, and deletion vectors of data files
        that are gone: Java's ``remove-dangling-deletes``.

        Parameters
        ----------
        branch, case_sensitive, snapshot_properties, dry_run
            As for `compact`.

        """
        request = _request(None, case_sensitive, branch, snapshot_properties, None, None, None, dry_run)
        _, snapshot_id, files = self._run(
            lambda state, catalog, name: remove_dangling_deletes(state, catalog, name, request)
        )
        return RemovedDeletes(files, snapshot_id)


def _order(sort_order: str | Sequence[str] | None) -> str | None:
    return sort_order if sort_order is None or isinstance(sort_order, str) else ", ".join(sort_order)


def _compacted(snapshots: list[int], before: bool, numbers: list[int], failures: list[str]) -> CompactedFiles:
    groups, rewritten, added, size, failed, removed = numbers
    return CompactedFiles(rewritten, added, size, failed, removed, groups, snapshots, before, failures)


def _request(
    where: RowFilter | None,
    case_sensitive: bool,
    branch: str,
    snapshot_properties: Mapping[str, str] | None,
    idempotency_key: str | None,
    options: Mapping[str, object] | None,
    memory_limit: int | None,
    dry_run: bool,
) -> MaintenanceRequest:
    if memory_limit is not None and memory_limit <= 0:
        raise InvalidArgumentError(f"memory_limit: at least one byte is needed, got {memory_limit}")
    return {
        "filter": where,
        "case_sensitive": case_sensitive,
        "branch": branch,
        "snapshot_properties": summary_entries(snapshot_properties, idempotency_key),
        "options": _option_texts(options),
        "memory_limit": memory_limit,
        "dry_run": dry_run,
    }


def _option_texts(options: Mapping[str, object] | None) -> dict[str, str]:
    """Return options as texts, as SQL passes them."""
    if options is not None and not isinstance(options, Mapping):
        raise ArgumentTypeError(f"options: expected a mapping, got {options!r:.100}")
    found: dict[str, str] = {}
    for name, value in (options or {}).items():
        if isinstance(value, bool):
            found[name] = str(value).lower()
        elif isinstance(name, str) and isinstance(value, str | int | float):
            found[name] = str(value)
        else:
            raise ArgumentTypeError(
                f"options: expected names with strings, numbers or booleans, got {name!r}: {value!r}"
            )
    return found
