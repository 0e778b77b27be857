"""Texts for people: partition specs and sort orders as ``create_table`` takes them, times, sizes, numbers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield.metadata import Snapshot
    from icefield.partitioning import PartitionField, PartitionSpec
    from icefield.schema import Schema
    from icefield.sorting import SortField, SortOrder

__all__ = ["age_of", "columns_of", "contents_of", "counted", "partition_texts", "size_of", "sort_texts", "time_of"]

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_AGES = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def partition_texts(spec: PartitionSpec, schema: Schema) -> list[str]:
    """Write the fields of a spec: ``month(time)``, ``bucket(8, carrier)``."""
    return [_call(field, schema) for field in spec.fields]


def sort_texts(order: SortOrder, schema: Schema) -> list[str]:
    """Write the fields of an order: ``time desc nulls last``."""
    return [
        f"{_call(field, schema)} {field.direction} {str(field.null_order).replace('-', ' ')}" for field in order.fields
    ]


def _call(field: PartitionField | SortField, schema: Schema) -> str:
    sources = ", ".join(schema.find_column_name(source) or f"column {source}" for source in field.source_ids)
    transform = field.transform
    if transform.is_identity:
        return sources
    number = transform.num_buckets or transform.width
    return f"{transform.name}({sources})" if number is None else f"{transform.name}({number}, {sources})"


def columns_of(schema: Schema) -> tuple[Sequence[str], list[Sequence[object]]]:
    """Return the columns of a schema as rows under headings."""
    identifiers = set(schema.identifier_field_ids)
    rows: list[Sequence[object]] = [
        (
            field.field_id,
            field.name,
            field.field_type,
            "identifier" if field.field_id in identifiers else "required" if field.required else "optional",
            field.doc,
        )
        for field in schema.fields
    ]
    return ("id", "column", "type", "presence", "doc"), rows


def time_of(milliseconds: int) -> str:
    """Write a moment in UTC, as ``2026-01-31 12:00:00.250 UTC``; as milliseconds where no calendar has it."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return f"{milliseconds} ms"
    return f"{moment.replace(tzinfo=None).isoformat(sep=' ', timespec='milliseconds')} UTC"


def age_of(milliseconds: int) -> str:
    """Write a duration in its largest whole unit: ``30 d``, ``90 min``."""
    for unit, length in _AGES:
        if milliseconds and milliseconds % length == 0:
            return f"{milliseconds // length:,} {unit}"
    return f"{milliseconds:,} ms"


def size_of(number: int) -> str:
    """Write a number of bytes: ``512 B``, ``1.5 KiB``, ``12.0 MiB``."""
    if number < 1024:  # noqa: PLR2004
        return f"{number} B"
    power = 0
    # What rounds to 1,024 is written in the next unit.
    while power < len(_UNITS) and number / 1024**power >= 1023.95:  # noqa: PLR2004
        power += 1
    return f"{number / 1024**power:,.1f} {_UNITS[power - 1]}"


def counted(number: int, what: str) -> str:
    """Write a number of things: ``1 file``, ``1,200 files``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def contents_of(snapshot: Snapshot | None) -> dict[str, str]:
    """Return how many rows and files a snapshot has, as its summary says.

    Deleted rows are part of the number of rows in a summary, so that they are named beside it.
    """
    if snapshot is None:
        return {"rows": "0", "files": "0 data files"}
    summary: dict[str, str] = snapshot.summary or {}

    def number(key: str) -> int | None:
        text = str(summary.get(f"total-{key}") or "")
        return int(text) if text.isascii() and text.isdigit() else None

    rows = number("records")
    shown = "unknown" if rows is None else f"{rows:,}"
    deletes = [(number("position-deletes"), "position delete"), (number("equality-deletes"), "equality delete")]
    if any(count for count, _ in deletes):
        shown += f" before {' and '.join(counted(count, what) for count, what in deletes if count)}"
    kinds = [(number("data-files"), "data file"), (number("delete-files") or None, "delete file")]
    files = ", ".join(counted(count, what) for count, what in kinds if count is not None) or "unknown"
    size = number("files-size")
    return {"rows": shown, "files": files if size is None else f"{files}, {size_of(size)}"}
