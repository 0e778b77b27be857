"""The tables of ``orc.py``: TPC-H-like line items and a wide table, the same for the same seed and size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SEED = 20
DAY0 = 8036  # 1992-01-02
SENTENCE = (
    "carefully final deposits sleep furiously across the regular ideas quickly bold requests haggle blithely even "
    "accounts nag slyly express packages boost after pending theodolites among silent foxes are ironic pinto beans "
    "above special instructions use fluffily daring platelets wake unusual dependencies along courts detect"
)


def picked(random: np.random.Generator, values: list[str], rows: int) -> pa.Array:
    """Pick one of the values for each row."""
    codes = pa.array(random.integers(0, len(values), rows, dtype=np.int32))
    return pa.DictionaryArray.from_arrays(codes, pa.array(values)).cast(pa.string())


def texts(random: np.random.Generator, rows: int, low: int, high: int) -> pa.Array:
    """Cut texts of ``low`` to ``high`` bytes out of a long sentence, as TPC-H's own generator does."""
    pool = np.frombuffer(
        " ".join(np.array(SENTENCE.split())[random.integers(0, len(SENTENCE.split()), 1 << 18)]).encode(), np.uint8
    )
    lengths = random.integers(low, high + 1, rows)
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    starts = random.integers(0, len(pool) - high, rows)
    at = np.arange(offsets[-1], dtype=np.int32) - np.repeat(offsets[:-1] - starts.astype(np.int32), lengths)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(pool[at]))


def money(cents: np.ndarray) -> pa.Array:
    """Take cents as ``decimal(15, 2)``."""
    halves = np.empty((len(cents), 2), np.int64)
    halves[:, 0], halves[:, 1] = cents, cents >> 63
    return pa.Array.from_buffers(pa.decimal128(15, 2), len(cents), [None, pa.py_buffer(halves)])


def lineitem(rows: int) -> pa.Table:
    """Make line items: 16 columns, sorted by order key; keys, dates and prices hang together as in TPC-H."""
    random = np.random.default_rng(SEED)
    of_order = random.integers(1, 8, rows // 2 + 8)
    order = np.repeat(np.arange(len(of_order)), of_order)[:rows]
    first = np.concatenate(([0], np.cumsum(of_order)))[order]
    part = random.integers(1, max(rows // 30, 2), rows)
    quantity = random.integers(1, 51, rows)
    price = 90000 + (part // 10) % 20001 + 100 * (part % 1000)
    ordered = random.integers(0, 2406, len(of_order))[order]
    shipped = DAY0 + ordered + random.integers(1, 122, rows)
    received = shipped + random.integers(1, 31, rows)
    returned = np.where(received <= 9298, random.integers(0, 2, rows), 2).astype(np.int32)
    open_ = (shipped > 9298).astype(np.int32)
    modes = ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
    instructions = ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"]
    return pa.table(
        {
            "l_orderkey": pa.array((order // 8) * 32 + order % 8 + 1),
            "l_partkey": pa.array(part),
            "l_suppkey": pa.array((part + random.integers(0, 4, rows) * (rows // 600 + 1)) % (rows // 600 + 1) + 1),
            "l_linenumber": pa.array((np.arange(rows) - first + 1).astype(np.int32)),
            "l_quantity": money(quantity * 100),
            "l_extendedprice": money(quantity * price),
            "l_discount": money(random.integers(0, 11, rows)),
            "l_tax": money(random.integers(0, 9, rows)),
            "l_returnflag": pa.DictionaryArray.from_arrays(returned, ["A", "R", "N"]).cast(pa.string()),
            "l_linestatus": pa.DictionaryArray.from_arrays(open_, ["F", "O"]).cast(pa.string()),
            "l_shipdate": pa.array(shipped.astype(np.int32)).cast(pa.date32()),
            "l_commitdate": pa.array((DAY0 + ordered + random.integers(30, 91, rows)).astype(np.int32), pa.date32()),
            "l_receiptdate": pa.array(received.astype(np.int32)).cast(pa.date32()),
            "l_shipinstruct": picked(random, instructions, rows),
            "l_shipmode": picked(random, modes, rows),
            "l_comment": texts(random, rows, 10, 43),
        }
    )


def wide(rows: int) -> pa.Table:
    """Make 48 columns: integers and doubles of several shapes, times, texts, flags; every third column has nulls."""
    random = np.random.default_rng(SEED + 1)
    columns: dict[str, pa.Array] = {}
    for number in range(48):
        nulls = random.random(rows) < 0.1 if number % 3 == 0 else None
        values: np.ndarray
        match number % 8:
            case 0:
                values, kind = random.integers(0, 1 << (8 + number), rows), pa.int64()
            case 1:
                values, kind = random.integers(-1000, 1000, rows).astype(np.int32), pa.int32()
            case 2:
                values, kind = random.normal(0, 1000, rows), pa.float64()
            case 3:
                values, kind = random.integers(0, 100_000, rows) / 100, pa.float64()
            case 4:
                values, kind = 1_600_000_000_000_000 + random.integers(0, 10**14, rows), pa.timestamp("us")
            case 5:
                texts_ = [f"value-{n:04d}" for n in range(50 * number)]
                columns[f"c{number:02d}"] = picked(random, texts_, rows)
                continue
            case 6:
                columns[f"c{number:02d}"] = texts(random, rows, 0, 24)
                continue
            case _:
                values, kind = random.random(rows) < 0.3, pa.bool_()
        columns[f"c{number:02d}"] = pa.array(values, kind, mask=nulls)
    return pa.table(columns)
