"""Compactions that an engine distributes: a plan, and workers that rewrite groups of files."""

from __future__ import annotations

from collections.abc import Sequence
from secrets import randbits
from typing import TYPE_CHECKING

from icefield._core import CompactionPlan as _CompactionPlan
from icefield._core import Storage, rewrite_group

if TYPE_CHECKING:
    from icefield._core import TableState

__all__ = ["CompactionPlan", "rewrite_files"]


class CompactionPlan:
    """A compaction by workers; made by `icefield.table.maintenance.Maintenance.new_compaction`."""

    __slots__ = ("_core",)

    def __init__(self, core: _CompactionPlan) -> None:
        self._core = core

    @property
    def groups(self) -> list[tuple[int, int, int]]:
        """Number of files, their bytes, and the expected number of new files of each group."""
        return self._core.groups

    def task(self, number: int) -> bytes:
        """Return the task of a group, for `rewrite_files` on a worker.

        A task has the properties of the table that reading and writing need (``read.*``, ``write.*``, ``encryption.*``)
        and, if the table is encrypted, the keys of the files to read. It has no credentials of the storage.

        Parameters
        ----------
        number
            The place of the group in `groups`.

        """
        return self._core.task(number)

    def tasks(self) -> list[bytes]:
        """Return the tasks of all groups."""
        return [self.task(number) for number in range(len(self._core.groups))]

    def commit(
        self, state: TableState, catalog: object, identifier: object, results: Sequence[bytes]
    ) -> tuple[TableState | None, list[int], bool, list[int], list[str]]:
        """Commit results; `icefield.table.maintenance.Maintenance.commit_compaction` calls it."""
        return self._core.commit(state, catalog, identifier, list(results))


def rewrite_files(
    task: bytes, storage: Storage, *, attempt: int | None = None, memory_limit: int | None = None
) -> bytes:
    """Rewrite the files of a task of a `CompactionPlan`, and return the result for the commit.

    Parameters
    ----------
    task
        The task.
    storage
        The storage of the table, `icefield.Table.storage`.
    attempt
        Number of the attempt, a part of file names: by default a random one.
    memory_limit
        Bytes that reading and writing may take, about; by default 512 MiB.

    Raises
    ------
    InvalidArgumentError
        If the bytes are not a task, or of another version of icefield.

    """
    attempt = randbits(32) if attempt is None else attempt
    return rewrite_group(task, storage, attempt=attempt, memory_limit=memory_limit)
