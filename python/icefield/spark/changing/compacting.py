"""Compactions by the executors: a Spark job for each group of files, and commits in the driver."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field
from secrets import randbits
from threading import Event
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa
from pyspark import TaskContext, inheritable_thread_target

from icefield.distributed import FilesLeft, made_before, rewrite_files
from icefield.errors import (
    ArgumentTypeError,
    CommitFailedException,
    CommitStateUnknownException,
    IcefieldError,
    InvalidArgumentError,
    ValidationException,
)
from icefield.metadata import MAIN_BRANCH
from icefield.spark.columns.letter_case import is_case_sensitive
from icefield.spark.sessions.failures import raised_in_task, sentence
from icefield.spark.sessions.jobs import Jobs
from icefield.spark.sessions.session import at_once, is_classic
from icefield.spark.sessions.workers import begin_task, drivers_python
from icefield.spark.tables.opening import keywords_of, opened
from icefield.spark.writes.writing import known_loss, warn_of_left
from icefield.table.maintenance.compacting import CompactedFiles, CompactedGroup

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.distributed import CompactionPlan, Storage
    from icefield.expressions import RowFilter
    from icefield.table import Table

__all__ = ["compact"]

_CONCURRENT, _DANGLING = "max-concurrent-file-group-rewrites", "remove-dangling-deletes"
_PARTIAL, _COMMITS = "partial-progress.enabled", "partial-progress.max-commits"
_FAILED_COMMITS = "partial-progress.max-failed-commits"
_TARGET, _GROUP_BYTES = "target-file-size-bytes", "max-file-group-size-bytes"
#: Bytes and new files of a group that a task packs.
_LEAST_GROUP_BYTES, _FILES_OF_GROUP = 2 << 30, 4
#: Names of files that a task writes: with the number of its attempt, which has bits for the run before its own.
_WRITTEN = re.compile(r"[0-9]+-([0-9]+)-[0-9a-f-]{36}-[0-9]+-rewritten\.[a-z.]+")
_NUMBER_BITS, _ATTEMPT_BITS = 40, 20
#: Java's defaults of the first and of the last two.
_GROUPS_AT_ONCE, _MOST_COMMITS = 5, 10


def compact(
    spark: SparkSession,
    table: Table | str,
    where: RowFilter | None = None,
    *,
    strategy: str | None = None,
    sort_order: str | Sequence[str] | None = None,
    options: Mapping[str, object] | None = None,
    branch: str = MAIN_BRANCH,
    case_sensitive: bool | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    idempotency_key: str | None = None,
    memory_limit: int | None = None,
    dry_run: bool = False,
    on_group: Callable[[CompactedGroup], object] | None = None,
    catalog: str | None = None,
    **properties: str,
) -> CompactedFiles:
    """Rewrite data files that are too small or too large, or that have lost many rows, in the executors.

    Each group of files is a Spark job of one task; the driver chooses the groups and commits them, as
    `icefield.table.maintenance.Maintenance.compact` does, which CALL ``system.rewrite_data_files`` uses outside of
    Spark.

    Parameters
    ----------
    spark
        The session.
    table
        A table, which is refreshed, or ``"namespace.name"`` in ``catalog``.
    where, strategy, sort_order, branch, snapshot_properties
        As for `icefield.table.maintenance.Maintenance.compact`.
    options
        The same options. ``max-concurrent-file-group-rewrites`` is the number of jobs at a time, by default that of
        tasks that the session runs at a time, or 5 through Spark Connect. With ``partial-progress.enabled`` groups are
        committed as they end.
    case_sensitive
        Whether column names are case-sensitive, by default as the session says.
    idempotency_key
        As there; not with ``partial-progress.enabled``, because a key stands for all groups.
    memory_limit
        Bytes that a task may take, about; 512 MiB by default.
    dry_run
        Only return what would be done; no job runs.
    on_group
        Called in the driver after each group, before it is committed; of `CompactedGroup` the new files and their bytes
        are those expected, and 0.
    catalog, **properties
        The catalog of a name, as `icefield.load_catalog` takes it.

    Raises
    ------
    InvalidArgumentError, ValidationException, CommitStateUnknownException
        As there.

    """
    found = opened(table, catalog, properties, keywords_of(compact)).refresh()
    maintenance = found.maintenance
    if case_sensitive is None:
        case_sensitive = is_case_sensitive(spark)
    sorts = sort_order is not None or (strategy or "").lower() == "sort"
    limits = _Limits.of(options, None if sorts else _group_bytes(found, options))
    wanted: _Wanted = {
        "strategy": strategy,
        "sort_order": sort_order,
        "options": limits.of_plan,
        "branch": branch,
        "case_sensitive": case_sensitive,
        "snapshot_properties": snapshot_properties,
        "idempotency_key": idempotency_key,
    }
    if dry_run or made_before(found.metadata, branch, idempotency_key):
        return maintenance.compact(where, **wanted, dry_run=dry_run)
    if limits.partial and idempotency_key is not None:
        raise InvalidArgumentError(
            f"compact: idempotency_key and {_PARTIAL} exclude each other in Spark, because a key stands for all "
            "groups: leave one of them out"
        )
    plan = maintenance.new_compaction(where, **wanted)
    run = _Run(spark, found, plan, limits, memory_limit, on_group)
    run.all_or_cleaned_up()
    if limits.dangling:
        removed = maintenance.remove_dangling_deletes(branch=branch, snapshot_properties=snapshot_properties)
        run.removed_delete_files += len(removed.delete_files)
        run.snapshot_ids += [] if removed.snapshot_id is None else [removed.snapshot_id]
    return run.result()


class _Wanted(TypedDict):
    """Arguments of `icefield.table.maintenance.Maintenance.compact` and of its plan for workers."""

    strategy: str | None
    sort_order: str | Sequence[str] | None
    options: Mapping[str, object]
    branch: str
    case_sensitive: bool
    snapshot_properties: Mapping[str, str] | None
    idempotency_key: str | None


@dataclass(frozen=True)
class _Limits:
    """Options about jobs and commits; the plan refuses invalid values."""

    #: The options of the plan.
    of_plan: dict[str, object]
    concurrent: int | None
    partial: bool
    commits: int
    failed_commits: int
    #: Whether delete files that no longer apply are removed after the last commit.
    dangling: bool

    @classmethod
    def of(cls, options: Mapping[str, object] | None, group_bytes: int | None) -> _Limits:
        """Read the options; ``group_bytes`` is the size of a group where they have none."""
        if options is not None and not isinstance(options, Mapping):
            raise ArgumentTypeError(f"options: expected a mapping, got {options!r:.100}")
        given = dict(options or {})
        texts = {name: str(value).lower() for name, value in given.items()}
        dangling = texts.get(_DANGLING) == "true"
        if dangling:
            # Each commit of the plan would do it.
            del given[_DANGLING]
        if group_bytes is not None:
            given.setdefault(_GROUP_BYTES, group_bytes)
        commits = _number(texts.get(_COMMITS)) or _MOST_COMMITS
        failed = _number(texts.get(_FAILED_COMMITS))
        return cls(
            given,
            _number(texts.get(_CONCURRENT)),
            texts.get(_PARTIAL) == "true",
            commits,
            commits if failed is None else failed,
            dangling,
        )


def _group_bytes(table: Table, options: Mapping[str, object] | None) -> int:
    """Return how many bytes a task packs: Java has a task for each new file, and groups of 100 GB."""
    given = options.get(_TARGET) if isinstance(options, Mapping) else None
    target = _number(str(given)) or _number(table.properties.get(f"write.{_TARGET}")) or 0
    return max(_LEAST_GROUP_BYTES, _FILES_OF_GROUP * target)


def _number(text: str | None) -> int | None:
    """Return a number; None for what the plan refuses."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


@dataclass
class _Run:
    """The jobs of a compaction, and its commits."""

    spark: SparkSession
    table: Table
    plan: CompactionPlan
    limits: _Limits
    memory_limit: int | None
    on_group: Callable[[CompactedGroup], object] | None
    rewritten: int = 0
    added: int = 0
    rewritten_bytes: int = 0
    failed_data_files: int = 0
    removed_delete_files: int = 0
    snapshot_ids: list[int] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    made_before: bool = False
    #: Commits that were made.
    commits: int = 0
    #: What the numbers of all attempts begin with, and so a part of the names of files that no other run has.
    number: int = field(default_factory=lambda: randbits(_NUMBER_BITS))

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.spark, f"icefield-compaction-{self.number}")

    def all_or_cleaned_up(self) -> None:
        """Rewrite and commit all groups, and delete the files of attempts that failed or came too late."""
        try:
            self.all()
        except CommitStateUnknownException:
            raise
        except BaseException:
            warn_of_left(str(self.number), self._clean_up)
            raise
        if self.failures or known_loss(self.jobs.lost_some):
            warn_of_left(str(self.number), self._clean_up)

    def _clean_up(self) -> FilesLeft:
        """Delete the files of this run that are in no snapshot; their names are compared, which have one spelling."""
        known = {_name(path) for path in self.table.refresh().inspect.all_files()["file_path"].to_pylist()}
        folder = self.table.properties.get("write.data.path") or f"{self.table.location().rstrip('/')}/data"
        messages = []
        for path, _ in self.table.storage.list(folder):
            found = _WRITTEN.fullmatch(_name(path))
            if found is None or int(found[1]) >> _ATTEMPT_BITS != self.number or _name(path) in known:
                continue
            try:
                self.table.storage.delete(path)
            except IcefieldError as error:
                messages.append(str(error))
        return FilesLeft(len(messages), messages[:3])

    def result(self) -> CompactedFiles:
        """Return what was done."""
        return CompactedFiles(
            self.rewritten,
            self.added,
            self.rewritten_bytes,
            self.failed_data_files,
            self.removed_delete_files,
            len(self.plan.groups),
            self.snapshot_ids,
            self.made_before,
            self.failures,
        )

    def all(self) -> None:
        """Rewrite and commit all groups."""
        groups = len(self.plan.groups)
        if not groups:
            return
        of_commit = -(-groups // self.limits.commits) if self.limits.partial else groups
        waiting: list[bytes] = []
        # Closed where a commit fails, so that no group is being rewritten any more.
        with closing(self._results(groups)) as results:
            for result in results:
                waiting.append(result)
                if len(waiting) == of_commit:
                    self._commit(waiting)
                    waiting = []
        if waiting:
            self._commit(waiting)
        planned = -(-groups // of_commit)
        failed = planned - self.commits
        if self.limits.partial and failed > self.limits.failed_commits:
            raise ValidationException(
                f"compaction: {failed} of {planned} commits failed, and at most "
                f"{self.limits.failed_commits} may ({_FAILED_COMMITS}); the others were made. The first error: "
                f"{self.failures[0]}"
            )

    def _commit(self, results: list[bytes]) -> None:
        try:
            done = self.table.maintenance.commit_compaction(self.plan, results)
        except (ValidationException, CommitFailedException) as error:
            if not self.limits.partial:
                raise
            self.failures.append(str(error))
            return
        self.commits += 1
        self.made_before = done.made_before
        self.rewritten += done.rewritten_data_files_count
        self.added += done.added_data_files_count
        self.rewritten_bytes += done.rewritten_bytes_count
        self.removed_delete_files += done.removed_delete_files_count
        self.snapshot_ids += done.snapshot_ids

    def _results(self, groups: int) -> Generator[bytes]:
        """Return the results of groups as they end; with partial progress without those that fail."""
        jobs = self.jobs
        stopped = Event()
        name = ".".join(self.table.name())
        job = _Job(self.spark, jobs, self.plan, self.table.storage, name, self.number, self.memory_limit)
        width = self.limits.concurrent or at_once(self.spark) or _GROUPS_AT_ONCE
        with ThreadPoolExecutor(min(width, groups)) as pool:
            try:
                # Threads of Spark's own for each group: they have the properties of this one, such as its job group.
                running: dict[Future[bytes | None], int] = {
                    pool.submit(_inheriting(self.spark, job.run), number, stopped): number for number in range(groups)
                }
                while running:
                    for one in wait(running, return_when=FIRST_COMPLETED).done:
                        result = self._ended(running.pop(one), one)
                        if result is not None:
                            yield result
            except BaseException:
                # Groups that have not begun never do, and the others end here.
                stopped.set()
                jobs.cancel()
                jobs.wait()
                raise

    def _ended(self, number: int, job: Future[bytes | None]) -> bytes | None:
        """Return the result of a group, or note why it has none."""
        files, size, expected = self.plan.groups[number]
        try:
            result = job.result()
        except Exception as error:  # noqa: BLE001 - whatever ends a job
            own = raised_in_task(error)
            if not self.limits.partial:
                raise (own or error) from None
            self.failed_data_files += files
            self.failures.append(f"group {number}: {own or error}")
            return None
        if self.on_group is not None:
            self.on_group(CompactedGroup(number, files, size, expected, 0))
        return result


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _inheriting(spark: SparkSession, run: Callable[[int, Event], bytes | None]) -> Callable[[int, Event], bytes | None]:
    """Return a function that runs in another thread with the properties that this one has in Spark."""
    # Typed as if it took a session or a function, never both.
    return inheritable_thread_target(spark)(run)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class _Job:
    """Rewrites a group by a job."""

    spark: SparkSession
    jobs: Jobs
    plan: CompactionPlan
    storage: Storage
    table: str
    run_number: int
    memory_limit: int | None

    def run(self, number: int, stopped: Event) -> bytes | None:
        """Run the job, unless the compaction has failed meanwhile."""
        if stopped.is_set():
            return None
        with self.jobs.tagged():
            if is_classic(self.spark):
                text = f"icefield: compact {self.table}, group {number + 1} of {len(self.plan.groups)}"
                self.spark.sparkContext.setJobDescription(text)
            with drivers_python():
                rewrite = _function_of(self.plan.task(number), self.storage, self.run_number, self.memory_limit)
                rows = self.spark.range(0, 1, 1, 1).mapInArrow(rewrite, "files binary").collect()
        return bytes(rows[0][0])


def _function_of(
    task: bytes, storage: Storage, run_number: int, memory_limit: int | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    @sentence
    def rewrite(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            begin_task()
            context = TaskContext.get()
            attempt = 0 if context is None else context.taskAttemptId() % (1 << _ATTEMPT_BITS)
            attempt |= run_number << _ATTEMPT_BITS
            result = rewrite_files(task, storage, attempt=attempt, memory_limit=memory_limit)
            yield pa.RecordBatch.from_arrays([pa.array([result], pa.binary())], ["files"])

    return rewrite
