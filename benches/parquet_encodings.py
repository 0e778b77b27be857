"""What do our own decoders of Parquet gain over the parquet crate's, by type, encoding, share of nulls and codec?

Each line reads one column of 2,000,000 rows twice by one thread, by our decoders and with ``ICEFIELD_PARQUET=library``,
and compares the processor time: the median of turns that take each other's place. A line says "crate" where the
footer's encodings leave the column to the crate in both cases: there the lines differ by how pages are fetched only. A
decoder that saves less than a tenth is not worth its code.

    python benches/parquet_encodings.py
    python benches/parquet_encodings.py --types int64,text --rounds 9 --filter "k < 10"
    python benches/parquet_encodings.py --deletes

Environment: ``ICEFIELD_BENCH_ROWS`` (2000000).
"""

from __future__ import annotations

import argparse
import gc
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

os.environ["ICEFIELD_THREADS"] = "1"

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from parquet_columns import ROWS, VARIABLE, WORTH, decimals, texts

import icefield as ice

CODECS = ("none", "zstd")
NULLS = (0.0, 0.01, 0.5)
NUMBERS = ("PLAIN", "dictionary", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT")
FLOATS = ("PLAIN", "dictionary", "BYTE_STREAM_SPLIT")
TEXTS = ("PLAIN", "dictionary", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY")
FIXED = ("PLAIN", "dictionary", "BYTE_STREAM_SPLIT")


@dataclass(frozen=True, slots=True)
class Kind:
    """A type: its values, few different ones for dictionaries, and the encodings that it can have."""

    name: str
    values: pa.Array
    keys: pa.Array
    encodings: tuple[str, ...]


def kinds(rows: int) -> Iterator[Kind]:
    """Make the values of each type."""
    rng = np.random.default_rng(1)
    long, few = rng.integers(0, 1 << 62, rows), rng.integers(0, 1000, rows)
    days = rng.integers(0, 20_000, rows).astype(np.int32)
    times = np.arange(rows) * 1_000_000 + rng.integers(0, 1_000_000, rows)
    yield Kind("int32", pa.array(long.astype(np.int32)), pa.array(few.astype(np.int32)), NUMBERS)
    yield Kind("int64", pa.array(long), pa.array(few), NUMBERS)
    yield Kind("float", pa.array(rng.random(rows, np.float32)), pa.array(few.astype(np.float32)), FLOATS)
    yield Kind("double", pa.array(rng.random(rows)), pa.array(few.astype(np.float64)), FLOATS)
    yield Kind("bool", pa.array(rng.random(rows) < 0.5), pa.array(few < 500), ("PLAIN", "RLE"))
    yield Kind("date", *(pa.array(days // part).cast(pa.date32()) for part in (1, 20)), encodings=NUMBERS)
    yield Kind("timestamp", *(pa.array(times // part, pa.timestamp("us")) for part in (1, 1 << 32)), encodings=NUMBERS)
    yield Kind("decimal9", *(decimals(numbers, 9) for numbers in (long % 10**9, few)), encodings=NUMBERS)
    yield Kind("decimal18", *(decimals(numbers, 18) for numbers in (long % 10**17, few)), encodings=NUMBERS)
    yield Kind("decimal38", *(decimals(numbers, 38) for numbers in (long, few)), encodings=FIXED)
    cities = pa.array([f"city of {place}" for place in range(1000)])
    yield Kind("text", texts(long), cities.take(pa.array(few)), TEXTS)
    hashes = pa.array([f"{number:016x}" for number in long.tolist()])
    yield Kind("hash", hashes, hashes.take(pa.array(few)), TEXTS)
    yield Kind(
        "binary", texts(rng.permutation(long)).cast(pa.binary()), cities.take(pa.array(few)).cast(pa.binary()), TEXTS
    )


@dataclass(frozen=True, slots=True)
class Line:
    """A column to read, and its figures."""

    kind: str
    encoding: str
    nulls: float
    codec: str

    @property
    def column(self) -> str:
        """The name of the column."""
        return f"{self.encoding}_{self.nulls:g}_{self.codec}".replace(".", "_")


def made(folder: Path, kind: Kind) -> tuple[ice.Table, list[Line]]:
    """Make a table with a column for each line, and `k` for filters."""
    rng = np.random.default_rng(2)
    lines = [
        Line(kind.name, encoding, nulls, codec) for encoding in kind.encodings for nulls in NULLS for codec in CODECS
    ]
    arrays = {"k": pa.array(rng.integers(0, 1000, len(kind.values)).astype(np.int32))}
    for line in lines:
        values = kind.keys if line.encoding == "dictionary" else kind.values
        if line.nulls:
            missing = pa.array(rng.random(len(values)) < line.nulls)
            values = pc.if_else(missing, pa.scalar(None, values.type), values)
        arrays[line.column] = values
    required = {"k"} | {line.column for line in lines if not line.nulls}
    fields = [pa.field(name, array.type, nullable=name not in required) for name, array in arrays.items()]
    rows = pa.table(list(arrays.values()), pa.schema(fields))
    catalog = ice.load_catalog("bench", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"))
    catalog.create_namespace_if_not_exists("db")
    table = catalog.create_table(f"db.{kind.name}", schema=rows.schema)
    path = folder / f"{kind.name}.parquet"
    pq.write_table(
        rows,
        path,
        compression={"k": "none"} | {line.column: line.codec for line in lines},
        row_group_size=ROWS // 10,
        use_dictionary=[line.column for line in lines if line.encoding == "dictionary"],
        column_encoding={line.column: line.encoding for line in lines if line.encoding != "dictionary"},
        store_decimal_as_integer=True,
        write_page_index=True,
    )
    table.add_files([str(path)])
    return table, lines


def read(table: ice.Table, decoders: str, column: str, filtered: str | None) -> tuple[pa.Table, float]:
    """Read a column; the rows and the seconds of processors."""
    os.environ[VARIABLE] = decoders
    started = process_time()
    found = table.scan(filtered, selected_fields=(column,)).to_arrow()
    elapsed = process_time() - started
    os.environ.pop(VARIABLE)
    return found, elapsed


def figures(table: ice.Table, line: Line, filtered: str | None, rounds: int) -> tuple[float, float]:
    """Give the median seconds of our decoders and of the crate's."""
    own, other = (read(table, decoders, line.column, filtered)[0] for decoders in ("own", "library"))
    assert own.equals(other), line
    del own, other
    seconds: dict[str, list[float]] = {"own": [], "library": []}
    for turn in range(rounds):
        for decoders in sorted(seconds, reverse=turn % 2 == 1):
            gc.collect()
            read(table, decoders, line.column, filtered)
            seconds[decoders].append(read(table, decoders, line.column, filtered)[1])
    return median(seconds["own"]), median(seconds["library"])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--types", default="", help="some types by name")
    parser.add_argument("--filter", default=None, help="a filter of k, which has 0 to 999 at random")
    parser.add_argument("--deletes", action="store_true", help="with a position delete for every tenth row, at random")
    options = parser.parse_args()
    asked = {word.strip() for word in options.types.split(",") if word.strip()}
    about = (options.filter or "all of them") + (", every tenth row deleted" if options.deletes else "")
    heads = [f"{share * 100:g} % nulls, {codec}" for share in NULLS for codec in CODECS]
    print(f"Milliseconds of a processor, ours / the crate's: {ROWS:,} rows, {about}\n")
    print("| type, encoding | " + " | ".join(heads) + " |")
    print("| --- |" + " ---: |" * len(heads))
    for kind in kinds(ROWS):
        if asked and kind.name not in asked:
            continue
        with tempfile.TemporaryDirectory() as folder:
            table, lines = made(Path(folder), kind)
            if options.deletes:
                with table.transaction() as transaction:
                    transaction.set_properties({"write.delete.mode": "merge-on-read"})
                table.delete("k >= 900")
            for encoding in kind.encodings:
                cells = []
                for line in lines:
                    if line.encoding == encoding:
                        own, other = figures(table, line, options.filter, options.rounds)
                        share = f"{own / other:.2f}"
                        share = f"**{share}**" if own > WORTH * other else share
                        cells.append(f"{own * 1e3:.1f} / {other * 1e3:.1f} = {share}")
                print(f"| {kind.name}, {encoding.lower()} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
