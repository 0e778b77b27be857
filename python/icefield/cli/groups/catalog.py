"""The commands about catalogs."""

from __future__ import annotations

import click

from icefield._inputs.secrets import redacted
from icefield.catalog.configuration import catalog_names, catalog_properties
from icefield.cli.names import complete_namespaces, namespaces_below
from icefield.cli.opening import catalog_of
from icefield.cli.options import CommandGroup
from icefield.cli.output import print_grid

__all__ = ["catalog"]


@click.group(cls=CommandGroup)
def catalog() -> None:
    """Catalogs and their contents."""


@catalog.command("list")
@click.argument("namespace", required=False, shell_complete=complete_namespaces)
@click.pass_context
def catalog_list(context: click.Context, namespace: str | None) -> None:
    """List the tables of a catalog, of one namespace or of all."""
    opened = catalog_of(context)
    below = tuple(namespace.split(".")) if namespace else ()
    found = [*([below] if below else []), *namespaces_below(opened, below)]
    rows = [(".".join(name), table[-1]) for name in found for table in opened.list_tables(name)]
    print_grid(["namespace", "table"], rows)


@catalog.command("show")
@click.pass_context
def catalog_show(context: click.Context) -> None:
    """Show which catalogs are configured, and how; secrets are left out.

    With --catalog, --uri or properties: the catalog that these mean.
    """
    name, given = context.obj
    if name is None and not given:
        shown = {known: catalog_properties(known) for known in catalog_names()}
    else:
        opened = catalog_of(context)
        shown = {opened.name: opened.properties}
    rows = [(known, key, value) for known, properties in shown.items() for key, value in redacted(properties).items()]
    print_grid(["catalog", "property", "value"], rows)
