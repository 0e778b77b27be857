"""The commands about ORC files."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import click

from icefield.cli.options import CommandGroup, wants_json
from icefield.cli.output import print_grid, print_json
from icefield.orc import ORCFile

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
