"""Tables of every ORC type from a seed, and their rows in one plain form that every peer's answer is brought to.

Integers and days are numbers, floats the numbers of their bits, times seconds and nanoseconds of the wall clock,
decimals the text of their unscaled value, bytes hex, structs and lists lists, maps lists of pairs, unions tag and
value.
"""

from __future__ import annotations

import itertools
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

DAY = 86_400
#: Years that nanoseconds and every peer hold.
FIRST, LAST = -2_200_000_000, 7_200_000_000
LETTERS = np.array(["a", "b", "z", "Q", "0", " ", "é", "€", "\U00010348", "'"])


def integers(random: np.random.Generator, count: int, bits: int) -> np.ndarray:
    """Make integers of so many bits in a shape that one kind of run is made for."""
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    few = int(random.integers(1, bits))
    match random.integers(0, 7):
        case 0:  # short repeats
            values = np.repeat(random.integers(low, high, count), random.integers(1, 11, count))[:count]
        case 1:  # long repeats
            values = np.repeat(random.integers(low, high, count), random.integers(200, 700, count))[:count]
        case 2:  # a fixed step
            values = np.arange(count) * int(random.integers(-3, 4)) + int(random.integers(low // 2, high // 2))
        case 3:  # steps of one sign
            values = np.cumsum(random.integers(0, 1 << min(few, 12), count))
        case 4:  # few bits, and now and then many: patched base
            values = random.integers(0, 1 << min(few, 20), count)
            values = np.where(random.random(count) < 0.02, random.integers(0, high, count), values)
        case 5:  # so many bits
            values = random.integers(-(1 << few - 1), 1 << few - 1, count)
        case _:  # anything
            values = random.integers(low, high, count, endpoint=True)
            values[: min(2, count)] = [low, high][: min(2, count)]
    return np.clip(values, low, high)


def mask(random: np.random.Generator, count: int) -> np.ndarray | None:
    """Say which values are null: none, all, runs, or some here and there."""
    match random.integers(0, 6):
        case 0 | 1:
            return None
        case 2:
            return np.ones(count, bool)
        case 3:
            return np.arange(count) // int(random.integers(1, 400)) % 2 == 0
        case _:
            return random.random(count) < 0.2


def texts(random: np.random.Generator, count: int, longest: int) -> list[str]:
    """Make texts, of few distinct ones or of many; none ends in a space."""
    distinct = int(random.choice([1, 20, max(count, 1)]))
    lengths = random.integers(0, longest + 1, distinct)
    known = ["".join(random.choice(LETTERS, length)).rstrip() for length in lengths]
    return [known[at] for at in random.integers(0, distinct, count)]


def times(random: np.random.Generator, count: int, *, after: int = FIRST) -> np.ndarray:
    """Make nanoseconds; none in the last second before 1970, which ORC cannot hold."""
    seconds = random.integers(after, LAST, count)
    seconds = np.where(seconds == -1, 0, seconds)
    nanos = random.choice([0, 1, 120, 500_000_000, 999_999_999, 123_456_000], count)
    return seconds * 1_000_000_000 + nanos


LEAVES = [
    pa.field("", pa.bool_()),
    pa.field("", pa.int8()),
    pa.field("", pa.int16()),
    pa.field("", pa.int32()),
    pa.field("", pa.int64()),
    pa.field("", pa.float32()),
    pa.field("", pa.float64()),
    pa.field("", pa.string()),
    pa.field("", pa.binary()),
    pa.field("", pa.date32()),
    pa.field("", pa.timestamp("ns")),
    pa.field("", pa.timestamp("ns", "UTC")),
    pa.field("", pa.decimal128(9, 2)),
    pa.field("", pa.decimal128(18, 0)),
    pa.field("", pa.decimal128(38, 10)),
    pa.field("", pa.string(), metadata={"orc.type": "char(7)"}),
    pa.field("", pa.string(), metadata={"orc.type": "varchar(9)"}),
]


def any_field(random: np.random.Generator, name: str, depth: int) -> pa.Field:
    """Draw a type."""
    kind = int(random.integers(0, 5)) if depth else 4
    if kind == 0:
        return pa.field(name, pa.list_(any_field(random, "element", depth - 1)))
    if kind == 1:
        key = pa.field("key", pa.string(), nullable=False)
        return pa.field(name, pa.map_(key, any_field(random, "value", depth - 1)))
    if kind == 2:
        inner = [any_field(random, f"f{at}", depth - 1) for at in range(random.integers(1, 4))]
        return pa.field(name, pa.struct(inner))
    return leaf(random.choice(len(LEAVES)), name)


def leaf(number: int, name: str) -> pa.Field:
    """Give one of the leaves a name."""
    return LEAVES[number].with_name(name)


def values(random: np.random.Generator, field: pa.Field, count: int, *, after: int = FIRST) -> pa.Array:
    """Make values of a type."""
    kind, nulls = field.type, mask(random, count)
    if pa.types.is_struct(kind):
        columns = [values(random, inner, count, after=after) for inner in kind]
        return pa.StructArray.from_arrays(columns, fields=list(kind), mask=None if nulls is None else pa.array(nulls))
    if pa.types.is_list(kind) or pa.types.is_map(kind):
        lengths = random.integers(0, 4, count)
        missing = np.zeros(count, bool) if nulls is None else nulls
        ends = np.concatenate([[0], np.cumsum(np.where(missing, 0, lengths))])
        offsets = pa.array(ends, pa.int32(), mask=np.append(missing, False))
        if pa.types.is_list(kind):
            return pa.ListArray.from_arrays(offsets, values(random, kind.value_field, ends[-1], after=after), type=kind)
        keys = pa.array([f"k{at}" for at in range(ends[-1])], pa.string())
        return pa.MapArray.from_arrays(offsets, keys, values(random, kind.item_field, ends[-1], after=after), kind)
    return leaves(random, field, count, nulls, after)


def leaves(random: np.random.Generator, field: pa.Field, count: int, nulls: np.ndarray | None, after: int) -> pa.Array:
    """Make values of a type without children."""
    kind = field.type
    if pa.types.is_boolean(kind):
        bits = np.repeat(random.random(count) < 0.5, random.integers(1, 30, count))[:count]
        return pa.array(bits, kind, mask=nulls)
    if pa.types.is_integer(kind):
        return pa.array(integers(random, count, kind.bit_width).astype(f"i{kind.bit_width // 8}"), kind, mask=nulls)
    if pa.types.is_floating(kind):
        numbers = np.where(random.random(count) < 0.1, np.nan, random.normal(0, 1e6, count))
        return pa.array(numbers.astype(f"f{kind.bit_width // 8}"), kind, mask=nulls, from_pandas=False)
    if pa.types.is_date(kind):
        return pa.array(random.integers(FIRST // DAY, LAST // DAY, count).astype(np.int32), mask=nulls).cast(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(times(random, count, after=after), mask=nulls).cast(kind)
    if pa.types.is_decimal(kind):
        digits = random.integers(0, kind.precision + 1, count)
        unscaled = [int(random.random() * 10**own) * (-1) ** at for at, own in enumerate(digits.tolist())]
        decimals = [Decimal(own).scaleb(-kind.scale) for own in unscaled]
        return pa.array(decimals, kind, mask=nulls)
    if pa.types.is_binary(kind):
        return pa.array([random.bytes(own) for own in random.integers(0, 20, count)], kind, mask=nulls)
    longest = {b"char(7)": 7, b"varchar(9)": 9}.get((field.metadata or {}).get(b"orc.type", b""), 30)
    return pa.array(np.array(texts(random, count, longest), object), kind, mask=nulls)


def union(random: np.random.Generator, count: int) -> pa.Array:
    """Make unions of a number, a text and a list; some are null."""
    inner = [leaf(4, "0"), leaf(7, "1"), pa.field("2", pa.list_(leaf(3, "element")))]
    tags = random.integers(0, 4, count).astype(np.int8)
    offsets = np.zeros(count, np.int32)
    children = []
    for tag in range(4):
        own = tags == tag
        offsets[own] = np.arange(own.sum())
        children.append(values(random, inner[tag], int(own.sum())) if tag < 3 else pa.nulls(int(own.sum())))
    return pa.UnionArray.from_dense(pa.array(tags), pa.array(offsets), children, ["0", "1", "2", "null"])


def table(seed: int, *, after: int = FIRST, unions: bool = True) -> pa.Table:
    """Make every leaf type, some nested ones, and a union."""
    random = np.random.default_rng(seed)
    count = int(random.choice([0, 1, 1000, 2500], p=[0.05, 0.05, 0.3, 0.6]))
    fields = [leaf(number, f"leaf{number}") for number in range(len(LEAVES))]
    fields += [any_field(random, f"any{number}", 3) for number in range(4)]
    columns = [values(random, field, count, after=after) for field in fields]
    if unions:
        columns.append(union(random, count))
        fields.append(pa.field("union", columns[-1].type))
    return pa.table(columns, schema=pa.schema(fields))


def plain(array: pa.Array | pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """Bring values to the plain form; ``field`` is that of the table they come from."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in plain(chunk, field)]
    kind = array.type
    if pa.types.is_union(kind):
        inner = [plain(array.field(at), field.type.field(at)) for at in range(field.type.num_fields - 1)]
        inner.append([None] * len(array))
        places = zip(array.type_codes.to_pylist(), array.offsets.to_pylist(), strict=True)
        return [[tag, inner[tag][at]] if tag < len(inner) - 1 else None for tag, at in places]
    if pa.types.is_nested(kind):
        valid = array.is_valid().to_pylist()
        return [own if there else None for own, there in zip(plain_nested(array, field), valid, strict=True)]
    return plain_leaves(array, field)


def plain_nested(array: pa.Array, field: pa.Field) -> list[Any]:
    """Bring structs, lists and maps to the plain form, those that are null too."""
    if pa.types.is_struct(array.type):
        inner = [plain(array.field(at), field.type.field(at)) for at in range(field.type.num_fields)]
        return [list(row) for row in zip(*inner, strict=True)]
    offsets = array.offsets.to_pylist()
    if pa.types.is_map(array.type):
        pairs = zip(plain(array.keys, field.type.key_field), plain(array.items, field.type.item_field), strict=True)
        inner_rows = [list(pair) for pair in pairs]
    else:
        inner_rows = plain(array.values, field.type.value_field)
    base = offsets[0] if array.offset == 0 else 0
    return [inner_rows[start - base : end - base] for start, end in itertools.pairwise(offsets)]


def plain_leaves(array: pa.Array, field: pa.Field) -> list[Any]:
    """Bring values without children to the plain form."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[kind.unit]
        ticks = array.cast(pa.int64()).to_pylist()
        return [None if own is None else [own // scale, own % scale * (10**9 // scale)] for own in ticks]
    if pa.types.is_date(kind):
        return array.cast(pa.int32()).to_pylist()
    found = array.to_pylist()
    if pa.types.is_floating(kind):
        return [None if own is None else bits(own, kind.bit_width) for own in found]
    if pa.types.is_decimal(kind):
        return [None if own is None else str(int(own.scaleb(kind.scale))) for own in found]
    if pa.types.is_binary(kind):
        return [None if own is None else own.hex() for own in found]
    if (field.metadata or {}).get(b"orc.type", b"").startswith(b"char"):
        return [None if own is None else own.rstrip(" ") for own in found]
    return found


def bits(number: float, width: int) -> int:
    """Give the bits of a float as a signed integer."""
    own, whole = ("<f", "<i") if width == 32 else ("<d", "<q")
    return int(struct.unpack(whole, struct.pack(own, number))[0])


def rows(rows_of: pa.Table, schema: pa.Schema | None = None) -> list[list[Any]]:
    """Give the rows of a table in the plain form; ``schema`` is that of the table they come from."""
    fields = schema or rows_of.schema
    columns = [plain(column, field) for column, field in zip(rows_of.columns, fields, strict=True)]
    return [list(row) for row in zip(*columns, strict=True)]
