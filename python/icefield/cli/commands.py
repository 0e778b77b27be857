"""The command `icefield`: options of all commands, and the groups of commands."""

from __future__ import annotations

import click

from icefield import __version__
from icefield.cli.groups.calling import call_procedure
from icefield.cli.groups.catalog import catalog
from icefield.cli.groups.completion import completion
from icefield.cli.groups.differing import diff_tables
from icefield.cli.groups.maintain import maintain
from icefield.cli.groups.metadata import metadata
from icefield.cli.groups.namespace import namespace
from icefield.cli.groups.orc import orc
from icefield.cli.groups.references import branch, tag
from icefield.cli.groups.table import changes, compaction, creation, files, keys, maintenance, table
from icefield.cli.options import CommandGroup, given

__all__ = ["icefield"]


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, package_name="icefield")
@click.option("--catalog", "catalog_name", help="Name of the catalog; by default the one that is configured.")
@click.option("--uri", help="Where the catalog is, for example sqlite:///warehouse/catalog.db")
@click.option("--warehouse", help="Where new tables lie.")
@click.option("--property", "-p", "more", multiple=True, metavar="KEY=VALUE", help="Any other property; repeatable.")
@click.pass_context
def icefield(context: click.Context, /, **_: object) -> None:
    """Look at Apache Iceberg tables, and change them.

    TABLE is NAMESPACE.NAME in the catalog, or, to look at, the path of a metadata file.

    Exit codes: 0 done, 1 failed, 2 wrong usage or not confirmed, 3 outcome unknown, 4 another commit was first.
    """
    context.obj = given(context.params)


for _group in (branch, catalog, completion, metadata, namespace, orc, table, tag):
    icefield.add_command(_group)
icefield.add_command(call_procedure)
icefield.add_command(diff_tables)
icefield.add_command(maintain)
for _command in (
    *changes.COMMANDS,
    *compaction.COMMANDS,
    *creation.COMMANDS,
    *files.COMMANDS,
    *keys.COMMANDS,
    *maintenance.COMMANDS,
):
    table.add_command(_command)
