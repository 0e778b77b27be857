"""The command that maintains the tables of a catalog by policies."""

from __future__ import annotations

import json
from typing import IO

import click

from icefield._outputs.layout import counted, size_of
from icefield.catalog import load_catalog
from icefield.cli.opening import catalog_of
from icefield.cli.options import Command, wants_json
from icefield.cli.output import print_json, print_records, print_text
from icefield.errors import InvalidArgumentError, NoSuchCatalogError
from icefield.maintenance import load, run

__all__ = ["maintain"]


class _WrongConfiguration(click.ClickException):
    """The configuration is wrong, and nothing was done."""

    exit_code = 2

    def show(self, file: IO[str] | None = None) -> None:
        """Print the message as the errors of icefield are printed."""
        click.echo(f"icefield: {self.message}", file=file, err=file is None)


@click.command("maintain", cls=Command)
@click.argument("config", type=click.Path(exists=True, dir_okay=False))
@click.option("--table", "tables", multiple=True, metavar="PATTERN", help="Only these tables; repeatable.")
@click.option("--dry-run", is_flag=True, help="Only print what would be done.")
@click.option("--verbose", "-v", is_flag=True, help="Print the tasks that are not due as well.")
@click.pass_context
def maintain(context: click.Context, config: str, tables: tuple[str, ...], dry_run: bool, verbose: bool) -> None:
    """Do the maintenance of tables that is due by the policies in CONFIG, a YAML file.

    It asks nothing, and may be run twice. Exit codes: 0 all was done, or nothing was due; 1 a task failed, the others
    were done; 2 CONFIG is wrong, and nothing was done.
    """
    try:
        policies = load(config)
        named, properties = context.obj
        # Options of the command line come first.
        own = policies.catalog is None or named is not None or {"uri", "type"} & properties.keys()
        catalog = catalog_of(context) if own else load_catalog(policies.catalog, **properties)
    except (InvalidArgumentError, NoSuchCatalogError) as error:
        raise _WrongConfiguration(str(error)) from error
    report = run(policies, catalog=catalog, tables=tables or ("*",), dry_run=dry_run)
    if wants_json():
        print_json(json.loads(report.to_json()))
    else:
        shown = [one for one in report.tasks if verbose or one.state != "not due"]
        columns = ["table", "task", "state", "message", "files", "bytes", "commits", "seconds"]
        if shown:
            print_records(columns, [[getattr(one, column) for column in columns] for one in shown])
        for pattern in report.unmatched:
            print_text(f"no table matches {pattern}")
        made = [one for one in report.tasks if one.state in {"done", "planned"}]
        size = size_of(sum(one.bytes for one in made))
        print_text(
            f"{counted(len({one.table for one in report.tasks}), 'table')}: {counted(len(made), 'task')} "
            f"{'planned' if dry_run else 'done'} with {counted(sum(one.files for one in made), 'file')} of {size}, "
            f"{len(report.failures)} failed"
        )
    if not report.ok:
        context.exit(1)
