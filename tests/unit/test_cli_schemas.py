"""Schemas of new tables: as text, as JSON, and of files."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import icefield as ice
from icefield.cli.commands import icefield
from icefield.errors import CorruptDataError, InvalidArgumentError, MissingFileError


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("id long", ["1: id: optional long"]),
        ("id LONG NOT NULL", ["1: id: required long"]),
        ("id: long required, b int optional", ["1: id: required long", "2: b: optional int"]),
        ('`a,b` string, "say ""x""" binary', ["1: a,b: optional string", '2: say "x": optional binary']),
        ("größe double comment 'it''s'", ["1: größe: optional double (it's)"]),
        (
            "a decimal( 9 , 2 ), b fixed[16], c geometry(EPSG:4326), d variant, e timestamptz_ns",
            [
                "1: a: optional decimal(9, 2)",
                "2: b: optional fixed[16]",
                "3: c: optional geometry(EPSG:4326)",
                "4: d: optional variant",
                "5: e: optional timestamptz_ns",
            ],
        ),
        ("l list<int>, a array<struct<x int not null>>", ["1: l: optional list<int>", "3: a: optional list<"]),
        ("m map<string, list<double>>", ["1: m: optional map<string, list<double>>"]),
        ("struct struct<list: int>, map string", ["1: struct: optional struct<2: list: optional int>", "3: map: "]),
        (" \n id\n long\n,\n b int \n", ["1: id: optional long", "2: b: optional int"]),
    ],
)
def test_columns(text, fields):
    found = [str(field) for field in ice.Schema.from_text(text).fields]
    assert len(found) == len(fields)
    assert all(one.startswith(expected) for one, expected in zip(found, fields, strict=True)), found


def test_elements_and_values_may_be_required():
    first, second = ice.Schema.from_text("l list<int not null>, m map<string not null, int not null>").fields
    assert json.loads(first.to_json())["type"]["element-required"] is True
    assert json.loads(second.to_json())["type"]["value-required"] is True
    ids = ice.Schema.from_text("a struct<b list<map<int, struct<c int>>>>, d int").field_ids
    assert len(set(ids)) == len(ids) == 7


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "at the end: expected the name of a column"),
        ("id", "at the end: expected a type"),
        ("id long,", "at the end: expected the name of a column"),
        ("id long name string", "at character 9 (\"name string\"): expected ','"),
        ("id bigint", 'at character 4 ("bigint"): not a type: "bigint"; did you mean "long"?'),
        ("id list<int", "at the end: expected '>'"),
        ("id map<int>", "at character 11 (\">\"): expected ','"),
        ("id struct<>", "expected the name of a column"),
        ("id decimal(9", "')' is missing"),
        ("id long not", "expected 'null'"),
        ("id long comment x", "expected a text in single quotes"),
        ('"" long', "expected the name of a column"),
        ("id list", "not a type"),
        ("x " + "list<" * 200 + "int" + ">" * 200, "nested more than 40 levels"),
        ("id long, id int", "id"),
    ],
)
def test_columns_that_are_wrong(text, words):
    with pytest.raises(InvalidArgumentError) as error:
        ice.Schema.from_text(text)
    assert words in str(error.value)


ARROW = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.struct([("lat", pa.float64())])),
        pa.field("at", pa.timestamp("us", "UTC")),
    ]
)
FIELDS = ["id: required long", "tags: optional list<string>", "place: optional struct<", "at: optional timestamptz"]


def made(path, tmp_path):
    """Create a table from a file on the command line, and return its columns without their ids."""
    uri = f"sqlite:///{tmp_path}/c.db"
    with ice.load_catalog("default", uri=uri) as catalog:
        catalog.create_namespace_if_not_exists("a")
    arguments = ["--uri", uri, "--warehouse", str(tmp_path), "table", "create", "a.t", "--schema-from", str(path)]
    done = CliRunner().invoke(icefield, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    with ice.load_catalog("default", uri=uri) as catalog:
        return [str(field).partition(": ")[2] for field in catalog.load_table("a.t").schema().fields]


@pytest.mark.parametrize("kind", ["parquet", "orc", "avro", "json", "txt", "parquet without a name"])
def test_schemas_of_files(tmp_path, kind):
    path = tmp_path / f"file.{kind.split()[0] if ' ' not in kind else 'bin'}"
    rows = ARROW.empty_table()
    if kind.startswith("parquet"):
        pq.write_table(rows, path)
    elif kind == "orc":
        ice.orc.write_table(rows, str(path))
    elif kind == "avro":
        catalog = ice.load_catalog("m", type="in-memory", warehouse=str(tmp_path / "avro"))
        catalog.create_namespace("a")
        table = catalog.create_table("a.t", ARROW, properties={"write.format.default": "avro"})
        table.append(pa.table({"id": [1], "tags": [["x"]], "place": [{"lat": 1.0}], "at": [0]}).cast(ARROW))
        path = table.scan().plan_files().to_arrow()["file_path"][0].as_py().removeprefix("file://")
    elif kind == "json":
        path.write_text(ice.Schema.from_arrow(ARROW).to_json())
    else:
        path.write_text("id long not null, tags list<string>, place struct<lat double>,\n at timestamptz\n")
    found = made(path, tmp_path)
    # ORC does not say that values are required, unless a table wrote the file.
    expected = [field.replace("required", "optional") for field in FIELDS] if kind == "orc" else FIELDS
    assert all(one.startswith(field) for one, field in zip(found, expected, strict=True)), found


def avro(schema):
    """Make an Avro file without rows."""
    text = json.dumps(schema).encode()

    def number(value):
        zigzag, out = value << 1, b""
        while zigzag > 0x7F:
            out += bytes([zigzag & 0x7F | 0x80])
            zigzag >>= 7
        return out + bytes([zigzag])

    name = b"avro.schema"
    return b"Obj\x01" + number(1) + number(len(name)) + name + number(len(text)) + text + number(0) + b"s" * 16


def record(*types):
    return {"type": "record", "name": "r", "fields": [{"name": f"c{n}", "type": kind} for n, kind in enumerate(types)]}


AVRO = {
    "boolean": "required boolean",
    "int": "required int",
    "long": "required long",
    "float": "required float",
    "double": "required double",
    "bytes": "required binary",
    "string": "required string",
}


def test_types_of_avro(tmp_path):
    def long(logical, **more):
        return {"type": "long", "logicalType": logical, **more}

    pair = {
        "type": "record",
        "name": "pair",
        "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": ["null", "string"]}],
    }
    types = [
        *((name, text) for name, text in AVRO.items()),
        (["null", "int"], "optional int"),
        (["string", "null"], "optional string"),
        ("null", "optional unknown"),
        ({"type": "int", "logicalType": "date"}, "required date"),
        (long("time-micros"), "required time"),
        (long("timestamp-millis"), "required timestamp"),
        (long("timestamp-micros", **{"adjust-to-utc": True}), "required timestamptz"),
        (long("timestamp-micros", **{"adjust-to-utc": False}), "required timestamp"),
        (long("timestamp-nanos", **{"adjust-to-utc": False}), "required timestamp_ns"),
        (long("local-timestamp-micros"), "required timestamp"),
        (long("of-tomorrow"), "required long"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, "required decimal(9, 2)"),
        ({"type": "fixed", "name": "d", "size": 4, "logicalType": "decimal", "precision": 9}, "required decimal(9, 0)"),
        ({"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}, "required uuid"),
        ({"type": "fixed", "name": "f", "size": 3}, "required fixed[3]"),
        ("f", "required fixed[3]"),
        ({"type": "enum", "name": "e", "symbols": ["A"]}, "required string"),
        ({"type": "array", "items": ["null", "int"]}, "required list<int>"),
        ({"type": "map", "values": "long"}, "required map<string, long>"),
        ({"type": "array", "logicalType": "map", "items": pair}, "required map<int, string>"),
        ({"type": {"type": "string"}}, "required string"),
    ]
    path = tmp_path / "types.avro"
    path.write_bytes(avro(record(*(kind for kind, _ in types))))
    found = [str(field).partition(": ")[2] for field in ice.Schema.of_file(str(path)).fields]
    assert found == [f"c{number}: {text}" for number, (_, text) in enumerate(types)]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("string", "its schema is not a record"),
        (record(["int", "string"]), "make it a struct with one field for each of its types"),
        (record("none"), "unknown type none"),
        ({"type": "record", "name": "r", "fields": [{"name": "x"}]}, "the field x has no type"),
        (
            {"type": "record", "name": "r", "fields": [{"name": "next", "type": ["null", "r"]}]},
            "the record r contains itself",
        ),
    ],
)
def test_avro_that_is_no_table(tmp_path, schema, words):
    path = tmp_path / "odd.avro"
    path.write_bytes(avro(schema))
    with pytest.raises((CorruptDataError, InvalidArgumentError), match=words):
        ice.Schema.of_file(str(path))


def test_damaged_files(tmp_path):
    path = tmp_path / "file"
    whole = avro(record("int"))
    for end in range(4, len(whole) - 17):
        path.write_bytes(whole[:end])
        with pytest.raises(CorruptDataError):
            ice.Schema.of_file(str(path))
    path.write_bytes(b"PAR1" + b"\xff" * 20)
    with pytest.raises(CorruptDataError, match="file: "):
        ice.Schema.of_file(str(path))
    path.write_bytes(b"ORC" + b"\xff" * 20)
    with pytest.raises(CorruptDataError):
        ice.Schema.of_file(str(path))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidArgumentError, match="not a Parquet, ORC or Avro file"):
        ice.Schema.of_file(str(path))
    with pytest.raises(MissingFileError):
        ice.Schema.of_file(str(tmp_path / "none.parquet"))
