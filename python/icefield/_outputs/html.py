"""What notebooks show: titles, tables and facts as HTML; all texts are escaped.

No colours are set: the theme of the notebook, light or dark, chooses them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from icefield._outputs.printable import printable

__all__ = ["html_of", "html_text"]

#: Notebooks align what is in tables to the right.
_LEFT = ' style="text-align:left"'


def html_text(text: object) -> str:
    """Return text that is safe in HTML, also within the quotes of an attribute."""
    from html import escape

    return escape(printable(str(text)), quote=True)


def html_of(
    title: str,
    facts: Mapping[str, object] | None = None,
    grid: tuple[Sequence[str], Iterable[Sequence[object]]] | None = None,
) -> str:
    """Return a title, and below it facts by their names, and rows under headings.

    Parameters
    ----------
    title
        A line above all.
    facts
        Values by names; a ``None`` is left out.
    grid
        Headings, and rows; a ``None`` in a row is an empty cell.

    """
    parts = [f"<div><b>{html_text(title)}</b>"]
    shown = [(name, value) for name, value in (facts or {}).items() if value is not None]
    if shown:
        lines = (f"<tr><th{_LEFT}>{html_text(name)}</th>{_cell(value)}</tr>" for name, value in shown)
        parts.append(f"<table><tbody>{''.join(lines)}</tbody></table>")
    if grid is not None:
        headings, rows = grid
        head = "".join(f"<th{_LEFT}>{html_text(heading)}</th>" for heading in headings)
        body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
    return "".join([*parts, "</div>"])


def _cell(value: object) -> str:
    return f"<td{_LEFT}>{'' if value is None else html_text(value)}</td>"
