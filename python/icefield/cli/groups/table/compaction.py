"""The commands that compact the files of a table, and that keep its delete files few."""

from __future__ import annotations

from collections.abc import Callable

import click

from icefield._outputs.layout import counted, size_of
from icefield.cli.names import table_argument
from icefield.cli.opening import table_of
from icefield.cli.options import Command, keyed, pairs
from icefield.cli.output import print_done

__all__ = ["COMMANDS"]


def _shared(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that all of these commands have."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Only print what would be done."),
        click.option("--branch", default="main", show_default=True, help="The branch that is changed."),
    ):
        function = option(function)
    return function


def _given(function: Callable[..., None]) -> Callable[..., None]:
    """Add ``--option``, which the function gets as ``given``."""
    text = "An option of Java's procedure, as in min-input-files=2; repeatable."
    return click.option("--option", "-o", "given", multiple=True, metavar="KEY=VALUE", help=text)(function)


def _where(what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option("--where", metavar="FILTER", help=f"{what} that may have rows that match.")


@click.command("compact", cls=Command)
@table_argument
@click.option("--strategy", type=click.Choice(["binpack", "sort"]), help="By default sort with a sort order.")
@click.option("--sort-order", metavar="ORDER", help="As in 'day(time) desc, id', 'zorder(a, b)' or 'hilbert(a, b)'.")
@_given
@_where("Compact only files")
@keyed
@_shared
@click.pass_context
def table_compact(
    context: click.Context,
    name: str,
    strategy: str | None,
    sort_order: str | None,
    given: tuple[str, ...],
    where: str | None,
    key: str | None,
    branch: str,
    dry_run: bool,
) -> None:
    """Rewrite data files that are too small or too large, or have lost many rows.

    Exit code 1 if some of them failed, with partial-progress.enabled=true.
    """
    done = table_of(context, name).maintenance.compact(
        where,
        strategy=strategy,
        sort_order=sort_order,
        options=pairs(given),
        branch=branch,
        idempotency_key=key,
        dry_run=dry_run,
        progress=True,
    )
    before, after = counted(done.rewritten_data_files_count, "data file"), f"{done.added_data_files_count:,}"
    sentence = f"{before} of {size_of(done.rewritten_bytes_count)} to {after} in {counted(done.groups, 'group')}"
    if done.removed_delete_files_count:
        sentence += f", {counted(done.removed_delete_files_count, 'delete file')} removed"
    if done.failed_data_files_count or done.failures:
        sentence += f", {counted(done.failed_data_files_count, 'data file')} failed: {'; '.join(done.failures)}"
    if done.made_before:
        text = f"nothing was done: table {name} has a change with the key {key}"
    elif not done.groups:
        text = f"table {name}: nothing to compact"
    else:
        text = f"table {name}: {'would compact' if dry_run else 'compacted'} {sentence}"
    document = {
        "table": name,
        "branch": branch,
        "dry-run": dry_run,
        "rewritten-data-files-count": done.rewritten_data_files_count,
        "added-data-files-count": done.added_data_files_count,
        "rewritten-bytes-count": done.rewritten_bytes_count,
        "failed-data-files-count": done.failed_data_files_count,
        "removed-delete-files-count": done.removed_delete_files_count,
        "groups": done.groups,
        "snapshot-ids": done.snapshot_ids,
        "failures": done.failures,
    }
    print_done(text, document)
    if done.failures:
        context.exit(1)


@click.command("rewrite-position-deletes", cls=Command)
@table_argument
@_given
@_where("Rewrite only delete files of partitions")
@keyed
@_shared
@click.pass_context
def table_rewrite_position_deletes(
    context: click.Context,
    name: str,
    given: tuple[str, ...],
    where: str | None,
    key: str | None,
    branch: str,
    dry_run: bool,
) -> None:
    """Rewrite small position delete files to fewer ones, or to deletion vectors in version 3.

    Exit code 1 if some of them failed, with partial-progress.enabled=true.
    """
    done = table_of(context, name).maintenance.rewrite_position_deletes(
        where, options=pairs(given), branch=branch, idempotency_key=key, dry_run=dry_run, progress=True
    )
    before = counted(done.rewritten_delete_files_count, "position delete file")
    verb = "would rewrite" if dry_run else "rewrote"
    document = {
        "table": name,
        "branch": branch,
        "dry-run": dry_run,
        "rewritten-delete-files-count": done.rewritten_delete_files_count,
        "added-delete-files-count": done.added_delete_files_count,
        "rewritten-bytes-count": done.rewritten_bytes_count,
        "added-bytes-count": done.added_bytes_count,
        "snapshot-ids": done.snapshot_ids,
        "failures": done.failures,
    }
    failed = f"; failed: {'; '.join(done.failures)}" if done.failures else ""
    print_done(f"table {name}: {verb} {before} to {done.added_delete_files_count:,}{failed}", document)
    if done.failures:
        context.exit(1)


@click.command("convert-equality-deletes", cls=Command)
@table_argument
@_where("Read only data files")
@keyed
@_shared
@click.pass_context
def table_convert_equality_deletes(
    context: click.Context, name: str, where: str | None, key: str | None, branch: str, dry_run: bool
) -> None:
    """Replace equality deletes by deletion vectors, in version 2 by position delete files."""
    done = table_of(context, name).maintenance.convert_equality_deletes(
        where, branch=branch, idempotency_key=key, dry_run=dry_run, progress=True
    )
    before = counted(done.converted_delete_files_count, "equality delete file")
    after = counted(done.added_delete_files_count, "position delete file")
    verb = "would convert" if dry_run else "converted"
    document = {
        "table": name,
        "branch": branch,
        "dry-run": dry_run,
        "converted-delete-files-count": done.converted_delete_files_count,
        "replaced-delete-files-count": done.replaced_delete_files_count,
        "added-delete-files-count": done.added_delete_files_count,
        "deleted-rows-count": done.deleted_rows_count,
        "snapshot-id": done.snapshot_id,
    }
    print_done(f"table {name}: {verb} {before} to {after} with {done.deleted_rows_count:,} rows", document)


@click.command("remove-dangling-deletes", cls=Command)
@table_argument
@_shared
@click.pass_context
def table_remove_dangling_deletes(context: click.Context, name: str, branch: str, dry_run: bool) -> None:
    """Remove delete files that apply to no data file."""
    done = table_of(context, name).maintenance.remove_dangling_deletes(branch=branch, dry_run=dry_run)
    files = counted(len(done.delete_files), "delete file")
    document = {
        "table": name,
        "branch": branch,
        "dry-run": dry_run,
        "delete-files": done.delete_files,
        "snapshot-id": done.snapshot_id,
    }
    print_done(f"table {name}: {'would remove' if dry_run else 'removed'} {files}", document)


#: Of the group `table`.
COMMANDS = (
    table_compact,
    table_convert_equality_deletes,
    table_remove_dangling_deletes,
    table_rewrite_position_deletes,
)
