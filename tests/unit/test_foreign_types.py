"""Files of other writers whose types are not those of the table's columns, but have one meaning: zones, plain numbers, codecs, structs."""

# ruff: noqa: E501

from __future__ import annotations

import bz2
import json
import lzma
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.orc as po
import pyarrow.parquet as pq
import pytest

import icefield as ice
from icefield.errors import CorruptDataError, InvalidArgumentError

MICROS = [-62_135_596_800_000_000, -1, 0, 1, 1_700_000_000_123_456, 4_102_444_800_000_000]
NANOS = [-(2**62), -1001, -1, 0, 1, 1_700_000_000_123_456_789]


def number(n: int) -> bytes:
    """Encode a number as Avro does."""
    n = n << 1 if n >= 0 else (-n << 1) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


def encoded(schema: Any, value: Any) -> bytes:
    """Encode a value of few types as Avro does."""
    if isinstance(schema, list):
        place = schema.index("null") if value is None else next(i for i, one in enumerate(schema) if one != "null")
        return number(place) + (b"" if value is None else encoded(schema[place], value))
    kind = schema if isinstance(schema, str) else schema["type"]
    if kind == "record":
        return b"".join(encoded(field["type"], value[field["name"]]) for field in schema["fields"])
    if kind == "array":
        items = b"".join(encoded(schema["items"], item) for item in value)
        return (number(len(value)) + items if value else b"") + b"\0"
    if kind == "map":
        items = b"".join(encoded("string", key) + encoded(schema["values"], item) for key, item in value)
        return (number(len(value)) + items if value else b"") + b"\0"
    if kind in ("int", "long"):
        return number(value)
    data = value.encode() if kind == "string" else value
    return data if kind == "fixed" else number(len(data)) + data


def write_avro(path: Path, fields: list[dict[str, Any]], rows: list[dict[str, Any]], codec: str = "null") -> None:
    """Write an Avro file of one block."""
    schema = {"type": "record", "name": "r", "fields": fields}
    header = {"avro.schema": json.dumps(schema), "avro.codec": codec}
    entries = b"".join(number(len(k)) + k.encode() + number(len(v.encode())) + v.encode() for k, v in header.items())
    body = {"null": bytes, "bzip2": bz2.compress, "xz": lzma.compress}[codec](
        b"".join(encoded(schema, row) for row in rows)
    )
    sync = bytes(range(16))
    block = number(len(rows)) + number(len(body)) + body + sync
    path.write_bytes(b"Obj\1" + number(len(header)) + entries + b"\0" + sync + block)


def write(path: Path, columns: dict[str, pa.Array], **options: Any) -> None:
    """Write a file with many row groups or stripes, and pages."""
    rows = pa.table(columns)
    if path.suffix == ".orc":
        po.write_table(rows, path, stripe_size=1024, row_index_stride=2, **options)
    else:
        pq.write_table(rows, path, row_group_size=2, write_page_index=True, **options)


def nested(flat: pa.Array) -> dict[str, pa.Array]:
    """Put values into a column, a struct, a list and a map."""
    places = pa.array(range(len(flat) + 1), pa.int32())
    keys = pa.array(["k"] * len(flat))
    return {
        "x": flat,
        "s": pa.StructArray.from_arrays([flat], ["x"]),
        "l": pa.ListArray.from_arrays(places, flat),
        "m": pa.MapArray.from_arrays(places, keys, flat),
    }


def schema_of(kind: pa.DataType) -> pa.Schema:
    """Give the columns of `nested` of a type, and a number for each row."""
    struct = pa.struct([("x", kind)])
    return pa.schema([("n", pa.int64()), ("x", kind), ("s", struct), ("l", pa.list_(kind)), ("m", pa.map_(pa.string(), kind))])  # fmt: skip


@pytest.fixture(scope="module")
def catalog() -> ice.Catalog:
    catalog = ice.load_catalog("foreign", type="in-memory")
    catalog.create_namespace("a")
    return catalog


def table_of(catalog: ice.Catalog, schema: pa.Schema, files: list[Path]) -> ice.Table:
    name = f"a.t{len(catalog.list_tables('a'))}"
    table = catalog.create_table(name, schema, properties={"format-version": "3"})
    table.add_files([str(path) for path in files])
    return table


def check_moments(table: ice.Table, wanted: list[int], kind: pa.DataType) -> None:
    """Compare all columns of `nested`, filters on them, and what deletes leave."""
    rows = table.scan().to_arrow()
    assert rows["x"].type == kind
    for column in (
        rows["x"],
        rows["s"].combine_chunks().field("x"),
        rows["l"].combine_chunks().flatten(),
        rows["m"].combine_chunks().items,
    ):
        assert [value for value in column.cast(pa.int64()).to_pylist() if value is not None] == wanted
    texts = pa.array(wanted, pa.int64()).cast(kind)
    for place, text in list(enumerate(texts.cast(pa.string()).to_pylist()))[1:4:2]:
        literal = f"'{text.replace(' ', 'T').replace('Z', '+00:00')}'"
        for column in ("x", "s.x"):
            for test, right in (
                (f"{column} = {literal}", wanted.count(wanted[place])),
                (f"{column} < {literal}", sum(value < wanted[place] for value in wanted)),
                (f"{column} >= {literal}", sum(value >= wanted[place] for value in wanted)),
            ):
                assert table.scan(test).to_arrow().num_rows == table.scan(test).count() == right, test
    at = wanted.index(max(wanted))
    literal = f"'{texts[at].cast(pa.string()).as_py().replace(' ', 'T').replace('Z', '+00:00')}'"
    before = len(rows)
    table.delete(f"x = {literal}", mode="merge-on-read")
    assert table.scan().count() == before - wanted.count(max(wanted))
    smaller = min(wanted)
    literal = f"'{texts[wanted.index(smaller)].cast(pa.string()).as_py().replace(' ', 'T').replace('Z', '+00:00')}'"
    table.delete(f"s.x = {literal}", mode="copy-on-write")
    left = sorted(value for value in wanted if value not in (max(wanted), smaller))
    found = table.scan().to_arrow()["x"].cast(pa.int64()).to_pylist()
    assert sorted(value for value in found if value is not None) == left


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("suffix", ["parquet", "orc"])
def test_moments_of_the_other_zone_are_the_wall_clock_in_utc(
    tmp_path: Path, catalog: ice.Catalog, suffix: str, seed: int
) -> None:
    random = Random(f"{suffix} {seed}")
    for case in range(2):
        zone = random.choice([None, "UTC"])
        unit = random.choice(["us", "us", "ns"])
        stored = unit if suffix == "orc" else random.choice(["ms", "us", "ns"] if unit == "us" else ["us", "ns"])
        kind = pa.timestamp(unit, zone)
        theirs = pa.timestamp(stored, None if zone else "UTC")
        all_values = [value for value in MICROS if abs(value) < 2**53] if unit == "us" else NANOS
        values = sorted(random.sample(all_values, len(all_values)))
        per = {"ms": 1000, "us": 1, "ns": 1}[stored] if unit == "us" else {"us": 1000, "ns": 1}[stored]
        values = [value // per * per for value in values]
        moments = pa.array([*values, None], pa.int64()).cast(pa.timestamp(unit)).cast(pa.timestamp(stored))
        moments = pa.array(moments.cast(pa.int64()), pa.int64()).cast(theirs)
        path = tmp_path / f"{case}.{suffix}"
        columns = nested(moments)
        write(path, {"n": pa.array(range(len(moments)), pa.int64()), **columns})
        check_moments(table_of(catalog, schema_of(kind), [path]), values, kind)


AVRO_MOMENTS: list[tuple[str, Any, int]] = [
    ("timestamp-micros", {}, 1),
    ("timestamp-micros", {"adjust-to-utc": True}, 1),
    ("timestamp-micros", {"adjust-to-utc": False}, 1),
    ("local-timestamp-micros", {}, 1),
    ("timestamp-millis", {"adjust-to-utc": True}, 1000),
    ("local-timestamp-millis", {}, 1000),
    ("no-such-type", {}, 1),
    ("date", {}, 1),
    ("time-millis", {}, 1),
]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize(("logical", "more", "per"), AVRO_MOMENTS)
def test_avro_moments_are_read_whatever_they_say_of_zones(
    tmp_path: Path, catalog: ice.Catalog, zone: str | None, logical: str, more: dict[str, Any], per: int
) -> None:
    moment = {"type": "long", "logicalType": logical, **more}
    struct = {"type": "record", "name": "s", "fields": [{"name": "x", "type": moment}]}
    fields = [
        {"name": "n", "type": "long"},
        {"name": "x", "type": moment},
        {"name": "s", "type": struct},
        {"name": "l", "type": {"type": "array", "items": moment}},
        {"name": "m", "type": {"type": "map", "values": moment}},
    ]
    values = [value // per for value in MICROS]
    rows = [{"n": n, "x": v, "s": {"x": v}, "l": [v], "m": [("k", v)]} for n, v in enumerate(values)]
    write_avro(tmp_path / "a.avro", fields, rows)
    kind = pa.timestamp("us", zone)
    check_moments(table_of(catalog, schema_of(kind), [tmp_path / "a.avro"]), [v * per for v in values], kind)


PLAIN: list[tuple[pa.DataType, pa.DataType, list[int]]] = [
    (pa.timestamp("us"), pa.int64(), MICROS),
    (pa.timestamp("us", "UTC"), pa.int64(), MICROS),
    (pa.timestamp("ns"), pa.int64(), NANOS),
    (pa.timestamp("ns", "UTC"), pa.int64(), NANOS),
]


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
@pytest.mark.parametrize(("kind", "stored", "values"), PLAIN, ids=[str(case[0]) for case in PLAIN])
def test_plain_numbers_count_what_their_column_counts(
    tmp_path: Path, catalog: ice.Catalog, suffix: str, kind: pa.DataType, stored: pa.DataType, values: list[int]
) -> None:
    numbers = pa.array([*values, None], stored)
    path = tmp_path / f"a.{suffix}"
    write(path, {"n": pa.array(range(len(numbers)), pa.int64()), **nested(numbers)})
    check_moments(table_of(catalog, schema_of(kind), [path]), values, kind)


@pytest.mark.parametrize("suffix", ["parquet", "orc", "avro"])
def test_plain_numbers_are_days_and_times(tmp_path: Path, catalog: ice.Catalog, suffix: str) -> None:
    days, times = [-1, 0, 19_700], [0, 1, 86_399_999_999]
    path = tmp_path / f"a.{suffix}"
    if suffix == "avro":
        rows = [{"d": day, "t": time} for day, time in zip(days, times, strict=True)]
        write_avro(path, [{"name": "d", "type": "int"}, {"name": "t", "type": "long"}], rows)
    else:
        write(path, {"d": pa.array(days, pa.int32()), "t": pa.array(times, pa.int64())})
    table = table_of(catalog, pa.schema([("d", pa.date32()), ("t", pa.time64("us"))]), [path])
    found = table.scan().to_arrow()
    assert found["d"].cast(pa.int32()).to_pylist() == days
    assert found["t"].cast(pa.int64()).to_pylist() == times
    assert table.scan("d < '1970-01-01'").to_arrow().num_rows == table.scan("t > '00:00:00.000001'").count() == 1


@pytest.mark.parametrize("suffix", ["parquet", "orc", "avro"])
@pytest.mark.parametrize(
    ("kind", "stored", "value", "message"),
    [
        (pa.date32(), pa.int64(), 1, r"column x \(id 1\) is stored as long.* nothing says what its numbers count"),
        (
            pa.timestamp("us"),
            pa.int32(),
            1,
            r"column x \(id 1\) is stored as int.* nothing says what its numbers count",
        ),
        (pa.time64("us"), pa.int32(), 1, r"column x \(id 1\) is stored as int.* nothing says what its numbers count"),
        (pa.time64("us"), pa.int64(), -1, "column x: -1 microseconds are no time of a day"),
        (pa.time64("us"), pa.int64(), 86_400_000_000, "column x: 86400000000 microseconds are no time of a day"),
    ],
)
def test_numbers_of_no_clear_meaning_are_refused(
    tmp_path: Path, catalog: ice.Catalog, suffix: str, kind: pa.DataType, stored: pa.DataType, value: int, message: str
) -> None:
    path = tmp_path / f"a.{suffix}"
    if suffix == "avro":
        write_avro(path, [{"name": "x", "type": "int" if stored == pa.int32() else "long"}], [{"x": value}])
    else:
        write(path, {"x": pa.array([value], stored)})
    with pytest.raises(CorruptDataError, match=message):
        table_of(catalog, pa.schema([("x", kind)]), [path]).scan().to_arrow()


@pytest.mark.parametrize("suffix", ["parquet", "orc"])
def test_decimals_of_a_wider_type_are_read_where_they_fit(tmp_path: Path, catalog: ice.Catalog, suffix: str) -> None:
    path, wide = tmp_path / f"a.{suffix}", pa.decimal128(30, 2)
    values = pa.array(["-999.99", "0.01", None, "999.99"]).cast(wide)
    write(path, nested(values) | {"n": pa.array(range(4), pa.int64())})
    table = table_of(catalog, schema_of(pa.decimal128(5, 2)), [path])
    assert table.scan().to_arrow()["x"].to_pylist() == values.to_pylist()
    assert table.scan("x > 0.01").count() == table.scan("s.x = -999.99").to_arrow().num_rows == 1
    path = tmp_path / f"b.{suffix}"
    write(path, nested(pa.array(["1.00", "1000.00"]).cast(wide)) | {"n": pa.array(range(2), pa.int64())})
    table = table_of(catalog, schema_of(pa.decimal128(5, 2)), [path])
    for column in ("x", "s", "l", "m"):
        with pytest.raises(CorruptDataError, match=rf"{path.name}: column {column}"):
            table.scan(selected_fields=(column,)).to_arrow()


@pytest.mark.parametrize("codec", ["bzip2", "xz"])
def test_avro_files_of_all_codecs_are_read(tmp_path: Path, catalog: ice.Catalog, codec: str) -> None:
    path, schema = tmp_path / "a.avro", pa.schema([("x", pa.int64()), ("s", pa.string())])
    fields = [{"name": "x", "type": "long"}, {"name": "s", "type": "string"}]
    rows = [{"x": n, "s": str(n) * (n % 50)} for n in range(3000)]
    write_avro(path, fields, rows, codec)
    assert table_of(catalog, schema, [path]).scan().to_arrow().to_pylist() == rows
    whole = path.read_bytes()
    random = Random(codec)
    for _ in range(5):
        damaged = bytearray(whole)
        damaged[random.randrange(len(whole) // 2, len(whole) - 20)] ^= 1 << random.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(CorruptDataError, match=r"a\.avro"):
            table_of(catalog, schema, [path]).scan().to_arrow()
    write_avro(path, fields, [{"x": 1, "s": "\0" * (64 << 20)}], codec)
    table = table_of(catalog, schema, [path])
    with pytest.raises(CorruptDataError, match="decompresses to more than"):
        table.scan().to_arrow()


EMPTY: list[tuple[str, Any, Any]] = [
    ("top", pa.struct([]), [{}, None]),
    ("struct", pa.struct([("e", pa.struct([])), ("n", pa.int64())]), [{"e": {}, "n": 1}, {"e": None, "n": 2}]),
    ("list", pa.list_(pa.struct([])), [[{}, {}], []]),
]


@pytest.mark.parametrize(("name", "kind", "values"), EMPTY, ids=[case[0] for case in EMPTY])
def test_a_struct_without_fields_is_refused_when_it_is_made(
    catalog: ice.Catalog, name: str, kind: pa.DataType, values: Any
) -> None:
    with pytest.raises(InvalidArgumentError, match="struct without fields"):
        catalog.create_table(f"a.empty_{name}", pa.schema([("id", pa.int64()), ("j", kind)]))
    table = catalog.create_table(f"a.{name}", pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64())]))]))
    with (
        pytest.raises(InvalidArgumentError, match="'s' is a struct|\"s\" is a struct"),
        table.update_schema() as update,
    ):
        update.delete_column("s.a")
    with pytest.raises(InvalidArgumentError, match="struct without fields"), table.update_schema() as update:
        update.add_column("j", ice.Schema.from_arrow(pa.schema([("j", kind)])).fields[0].field_type)
    assert [field.name for field in table.schema().fields] == ["id", "s"]


STRUCTS = [{"a": 1}, None, {"a": None}]


@pytest.mark.parametrize("suffix", ["parquet", "orc", "avro"])
def test_a_struct_is_as_null_as_it_was_whatever_is_left_of_it(catalog: ice.Catalog, suffix: str) -> None:
    inner = pa.struct([("a", pa.int64())])
    kinds = {"s": inner, "l": pa.list_(inner), "m": pa.map_(pa.string(), inner), "o": pa.struct([("s", inner)])}
    schema = pa.schema([("id", pa.int64()), *kinds.items()])
    properties = {"write.format.default": suffix, "format-version": "3"}
    table = catalog.create_table(f"a.nulls_{suffix}", schema, properties=properties)
    rows = [{"id": n, "s": s, "l": [s, None], "m": [("k", s)], "o": {"s": s}} for n, s in enumerate(STRUCTS)]
    table.append(pa.Table.from_pylist(rows, schema))
    with table.update_schema() as update:
        for parent in ("s", "l.element", "m.value", "o.s"):
            update.add_column(f"{parent}.b", "string")
    with table.update_schema() as update:
        for parent in ("s", "l.element", "m.value", "o.s"):
            update.delete_column(f"{parent}.a")

    def now(struct: Any) -> Any:
        return None if struct is None else {"b": None}

    wanted = [
        {"id": n, "s": now(s), "l": [now(s), None], "m": [("k", now(s))], "o": {"s": now(s)}}
        for n, s in enumerate(STRUCTS)
    ]
    assert table.scan().to_arrow().to_pylist() == wanted
    for name in kinds:
        assert table.scan(selected_fields=(name,)).to_arrow().to_pylist() == [{name: row[name]} for row in wanted]
    for test, right in (
        ("s IS NULL", [1]),
        ("o.s IS NULL", [1]),
        ("s IS NOT NULL", [0, 2]),
        ("s.b IS NULL", [0, 1, 2]),
    ):
        assert table.scan(test, selected_fields=("id",)).to_arrow()["id"].to_pylist() == right, test
        assert table.scan(test).count() == len(right)
    assert table.scan(selected_fields=()).to_arrow().num_rows == 3
    table.update({"id": 10}, "id = 0", mode="copy-on-write")
    rewritten = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert rewritten == [*wanted[1:], {**wanted[0], "id": 10}]


@pytest.mark.parametrize("suffix", ["orc", "avro"])
def test_a_struct_of_nothing_but_unknown_fields_is_not_null(catalog: ice.Catalog, suffix: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("u", pa.null())]))])
    properties = {"write.format.default": suffix, "format-version": "3"}
    table = catalog.create_table(f"a.unknown_{suffix}", schema, properties=properties)
    rows = [{"id": 0, "s": {"u": None}}, {"id": 1, "s": None}]
    table.append(pa.Table.from_pylist(rows, schema))
    assert table.scan().to_arrow().to_pylist() == rows
    assert table.scan("s IS NULL").to_arrow()["id"].to_pylist() == [1]


def test_structs_without_fields_of_another_writer_keep_their_nulls(tmp_path: Path) -> None:
    catalog = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    for suffix in ("parquet", "orc", "avro"):
        schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("a", pa.int64())]))])
        table = catalog.create_table(f"a.{suffix}", schema, properties={"write.format.default": suffix})
        table.append(pa.Table.from_pylist([{"id": n, "s": s} for n, s in enumerate(STRUCTS)], schema))
        metadata = json.loads(table.metadata_json() if callable(table.metadata_json) else table.metadata_json)
        metadata["schemas"][0]["fields"][1]["type"]["fields"] = []
        (tmp_path / "wh" / f"{suffix}.metadata.json").write_text(json.dumps(metadata))
        other = ice.Table.from_metadata(str(tmp_path / "wh" / f"{suffix}.metadata.json"))
        assert other.scan().to_arrow()["s"].to_pylist() == [{}, None, {}]
        assert other.scan("s IS NULL").to_arrow()["id"].to_pylist() == [1]


def test_avro_structs_without_fields_are_not_null(tmp_path: Path) -> None:
    empty = {"type": "record", "name": "e", "fields": []}
    fields = [
        {"name": "id", "type": "long", "field-id": 1},
        {"name": "s", "type": ["null", empty], "field-id": 2},
        {"name": "l", "type": {"type": "array", "items": ["null", "e"], "element-id": 4}, "field-id": 3},
    ]
    rows = [{"id": 1, "s": {}, "l": [{}, None]}, {"id": 2, "s": None, "l": []}]
    path = tmp_path / "a.avro"
    # The name of a record of before stands for it.
    schema = {"type": "record", "name": "r", "fields": fields}
    body = b"".join(
        number(row["id"]) + (number(0) if row["s"] is None else number(1))
        + ((number(len(row["l"])) + b"".join(number(0 if one is None else 1) for one in row["l"])) if row["l"] else b"")
        + b"\0"
        for row in rows
    )  # fmt: skip
    header = {"avro.schema": json.dumps(schema), "avro.codec": "null"}
    entries = b"".join(number(len(k)) + k.encode() + number(len(v.encode())) + v.encode() for k, v in header.items())
    sync = bytes(16)
    path.write_bytes(
        b"Obj\1" + number(2) + entries + b"\0" + sync + number(len(rows)) + number(len(body)) + body + sync
    )
    catalog = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    one = pa.struct([("a", pa.int64())])
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64()), ("s", one), ("l", pa.list_(one))]))
    table.add_files([str(path)])
    wanted = [
        {"id": 1, "s": {"a": None}, "l": [{"a": None}, None]},
        {"id": 2, "s": None, "l": []},
    ]
    assert table.scan().to_arrow().to_pylist() == wanted
    assert table.scan("s IS NULL").to_arrow()["id"].to_pylist() == [2]


@pytest.mark.parametrize("data", ["zoned", "plain", "numbers"])
@pytest.mark.parametrize("deletes", ["zoned", "plain", "numbers"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_equality_deletes_compare_moments_whatever_their_files_say_of_zones(
    tmp_path: Path, catalog: ice.Catalog, zone: str | None, data: str, deletes: str
) -> None:
    types = {"zoned": pa.timestamp("us", "UTC"), "plain": pa.timestamp("us"), "numbers": pa.int64()}
    path, gone = tmp_path / "a.parquet", tmp_path / "gone.parquet"
    write(path, {"x": pa.array([*MICROS, None], pa.int64()).cast(types[data])})
    schema = pa.schema([pa.field("x", pa.timestamp("us", zone))])
    table = table_of(catalog, schema, [path])
    keys = pa.array([MICROS[1], MICROS[4], 77], pa.int64()).cast(types[deletes])
    named = pa.schema([pa.field("x", types[deletes], metadata={"PARQUET:field_id": "1"})])
    pq.write_table(pa.table([keys], schema=named), gone)
    file = ice.DeleteFile(
        content="equality_deletes",
        file_path=str(gone),
        file_format="parquet",
        record_count=3,
        file_size_in_bytes=gone.stat().st_size,
        equality_ids=[1],
    )
    table.row_delta().add_deletes(file).commit()
    left = [value for place, value in enumerate(MICROS) if place not in (1, 4)]
    assert table.scan().to_arrow()["x"].cast(pa.int64()).to_pylist() == [*left, None]
    assert table.scan("x IS NOT NULL").count() == len(left)


def test_decimals_in_more_bytes_than_they_need_are_read_where_they_fit(tmp_path: Path, catalog: ice.Catalog) -> None:
    wide, kind = pa.decimal256(50, 2), pa.decimal128(20, 2)
    texts = ["-1.28", None, "2.56", "0.00", "-999999999999999999.99", "999999999999999999.99"]
    values = pa.array(texts).cast(kind)
    path = tmp_path / "a.parquet"
    write(path, nested(values.cast(wide)) | {"n": pa.array(range(6), pa.int64())})
    assert pq.ParquetFile(path).schema.column(0).length > 16
    table = table_of(catalog, schema_of(kind), [path])
    rows = table.scan().to_arrow()
    assert rows["x"].to_pylist() == rows["s"].combine_chunks().field("x").to_pylist() == values.to_pylist()
    assert rows["l"].to_pylist() == [[value] for value in values.to_pylist()]
    assert rows["m"].to_pylist() == [[("k", value)] for value in values.to_pylist()]
    for text in filter(None, texts):
        for test in (f"x = {text}", f"s.x = {text}", f"x IN ({text}, 7)"):
            assert table.scan(test).to_arrow()["x"].to_pylist() == pa.array([text]).cast(kind).to_pylist(), test
    assert table.scan("x < 0").count() == table.scan("s.x < 0").to_arrow().num_rows == 2
    table.delete("x = 2.56", mode="merge-on-read")
    table.delete("x < 0", mode="copy-on-write")
    assert sorted(table.scan("x IS NOT NULL").to_arrow()["x"].to_pylist()) == [values[3].as_py(), values[5].as_py()]
    path = tmp_path / "b.parquet"
    write(path, nested(pa.array(["1.00", "1e38"]).cast(wide)) | {"n": pa.array(range(2), pa.int64())})
    table = table_of(catalog, schema_of(kind), [path])
    for column in ("x", "s", "l", "m"):
        with pytest.raises(CorruptDataError, match=rf"b\.parquet: column {column}: .* digits"):
            table.scan(selected_fields=(column,)).to_arrow()
    assert table.scan(selected_fields=("n",)).to_arrow().num_rows == 2
