"""``icefield.orc`` as a writer: every source of rows, every option, and what is left of a file that failed."""

import io
import math
import secrets
import subprocess
import sys

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import orc as pyarrow_orc

from icefield import orc
from icefield.errors import (
    CorruptDataError,
    IcefieldError,
    InvalidArgumentError,
    MissingFileError,
    StorageError,
    UnsupportedFeatureError,
)

TABLE = pa.table(
    {
        "id": pa.array(range(5000), pa.int64()),
        "name": pa.array([None if n % 7 == 0 else f"name {n % 40}" for n in range(5000)]),
        "price": pa.array([n / 4 for n in range(5000)]),
    }
)


def test_a_table_is_read_again_by_all(tmp_path):
    file = tmp_path / "deep" / "table.orc"
    orc.write_table(TABLE, file)
    assert orc.read_table(file).equals(TABLE)
    assert pyarrow_orc.read_table(file).equals(TABLE)
    assert orc.ORCFile(file).compression == "ZSTD"
    assert [path.name for path in file.parent.iterdir()] == ["table.orc"]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param(lambda: TABLE.to_reader(max_chunksize=999), id="reader"),
        pytest.param(lambda: TABLE.to_batches()[0], id="batch"),
        pytest.param(lambda: pl.from_arrow(TABLE), id="polars"),
        pytest.param(lambda: TABLE.to_pandas(types_mapper=pd_arrow), id="pandas"),
        pytest.param(lambda: duckdb.sql("FROM TABLE_OF_DUCKDB"), id="duckdb"),
    ],
)
def test_rows_come_from_anything_of_arrow(source, tmp_path):
    global TABLE_OF_DUCKDB  # noqa: PLW0603 - DuckDB looks tables up by the names of variables
    TABLE_OF_DUCKDB = TABLE
    orc.write_table(source(), tmp_path / "any.orc")
    assert orc.read_table(tmp_path / "any.orc").equals(TABLE)


def pd_arrow(kind):
    import pandas as pd

    return pd.ArrowDtype(kind)


def test_rows_are_appended(tmp_path):
    file = tmp_path / "many.orc"
    with orc.ORCWriter(file, stripe_rows=2000) as writer:
        writer.write(TABLE.slice(0, 100))
        assert not file.exists()
        writer.write(TABLE.slice(100, 0))
        writer.write(TABLE.slice(100))
    assert orc.read_table(file).equals(TABLE)
    assert orc.ORCFile(file).nstripes == 3


def test_flush_ends_a_stripe(tmp_path):
    file = tmp_path / "flushed.orc"
    with orc.ORCWriter(file) as writer:
        writer.flush()
        for start in (0, 1000, 4000):
            writer.write(TABLE.slice(start, {0: 1000, 1000: 3000, 4000: 1000}[start]))
            writer.flush()
    assert [orc.ORCFile(file).read_stripe(n).num_rows for n in range(3)] == [1000, 3000, 1000]


def test_a_binary_file_takes_the_bytes_and_stays_open(tmp_path):
    out = io.BytesIO()
    orc.write_table(TABLE, out)
    assert orc.read_table(out.getvalue()).equals(TABLE)
    # Raw files may take less than they are given.
    with (tmp_path / "raw.orc").open("wb", buffering=0) as raw:
        orc.write_table(TABLE, raw)
        assert not raw.closed
    assert (tmp_path / "raw.orc").read_bytes() == out.getvalue()


def test_without_rows(tmp_path):
    with orc.ORCWriter(tmp_path / "columns.orc", schema=TABLE.schema):
        pass
    assert orc.read_table(tmp_path / "columns.orc").equals(TABLE.slice(0, 0))
    with orc.ORCWriter(tmp_path / "none.orc"):
        pass
    assert orc.ORCFile(tmp_path / "none.orc").type_description == "struct<>"
    orc.write_table(TABLE.slice(0, 0), tmp_path / "empty.orc")
    assert orc.ORCFile(tmp_path / "empty.orc").nstripes == 0


def test_options_are_in_the_file(tmp_path):
    file = tmp_path / "options.orc"
    orc.write_table(
        TABLE,
        file,
        file_version="0.11",
        batch_size=100,
        compression="zlib",
        compression_level=9,
        compression_block_size=4096,
        row_index_stride=1000,
        stripe_rows=2500,
        dictionary_key_size_threshold=0,
        bloom_filter_columns=[0, "name"],
        metadata={"who": b"me"},
    )
    written = orc.ORCFile(file)
    assert written.read().equals(TABLE)
    assert (written.file_version, written.compression, written.compression_size) == ("0.11", "ZLIB", 4096)
    assert (written.row_index_stride, written.nstripes, written.metadata) == (1000, 2, {"who": b"me"})
    stripe = written.inspect()["stripes"][0]["footer"]
    blooms = [stream.get("column") for stream in stripe["streams"] if stream["kind"] == "BLOOM_FILTER_UTF8"]
    assert blooms == [1, 2]
    assert [column.get("kind", "DIRECT") for column in stripe["columns"]] == ["DIRECT"] * 4


def test_attributes_and_exact_types(tmp_path):
    schema = pa.schema(
        [
            pa.field("code", pa.string(), metadata={"orc.type": "char(3)", "iceberg.id": "4"}),
            pa.field("inner", pa.struct([pa.field("x", pa.int32(), metadata={"iceberg.id": "6"})])),
        ]
    )
    table = pa.table([["abc", "d", "long"], [{"x": 1}, None, {"x": 2}]], schema=schema)
    orc.write_table(table, tmp_path / "attributes.orc")
    written = orc.ORCFile(tmp_path / "attributes.orc")
    assert written.type_description == "struct<code:char(3),inner:struct<x:int>>"
    assert written.schema.field("code").metadata == {b"orc.type": b"char(3)", b"iceberg.id": b"4"}
    assert written.schema.field("inner").type.field("x").metadata == {b"iceberg.id": b"6"}
    assert written.read()["code"].to_pylist() == ["abc", "d", "lon"]


def test_statistics_are_those_of_the_rows(tmp_path):
    orc.write_table(TABLE, tmp_path / "statistics.orc")
    _, ids, names, prices = orc.ORCFile(tmp_path / "statistics.orc").file_statistics
    assert ids["int_statistics"] == {"minimum": 0, "maximum": 4999, "sum": sum(range(5000))}
    assert (names["number_of_values"], names["has_null"]) == (5000 - math.ceil(5000 / 7), True)
    assert prices["double_statistics"]["maximum"] == 4999 / 4


def breaking():
    yield TABLE.to_batches()[0]
    raise KeyError("no more")


@pytest.mark.parametrize(
    ("rows", "options", "error", "message"),
    [
        (pa.table({"x": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}), {}, UnsupportedFeatureError, "no type"),
        (pa.RecordBatchReader.from_batches(TABLE.schema, breaking()), {}, Exception, "no more"),
        (TABLE, {"compression": "lzma"}, InvalidArgumentError, 'compression: expected one of .*, got "lzma"'),
        (TABLE, {"file_version": "0.13"}, InvalidArgumentError, "file_version: expected one of"),
        (TABLE, {"compression_strategy": "best"}, InvalidArgumentError, "compression_strategy: expected one of"),
        (TABLE, {"last_second": "guess"}, InvalidArgumentError, "last_second: expected one of"),
        (TABLE, {"bloom_filter_version": "new"}, InvalidArgumentError, "bloom_filter_version: expected one of"),
        (
            TABLE,
            {"bloom_filter_columns": ["other"]},
            InvalidArgumentError,
            "column other for a bloom filter does not exist",
        ),
        (TABLE, {"bloom_filter_columns": [3]}, InvalidArgumentError, "column 3 does not exist, the schema has 3"),
        (TABLE, {"bloom_filter_fpp": 2.0, "bloom_filter_columns": [0]}, IcefieldError, "."),
        (TABLE, {"compression_level": 99}, InvalidArgumentError, "level 99 of ZSTD: expected -7 to 22"),
        (TABLE, {"compression_block_size": 1 << 23}, InvalidArgumentError, "expected 1 to 8388607"),
        (TABLE, {"dictionary_key_size_threshold": 1.5}, InvalidArgumentError, "between 0 and 1"),
        (TABLE, {"batch_size": 0}, InvalidArgumentError, "batch size must be positive"),
        (TABLE, {"stripe_size": 0}, InvalidArgumentError, "stripe size and the rows of a stripe must be positive"),
        (TABLE, {"timezone": "Mars/Olympus"}, IcefieldError, "Mars/Olympus"),
        (TABLE, {"encrypt": {"pii": ["name"]}}, InvalidArgumentError, "unknown master key pii"),
        (TABLE, {"masks": {"blur": ["name"]}}, UnsupportedFeatureError, "unknown mask blur"),
        (pa.table({"x": pa.array([2**63], pa.uint64())}), {}, InvalidArgumentError, "63 bits"),
    ],
)
def test_what_fails_leaves_no_file(rows, options, error, message, tmp_path):
    with pytest.raises(error, match=message):
        orc.write_table(rows, tmp_path / "failed.orc", **options)
    assert list(tmp_path.iterdir()) == []


def test_a_writer_that_failed_or_is_closed_takes_no_more(tmp_path):
    writer = orc.ORCWriter(tmp_path / "failed.orc")
    writer.write(TABLE)
    with pytest.raises(InvalidArgumentError, match="expected a batch of"):
        writer.write(pa.table({"other": [1]}))
    with pytest.raises(InvalidArgumentError, match="has failed"):
        writer.write(TABLE)
    with pytest.raises(InvalidArgumentError, match="has failed"):
        writer.close()
    assert list(tmp_path.iterdir()) == []
    writer = orc.ORCWriter(tmp_path / "closed.orc")
    writer.write(TABLE)
    writer.close()
    writer.close()
    with pytest.raises(InvalidArgumentError, match="closed"):
        writer.write(TABLE)
    assert orc.read_table(tmp_path / "closed.orc").equals(TABLE)


def test_an_exception_in_the_block_gives_the_file_up(tmp_path):
    (tmp_path / "old.orc").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), orc.ORCWriter(tmp_path / "old.orc") as writer:  # noqa: PT012 - it is the story
        writer.write(TABLE)
        raise ZeroDivisionError
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"old.orc": b"old"}
    # One that is forgotten leaves nothing either.
    writer = orc.ORCWriter(tmp_path / "forgotten.orc")
    writer.write(TABLE)
    del writer
    assert [path.name for path in tmp_path.iterdir()] == ["old.orc"]


class Full(io.RawIOBase):
    """A file that soon takes no more."""

    def writable(self):
        return True

    def write(self, data):
        raise OSError(28, "No space left")


def test_what_a_file_raises_is_what_the_caller_sees():
    with pytest.raises(OSError, match="No space left"):
        orc.write_table(TABLE, Full())


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(StorageError):
        orc.write_table(TABLE, tmp_path)


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_last_second_before_1970(unit, tmp_path):
    # 23:59:59.6 and 23:59:59.4
    times = pa.array([-400, -600], pa.timestamp("ms"))
    table = pa.table({"at": times.cast(pa.timestamp(unit))})
    with pytest.raises(InvalidArgumentError, match="last second before 1970"):
        orc.write_table(table, tmp_path / "second.orc")
    orc.write_table(table, tmp_path / "second.orc", last_second="round")
    read = orc.read_table(tmp_path / "second.orc", timestamp_unit="s")["at"]
    assert read.cast(pa.int64()).to_pylist() == [0, -1]


def test_encrypted_columns(tmp_path):
    keys = {"pii": b"0123456789abcdef"}
    file = tmp_path / "secret.orc"
    masks = {"redact,Yy": ["name"]}
    orc.write_table(TABLE, file, keys=keys, encrypt={"pii": ["name", "price"]}, masks=masks, compression="uncompressed")
    assert b"name 12" not in file.read_bytes()
    assert orc.read_table(file, keys=keys).equals(TABLE)
    masked = orc.read_table(file)
    assert masked["id"].equals(TABLE["id"])
    assert masked["price"].null_count == 5000
    assert set(masked["name"].to_pylist()) == {None, "yyyy 9", "yyyy 99"}


#: Writes 1,000,000 values a round into 2,000 columns, and prints by how many MiB the process has grown at the most.
WIDE = """
import re, sys
import pyarrow as pa
from icefield import orc

def peak():
    # Not ru_maxrss: a program that is run inherits that of who runs it.
    with open("/proc/self/status") as about:
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", about.read())[1])

batch = pa.record_batch({f"c{n}": pa.array([f"{n} {row * 7919 % 997}" for row in range(500)]) for n in range(2000)})
before = peak()
most = 0
with orc.ORCWriter(sys.argv[1], stripe_size=16 << 20) as writer:
    for _ in range(12):
        writer.write(batch)
        most = max(most, writer._writer.memory)
print(most >> 20, (peak() - before) >> 10)
"""


def test_keys_from_a_function(tmp_path):
    masters = {"pii": b"0123456789abcdef", "salary": bytes(range(32))}
    asked = []

    def make(name):
        asked.append(name)
        local, wrapped = secrets.token_bytes(len(masters[name])), secrets.token_bytes(20)
        made[wrapped] = local
        return 7, local, wrapped

    made = {}
    file = tmp_path / "file.orc"
    orc.write_table(TABLE, file, keys=make, encrypt={"pii": ["name", "id"], "salary": ["price"]})
    assert sorted(asked) == ["pii", "pii", "salary"]
    # The reader's function gets back what the writer's gave.
    seen = []

    def unwrap(name, version, cipher, wrapped):
        seen.append((name, version, cipher))
        return made[wrapped]

    assert orc.read_table(file, keys=unwrap).equals(TABLE)
    assert set(seen) == {("pii", 7, "AES_CTR_128"), ("salary", 7, "AES_CTR_256")}
    assert orc.read_table(file)["name"].null_count == len(TABLE)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ((1, b"short", b"wrapped"), "local key under k has 5 bytes"),
        ((1, bytes(16), b""), "no wrapped form"),
        (None, "tuple"),
        ((-1, bytes(16), b"wrapped"), "out of range"),
    ],
)
def test_keys_that_no_function_should_make(made, message, tmp_path):
    with pytest.raises((IcefieldError, TypeError, OverflowError), match=message):
        orc.write_table(TABLE, tmp_path / "file.orc", keys=lambda _: made, encrypt={"k": ["id"]})
    assert not list(tmp_path.iterdir())


def test_a_key_that_changes_between_columns(tmp_path):
    versions = iter((1, 2))
    with pytest.raises(InvalidArgumentError, match="master key k changed"):
        orc.write_table(
            TABLE, tmp_path / "f", keys=lambda _: (next(versions), bytes(16), b"w"), encrypt={"k": ["id", "name"]}
        )


def test_what_a_key_function_raises_is_what_the_caller_sees(tmp_path):
    class AwayError(Exception):
        pass

    def away(name):
        raise AwayError(name)

    with pytest.raises(AwayError, match="pii"):
        orc.write_table(TABLE, tmp_path / "file.orc", keys=away, encrypt={"pii": ["name"]})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zlib", "bloom_filter_columns": ["id", "name"], "compression_block_size": 4096},
        {"stripe_rows": 1700, "row_index_stride": 1000, "dictionary_key_size_threshold": 0},
        {"file_version": "0.11", "compression": "uncompressed"},
    ],
)
def test_the_bytes_are_the_same_on_any_number_of_threads(options):
    nested = pa.array([None if n % 5 == 0 else [{"a": n, "b": str(n)}] * (n % 3) for n in range(len(TABLE))])
    table = TABLE.append_column("nested", nested)
    written = []
    for use_threads in (False, True, True):
        with io.BytesIO() as file:
            orc.write_table(table, file, use_threads=use_threads, **options)
            written.append(file.getvalue())
    assert written[0] == written[1] == written[2]
    assert orc.read_table(written[0]).equals(table)


@pytest.mark.parametrize("ends", [pa.int16(), pa.int32(), pa.int64()])
@pytest.mark.parametrize(
    "values",
    [pa.array(["x", None, "y"]), pa.array([7, None, -7]), pa.array([1.5, None, 0.0]), pa.array([True, None, False])],
)
def test_arrays_of_runs(ends, values):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5, 6], ends), values)
    for start, length in ((0, 6), (1, 3), (4, 2), (3, 0)):
        table = pa.table({"runs": runs.slice(start, length)})
        with io.BytesIO() as file:
            orc.write_table(table, file)
            assert orc.read_table(file.getvalue())["runs"].to_pylist() == runs.to_pylist()[start : start + length]


def test_runs_of_nested_values_are_refused(tmp_path):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([[1]]))
    with pytest.raises(UnsupportedFeatureError, match="runs"):
        orc.write_table(pa.table({"runs": runs}), tmp_path / "file.orc")


def test_a_writer_says_whether_it_is_open(tmp_path):
    writer = orc.ORCWriter(tmp_path / "file.orc")
    assert writer.is_open
    writer.close()
    assert not writer.is_open


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_is_that_of_a_stripe(tmp_path):
    file = tmp_path / "wide.orc"
    done = subprocess.run([sys.executable, "-c", WIDE, str(file)], capture_output=True, text=True, check=True)
    held, grown = map(int, done.stdout.split())
    assert held <= 18
    assert grown < 160
    assert orc.ORCFile(file).nstripes > 3
    expected = [f"1999 {row * 7919 % 997}" for row in range(500)] * 12
    assert orc.read_table(file, columns=[1999])["c1999"].to_pylist() == expected


def test_files_are_merged(tmp_path):
    files = [tmp_path / f"part{n}.orc" for n in range(3)]
    for n, file in enumerate(files):
        orc.write_table(TABLE.slice(n * 2000, 2000), file, metadata={f"part{n}": b"", "all": b"same"})
    orc.merge_files([files[0], files[1].read_bytes(), str(files[2])], tmp_path / "merged.orc")
    merged = orc.ORCFile(tmp_path / "merged.orc")
    assert merged.read().equals(TABLE)
    assert merged.nstripes == 3
    assert set(merged.metadata) == {"all", "part0", "part1", "part2"}
    assert merged.file_statistics[1]["int_statistics"] == {"minimum": 0, "maximum": 4999, "sum": sum(range(5000))}
    assert pyarrow_orc.read_table(tmp_path / "merged.orc").equals(TABLE)
    out = io.BytesIO()
    orc.merge_files(files, out)
    assert out.getvalue() == (tmp_path / "merged.orc").read_bytes()


def test_what_cannot_be_merged_is_named(tmp_path):
    orc.write_table(TABLE, tmp_path / "first.orc")
    for name, table, options, reason in [
        ("columns", TABLE.select(["id"]), {}, "its schema is struct<id:bigint>, that of .*first.orc is"),
        ("codec", TABLE, {"compression": "lz4"}, "its compression is LZ4"),
        ("stride", TABLE, {"row_index_stride": 7}, "its row index stride is 7"),
        ("secret", TABLE, {"keys": {"k": b"x"}, "encrypt": {"k": ["id"]}}, "its (schema|columns)"),
    ]:
        other = tmp_path / f"{name}.orc"
        orc.write_table(table, other, **options)
        with pytest.raises(InvalidArgumentError, match=f"{name}.orc cannot be merged: {reason}"):
            orc.merge_files([tmp_path / "first.orc", other], tmp_path / "merged.orc")
        assert not (tmp_path / "merged.orc").exists()
    with pytest.raises(InvalidArgumentError, match="nothing was merged"):
        orc.merge_files([], tmp_path / "merged.orc")
    (tmp_path / "torn.orc").write_bytes((tmp_path / "first.orc").read_bytes()[:-20])
    with pytest.raises(CorruptDataError):
        orc.merge_files([tmp_path / "torn.orc"], tmp_path / "merged.orc")
    with pytest.raises(MissingFileError):
        orc.merge_files([tmp_path / "none.orc"], tmp_path / "merged.orc")
    assert not list(tmp_path.glob("*merged*"))
