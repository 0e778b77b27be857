"""The commands about metadata files."""

from __future__ import annotations

import json

import click

from icefield.cli.opening import location_of
from icefield.cli.options import CommandGroup
from icefield.cli.output import print_text
from icefield.table import Table

__all__ = ["metadata"]


@click.group(cls=CommandGroup)
def metadata() -> None:
    """Metadata files."""


@metadata.command("show")
@click.argument("path", metavar="FILE.json")
@click.pass_context
def metadata_show(context: click.Context, path: str) -> None:
    """Check a metadata file and print it as JSON."""
    _, properties = context.obj
    opened = Table.from_metadata(location_of(path), **properties)
    print_text(json.dumps(json.loads(opened.metadata_json()), indent=2, ensure_ascii=False))
