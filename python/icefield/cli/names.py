"""Names on the command line, which shells complete: tables, namespaces, branches and tags."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import click

from icefield.catalog import Catalog
from icefield.cli.opening import catalog_of, table_of
from icefield.cli.options import given
from icefield.inspect import InspectTable

__all__ = [
    "complete_metadata_tables",
    "complete_namespaces",
    "complete_refs",
    "namespace_argument",
    "namespaces_below",
    "table_argument",
]

#: A shell waits while names are listed.
_MOST_NAMES = 1000


def table_argument(function: Callable[..., None]) -> Callable[..., None]:
    """Add the argument TABLE, which the function gets as ``name``."""
    return click.argument("name", metavar="TABLE", shell_complete=_complete_tables)(function)


def namespace_argument(function: Callable[..., None]) -> Callable[..., None]:
    """Add the argument NAMESPACE, which the function gets as ``namespace``."""
    return click.argument("namespace", metavar="NAMESPACE", shell_complete=complete_namespaces)(function)


def namespaces_below(catalog: Catalog, namespace: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """List all namespaces below one, at any depth, each before those within it."""
    for found in catalog.list_namespaces(namespace):
        yield found
        yield from namespaces_below(catalog, found)


def complete_metadata_tables(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of metadata tables."""
    return [name for name in InspectTable.names if name.startswith(incomplete.lower())]


def complete_refs(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the branches and tags of the table that stands on the line."""

    def found() -> Iterator[str]:
        context.obj = given(context.find_root().params)
        # Where the value of an option is completed, arguments before it are not assigned yet.
        table = context.params.get("name") or context.args[0]
        yield from table_of(context, table).refs()

    return _matching(found, incomplete)


def _complete_tables(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    def found() -> Iterator[str]:
        context.obj = given(context.find_root().params)
        with catalog_of(context) as catalog:
            for namespace in namespaces_below(catalog):
                yield from (".".join(table) for table in catalog.list_tables(namespace))

    return _matching(found, incomplete)


def complete_namespaces(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the namespaces of the catalog."""

    def found() -> Iterator[str]:
        context.obj = given(context.find_root().params)
        with catalog_of(context) as catalog:
            yield from (".".join(namespace) for namespace in namespaces_below(catalog))

    return _matching(found, incomplete)


def _matching(names: Callable[[], Iterator[str]], incomplete: str) -> list[str]:
    matching: list[str] = []
    try:
        for name in names():
            if name.startswith(incomplete):
                matching.append(name)
            if len(matching) == _MOST_NAMES:
                break
    except Exception:  # noqa: BLE001 - a shell shows nothing but names, whatever is wrong
        return matching
    return matching
