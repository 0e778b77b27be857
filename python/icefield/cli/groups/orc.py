"""The commands about ORC files."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from typing import Any

import click

from icefield.cli.options import CommandGroup, wants_json
from icefield.cli.output import print_done, print_grid, print_json, print_text
from icefield.errors import InvalidArgumentError
from icefield.orc import ORCFile, check, convert, json_lines

__all__ = ["orc"]

#: Statistics that count from the epoch, and what they count.
_TIMES = {"timestamp_statistics": "milliseconds", "date_statistics": "days"}
_BOUNDS = frozenset({"minimum", "maximum", "minimum_utc", "maximum_utc"})
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@click.group(cls=CommandGroup)
def orc() -> None:
    """ORC files."""


@orc.command("inspect")
@click.argument("path", metavar="FILE.orc")
@click.option("--runs", is_flag=True, help="Also read every stream, and count its chunks and runs.")
@click.pass_context
def orc_inspect(context: click.Context, path: str, runs: bool) -> None:
    """Show the structure of an ORC file: columns, statistics, stripes, streams."""
    _, properties = context.obj
    opened = ORCFile(path, storage=properties)
    document = opened.inspect(runs=runs)
    if wants_json():
        print_json(document)
        return
    facts = [
        ("rows", document["rows"]),
        ("bytes", document["length"]),
        ("type", document["schema"]),
        ("file version", document["fileVersion"]),
        ("written by", f"{document['writer']}, {opened.writer_version}"),
        ("compression", f"{opened.compression} in blocks of {opened.compression_size}"),
        ("rows of an index entry", opened.row_index_stride or "no index"),
        *((f"metadata {name}", value.decode(errors="replace")) for name, value in opened.metadata.items()),
    ]
    print_grid(["", path], facts)
    columns = zip(document["footer"].get("types", []), document["statistics"], strict=False)
    shown = [
        (number, kind["kind"], document["attributes"].get(str(number)), *_statistics(statistics))
        for number, (kind, statistics) in enumerate(columns)
    ]
    print_grid(["column", "type", "attributes", "values", "null", "statistics"], shown)
    for number, stripe in enumerate(document["stripes"]):
        _print_stripe(number, stripe, document["footer"]["stripes"][number])


@orc.command("data")
@click.argument("path", metavar="FILE.orc")
@click.option("--columns", metavar="NAME,…", help="The columns to print; all without this.")
@click.option("--rows", metavar="FIRST:LAST", help="The first row, from 0, and the one after the last.")
@click.option("--schema", metavar="TYPE", help="Read with another schema, as 'struct<id:bigint>'.")
@click.pass_context
def orc_data(context: click.Context, path: str, columns: str | None, rows: str | None, schema: str | None) -> None:
    """Print the rows of an ORC file as JSON, one per line."""
    _, properties = context.obj
    opened = ORCFile(path, storage=properties, schema=schema)
    names = columns.split(",") if columns else None
    for line in json_lines(opened, names, _span(rows, opened.nrows)):
        click.echo(line)


@orc.command("convert")
@click.argument("source", metavar="SOURCE")
@click.argument("target", metavar="TARGET")
@click.option("--schema", metavar="TYPE", help="The columns, as 'struct<id:bigint,name:string>'; found without this.")
@click.option("--from", "source_format", type=click.Choice(["csv", "json", "orc"]), help="The format of SOURCE.")
@click.option("--to", "target_format", type=click.Choice(["csv", "json", "orc"]), help="The format of TARGET.")
@click.option("--delimiter", default=",", help="What separates the fields of CSV.")
@click.option("--header/--no-header", default=True, help="Whether the first line of CSV has the names.")
@click.option("--null", "nulls", multiple=True, metavar="TEXT", help="The text of a null in CSV; by default empty.")
@click.option("--compression", help="The codec of the ORC file (zstd).")
@click.pass_context
def orc_convert(context: click.Context, /, source: str, target: str, **options: Any) -> None:
    """Convert CSV or JSON to ORC, or ORC to them; the names of the files decide the formats."""
    _, properties = context.obj
    options["format"] = options.pop("target_format")
    options["null_values"] = options.pop("nulls") or ("",)
    rows = convert(source, target, storage=properties, **options)
    print_done(f"wrote {rows} rows to {target}", {"rows": rows, "path": target})


@orc.command("check")
@click.argument("path", metavar="FILE.orc")
@click.pass_context
def orc_check(context: click.Context, path: str) -> None:
    """Check everything in an ORC file: structure, streams, statistics, indexes, Bloom filters.

    Prints problems in the order of the file, and exits with 1, or with 0 if there are none.
    """
    _, properties = context.obj
    problems = check(path, storage=properties)
    if wants_json():
        print_json([asdict(problem) for problem in problems])
    elif problems:
        print_text("\n".join(map(str, problems)))
    else:
        print_text(f"{path}: nothing is wrong")
    if problems:
        context.exit(1)


@orc.command("schema")
@click.argument("path", metavar="FILE.orc")
@click.pass_context
def orc_schema(context: click.Context, path: str) -> None:
    """Print the type of the rows of an ORC file, as ``--schema`` takes it."""
    _, properties = context.obj
    kind = ORCFile(path, storage=properties).type_description
    print_done(kind, {"schema": kind})


def _span(text: str | None, count: int) -> range | None:
    if text is None:
        return None
    first, colon, last = text.partition(":")
    if not (colon and (first.isdigit() or not first) and (last.isdigit() or not last)):
        raise InvalidArgumentError(f"--rows: expected FIRST:LAST, got {text!r}")
    return range(int(first or 0), int(last) if last else count)


def _print_stripe(number: int, stripe: dict[str, Any], place: dict[str, Any]) -> None:
    encodings = stripe["footer"].get("columns", [])
    rows = []
    for stream in stripe["streams"]:
        column = stream["column"]
        encoding = encodings[column].get("kind") if column < len(encodings) else None
        rows.append((column, stream["kind"], encoding, stream["offset"], stream["length"], stream.get("runs")))
    title = f"stripe {number}: {place.get('number_of_rows', 0)} rows from byte {place.get('offset', 0)}"
    print_grid(["column", "stream", "encoding", "offset", "bytes", "runs"], rows, title)


def _statistics(statistics: dict[str, Any]) -> tuple[Any, ...]:
    own = {key: value for key, value in statistics.items() if key.endswith("_statistics")}
    kind, values = next(iter(own.items()), ("", None))
    if values is not None and kind in _TIMES:
        values = {key: _moment(kind, value) if key in _BOUNDS else value for key, value in values.items()}
    return statistics.get("number_of_values"), statistics.get("has_null"), values


def _moment(kind: str, count: int | str) -> int | str:
    """Write milliseconds or days from the epoch as ISO 8601; numbers that no calendar of Python has stay numbers."""
    try:
        moment = _EPOCH + timedelta(**{_TIMES[kind]: int(count)})
    except OverflowError:
        return count
    # ORC keeps local times as if they were in UTC, so no offset is printed.
    return moment.date().isoformat() if kind == "date_statistics" else moment.replace(tzinfo=None).isoformat(sep=" ")
