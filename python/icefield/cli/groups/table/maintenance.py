"""The commands that move a table back, expire its snapshots, remove its orphan files, and check it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Literal

import click

from icefield._outputs.layout import counted, size_of, time_of
from icefield.cli.moments import PAST, at_snapshot, snapshot_at
from icefield.cli.names import namespaces_below, table_argument
from icefield.cli.opening import catalog_of, table_of
from icefield.cli.options import Command, asks, confirm, limited, pairs, wants_json
from icefield.cli.output import print_done, print_grid, print_json, print_records, print_text
from icefield.errors import IcefieldError
from icefield.metadata import MAIN_BRANCH
from icefield.scan.moments import Moment
from icefield.table.maintenance import ExpiredSnapshots, ExpireSnapshots
from icefield.table.maintenance.checks import CheckLevel
from icefield.table.maintenance.orphans import PrefixMismatchMode, RemovedOrphans, other_tables_loaded_once
from icefield.table.maintenance.repairs import RepairReport

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
    size = f" of {size_of(done.bytes)}" if done.bytes else ""
    return f"table {name}: {expired} {' and '.join(what)}, {deleted} {files}{size}{kept}"


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
        "bytes": done.bytes,
        "failures": done.failures,
    }


@click.command("orphans", cls=Command)
@table_argument
@click.option("--older-than", type=PAST, help="Only files before this time (ISO 8601 or ms) or age; by default 3d.")
@click.option("--location", help="The folder to search; by default the location of the table.")
@click.option("--equal-scheme", "schemes", multiple=True, metavar="A,B=C", help="Schemes of one store; repeatable.")
@click.option("--equal-authority", "authorities", multiple=True, metavar="A,B=C", help="Hosts or buckets; repeatable.")
@click.option(
    "--prefix-mismatch",
    type=click.Choice(["error", "ignore", "delete"], case_sensitive=False),
    default="error",
    show_default=True,
    help="What to do with files that the table has with another scheme or authority.",
)
@click.option("--delete", "-d", is_flag=True, help="Delete the files; without it, they are only printed.")
@asks
@click.pass_context
def table_orphans(
    context: click.Context,
    name: str,
    older_than: datetime | int | None,
    location: str | None,
    schemes: tuple[str, ...],
    authorities: tuple[str, ...],
    prefix_mismatch: PrefixMismatchMode,
    delete: bool,
    yes: bool,
) -> None:
    """Find files in the folder of a table that nothing in the table has, and delete them."""
    opened = table_of(context, name)

    def run(*, dry_run: bool) -> RemovedOrphans:
        return opened.maintenance.remove_orphans(
            older_than,
            location=location,
            dry_run=dry_run,
            equal_schemes=pairs(schemes),
            equal_authorities=pairs(authorities),
            prefix_mismatch_mode=prefix_mismatch,
        )

    if not delete or not yes:
        planned = run(dry_run=True)
        if not wants_json():
            print_grid(["orphan file", "bytes"], zip(planned.files, planned.sizes, strict=True), whole=True)
        if not delete or not planned.files:
            print_done(_of_orphans(name, planned, "would delete"), _orphan_document(name, planned))
            return
        confirm(f"delete {counted(len(planned.files), 'orphan file')} of table {name}", yes=False)
    done = run(dry_run=False)
    print_done(_of_orphans(name, done, "deleted"), _orphan_document(name, done))


def _of_orphans(name: str, done: RemovedOrphans, deleted: str) -> str:
    if not done.files:
        return f"table {name}: no orphan files in {counted(done.listed, 'listed file')}"
    left = f"; {counted(done.failures, 'file')} could not be deleted" if done.failures else ""
    return f"table {name}: {deleted} {counted(len(done.files), 'orphan file')} of {size_of(done.bytes)}{left}"


def _orphan_document(name: str, done: RemovedOrphans) -> dict[str, object]:
    return {
        "table": name,
        "dry-run": done.dry_run,
        "files": [{"path": path, "bytes": size} for path, size in zip(done.files, done.sizes, strict=True)],
        "bytes": done.bytes,
        "listed": done.listed,
        "failures": done.failures,
    }


@click.command("fsck", cls=Command)
@table_argument
@click.option(
    "--level",
    type=click.Choice(["metadata", "manifests", "files", "footers", "rows"]),
    default="manifests",
    show_default=True,
    help="How much to read; each level includes those before it.",
)
@click.option("--repair", is_flag=True, help="Correct what is certain, by a new snapshot; reads footers, or rows.")
@click.option("--branch", default=MAIN_BRANCH, show_default=True, help="With --repair: the branch to repair.")
@click.option("--dry-run", is_flag=True, help="With --repair: only print what would be corrected.")
@click.option("--remove-missing-files", is_flag=True, help="With --repair: remove data files that do not exist.")
@click.option("--remove-missing-deletes", is_flag=True, help="With --repair: remove delete files that do not exist.")
@limited("findings", default=1000)
@click.pass_context
def table_fsck(
    context: click.Context,
    name: str,
    level: CheckLevel,
    repair: bool,
    branch: str,
    dry_run: bool,
    remove_missing_files: bool,
    remove_missing_deletes: bool,
    limit: int,
) -> None:
    """Check a table: metadata against manifests against files; nothing is changed without --repair.

    Exit code 1 if there are errors; with --repair, if findings are left.
    """
    flags = {
        "--dry-run": dry_run,
        "--remove-missing-files": remove_missing_files,
        "--remove-missing-deletes": remove_missing_deletes,
    }
    given = [flag for flag, is_given in flags.items() if is_given]
    if repair:
        deep: Literal["footers", "rows"] = "rows" if level == "rows" else "footers"
        done = table_of(context, name).maintenance.repair(
            deep,
            branch=branch,
            remove_missing_files=remove_missing_files,
            remove_missing_deletes=remove_missing_deletes,
            dry_run=dry_run,
            max_findings=limit,
        )
        _print_repair(context, name, done, dry_run)
        return
    if given:
        raise click.UsageError(f"{given[0]} is for --repair")
    report = table_of(context, name).fsck(level, max_findings=limit)
    if wants_json():
        print_json({"table": name, **json.loads(report.to_json())})
    else:
        columns = ["severity", "check", "file", "field", "expected", "found"]
        rows = [[getattr(one, column) for column in columns] for one in report.findings]
        if rows:
            print_records(columns, rows)
        checked = f"{counted(report.manifests, 'manifest')}, {counted(report.files, 'file')}"
        found = f"{counted(report.errors, 'error')}, {counted(report.warnings, 'warning')}"
        print_text(f"table {name}: {found} in {checked}, {counted(report.rows, 'row')}")
    if not report.ok:
        context.exit(1)


def _print_repair(context: click.Context, name: str, done: RepairReport, dry_run: bool) -> None:
    if wants_json():
        print_json({"table": name, "dry_run": dry_run, **json.loads(done.to_json())})
    else:
        if done.corrections:
            columns = ["check", "file", "field", "before", "after"]
            print_records(columns, [[getattr(one, column) for column in columns] for one in done.corrections])
        if done.left:
            left = [[one.finding.check, one.finding.file, one.finding.field, one.reason] for one in done.left]
            print_records(["left", "file", "field", "reason"], left)
        verb = "would correct" if dry_run else "corrected"
        sentence = f"{verb} {counted(done.corrected, 'field')} in {counted(done.rewritten_manifests, 'manifest')}"
        removed = done.removed_files + done.removed_delete_files
        if removed:
            sentence += (
                f", {'remove' if dry_run else 'removed'} {counted(removed, 'file')} with {done.removed_rows} rows"
            )
        print_text(f"table {name}: {sentence}; {counted(done.unrepaired, 'finding')} left")
    if done.unrepaired:
        context.exit(1)


@click.command("export", cls=Command)
@table_argument
@click.argument("file", metavar="FILE.zip")
@click.option("--snapshot-id", "ids", type=int, multiple=True, help="By default the current snapshot; repeatable.")
@click.option("--values", is_flag=True, help="Keep bounds, partition values, paths and properties.")
@click.pass_context
def table_export(context: click.Context, name: str, file: str, ids: tuple[int, ...], values: bool) -> None:
    """Write the metadata of a table, without rows, into one file for a report of a fault.

    Commands that look at tables take the file as TABLE. Without --values it contains no values of rows.
    """
    done = table_of(context, name).export_metadata(file, snapshot_ids=ids, values=values)
    sentence = (
        f"exported {counted(done.snapshots, 'snapshot')} with {counted(done.manifests, 'manifest')} of table {name}"
    )
    sentence += f" to {done.path} ({size_of(done.bytes)}), {'with' if values else 'without'} values of rows"
    print_done(
        sentence,
        {
            "table": name,
            "path": str(done.path),
            "bytes": done.bytes,
            "snapshots": done.snapshots,
            "manifests": done.manifests,
            "values": done.values,
        },
    )


@click.command("doctor", cls=Command)
@click.argument("name", metavar="[TABLE]", required=False)
@click.option("--orphans", is_flag=True, help="Also list the folders, for files that nothing references.")
@click.pass_context
def table_doctor(context: click.Context, name: str | None, orphans: bool) -> None:
    """Find what makes a table slow or large, and which call repairs it; without TABLE, all tables of the catalog.

    Exit code 1 if a table is damaged or cannot be read.
    """
    columns = ["table", "finding", "subject", "message", "bytes", "requests", "repair"]
    rows: list[list[object]] = []
    with other_tables_loaded_once():
        for one in [name] if name else _all_tables(context):
            try:
                found = table_of(context, one).doctor(orphans=orphans)
            except IcefieldError as error:
                if name:
                    raise
                rows.append([one, "unreadable", "", str(error), 0, 0, ""])
                continue
            rows += ([one, *(getattr(advice, column) for column in ("name", *columns[2:]))] for advice in found)
    if wants_json():
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif rows:
        print_records(columns, rows)
    else:
        print_text(f"{f'table {name}' if name else 'all tables'}: nothing found")
    if any(row[1] in {"damage", "unreadable"} for row in rows):
        context.exit(1)


def _all_tables(context: click.Context) -> list[str]:
    catalog = catalog_of(context)
    return [".".join(table) for namespace in namespaces_below(catalog) for table in catalog.list_tables(namespace)]


#: Of the group `table`.
COMMANDS = (table_rollback, table_expire, table_orphans, table_fsck, table_export, table_doctor)
