"""The commands that move a table back and that expire its snapshots."""

from __future__ import annotations

from datetime import datetime

import click

from icefield._outputs.layout import counted, time_of
from icefield.cli.moments import PAST, at_snapshot, snapshot_at
from icefield.cli.names import table_argument
from icefield.cli.opening import table_of
from icefield.cli.options import Command, asks, confirm, wants_json
from icefield.cli.output import print_done, print_json, print_text
from icefield.moments import Moment
from icefield.table.maintenance import ExpiredSnapshots, ExpireSnapshots

__all__ = ["COMMANDS"]


@click.command("rollback", cls=Command)
@table_argument
@at_snapshot
@asks
@click.pass_context
def table_rollback(context: click.Context, name: str, moment: Moment, yes: bool) -> None:
    """Roll a table back to an earlier snapshot; the snapshots after it stay until they expire."""
    if not moment:
        raise click.UsageError("pass one of --snapshot-id, --ref and --as-of")
    opened = table_of(context, name)
    target = snapshot_at(opened, moment)
    current = opened.current_snapshot()
    when = time_of(target.timestamp_ms)
    if current is not None and current.snapshot_id == target.snapshot_id:
        sentence = f"table {name} is at snapshot {target.snapshot_id} already"
    else:
        ancestors = [] if current is None else opened.metadata.ancestors(current.snapshot_id)
        if target in ancestors:  # any other is an error without a question
            confirm(f"roll table {name} back to snapshot {target.snapshot_id} of {when}", yes=yes)
        opened.manage_snapshots().rollback_to_snapshot(target.snapshot_id).commit()
        sentence = f"rolled table {name} back to snapshot {target.snapshot_id} of {when}"
    before = None if current is None else current.snapshot_id
    print_done(sentence, {"table": name, "snapshot-id": target.snapshot_id, "before": before})


@click.command("expire", cls=Command)
@table_argument
@click.option("--older-than", type=PAST, help="Expire snapshots before this time (ISO 8601 or ms) or age (7d, 12h).")
@click.option("--retain-last", type=click.IntRange(min=1), help="Keep this number of snapshots of each branch.")
@click.option("--snapshot-id", "ids", type=int, multiple=True, help="Expire this snapshot, however old; repeatable.")
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@asks
@click.pass_context
def table_expire(
    context: click.Context,
    name: str,
    older_than: datetime | int | None,
    retain_last: int | None,
    ids: tuple[int, ...],
    dry_run: bool,
    yes: bool,
) -> None:
    """Expire snapshots, and delete the files that only they have.

    What would be done is printed first. Without options the properties history.expire.* of the table decide.
    """
    opened = table_of(context, name)

    def asked() -> ExpireSnapshots:
        change = opened.maintenance.expire_snapshots().by_ids(ids)
        if older_than is not None:
            change.older_than(older_than)
        return change if retain_last is None else change.retain_last(retain_last)

    if dry_run or not yes:
        planned = asked().dry_run()
        if dry_run and wants_json():
            print_json(_document(name, planned, dry_run=True))
            return
        if not wants_json():
            print_text(_sentence(name, planned, "would expire", "would delete"))
        if dry_run or not (planned.snapshot_ids or planned.refs):
            if wants_json():
                print_json(_document(name, planned, dry_run=False))
            return
        confirm(f"expire {counted(len(planned.snapshot_ids), 'snapshot')} of table {name}", yes=False)
    done = asked().commit()
    print_done(_sentence(name, done, "expired", "deleted"), _document(name, done, dry_run=False))


def _sentence(name: str, done: ExpiredSnapshots, expired: str, deleted: str) -> str:
    if not done.snapshot_ids and not done.refs:
        return f"table {name}: nothing to expire"
    what = [counted(len(done.snapshot_ids), "snapshot")]
    what += [f"the branches and tags {', '.join(done.refs)}"] if done.refs else []
    kinds = {
        "data file": done.data_files,
        "delete file": done.delete_files,
        "manifest": done.manifests,
        "manifest list": done.manifest_lists,
        "statistics file": done.statistics_files,
    }
    files = ", ".join(counted(len(files), kind) for kind, files in kinds.items() if files) or "no file"
    kept = f"; {counted(len(done.external_files), 'file')} outside of the table stay" if done.external_files else ""
    return f"table {name}: {expired} {' and '.join(what)}, {deleted} {files}{kept}"


def _document(name: str, done: ExpiredSnapshots, *, dry_run: bool) -> dict[str, object]:
    return {
        "table": name,
        "dry-run": dry_run,
        "snapshot-ids": done.snapshot_ids,
        "refs": done.refs,
        "data-files": done.data_files,
        "delete-files": done.delete_files,
        "manifests": done.manifests,
        "manifest-lists": done.manifest_lists,
        "statistics-files": done.statistics_files,
        "external-files": done.external_files,
        "failures": done.failures,
    }


#: Of the group `table`.
COMMANDS = (table_rollback, table_expire)
