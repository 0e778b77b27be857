"""The commands about branches and tags."""

from __future__ import annotations

import click

from icefield._outputs.layout import age_of, time_of
from icefield.cli.moments import AGE, at_snapshot, snapshot_at
from icefield.cli.names import complete_refs, table_argument
from icefield.cli.opening import table_of
from icefield.cli.options import CommandGroup, asks, confirm
from icefield.cli.output import print_done, print_grid
from icefield.scan.moments import Moment
from icefield.table import Snapshot, SnapshotRef, Table

__all__ = ["branch", "tag"]


@click.group(cls=CommandGroup)
def branch() -> None:
    """Branches of a table."""


@click.group(cls=CommandGroup)
def tag() -> None:
    """Tags of a table."""


@branch.command("list")
@table_argument
@click.pass_context
def branch_list(context: click.Context, name: str) -> None:
    """List the branches of a table, and what expiry keeps of them."""
    columns = ["branch", "snapshot", "committed", "expires after", "keeps snapshots for", "keeps at least"]
    rows = [
        (*_row(ref, target, snapshot), _age(target.max_snapshot_age_ms), target.min_snapshots_to_keep)
        for ref, target, snapshot in _refs(table_of(context, name), "branch")
    ]
    print_grid(columns, rows, whole=True)


@branch.command("create")
@table_argument
@click.argument("branch_name", metavar="BRANCH")
@at_snapshot
@click.option("--max-ref-age", type=AGE, help="Expiry removes the branch after this time, such as 30d.")
@click.option("--max-snapshot-age", type=AGE, help="Expiry keeps its snapshots for this time.")
@click.option("--min-snapshots-to-keep", type=click.IntRange(min=1), help="Expiry keeps this number of its snapshots.")
@click.pass_context
def branch_create(
    context: click.Context,
    name: str,
    branch_name: str,
    moment: Moment,
    max_ref_age: int | None,
    max_snapshot_age: int | None,
    min_snapshots_to_keep: int | None,
) -> None:
    """Create a branch, at the current snapshot or at the one that is chosen."""
    opened = table_of(context, name)
    target = snapshot_at(opened, moment)
    opened.manage_snapshots().create_branch(
        target.snapshot_id, branch_name, max_ref_age, max_snapshot_age, min_snapshots_to_keep
    ).commit()
    _print_done("created branch", name, branch_name, "branch", target.snapshot_id)


@branch.command("drop")
@table_argument
@click.argument("branch_name", metavar="BRANCH", shell_complete=complete_refs)
@asks
@click.pass_context
def branch_drop(context: click.Context, name: str, branch_name: str, yes: bool) -> None:
    """Drop a branch other than main; its snapshots stay until they expire."""
    _drop(context, name, branch_name, "branch", yes=yes)


@branch.command("rename")
@table_argument
@click.argument("branch_name", metavar="BRANCH", shell_complete=complete_refs)
@click.argument("new_name", metavar="NEW")
@click.pass_context
def branch_rename(context: click.Context, name: str, branch_name: str, new_name: str) -> None:
    """Rename a branch other than main."""
    opened = table_of(context, name)
    opened.manage_snapshots().rename_branch(branch_name, new_name).commit()
    target = opened.refs()[new_name].snapshot_id
    _print_done(f"renamed branch {branch_name} to", name, new_name, "branch", target)


@branch.command("fast-forward")
@table_argument
@click.argument("branch_name", metavar="BRANCH", shell_complete=complete_refs)
@click.argument("target", metavar="TO", shell_complete=complete_refs)
@click.pass_context
def branch_fast_forward(context: click.Context, name: str, branch_name: str, target: str) -> None:
    """Move a branch to a later branch or tag that descends from it; so work on a branch is published.

    A branch that does not exist is created.
    """
    opened = table_of(context, name)
    opened.manage_snapshots().fast_forward_branch(branch_name, target).commit()
    moved = opened.refs()[branch_name].snapshot_id
    _print_done(f"moved to {target}: branch", name, branch_name, "branch", moved)


@tag.command("list")
@table_argument
@click.pass_context
def tag_list(context: click.Context, name: str) -> None:
    """List the tags of a table, and when expiry removes them."""
    rows = [_row(*found) for found in _refs(table_of(context, name), "tag")]
    print_grid(["tag", "snapshot", "committed", "expires after"], rows, whole=True)


@tag.command("create")
@table_argument
@click.argument("tag_name", metavar="TAG")
@at_snapshot
@click.option("--max-ref-age", type=AGE, help="Expiry removes the tag after this time, such as 30d.")
@click.pass_context
def tag_create(context: click.Context, name: str, tag_name: str, moment: Moment, max_ref_age: int | None) -> None:
    """Create a tag, of the current snapshot or of the one that is chosen."""
    opened = table_of(context, name)
    target = snapshot_at(opened, moment)
    opened.manage_snapshots().create_tag(target.snapshot_id, tag_name, max_ref_age).commit()
    _print_done("created tag", name, tag_name, "tag", target.snapshot_id)


@tag.command("drop")
@table_argument
@click.argument("tag_name", metavar="TAG", shell_complete=complete_refs)
@asks
@click.pass_context
def tag_drop(context: click.Context, name: str, tag_name: str, yes: bool) -> None:
    """Drop a tag; its snapshot stays until it expires."""
    _drop(context, name, tag_name, "tag", yes=yes)


def _drop(context: click.Context, name: str, ref: str, kind: str, *, yes: bool) -> None:
    opened = table_of(context, name)
    if ref in opened.refs():  # what is missing is an error without a question
        confirm(f"drop {kind} {ref} of table {name}", yes=yes)
    changes = opened.manage_snapshots()
    (changes.remove_branch if kind == "branch" else changes.remove_tag)(ref).commit()
    _print_done(f"dropped {kind}", name, ref, kind, None)


def _refs(table: Table, kind: str) -> list[tuple[str, SnapshotRef, Snapshot | None]]:
    return [
        (name, target, table.snapshot_by_id(target.snapshot_id))
        for name, target in sorted(table.refs().items())
        if target.snapshot_ref_type == kind
    ]


def _row(name: str, target: SnapshotRef, snapshot: Snapshot | None) -> tuple[object, ...]:
    committed = None if snapshot is None else time_of(snapshot.timestamp_ms)
    return name, target.snapshot_id, committed, _age(target.max_ref_age_ms)


def _age(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else age_of(milliseconds)


def _print_done(what: str, table: str, ref: str, kind: str, snapshot_id: int | None) -> None:
    at = "" if snapshot_id is None else f", snapshot {snapshot_id}"
    print_done(f"{what} {ref} of table {table}{at}", {"table": table, kind: ref, "snapshot-id": snapshot_id})
