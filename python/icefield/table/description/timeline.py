"""The history of a table for people: a graph in text for terminals, a picture (SVG) for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

from icefield._outputs.html import html_text
from icefield._outputs.layout import counted, time_of
from icefield._outputs.printable import printable
from icefield.table.description.lanes import Lanes, Point, lanes_of

if TYPE_CHECKING:
    from icefield.metadata import Snapshot, TableMetadata

__all__ = ["COLOURS", "svg_of", "text_of"]

_MOST_IN_TEXT = 50
_MOST_IN_PICTURE = 60
_MOST_NAMES = 3
_MOST_LETTERS = 28

#: Of lines of history, that of ``main`` first: white text can be read on each, and each is seen on white and on black.
COLOURS = ("#2563eb", "#15803d", "#b45309", "#9333ea", "#be185d", "#0f766e", "#dc2626", "#64748b")


def text_of(title: str, metadata: TableMetadata) -> str:
    """Draw the newest snapshots, oldest first: lines of history, times, what each did, branches and tags."""
    lanes = lanes_of(metadata, _MOST_IN_TEXT)
    lines = [_summary(title, metadata)]
    if lanes.earlier:
        lines.append(f"… {counted(lanes.earlier, 'earlier snapshot')}")
    rows = [
        (
            str(point.snapshot.snapshot_id),
            time_of(point.snapshot.timestamp_ms),
            str(point.snapshot.operation or "unknown"),
            _added(point.snapshot),
        )
        for point in lanes.points
    ]
    widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
    wide = 2 * lanes.width
    for point, row in zip(lanes.points, rows, strict=True):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        lines.append(f"{_marks(lanes, point).ljust(wide)} {cells}  {_ref_labels(point)}".rstrip())
        lines += _forks(lanes, point)
    lines += [f"{time_of(at)}: snapshot {snapshot_id} became current again" for at, snapshot_id in _moves(metadata)]
    return printable("\n".join(lines), keep="\n")


def _summary(title: str, metadata: TableMetadata) -> str:
    kinds = [str(ref.snapshot_ref_type) for ref in metadata.refs.values()]
    refs = [(kinds.count("branch"), "branch", "branches"), (kinds.count("tag"), "tag", "tags")]
    parts = [counted(len(metadata.snapshots), "snapshot")]
    parts += [f"{number:,} {one if number == 1 else many}" for number, one, many in refs if number]
    return f"History of {title}: {', '.join(parts)}"


def _added(snapshot: Snapshot) -> str:
    summary: Mapping[str, str] = snapshot.summary or {}
    changes = (("+", "added-records"), ("-", "deleted-records"), ("-", "added-position-deletes"))
    found = [(sign, str(summary.get(key) or "")) for sign, key in changes]
    return " ".join(f"{sign}{int(text):,}" for sign, text in found if text.isascii() and text.isdigit() and int(text))


def _ref_labels(point: Point) -> str:
    names = [*(f"[{name}]" for name in point.branches), *(f"(tag {name})" for name in point.tags)]
    return " ".join(names)


def _moves(metadata: TableMetadata) -> list[tuple[int, int]]:
    """Return when ``main`` was set to a snapshot that is older than that moment: a rollback, or a branch published."""
    made = {snapshot.snapshot_id: snapshot.timestamp_ms for snapshot in metadata.snapshots}
    seen: set[int] = set()
    moves = []
    for at, snapshot_id in metadata.snapshot_log:
        if snapshot_id in seen and at != made.get(snapshot_id, at):
            moves.append((at, snapshot_id))
        seen.add(snapshot_id)
    return moves


def _passes(lanes: Lanes, lane: int, after: int, before: int) -> bool:
    """Return whether a line is drawn on a lane from a place to a later one."""
    return any(
        point.parent is not None and point.lane == lane and point.parent.at <= after and point.at >= before
        for point in lanes.points
    )


def _marks(lanes: Lanes, point: Point) -> str:
    marks = []
    for lane in range(lanes.width):
        if lane == point.lane:
            marks.append("◉" if point.is_current else "●" if point.is_named else "○")
        else:
            marks.append("│" if _passes(lanes, lane, point.at - 1, point.at + 1) else " ")
    return " ".join(marks)


def _forks(lanes: Lanes, point: Point) -> list[str]:
    """Return lines on which other lines of history begin at a point."""
    children = [child for child in lanes.points if child.parent is point]
    others = sorted({child.lane for child in children if child.lane != point.lane})
    goes_on = any(child.lane == point.lane for child in children)
    lines = []
    for number, lane in enumerate(others):
        low, high = sorted((point.lane, lane))
        more = goes_on or number + 1 < len(others)
        cells = []
        for at in range(lanes.width):
            within = low <= at < high
            begun = at in others[:number] or (at not in others and _passes(lanes, at, point.at - 1, point.at + 1))
            if at == point.lane:
                sign = ("├" if more else "╰") if lane > at else ("┤" if more else "╯")
            elif at == lane:
                sign = "╮" if lane > point.lane else "╭"
            elif low < at < high:
                sign = "┼" if begun else "─"
            else:
                sign = "│" if begun else " "
            cells.append(sign + ("─" if within else " "))
        lines.append("".join(cells).rstrip())
    return lines


# The picture

_STEP, _LANE, _LEFT, _TOP = 46, 46, 26, 34
_LETTER, _PILL = 7, 18


def svg_of(title: str, metadata: TableMetadata) -> str:
    """Draw the newest snapshots on a time line as SVG: a line for each branch, with tags above them.

    Text has the colour of the text around the picture, so that it is seen on light and on dark pages.
    """
    lanes = lanes_of(metadata, _MOST_IN_PICTURE)
    columns, width = _positions(lanes.points)
    bottom = _TOP + lanes.width * _LANE
    drawn = [_edge(point, columns) for point in lanes.points if point.parent is not None]
    drawn += [_tags(point, columns[point.at]) for point in lanes.points if point.tags]
    drawn += [_point(point, columns[point.at]) for point in lanes.points]
    drawn += _axis(lanes.points, columns, bottom)
    legend, needed = _legend(lanes.points, bottom + 38)
    label = html_text(_summary(title, metadata))
    earlier = f", {counted(lanes.earlier, 'earlier one')} not shown" if lanes.earlier else ""
    width, height = max(width, needed, 320), bottom + 50
    return (
        f'<div style="overflow-x:auto"><div><b>{label}{earlier}</b></div>'
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="currentColor">'
        f"{''.join(drawn)}{legend}</svg></div>"
    )


def _positions(points: Iterable[Point]) -> tuple[list[int], int]:
    """Return where each point stands: its names have room before the next one."""
    columns, x = [], _LEFT
    for point in points:
        columns.append(x)
        branches = sum(_width(name) + 4 for name in _some(point.branches))
        tags = sum(_width(name) + 4 for name in _some(point.tags))
        x += max(_STEP, branches + 30 if branches else 0, tags + 4)
    return columns, x


def _some(names: tuple[str, ...]) -> list[str]:
    shown = [_short(name) for name in names[:_MOST_NAMES]]
    return shown if len(names) <= _MOST_NAMES else [*shown, f"+{len(names) - _MOST_NAMES}"]


def _short(name: str) -> str:
    name = printable(name)
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"


def _width(name: str) -> int:
    # Letters of East Asia are twice as wide.
    return _LETTER * sum(2 if east_asian_width(letter) in "FW" else 1 for letter in name) + 12


def _y(point: Point) -> int:
    return _TOP + point.lane * _LANE + _LANE // 2


def _colour(lane: int) -> str:
    return COLOURS[lane % len(COLOURS)]


def _edge(point: Point, columns: list[int]) -> str:
    parent = point.parent
    if parent is None:
        return ""
    # From the edge of one mark to that of the other: hollow marks stay so.
    x, y, from_x, from_y = columns[point.at] - 7, _y(point), columns[parent.at] + 7, _y(parent)
    bend = "" if y == from_y else f" C{from_x + 18},{from_y} {from_x + 4},{y} {from_x + 24},{y}"
    return f'<path d="M{from_x},{from_y}{bend} L{x},{y}" fill="none" stroke="{_colour(point.lane)}" stroke-width="2"/>'


def _tags(point: Point, x: int) -> str:
    line = (
        f'<path d="M{x},{_PILL + 6} L{x},{_y(point)}" fill="none" stroke="currentColor" stroke-opacity="0.5" '
        f'stroke-dasharray="2 3"/>'
    )
    drawn, at = [], x - 8
    for name in _some(point.tags):
        drawn.append(
            f'<rect x="{at}" y="6" width="{_width(name)}" height="{_PILL}" rx="3" fill="none" stroke="currentColor"/>'
            f'<text x="{at + 6}" y="19">{html_text(name)}</text>'
        )
        at += _width(name) + 4
    return f"<g><title>{html_text('tags ' + ', '.join(point.tags))}</title>{line}{''.join(drawn)}</g>"


def _point(point: Point, x: int) -> str:
    y, colour = _y(point), _colour(point.lane)
    fill = colour if point.is_named else "none"
    ring = (
        f'<circle cx="{x}" cy="{y}" r="11" fill="none" stroke="{colour}" stroke-width="2"/>' if point.is_current else ""
    )
    drawn, at = [], x + 16
    for name in _some(point.branches):
        drawn.append(
            f'<rect x="{at}" y="{y - 9}" width="{_width(name)}" height="{_PILL}" rx="9" fill="{colour}"/>'
            f'<text x="{at + 6}" y="{y + 4}" fill="#ffffff">{html_text(name)}</text>'
        )
        at += _width(name) + 4
    shape = _shape(point.snapshot.operation, x, y)
    mark = f'<{shape} fill="{fill}" stroke="{colour}" stroke-width="2"/>'
    return f"<g><title>{html_text(_hint(point))}</title>{ring}{mark}{''.join(drawn)}</g>"


def _shape(operation: str | None, x: int, y: int) -> str:
    """Return a shape for what a snapshot did, so that colour is not all that says it."""
    if operation == "overwrite":
        return f'path d="M{x},{y - 8} L{x + 8},{y} L{x},{y + 8} L{x - 8},{y} Z"'
    if operation == "replace":
        return f'rect x="{x - 6}" y="{y - 6}" width="12" height="12"'
    if operation == "delete":
        return f'path d="M{x - 7},{y - 5} L{x + 7},{y - 5} L{x},{y + 8} Z"'
    return f'circle cx="{x}" cy="{y}" r="6"'


def _hint(point: Point) -> str:
    snapshot = point.snapshot
    parts = [
        f"snapshot {snapshot.snapshot_id}",
        str(snapshot.operation or "unknown operation"),
        time_of(snapshot.timestamp_ms),
        f"rows {_added(snapshot)}" if _added(snapshot) else "",
        f"total rows {total}" if (total := snapshot.summary and snapshot.summary["total-records"]) else "",
        f"branches {', '.join(point.branches)}" if point.branches else "",
        f"tags {', '.join(point.tags)}" if point.tags else "",
    ]
    return "; ".join(part for part in parts if part)


def _axis(points: Iterable[Point], columns: list[int], y: int) -> list[str]:
    """Write the times below the points, as many as have room."""
    drawn, free = [], 0
    for point in points:
        x = columns[point.at]
        if x < free:
            continue
        text = time_of(point.snapshot.timestamp_ms).partition(".")[0]
        drawn.append(
            f'<path d="M{x},{y - 4} L{x},{y + 2}" stroke="currentColor" stroke-opacity="0.6"/>'
            f'<text x="{x - 8}" y="{y + 16}" font-size="11" fill-opacity="0.8">{html_text(text)}</text>'
        )
        free = x + _LETTER * len(text) + 4
    return drawn


def _legend(points: Iterable[Point], y: int) -> tuple[str, int]:
    """Return what the shapes mean, of those that are drawn, and how wide that is."""
    points = list(points)
    kinds = sorted({point.snapshot.operation or "unknown" for point in points})
    shown = [(kind, "currentColor") for kind in kinds]
    shown += [("in no branch or tag", "none")] if any(not point.is_named for point in points) else []
    drawn, x = [], _LEFT
    for name, fill in shown:
        mark = f'<{_shape(name, x, y)} fill="{fill}" stroke="currentColor" stroke-width="1.5"/>'
        drawn.append(f'{mark}<text x="{x + 14}" y="{y + 4}" font-size="11">{html_text(name)}</text>')
        x += _LETTER * len(name) + 34
    end = f'<text x="{x}" y="{y + 4}" font-size="11" fill-opacity="0.8">times in UTC</text>' if points else ""
    return "".join(drawn) + end, x + 90
