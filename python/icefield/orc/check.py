"""Checks of ORC files: structure, streams, statistics, indexes and Bloom filters against the values."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from icefield.errors import CorruptDataError, IcefieldError, UnsupportedFeatureError
from icefield.orc.comparison import Trust, compared
from icefield.orc.reader import Keys, ORCFile, Source
from icefield.orc.seen import Seen, merged, see, stream_problems
from icefield.orc.structure import Record, Structure, structure_problems

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Problem", "check"]

#: Problems after which a check ends.
_MOST = 100


_STRIPE, _COLUMN = re.compile(r"stripe (\d+)"), re.compile(r"column (\d+)(?: ([A-Z_0-9]{3,}))?")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in an ORC file that contradicts the specification or the values.

    Attributes
    ----------
    place
        Where: the part of the file, for example ``stripe 0, column 3 DATA``.
    message
        What is wrong there.
    stripe
        The stripe, from 0; ``None`` for the tail.
    column
        The column id, as in the footer; ``None`` if no single column is meant.
    stream
        The kind of the stream, for example ``DATA``.
    row_group
        The row group of the stripe, from 0.
    byte
        The first byte of that part in the file.

    """

    place: str
    message: str
    stripe: int | None = None
    column: int | None = None
    stream: str | None = None
    row_group: int | None = None
    byte: int | None = None

    def __str__(self) -> str:
        """Return the place and what is wrong."""
        byte = "" if self.byte is None else f" (byte {self.byte})"
        return f"{self.place}{byte}: {self.message}"


def check(source: Source, *, storage: Mapping[str, str] | None = None, keys: Keys = None) -> list[Problem]:
    """Check everything in an ORC file.

    The postscript, the footer and the footers of the stripes; the streams: their places, lengths, runs and numbers of
    values; the values: that they decode, are UTF-8 and fit their types; the statistics of row groups, stripes and the
    file, the positions of the row index, and the Bloom filters, against the values. Statistics that are known to be
    wrong for the writer of the file (docs/orc-pitfalls.md) are not compared.

    Parameters
    ----------
    source
        A path, a URL, the bytes of the file, or a binary file.
    storage
        Properties of the storage that a path or URL is read from, named as those of a catalog.
    keys
        Keys of encrypted columns, as in `ORCFile`.

    Returns
    -------
    list of Problem
        What is wrong, in the order of the checks; nothing for a sound file. After 100 problems the check ends.

    Raises
    ------
    MissingFileError
        If there is no such file.

    """
    found: list[Problem] = []
    try:
        file = ORCFile(source, storage=storage, keys=keys, strings="binary", trim_char=False, out_of_range="saturate")
    except (CorruptDataError, UnsupportedFeatureError) as error:
        return [_damaged(error, "tail")]
    for problem in _problems(file):
        found.append(problem)
        if len(found) == _MOST:
            break
    return found


def _problems(file: ORCFile) -> Iterator[Problem]:
    counted = True
    try:
        document = file.inspect(runs=True)
    except CorruptDataError as error:
        yield _damaged(error, "streams")
        counted = False
    if not counted:
        try:
            document = file.inspect()
        except CorruptDataError:
            return
    structure = Structure(document, file)
    for problem in structure_problems(structure):
        yield Problem(**problem)
    trust = Trust(document)
    whole: dict[int, Seen] | None = {}
    for stripe in range(len(structure.stripes)):
        seen, complete = yield from _stripe_problems(file, structure, trust, stripe, counted=counted)
        if whole is not None:
            whole = merged(whole, seen) if complete else None
    if whole:
        yield from _compared(structure, trust, whole, document["statistics"], "file", None)


def _stripe_problems(
    file: ORCFile, structure: Structure, trust: Trust, stripe: int, *, counted: bool
) -> Generator[Problem, None, tuple[dict[int, Seen], bool]]:
    """Check a stripe; returns what its columns hold, and whether all could be read."""
    seen: dict[int, Seen] = {0: Seen.of_rows(structure.rows(stripe))} if structure.named else {}
    arrays: dict[int, pa.Array] = {}
    complete = True
    for top in range(structure.tops):
        try:
            arrays[top] = file.read_stripe(stripe, [top] if structure.named else None).column(0)
            seen.update((yield from _column_problems(structure, trust, stripe, top, arrays[top])))
        except IcefieldError as error:
            yield _damaged(error, f"stripe {stripe}")
            complete = False
    yield from _seek_problems(file, structure, stripe, arrays)
    for problem in stream_problems(structure, stripe, seen, counted=counted):
        yield Problem(**problem)
    yield from _filter_problems(file, structure, stripe)
    yield from _compared(structure, trust, seen, structure.stripe_statistics(stripe), f"stripe {stripe}", stripe)
    return seen, complete


def _column_problems(
    structure: Structure, trust: Trust, stripe: int, top: int, array: pa.Array
) -> Generator[Problem, None, dict[int, Seen]]:
    """Check a top-level column of a stripe; returns what its columns hold."""
    column = structure.column(top)
    rows = structure.rows(stripe)
    if len(array) != rows:
        yield Problem(f"stripe {stripe}, column {column}", f"{len(array)} values of {rows} rows", stripe, column)
        return {}
    stride = structure.stride or rows
    own: dict[int, Seen] = {}
    for group, start in enumerate(range(0, rows, max(stride, 1))):
        part = structure.slice(array, start, min(stride, rows - start))
        seen = see(structure, column, part)
        for at, values in seen.items():
            for message in values.faults:
                place = f"stripe {stripe}, column {at}, row group {group}"
                yield Problem(place, message, stripe, at, "DATA", group, structure.byte(stripe, at, "DATA"))
            entries = structure.index(stripe, at)
            if structure.stride and entries is not None and group < len(entries):
                yield from _group_problems(structure, trust, values, entries[group], stripe, at, group)
            own[at] = own[at].merged(values) if at in own else values
    return own


def _seek_problems(file: ORCFile, structure: Structure, stripe: int, arrays: dict[int, pa.Array]) -> Iterator[Problem]:
    """Read each row group from its positions, and compare it with what was read from the start."""
    if not (structure.stride and structure.seekable):
        return
    rows, first = structure.rows(stripe), structure.first_row(stripe)
    # The number of rows is only what the footer says, unless a column was read.
    tops = [top for top, array in sorted(arrays.items()) if len(array) == rows]
    if not tops:
        return
    for group, start in enumerate(range(0, rows, structure.stride)):
        count = min(structure.stride, rows - start)
        span = range(first + start, first + start + count)
        if not group or _reads_alike(file, structure, tops, arrays, span, start):
            continue
        for top in tops:
            column = structure.column(top)
            if not _reads_alike(file, structure, [top], arrays, span, start):
                yield Problem(
                    f"stripe {stripe}, column {column} ROW_INDEX, row group {group}",
                    "reading from its positions fails, or gives other values than reading from the start",
                    stripe,
                    column,
                    "ROW_INDEX",
                    group,
                    structure.byte(stripe, column, "ROW_INDEX"),
                )


def _reads_alike(
    file: ORCFile, structure: Structure, tops: list[int], arrays: dict[int, pa.Array], span: range, start: int
) -> bool:
    try:
        read = file.read(tops if structure.named else None, rows=span, use_threads=False)
    except IcefieldError:
        return False
    parts = [structure.slice(arrays[top], start, len(span)) for top in tops]
    columns = [column.combine_chunks() for column in read.columns]
    return all(len(own) == len(part) and _same(own, part) for own, part in zip(columns, parts, strict=True))


def _same(one: pa.Array, other: pa.Array) -> bool:
    # NaN equals nothing for Arrow.
    return bool(one.equals(other)) or repr(one.to_pylist()) == repr(other.to_pylist())


def _group_problems(
    structure: Structure, trust: Trust, seen: Seen, entry: Record, stripe: int, column: int, group: int
) -> Iterator[Problem]:
    where = (stripe, column, "ROW_INDEX", group, structure.byte(stripe, column, "ROW_INDEX"))
    place = f"stripe {stripe}, column {column} ROW_INDEX, row group {group}"
    if group == 0 and any(int(position) for position in entry.get("positions", [])):
        yield Problem(place, f"the first positions are {entry['positions']}, not zeros", *where)
    if "statistics" in entry and column not in structure.uncounted:
        for message in compared(structure.types[column], entry["statistics"], seen, trust):
            yield Problem(f"{place}, statistics", message, *where)


def _filter_problems(file: ORCFile, structure: Structure, stripe: int) -> Iterator[Problem]:
    try:
        lacking = file._file.lacking_in_filters(stripe)  # noqa: SLF001 - of the same package
    except IcefieldError as error:
        yield _damaged(error, f"stripe {stripe}")
        return
    for column, stream, group in lacking:
        place = f"stripe {stripe}, column {column} {stream}" + ("" if group is None else f", row group {group}")
        message = "there is not one filter for each row group" if group is None else "a value is not in the filter"
        yield Problem(place, message, stripe, column, stream, group, structure.byte(stripe, column, stream))


def _compared(
    structure: Structure,
    trust: Trust,
    seen: dict[int, Seen],
    statistics: list[Record] | None,
    what: str,
    stripe: int | None,
) -> Iterator[Problem]:
    if statistics is None or not trust.totals:
        return
    for column, values in sorted(seen.items()):
        if column >= len(statistics) or column in structure.uncounted:
            continue
        for message in compared(structure.types[column], statistics[column], values, trust):
            yield Problem(f"{what} statistics, column {column}", message, stripe, column)


def _damaged(error: IcefieldError, place: str) -> Problem:
    """Return what the reader says about damaged bytes."""
    part = getattr(error, "place", None)
    text = f"{part or ''} {error}"
    stripe, column = _STRIPE.search(text), _COLUMN.search(text)
    found = [f"stripe {stripe[1]}"] if stripe else []
    found += [f"column {column[1]} {column[2] or ''}".rstrip()] if column else []
    return Problem(
        part or ", ".join(found) or place,
        str(error),
        int(stripe[1]) if stripe else None,
        int(column[1]) if column else None,
        column[2] if column else None,
        byte=getattr(error, "offset", None) if not found else None,
    )
