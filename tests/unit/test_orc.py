"""``icefield.orc`` against the files of the set in ``tests/data/orc``, and against pyarrow where it reads the same."""

import gzip
import io
import itertools
import json
import math
import os
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from click.testing import CliRunner
from pyarrow import fs
from pyarrow import orc as pyarrow_orc

import icefield as ice
from icefield import orc
from icefield._inputs.locations import has_scheme
from icefield.catalog.locations import absolute_location
from icefield.cli.commands import icefield
from icefield.errors import (
    CorruptDataError,
    IcefieldError,
    InvalidArgumentError,
    MissingFileError,
    UnsupportedFeatureError,
)

SET = Path(os.environ.get("ICEFIELD_ORC_GOLDEN", Path(__file__).parents[1] / "data" / "orc"))
FILES = sorted((SET / "files").glob("*.orc"))
CORRUPT = sorted((SET / "corrupt").glob("*.orc"))
KEYS = {key["name"]: bytes.fromhex(key["material"]) for key in json.loads((SET / "expected/keys.json").read_text())}
TIMESTAMP = re.compile(r"(\d{4,}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6})\d{3}(Z?)")


def of_each_prefix():
    """Give some files of each prefix whose rows are known."""
    # Text that is not UTF-8 has its own test.
    known = [path for path in FILES if "not_utf8" not in path.stem]
    known = [path for path in known if (SET / f"expected/{path.stem}.rows.jsonl.gz").exists()]
    groups = itertools.groupby(known, key=lambda path: path.stem.partition("_")[0])
    members = [list(group) for prefix, group in groups if prefix != "enc"]
    return sorted({path for group in members for path in (group[len(group) // 2], group[-1])})


def named(name):
    return str(SET / "files" / f"{name}.orc")


def expected_rows(name, form="rows"):
    text = gzip.decompress((SET / f"expected/{name}.{form}.jsonl.gz").read_bytes()).decode()
    return [cut(json.loads(line)) for line in text.splitlines()]


def cut(value):
    """Cut nanoseconds to microseconds."""
    if isinstance(value, dict):
        return {key: cut(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [cut(inner) for inner in value]
    found = TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    return found[1] + found[2] if found else value


def rows(table):
    """Give the rows in the form of the set."""
    columns = [[value for chunk in column.chunks for value in encoded(chunk)] for column in table.columns]
    return [dict(zip(table.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def encoded(array):
    """Give the values of an array in the form of the set."""
    kind = array.type
    if pa.types.is_union(kind):
        variants = [encoded(array.field(index)) for index in range(kind.num_fields)]
        # A null union is of the variant that reading adds after those of the file.
        nulls = [pa.types.is_null(kind.field(index).type) for index in range(kind.num_fields)]
        places = zip(array.type_codes.to_pylist(), array.offsets.to_pylist(), strict=True)
        return [None if nulls[tag] else {"tag": tag, "value": variants[tag][at]} for tag, at in places]
    if pa.types.is_nested(kind):
        valid = array.is_valid().to_pylist()
        return [value if own else None for value, own in zip(nested(array), valid, strict=True)]
    return [leaf(value) if value.is_valid else None for value in array]


def nested(array):
    kind = array.type
    if pa.types.is_struct(kind):
        fields = [encoded(array.field(index)) for index in range(kind.num_fields)]
        names = [field.name for field in kind]
        return [{name: own[row] for name, own in zip(names, fields, strict=True)} for row in range(len(array))]
    inner = encoded(array.values)
    if pa.types.is_map(kind):
        inner = [[entry["key"], entry["value"]] for entry in inner]
    offsets = array.offsets.to_pylist()
    return [inner[start:end] for start, end in itertools.pairwise(offsets)]


def leaf(value):
    kind = value.type
    if pa.types.is_timestamp(kind):
        return str(np.datetime64(value.value, kind.unit)).replace("T", " ") + ("Z" if kind.tz else "")
    return value.value if pa.types.is_date(kind) else plain(value.as_py(), kind)


def plain(value, kind):
    if pa.types.is_decimal(kind):
        return format(value, "f")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        if not math.isfinite(value):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
        return np.float32(value) if pa.types.is_float32(kind) else value
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53:
        return str(value)
    return value


def same(ours, theirs):
    """Say whether two tables are equal, NaN being NaN."""
    return ours.schema.equals(theirs.schema, check_metadata=True) and rows(ours) == rows(theirs)


def check_rows(file, expected):
    got = rows(file.read())
    if not file.type_description.startswith("struct<"):
        got = [row["value"] for row in got]
    assert len(got) == len(expected) or not file.schema.names
    for number, (ours, theirs) in enumerate(zip(got, expected, strict=bool(file.schema.names))):
        assert ours == theirs, number


@pytest.mark.parametrize("path", of_each_prefix(), ids=lambda path: path.stem)
def test_rows(path):
    expected = expected_rows(path.stem)
    file = orc.ORCFile(path)
    assert file.nrows == len(expected)
    check_rows(file, expected)
    # The same rows by every other way.
    whole = file.read(use_threads=False)
    assert same(file.read(), whole)
    stripes = [file.read_stripe(number) for number in range(file.nstripes)]
    assert sum(stripe.num_rows for stripe in stripes) == len(expected)
    assert same(pa.Table.from_batches(stripes, file.schema), whole)
    batches = list(file.iter_batches(batch_size=100))
    assert all(0 < batch.num_rows <= 100 for batch in batches)
    assert sum(batch.num_rows for batch in batches) == len(expected)
    assert same(pa.Table.from_batches(batches, file.schema), whole)
    assert same(orc.read_table(path.read_bytes()), whole)
    assert same(pa.table(file), whole)


@pytest.mark.parametrize("path", of_each_prefix(), ids=lambda path: path.stem)
def test_metadata(path):
    meta = SET / f"expected/{path.stem}.meta.json.gz"
    if not path.stat().st_size:
        assert orc.ORCFile(path).inspect()["rows"] == 0
        return
    expected = json.loads(gzip.decompress(meta.read_bytes()))
    got = orc.ORCFile(path).inspect(runs=True)
    for part in ("rows", "length", "fileVersion", "postscript", "footer", "stripeStatistics"):
        assert got[part] == expected[part], part
    for ours, theirs in zip(got["stripes"], expected["stripes"], strict=True):
        for stream in ours["streams"]:
            stream.pop("values", None)  # the set does not count them
        for part in ("footer", "streams"):
            assert ours[part] == theirs[part], part
        assert ours["rowIndex"] == theirs.get("rowIndex", {})


SAME = [
    "cpp_dictionary", "cpp_metadata", "cpp_nested", "cpp_stripes", "cpp_zlib_011", "cpp_zlib_012", "shape_stride_1000",
    "shape_user_metadata", "type_bigint", "type_decimal_38_10", "type_double",
]  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_as_pyarrow(name):
    path = named(name)
    ours, theirs = orc.ORCFile(path, timestamp_unit="ns"), pyarrow_orc.ORCFile(path)
    assert ours.schema.names == theirs.schema.names
    for fact in (
        "nrows", "nstripes", "nstripe_statistics", "file_version", "software_version", "writer", "writer_version",
        "compression", "compression_size", "row_index_stride", "file_length", "content_length",
        "stripe_statistics_length", "file_footer_length", "file_postscript_length",
    ):  # fmt: skip
        assert getattr(ours, fact) == getattr(theirs, fact), fact
    assert ours.metadata == {key.decode(): value for key, value in dict(theirs.metadata or {}).items()}
    assert rows(ours.read()) == rows(theirs.read().cast(ours.schema))
    first = [ours.schema.names[0]]
    assert ours.read(first).schema.names == theirs.read(first).schema.names == first
    assert same(ours.read([0]), ours.read(first))


def test_sources(tmp_path):
    path = named("tiny_zstd")
    whole = orc.read_table(path)
    assert whole.num_rows
    data = Path(path).read_bytes()
    memory = (data, bytearray(data), memoryview(data), pa.py_buffer(data), np.frombuffer(data, np.uint8))
    for source in (Path(path), f"file://{Path(path).absolute()}", *memory, io.BytesIO(data), pa.BufferReader(data)):
        assert orc.read_table(source).equals(whole)
    assert ice.orc.read_table(path).equals(whole)
    of_fsspec = SimpleNamespace(open=open)
    for filesystem in (fs.LocalFileSystem(), of_fsspec):
        # By place, as pyarrow has it.
        assert orc.read_table(path, None, filesystem).equals(whole)
    with pytest.raises(FileNotFoundError):
        orc.read_table(str(tmp_path / "none.orc"), filesystem=fs.LocalFileSystem())
    assert orc.read_schema(path) == whole.schema
    with pytest.raises(MissingFileError):
        orc.ORCFile(tmp_path / "none.orc")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://b/k", True),
        ("file:/x", True),
        ("file:///C:/x", True),
        ("memory://m/x", True),
        ("C:/data/x.orc", False),
        ("c:\\x.orc", False),
        ("/x/y", False),
        ("part=a:/x", False),
        ("time:5/x.orc", False),
        ("a/b:/c", False),
        ("", False),
    ],
)
def test_a_drive_or_a_colon_in_a_name_is_no_scheme(text, expected):
    assert has_scheme(text) is expected


@pytest.mark.skipif(os.name == "nt", reason="there it is a drive")
def test_a_path_like_one_of_a_drive_is_of_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "C:").mkdir()
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    orc.write_table(rows, "C:/x.orc")
    monkeypatch.chdir("/")
    assert orc.read_table(str(tmp_path / "C:" / "x.orc")).num_rows == 2
    assert absolute_location("C:/t", "it") == "file:///C:/t"
    # By its whole path, whatever the working directory becomes later.
    monkeypatch.chdir(tmp_path)
    file = orc.ORCFile("C:/x.orc")
    monkeypatch.chdir("/")
    assert file.read().equals(orc.read_table(str(tmp_path / "C:" / "x.orc")))


def test_columns():
    file = orc.ORCFile(named("nest_struct"))
    names = file.schema.names
    assert file.read(names[-1:]).schema.names == names[-1:]
    assert file.read([]).schema.names == []
    assert [batch.schema.names for batch in file.iter_batches(columns=[0])] == [names[:1]]
    for unknown in (["no such column"], [len(names)], [-1]):
        with pytest.raises(InvalidArgumentError, match="column"):
            file.read(unknown)
    for stripe in (file.nstripes, -1):
        with pytest.raises(InvalidArgumentError, match="stripe"):
            file.read_stripe(stripe)
    with pytest.raises(InvalidArgumentError):
        list(file.iter_batches(0))


def test_options():
    path = named("time_utc")
    for unit in ("s", "ms", "us", "ns"):
        schema = orc.read_schema(path, timestamp_unit=unit)
        assert {field.type.unit for field in schema if pa.types.is_timestamp(field.type)} == {unit}
    lost = orc.read_table(path, timestamp_unit="ns", out_of_range="null")
    kept = orc.read_table(path, timestamp_unit="ns", out_of_range="saturate")
    assert sum(column.null_count for column in lost) > sum(column.null_count for column in kept)
    for options in ({}, {"out_of_range": "error"}):
        with pytest.raises(InvalidArgumentError, match="nanoseconds"):
            orc.read_table(path, timestamp_unit="ns", **options)
        for use_threads in (False, True):
            with pytest.raises((OSError, ValueError), match="nanoseconds"):
                orc.ORCFile(path, timestamp_unit="ns", **options).to_reader(use_threads=use_threads).read_all()
    path = named("cpp_dictionary")
    plain, dictionary = orc.read_table(path), orc.read_table(path, strings="dictionary")
    assert any(pa.types.is_dictionary(kind) for kind in dictionary.schema.types)
    assert dictionary.to_pylist() == plain.to_pylist()
    path = named("string_not_utf8")
    with pytest.raises(InvalidArgumentError, match="UTF-8"):
        orc.read_table(path)
    assert orc.read_table(path, strings="binary").num_rows
    for wrong in ({"timestamp_unit": "h"}, {"strings": "text"}, {"out_of_range": "wrap"}):
        with pytest.raises(InvalidArgumentError, match="expected one of"):
            orc.ORCFile(path, **wrong)


@pytest.mark.parametrize("path", CORRUPT, ids=lambda path: path.stem)
def test_corrupt(path):
    """Corrupt files give rows or errors of ours; a corrupt place is named with its file."""
    error = None
    try:
        for batch in itertools.islice(orc.ORCFile(path).iter_batches(), 100):
            batch.validate(full=True)
    except IcefieldError as raised:
        error = raised
    if isinstance(error, CorruptDataError):
        assert error.file == str(path.absolute())
        assert error.place
        assert error.file in str(error)


def test_refused():
    with pytest.raises(UnsupportedFeatureError, match="version"):
        orc.ORCFile(SET / "corrupt/tail_future_version.orc")
    with pytest.raises(CorruptDataError) as caught:
        orc.ORCFile(b"no ORC file at all")
    assert caught.value.file is None
    with pytest.raises(CorruptDataError):
        list(orc.ORCFile(SET / "corrupt/union_tag_out_of_range.orc").iter_batches())


@pytest.mark.parametrize("path", sorted((SET / "files").glob("enc_*.orc")), ids=lambda path: path.stem)
def test_encrypted(path):
    check_rows(orc.ORCFile(path, keys=KEYS), expected_rows(path.stem))
    check_rows(orc.ORCFile(path), expected_rows(path.stem, "masked.rows"))
    if (SET / f"expected/{path.stem}.partial.rows.jsonl.gz").exists():
        partial = {"credit": KEYS["credit"]}
        check_rows(orc.ORCFile(path, keys=partial), expected_rows(path.stem, "partial.rows"))
    expected = json.loads(gzip.decompress((SET / f"expected/{path.stem}.meta.json.gz").read_bytes()))
    assert orc.ORCFile(path, keys=KEYS).file_statistics == expected["statisticsWithKeys"]


def test_key_function():
    asked = []

    def refuse(name, version, algorithm, wrapped):
        asked.append((name, version, algorithm, len(wrapped)))

    check_rows(orc.ORCFile(named("enc_two_keys"), keys=refuse), expected_rows("enc_two_keys", "masked.rows"))
    assert {name for name, *_ in asked} == {"pii", "credit"}

    def fail(*_):
        raise PermissionError("not yours")

    with pytest.raises(PermissionError, match="not yours"):
        orc.ORCFile(named("enc_two_keys"), keys=fail).read()


def test_inspect_command():
    path = named("cpp_metadata")

    def run(*arguments):
        done = CliRunner().invoke(icefield, arguments, catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    assert json.loads(run("orc", "inspect", path, "--json")) == orc.ORCFile(path).inspect()
    assert json.loads(run("--json", "orc", "inspect", "--runs", path)) == orc.ORCFile(path).inspect(runs=True)
    shown = run("orc", "inspect", path, "--runs")
    for text in ("stripe 0", "rows of an index entry", "DATA"):
        assert text in shown


def test_predicates():
    """What a predicate lets through is what a filter of all rows lets through, by every way to read."""
    file = orc.ORCFile(named("prune_sorted"))
    everything = file.read()
    for predicate, kept in [
        ("k >= 100 AND k < 103", pc.field("k").isin([100, 101, 102])),
        ("k < -1000000", pc.field("k") < -1_000_000),
        ("st.x IS NULL", pc.field("st", "x").is_null()),
        (ice.expressions.parse("st.x > 5 OR n = 7"), (pc.field("st", "x") > 5) | (pc.field("n") == 7)),
    ]:
        expected = everything.filter(kept)
        assert file.read(predicate=predicate) == expected
        assert file.read(predicate=predicate, use_threads=False) == expected
        for use_threads in (False, True):
            assert file.to_reader(predicate=predicate, use_threads=use_threads).read_all() == expected
        batches = file.iter_batches(100, predicate=predicate)
        assert pa.Table.from_batches(batches, everything.schema) == expected
        stripes = [file.read_stripe(number, predicate=predicate) for number in range(file.nstripes)]
        assert pa.Table.from_batches(stripes, everything.schema).combine_chunks() == expected.combine_chunks()
        assert file.read(["s"], predicate=predicate) == expected.select(["s"])
    with pytest.raises(InvalidArgumentError, match="nothing"):
        file.read(predicate="nothing = 1")


@pytest.mark.parametrize("type_", [pa.int64(), pa.list_(pa.struct([("nul", pa.int64())]))])
def test_names_with_nul_are_refused_by_us(tmp_path, type_):
    """The C interface of Arrow ends names at a NUL, so no library could be given them."""
    path = tmp_path / "a.orc"
    pyarrow_orc.write_table(pa.table({"nul": pa.array([None], type_)}), str(path), compression="uncompressed")
    path.write_bytes(path.read_bytes().replace(b"nul", b"n\0l"))
    for read in [orc.read_table, lambda name: orc.ORCFile(name).schema, lambda name: orc.ORCFile(name).read()]:
        with pytest.raises(UnsupportedFeatureError, match="NUL character"):
            read(str(path))
