"""Writes that an engine distributes: a plan, writers of its tasks, and what a commit did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from icefield._core import IDEMPOTENCY_KEY, Storage, TableState, snapshot_of_key
from icefield._core import RowRemover as _RowRemover
from icefield._core import TaskWriter as _TaskWriter
from icefield._core import WritePlan as _WritePlan
from icefield._inputs.arguments import summary_entries
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from icefield.arrow import ArrowSchemaExportable, Rows
    from icefield.metadata import TableMetadata
    from icefield.schema import Schema

__all__ = [
    "WRITE_ID",
    "Attempt",
    "Committed",
    "FilesLeft",
    "TaskWriter",
    "WritePlan",
    "WrittenFiles",
    "made_before",
]


#: Entry of a snapshot's summary: the write that wrote its files.
WRITE_ID = "icefield.write-id"


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """What a task wrote, for `icefield.table.Table.commit_files` or `icefield.table.Table.commit_rows`."""

    #: The descriptions of the files.
    data: bytes
    #: Files that were written.
    file_count: int
    #: Rows that were written; of a `RowRemover` the rows that it took out.
    row_count: int
    #: Size of the files.
    byte_count: int


@dataclass(frozen=True, slots=True)
class Committed:
    """What `icefield.table.Table.commit_files` or `icefield.table.Table.commit_rows` did."""

    #: The snapshot of the files; if the change was made before, the one that it made then; None if nothing changed.
    snapshot_id: int | None
    #: Whether the change was made before, with the same idempotency key, so that nothing was committed now.
    made_before: bool
    #: Rows that were added now.
    rows: int
    #: Whether the files are the table's, now or since an earlier call; if not, delete them by `WritePlan.discard`.
    files_taken: bool
    #: Rows that were taken out now. Of files that were dropped unread, rows count that equality deletes had deleted.
    rows_removed: int = 0
    #: Data files that were dropped because all of their rows were taken out.
    files_removed: int = 0
    #: Data files that were written again without some rows.
    files_rewritten: int = 0
    #: Data files that got a delete file or a deletion vector.
    files_marked: int = 0
    #: Size of the dropped data files.
    bytes_removed: int = 0

    @classmethod
    def of_rows(cls, snapshot_id: int | None, made_before: bool, taken: bool, counts: tuple[int, ...]) -> Committed:
        """Make the result from the numbers of the core."""
        removed, added, dropped, rewritten, marked, *_, dropped_bytes = counts
        return cls(snapshot_id, made_before, added, taken, removed, dropped, rewritten, marked, dropped_bytes)


class FilesLeft(NamedTuple):
    """Files that could not be deleted: their number and the first errors."""

    number: int
    messages: list[str]


def made_before(metadata: TableMetadata, branch: str, idempotency_key: str | None) -> bool:
    """Return whether a change with an idempotency key was made on a branch; False without a key.

    What another client has committed since the metadata were read, the commit finds.
    """
    key = summary_entries(None, idempotency_key).get(IDEMPOTENCY_KEY)
    if key is None or branch not in metadata.refs:
        return False
    return snapshot_of_key(metadata, branch, key) is not None


class WritePlan:
    """One write into a table, shared by all its tasks; made by `icefield.table.Table.new_write`."""

    __slots__ = ("_core", "_snapshot_id")

    def __init__(self, core: _WritePlan) -> None:
        self._core = core
        #: The snapshot that has the files, if this object knows it.
        self._snapshot_id: int | None = None

    @classmethod
    def of(
        cls, state: TableState, properties: Mapping[str, str], widened_by: ArrowSchemaExportable | None = None
    ) -> WritePlan:
        """Plan a write into a table; `icefield.table.Table.new_write` calls it."""
        return cls(_WritePlan(state, properties=properties, widened_by=widened_by))

    @classmethod
    def from_bytes(cls, data: bytes) -> WritePlan:
        """Read a plan from the result of `to_bytes`."""
        return cls(_WritePlan.from_bytes(data))

    def to_bytes(self) -> bytes:
        """Return the plan as bytes, to be sent to the workers; pickling does the same.

        Changes of the schema are not in them: commit by the plan itself.
        """
        return self._core.to_bytes()

    @property
    def core(self) -> _WritePlan:
        """The plan of the core."""
        return self._core

    @property
    def write_id(self) -> str:
        """Id of the write, a part of the name of each of its files."""
        return self._core.write_id

    @property
    def schema(self) -> Schema:
        """Columns of the table as the commit leaves it: with those that ``widened_by`` adds."""
        return self._core.schema

    def check(self, storage: Storage, schema: ArrowSchemaExportable, *, allow_missing: bool = True) -> None:
        """Check that rows of these columns can be written, before any task starts.

        Parameters
        ----------
        storage
            The storage of the table.
        schema
            The Arrow schema of the rows.
        allow_missing
            Whether optional columns may be missing.

        Raises
        ------
        ValidationError
            If a column does not fit; it names the column.

        """
        self._core.check(storage, schema, allow_missing=allow_missing)

    def discard(self, storage: Storage, written: Iterable[WrittenFiles] = (), *, search: bool = False) -> FilesLeft:
        """Delete the files of this write; only for a write that was certainly not committed.

        Never call it after a `CommitStateUnknownException`: the files may be part of the table.

        Parameters
        ----------
        storage
            The storage of the table.
        written
            The results of the tasks.
        search
            Also look for files that no task returned, by the id of the write in their names: this lists the data
            folder of the table.

        Raises
        ------
        InvalidArgumentError
            If `icefield.table.Table.commit_files` has committed the files by this object.

        """
        self.check_discard()
        return FilesLeft(*self._core.discard(storage, [files.data for files in written], search=search))

    def check_discard(self) -> None:
        """Raise `InvalidArgumentError` if this object has committed the files."""
        if self._snapshot_id is not None:
            raise InvalidArgumentError(
                f"the files of write {self.write_id} are in snapshot {self._snapshot_id}: they cannot be discarded"
            )

    def discard_lost(self, storage: Storage, committed: Iterable[WrittenFiles]) -> FilesLeft:
        """Delete what attempts have left that lost: files of this write, once committed, that no result names.

        Workers that are killed, or whose task another worker has done first, leave such files. Call it when no worker
        of the write is at work any more; it lists the data folder of the table.

        Parameters
        ----------
        storage
            The storage of the table.
        committed
            The results of all tasks, as they were committed.

        """
        return FilesLeft(*self._core.discard_lost(storage, [files.data for files in committed]))

    def append(
        self,
        state: TableState,
        catalog: object,
        identifier: object,
        written: Iterable[WrittenFiles],
        *,
        branch: str,
        snapshot_properties: Mapping[str, str],
    ) -> tuple[TableState, Committed]:
        """Commit what the tasks wrote; `icefield.table.Table.commit_files` calls it."""
        after, snapshot_id, rows, made_before = self._core.append(
            state,
            catalog,
            identifier,
            [files.data for files in written],
            branch=branch,
            snapshot_properties={**snapshot_properties, WRITE_ID: self.write_id},
        )
        return after, Committed(snapshot_id, made_before, rows, self.takes(after, snapshot_id, made_before))

    def replace_partitions(
        self,
        state: TableState,
        catalog: object,
        identifier: object,
        written: Iterable[WrittenFiles],
        *,
        branch: str,
        isolation: str | None,
        snapshot_properties: Mapping[str, str],
    ) -> tuple[TableState, Committed]:
        """Commit what the tasks wrote in place of partitions; `icefield.table.Table.commit_files` calls it."""
        after, snapshot_id, made_before, counts = self._core.replace_partitions(
            state,
            catalog,
            identifier,
            [files.data for files in written],
            branch=branch,
            isolation=isolation,
            snapshot_properties={**snapshot_properties, WRITE_ID: self.write_id},
        )
        taken = self.takes(after, snapshot_id, made_before)
        return after, Committed.of_rows(snapshot_id, made_before, taken, counts)

    def takes(self, after: TableState, snapshot_id: int | None, made_before: bool) -> bool:
        """Note the snapshot that has the files; return whether they are the table's."""
        taken = not made_before
        if made_before and snapshot_id is not None:
            # The same files may come again, where the first answer was lost.
            snapshot = after.metadata.snapshot_by_id(snapshot_id)
            summary = snapshot.summary if snapshot is not None else None
            taken = summary is not None and summary.get(WRITE_ID) == self.write_id
        if taken:
            self._snapshot_id = snapshot_id
        return taken

    def __reduce__(self) -> tuple[object, ...]:
        return WritePlan.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"WritePlan({self.write_id})"


class Attempt:
    """One attempt at one task, which is closed or aborted.

    In a ``with`` block it is closed at the end, or aborted if the block fails; `written` is then its result.
    """

    __slots__ = ("_core", "_ended", "_written")

    def __init__(self, core: _TaskWriter | _RowRemover) -> None:
        self._core: Any = core
        self._ended = False
        self._written: WrittenFiles | None = None

    @property
    def written(self) -> WrittenFiles | None:
        """The files written, once the attempt is closed; None before that, and after `abort`."""
        return self._written

    def close(self) -> WrittenFiles:
        """Finish all files and return what was written, to be sent to the committer."""
        self._ended = True
        self._written = WrittenFiles(*self._core.close())
        return self._written

    def abort(self) -> None:
        """Delete what was written; no effect after `close`."""
        self._core.abort()
        self._ended = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        elif not self._ended:
            self.close()


class TaskWriter(Attempt):
    """Writes the data files of one attempt at one task.

    In a ``with`` block it is closed at the end, or aborted if the block fails; `written` is then its result.

    Parameters
    ----------
    plan
        The write.
    storage
        The storage of the table, `icefield.table.Table.storage`.
    schema
        The Arrow schema of the rows. Columns are found by name, in any order.
    task, attempt
        Numbers that identify this writer within the write; they are part of its file names.
    allow_missing
        Whether optional columns may be missing; they get their write default or null.
    clustered
        Whether rows are grouped by partition: only one file is then open at a time.
    memory_limit
        Bytes that rows waiting to be written may take, about; 512 MiB by default. More is held in temporary files.
    dry_run
        Only encode the rows and count them; nothing is written, and the result cannot be committed.

    Raises
    ------
    ValidationError
        If a column does not fit; it names the column.

    """

    __slots__ = ()

    def __init__(
        self,
        plan: WritePlan,
        storage: Storage,
        schema: ArrowSchemaExportable,
        *,
        task: int = 0,
        attempt: int = 0,
        allow_missing: bool = True,
        clustered: bool = False,
        memory_limit: int | None = None,
        dry_run: bool = False,
    ) -> None:
        core = _TaskWriter(
            plan.core,
            storage,
            schema,
            task=task,
            attempt=attempt,
            allow_missing=allow_missing,
            clustered=clustered,
            memory_limit=memory_limit,
            dry_run=dry_run,
        )
        super().__init__(core)

    def write(self, rows: Rows) -> None:
        """Add rows, which are written in the background.

        So an error may be due to earlier rows. After an error nothing more can be written: call `abort`.

        Parameters
        ----------
        rows
            Anything with ``__arrow_c_stream__``, or one Arrow batch.

        """
        self._core.write(rows)
