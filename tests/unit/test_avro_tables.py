"""Tables with Avro data files: what is written is read, filtered and described as with Parquet."""

import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import CorruptDataError, IcefieldError, UnsupportedFeatureError
from worlds.predicates import random_predicate
from worlds.tables import TRANSFORMS, primitives, random_rows, random_schema
from worlds.truth import rows_of_table

AVRO = {"write.format.default": "avro"}


@pytest.fixture
def catalog(tmp_path):
    opened = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    opened.create_namespace("a")
    with opened:
        yield opened


@pytest.mark.parametrize("seed", range(20))
def test_random_tables_are_read_and_filtered(catalog, seed):
    rng = Random(seed)
    version = rng.choice([1, 2, 3, 3])
    schema = random_schema(rng, version)
    codec = rng.choice(["gzip", "zstd", "snappy", "uncompressed"])
    properties = AVRO | {"format-version": version, "write.avro.compression-codec": codec}
    table = catalog.create_table("a.t", schema, properties=properties)
    written = random_rows(rng, table.schema(), 0, rng.choice([1, 10, 600]))
    table.append(written)
    truth = rows_of_table(written, table.schema())
    assert sorted(map(repr, rows_of_table(table.scan().to_arrow(), table.schema()))) == sorted(map(repr, truth))
    id_ = table.schema().find_field("id").field_id
    for _ in range(5):
        predicate = random_predicate(rng, primitives(table.schema()), TRANSFORMS)
        text = json.dumps(predicate.json())
        scan = table.scan(ice.expressions.from_json(text, table.schema() if predicate.typed else None))
        expected = sorted(row[id_] for row in truth if predicate.matches(row))
        assert sorted(scan.to_arrow()["id"].to_pylist()) == expected, text
        assert scan.count() == len(expected), text


def test_files_are_described_as_the_library_describes_them(catalog):
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64()), ("x", pa.float64())]), properties=AVRO)
    table.append(pa.table({"id": [1, 2, None], "x": [0.5, None, float("nan")]}))
    (file,) = table.inspect.files().to_pylist()
    assert file["file_format"] == "AVRO"
    assert file["file_path"].endswith(".avro")
    assert file["record_count"] == 3
    counted = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    assert {name: file[name] for name in (*counted, "split_offsets")} == dict.fromkeys((*counted, "split_offsets"))


def test_files_end_at_the_target_size(catalog):
    rows = pa.table({"id": range(200_000)})
    properties = AVRO | {"write.target-file-size-bytes": "100000", "write.avro.compression-codec": "uncompressed"}
    table = catalog.create_table("a.t", rows, properties=properties)
    table.append(pa.Table.from_batches(rows.to_batches(20_000)))
    sizes = table.inspect.files()["file_size_in_bytes"].to_pylist()
    assert len(sizes) > 2
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(200_000))


def test_parts_of_a_file_have_each_row_once(catalog):
    rows = pa.table({"id": range(50_000), "s": [f"text {n}" for n in range(50_000)]})
    table = catalog.create_table("a.t", rows, properties=AVRO).append(rows)
    (size,) = table.inspect.files()["file_size_in_bytes"].to_pylist()
    tasks = table.scan("id >= 10").tasks(split_size=size // 7)
    assert len(tasks) >= 7
    parts = [task.rows(table.storage).to_pyarrow().read_all() for task in tasks]
    assert sum(part.num_rows > 0 for part in parts) > 3
    assert pa.concat_tables(parts).sort_by("id").to_pylist() == rows.slice(10).to_pylist()


def test_files_of_three_formats_in_one_table(catalog):
    table = catalog.create_table("a.t", pa.schema([("id", pa.int64()), ("old", pa.int32())]))
    for first, form in enumerate(["parquet", "orc", "avro"]):
        with table.transaction() as changes:
            changes.set_properties({"write.format.default": form})
        table.refresh()
        table.append(pa.table({"id": [first], "old": pa.array([first], pa.int32())}))
    with table.update_schema() as update:
        update.rename_column("old", "new").update_column("old", "long").add_column("more", "string")
    table.append(pa.table({"id": [3], "new": [1 << 40], "more": ["x"]}))
    found = table.refresh().scan().to_arrow().sort_by("id").to_pydict()
    assert found == {"id": [0, 1, 2, 3], "new": [0, 1, 2, 1 << 40], "more": [None, None, None, "x"]}
    assert table.scan("new >= 2").to_arrow().num_rows == 2
    assert sorted(table.inspect.files()["file_format"].to_pylist()) == ["AVRO", "AVRO", "ORC", "PARQUET"]


def test_names_that_would_be_the_same_in_avro_are_refused(catalog):
    rows = pa.table({"a b": [1], "a_x20b": [2]})
    table = catalog.create_table("a.t", rows, properties=AVRO)
    with pytest.raises(UnsupportedFeatureError, match="a_x20b"):
        table.append(rows)


@pytest.mark.parametrize("setting", [{"write.avro.compression-codec": "lz4"}, {"write.avro.compression-level": "99"}])
def test_codecs_and_levels_that_are_not_there_are_refused(catalog, setting):
    rows = pa.table({"a": [1]})
    with pytest.raises(IcefieldError, match=next(iter(setting))):
        catalog.create_table("a.t", rows, properties=AVRO | setting).append(rows)


def test_damage_is_named_with_its_file_and_place(catalog):
    rows = pa.table({"s": ["x" * 50] * 100})
    table = catalog.create_table("a.t", rows, properties=AVRO | {"write.avro.compression-codec": "uncompressed"})
    table.append(rows)
    (location,) = table.inspect.files()["file_path"].to_pylist()
    path = Path(location.removeprefix("file://"))
    whole = path.read_bytes()
    first = whole.index(b"x" * 50) - 1
    for at, byte, place in [
        (first, 0xFF, "column s"),
        (first, 0x01, "column s"),
        (first + 3, 0xFF, "column s"),
        (len(whole) - 1, whole[-1] ^ 1, "sync marker"),
    ]:
        path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
        with pytest.raises(CorruptDataError, match=place) as caught:
            table.scan().to_arrow()
        assert path.name in str(caught.value)
