"""The command that calls the procedures of Java's connector."""

from __future__ import annotations

import click

from icefield.cli.opening import catalog_of
from icefield.cli.options import Command, asks, confirm, pairs
from icefield.cli.output import print_grid
from icefield.procedures import PROCEDURES, call, find
from icefield.procedures.declared import Procedure

__all__ = ["call_procedure"]


@click.command("call", cls=Command)
@click.argument("procedure", type=click.STRING, required=False)
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@asks
@click.pass_context
def call_procedure(context: click.Context, procedure: str | None, arguments: tuple[str, ...], yes: bool) -> None:
    """Call a procedure of Java's connector: call ancestors_of table=nyc.flights.

    Times are ISO 8601 with an offset, lists have commas. Without a procedure: list them with their parameters.
    """
    if procedure is None:
        print_grid(["procedure", "parameters"], [(one.name, ", ".join(map(str, one.parameters))) for one in _all()])
        return
    found = find(procedure)
    named = pairs(arguments)
    found.arguments((), named)
    catalog = catalog_of(context)
    if found.destructive:
        confirm(f"call {found.name} of {named.get('table', 'the table')}", yes=yes)
    rows = call(catalog, found.name, **named)
    print_grid(rows.column_names, [list(row.values()) for row in rows.to_pylist()])


def _all() -> list[Procedure]:
    return [PROCEDURES[name] for name in sorted(PROCEDURES)]
