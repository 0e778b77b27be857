"""CSV and JSON to ORC and back, from Python and the command line."""

import datetime as dt
import gzip
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from click.testing import CliRunner

from icefield import orc
from icefield.cli.commands import icefield
from icefield.errors import InvalidArgumentError

FLAT = pa.table(
    {
        "id": pa.array([1, None], pa.int16()),
        "real": pa.array([1.5, None], pa.float32()),
        "exact": pa.array([Decimal("1.20"), None]),
        "day": pa.array([dt.date(2020, 1, 2), None]),
        "time": pa.array([1_577_934_245_600_000, None], pa.timestamp("us")),
        "text": ['x,"y\nz', "ä"],
        "yes": [True, False],
    }
)
DEEP = FLAT.append_column("map", pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64())))
DEEP = DEEP.append_column("list", pa.array([[{"day": dt.date(2020, 1, 2)}, None], []]))
DEEP = DEEP.append_column(
    "struct", pa.array([{"x": 1, "y": None}, None], pa.struct({"x": pa.int8(), "y": pa.string()}))
)


def run(*arguments):
    result = CliRunner().invoke(icefield, ["orc", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.mark.parametrize(("table", "suffix"), [(FLAT, "csv"), (FLAT, "json"), (DEEP, "json")])
def test_rows_come_back_with_their_schema(table, suffix, tmp_path):
    orc.write_table(table, tmp_path / "first.orc")
    kind = orc.ORCFile(tmp_path / "first.orc").type_description
    assert orc.convert(tmp_path / "first.orc", tmp_path / f"rows.{suffix}") == 2
    assert orc.convert(tmp_path / f"rows.{suffix}", tmp_path / "second.orc", schema=kind) == 2
    assert orc.read_table(tmp_path / "second.orc").equals(orc.read_table(tmp_path / "first.orc"))
    assert orc.ORCFile(tmp_path / "second.orc").type_description == kind
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.parametrize(
    ("name", "text", "options", "kind", "rows"),
    [
        ("a.csv", "a,b\n1,x\n,y\n", {}, "struct<a:bigint,b:string>", [{"a": 1, "b": "x"}, {"a": None, "b": "y"}]),
        (
            *("a.csv", "1;x\n-;y\n", {"header": False, "delimiter": ";", "null_values": ["-"]}),
            *("struct<f0:bigint,f1:string>", [{"f0": 1, "f1": "x"}, {"f0": None, "f1": "y"}]),
        ),
        (
            *("a.csv", "7,x\n", {"header": False, "schema": "struct<n:tinyint,c:char(3)>"}),
            *("struct<n:tinyint,c:char(3)>", [{"n": 7, "c": "x"}]),
        ),
        (
            *("a.csv", "b,a\nx,1\n", {"schema": "struct<a:double,new:int>"}),
            *("struct<a:double,new:int>", [{"a": 1.0, "new": None}]),
        ),
        (
            *("a.json", '{"a":1,"l":[1.5]}\n{"a":null,"s":{"x":true}}\n', {}),
            "struct<a:bigint,l:array<double>,s:struct<x:boolean>>",
            [{"a": 1, "l": [1.5], "s": None}, {"a": None, "l": None, "s": {"x": True}}],
        ),
        (
            *("a.data", '{"a":"2020-01-02","more":1}\n', {"source_format": "json", "schema": "struct<a:date>"}),
            *("struct<a:date>", [{"a": dt.date(2020, 1, 2)}]),
        ),
    ],
)
def test_what_becomes_of_text(name, text, options, kind, rows, tmp_path):
    (tmp_path / name).write_text(text)
    assert orc.convert(tmp_path / name, tmp_path / "made.orc", compression="zlib", **options) == len(rows)
    made = orc.ORCFile(tmp_path / "made.orc")
    assert (made.type_description, made.compression, made.read().to_pylist()) == (kind, "ZLIB", rows)


def test_the_commands(tmp_path):
    (tmp_path / "in.jsonl.gz").write_bytes(
        gzip.compress(b'{"id":1,"name":"a"}\n{"id":2,"name":null}\n{"id":3,"name":"c"}\n')
    )
    file = tmp_path / "out.orc"
    assert "wrote 3 rows" in run(
        "convert", tmp_path / "in.jsonl.gz", file, "--schema", "struct<id:int,name:varchar(5)>"
    )
    assert run("data", file) == '{"id":1,"name":"a"}\n{"id":2,"name":null}\n{"id":3,"name":"c"}\n'
    assert run("data", file, "--rows", "1:", "--columns", "id") == '{"id":2}\n{"id":3}\n'
    assert run("data", file, "--rows", ":1", "--schema", "struct<id:string>") == '{"id":"1"}\n'
    run("convert", file, tmp_path / "out.csv", "--delimiter", "\t", "--no-header")
    assert (tmp_path / "out.csv").read_text() == '1\t"a"\n2\t\n3\t"c"\n'
    run(
        "convert",
        tmp_path / "out.csv",
        tmp_path / "back.orc",
        "--delimiter",
        "\t",
        "--no-header",
        "--null",
        "",
        "--schema",
        "struct<id:int,name:string>",
    )
    assert orc.read_table(tmp_path / "back.orc").equals(
        orc.read_table(file).cast(orc.read_schema(tmp_path / "back.orc"))
    )


def test_values_that_json_lacks():
    table = pa.table({"real": [float("nan"), float("inf"), float("-inf")], "bytes": [b"\x00\xff", b"", None]})
    out = pa.BufferOutputStream()
    orc.write_table(table, out)
    lines = [json.loads(line) for line in orc.json_lines(orc.ORCFile(out.getvalue()))]
    assert [line["real"] for line in lines] == ["NaN", "Infinity", "-Infinity"]
    assert [line["bytes"] for line in lines] == [[0, 255], [], None]


@pytest.mark.parametrize(
    ("source", "where", "options", "message"),
    [
        ("a.csv", "b.json", {}, "expected one ORC file"),
        ("a.txt", "b.orc", {}, "a.txt: format None is not known"),
        ("a.csv", "b.orc", {"schema": "struct<a:int>"}, "conversion error to int32"),
        ("bad.json", "b.orc", {}, "JSON parse error"),
        ("deep.orc", "b.csv", {}, "column map of type .* cannot be written as CSV"),
    ],
)
def test_what_is_refused_leaves_no_file(source, where, options, message, tmp_path):
    (tmp_path / "a.csv").write_text("a\nx\n")
    (tmp_path / "bad.json").write_text('{"a":1}\n{"a":')
    orc.write_table(DEEP, tmp_path / "deep.orc")
    with pytest.raises(InvalidArgumentError, match=message):
        orc.convert(tmp_path / source, tmp_path / where, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.csv", "bad.json", "deep.orc"]
