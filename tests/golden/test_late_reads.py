"""Rows that scattered filters keep, whose column is decoded first: as the library reads them, and as pyarrow does."""

from __future__ import annotations

import random
from datetime import date, datetime, time, timezone
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.expressions import BooleanExpression, EqualTo, GreaterThanOrEqual, LessThan

ROWS = 6000
CODECS = ("none", "snappy", "zstd", "gzip", "lz4")


def columns(rng: np.random.Generator) -> dict[str, pa.Array]:
    """Make a column of each primitive type and two nested ones; all values of a file differ in few columns only."""
    long, few = rng.integers(-(1 << 62), 1 << 62, ROWS), rng.integers(0, 40, ROWS)
    days = pa.array(rng.integers(-1000, 20_000, ROWS).astype(np.int32)).cast(pa.date32())
    times = pa.array(rng.integers(0, 1 << 50, ROWS))
    return {
        "integer": pa.array(long.astype(np.int32)),
        "long": pa.array(long),
        "key": pa.array(few),
        "float": pa.array(rng.random(ROWS).astype(np.float32)),
        "double": pa.array(rng.normal(size=ROWS)),
        "flag": pa.array(few < 20),
        "day": days,
        "hour": pa.array(rng.integers(0, 86_400_000_000, ROWS), pa.time64("us")),
        "when": times.cast(pa.timestamp("us")),
        "zoned": times.cast(pa.timestamp("us", "UTC")),
        "small": pa.array([Decimal(int(number)) / 100 for number in long % 10**9], pa.decimal128(9, 2)),
        "amount": pa.array([Decimal(int(number)) / 1000 for number in long % 10**17], pa.decimal128(18, 3)),
        "large": pa.array([Decimal(int(number)) * 10**12 for number in long], pa.decimal128(38, 0)),
        "text": pa.array([f"{number:x}" * (number % 4) + "ä" for number in long % 10**9]),
        "city": pa.array([f"city {number}" for number in few]),
        "hash": pa.array([f"{number:016x}" for number in long % (1 << 62)]),
        "bytes": pa.array([rng.bytes(int(number) % 30) for number in few]),
        "fixed": pa.array([rng.bytes(5) for _ in range(ROWS)], pa.binary(5)),
        "list": pa.array([[float(number), 1.0][: number % 3] for number in few], pa.list_(pa.float64())),
        "struct": pa.array([{"a": int(number), "b": f"{number}"} for number in few]),
    }


#: Columns of filters.
FLAT = tuple(name for name in columns(np.random.default_rng(0)) if name not in ("list", "struct"))


def made(folder: Path, seed: int, version: int) -> tuple[ice.Table, pa.Table]:
    """Make a table of one file, written in a way that a seed draws."""
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    arrays, fields = [], []
    # Half of the files have no nulls at all.
    shares = [0.0] if seed % 2 else [0.0, 0.01, 0.5, 1.0]
    for name, values in columns(rng).items():
        share = choose.choice(shares)
        array = pc.if_else(pa.array(rng.random(ROWS) < share), pa.scalar(None, values.type), values)
        arrays.append(array)
        fields.append(pa.field(name, array.type, nullable=bool(share) or choose.random() < 0.5))
    rows = pa.table(arrays, pa.schema(fields))
    rows = rows.append_column(pa.field("row", pa.int64(), nullable=False), pa.array(np.arange(ROWS)))
    catalog = ice.load_catalog("f", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"))
    catalog.create_namespace("a")
    properties = {"format-version": str(version), "write.delete.mode": "merge-on-read"}
    table = catalog.create_table("a.t", rows.schema, properties=properties)
    path = folder / "rows.parquet"
    dictionary = choose.choice([True, False, ["city", "key", "flag"]])
    pq.write_table(
        rows,
        path,
        compression=choose.choice(CODECS),
        use_dictionary=dictionary,
        # Small ones are full in the middle of a column chunk.
        dictionary_pagesize_limit=choose.choice([2000, 1 << 20]),
        data_page_size=choose.choice([300, 5000, 1 << 20]),
        write_batch_size=choose.choice([16, 1000]),
        row_group_size=choose.choice([ROWS, 2500]),
        data_page_version=choose.choice(["1.0", "2.0"]),
        write_page_index=choose.random() < 0.6,
        store_decimal_as_integer=choose.random() < 0.7,
    )
    table.add_files([str(path)])
    return table, pq.read_table(path, schema=rows.schema)


def literal(value: pa.Scalar) -> object:
    """Take a value for a filter."""
    found = value.as_py()
    assert isinstance(found, (bool, int, float, str, bytes, date, datetime, time, Decimal)), found
    return found.replace(tzinfo=timezone.utc) if pa.types.is_timestamp(value.type) and value.type.tz else found


def filters(
    rows: pa.Table, name: str, rng: np.random.Generator
) -> dict[str, tuple[BooleanExpression, pa.ChunkedArray]]:
    """Give filters that keep none, one, one of a hundred, half and all rows of a column, and pyarrow's answers."""
    column = rows[name]
    present = column.drop_null().combine_chunks()
    if len(present) == 0:
        return {}
    kind = present.type
    # pyarrow orders no fixed bytes.
    key = present.cast(pa.binary()) if pa.types.is_fixed_size_binary(kind) else present
    compared = column.cast(pa.binary()) if pa.types.is_fixed_size_binary(kind) else column
    ordered = key.take(pc.array_sort_indices(key))

    def value(place: float) -> pa.Scalar:
        return ordered[int(place * (len(ordered) - 1))]

    some = key[int(rng.integers(len(key)))]
    return {
        "none": (LessThan(name, literal(value(0))), pc.less(compared, value(0))),
        "equal": (EqualTo(name, literal(some)), pc.equal(compared, some)),
        "scattered": (LessThan(name, literal(value(0.01))), pc.less(compared, value(0.01))),
        "half": (LessThan(name, literal(value(0.5))), pc.less(compared, value(0.5))),
        "all": (GreaterThanOrEqual(name, literal(value(0))), pc.greater_equal(compared, value(0))),
    }


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_kept_rows(seed: int, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, rows = made(tmp_path, 10 * seed + version, version)
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    present: pa.Array | pa.ChunkedArray = pa.array([True] * ROWS)
    compared = kept = 0
    for step in ("plain", "deletes"):
        if step == "deletes":
            table.delete("row >= 100 and row < 110")
            table.delete(" or ".join(f"row = {row}" for row in rng.integers(0, ROWS, 60).tolist()))
            left = table.scan(selected_fields=("row",)).to_arrow()["row"]
            assert ROWS - 70 <= len(left) < ROWS - 10
            present = pc.is_in(rows["row"], value_set=left.combine_chunks())
        for name in choose.sample(FLAT, 6):
            for about, (question, answers) in filters(rows, name, rng).items():
                wanted = [*choose.sample(FLAT, 5), "row"]
                # A nested column beside those is decoded by the library, and so are the others then.
                wanted += choose.choice([[], [], ["struct"], ["list"]])
                scan = table.scan(question, selected_fields=tuple(dict.fromkeys(wanted)))
                monkeypatch.setenv("ICEFIELD_PARQUET", "own")
                own = scan.to_arrow()
                monkeypatch.setenv("ICEFIELD_PARQUET", "library")
                other = scan.to_arrow()
                expected = rows.filter(pc.and_(pc.fill_null(answers, False), present)).select(own.column_names)
                case = (step, name, about, wanted)
                assert own.equals(other), case
                own = own.cast(expected.schema)
                assert own.equals(expected), case
                compared, kept = compared + 1, kept + own.num_rows
    assert compared >= 20
    assert kept > ROWS
