"""Frames of other libraries out of a scan: all of it, and lazily no more of it than a query needs."""

from __future__ import annotations

import gc
import math
import pickle
import sys
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from urllib.parse import urlparse

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import icefield as ice
from icefield._outputs.polars import translated
from icefield._outputs.pushed import Columns
from icefield.errors import MissingFileError, NotInstalledError, UnsupportedFeatureError

UTC = timezone.utc
ROWS = pa.table(
    {
        "id": pa.array(range(8), pa.int64()),
        "n": pa.array([1, 2, None, 4, 5, -6, 0, 7], pa.int32()),
        "x": pa.array([0.0, -0.0, math.nan, None, 1.5, -2.5, math.inf, 7.0], pa.float64()),
        "f": pa.array([0.5, 0.1, math.nan, None, 1.5, -2.5, 1e30, 7.0], pa.float32()),
        "text": ["a", "ab", None, "b", "", "ä", "abc", "b"],
        "flag": [True, False, None, True, False, True, None, False],
        "day": [date(2020, 1, n + 1) if n % 3 else None for n in range(8)],
        "at": pa.array(
            [datetime.fromisoformat(f"2020-01-0{n + 1}T12:00:00") if n % 3 else None for n in range(8)],
            pa.timestamp("us"),
        ),
        "when": pa.array(
            [datetime(2020, 1, n + 1, 12, tzinfo=UTC) if n % 3 else None for n in range(8)], pa.timestamp("us", "UTC")
        ),
        "amount": pa.array([Decimal(n) / 4 if n % 3 else None for n in range(8)], pa.decimal128(9, 2)),
        "place": [{"a": n, "b": f"{n}"} if n % 4 else None for n in range(8)],
        "tags": [["x"] * (n % 3) for n in range(8)],
    }
)


@pytest.fixture
def catalog(tmp_path):
    with ice.load_catalog("local", type="in-memory", warehouse=str(tmp_path / "wh")) as catalog:
        catalog.create_namespace("a")
        yield catalog


@pytest.fixture
def table(catalog):
    """Give a table of two files: ids 0 to 3, and 4 to 7."""
    made = catalog.create_table("a.t", ROWS)
    return made.append(ROWS.slice(0, 4)).append(ROWS.slice(4))


def files_of(table):
    """List the data files, in the order of the table."""
    files = table.scan().plan_files().files
    return [Path(urlparse(file["file_path"]).path) for file in files]


def without_file(table, id_):
    """Delete the data file that has a row: whoever opens it fails."""
    file = table.scan(f"id = {id_}").plan_files().files[0]["file_path"]
    Path(urlparse(file).path).unlink()


c = pl.col
PREDICATES = {
    "c.id > 3": (c("id") > 3, "id > 3"),
    "mirrored": (pl.lit(3) < c("id"), "id > 3"),
    "!=": (c("n") != 4, "n != 4"),
    "not ==": (~(c("n") == 4), "n != 4"),
    "and": ((c("id") > 1) & (c("text") == "b"), "id > 1 AND text = 'b'"),
    "or": ((c("id") < 2) | (c("text") == "b"), "id < 2 OR text = 'b'"),
    "not and": (~((c("id") > 1) & (c("text") == "b")), "id <= 1 OR text != 'b'"),
    "half known": ((c("id") > 1) & (c("text").str.len_chars() == 1), "id > 1"),
    "half unknown": ((c("id") > 1) | (c("text").str.len_chars() == 1), None),
    "null": (c("n").is_null(), "n IS NULL"),
    "not null": (c("n").is_not_null(), "n IS NOT NULL"),
    "not not null": (~c("n").is_not_null(), "n IS NULL"),
    "in": (c("text").is_in(["a", "b", "ä"]), "text IN ('a', 'b', 'ä')"),
    "not in": (~c("text").is_in(["a", "b"]), None),
    "between": (c("id").is_between(2, 5, closed="left"), "id >= 2 AND id < 5"),
    "starts": (c("text").str.starts_with("ab"), "text LIKE 'ab%'"),
    "flag": (c("flag"), "flag = true"),
    "not flag": (~c("flag"), "flag = false"),
    "NaN is greatest": (c("x") > 1.5, "x > 1.5 OR x IS NAN"),
    "not less": (~(c("x") < 1.5), "x >= 1.5 OR x IS NAN"),
    "zeros are equal": (c("x") == 0.0, None),
    "above zero": (c("x") >= 0.0, None),
    "NaN": (c("x") == pl.lit(math.nan), None),
    "float": (c("f") < 0.5, "f < 0.5"),
    "nearest float": (c("f") < 0.1, "f < 0.1"),
    "day": (c("day") >= date(2020, 1, 3), "day >= '2020-01-03'"),
    "at": (c("at") < datetime.fromisoformat("2020-01-03T00:00:00"), "at < '2020-01-03T00:00:00'"),
    "when": (c("when") < datetime(2020, 1, 3, tzinfo=UTC), "when < '2020-01-03T00:00:00+00:00'"),
    "decimal": (c("amount") > 1, None),
    "struct": (c("place").struct.field("a") > 2, None),
}


@pytest.mark.parametrize("name", PREDICATES)
def test_a_lazy_frame_has_the_rows_that_polars_keeps(name, table):
    predicate, _ = PREDICATES[name]
    everything = table.scan().to_polars()
    assert everything.height == 8
    expected = everything.filter(predicate).sort("id")
    for lazy in (table.to_polars(), table.scan().to_polars(lazy=True)):
        found = lazy.filter(predicate).collect().sort("id")
        assert found.equals(expected), name
        some = lazy.filter(predicate).select("text", "id").collect().sort("id")
        assert some.equals(expected.select("text", "id")), name


@pytest.mark.parametrize("name", PREDICATES)
def test_what_is_pushed_down(name, table):
    predicate, text = PREDICATES[name]
    pushed = []

    def source(_columns, predicate, _rows, _size):
        pushed.append(translated(predicate, Columns(table.schema())))
        yield table.scan().to_polars()

    schema = table.scan().to_polars().schema
    pl.io.plugins.register_io_source(source, schema=schema).filter(predicate).collect()
    bound = [one if one is None else one.bind(table.schema()).to_json() for one in pushed]
    assert bound == [None if text is None else ice.expressions.parse(text).bind(table.schema()).to_json()]


def test_files_that_a_lazy_query_does_not_need_are_not_opened(table):
    lazy = table.to_polars()
    without_file(table, 6)
    assert lazy.filter(pl.col("id") < 3).select("id").collect()["id"].to_list() == [0, 1, 2]
    assert lazy.filter(pl.col("id") < 3).collect(engine="streaming").height == 3
    with pytest.raises(Exception, match="not found"):
        lazy.collect()


def test_the_first_rows_are_read_of_the_first_file_alone(table):
    files_of(table)[1].unlink()
    assert table.to_polars().head(2).collect().height == 2
    assert table.scan().to_pyarrow_dataset().head(2).num_rows == 2
    assert table.scan(limit=4).to_arrow().num_rows == 4
    with pytest.raises(MissingFileError, match="not found"):
        table.scan(limit=5).to_arrow()


def test_a_limit_of_a_lazy_frame_is_before_a_condition(table):
    ordered = table.scan().to_polars()["id"].to_list()
    expected = [n for n in ordered[:5] if n > 1]
    for lazy in (table.to_polars().head(5), table.scan(limit=5).to_polars(lazy=True)):
        assert lazy.filter(pl.col("id") > 1).collect()["id"].to_list() == expected
    assert table.scan(limit=5).to_polars(lazy=True).head(3).collect()["id"].to_list() == ordered[:3]
    assert table.to_polars().select(pl.len()).collect().item() == 8


def test_a_lazy_frame_of_a_table_sees_what_the_table_has_when_it_is_collected(table):
    of_table, of_scan = table.to_polars(), table.scan().to_polars(lazy=True)
    table.append(ROWS.slice(0, 1))
    assert (of_table.collect().height, of_scan.collect().height) == (9, 8)


def test_lazy_frames_of_parts_of_structs_evolved_and_empty_tables(catalog, table):
    parts = table.scan(selected_fields=("place.b", "id")).to_polars(lazy=True)
    expected = table.scan(selected_fields=("place.b", "id")).to_polars()
    assert parts.collect().equals(expected)
    assert (
        parts.filter(pl.col("id") > 5)
        .select("place")
        .collect()
        .equals(expected.filter(pl.col("id") > 5).select("place"))
    )
    with table.update_schema() as update:
        update.rename_column("n", "number")
        update.add_column("later", "string")
    evolved = table.to_polars().filter(pl.col("number") > 4, pl.col("later").is_null()).select("number", "later")
    assert sorted(evolved.collect()["number"].to_list()) == [5, 7]
    empty = catalog.create_table("a.empty", ROWS)
    assert empty.to_polars().collect().equals(empty.scan().to_polars())
    assert empty.to_polars().filter(pl.col("id") > 1).select("id").collect().schema == {"id": pl.Int64}


def test_duckdb_reads_what_a_query_needs(table):
    scan = table.scan()
    connection = scan.to_duckdb("t")
    expected = scan.to_arrow()
    found = connection.sql("SELECT * FROM t ORDER BY id").to_arrow_table()
    assert found.column("id").to_pylist() == sorted(expected.column("id").to_pylist())
    queries = {
        "SELECT count(*) FROM t": [(8,)],
        "SELECT id FROM t WHERE n > 3 ORDER BY id": [(3,), (4,), (7,)],
        "SELECT text FROM t WHERE text = 'b' AND id > 3": [("b",)],
        "SELECT id FROM t WHERE x > 1.5 ORDER BY id": [(2,), (6,), (7,)],
        "SELECT id FROM t WHERE x = 0 ORDER BY id": [(0,), (1,)],
        "SELECT id FROM t WHERE day >= DATE '2020-01-06' ORDER BY id": [(5,), (7,)],
        "SELECT id FROM t WHERE n IS NULL": [(2,)],
        "SELECT id FROM t WHERE text IN ('a', 'ä') ORDER BY id": [(0,), (5,)],
        "SELECT max(id) FROM t WHERE flag": [(5,)],
    }
    for query, rows in queries.items():
        assert connection.sql(query).fetchall() == rows, query
    # Every query is a scan of its own.
    assert connection.sql("SELECT a.id FROM t a JOIN t b ON a.id = b.n WHERE b.n = 7").fetchall() == [(7,)]
    without_file(table, 6)
    assert connection.sql("SELECT id FROM t WHERE id < 2 ORDER BY 1").fetchall() == [(0,), (1,)]
    mine = duckdb.connect()
    assert table.scan("id < 2").to_duckdb("few", mine) is mine
    assert mine.sql("SELECT count(*) FROM few").fetchall() == [(2,)]


CONDITIONS = {
    "greater": pc.field("id") > 3,
    "typed": pc.field("n") > pa.scalar(3, pa.int32()),
    "and": (pc.field("id") >= 2) & (pc.field("text") == "b"),
    "or": (pc.field("id") < 1) | (pc.field("text") == "b"),
    "day": pc.field("day") >= date(2020, 1, 5),
    "at": pc.field("at") < pa.scalar(datetime.fromisoformat("2020-01-05T00:00:00"), pa.timestamp("us")),
    "flag": pc.field("flag") == True,  # noqa: E712
    "valid": pc.field("n").is_valid(),
    "not": ~(pc.field("id") > 3),
    "NaN": pc.field("x") > 1.0,
    "zero": pc.field("x") >= 0.0,
    "quoted": pc.field("text") == 'a"b',
    "in": pc.field("id").isin([1, 2]),
    "null": pc.field("n").is_null(),
    "call": pc.utf8_length(pc.field("text")) == 1,
}


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_dataset_has_the_rows_that_pyarrow_keeps(name, table):
    condition = CONDITIONS[name]
    dataset, plain = table.scan().to_pyarrow_dataset(), table.scan().to_arrow()
    expected = plain.filter(condition)
    assert repr(dataset.to_table(filter=condition).to_pylist()) == repr(expected.to_pylist())
    found = dataset.to_table(columns=["text"], filter=condition)
    assert found.to_pylist() == expected.select(["text"]).to_pylist()
    assert dataset.count_rows(filter=condition) == expected.num_rows
    assert sum(batch.num_rows for batch in dataset.to_batches(filter=condition)) == expected.num_rows


def test_a_dataset_reads_no_file_that_it_needs_not(table):
    dataset = table.scan().to_pyarrow_dataset()
    without_file(table, 6)
    for condition in (pc.field("id") < 4, (pc.field("id") < 4) & pc.field("n").is_valid()):
        assert dataset.to_table(columns=["id"], filter=condition).num_rows > 2
    assert (dataset.count_rows(), dataset.schema) == (8, table.scan().to_arrow_batch_reader().schema)


def test_a_dataset_says_what_it_has_not(table):
    dataset = table.scan().to_pyarrow_dataset()
    assert isinstance(dataset, ds.Dataset)
    assert dataset.head(3).num_rows == 3
    assert dataset.to_table(columns={"twice": pc.field("id") * 2}).column("twice").to_pylist() == [
        2 * n for n in table.scan().to_arrow()["id"].to_pylist()
    ]
    assert pickle.loads(pickle.dumps(dataset)).count_rows() == 8
    assert "Scan of" in repr(dataset)
    for name in ("get_fragments", "partition_expression", "replace_schema", "join", "filter", "take"):
        with pytest.raises(UnsupportedFeatureError, match=f"has no {name}"):
            getattr(dataset, name)
    del dataset
    gc.collect()


def test_a_table_and_a_scan_are_streams_of_the_layout_that_is_asked_for(table):
    assert pa.table(table).num_rows == pl.DataFrame(table).height == 8
    rows = table.scan(selected_fields=("id", "text"))
    for layout in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()), pa.string()):
        schema = pa.schema([("id", pa.int64()), ("text", layout)])
        found = pa.table(rows, schema=schema)
        assert found.schema.types == schema.types
        assert found.column("text").to_pylist() == rows.to_arrow().column("text").to_pylist()
    # A wish that cannot be met without changing values is left to whoever has it.
    stream = rows.__arrow_c_stream__(pa.schema([("id", pa.int16()), ("text", pa.string())]).__arrow_c_schema__())
    assert pa.RecordBatchReader._import_from_c_capsule(stream).schema.field("id").type == pa.int64()


def test_ray(table, monkeypatch):
    """Ray takes some hundred megabytes: a module with its function stands for it."""
    stand_in = ModuleType("ray.data")
    stand_in.from_arrow = lambda rows: [rows]
    with monkeypatch.context() as installed:
        installed.setitem(sys.modules, "ray", ModuleType("ray"))
        installed.setitem(sys.modules, "ray.data", stand_in)
        (rows,) = table.scan("id > 3", selected_fields=("id",)).to_ray()
        assert sorted(rows.to_pydict()["id"]) == [4, 5, 6, 7]

    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name="ray")

    monkeypatch.setattr("icefield._support.optional.import_module", missing)
    with pytest.raises(NotInstalledError, match="ray is required but not installed: pip install ray"):
        table.scan().to_ray()
