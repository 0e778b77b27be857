"""What the commands print: tables for people, JSON for machines."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from icefield._outputs.printable import printable
from icefield.cli.options import wants_json

__all__ = ["as_json", "print_done", "print_grid", "print_json", "print_records", "print_text"]

# Width of output without a limit, and of the narrowest column of text.
_UNBOUND = 10_000
_NARROW = 12
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def print_json(value: object) -> None:
    """Print one JSON document."""
    click.echo(as_json(value))


def as_json(value: object) -> str:
    """Return JSON, with strings for values that JSON cannot represent (dates, decimals, bytes)."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=_json_default)


def print_grid(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None, *, whole: bool = False
) -> None:
    """Print rows under headings, as objects where JSON is wanted.

    Texts that are too wide are cut or, if wanted whole, folded; numbers, and so ids, never are. Where the screen is too
    narrow for that, each row goes down the page.
    """
    rows = [list(row) for row in rows]
    if wants_json():
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    console = _console()
    for padding in (1, 0):
        grid = _grid(columns, rows, title, whole=whole, padding=padding)
        if _fits(grid, console):
            console.print(grid)
            return
    if title:
        console.print(Text(printable(title)))
    _print_down(console, columns, rows)


def print_records(columns: Sequence[str], rows: Iterable[Sequence[object]], note: str | None = None) -> None:
    """Print rows under headings, or where they are too wide, each row down the page, then a note for people."""
    rows = [list(row) for row in rows]
    if wants_json():
        print_grid(columns, rows)
        return
    console, grid = _console(), _grid(columns, rows, None)
    if console.measure(grid, options=console.options.update(max_width=_UNBOUND)).maximum <= console.width:
        console.print(grid)
    else:
        _print_down(console, columns, rows)
    if note:
        console.print(Text(printable(note)))


def _console() -> Console:
    """Return the console; output to a file or a pipe has unlimited width unless ``COLUMNS`` is set."""
    console = Console()
    return console if console.is_terminal or os.environ.get("COLUMNS") else Console(width=_UNBOUND)


def _fits(grid: Grid, console: Console) -> bool:
    """Whether every column of a grid has the room that it needs; otherwise the last ones would not be seen."""
    borders = (grid.padding[1] + grid.padding[3] + 1) * len(grid.columns) + 1
    return sum(column.min_width or 0 for column in grid.columns) + borders <= console.width


def _print_down(console: Console, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    for number, row in enumerate(rows, 1):
        cells = [(column, cell) for column, cell in zip(columns, row, strict=True) if cell is not None]
        grid = _grid(["", f"row {number}"], cells, None, whole=True)
        if _fits(grid, console):
            console.print(grid)
            continue
        console.print(Text(f"row {number}", style="bold"))
        for column, cell in cells:
            console.print(Text(f"{printable(column)}: {_cell_text(cell)}"))
    empty = [printable(column) for at, column in enumerate(columns) if all(row[at] is None for row in rows)]
    if empty:
        console.print(Text(f"{'null in every row' if rows else 'no rows; the columns are'}: {', '.join(empty)}"))


def _grid(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    title: str | None,
    *,
    whole: bool = False,
    padding: int = 1,
) -> Grid:
    # Headings and cells are text, never markup: a column may be named "[red]".
    grid = Grid(
        title=None if title is None else Text(printable(title)),
        title_justify="left",
        header_style="bold",
        padding=(0, padding),
    )
    for at, column in enumerate(columns):
        cells = [row[at] for row in rows if row[at] is not None]
        width = max((cell_len(line) for cell in (column, *cells) for line in _cell_text(cell).split("\n")), default=0)
        number = bool(cells) and all(_NUMBER.fullmatch(_cell_text(cell)) for cell in cells)
        grid.add_column(
            Text(printable(column)),
            overflow="fold" if whole else "ellipsis",
            no_wrap=number,
            min_width=width if number else min(width, _NARROW),
        )
    for row in rows:
        grid.add_row(*(Text("" if cell is None else _cell_text(cell)) for cell in row))
    return grid


def print_text(text: str) -> None:
    """Print lines."""
    click.echo(printable(text, keep="\n"))


def print_done(sentence: str, document: Mapping[str, object]) -> None:
    """Print what a command has changed: a sentence, or where JSON is wanted a document."""
    if wants_json():
        print_json(document)
    else:
        print_text(sentence)


def _cell_text(cell: object) -> str:
    if isinstance(cell, dict | list):
        return printable(json.dumps(cell, ensure_ascii=False, default=_json_default))
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    return printable(str(cell), keep="\n")


def _json_default(value: object) -> str:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return str(value)
