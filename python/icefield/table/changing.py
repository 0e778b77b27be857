"""What all changes of data need: the transaction that they are made in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from icefield.distributed import made_before

if TYPE_CHECKING:
    from icefield._core import Transaction as CoreTransaction
    from icefield.metadata import TableMetadata

__all__ = ["ChangesData"]


class ChangesData(ABC):
    """A table, or a transaction of one."""

    @abstractmethod
    def _changing(self) -> AbstractContextManager[CoreTransaction]:
        """Return the transaction that a change is made in; that of a table is committed at the end of the block."""

    @property
    @abstractmethod
    def metadata(self) -> TableMetadata:
        """The metadata that a change is made of."""

    def _made_before(self, branch: str, idempotency_key: str | None) -> bool:
        """Whether a change with this key was made. If another client has made it since, the commit finds that."""
        return made_before(self.metadata, branch, idempotency_key)
