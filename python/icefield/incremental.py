"""Incremental scans: the rows that snapshots added to a table, or added and removed, since another snapshot."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypedDict

from icefield._core import Scan
from icefield.errors import InvalidArgumentError
from icefield.scan import TableScan

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["IncrementalAppendScan", "IncrementalChangelogScan", "IncrementalScan"]


class Start(NamedTuple):
    """Where an incremental scan starts: with a snapshot, by id or by the name of a tag, or after it."""

    snapshot: int | str
    inclusive: bool = False

    @classmethod
    def of(cls, exclusive: int | str | None, inclusive: int | str | None) -> Start | None:
        """Return the start, if one of the two snapshots is set.

        Raises
        ------
        InvalidArgumentError
            If both are.

        """
        if exclusive is not None and inclusive is not None:
            raise InvalidArgumentError("pass only one of from_snapshot_id_exclusive and from_snapshot_id_inclusive")
        if inclusive is not None:
            return cls(inclusive, inclusive=True)
        return None if exclusive is None else cls(exclusive)


class Compared(TypedDict, total=False):
    """How the rows of a changelog are compared, as the core takes it."""

    remove_carryovers: bool
    net_changes: bool
    compute_updates: bool
    identifier_columns: list[str] | None


@dataclass(frozen=True, repr=False)
class IncrementalScan(TableScan):
    """A scan of the changes of the snapshots after one, up to another.

    Columns have the names of the table's current schema. Invalid snapshots raise when the scan is created.
    """

    start: Start | None = None
    to_snapshot: int | str | None = None
    branch: str | None = None

    _changelog: ClassVar[bool]

    @cached_property
    def _scan(self) -> Scan:
        start = self.start
        return Scan.incremental(
            self._state,
            changelog=self._changelog,
            from_snapshot=None if start is None else start.snapshot,
            from_inclusive=start is not None and start.inclusive,
            to_snapshot=self.to_snapshot,
            branch=self.branch,
            row_filter=self.row_filter,
            selected_fields=list(self.selected_fields),
            case_sensitive=self.case_sensitive,
            limit=self.limit,
            **self._compared,
        )

    @property
    def _compared(self) -> Compared:
        return {}

    @property
    def _moment(self) -> str:
        what = "changes" if self._changelog else "appends"
        return f"{what} of {len(self.snapshot_ids)} snapshots up to {self._scan.snapshot_id}"

    @property
    def snapshot_ids(self) -> list[int]:
        """The snapshots whose changes are read, oldest first; others of the range are skipped."""
        return self._scan.changed_snapshot_ids or []

    @property
    def from_snapshot_id(self) -> int | None:
        """The snapshot that the scan starts with or after; None from the first one on."""
        return None if self.start is None else self._id(self.start.snapshot)

    @property
    def from_snapshot_inclusive(self) -> bool:
        """Whether the changes of the snapshot that the scan starts with are read."""
        return self.start is not None and self.start.inclusive

    @property
    def to_snapshot_id(self) -> int | None:
        """The snapshot that the scan ends with; None up to the current one."""
        return None if self.to_snapshot is None else self._id(self.to_snapshot)

    def _id(self, snapshot: int | str) -> int:
        if not isinstance(snapshot, str):
            return snapshot
        found = self.metadata.snapshot_by_name(snapshot)
        if found is None:
            raise InvalidArgumentError(f"the table has no tag {snapshot!r}")
        return found.snapshot_id

    def from_snapshot_id_exclusive(self, from_snapshot_id: int | str) -> Self:
        """Start after a snapshot, which may have expired since. A str is the name of a tag."""
        return self._beginning(Start(from_snapshot_id))

    def from_snapshot_id_inclusive(self, from_snapshot_id: int | str) -> Self:
        """Start with a snapshot. A str is the name of a tag."""
        return self._beginning(Start(from_snapshot_id, inclusive=True))

    def to_snapshot_id_inclusive(self, to_snapshot_id: int | str) -> Self:
        """End with a snapshot. A str is the name of a tag."""
        return replace(self, to_snapshot=to_snapshot_id)

    def _beginning(self, start: Start) -> Self:
        try:
            return replace(self, start=start)
        except InvalidArgumentError as error:
            if self.to_snapshot is not None or "ancestor" not in str(error):
                raise
        # A fitting end may be set next; otherwise reading raises.
        begun = copy(self)
        object.__setattr__(begun, "start", start)
        return begun

    def use_branch(self, name: str) -> Self:
        """Read the history of a branch."""
        return replace(self, branch=name)


class IncrementalAppendScan(IncrementalScan):
    """The rows of the files that snapshots with the operation ``append`` added; other snapshots are skipped."""

    _changelog: ClassVar[bool] = False


@dataclass(frozen=True, repr=False)
class IncrementalChangelogScan(IncrementalScan):
    """The rows of the files that snapshots added and removed, and the type of each change.

    Besides the columns of the table, rows have ``_change_type`` (``INSERT`` or ``DELETE``), ``_change_ordinal`` (the
    position of their snapshot among those read, from 0) and ``_commit_snapshot_id``; they are selected like others.
    Snapshots with the operation ``replace`` change no row and are skipped. Rows that delete files delete are among the
    rows, and so are rows that a removed delete file had deleted. All rows of a rewritten file appear twice, deleted and
    inserted, unless rows are compared.

    Rows are compared where one of these options is set, as Java's procedure ``create_changelog_view`` does. Compared
    rows come from several files, so there are no tasks for workers (`tasks`), and `to_spark` reads them in one task.
    """

    #: Leave out rows that a snapshot deleted and inserted again as they were.
    remove_carryovers: bool = False
    #: Leave out what one snapshot did and another undid as well: what is left is the difference of the states before
    #: the first and after the last snapshot.
    net_changes: bool = False
    #: Whether a deleted and an inserted row of one identifier are an update, ``UPDATE_BEFORE`` and ``UPDATE_AFTER``;
    #: ``None``: where identifier columns are given.
    compute_updates: bool | None = None
    #: Columns that identify rows; ``None``: ``_row_id`` if all files have row ids (version 3), otherwise the identifier
    #: fields of the schema.
    identifier_columns: tuple[str, ...] | None = None

    _changelog: ClassVar[bool] = True

    @property
    def compares_rows(self) -> bool:
        """Whether rows are compared, so that one reader has to see all of them."""
        options = self._compared
        return options["remove_carryovers"] or options["net_changes"] or options["compute_updates"]

    @property
    def _compared(self) -> Compared:
        names = self.identifier_columns
        return {
            "remove_carryovers": self.remove_carryovers,
            "net_changes": self.net_changes,
            "compute_updates": names is not None if self.compute_updates is None else self.compute_updates,
            "identifier_columns": None if names is None else list(names),
        }
