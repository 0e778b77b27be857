"""The command `icefield`: options of all commands, and the groups of commands."""

from __future__ import annotations

import click

from icefield import __version__
from icefield.cli.catalog import catalog
from icefield.cli.metadata import metadata
from icefield.cli.options import CommandGroup
from icefield.cli.orc import orc
from icefield.cli.table import table
from icefield.errors import InvalidArgumentError

__all__ = ["icefield"]


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, package_name="icefield")
@click.option("--catalog", "catalog_name", help="Name of the catalog; by default the one that is configured.")
@click.option("--uri", help="Where the catalog is, for example sqlite:///warehouse/catalog.db")
@click.option("--warehouse", help="Where new tables lie.")
@click.option("--property", "-p", "more", multiple=True, metavar="KEY=VALUE", help="Any other property; repeatable.")
@click.pass_context
def icefield(
    context: click.Context,
    catalog_name: str | None,
    uri: str | None,
    warehouse: str | None,
    more: tuple[str, ...],
) -> None:
    """Look at Apache Iceberg tables.

    TABLE is NAMESPACE.NAME in the catalog, or the path of a metadata file.
    """
    given = {"uri": uri, "warehouse": warehouse, **dict(_pair(text) for text in more)}
    context.obj = (catalog_name, {key: value for key, value in given.items() if value is not None})


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        msg = f"expected a property as KEY=VALUE, got {text!r}"
        raise InvalidArgumentError(msg)
    return key, value


for _group in (catalog, metadata, orc, table):
    icefield.add_command(_group)
