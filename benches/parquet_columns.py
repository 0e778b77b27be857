"""What do our own decoders of Parquet gain over the parquet crate's, type by type?

One table has a column of each type, with nulls and without; a question reads one of them. "library" is the same build
with ``ICEFIELD_PARQUET=library``: the crate fetches and decodes whole row groups, and nothing of ``file/parquet/flat``
and little of ``file/parquet/pages`` runs. A decoder that gains less than a tenth is not worth its code.

    python benches/parquet_columns.py                       # all rows; one row in a hundred by a filter; deletes
    python benches/parquet_columns.py --codec none --rounds 9 --types double,text

Environment: ``ICEFIELD_THREADS`` (1 measures decoders rather than the machine), ``ICEFIELD_BENCH_ROWS`` (2000000).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from side_by_side import Row, Target, measure, report

import icefield as ice

ROWS = int(os.environ.get("ICEFIELD_BENCH_ROWS", "2000000"))
VARIABLE = "ICEFIELD_PARQUET"
#: Our time for a column, as a share of the library's.
WORTH = 0.9


def decimals(numbers: np.ndarray, precision: int) -> pa.Array:
    """Take numbers as unscaled decimals."""
    unscaled = np.zeros((len(numbers), 2), np.int64)
    unscaled[:, 0] = numbers
    kind = pa.decimal128(precision, 2)
    return pa.Array.from_buffers(kind, len(numbers), [None, pa.py_buffer(unscaled)])


def texts(numbers: np.ndarray) -> pa.Array:
    """Give hexadecimal texts of 1 to 16 characters."""
    return pa.array([f"{number:x}" for number in (numbers >> (numbers % 60)).tolist()])


def columns(rows: int) -> Iterator[tuple[str, pa.Array]]:
    """Make a column of each type."""
    rng = np.random.default_rng(1)
    long = rng.integers(0, 1 << 62, rows)
    cities = pa.array([f"city of {place}" for place in range(200)])
    yield "int32", pa.array(rng.integers(0, 1 << 31, rows).astype(np.int32))
    yield "int32_keys", pa.array(rng.integers(0, 1000, rows).astype(np.int32))
    yield "int64", pa.array(long)
    yield "int64_keys", pa.array(rng.integers(0, 1000, rows))
    yield "float", pa.array(rng.random(rows).astype(np.float32))
    yield "double", pa.array(rng.random(rows))
    yield "bool", pa.array(rng.random(rows) < 0.5)
    yield "date", pa.array(rng.integers(0, 20_000, rows).astype(np.int32)).cast(pa.date32())
    yield "timestamp", pa.array(np.arange(rows) * 1_000_000 + rng.integers(0, 1_000_000, rows), pa.timestamp("us"))
    yield "decimal9", decimals(rng.integers(0, 10**9, rows), 9)
    yield "decimal18", decimals(rng.integers(0, 10**17, rows), 18)
    yield "decimal38", decimals(long, 38)
    yield "text_keys", cities.take(pa.array(rng.integers(0, 200, rows)))
    yield "text", texts(long)
    yield "binary", texts(rng.permutation(long)).cast(pa.binary())


def made(folder: Path, codec: str) -> ice.Table:
    """Make the table: its one file has ten row groups, and `k` for the filter."""
    rng = np.random.default_rng(2)
    found: dict[str, pa.Array] = {"k": pa.array(rng.integers(0, 1000, ROWS).astype(np.int32))}
    fields = [pa.field("k", pa.int32(), nullable=False)]
    missing = pa.array(rng.random(ROWS) < 0.1)
    for name, column in columns(ROWS):
        found[name] = column
        fields.append(pa.field(name, column.type, nullable=False))
        with_nulls = pa.compute.if_else(missing, pa.scalar(None, column.type), column)
        found[f"{name}_null"] = with_nulls
        fields.append(pa.field(f"{name}_null", column.type))
    rows = pa.table(list(found.values()), pa.schema(fields))
    catalog = ice.load_catalog("bench", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"))
    catalog.create_namespace("db")
    table = catalog.create_table("db.t", schema=rows.schema)
    path = folder / "rows.parquet"
    pq.write_table(
        rows,
        path,
        compression=codec,
        row_group_size=ROWS // 10,
        use_dictionary=[name for name in found if name.removesuffix("_null").endswith("keys")],
        store_decimal_as_integer=True,
        write_page_index=True,
    )
    table.add_files([str(path)])
    return table


def read(table: ice.Table, decoders: str, column: str, filtered: str | None) -> pa.Table:
    """Read a column with our decoders or the library's."""
    os.environ[VARIABLE] = decoders
    found = table.scan(filtered, selected_fields=(column,)).to_arrow()
    os.environ.pop(VARIABLE)
    return found


def lines(table: ice.Table, names: list[str], filtered: str | None, rounds: int) -> list[Row]:
    """Time each column."""
    rows = []
    for name in names:
        peers: dict[str, Callable[[], pa.Table]] = {
            "icefield": partial(read, table, "own", name, filtered),
            "library": partial(read, table, "library", name, filtered),
        }
        own, other = (run() for run in peers.values())
        assert own.equals(other), name
        target = [Target("library", WORTH)]
        rows.append(measure(name, peers, rounds=rounds, amount=own.num_rows, targets=target, warm=True))
    return rows


def main() -> None:
    """Ask what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--codec", default="zstd")
    parser.add_argument("--types", default="", help="some columns, by the beginnings of their names")
    options = parser.parse_args()
    asked = tuple(word.strip() for word in options.types.split(",") if word.strip())
    with tempfile.TemporaryDirectory() as folder:
        table = made(Path(folder), options.codec)
        names = [name for name in table.schema().as_arrow().names if name != "k" and name.startswith(asked or "")]
        about = f"{ROWS:,} rows, {options.codec}"
        report(f"all of {about}", lines(table, names, None, options.rounds))
        report(f"1 % scattered of {about}", lines(table, names, "k < 10", options.rounds))
        with table.transaction() as transaction:
            transaction.set_properties({"write.delete.mode": "merge-on-read"})
        table.delete("k >= 900")
        report(f"{about}, every tenth row deleted", lines(table, names, None, options.rounds))


if __name__ == "__main__":
    main()
