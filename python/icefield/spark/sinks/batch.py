"""Writes of batches: ``df.write.format("icefield")``, and ``INSERT INTO`` a view.

What goes to tasks has the storage of the table and no options: they may hold credentials of the catalog
(`icefield.spark.tables.handover`). The committer is another process, and opens the catalog again from the options.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from icefield.spark.changing.committing import commit
from icefield.spark.sessions.audit import task_audit, write_target
from icefield.spark.sessions.failures import sentence
from icefield.spark.sinks.overwrites import Overwrite, require_branch
from icefield.spark.tables.handover import forget, keep, kept
from icefield.spark.tables.opening import SourceOptions
from icefield.spark.writes.writing import Write, write_task

if TYPE_CHECKING:
    import pyarrow as pa

    from icefield.distributed import WrittenFiles

__all__ = ["Writer", "Written", "files_of"]


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """The files that a task wrote; None if it had no rows."""

    files: WrittenFiles | None
    #: What the session says of staging; only a task knows.
    audit: dict[str, str] = field(default_factory=dict)
    #: How often the task was tried before.
    attempts_before: int = 0


class Writer(DataSourceArrowWriter):
    """Writes rows to a table: beside its rows, or in place of some."""

    def __init__(self, options: SourceOptions, write: Write, overwrite: Overwrite | None = None) -> None:
        self._given = options.given
        self._keeps_options = options.may_have_secrets
        self._write = write
        self._overwrite = overwrite
        #: The file in which the options wait for the committer.
        self._kept: str | None = None

    def __getstate__(self) -> dict[str, object]:
        if self._keeps_options and self._kept is None:
            self._kept = keep(self._given)
        return {**self.__dict__, "_given": {}} if self._kept else self.__dict__

    @sentence
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of a task."""
        context = TaskContext.get()
        attempts = 0 if context is None else context.attemptNumber()
        return Written(write_task(self._write, iterator, clustered=False), task_audit(), attempts)

    @sentence
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Commit what all tasks wrote, in one snapshot."""
        written = files_of(messages)
        results = [message for message in messages if isinstance(message, Written)]
        audit = next((message.audit for message in results if message.audit), {})
        try:
            options = SourceOptions.of(self._given or kept(self._kept or ""))
            table = options.open()
            branch, staged = write_target(table, options.branch, audit)
        except Exception:
            self._write.clean_up(written)
            raise
        finally:
            self._forget()
        summary, key = {**options.summary, **staged}, options.idempotency_key

        def lost_some() -> bool:
            return any(message.attempts_before for message in results)

        if self._overwrite is None:
            self._write.commit(table, written, branch, summary, key, lost_some)
        elif self._overwrite.plan is None:
            isolation = self._overwrite.isolation
            self._write.commit(table, written, branch, summary, key, lost_some, mode="dynamic", isolation=isolation)
        elif written or not self._overwrite.needs_rows:
            if self._overwrite.needs_rows:
                # What Java says of overwrites by partitions, of which such a table is one.
                summary["replace-partitions"] = "true"
            commit(table, self._overwrite.plan, self._removed(branch, written), written, summary, key, lost_some)

    def _removed(self, branch: str, written: list[WrittenFiles]) -> list[WrittenFiles]:
        """Take out the rows of files that are not removed as a whole."""
        overwrite = self._overwrite
        if overwrite is None or overwrite.plan is None:
            return []
        try:
            require_branch(overwrite.plan, branch)
            return overwrite.removed(self._write)
        except Exception:
            self._write.clean_up(written, search=True)
            raise

    def _forget(self) -> None:
        if self._kept is not None:
            forget(self._kept)

    @sentence
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Delete the files of a job that failed before its commit was tried.

        Spark calls this also when the commit itself raised. It may have been published all the same, so then nothing is
        deleted here: a commit that certainly failed has deleted its files itself.
        """
        self._forget()
        if not messages or None in messages:
            self._write.clean_up(files_of(messages), search=True)


def files_of(messages: Iterable[WriterCommitMessage | None]) -> list[WrittenFiles]:
    """Return what the tasks wrote that had rows."""
    return [message.files for message in messages if isinstance(message, Written) and message.files is not None]
