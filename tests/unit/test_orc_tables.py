"""Tables with ORC data files: what is written is read, pruned and described as with Parquet."""

import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError, MissingFileError, ValidationError
from worlds.predicates import random_predicate
from worlds.tables import TRANSFORMS, primitives, random_partition, random_rows, random_schema
from worlds.truth import rows_of_table

ORC = {"write.format.default": "orc"}


@pytest.fixture
def catalog(tmp_path):
    opened = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    opened.create_namespace("a")
    with opened:
        yield opened


def files(table):
    return [ice.orc.ORCFile(path) for path in table.inspect.files()["file_path"].to_pylist()]


@pytest.mark.parametrize("seed", range(40))
def test_random_tables_are_read_and_filtered(catalog, seed):
    """Rows of every type, in partitions, in stripes of a few rows, found by random filters."""
    rng = Random(seed)
    version = rng.choice([1, 2, 3, 3])
    schema = random_schema(rng, version)
    partition = [_text(*part) for part in random_partition(rng, schema)]
    properties = ORC | {"format-version": version, "write.orc.stripe-size-bytes": rng.choice([1, 2000, 1 << 20])}
    sort = rng.choice([None, ["id desc"]])
    table = catalog.create_table("a.t", schema, partition_by=partition, sort_by=sort, properties=properties)
    written = random_rows(rng, table.schema(), 0, rng.choice([1, 10, 600]), orc=True)
    table.append(written)
    truth = rows_of_table(written, table.schema())
    assert sorted(map(repr, rows_of_table(table.scan().to_arrow(), table.schema()))) == sorted(map(repr, truth))
    for path in table.inspect.files()["file_path"].to_pylist():
        assert path.endswith(".orc")
    id_ = table.schema().find_field("id").field_id
    for _ in range(10):
        predicate = random_predicate(rng, primitives(table.schema()), TRANSFORMS)
        text = json.dumps(predicate.json())
        scan = table.scan(ice.expressions.from_json(text, table.schema() if predicate.typed else None))
        expected = sorted(row[id_] for row in truth if predicate.matches(row))
        assert sorted(scan.to_arrow()["id"].to_pylist()) == expected, text
        assert scan.count() == len(expected), text


@pytest.mark.parametrize("form", ["orc", "parquet"])
def test_a_missing_data_file_is_named_as_missing(catalog, form):
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64())]), properties={"write.format.default": form})
    table.append(pa.table({"id": range(10)}))
    (path,) = table.inspect.files()["file_path"].to_pylist()
    assert path.endswith(form)
    Path(path.removeprefix("file://")).unlink()
    for scan in (table.scan(), table.scan("id > 3"), table.scan(limit=1)):
        with pytest.raises(MissingFileError, match=Path(path).name):
            scan.to_arrow()


def test_a_file_that_goes_missing_is_named_as_missing(tmp_path):
    path = tmp_path / "file.orc"
    ice.orc.write_table(pa.table({"id": range(10)}), path)
    file = ice.orc.ORCFile(path)
    path.unlink()
    reads = [
        file.read,
        lambda: file.read(use_threads=False),
        lambda: file.read_stripe(0),
        lambda: list(file.iter_batches()),
    ]
    for read in reads:
        with pytest.raises(MissingFileError, match="file.orc"):
            read()


def _text(column, transform):
    kind, _, parameter = transform.partition("[")
    if transform == "identity":
        return f'"{column}"'
    return f'{kind}({parameter[:-1]}, "{column}")' if parameter else f'{kind}("{column}")'


def test_properties_decide_about_the_file(catalog):
    numbers = pa.table({"id": range(50_000), "name": [f"n{n % 100}" for n in range(50_000)]})
    for properties, expected in [
        ({}, {"compression": "ZLIB", "nstripes": 1}),
        ({"write.orc.compression-codec": "ZSTD"}, {"compression": "ZSTD"}),
        ({"write.orc.compression-codec": "none"}, {"compression": "UNCOMPRESSED"}),
        (
            {
                "write.orc.compression-codec": "lz4",
                "write.orc.stripe-size-bytes": "30000",
                "read.split.target-size": "1",
            },
            {"compression": "LZ4"},
        ),
    ]:
        table = catalog.create_table(f"a.t{len(catalog.list_tables('a'))}", numbers, properties=ORC | properties)
        table.append(numbers)
        (file,) = files(table)
        assert {name: getattr(file, name) for name in expected} == expected
        (offsets,) = table.inspect.files()["split_offsets"].to_pylist()
        assert offsets == [stripe["offset"] for stripe in file.inspect()["footer"]["stripes"]]
        assert table.scan("id = 49999").to_arrow()["name"].to_pylist() == ["n99"]
    assert len(offsets) > 2
    assert len(table.scan().plan_tasks()) == len(offsets)


def test_bloom_filters(catalog):
    rows = pa.table({"id": range(1000), "name": [f"n{n}" for n in range(1000)]})
    properties = ORC | {"write.orc.bloom.filter.columns": "name, id", "write.orc.bloom.filter.fpp": "0.01"}
    table = catalog.create_table("a.t", rows, properties=properties).append(rows)
    (file,) = files(table)
    kinds = {(stream["column"], stream["kind"]) for stream in file.inspect()["stripes"][0]["streams"]}
    assert {(1, "BLOOM_FILTER_UTF8"), (2, "BLOOM_FILTER_UTF8")} <= kinds
    assert table.scan("name = 'n7'").to_arrow()["id"].to_pylist() == [7]
    table = catalog.create_table("a.bad", rows, properties=ORC | {"write.orc.bloom.filter.columns": "nme"})
    with pytest.raises(InvalidArgumentError, match="write.orc.bloom.filter.columns': expected .*, got 'nme'"):
        table.append(rows)


def test_files_end_at_the_target_size(catalog):
    rng = Random(1)
    rows = pa.table({"id": range(400_000), "x": [rng.random() for _ in range(400_000)]})
    properties = {"write.target-file-size-bytes": "1000000", "write.orc.stripe-size-bytes": "500000"}
    table = catalog.create_table("a.t", rows, properties=ORC | properties)
    table.append(pa.Table.from_batches([batch for _ in range(3) for batch in rows.to_batches(100_000)]))
    sizes = table.inspect.files()["file_size_in_bytes"].to_pylist()
    assert len(sizes) > 1
    assert table.scan().to_arrow().num_rows == 1_200_000


def test_what_orc_cannot_hold_is_refused(catalog):
    rows = pa.table({"id": [1], "in": pa.array([{"ts": -500_000}], pa.struct([("ts", pa.timestamp("us"))]))})
    table = catalog.create_table("a.t", rows, properties=ORC)
    with pytest.raises(ValidationError, match="in: field ts: .*the last second before 1970"):
        table.append(rows)
    assert table.refresh().current_snapshot() is None


def test_other_formats_are_refused(catalog):
    rows = pa.table({"id": [1]})
    with pytest.raises(InvalidArgumentError, match=r"write\.format\.default"):
        catalog.create_table("a.t", rows, properties={"write.format.default": "csv"})


def test_variants_and_shapes(catalog):
    """The specification has a place for them in ORC, the Java library has none for shapes."""
    schema = ice.Schema.from_json(
        {
            "type": "struct",
            "schema-id": 0,
            "fields": [
                {"id": 1, "name": "v", "required": False, "type": "variant"},
                {"id": 2, "name": "g", "required": False, "type": "geometry"},
                {"id": 3, "name": "u", "required": False, "type": "unknown"},
                {"id": 4, "name": "n", "required": True, "type": "int"},
            ],
        }
    )
    table = catalog.create_table("a.t", schema, properties=ORC | {"format-version": 3})
    variant = pa.array([{"metadata": b"\x01\x00", "value": b"\x00"}, None], table.schema().to_arrow().field("v").type)
    point = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    rows = pa.table({"v": variant, "g": pa.array([None, point]), "n": pa.array([1, 2], pa.int32())})
    table.append(rows)
    (file,) = files(table)
    attributes = file.inspect()["attributes"]
    assert attributes["1"]["iceberg.struct-type"] == "VARIANT"
    assert "iceberg.id" not in attributes.get("2", {})
    assert attributes["4"]["iceberg.binary-type"] == "GEOMETRY"
    read = table.scan().to_arrow().sort_by("n").to_pylist()
    expected = {"metadata": b"\x01\x00", "value": b"\x00"}
    assert read == [{"v": expected, "g": None, "u": None, "n": 1}, {"v": None, "g": point, "u": None, "n": 2}]


@pytest.mark.parametrize("stripe_size", ["200000", "64000000"])
def test_large_files_are_read_in_order_by_several_threads(catalog, stripe_size):
    """By stripe, and by row group of the only stripe."""
    count = 300_000
    rows = pa.table({"id": range(count), "name": [f"n{n % 1000}" for n in range(count)]})
    table = catalog.create_table("a.t", rows, properties=ORC | {"write.orc.stripe-size-bytes": stripe_size}).append(
        rows
    )
    (file,) = files(table)
    assert (file.nstripes > 1) == (stripe_size == "200000")
    assert table.scan().to_arrow() == rows.cast(table.schema().to_arrow())
    found = table.scan("id >= 70000 AND id < 270000 AND name = 'n7'").to_arrow()["id"].to_pylist()
    assert found == list(range(70_007, 270_000, 1000))
    for use_threads in (False, True):
        assert file.to_reader(["id"], use_threads=use_threads).read_all()["id"].to_pylist() == list(range(count))
    with table.scan().to_arrow_batch_reader() as reader:
        assert reader.read_next_batch()["id"][0].as_py() == 0  # the rest is never asked for
    assert table.scan(limit=3).to_arrow()["id"].to_pylist() == [0, 1, 2]


def test_rows_of_null_structs_are_not_counted_and_yet_found(catalog):
    """All values of ``st.x`` are NaN, but a row without ``st`` has none: it is not NaN."""
    x = pa.struct([("x", pa.float64())])
    rows = pa.table({"id": [1, 2, 3], "st": pa.array([{"x": float("nan")}, None, {"x": float("nan")}], x)})
    table = catalog.create_table("a.t", rows, properties=ORC).append(rows)
    for op, found in [("not-nan", [2]), ("is-nan", [1, 3]), ("is-null", [2]), ("not-null", [1, 3])]:
        scan = table.scan(ice.expressions.from_json(json.dumps({"type": op, "term": "st.x"})))
        assert scan.to_arrow()["id"].to_pylist() == found, op
        assert scan.count() == len(found), op
