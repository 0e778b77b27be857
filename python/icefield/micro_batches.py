"""A table as a stream: the files that snapshots add, some at a time.

An engine remembers an offset: up to where it has read. It asks `MicroBatches.latest` how far the next batch goes and
reads the `MicroBatches.scan` between both offsets. Offsets are all it must keep: after a restart a batch is planned
again from them, and holds the same files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from icefield._core import MicroBatches as _MicroBatches
from icefield._core import Scan, TableState
from icefield.errors import InvalidArgumentError
from icefield.scan import TableScan
from icefield.scan.options import fields_of, split_of

__all__ = ["MicroBatchScan", "MicroBatches", "StreamOffset"]

_VERSION = 1


class StreamOffset(NamedTuple):
    """Where a stream stands: a snapshot, and how many of the files that it added have been read.

    An offset of a table without a snapshot has -1 for both.
    """

    snapshot_id: int
    position: int

    def to_dict(self) -> dict[str, int]:
        """Return the offset as Java's connector writes it into checkpoints."""
        return {"version": _VERSION, **self._asdict(), "scan_all_files": False}

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> StreamOffset:
        """Read an offset of a checkpoint.

        Raises
        ------
        InvalidArgumentError
            If it is none, or one of another version.

        """
        if document.get("version") != _VERSION:
            raise InvalidArgumentError(f"an offset of a stream has version {_VERSION}, not {document.get('version')}")
        snapshot_id, position = document.get("snapshot_id"), document.get("position")
        # ``True`` is an ``int`` too.
        numbers = type(snapshot_id) is int and type(position) is int
        if document.get("scan_all_files", False) or not numbers:
            raise InvalidArgumentError(f"invalid offset of a stream: {dict(document)}")
        return cls(snapshot_id, position)  # type: ignore[arg-type]


class _Options(NamedTuple):
    """How a table is streamed."""

    from_timestamp: int | None = None
    skip_delete_snapshots: bool = False
    skip_overwrite_snapshots: bool = False
    branch: str | None = None

    def core(self, state: TableState) -> _MicroBatches:
        return _MicroBatches(
            state,
            from_timestamp=self.from_timestamp,
            skip_deletes=self.skip_delete_snapshots,
            skip_overwrites=self.skip_overwrite_snapshots,
            branch=self.branch,
        )


class MicroBatches:
    """A table as a stream, in one state of it; made by `icefield.table.Table.micro_batches`.

    What is committed later is seen by the `MicroBatches` of a refreshed table.
    """

    def __init__(
        self,
        state: TableState,
        *,
        from_timestamp: int | None,
        skip_delete_snapshots: bool,
        skip_overwrite_snapshots: bool,
        branch: str | None,
    ) -> None:
        self._state = state
        self._options = _Options(from_timestamp, skip_delete_snapshots, skip_overwrite_snapshots, branch)
        self._core = self._options.core(state)

    def initial(self) -> StreamOffset:
        """Return where a stream begins that has read nothing."""
        return StreamOffset(*self._core.initial())

    def latest(
        self,
        start: StreamOffset,
        *,
        max_files: int | None = None,
        max_rows: int | None = None,
        last_snapshot_id: int | None = None,
    ) -> StreamOffset:
        """Return up to where the batch goes that begins at an offset; ``start`` itself where there is nothing new.

        Parameters
        ----------
        start
            Where the batch begins.
        max_files, max_rows
            Limits of the batch. The file that reaches ``max_rows`` is still read, so that every batch has one.
        last_snapshot_id
            The snapshot that the stream must not go beyond, if it is to end; -1 is that of a table without one.

        Raises
        ------
        InvalidArgumentError
            If the snapshot of ``start`` was expired, or the table was rolled back behind it, or a snapshot that follows
            has an operation that a stream cannot show (``delete`` and ``overwrite``, unless they are skipped).

        """
        return StreamOffset(
            *self._core.latest(start, max_files=max_files, max_rows=max_rows, last_snapshot_id=last_snapshot_id)
        )

    def scan(
        self,
        start: StreamOffset,
        end: StreamOffset,
        *,
        selected_fields: Iterable[str] | str = ("*",),
        case_sensitive: bool = True,
        options: Mapping[str, str] | None = None,
    ) -> MicroBatchScan:
        """Return the scan of the files between two offsets that `latest` gave.

        Parameters
        ----------
        start, end
            The offsets.
        selected_fields, case_sensitive
            As for `icefield.table.Table.scan`; names are those of the current schema.
        options
            How `TableScan.plan_tasks` splits the scan: ``split-size``, ``lookback``, ``file-open-cost``.

        Raises
        ------
        InvalidArgumentError
            As for `latest`.

        """
        return MicroBatchScan(
            self._state,
            selected_fields=fields_of(selected_fields),
            case_sensitive=case_sensitive,
            split=split_of(options),
            start=start,
            end=end,
            options=self._options,
        )


_NOTHING = StreamOffset(-1, -1)


@dataclass(frozen=True, repr=False)
class MicroBatchScan(TableScan):
    """The rows of the files between two offsets of a stream."""

    start: StreamOffset = _NOTHING
    end: StreamOffset = _NOTHING
    options: _Options = field(default_factory=_Options)

    @cached_property
    def _scan(self) -> Scan:
        if self.row_filter is not None or self.limit is not None:
            raise InvalidArgumentError("a micro-batch is read whole: filter its rows")
        stream = self.options.core(self._state)
        fields = list(self.selected_fields)
        return stream.scan(self.start, self.end, selected_fields=fields, case_sensitive=self.case_sensitive)

    @property
    def _moment(self) -> str:
        start, end = (f"{offset.snapshot_id}:{offset.position}" for offset in (self.start, self.end))
        return f"micro-batch from {start} to {end}"
