"""Changes of rows that an engine distributes: a plan, and workers that take rows out of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from icefield._core import ReadTask, Storage, TableState
from icefield._core import RowChangePlan as _RowChangePlan
from icefield._core import RowRemover as _RowRemover
from icefield.distributed.writes import WRITE_ID, Attempt, Committed, FilesLeft, WritePlan, WrittenFiles

if TYPE_CHECKING:
    from icefield.arrow import ArrowSchemaExportable, Rows
    from icefield.expressions import RowFilter

__all__ = ["RowChangePlan", "RowRemover"]


class RowChangePlan:
    """One change of rows, shared by all its workers; made by `icefield.table.Table.new_row_change`."""

    __slots__ = ("_core", "_write")

    def __init__(self, core: _RowChangePlan) -> None:
        self._core = core
        self._write = WritePlan(core.write)

    @classmethod
    def of(
        cls,
        state: TableState,
        command: str,
        row_filter: RowFilter | None,
        *,
        exact: bool,
        mode: str | None,
        isolation: str | None,
        branch: str,
        case_sensitive: bool,
        properties: Mapping[str, str],
        widened_by: ArrowSchemaExportable | None,
    ) -> RowChangePlan:
        """Plan a change of rows; `icefield.table.Table.new_row_change` calls it."""
        core = _RowChangePlan(
            state,
            command,
            row_filter,
            exact=exact,
            mode=mode,
            isolation=isolation,
            branch=branch,
            case_sensitive=case_sensitive,
            properties=properties,
            widened_by=widened_by,
        )
        return cls(core)

    @classmethod
    def from_bytes(cls, data: bytes) -> RowChangePlan:
        """Read a plan from the result of `to_bytes`."""
        return cls(_RowChangePlan.from_bytes(data))

    def to_bytes(self) -> bytes:
        """Return the plan as bytes, to be sent to the workers; pickling does the same.

        Neither its tasks nor changes of the schema are in them: make and send the tasks, and commit by the plan itself.
        """
        return self._core.to_bytes()

    @property
    def core(self) -> _RowChangePlan:
        """The plan of the core."""
        return self._core

    @property
    def write(self) -> WritePlan:
        """The write of new rows, for `TaskWriter`; commit their files by `icefield.table.Table.commit_rows`."""
        return self._write

    @property
    def write_id(self) -> str:
        """Id of the change, a part of the name of each of its files."""
        return self._write.write_id

    @property
    def command(self) -> str:
        """The kind of the change: ``"delete"``, ``"update"``, ``"merge"`` or ``"overwrite"``."""
        return self._core.command

    @property
    def branch(self) -> str:
        """The branch that is changed."""
        return self._core.branch

    @property
    def mode(self) -> Literal["auto", "copy-on-write", "merge-on-read"]:
        """How rows are taken out of files: they are written again, or get delete files or deletion vectors."""
        return self._core.mode

    @property
    def exact(self) -> bool:
        """Whether every row that the filter matches is taken out."""
        return self._core.exact

    @property
    def snapshot_id(self) -> int | None:
        """Id of the snapshot whose rows are changed; None for an empty table."""
        return self._core.snapshot_id

    @property
    def files(self) -> int:
        """Number of data files that may have rows to take out."""
        return self._core.file_count

    @property
    def is_empty(self) -> bool:
        """Whether no data file has rows to take out."""
        return self.files == 0

    def tasks(
        self,
        selected_fields: Sequence[str] | None = None,
        *,
        whole_files: bool = False,
        split_size: int | None = None,
        lookback: int | None = None,
        open_file_cost: int | None = None,
        parallelism: int | None = None,
    ) -> list[ReadTask]:
        """Return the tasks that read the rows which may be taken out: live ones that the filter matches.

        Behind the selected columns they have ``_file`` and ``_pos``, the places of the rows, and from version 3 on
        ``_row_id``. With `exact` there are no tasks for files whose rows all match: the commit drops them.

        Parameters
        ----------
        selected_fields
            Names of columns, metadata columns included; all columns of the table without it.
        whole_files
            Whether each file is in one task only, whatever its size: the reader of a task can then take its rows out
            without a shuffle.
        split_size, lookback, open_file_cost, parallelism
            As in `icefield.scan.TableScan.tasks`.

        Raises
        ------
        InvalidArgumentError
            If the plan was read from bytes: make the tasks where it was planned, and send them.

        """
        fields = None if selected_fields is None else list(selected_fields)
        return self._core.tasks(
            fields,
            whole_files=whole_files,
            split_size=split_size,
            lookback=lookback,
            open_file_cost=open_file_cost,
            parallelism=parallelism,
        )

    def discard(self, storage: Storage, written: Iterable[WrittenFiles] = (), *, search: bool = False) -> FilesLeft:
        """Delete the files of this change, of removers and writers; see `WritePlan.discard`.

        Never call it after a `CommitStateUnknownException`: the files may be part of the table.
        """
        self._write.check_discard()
        return FilesLeft(*self._core.discard(storage, [files.data for files in written], search=search))

    def discard_lost(self, storage: Storage, committed: Iterable[WrittenFiles]) -> FilesLeft:
        """Delete what attempts have left that lost, once the change is committed; see `WritePlan.discard_lost`.

        Parameters
        ----------
        storage
            The storage of the table.
        committed
            The results of all removers and writers, as they were committed.

        """
        return FilesLeft(*self._core.discard_lost(storage, [files.data for files in committed]))

    def commit(
        self,
        state: TableState,
        catalog: object,
        identifier: object,
        removed: Iterable[WrittenFiles],
        added: Iterable[WrittenFiles],
        *,
        snapshot_properties: Mapping[str, str],
    ) -> tuple[TableState, Committed]:
        """Commit what the workers did; `icefield.table.Table.commit_rows` calls it."""
        after, snapshot_id, made_before, counts = self._core.commit(
            state,
            catalog,
            identifier,
            [files.data for files in removed],
            [files.data for files in added],
            snapshot_properties={**snapshot_properties, WRITE_ID: self.write_id},
        )
        taken = self._write.takes(after, snapshot_id, made_before)
        return after, Committed.of_rows(snapshot_id, made_before, taken, counts)

    def __reduce__(self) -> tuple[object, ...]:
        return RowChangePlan.from_bytes, (self.to_bytes(),)

    def __repr__(self) -> str:
        return f"RowChangePlan({self.command}, {self.files:,} files, {self.write_id})"


class RowRemover(Attempt):
    """Takes rows out of data files, in one attempt at one task; all rows of a file go to one remover.

    What becomes of a file is decided when the remover is closed: it is dropped if no row is left, written again without
    the rows, or marked by a delete file or a deletion vector, as the mode of the change says. In a ``with`` block it is
    closed at the end, or aborted if the block fails; `written` is then its result.

    Parameters
    ----------
    plan
        The change.
    storage
        The storage of the table, `icefield.table.Table.storage`.
    task, attempt
        Numbers that identify this remover within the change; they are part of its file names.
    memory_limit
        Bytes that reading files that are written again may take, about; 512 MiB by default. Beside them the positions
        are kept, as bitmaps.
    unique
        Whether a row that comes twice is an error, as in a merge two rows of whose source match it.

    """

    __slots__ = ()

    def __init__(
        self,
        plan: RowChangePlan,
        storage: Storage,
        *,
        task: int = 0,
        attempt: int = 0,
        memory_limit: int | None = None,
        unique: bool = False,
    ) -> None:
        super().__init__(
            _RowRemover(plan.core, storage, task=task, attempt=attempt, memory_limit=memory_limit, unique=unique)
        )

    def remove(self, rows: Rows) -> None:
        """Take out rows, in any order.

        Parameters
        ----------
        rows
            Anything with ``__arrow_c_stream__``, or one Arrow batch, with the columns ``_file`` and ``_pos`` of the
            plan's tasks; other columns are ignored.

        Raises
        ------
        ValidationError
            If a column is missing, has another type or nulls.
        InvalidArgumentError
            If a file is not one of the plan's, or if a row comes twice and `unique` was asked for.

        """
        self._core.remove(rows)

    def close(self) -> WrittenFiles:
        """Write what the change needs and return it, to be sent to the committer.

        Raises
        ------
        InvalidArgumentError
            If a file has no such row, or if it was deleted before; nothing that was written is left.

        """
        return super().close()
