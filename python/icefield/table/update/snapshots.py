"""Changes to the branches, the tags and the current snapshot of a table."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from icefield._core import (
    check_cherry_pick,
    create_ref,
    remove_ref,
    rename_branch,
    replace_branch,
    replace_ref,
    rollback_to_snapshot,
    rollback_to_timestamp,
    set_current_snapshot,
    set_retention,
)
from icefield.errors import ArgumentTypeError, InvalidArgumentError
from icefield.scan.moments import milliseconds_of
from icefield.table.update.change import MetadataChange, Staging

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield._core import Transaction as CoreTransaction

__all__ = ["ManageSnapshots"]


class ManageSnapshots(MetadataChange):
    """A change of branches, tags and the current snapshot ("Snapshot References")."""

    def __init__(self, transaction: Staging, *, standalone: bool = False) -> None:
        super().__init__(transaction, standalone=standalone)
        self._staged = self._base
        self._updates: list[str] = []
        #: Snapshots to cherry-pick, after all other updates.
        self._picked: list[int] = []
        #: The new current snapshot, if nothing else changes; whichever snapshot is current when this is committed.
        self._move: int | None = None

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
            return self._move_to(set_current_snapshot(self._staged, snapshot_id))
        if snapshot_id is not None or ref_name is None:
            raise InvalidArgumentError("pass either snapshot_id or ref_name")
        reference = self._staged.refs.get(ref_name)
        if reference is None:
            known = ", ".join(sorted(self._staged.refs)) or "none"
            raise InvalidArgumentError(f"unknown branch or tag {ref_name!r} (known: {known})")
        return self._move_to(set_current_snapshot(self._staged, reference.snapshot_id))

    def rollback_to_snapshot(self, snapshot_id: int) -> Self:
        """Roll the table back to an ancestor of its current snapshot."""
        return self._move_to(rollback_to_snapshot(self._staged, snapshot_id))

    def rollback_to_timestamp(self, timestamp_ms: datetime | str | int) -> Self:
        """Roll the table back to its newest ancestor older than a time.

        Parameters
        ----------
        timestamp_ms
            Milliseconds from the epoch, an aware datetime, or ISO text with an offset.

        """
        moment = milliseconds_of(timestamp_ms, "timestamp_ms", round_up=True)
        if moment is None:
            raise InvalidArgumentError("timestamp_ms must not be None")
        return self._move_to(rollback_to_timestamp(self._staged, moment))

    def replace_branch(self, branch_name: str, target: int | str) -> Self:
        """Move a branch to another snapshot, which need not be in its history; its retention stays.

        Parameters
        ----------
        branch_name
            The branch. If ``target`` is a name, a branch that does not exist is created.
        target
            The id of a snapshot, or the name of a branch or tag.

        """
        if isinstance(target, str):
            return self._stage(replace_branch(self._staged, branch_name, target, fast_forward=False))
        return self._stage(replace_ref(self._staged, branch_name, target, is_branch=True))

    def replace_tag(self, tag_name: str, snapshot_id: int) -> Self:
        """Move a tag to another snapshot; its retention stays."""
        return self._stage(replace_ref(self._staged, tag_name, snapshot_id, is_branch=False))

    def fast_forward_branch(self, branch_name: str, target: str) -> Self:
        """Move a branch to the snapshot of another branch or tag, which must be a descendant of its own.

        A branch that does not exist is created.
        """
        return self._stage(replace_branch(self._staged, branch_name, target, fast_forward=True))

    def rename_branch(self, branch_name: str, new_name: str) -> Self:
        """Rename a branch other than ``main``; its snapshot and its retention stay."""
        return self._stage(*rename_branch(self._staged, branch_name, new_name))

    def set_min_snapshots_to_keep(self, branch_name: str, min_snapshots_to_keep: int) -> Self:
        """Set the number of snapshots of a branch that expiry keeps, whatever their age."""
        return self._stage(set_retention(self._staged, branch_name, min_snapshots_to_keep=min_snapshots_to_keep))

    def set_max_snapshot_age_ms(self, branch_name: str, max_snapshot_age_ms: int) -> Self:
        """Set the age up to which expiry keeps snapshots of a branch, in milliseconds."""
        return self._stage(set_retention(self._staged, branch_name, max_snapshot_age_ms=max_snapshot_age_ms))

    def set_max_ref_age_ms(self, name: str, max_ref_age_ms: int) -> Self:
        """Set the age at which expiry removes a branch other than ``main``, or a tag, in milliseconds."""
        return self._stage(set_retention(self._staged, name, max_ref_age_ms=max_ref_age_ms))

    def cherry_pick(self, snapshot_id: int) -> Self:
        """Apply the changes of a snapshot on top of ``main``; this publishes a staged snapshot.

        If the parent of the snapshot is the current snapshot of ``main``, then ``main`` moves to it. Otherwise the
        snapshot must be an append, or a replacement of partitions that have not changed since, and a new snapshot
        adds and removes the same files. Only other cherry-picks can follow in the same change.

        Raises
        ------
        ValidationException
            If the snapshot does not exist, was picked before, is in the history of ``main``, or has a ``wap.id`` that
            was published before; if partitions that it replaced have changed.

        """
        if not self._picked:
            check_cherry_pick(self._staged, snapshot_id)
        self._picked.append(snapshot_id)
        return self

    def updates(self) -> list[str]:
        """Return the updates of the REST protocol as JSON, without those of cherry-picks."""
        return list(self._updates)

    def _prepared(self) -> Callable[[], None]:
        updates, picked, move, make = list(self._updates), list(self._picked), self._move, not self._standalone

        def add_to(changes: CoreTransaction) -> None:
            if move is not None:
                changes.set_current_snapshot(move, make)
            for snapshot_id in picked:
                changes.cherry_pick(snapshot_id, make)

        def add() -> None:
            if updates and move is None:
                self._transaction.stage(updates, self._base)
            self._transaction.produce(add_to, make=make)

        return add

    def _holds_changes(self) -> bool:
        return bool(self._updates or self._picked)

    def _move_to(self, update: str) -> Self:
        """Make a snapshot the current one; do nothing if it already is."""
        alone, before = self._move is not None or not self._updates, self._staged.current_snapshot_id
        if self._staged.apply([update]).current_snapshot_id == before:
            return self
        self._stage(update)
        self._move = self._staged.current_snapshot_id if alone else None
        return self

    def _stage(self, *updates: str) -> Self:
        if self._picked:
            raise InvalidArgumentError("cherry_pick must be the last action: commit, and start a new change")
        self._move = None
        self._staged = self._staged.apply(updates)
        self._updates.extend(updates)
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
