"""Arrow data by PyCapsule: every library that speaks it hands data in and takes data out."""

import ctypes
import gc
import subprocess
import sys
import weakref
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import icefield as ice
from icefield._core import ArrowArray, ArrowSchema, ArrowStream, ArrowTable

TABLE = pa.table(
    {
        "id": pa.array([1, 2, None], pa.int64()),
        "name": pa.array(["a", None, "c"], pa.string()),
        "nested": pa.array([{"x": [1.5]}, None, {"x": None}], pa.struct([("x", pa.list_(pa.float64()))])),
    },
    metadata={"k": "v"},
)

PRODUCERS = {
    "pyarrow.Table": lambda: TABLE,
    "pyarrow.RecordBatch": lambda: TABLE.to_batches()[0],
    "pyarrow.RecordBatchReader": TABLE.to_reader,
    "pandas": lambda: TABLE.select(["id", "name"]).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.from_arrow(TABLE),
    "duckdb": lambda: duckdb.connect().from_arrow(TABLE),
    "ArrowTable": lambda: ArrowTable(TABLE),
    "ArrowStream": lambda: ArrowStream(TABLE),
    "struct array": lambda: TABLE.to_struct_array().combine_chunks(),
    "chunked struct array": lambda: pa.chunked_array([TABLE.to_struct_array().combine_chunks()] * 1),
}


@pytest.mark.parametrize("name", PRODUCERS)
def test_rows_in(name):
    rows = ArrowTable(PRODUCERS[name]())
    assert rows.num_rows == len(rows) == 3
    got = rows.to_pyarrow()
    assert got.to_pylist() == TABLE.select(rows.column_names).to_pylist()


@pytest.mark.parametrize(
    "consume",
    [
        pa.table,
        pl.DataFrame,
        lambda rows: pl.from_arrow(pa.table(rows)),
        lambda rows: pd.DataFrame(pa.table(rows).to_pydict()),
    ],
)
def test_rows_out(consume):
    assert len(consume(ArrowTable(TABLE))) == 3


def test_duckdb_reads_by_capsule():
    rows = ArrowTable(TABLE)  # noqa: F841  (DuckDB finds it by its name)
    assert duckdb.connect().sql("SELECT count(*), sum(id) FROM rows").fetchall() == [(3, 3)]


def test_stream_keeps_batches_and_is_read_once():
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, iter(TABLE.to_batches() * 4))
    stream = ArrowStream(reader)
    assert pa.schema(stream) == TABLE.schema
    assert [len(batch) for batch in stream.to_pyarrow()] == [3, 3, 3, 3]
    with pytest.raises(ValueError, match="read already"):
        stream.to_pyarrow()


def test_schema_keeps_metadata():
    schema = ArrowSchema(TABLE.schema)
    assert pa.schema(schema).metadata == {b"k": b"v"}
    assert pa.schema(ArrowSchema(TABLE)) == TABLE.schema


ARRAYS = [
    pa.array([1, None, 3]),
    pa.array(["a", None, "long enough to leave the view"], pa.string_view()),
    pa.array(["a", None], pa.large_string()).slice(1),
    pa.array([None, None]),
    pa.array(["x", "y", "x"]).dictionary_encode(),
    pa.array([], pa.decimal128(38, 10)),
    pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: str(array.type))
def test_arrays_round_trip(array):
    got = ArrowArray(array)
    assert len(got) == len(array)
    assert got.to_pyarrow().equals(array)


def test_chunks_are_joined():
    chunked = pa.chunked_array([[1, 2], [], [3]])
    assert ArrowArray(chunked).to_pyarrow().to_pylist() == [1, 2, 3]
    assert ArrowArray(pl.Series([1, None])).to_pyarrow().to_pylist() == [1, None]
    assert len(ArrowArray(pa.chunked_array([], pa.date32()))) == 0


def test_rows_that_are_null_as_a_whole_are_refused():
    structs = pa.array([{"x": 1}, None])
    with pytest.raises(ValueError, match="1 rows are null as a whole"):
        ArrowTable(structs)


@pytest.mark.parametrize(
    ("take", "value", "message"),
    [
        (ArrowTable, [1, 2], "expected rows with __arrow_c_stream__.*not list"),
        (ArrowArray, "text", "expected an array .*not str"),
        (ArrowSchema, 5, "expected a schema .*not int"),
        (ArrowTable, pa.table, "not builtin_function_or_method|not .*function"),
        (ArrowTable, pa.Table, "expected rows"),
        (ArrowTable, pa.array([1]), "expected rows .* found one column of Int64"),
        (ArrowSchema, pa.int32(), "expected rows .* found one column of Int32"),
    ],
)
def test_what_is_not_arrow_is_a_type_error(take, value, message):
    with pytest.raises(TypeError, match=message):
        take(value)


class Lying:
    """Hands over whatever it was given."""

    def __init__(self, **answers):
        for method, answer in answers.items():
            setattr(self, f"__arrow_c_{method}__", lambda *_, answer=answer: answer)


def capsule(name):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(1, name, None)


NAME = b"some_other_thing"


@pytest.mark.parametrize(
    ("take", "producer", "error"),
    [
        (ArrowTable, Lying(stream=capsule(NAME)), ValueError),
        (ArrowTable, Lying(stream="no capsule"), TypeError),
        (ArrowSchema, Lying(schema=capsule(NAME)), ValueError),
        (ArrowArray, Lying(array=(capsule(NAME), capsule(NAME))), ValueError),
        (ArrowArray, Lying(array="no tuple"), TypeError),
        (ArrowArray, Lying(array=()), IndexError),
    ],
)
def test_a_capsule_of_another_name_is_not_touched(take, producer, error):
    with pytest.raises(error):
        take(producer)


def test_a_consumed_capsule_is_refused():
    stream = TABLE.__arrow_c_stream__()
    assert len(ArrowTable(Lying(stream=stream))) == 3
    with pytest.raises(ValueError, match="consumed already"):
        ArrowTable(Lying(stream=stream))
    pair = pa.array([1]).__arrow_c_array__()
    assert len(ArrowArray(Lying(array=pair))) == 1
    with pytest.raises(ValueError, match="consumed already"):
        ArrowArray(Lying(array=pair))


def test_errors_of_the_producer_pass():
    def batches():
        yield TABLE.to_batches()[0]
        msg = "the disk is gone"
        raise OSError(msg)

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(ValueError, match="the disk is gone"):
        ArrowTable(reader)


def test_buffers_are_shared_and_released():
    data = bytearray(b"\1\0\0\0\2\0\0\0")

    class Owner:
        pass

    owner = Owner()
    alive = weakref.ref(owner)
    array = pa.Array.from_buffers(pa.int32(), 2, [None, pa.foreign_buffer(id(data), 8, base=owner)])
    ours = ArrowArray(pa.array([7, 8], pa.int32()))
    assert ours.to_pyarrow().buffers()[1].address == ours.to_pyarrow().buffers()[1].address
    ours = ArrowArray(array)
    del array, owner
    gc.collect()
    assert alive() is not None
    del ours
    gc.collect()
    assert alive() is None


def test_import_is_light():
    heavy = ["pyarrow", "pyspark", "sqlalchemy", "pandas", "polars", "yaml", "rich", "click"]
    # Of the standard library, what few calls need and takes long to import.
    heavy += ["asyncio", "concurrent.futures", "decimal", "difflib", "email", "html", "importlib.metadata", "pathlib"]
    heavy += ["shutil", "socket", "subprocess", "tempfile", "urllib.parse", "uuid", "zipfile"]
    # `site` and what is installed beside us may import some of them: -S and -I leave those out.
    folder = str(Path(ice.__file__).parents[1])
    code = (
        f"import sys; sys.path.insert(0, {folder!r}); before = set(sys.modules)\nimport icefield\n"
        f"print([name for name in {heavy} if name in set(sys.modules) - before])"
    )
    out = subprocess.run([sys.executable, "-ISc", code], check=True, capture_output=True, text=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", [pa.string(), pa.binary(), pa.large_string(), pa.list_(pa.int32())], ids=str)
def test_the_offset_of_an_empty_array_may_be_anything(kind):
    """Arrow in Java leaves it unset, and Spark 4.0 sends such arrays."""
    offset = pa.py_buffer(b"\x38\xc2\xb9\xf4\x11\x22\x33\xf4")
    children = [pa.array([], pa.int32())] if pa.types.is_list(kind) else None
    buffers = [None, offset] if children else [None, offset, pa.py_buffer(b"")]
    empty = pa.Array.from_buffers(kind, 0, buffers, children=children)
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), empty)
    structs = pa.StructArray.from_arrays([lists], ["l"])
    for array, expected in ((empty, []), (lists, [[], []]), (structs, [{"l": []}, {"l": []}])):
        rows = ArrowTable(pa.table({"a": array}))
        assert rows.to_pyarrow()["a"].to_pylist() == expected
