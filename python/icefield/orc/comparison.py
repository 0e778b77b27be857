"""Statistics of a file against the values; which of them are known to be wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

from icefield.orc.seen import Seen
from icefield.orc.structure import Record

__all__ = ["Trust", "compared"]

_JAVA, _CPP = 0, 1
#: Versions of the Java writer with a fix of its statistics.
_HIVE_8732, _ORC_135, _ORC_517 = 1, 6, 7
#: Digits of a decimal that is held in 64 bits.
_SHORT = 18
#: 2037-01-01 in microseconds: local times from then on depend on the rules that a writer knew.
_KNOWN_ZONES = 2_114_380_800 * 10**6
#: The first day of the Gregorian calendar.
_CHANGE = -141_427
_MOST_LONG = 2**63 - 1


class Trust:
    """Which statistics of a file can be compared."""

    def __init__(self, document: Record) -> None:
        self.java = int(document["footer"].get("writer", 0)) == _JAVA
        version = int(document["postscript"].get("writer_version", 0))
        self.version = version if self.java else max(version, _ORC_517)
        self.foreign = int(document["footer"].get("writer", 0)) == _CPP
        #: Without a row index, Java writes zeros as the statistics of stripes and of the file.
        self.totals = not (self.java and not document["footer"].get("row_index_stride", 0))
        self.julian = document["footer"].get("calendar") == "JULIAN_GREGORIAN"

    def bounds(self, kind: Record) -> bool:
        """Whether the bounds of a column are right."""
        match kind["kind"]:
            case "TIMESTAMP" | "TIMESTAMP_INSTANT":
                # The C++ library rounds times before 1970 up, and has its own rules of zones.
                return self.version >= _ORC_135 and not self.foreign
            case "DECIMAL" if int(kind.get("precision", 38)) <= _SHORT:
                return self.version >= _HIVE_8732 and self.version != _ORC_135
            case "STRING" | "CHAR" | "VARCHAR" | "DATE" | "BOOLEAN" | "DECIMAL" | "BINARY":
                return self.version >= _HIVE_8732
        return True


def compared(kind: Record, statistics: Record, seen: Seen, trust: Trust) -> Iterator[str]:
    """Yield what is wrong in the statistics of a column."""
    if "number_of_values" in statistics and int(statistics["number_of_values"]) != seen.count:
        yield f"number_of_values is {statistics['number_of_values']}, but there are {seen.count}"
        return
    if statistics.get("has_null") is False and seen.slots > seen.count:
        yield f"has_null is false, but there are {seen.slots - seen.count} nulls"
    if not seen.count or not trust.bounds(kind):
        return
    comparisons = {
        "int_statistics": _integers,
        "double_statistics": _doubles,
        "string_statistics": _texts,
        "bucket_statistics": _trues,
        "decimal_statistics": _decimals,
        "date_statistics": _days,
        "binary_statistics": _sum,
        "timestamp_statistics": _times,
        "collection_statistics": _children,
    }
    for name, own in statistics.items():
        if name in comparisons:
            yield from comparisons[name](own, seen, trust)


def _differ(name: str, stored: object, found: object) -> Iterator[str]:
    if stored != found:
        yield f"{name} is {stored}, but that of the values is {found}"


def _integers(own: Record, seen: Seen, _: Trust) -> Iterator[str]:
    for name, found in (("minimum", seen.least), ("maximum", seen.most), ("sum", seen.sum)):
        if name in own and (name != "sum" or abs(seen.sum) <= _MOST_LONG):
            yield from _differ(name, int(own[name]), found)


def _doubles(own: Record, seen: Seen, _: Trust) -> Iterator[str]:
    if seen.nan:
        return
    for name, found in (("minimum", seen.least), ("maximum", seen.most)):
        if name in own:
            yield from _differ(name, float(own[name]), found)
    if "sum" in own and not seen.infinite:
        stored = float(own["sum"])
        if math.isfinite(stored) and abs(stored - seen.sum) > max(seen.reach, 1e-300) * 1e-9:
            yield f"sum is {stored}, but that of the values is {seen.sum}"


def _texts(own: Record, seen: Seen, trust: Trust) -> Iterator[str]:
    # Java replaces bytes that are not UTF-8.
    if not seen.text:
        return
    for name, found, wrong in (("minimum", seen.least, None), ("maximum", seen.most, None)):
        if name in own and "\ufffd" not in own[name] and wrong is None:
            yield from _differ(name, own[name], found.decode())
    if "lower_bound" in own and own["lower_bound"].encode() > seen.least:
        yield "lower_bound is above the least value"
    if "upper_bound" in own and "\ufffd" not in own["upper_bound"] and own["upper_bound"].encode() < seen.most:
        yield "upper_bound is below the greatest value"
    yield from _sum(own, seen, trust)


def _sum(own: Record, seen: Seen, _: Trust) -> Iterator[str]:
    if "sum" in own:
        yield from _differ("sum", int(own["sum"]), seen.sum)


def _trues(own: Record, seen: Seen, _: Trust) -> Iterator[str]:
    if len(own.get("count", [])) == 1:
        yield from _differ("count", int(own["count"][0]), seen.sum)


def _decimals(own: Record, seen: Seen, trust: Trust) -> Iterator[str]:
    for name, found in (("minimum", seen.least), ("maximum", seen.most), ("sum", seen.sum)):
        if name not in own or (name == "sum" and trust.java):
            continue
        try:
            stored = Decimal(own[name])
        except InvalidOperation:
            yield f"{name} is not a number: {own[name]!r}"
            continue
        if stored != found:
            shown = found if name != "sum" else f"{found.numerator}/{found.denominator}"
            yield f"{name} is {stored}, but that of the values is {shown}"


def _days(own: Record, seen: Seen, trust: Trust) -> Iterator[str]:
    for name, found in (("minimum", seen.least), ("maximum", seen.most)):
        if name in own and not (trust.julian and found < _CHANGE):
            yield from _differ(name, int(own[name]), found)


def _times(own: Record, seen: Seen, trust: Trust) -> Iterator[str]:
    for name, found in (("minimum", seen.least), ("maximum", seen.most)):
        if f"{name}_utc" not in own or found > _KNOWN_ZONES or (trust.julian and found // 86_400_000_000 < _CHANGE):
            continue
        millis = int(own[f"{name}_utc"])
        yield from _differ(f"{name}_utc", millis, found // 1000)
        if f"{name}_nanos" in own and millis == found // 1000:
            yield from _differ(f"{name}_nanos", (int(own[f"{name}_nanos"]) - 1) // 1000, found % 1000)


def _children(own: Record, seen: Seen, trust: Trust) -> Iterator[str]:
    # Java writes the capacity of its vectors, the C++ library zeros.
    if trust.java or trust.foreign:
        return
    for name, found in (("min_children", seen.least), ("max_children", seen.most), ("total_children", seen.sum)):
        if name in own:
            yield from _differ(name, int(own[name]), found)
