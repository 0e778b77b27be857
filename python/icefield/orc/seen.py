"""What the values of a column are: counts, bounds, sums, as statistics have them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from icefield._support.optional import require
from icefield.orc.structure import Record, Structure

if TYPE_CHECKING:
    import pyarrow as pa

#: A value of a column.
Value: TypeAlias = "Any"

__all__ = ["Seen", "merged", "see", "stream_problems"]

_INTEGERS = frozenset({"BYTE", "SHORT", "INT", "LONG"})
_FLOATS = frozenset({"FLOAT", "DOUBLE"})
_TEXT = frozenset({"STRING", "CHAR", "VARCHAR"})
_TIMES = frozenset({"TIMESTAMP", "TIMESTAMP_INSTANT"})
_BYTES = frozenset({"BINARY", "GEOMETRY", "GEOGRAPHY"})
_MOST_LONG = 2**63 - 1
#: More digits than a sum of any values of a file has.
_DIGITS = 100


@dataclass(frozen=True, slots=True)
class Seen:
    """The values of one column in some rows."""

    #: Slots, that is, values and nulls, without those whose parent is null.
    slots: int = 0
    count: int = 0
    least: Value = None
    most: Value = None
    #: Of numbers; bytes of text and binary; true booleans; elements of lists and maps.
    sum: Value = 0
    #: The sum of magnitudes, to judge rounding.
    reach: float = 0.0
    nan: bool = False
    infinite: bool = False
    text: bool = True
    faults: list[str] = field(default_factory=list)

    @classmethod
    def of_rows(cls, rows: int) -> Seen:
        """Return what a struct of the root is."""
        return cls(slots=rows, count=rows)

    def merged(self, later: Seen) -> Seen:
        """Add the values of later rows."""
        return Seen(
            self.slots + later.slots,
            self.count + later.count,
            later.least if self.least is None else self.least if later.least is None else min(self.least, later.least),
            later.most if self.most is None else self.most if later.most is None else max(self.most, later.most),
            self.sum + later.sum,
            self.reach + later.reach,
            self.nan or later.nan,
            self.infinite or later.infinite,
            self.text and later.text,
        )


def merged(own: dict[int, Seen], later: dict[int, Seen]) -> dict[int, Seen]:
    """Add the values of later rows, column by column."""
    return {**own, **{column: own[column].merged(seen) if column in own else seen for column, seen in later.items()}}


def see(structure: Structure, column: int, array: pa.Array) -> dict[int, Seen]:
    """Return what a column and those below it hold; ``array`` has only slots whose parent is not null."""
    found: dict[int, Seen] = {}
    _see(structure, column, array, found)
    return found


def _see(structure: Structure, column: int, array: pa.Array, found: dict[int, Seen]) -> None:
    kind = structure.types[column]
    name, below = kind["kind"], kind.get("subtypes", [])
    if name == "UNION":
        _see_union(structure, column, array, found)
        return
    values = array.drop_null()
    seen = Seen(slots=len(array), count=len(values))
    if name == "STRUCT":
        for at, child in enumerate(below):
            _see(structure, child, values.field(at), found)
    elif name == "LIST":
        seen = _with_lengths(seen, values.value_lengths())
        _see(structure, below[0], values.flatten(), found)
    elif name == "MAP":
        starts = values.offsets.to_numpy()
        lengths = require("pyarrow").array(starts[1:] - starts[:-1])
        seen = _with_lengths(seen, lengths)
        first, last = (int(starts[0]), int(starts[-1])) if len(values) else (0, 0)
        _see(structure, below[0], values.keys[first:last], found)
        _see(structure, below[1], values.items[first:last], found)
    elif len(values):
        seen = _leaf(seen, name, kind, values)
    found[column] = seen


def _with_lengths(seen: Seen, lengths: pa.Array) -> Seen:
    if not len(lengths):
        return seen
    numbers = lengths.to_pylist()
    return replace(seen, least=min(numbers), most=max(numbers), sum=sum(numbers))


def _see_union(structure: Structure, column: int, array: pa.Array, found: dict[int, Seen]) -> None:
    pyarrow = require("pyarrow")
    below = structure.types[column].get("subtypes", [])
    if not pyarrow.types.is_union(array.type):
        return
    codes, offsets = array.type_codes.to_numpy(), array.offsets.to_numpy()
    for tag, child in enumerate(below):
        _see(structure, child, array.field(tag).take(pyarrow.array(offsets[codes == tag])), found)
    found[column] = Seen(slots=len(array), count=int((codes < len(below)).sum()))


def _leaf(seen: Seen, name: str, kind: Record, values: pa.Array) -> Seen:
    pyarrow = require("pyarrow")
    from pyarrow import compute

    if name == "BOOLEAN":
        return replace(seen, sum=int(compute.sum(values).as_py()))
    if name in _BYTES or name in _TEXT:
        total = int(compute.sum(compute.binary_length(values).cast(pyarrow.int64())).as_py())
        return _text(replace(seen, sum=total), kind, values) if name in _TEXT else replace(seen, sum=total)
    if name in _TIMES:
        values = values.cast(pyarrow.int64())
    if name == "DATE":
        values = values.cast(pyarrow.int32())
    if name in _FLOATS:
        return _real(seen, values)
    bounds = compute.min_max(values).as_py()
    seen = replace(seen, least=bounds["min"], most=bounds["max"])
    if name in _INTEGERS or name == "DECIMAL":
        small = max(abs(int(bounds["min"])), abs(int(bounds["max"]))) * len(values) <= _MOST_LONG
        exact = name in _INTEGERS and small
        if exact:
            return replace(seen, sum=compute.sum(values.cast(pyarrow.int64())).as_py())
        # Sums of long decimals have more digits than Python's decimals keep.
        with localcontext(Context(prec=_DIGITS)):
            exact_total = Decimal(sum(values.to_pylist()))
        return replace(seen, sum=int(exact_total) if name in _INTEGERS else Fraction(exact_total))
    return seen


def _real(seen: Seen, values: pa.Array) -> Seen:
    from pyarrow import compute

    doubles = values.cast(require("pyarrow").float64())
    numbers = [number for number in doubles.to_pylist() if not math.isnan(number)]
    finite = [number for number in numbers if math.isfinite(number)]
    seen = replace(seen, nan=len(numbers) < len(values), infinite=len(finite) < len(numbers))
    seen = replace(seen, sum=compute.sum(require("pyarrow").array(finite, doubles.type)).as_py() or 0.0)
    seen = replace(seen, reach=sum(map(abs, finite)))
    return replace(seen, least=min(numbers), most=max(numbers)) if numbers else seen


def _text(seen: Seen, kind: Record, values: pa.Array) -> Seen:
    pyarrow = require("pyarrow")
    from pyarrow import compute

    bounds = compute.min_max(values).as_py()
    seen = replace(seen, least=bounds["min"], most=bounds["max"])
    try:
        text = values.cast(pyarrow.string())
        text.validate(full=True)
    except pyarrow.ArrowInvalid:
        return replace(seen, text=False, faults=["a text is not UTF-8"])
    longest, limit = compute.max(compute.utf8_length(text)).as_py(), kind.get("maximum_length")
    if limit and longest > int(limit):
        return replace(seen, faults=[f"a text of {longest} characters, but the type has {limit}"])
    return seen


def stream_problems(structure: Structure, stripe: int, seen: dict[int, Seen], *, counted: bool) -> Iterator[Record]:
    """Compare the lengths of streams, and where they were counted their values, with the values of the columns."""
    if structure.encrypted:
        return
    streams = {(own["column"], own["kind"]): own for own in structure.streams(stripe)}
    for column, values in sorted(seen.items()):
        if column in structure.uncounted:
            continue
        encoding = structure.encodings(stripe)[column] if column < len(structure.encodings(stripe)) else {}
        for kind, unit, expected in _expected(structure.types[column], encoding, values, streams, column):
            stream = streams.get((column, kind), {"length": 0})
            if not counted and stream["length"]:
                continue
            own = stream.get(unit, 0)
            if own != expected:
                what = "values" if unit == "values" else "bytes"
                message = f"{own} {what}, but the column needs {expected}"
                where = {"stripe": stripe, "column": column, "stream": kind, "byte": stream.get("offset")}
                yield {"place": f"stripe {stripe}, column {column} {kind}", "message": message, **where}


def _expected(
    kind: Record, encoding: Record, seen: Seen, streams: dict[tuple[int, str], Record], column: int
) -> Iterator[tuple[str, str, int]]:
    """Yield for each stream what it counts, and how many there must be."""
    if (column, "PRESENT") in streams:
        yield "PRESENT", "values", -(-seen.slots // 8)
    name, count = kind["kind"], seen.count
    plain_decimal = name == "DECIMAL" and (column, "SECONDARY") in streams
    if name == "BOOLEAN":
        yield "DATA", "values", -(-count // 8)
    elif name in _INTEGERS | {"DATE", "UNION"}:
        yield "DATA", "values", count
    elif name in _FLOATS:
        yield "DATA", "plainLength", count * (4 if name == "FLOAT" else 8)
    elif name in _TIMES or plain_decimal:
        yield "DATA", "values", count
        yield "SECONDARY", "values", count
    elif name in {"LIST", "MAP"}:
        yield "LENGTH", "values", count
    elif name in _TEXT and encoding.get("kind", "DIRECT").startswith("DICTIONARY"):
        yield "DATA", "values", count
        yield "LENGTH", "values", int(encoding.get("dictionary_size", 0))
    elif name in _TEXT or name in _BYTES:
        yield "LENGTH", "values", count
        yield "DATA", "plainLength", seen.sum
