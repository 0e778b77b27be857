"""Transforms of 5 million values beside ``pyiceberg_core.transform``, and beside a copy of the values.

The floor is a plain copy of the input's buffers: no kernel that writes a value for each one it reads can beat it
by much. Truncation of texts and bytes has a floor of its own, ``touch``: one byte read for each value, as far apart as
the values are. Of long values not much more than that is left to do, and a core reads memory only so fast.
Values come to a kernel from the caches, as batches that were just received do: see ``warm``.
Answers are compared before anything is timed; a transform that the peer refuses is measured without it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyiceberg_core import transform as core
from side_by_side import Row, Target, measure, report

import icefield as ice

YEARS = 50 * 365
WORDS = "The quick brown fox jumps over the lazy dog and comes back to see what the dog makes of it in the end. "


def texts(rng: np.random.Generator, count: int, shortest: int, longest: int) -> pa.Array:
    """ASCII texts of random lengths, cut from one another."""
    lengths = rng.integers(shortest, longest + 1, count)
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    data = np.resize(np.frombuffer(WORDS.encode(), np.uint8), offsets[-1]) ^ 0
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(data))


def columns(count: int) -> dict[str, tuple[pa.Array, list[str]]]:
    """Name to values and the transforms that are asked of them."""
    rng = np.random.default_rng(8)
    longs = pa.array(rng.integers(-(2**62), 2**62, count))
    ints = pa.array(rng.integers(-(2**31), 2**31, count, dtype=np.int32))
    dates = pa.array(rng.integers(-YEARS, YEARS, count, dtype=np.int32)).view(pa.date32())
    # Whole seconds: the peer's day is one too late for times before 1970 less than a second before midnight.
    instants = pa.array(rng.integers(-YEARS * 86_400, YEARS * 86_400, count) * 1_000_000)
    micros = instants.view(pa.timestamp("us"))
    nanos = pa.array(instants.to_numpy() * 1000).view(pa.timestamp("ns"))
    wide = np.zeros((count, 2), np.int64)
    wide[:, 0] = rng.integers(-(10**11), 10**11, count)
    wide[:, 1] = wide[:, 0] >> 63
    decimals = pa.Array.from_buffers(pa.decimal128(18, 2), count, [None, pa.py_buffer(wide)])
    uuids = pa.Array.from_buffers(pa.binary(16), count, [None, pa.py_buffer(rng.bytes(16 * count))])
    short, long = texts(rng, count, 3, 11), texts(rng, count // 4, 60, 140)
    times = ["bucket[16]", "year", "month", "day", "hour"]
    return {
        "int": (ints, ["bucket[16]", "truncate[10]"]),
        "long": (longs, ["bucket[16]", "truncate[10]"]),
        "date": (dates, ["bucket[16]", "year", "month", "day"]),
        "timestamp": (micros, times),
        "timestamptz": (micros.cast(pa.timestamp("us", "UTC")), ["bucket[16]", "day"]),
        "timestamp_ns": (nanos, times),
        "decimal(18, 2)": (decimals, ["bucket[16]", "truncate[10]"]),
        "string, 3 to 11 bytes": (short, ["bucket[16]", "truncate[4]"]),
        "string, 60 to 140 bytes": (long, ["bucket[16]", "truncate[4]", "truncate[50]"]),
        "string view, 3 to 11 bytes": (short.cast(pa.string_view()), ["bucket[16]", "truncate[4]"]),
        "binary, 3 to 11 bytes": (short.cast(pa.binary()), ["bucket[16]", "truncate[4]"]),
        "binary, 60 to 140 bytes": (long.cast(pa.binary()), ["bucket[16]", "truncate[4]"]),
        "uuid": (uuids, ["bucket[16]"]),
    }


def peer(name: str) -> Callable[[pa.Array], pa.Array]:
    """Find the same transform in ``pyiceberg_core``."""
    kind, _, number = name.rstrip("]").partition("[")
    function = getattr(core, kind)
    return (lambda array: function(array, int(number))) if number else function


def copy(array: pa.Array) -> Callable[[], object]:
    """Copy the bytes of an array."""
    buffers = [np.frombuffer(buffer, np.uint8) for buffer in array.buffers() if buffer is not None]
    return lambda: [buffer.copy() for buffer in buffers]


def touch(array: pa.Array) -> Callable[[], object]:
    """Read one byte for each value."""
    data = np.frombuffer(array.buffers()[-1], np.uint8)
    return data[:: max(len(data) // len(array), 1)].max


def agree(ours: pa.Array, theirs: pa.Array) -> bool:
    """Compare answers; a day may be given as a date or as its number."""
    return ours.equals(theirs if theirs.type == ours.type else theirs.cast(ours.type))


def target(column: str, transform: str) -> Target:
    """Say how many times the peer's speed is wanted: where it is near a copy already, its own."""
    kind = transform.partition("[")[0]
    times = 1
    if column.startswith(("string", "binary", "uuid", "decimal")) or (column, kind) == ("long", "truncate"):
        times = 4
    elif kind == "bucket" or (column.startswith("timestamp") and kind in {"year", "month", "day"}):
        times = 10
    return Target("pyiceberg_core", 1 / times)


def ask(column: str, array: pa.Array, transform: str, rounds: int) -> Row:
    """Check that the answers agree, then time them."""
    question = f"{transform} of {column}"
    mine, other = ice.transforms.parse(transform), peer(transform)
    runs: dict[str, Callable[[], object]] = {"icefield": lambda: mine(array)}
    try:
        theirs = other(array)
    except Exception as error:  # noqa: BLE001
        print(f"pyiceberg_core refuses {question}: {error}")
    else:
        if not agree(mine(array), theirs):
            msg = f"{question}: the peers disagree, there is nothing to time"
            raise AssertionError(msg)
        runs["pyiceberg_core"] = lambda: other(array)
    runs["copy"] = copy(array)
    if transform.startswith("truncate") and array.type in (pa.string(), pa.binary()):
        runs["touch"] = touch(array)
    targets = [target(column, transform)]
    return measure(question, runs, rounds=rounds, amount=len(array), targets=targets, warm=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--values", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    rows = [
        ask(column, array, transform, arguments.rounds)
        for column, (array, transforms) in columns(arguments.values).items()
        for transform in transforms
    ]
    report(f"{arguments.values:,} values", rows, floor="copy", unit="values")


if __name__ == "__main__":
    main()
