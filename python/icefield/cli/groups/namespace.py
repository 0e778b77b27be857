"""The commands about namespaces."""

from __future__ import annotations

import click

from icefield._inputs.secrets import redacted
from icefield.cli.names import complete_namespaces, namespace_argument, namespaces_below
from icefield.cli.opening import catalog_of
from icefield.cli.options import CommandGroup, asks, confirm, pairs
from icefield.cli.output import print_done, print_grid
from icefield.errors import NamespaceAlreadyExistsError

__all__ = ["namespace"]


@click.group(cls=CommandGroup)
def namespace() -> None:
    """Namespaces of a catalog."""


@namespace.command("list")
@click.argument("parent", metavar="NAMESPACE", required=False, shell_complete=complete_namespaces)
@click.pass_context
def namespace_list(context: click.Context, parent: str | None) -> None:
    """List namespaces, all or those within one, with the number of their tables."""
    catalog = catalog_of(context)
    found = namespaces_below(catalog, tuple(parent.split(".")) if parent else ())
    print_grid(["namespace", "tables"], [(".".join(name), len(catalog.list_tables(name))) for name in found])


@namespace.command("show")
@namespace_argument
@click.pass_context
def namespace_show(context: click.Context, namespace: str) -> None:
    """Show the properties of a namespace."""
    properties = catalog_of(context).load_namespace_properties(namespace)
    print_grid(["property", "value"], sorted(redacted(properties).items()), whole=True)


@namespace.command("create")
@namespace_argument
@click.option("--set", "properties", multiple=True, metavar="KEY=VALUE", help="A property; repeatable.")
@click.option("--if-not-exists", is_flag=True, help="Do nothing if there is a namespace of this name.")
@click.pass_context
def namespace_create(context: click.Context, namespace: str, properties: tuple[str, ...], if_not_exists: bool) -> None:
    """Create a namespace, for example nyc or nyc.raw."""
    created, sentence = True, f"created namespace {namespace}"
    try:
        catalog_of(context).create_namespace(namespace, pairs(properties))
    except NamespaceAlreadyExistsError:
        if not if_not_exists:
            raise
        created, sentence = False, f"namespace {namespace} exists already"
    print_done(sentence, {"namespace": namespace, "created": created})


@namespace.command("drop")
@namespace_argument
@asks
@click.pass_context
def namespace_drop(context: click.Context, namespace: str, yes: bool) -> None:
    """Drop an empty namespace, and its properties."""
    catalog = catalog_of(context)
    catalog.load_namespace_properties(namespace)  # one that is missing is an error before anything is asked
    confirm(f"drop namespace {namespace}", yes=yes)
    catalog.drop_namespace(namespace)
    print_done(f"dropped namespace {namespace}", {"namespace": namespace, "dropped": True})


@namespace.command("set-properties")
@namespace_argument
@click.argument("properties", nargs=-1, required=True, metavar="KEY=VALUE...")
@click.pass_context
def namespace_set_properties(context: click.Context, namespace: str, properties: tuple[str, ...]) -> None:
    """Set properties of a namespace."""
    done = catalog_of(context).update_namespace_properties(namespace, (), pairs(properties))
    print_done(
        f"set {', '.join(pairs(properties))} of namespace {namespace}",
        {"namespace": namespace, "updated": sorted(done.updated)},
    )


@namespace.command("remove-properties")
@namespace_argument
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@click.pass_context
def namespace_remove_properties(context: click.Context, namespace: str, keys: tuple[str, ...]) -> None:
    """Remove properties of a namespace."""
    done = catalog_of(context).update_namespace_properties(namespace, keys)
    parts = [f"removed {', '.join(sorted(done.removed))}"] if done.removed else []
    parts += [f"not set: {', '.join(sorted(done.missing))}"] if done.missing else []
    document = {"namespace": namespace, "removed": sorted(done.removed), "missing": sorted(done.missing)}
    print_done(f"namespace {namespace}: {'; '.join(parts)}", document)
