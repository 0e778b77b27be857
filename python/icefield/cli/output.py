"""What the commands print: tables for people, JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

import click
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

__all__ = ["as_json", "instant", "print_grid", "print_json", "print_records", "print_text", "wants_json"]


def wants_json() -> bool:
    """Say whether ``--json`` was given."""
    return bool(click.get_current_context().find_root().params.get("as_json"))


def print_json(value: Any) -> None:
    """Print one JSON document."""
    click.echo(as_json(value))


def as_json(value: Any) -> str:
    """Write JSON; what JSON has no form for (dates, decimals, bytes) as its text."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)


def print_grid(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None, *, whole: bool = False
) -> None:
    """Print rows under headings, what is too wide cut or, if wanted whole, folded; as objects where JSON is wanted."""
    rows = [list(row) for row in rows]
    if wants_json():
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    Console().print(_grid(columns, rows, title, whole=whole))


def print_records(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows under headings, or where they are too wide for that, each row down the page."""
    rows = [list(row) for row in rows]
    if wants_json():
        print_grid(columns, rows)
        return
    console, grid = Console(), _grid(columns, rows, None)
    if not rows or console.measure(grid, options=console.options.update(max_width=10_000)).maximum <= console.width:
        console.print(grid)
        return
    for number, row in enumerate(rows, 1):
        cells = [(column, cell) for column, cell in zip(columns, row, strict=True) if cell is not None]
        console.print(_grid(["", f"row {number}"], cells, None, whole=True))


def _grid(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None, *, whole: bool = False) -> Grid:
    # Headings and cells are text, never markup: a column may be named "[red]".
    grid = Grid(title=title, title_justify="left", header_style="bold")
    for column in columns:
        grid.add_column(Text(column), overflow="fold" if whole else "ellipsis")
    for row in rows:
        grid.add_row(*(Text("" if cell is None else _text(cell)) for cell in row))
    return grid


def print_text(text: str) -> None:
    """Print text as it is."""
    click.echo(text)


def instant(milliseconds: int) -> str:
    """Give a moment in UTC."""
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).isoformat(sep=" ", timespec="milliseconds")


def _text(cell: Any) -> str:
    if isinstance(cell, dict | list):
        return json.dumps(cell, ensure_ascii=False, default=_plain)
    return str(cell)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    return str(value)
