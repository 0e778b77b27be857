"""The base class of changes of one part of a table."""

from __future__ import annotations

import json
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

from icefield._outputs.printable import printable
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield._core import Transaction as CoreTransaction
    from icefield.metadata import TableMetadata

__all__ = ["Change", "MetadataChange", "Staging", "changed_lines", "in_lines", "warn_of_lost"]

Answer = TypeVar("Answer")

_LOST = "changes were never committed and are lost"
if not sys.warnoptions:
    # Python hides a ResourceWarning by default; this one is of work that somebody believes to be done.
    warnings.filterwarnings("always", f".*{_LOST}", ResourceWarning)


class Staging(Protocol):
    """What collects changes: a `Transaction`."""

    #: Whether an exception left its ``with`` block, so that its changes are dropped.
    aborted: bool

    @property
    def metadata(self) -> TableMetadata:
        """The table's metadata with the changes so far."""

    def stage(self, updates: Iterable[str], on: TableMetadata) -> None:
        """Add updates of the REST protocol, as JSON, that were created from the metadata ``on``."""

    def produce(self, add: Callable[[CoreTransaction], None], *, make: bool) -> None:
        """Add a change of data; with ``make``, the metadata are then those after it."""

    def preview(self, ask: Callable[[CoreTransaction], Answer]) -> Answer:
        """Return what a change would do to the table with the changes so far; nothing is added."""

    def commit_transaction(self) -> object:
        """Commit the changes."""


class Change(ABC):
    """A change of one part of a table, made by `commit` or at the end of the ``with`` block.

    Within a transaction it becomes part of that; otherwise it is committed at once. A block that raises changes
    nothing. A change is used once; without `commit` it is lost, with a ``ResourceWarning``.
    """

    def __init__(self, transaction: Staging, *, standalone: bool = False) -> None:
        self._transaction = transaction
        self._standalone = standalone
        self._base = transaction.metadata
        self._finished = False
        #: Whether `commit` was called: if it raised, the caller knows that nothing was changed.
        self._tried = False

    @abstractmethod
    def _prepared(self) -> Callable[[], None]:
        """Return what adds the change to the transaction."""

    @abstractmethod
    def _holds_changes(self) -> bool:
        """Return whether there is something to commit."""

    def commit(self) -> None:
        """Commit the change, or add it to its transaction.

        Raises
        ------
        CommitFailedException
            If other commits changed what this change depends on, or every attempt lost to another commit.

        """
        if self._finished:
            raise InvalidArgumentError("this change was already made; start a new one")
        self._tried = True
        add = self._prepared()
        self._finished = True
        add()
        if self._standalone:
            self._transaction.commit_transaction()

    def __enter__(self) -> Self:
        if self._finished:
            raise InvalidArgumentError("this change was already made; start a new one")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._finished = True
        elif not self._finished:
            self.commit()

    def _effects(self) -> Iterable[str]:
        """Return what is changed, a line each."""
        return ()

    def __repr__(self) -> str:
        state = "made" if self._finished else "not committed"
        return in_lines(f"{type(self).__name__}, {state}", self._effects())

    def __del__(self) -> None:
        if getattr(self, "_tried", True) or self._finished or self._transaction.aborted or sys.is_finalizing():
            return
        with suppress(Exception):
            if not self._holds_changes():
                return
        warn_of_lost(self, "commit()")


class MetadataChange(Change):
    """A change of metadata alone."""

    @abstractmethod
    def updates(self) -> list[str]:
        """Return the updates of the REST protocol, as JSON."""

    def _prepared(self) -> Callable[[], None]:
        updates = self.updates()
        return lambda: self._transaction.stage(updates, self._base)

    def _holds_changes(self) -> bool:
        return bool(self.updates())

    def _effects(self) -> Iterable[str]:
        for text in self.updates():
            update = json.loads(text)
            yield f"{update.pop('action')} {json.dumps(update)}"


def in_lines(title: str, lines: Iterable[str]) -> str:
    """Return a title, and the lines beneath it."""
    return "\n".join([printable(title), *(f"  {printable(line)}" for line in lines)])


def changed_lines(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Return what was removed and what was added, with ``-`` and ``+``."""
    old, new = list(before), list(after)
    return [f"- {text}" for text in old if text not in new] + [f"+ {text}" for text in new if text not in old]


def warn_of_lost(change: object, verb: str) -> None:
    """Warn of changes that are dropped and were never committed; not while the interpreter exits."""
    if not sys.is_finalizing():
        message = f"{type(change).__name__}: {_LOST}; call {verb}, or use 'with'"
        warnings.warn(message, ResourceWarning, stacklevel=3, source=change)
