"""How the branches, the tags and the current snapshot of a table change."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from icefield._core import create_ref, remove_ref, rollback_to_snapshot, rollback_to_timestamp, set_current_snapshot
from icefield.errors import ArgumentTypeError, InvalidArgumentError
from icefield.moments import milliseconds_of
from icefield.table.update.change import Change, Staging

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ManageSnapshots"]


class ManageSnapshots(Change):
    """A change of branches, tags and the current snapshot ("Snapshot References")."""

    def __init__(self, transaction: Staging, *, alone: bool = False) -> None:
        super().__init__(transaction, alone=alone)
        self._staged = self._base
        self._updates: list[str] = []

    def create_tag(self, snapshot_id: int, tag_name: str, max_ref_age_ms: int | None = None) -> Self:
        """Name a snapshot.

        Parameters
        ----------
        snapshot_id
            The snapshot.
        tag_name
            A name that no branch or tag has.
        max_ref_age_ms
            Age at which expiry removes the tag.

        """
        _snapshot_first("create_tag", snapshot_id, tag_name)
        update = create_ref(self._staged, tag_name, snapshot_id, is_branch=False, max_ref_age_ms=max_ref_age_ms)
        return self._stage(update)

    def create_branch(
        self,
        snapshot_id: int,
        branch_name: str,
        max_ref_age_ms: int | None = None,
        max_snapshot_age_ms: int | None = None,
        min_snapshots_to_keep: int | None = None,
    ) -> Self:
        """Begin a branch at a snapshot.

        Parameters
        ----------
        snapshot_id
            The snapshot.
        branch_name
            A name that no branch or tag has.
        max_ref_age_ms
            Age at which expiry removes the branch.
        max_snapshot_age_ms, min_snapshots_to_keep
            Age up to which, and number to which, expiry leaves its snapshots.

        """
        _snapshot_first("create_branch", snapshot_id, branch_name)
        update = create_ref(
            self._staged,
            branch_name,
            snapshot_id,
            is_branch=True,
            max_ref_age_ms=max_ref_age_ms,
            max_snapshot_age_ms=max_snapshot_age_ms,
            min_snapshots_to_keep=min_snapshots_to_keep,
        )
        return self._stage(update)

    def remove_tag(self, tag_name: str) -> Self:
        """Remove a tag; its snapshot stays."""
        return self._stage(remove_ref(self._staged, tag_name, is_branch=False))

    def remove_branch(self, branch_name: str) -> Self:
        """Remove a branch other than ``main``; its snapshots stay until they expire."""
        return self._stage(remove_ref(self._staged, branch_name, is_branch=True))

    def set_current_snapshot(self, snapshot_id: int | None = None, ref_name: str | None = None) -> Self:
        """Make any snapshot the current one, by its id or by a branch or tag."""
        if snapshot_id is not None and ref_name is None:
            return self._stage(set_current_snapshot(self._staged, snapshot_id))
        if snapshot_id is not None or ref_name is None:
            raise InvalidArgumentError("give the snapshot's id or the name of a branch or tag")
        reference = self._staged.refs.get(ref_name)
        if reference is None:
            known = ", ".join(sorted(self._staged.refs)) or "none"
            raise InvalidArgumentError(f"there is no branch or tag {ref_name!r} (there are: {known})")
        return self._stage(set_current_snapshot(self._staged, reference.snapshot_id))

    def rollback_to_snapshot(self, snapshot_id: int) -> Self:
        """Take the table back to an ancestor of its current snapshot."""
        return self._stage(rollback_to_snapshot(self._staged, snapshot_id))

    def rollback_to_timestamp(self, timestamp_ms: datetime | str | int) -> Self:
        """Take the table back to its newest ancestor older than a time.

        Parameters
        ----------
        timestamp_ms
            Milliseconds from the epoch, an aware datetime, or ISO text with an offset.

        """
        moment = milliseconds_of(timestamp_ms, "timestamp_ms")
        if moment is None:
            raise InvalidArgumentError("timestamp_ms: give the time to go back to, not None")
        return self._stage(rollback_to_timestamp(self._staged, moment))

    def updates(self) -> list[str]:
        """Give the updates of the REST protocol, as JSON texts."""
        return list(self._updates)

    def _stage(self, update: str) -> Self:
        self._staged = self._staged.apply([update])
        self._updates.append(update)
        return self


def _snapshot_first(what: str, snapshot_id: object, name: object) -> None:
    """Refuse arguments in the wrong order.

    Raises
    ------
    ArgumentTypeError
        If the id is text, or the name is not.

    """
    if isinstance(snapshot_id, str) or not isinstance(name, str):
        msg = f"{what} takes the snapshot's id first and then the name, got {snapshot_id!r} and {name!r}"
        raise ArgumentTypeError(msg)
