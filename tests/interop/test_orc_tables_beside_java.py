"""ORC data files between Java and us: either reads what the other wrote, and both say the same of the same rows.

Random tables of every type: Java's generic reader reads the files that we wrote and writes their rows again, as ORC and
as Parquet. The metrics of its ORC file must be those of ours, every row must be there four times, and random filters
must find what a naive evaluation finds. Then Spark's reader, over every partition transform.
"""

from __future__ import annotations

import json
import os
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from test_java_reads_ours import SCHEMA, SPECS, rows, same

import icefield as ice
from worlds.predicates import random_predicate
from worlds.tables import TRANSFORMS, primitives, random_rows, random_schema
from worlds.truth import rows_of_table

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

TABLES = int(os.environ.get("ICEFIELD_RANDOM_CASES", "200")) // 10
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
CATALOG = "orc"
MODES = ("truncate(16)", "truncate(1)", "truncate(3)", "full", "counts", "none")
METRICS = ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
CODECS = ("zlib", "zstd", "snappy", "lz4", "none")


@pytest.mark.parametrize("number", range(TABLES))
def test_random_tables(catalog: ice.catalog.Catalog, java: Java, number: int) -> None:
    rng = Random(SEED * 1000 + number)
    version = rng.choice([1, 2, 3, 3])
    schema = random_schema(rng, version)
    properties = {
        "format-version": str(version),
        "write.format.default": "orc",
        "write.metadata.metrics.default": rng.choice(MODES),
        "write.orc.compression-codec": rng.choice(CODECS),
        "write.orc.compression-strategy": rng.choice(["speed", "compression"]),
        "write.orc.bloom.filter.columns": rng.choice(["", "id"]),
    }
    table = catalog.create_table(f"db.t{number}", schema=schema, properties=properties)
    written = random_rows(rng, table.schema(), 0, rng.choice([1, 4, 30, 400]), orc=True)
    table.append(written)

    ids = list(range(written.num_rows))
    for file_format in ("orc", "parquet"):
        assert java.do("write", table=f"{CATALOG}.db.t{number}", how="copy", ids=ids, file_format=file_format) == 1
    table.refresh()

    ours, theirs = metrics(table)
    assert ours == theirs, f"seed {SEED}, table {number}: {properties}"

    # Ours, Java's copy of it, and the copy of both.
    truth = [row for row in rows_of_table(written, table.schema()) for _ in range(4)]
    read = rows_of_table(table.scan().to_arrow().combine_chunks(), table.schema())
    assert sorted(map(repr, read)) == sorted(map(repr, truth))

    id_ = table.schema().find_field("id").field_id
    for _ in range(20):
        predicate = random_predicate(rng, primitives(table.schema()), TRANSFORMS)
        text = json.dumps(predicate.json())
        expression = ice.expressions.from_json(text, table.schema() if predicate.typed else None)
        found = table.scan(expression).to_arrow()["id"].to_pylist()
        assert sorted(found) == sorted(row[id_] for row in truth if predicate.matches(row)), text


def metrics(table: ice.Table) -> list[dict[str, Any]]:
    """Give what manifests say of the two ORC files, ours first."""
    files = [file for file in table.inspect.files().to_pylist() if file["file_format"] == "ORC"]
    files.sort(key=lambda file: file["file_path"].rsplit("/", 1)[1].startswith("00001-1-"))
    assert len(files) == 2, files
    return [
        {
            "record_count": file["record_count"],
            "split_offsets": file["split_offsets"],
            "columns": sorted(key for key, _ in file["column_sizes"] or ()),
            **{name: sorted(file[name] or ()) for name in METRICS},
        }
        for file in files
    ]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("spec", SPECS)
def test_spark_reads_and_appends(catalog: ice.catalog.Catalog, java: Java, spec: str, version: int) -> None:
    name = f"{spec}_v{version}"
    properties = {"format-version": str(version), "write.format.default": "orc"}
    table = catalog.create_table(f"db.{name}", schema=SCHEMA, partition_by=SPECS[spec], properties=properties)
    table.append(rows(0, 12))
    assert set(table.inspect.files()["file_format"].to_pylist()) == {"ORC"}

    same(java.rows(f"SELECT * FROM {CATALOG}.db.{name}"), rows(0, 12))
    one = java.rows(f"SELECT id FROM {CATALOG}.db.{name} WHERE id = 4 AND s LIKE 'ä 1%'")
    assert one.column("id").to_pylist() == [4]

    java.insert(f"{CATALOG}.db.{name}", rows(12, 6))
    same(table.refresh().scan().to_arrow(), rows(0, 18))
    assert set(table.inspect.files()["file_format"].to_pylist()) == {"ORC"}
    assert table.scan(row_filter="id >= 12").to_arrow().num_rows == 6


NESTED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("l", pa.list_(pa.struct([("x", pa.int32()), ("t", pa.list_(pa.string()))]))),
        pa.field("m", pa.map_(pa.string(), pa.decimal128(20, 2))),
        pa.field("st", pa.struct([("day", pa.date32()), ("in", pa.struct([("ts", pa.timestamp("us"))]))])),
    ]
)


def test_spark_reads_nested_columns_and_old_days(catalog: ice.catalog.Catalog, java: Java) -> None:
    values = [
        {"id": 1, "l": [{"x": 1, "t": ["a", None]}, None], "m": [("k", None), ("ä", 1)], "st": {"day": -700_000}},
        {"id": 2, "l": [], "m": [], "st": {"day": None, "in": {"ts": -62_135_596_800_000_000}}},
        {"id": 3},
        {"id": 4, "l": [{"x": None, "t": None}], "m": [("", 2)], "st": {"in": {"ts": -123_456_789_000_001}}},
    ]
    written = pa.Table.from_pylist(values, schema=NESTED)
    table = catalog.create_table("db.nested", schema=NESTED, properties={"write.format.default": "orc"})
    table.append(written)
    read = java.rows(f"SELECT * FROM {CATALOG}.db.nested").sort_by("id")
    assert [repr(row) for row in read.to_pylist()] == [repr(row) for row in written.to_pylist()]


def test_pyiceberg_reads_it(catalog: ice.catalog.Catalog) -> None:
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    table = catalog.create_table("db.peer", schema=SCHEMA, properties={"write.format.default": "orc"})
    table.append(rows(0, 9))
    theirs = sql.SqlCatalog(CATALOG, uri=catalog.properties["uri"], warehouse=catalog.properties["warehouse"])
    same(theirs.load_table("db.peer").scan().to_arrow(), rows(0, 9))
