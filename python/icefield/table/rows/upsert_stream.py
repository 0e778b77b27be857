"""Streams of upserts and deletes by key, committed a micro-batch at a time by equality delete files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from icefield._core import KeyedBatch
from icefield._core import Transaction as CoreTransaction
from icefield._inputs.arguments import property_texts, summary_entries
from icefield._inputs.frames import rows_of
from icefield._outputs.printable import printable
from icefield._outputs.progress import changing
from icefield.errors import InvalidArgumentError
from icefield.table.update.change import warn_of_lost

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield.arrow import Rows

__all__ = ["MicroBatchResult", "UpsertStream"]


@dataclass(frozen=True)
class MicroBatchResult:
    """What the commit of a micro-batch did."""

    #: Rows written: the last one of each key, unless the key was deleted after it.
    rows_written: int
    #: Keys that were upserted or deleted.
    keys: int


class UpsertStream:
    """A writer of upserts and deletes by key, which become visible with each `commit`.

    Nothing of the table is read: `commit` writes data files, and equality delete files with the keys, which remove
    the older rows when the table is read. That makes commits cheap and reads expensive: rewrite such tables regularly.
    Of several changes of one key since the last commit the last one counts. At the end of a ``with`` block the rest is
    committed; a block that raises drops it. Another commit in between does no harm: its rows are older.

    In a key, null equals null. It must have all source columns of the partition specs that have data files, so that
    each delete is known to be of the partition of its row.

    With an idempotency key each commit is made once: the first has the key itself, those that follow ``key/2``,
    ``key/3`` and so on. So a job that is run again must commit at the same places.
    """

    def __init__(
        self,
        begin: Callable[[], CoreTransaction],
        commit: Callable[[CoreTransaction], None],
        key: str | Iterable[str] | None,
        snapshot_properties: Mapping[str, str] | None,
        branch: str,
        *,
        case_sensitive: bool,
        memory_limit: int | None,
        progress: bool = False,
        idempotency_key: str | None = None,
        made_before: Callable[[str, str | None], bool] = lambda _branch, _key: False,
    ) -> None:
        # What is wrong with the idempotency key is said now.
        summary_entries(None, idempotency_key)
        self._idempotency_key = idempotency_key
        self._made_before = made_before
        self._commits = 0
        self._begin = begin
        self._commit = commit
        self._key = [key] if isinstance(key, str) else list(key or ())
        self._properties = property_texts(snapshot_properties)
        self._branch = branch
        self._case_sensitive = case_sensitive
        self._memory_limit = memory_limit
        self._progress = progress
        self._open: tuple[CoreTransaction, KeyedBatch] | None = None
        self._closed = False
        # What is wrong with the key is said now.
        self._abandon(self._begun())

    def upsert(self, rows: Rows) -> Self:
        """Take rows that replace those with their keys, or are new.

        Parameters
        ----------
        rows
            As for `Table.append`. Optional columns may be missing, and get their write default or null.

        Raises
        ------
        ValidationError
            If a column does not fit. What was taken since the last commit is dropped.

        """
        return self._take(lambda batch: batch.upsert(rows_of(rows)))

    def delete(self, keys: Rows) -> Self:
        """Take keys whose rows are deleted; keys without a row do no harm.

        Parameters
        ----------
        keys
            As for `Table.append`, with the columns of the key; other columns are ignored.

        Raises
        ------
        ValidationError
            If a column of the key is missing or does not fit. What was taken since the last commit is dropped.

        """
        return self._take(lambda batch: batch.delete(rows_of(keys)))

    def commit(self, *, idempotency_key: str | None = None) -> MicroBatchResult:
        """Commit what was taken since the last commit, in one snapshot; without changes there is none.

        Parameters
        ----------
        idempotency_key
            Makes this commit once, as for `Table.append`; by default that of the stream. If it was made before, what
            was taken is dropped, and the result counts nothing.

        Raises
        ------
        ValidationException
            If another commit has added data files of another partition spec.
        CommitFailedException
            If every attempt lost to another commit; the written files were deleted.
        CommitStateUnknownException
            If the outcome is unknown; nothing was deleted.

        """
        self._check_open()
        if self._open is None:
            return MicroBatchResult(0, 0)
        key = idempotency_key if idempotency_key is not None else self._next_key()
        properties = summary_entries(self._properties, key)
        changes, batch = self._open
        # First, as it raises where rows are being taken that wait for this call.
        _ = batch.is_empty
        self._open = None
        self._commits += 1
        if self._made_before(self._branch, key):
            changes.abort()
            return MicroBatchResult(0, 0)
        with changing(self._progress) as traffic:
            changes.count(traffic)
            try:
                done = MicroBatchResult(*batch.write(self._branch, properties))
            except BaseException:
                changes.abort()
                raise
            if not changes.is_empty:
                self._commit(changes)
        return done

    def _next_key(self) -> str | None:
        key = self._idempotency_key
        return f"{key}/{self._commits + 1}" if key is not None and self._commits else key

    def close(self) -> None:
        """Drop what was taken since the last commit; nothing more is taken then."""
        opened = self._open
        if opened is not None:
            # First, as in `commit`.
            _ = opened[1].is_empty
            self._abandon(opened)
            self._open = None
        self._closed = True

    def _take(self, take: Callable[[KeyedBatch], None]) -> Self:
        self._check_open()
        opened = self._open
        if opened is None:
            opened = self._open = self._begun()
        # First, as in `commit`: what is taken already stays.
        _ = opened[1].is_empty
        try:
            take(opened[1])
        except BaseException:
            self._abandon(opened)
            if self._open is opened:
                self._open = None
            raise
        return self

    def _begun(self) -> tuple[CoreTransaction, KeyedBatch]:
        changes = self._begin()
        batch = KeyedBatch(changes, self._key, case_sensitive=self._case_sensitive, memory_limit=self._memory_limit)
        return changes, batch

    @staticmethod
    def _abandon(begun: tuple[CoreTransaction, KeyedBatch]) -> None:
        begun[0].abort()

    def _check_open(self) -> None:
        if self._closed:
            raise InvalidArgumentError("this stream of upserts is closed; open a new one")

    def __enter__(self) -> Self:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and not self._closed:
                self.commit()
        finally:
            self.close()

    def __repr__(self) -> str:
        held = "closed" if self._closed else "nothing to commit" if self._open is None else "changes not committed"
        key = f" by {', '.join(self._key)}" if self._key else ""
        return printable(f"{type(self).__name__}{key} on {self._branch}, {held}")

    def __del__(self) -> None:
        if getattr(self, "_open", None) is not None:
            warn_of_lost(self, "commit()")
