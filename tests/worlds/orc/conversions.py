"""Values of every type that ORC files are converted from, and what they are converted to."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

#: What orc-core reads, as recorded by ``tests/interop/test_orc_conversions.py``.
RECORDED = Path(__file__).parents[2] / "data" / "orc_conversions.json"
#: What microseconds in 64 bits hold, in seconds.
MOST_SECONDS = 2**63 // 10**6


def whole(bits: int) -> Callable[[random.Random], int]:
    def draw(dice: random.Random) -> int:
        width = dice.randrange(1, bits)
        return dice.choice([0, -1, 1, dice.randrange(-(2**width), 2**width), 2 ** (bits - 1) - 1, -(2 ** (bits - 1))])

    return draw


def real(dice: random.Random) -> float:
    return dice.choice(
        [
            *(0.0, -0.0, float("nan"), float("inf"), float("-inf"), 5e-324, 1e7, 1e-3, 2.0**63, -(2.0**63), 0.5, -1.5),
            *(dice.uniform(-200, 200), dice.uniform(-1e10, 1e10), dice.gauss(0, 1) * 10.0 ** dice.randrange(-30, 30)),
            float(dice.randrange(-(10**6), 10**6)),
            dice.randrange(-(10**12), 10**12) / 1000,
        ]
    )


def decimal(precision: int, scale: int) -> Callable[[random.Random], Decimal]:
    def draw(dice: random.Random) -> Decimal:
        digits = dice.randrange(1, precision + 1)
        unscaled = dice.choice(
            [0, 1, -1, dice.randrange(-(10**digits) + 1, 10**digits), dice.randrange(-500, 500) * 10**scale]
        )
        unscaled = unscaled if abs(unscaled) < 10**precision else 0
        return Decimal(unscaled).scaleb(-scale)

    return draw


def moment(dice: random.Random) -> int:
    """Give nanoseconds from 1970. No time of the second before it, which ORC does not hold."""
    seconds = dice.choice(
        [dice.randrange(-(9 * 10**9), 9 * 10**9), dice.randrange(0, 2 * 10**9), 86400 * dice.randrange(-9000, 9000)]
    )
    nanos = dice.choice([0, 0, 500_000_000, 123_456_000, dice.randrange(10**9)])
    return seconds * 10**9 + (nanos if seconds != -1 else 0)


def day(dice: random.Random) -> date:
    return date(1970, 1, 1) + timedelta(
        days=dice.choice([0, dice.randrange(-700_000, 2_900_000), dice.randrange(20_000)])
    )


def words(dice: random.Random) -> str:
    """Give text that may be something else."""
    number = str(dice.choice([whole(8), whole(16), whole(32), whole(64)])(dice))
    exact = str(decimal(dice.randrange(1, 38), 6)(dice))
    stamp = f"{day(dice)} {dice.randrange(26):02}:{dice.randrange(61):02}:{dice.randrange(61):02}"
    fraction = stamp + "." + str(dice.randrange(10 ** dice.randrange(1, 10)))
    zone = dice.choice(
        ["UTC", "Z", "America/New_York", "Europe/Berlin", "+02:00", "GMT-03:30", "UTC+01:00", "Mars", "", "utc"]
    )
    return dice.choice(
        [
            *(
                number,
                number,
                f"+{number}",
                f" {number}",
                f"{number} ",
                exact,
                exact,
                repr(real(dice)),
                f"{exact}e{dice.randrange(-9, 9)}",
            ),
            *(str(day(dice)), str(day(dice)), f"{day(dice)} ", stamp, stamp, fraction, stamp[:-3]),
            *(f"{stamp} {zone}", f"{stamp[:-3]} {zone}", f"{fraction} {zone}", "2019-02-30", "2019-02-30 10:00:00"),
            *("+12019-01-01", "12019-01-01", "-0005-03-01", "0000-01-01", "2019-1-1", "24:00", "2020-01-01 24:00:00"),
            *(
                "TRUE",
                "true",
                "1.",
                ".5",
                "-",
                "",
                " ",
                "NaN",
                "Infinity",
                "1e400",
                "0x1p3",
                "1_000",
                "12f",
                "9" * 40,
                "0." + "7" * 50,
            ),
            *("ä€😀 ", "text  ", "  x", "a" * 12, "0000000012", "-0", "1E5"),
        ]
    )


#: Types of the file, and how their values are drawn.
SOURCES: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "boolean": (pa.bool_(), lambda dice: dice.random() < 0.5),
    "tinyint": (pa.int8(), whole(8)),
    "smallint": (pa.int16(), whole(16)),
    "int": (pa.int32(), whole(32)),
    "bigint": (pa.int64(), whole(64)),
    "float": (pa.float32(), real),
    "double": (pa.float64(), real),
    "decimal(9,3)": (pa.decimal128(9, 3), decimal(9, 3)),
    "decimal(38,10)": (pa.decimal128(38, 10), decimal(38, 10)),
    "string": (pa.string(), words),
    "char(12)": (pa.string(), words),
    "varchar(20)": (pa.string(), words),
    "binary": (pa.binary(), lambda dice: dice.randbytes(dice.randrange(5))),
    "date": (pa.date32(), day),
    "timestamp": (pa.timestamp("ns"), moment),
    "timestamp with local time zone": (pa.timestamp("ns", "UTC"), moment),
}
TARGETS = [*SOURCES, "decimal(5,1)", "decimal(18,0)", "decimal(38,0)", "char(4)", "varchar(4)"]
#: What orc-core refuses; it lists binary to date, and then fails.
NUMBERS = {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal"}
TIMES = {"timestamp", "timestamp with local time zone"}


def base(kind: str) -> str:
    return kind.partition("(")[0]


def converted(source: str, target: str) -> bool:
    wanted = base(target)
    match base(source):
        case own if own in NUMBERS:
            return wanted not in {"binary", "date"}
        case "binary":
            return wanted not in NUMBERS | TIMES | {"date"}
        case "date":
            return wanted not in NUMBERS | {"binary"}
        case own if own in TIMES:
            return wanted != "binary"
    return True


def agreed(source: str, target: str, value: Any, theirs: Any) -> Any:
    """Give what we read for what orc-core reads, by the differences that docs/differences.md lists."""
    wanted = base(target)
    if wanted in TIMES and theirs is None and isinstance(value, float) and -0.0005 <= value < 0:
        return [0, 0]
    if wanted in TIMES and theirs is not None:
        if base(source) in NUMBERS and isinstance(value, int | float | Decimal) and abs(value) > MOST_SECONDS * 0.99:
            return None
        return [theirs[0], theirs[1] // 1000 * 1000]
    if base(source) in TIMES and value is not None and value < 0 and value % 10**9:
        if wanted == "date":
            return value // (86400 * 10**9)
        if wanted == "decimal" and value > -(10**9) and theirs is not None:
            return str(-abs(int(theirs)))
    return theirs


def drawn(seed: int, rows: int) -> dict[str, list[Any]]:
    """Draw values of every type; a tenth is null."""
    dice = random.Random(seed)
    found = {}
    for kind, (_, draw) in SOURCES.items():
        values = [None if dice.random() < 0.1 else draw(dice) for _ in range(rows)]
        most = int(kind.partition("(")[2][:-1]) if "char" in kind else None
        found[kind] = [value[:most] if most and value is not None else value for value in values]
    return found


def table(values: dict[str, list[Any]]) -> pa.Table:
    """Make the table of these values; its columns are ``c0`` and so on."""
    arrays, fields = [], []
    for number, (kind, (data_type, _)) in enumerate(SOURCES.items()):
        plain = pa.int64() if pa.types.is_timestamp(data_type) else data_type
        arrays.append(pa.array(values[kind], plain).cast(data_type))
        fields.append(pa.field(f"c{number}", data_type, metadata={"orc.type": kind} if "char" in kind else None))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def schema_of(target: str) -> tuple[list[str], str]:
    """Give the types that are converted to a type, and the schema that asks for it."""
    sources = [(f"c{number}", kind) for number, kind in enumerate(SOURCES) if converted(kind, target)]
    return [kind for _, kind in sources], f"struct<{','.join(f'{name}:{target}' for name, _ in sources)}>"


def as_json(values: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Write values as JSON holds them."""

    def one(value: Any) -> Any:
        return value.hex() if isinstance(value, bytes) else value if value is None else str(value)

    return {kind: [one(value) for value in own] for kind, own in values.items()}


def recorded() -> tuple[dict[str, list[Any]], dict[str, dict[str, list[Any]]]]:
    """Read the recorded values, and what they are by target and source."""
    document = json.loads(RECORDED.read_text())
    parsers: dict[str, Callable[[str], Any]] = {
        "boolean": lambda text: text == "True",
        "float": float,
        "double": float,
        "binary": bytes.fromhex,
        "date": date.fromisoformat,
        **dict.fromkeys(["string", "char", "varchar"], str),
        "decimal": Decimal,
    }
    values = {
        kind: [None if text is None else parsers.get(base(kind), int)(text) for text in own]
        for kind, own in document["values"].items()
    }
    return values, document["targets"]
