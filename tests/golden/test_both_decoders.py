"""Rows are the same whether pages of Parquet are decoded here or by the library (`ICEFIELD_PARQUET`)."""

from __future__ import annotations

import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import icefield as ice
from worlds.golden import facts, names, open_table

ROWS = 9000
KINDS: dict[str, tuple[pa.DataType, Callable[[np.random.Generator], list[object]]]] = {
    "number": (pa.int64(), lambda rng: rng.integers(0, 1000, ROWS).tolist()),
    "integer": (pa.int32(), lambda rng: rng.integers(-(1 << 31), 1 << 31, ROWS).tolist()),
    "long": (pa.int64(), lambda rng: rng.integers(-(1 << 62), 1 << 62, ROWS).tolist()),
    "float": (pa.float32(), lambda rng: rng.choice([0.0, -0.0, 1.5, float("nan"), float("inf")], ROWS).tolist()),
    "double": (pa.float64(), lambda rng: rng.choice([0.1, float("nan"), -2.0], ROWS).tolist()),
    "flag": (pa.bool_(), lambda rng: rng.choice([True, False], ROWS).tolist()),
    "day": (pa.date32(), lambda rng: rng.integers(-1000, 20000, ROWS).astype("datetime64[D]").tolist()),
    "text": (pa.string(), lambda rng: [f"{number:x}" * (number % 5) for number in rng.integers(0, 1 << 40, ROWS)]),
    "city": (pa.string(), lambda rng: [f"city {number}" for number in rng.integers(0, 40, ROWS)]),
    "bytes": (pa.binary(), lambda rng: [rng.bytes(number) for number in rng.integers(0, 30, ROWS)]),
    "small": (pa.decimal128(9, 2), lambda rng: [Decimal(int(n)) / 100 for n in rng.integers(0, 10**8, ROWS)]),
    "amount": (pa.decimal128(18, 3), lambda rng: [Decimal(int(n)) / 1000 for n in rng.integers(0, 10**16, ROWS)]),
    "large": (pa.decimal128(30, 0), lambda rng: [Decimal(int(n)) ** 2 for n in rng.integers(0, 10**14, ROWS)]),
    "fixed": (pa.binary(5), lambda rng: [rng.bytes(5) for _ in range(ROWS)]),
    "list": (pa.list_(pa.float64()), lambda rng: [[float("nan"), 1.0][: n % 3] for n in rng.integers(0, 9, ROWS)]),
    "struct": (
        pa.struct({"a": pa.int32(), "b": pa.string()}),
        lambda rng: [{"a": int(n), "b": None} for n in rng.integers(0, 9, ROWS)],
    ),
}


def without_nan(array: pa.Array) -> list[pa.Array]:
    """Take an array of any depth to pieces that can be compared, with the places of NaN instead of NaN."""
    kind, present = array.type, pc.is_valid(array)
    if pa.types.is_floating(kind):
        no = pc.is_nan(array)
        return [no, pc.if_else(no, pa.scalar(None, kind), array)]
    if pa.types.is_struct(kind):
        return [present, *(piece for field in array.flatten() for piece in without_nan(field))]
    if pa.types.is_map(kind):
        array = array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    if pa.types.is_list(array.type):
        return [present, pc.list_value_length(array), *without_nan(array.flatten())]
    return [array]


def assert_same(found: pa.Table, expected: pa.Table) -> None:
    assert found.schema == expected.schema
    assert found.num_rows == expected.num_rows
    for name, own, other in zip(found.column_names, found.columns, expected.columns, strict=True):
        for one, two in zip(without_nan(own.combine_chunks()), without_nan(other.combine_chunks()), strict=True):
            assert one.equals(two), name


def by_both(monkeypatch: pytest.MonkeyPatch, read: Callable[[], pa.Table]) -> tuple[pa.Table, pa.Table]:
    monkeypatch.delenv("ICEFIELD_PARQUET", raising=False)
    own = read()
    monkeypatch.setenv("ICEFIELD_PARQUET", "library")
    return own, read()


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.mark.golden
@pytest.mark.parametrize("name", [name for name in names() if facts(name).get("snapshots")])
def test_golden_tables(name: str, scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = open_table(name, scratch)

    def read() -> pa.Table:
        try:
            return table.scan().to_arrow()
        except ice.UnsupportedFeatureError as error:
            pytest.skip(f"refused: {error}")

    assert_same(*by_both(monkeypatch, read))


def made(folder: Path, seed: int) -> ice.Table:
    """Make a table of files that are not small, with nulls, encodings, pages and row groups of a seed."""
    rng, choose = np.random.default_rng(seed), random.Random(seed)
    columns, fields = [], []
    for number, (name, (kind, values)) in enumerate(KINDS.items(), 1):
        share = choose.choice([0, 0, 0.1, 1]) if number > 1 else 0
        missing = rng.random(ROWS) < share
        array = pa.array([None if gone else value for gone, value in zip(missing, values(rng), strict=True)], kind)
        columns.append(array)
        fields.append(pa.field(name, kind, nullable=bool(share) or choose.random() < 0.5))
    rows = pa.table(columns, pa.schema(fields))
    catalog = ice.load_catalog("f", uri=f"sqlite:///{folder}/c.db", warehouse=str(folder / "wh"))
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", rows.schema)
    path = folder / "rows.parquet"
    pq.write_table(
        rows,
        path,
        compression=choose.choice(["zstd", "none", "snappy"]),
        use_dictionary=choose.choice([True, False, ["city", "number"]]),
        data_page_size=choose.choice([500, 20_000, 1 << 20]),
        write_batch_size=choose.choice([10, 1000]),
        row_group_size=choose.choice([ROWS, 2500]),
        data_page_version=choose.choice(["1.0", "2.0"]),
        write_page_index=choose.random() < 0.7,
        store_decimal_as_integer=choose.random() < 0.7,
    )
    table.add_files([str(path)])
    return table


FLAT = ("number", "text", "flag", "amount", "city", "double")
QUESTIONS: dict[str, Callable[[ice.Table], ice.DataScan]] = {
    "everything": lambda table: table.scan(),
    "scattered": lambda table: table.scan("number < 10"),
    "scattered, without nested columns": lambda table: table.scan("number < 10", selected_fields=FLAT),
    "half": lambda table: table.scan("number < 500", selected_fields=FLAT),
    "all but some": lambda table: table.scan("number > 5", selected_fields=("city", "day", "small")),
    "two columns": lambda table: table.scan("city = 'city 7' and flag = true", selected_fields=("bytes", "long")),
    "part of a struct": lambda table: table.scan("struct.a = 3", selected_fields=("struct.a", "float")),
    "positions": lambda table: table.scan("number < 50", selected_fields=("text", "_pos")),
    "no row": lambda table: table.scan("number > 5000", selected_fields=FLAT),
}
#: Questions that no row answers, or none if a column has only nulls.
NO_ROWS = {"no row", "two columns", "part of a struct"}


@pytest.mark.parametrize("seed", range(8))
def test_random_files(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = made(tmp_path, seed)
    deleted = table.scan("number = 7", selected_fields=("long",)).count()
    for step in ("plain", "deletes"):
        for name, question in QUESTIONS.items():
            own, other = by_both(monkeypatch, lambda question=question: question(table).to_arrow())
            assert_same(own, other)
            assert own.num_rows > 0 or name in NO_ROWS, name
        if step == "plain":
            with table.transaction() as transaction:
                transaction.set_properties({"write.delete.mode": "merge-on-read"})
            table.delete("number = 7")
            assert table.scan().count() == ROWS - deleted
