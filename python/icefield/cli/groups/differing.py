"""The command that compares rows of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from icefield._outputs.layout import counted
from icefield.cli.opening import table_of
from icefield.cli.options import Command, limited, wants_json
from icefield.cli.output import print_grid, print_json, print_text
from icefield.differences import diff

if TYPE_CHECKING:
    from icefield.scan import DataScan

__all__ = ["diff_tables"]


@click.command("diff", cls=Command)
@click.argument("a", metavar="TABLE[@SNAPSHOT]")
@click.argument("b", metavar="TABLE[@SNAPSHOT]")
@click.option("--keys", metavar="COLUMN[,COLUMN...]", help="Columns that identify a row; without them, whole rows.")
@click.option("--where", "row_filter", help="Compare only the rows that this filter matches.")
@click.option("--columns", metavar="COLUMN[,COLUMN...]", help="Compare only these columns.")
@limited("rows", default=20)
@click.pass_context
def diff_tables(
    context: click.Context,
    a: str,
    b: str,
    keys: str | None,
    row_filter: str | None,
    columns: str | None,
    limit: int,
) -> None:
    """Compare the rows of two tables, or of snapshots, branches and tags of one: nyc.flights@audit nyc.flights.

    SNAPSHOT is the id of a snapshot, or the name of a branch or tag. The exit code is 1 if rows differ.
    """
    sides = [_scan(context, name, row_filter, columns) for name in (a, b)]
    found = diff(*sides, keys=_split_names(keys))
    shown: list[dict[str, object]] = []
    if limit:
        for batch in found.to_arrow_batch_reader():
            shown += batch.slice(0, limit - len(shown)).to_pylist()
            if len(shown) >= limit:
                break
    summary = found.summary()
    if wants_json():
        print_json(
            {
                "added": summary.added,
                "removed": summary.removed,
                "changed": summary.changed,
                "changed-values": summary.changed_values,
                "only-in-a": summary.only_in_a,
                "only-in-b": summary.only_in_b,
                "rows": shown,
            }
        )
    else:
        if shown:
            print_grid(list(shown[0]), [list(row.values()) for row in shown])
        print_text(
            f"{counted(summary.added, 'row')} added, {counted(summary.removed, 'row')} removed, "
            f"{counted(summary.changed, 'row')} changed"
        )
        for side, names in (("the first", summary.only_in_a), ("the second", summary.only_in_b)):
            if names:
                print_text(f"not compared, since only {side} table has them: {', '.join(names)}")
    if not summary.is_same:
        context.exit(1)


def _scan(context: click.Context, name: str, row_filter: str | None, columns: str | None) -> DataScan:
    table, at, snapshot = name.rpartition("@")
    opened = table_of(context, table if at else name)
    selected = _split_names(columns) or ("*",)
    if not at:
        return opened.scan(row_filter, selected)
    if snapshot.isdecimal() and snapshot not in opened.refs():
        return opened.scan(row_filter, selected, snapshot_id=int(snapshot))
    return opened.scan(row_filter, selected, ref=snapshot)


def _split_names(given: str | None) -> tuple[str, ...] | None:
    return None if given is None else tuple(part.strip() for part in given.split(","))
