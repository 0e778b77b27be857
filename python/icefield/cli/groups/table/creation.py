"""The commands that create and register tables."""

from __future__ import annotations

from collections.abc import Mapping

import click

from icefield.cli.names import table_argument
from icefield.cli.opening import catalog_of, location_of
from icefield.cli.options import Command, pairs
from icefield.cli.output import print_done
from icefield.errors import TableAlreadyExistsError
from icefield.schema import Schema
from icefield.table import Table

__all__ = ["COMMANDS"]


def _schema_of(text: str) -> Schema:
    return Schema.from_json(text) if text.lstrip().startswith("{") else Schema.from_text(text)


def _schema_in(path: str, properties: Mapping[str, str]) -> Schema:
    return Schema.of_file(location_of(path), dict(properties))


@click.command("create", cls=Command)
@table_argument
@click.option("--schema", "schema_text", metavar="COLUMNS", help="Columns, or a schema as JSON.")
@click.option("--schema-from", metavar="FILE", help="The columns of a Parquet, ORC or Avro file, or of such a text.")
@click.option("--partition-by", "-b", multiple=True, metavar="FIELD", help="For example 'month(time)'; repeatable.")
@click.option("--sort-by", "-s", multiple=True, metavar="FIELD", help="For example 'time desc'; repeatable.")
@click.option("--set", "properties", multiple=True, metavar="KEY=VALUE", help="A property of the table; repeatable.")
@click.option("--format-version", type=click.IntRange(1, 3), help="Version of the table format.  [default: 2]")
@click.option("--location", help="Folder of the table.")
@click.option("--if-not-exists", is_flag=True, help="Do nothing if there is a table of this name.")
@click.pass_context
def table_create(
    context: click.Context,
    name: str,
    schema_text: str | None,
    schema_from: str | None,
    partition_by: tuple[str, ...],
    sort_by: tuple[str, ...],
    properties: tuple[str, ...],
    format_version: int | None,
    location: str | None,
    if_not_exists: bool,
) -> None:
    r"""Create a table without rows.

    COLUMNS are names and types, separated by commas, spelled as in the specification:

    \b
      id long not null, name string comment 'who', tags list<string>,
      place struct<lat double, lon double>, prices map<string, decimal(9, 2)>
    """
    if (schema_text is None) == (schema_from is None):
        raise click.UsageError("pass either --schema or --schema-from")
    schema = _schema_of(schema_text) if schema_text is not None else _schema_in(schema_from or "", context.obj[1])
    wanted = pairs(properties)
    if format_version is not None:
        wanted["format-version"] = str(format_version)
    catalog = catalog_of(context)
    try:
        made = catalog.create_table(
            name, schema, location, properties=wanted, partition_by=partition_by or None, sort_by=sort_by or None
        )
    except TableAlreadyExistsError:
        if not if_not_exists:
            raise
        _report(f"table {name} exists already", catalog.load_table(name), created=False)
    else:
        _report(f"created table {name} at {made.location()}", made, created=True)


@click.command("register", cls=Command)
@table_argument
@click.argument("metadata_location", metavar="FILE.json")
@click.pass_context
def table_register(context: click.Context, name: str, metadata_location: str) -> None:
    """Register a table that is in storage already, by its metadata file."""
    made = catalog_of(context).register_table(name, metadata_location)
    _report(f"registered table {name} at {made.location()}", made, created=True)


def _report(sentence: str, made: Table, *, created: bool) -> None:
    document = {
        "table": ".".join(made.name()),
        "created": created,
        "location": made.location(),
        "metadata-location": made.metadata_location,
    }
    print_done(sentence, document)


#: Of the group `table`.
COMMANDS = (table_create, table_register)
