"""What a change of data is made on: a table, a branch, or a transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from icefield.distributed import made_before
from icefield.errors import ArgumentTypeError, InvalidArgumentError
from icefield.metadata import MAIN_BRANCH

if TYPE_CHECKING:
    from icefield._core import Transaction as CoreTransaction
    from icefield.metadata import TableMetadata

__all__ = ["OWN_BRANCH", "ChangesData"]


class _OwnBranch(str):
    """Distinguishes a branch that was not named from a named one of the same name."""

    __slots__ = ()


#: The branch of a change that names none: ``main``, or that of ``with table.branch(...)``.
OWN_BRANCH: Final[str] = _OwnBranch(MAIN_BRANCH)


class ChangesData(ABC):
    """A table, a branch of one, or a transaction."""

    #: The only branch that is changed, if there is one.
    _branch: str | None = None

    @abstractmethod
    def _changing(self) -> AbstractContextManager[CoreTransaction]:
        """Return the transaction that a change is made in; that of a table is committed at the end of the block."""

    @property
    @abstractmethod
    def _changed_metadata(self) -> TableMetadata:
        """The metadata that a change starts from."""

    def _on(self, branch: str) -> str:
        """Return the branch that a change is made on.

        Raises
        ------
        ArgumentTypeError
            If the branch is not a str.
        InvalidArgumentError
            If this object is of another branch.

        """
        if branch is OWN_BRANCH:
            return self._branch or MAIN_BRANCH
        if branch is None:
            raise ArgumentTypeError(
                "branch: expected the name of a branch, got None; to stage a snapshot without a branch, pass "
                "snapshot_properties={'wap.id': ...} for a table with write.wap.enabled=true, or "
                "update_snapshot(stage_only=True) for files that are written already"
            )
        if not isinstance(branch, str):
            raise ArgumentTypeError(f"branch: expected the name of a branch, got {branch!r}")
        if self._branch is not None and branch != self._branch:
            raise InvalidArgumentError(
                f"this object is of the branch {self._branch!r}: change the branch {branch!r} by the table itself"
            )
        return branch

    def _made_before(self, branch: str, idempotency_key: str | None) -> bool:
        """Whether a change with this key was made. If another client has made it since, the commit finds that."""
        return made_before(self._changed_metadata, branch, idempotency_key)
