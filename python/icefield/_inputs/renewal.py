"""Credentials of storage that expire."""

from __future__ import annotations

from typing import Protocol

__all__ = ["StorageRenewal"]


class StorageRenewal(Protocol):
    """Gets a storage other credentials before those it has expire; it is pickled with the storage."""

    @property
    def due_ms(self) -> float | None:
        """When to ask for others, in milliseconds from the epoch; None if the credentials do not expire."""

    @property
    def expires_ms(self) -> float | None:
        """When the credentials expire, in milliseconds from the epoch."""

    def renew(self) -> tuple[dict[str, str], float | None, float | None]:
        """Return other properties of the storage, and both times for them; an error leaves the old ones in use."""
