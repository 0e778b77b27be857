"""The snapshots of a table on a time line: which line of history each belongs to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from icefield.metadata import Snapshot, TableMetadata

__all__ = ["Lanes", "Point", "lanes_of"]


class Point(NamedTuple):
    """A snapshot and its place."""

    snapshot: Snapshot
    #: Its number in the order of time, from 0.
    at: int
    #: The line that it lies on; that of ``main`` is 0.
    lane: int
    #: The place of its parent, if that is there.
    parent: Point | None
    branches: tuple[str, ...]
    tags: tuple[str, ...]
    #: Whether it is part of the history of a branch or tag.
    is_named: bool
    #: Whether it is the current snapshot.
    is_current: bool


class Lanes(NamedTuple):
    """The newest snapshots, oldest first, on lines of history."""

    points: list[Point]
    #: Number of older snapshots that are left out.
    earlier: int

    @property
    def width(self) -> int:
        """Number of lines of history."""
        return 1 + max((point.lane for point in self.points), default=0)


def lanes_of(metadata: TableMetadata, most: int) -> Lanes:
    """Lay out the newest snapshots of a table.

    Parameters
    ----------
    metadata
        The table.
    most
        Number of snapshots that are laid out.

    """
    every = sorted(metadata.snapshots, key=lambda snapshot: (snapshot.sequence_number, snapshot.timestamp_ms))
    snapshots = every[max(len(every) - most, 0) :]
    places = {snapshot.snapshot_id: at for at, snapshot in enumerate(snapshots)}
    parents = [_place(places, snapshot.parent_snapshot_id) for snapshot in snapshots]
    # A parent that is not older than its child is none, whatever damaged metadata say.
    parents = [parent if parent is not None and parent < at else None for at, parent in enumerate(parents)]
    branches: dict[int, list[str]] = {}
    tags: dict[int, list[str]] = {}
    for name, ref in sorted(metadata.refs.items()):
        (branches if ref.snapshot_ref_type == "branch" else tags).setdefault(ref.snapshot_id, []).append(name)
    main = _place(places, metadata.current_snapshot_id)
    lanes = _assigned(parents, _heads(snapshots, parents, main, branches))
    named: set[int] = set()
    for snapshot_id in {*branches, *tags}:
        for at in _line(parents, places.get(snapshot_id)):
            if at in named:
                break
            named.add(at)
    points: list[Point] = []
    for at, snapshot in enumerate(snapshots):
        parent = parents[at]
        points.append(
            Point(
                snapshot,
                at,
                lanes[at],
                None if parent is None else points[parent],
                tuple(sorted(branches.get(snapshot.snapshot_id, []), key=lambda name: (name != "main", name))),
                tuple(tags.get(snapshot.snapshot_id, [])),
                at in named,
                at == main,
            )
        )
    return Lanes(points, len(every) - len(snapshots))


def _place(places: dict[int, int], snapshot_id: int | None) -> int | None:
    return None if snapshot_id is None else places.get(snapshot_id)


def _heads(
    snapshots: list[Snapshot], parents: list[int | None], main: int | None, branches: dict[int, list[str]]
) -> list[int]:
    """Return where lines of history end: that of ``main`` first, then other branches, then all the rest."""
    with_children = set(parents)
    ends = [at for at in range(len(snapshots)) if at not in with_children]
    of_branches = [at for at, snapshot in enumerate(snapshots) if snapshot.snapshot_id in branches and at != main]
    rest = [at for at in ends if at != main and at not in of_branches]
    return [*([] if main is None else [main]), *of_branches[::-1], *rest[::-1]]


def _line(parents: list[int | None], at: int | None) -> Iterator[int]:
    while at is not None:
        yield at
        at = parents[at]


def _assigned(parents: list[int | None], heads: list[int]) -> dict[int, int]:
    """Return the line of each place; lines beside ``main`` are used again where they are free."""
    lanes: dict[int, int] = {}
    #: Where each line is in use: first and last place of each history on it.
    used: list[list[tuple[int, int]]] = []
    for number, head in enumerate(heads):
        line: list[int] = []
        start = head
        for at in _line(parents, head):
            start = at
            if at in lanes:
                break
            line.append(at)
        if not line:
            continue
        free = (
            lane
            for lane, spans in enumerate(used)
            if (lane > 0 or number == 0) and all(last < start or first > head for first, last in spans)
        )
        lane = next(free, max(len(used), 0 if number == 0 else 1))
        while len(used) <= lane:
            used.append([])
        used[lane].append((start, head))
        lanes.update(dict.fromkeys(line, lane))
    return lanes
