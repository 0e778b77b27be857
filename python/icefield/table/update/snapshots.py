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

    def __init__(self, transaction: Staging, *, standalone: bool = False) -> None:
        super().__init__(transaction, standalone=standalone)
        self._staged = self._base
        self._updates: list[str] = []

    def create_tag(self, snapshot_id: int, tag_name: str, max_ref_age_ms: int | None = None) -> Self:
        """Create a tag of a snapshot.

        Parameters
        ----------
        snapshot_id
            The snapshot.
        tag_name
            A name that is not used by a branch or tag.
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
        """Create a branch at a snapshot.

        Parameters
        ----------
        snapshot_id
            The snapshot.
        branch_name
            A name that is not used by a branch or tag.
        max_ref_age_ms
            Age at which expiry removes the branch.
        max_snapshot_age_ms, min_snapshots_to_keep
            Age and number of snapshots that expiry keeps.

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
        """Set the current snapshot, by its id or by a branch or tag."""
        if snapshot_id is not None and ref_name is None:
            return self._stage(set_current_snapshot(self._staged, snapshot_id))
        if snapshot_id is not None or ref_name is None:
            raise InvalidArgumentError("pass either snapshot_id or ref_name")
        reference = self._staged.refs.get(ref_name)
        if reference is None:
            known = ", ".join(sorted(self._staged.refs)) or "none"
            raise InvalidArgumentError(f"unknown branch or tag {ref_name!r} (known: {known})")
        return self._stage(set_current_snapshot(self._staged, reference.snapshot_id))

    def rollback_to_snapshot(self, snapshot_id: int) -> Self:
        """Roll the table back to an ancestor of its current snapshot."""
        return self._stage(rollback_to_snapshot(self._staged, snapshot_id))

    def rollback_to_timestamp(self, timestamp_ms: datetime | str | int) -> Self:
        """Roll the table back to its newest ancestor older than a time.

        Parameters
        ----------
        timestamp_ms
            Milliseconds from the epoch, an aware datetime, or ISO text with an offset.

        """
        moment = milliseconds_of(timestamp_ms, "timestamp_ms")
        if moment is None:
            raise InvalidArgumentError("timestamp_ms must not be None")
        return self._stage(rollback_to_timestamp(self._staged, moment))

    def updates(self) -> list[str]:
        """Return the updates of the REST protocol, as JSON."""
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
        If the id is a str, or the name is not.

    """
    if isinstance(snapshot_id, str) or not isinstance(name, str):
        msg = f"{what} takes the snapshot id first, then the name; got {snapshot_id!r} and {name!r}"
        raise ArgumentTypeError(msg)
