"""Golden tables written again as encrypted ones: nothing of their rows in the storage, and the same rows read back."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pytest

import icefield as ice
from icefield import variant
from icefield.encryption import MemoryKeys
from worlds.golden import facts, names, open_table, plain
from worlds.sample import sample

pytestmark = pytest.mark.golden


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> ice.Catalog:
    catalog = ice.load_catalog("keys", type="in-memory", warehouse=str(tmp_path_factory.mktemp("encrypted")))
    catalog.create_namespace("db")
    catalog.key_management = MemoryKeys({"key": b"0123456789012345"})
    return catalog


def order(number: int) -> list[str]:
    """Alternate between the formats, so that a sample has both."""
    return ["parquet", "avro"] if number % 2 else ["avro", "parquet"]


#: Each table as Parquet and as Avro; ``make test`` takes every ninth case.
CASES = [(name, format) for number, name in enumerate(names()) for format in order(number)]
SAMPLE = sample(CASES, 9)


@pytest.mark.parametrize(("name", "format"), SAMPLE)
def test_rows_written_again_encrypted(name: str, format: str, catalog: ice.Catalog, scratch: Path) -> None:
    source = open_table(name, scratch)
    key = facts(name)["key"]
    try:
        expected = source.scan().to_arrow()
    except ice.UnsupportedFeatureError as error:
        pytest.skip(f"refused: {error}")
    properties = {
        "format-version": "3",
        "encryption.key-id": "key",
        "encryption.data-key-length": "16" if len(name) % 2 else "32",
        "write.format.default": format,
        "write.parquet.shred-variants": "true",
    }
    table = catalog.create_table(f"db.{name}_{format}", source.schema(), properties=properties).append(expected)
    check(again(catalog, table), expected, key)
    if expected.num_rows == 0:
        return
    # By vectors, by the values of keys, and both turned into vectors.
    keys = sorted(expected[key].unique().drop_null().to_pylist())
    table.delete(ice.expressions.In(key, keys[::3]), mode="merge-on-read")
    with table.upsert_stream(key) as stream:
        stream.delete(expected.select([key]).filter(pa.compute.is_in(expected[key], pa.array(keys[1::3]))))
    kept = expected.filter(pa.compute.invert(pa.compute.is_in(expected[key], pa.array(keys[::3] + keys[1::3]))))
    check(again(catalog, table.refresh()), kept, key)
    table.maintenance.convert_equality_deletes()
    check(again(catalog, table.refresh()), kept, key)
    table.maintenance.compact(options={"rewrite-all": True})
    check(again(catalog, table.refresh()), kept, key)
    assert table.fsck("rows").findings == []
    for path, _ in table.storage.list(table.location()):
        if not path.endswith(".metadata.json"):
            head = Path(path.removeprefix("file://")).read_bytes()[:4]
            assert head == (b"PARE" if path.endswith(".parquet") else b"AGS1"), path


def again(catalog: ice.Catalog, table: ice.Table) -> ice.Table:
    """Open the table as another process does: without what this one knows of the files."""
    catalog.register_table("db.again", table.metadata_location)
    found = catalog.load_table("db.again")
    catalog.drop_table("db.again")
    return found


def check(table: ice.Table, expected: pa.Table, key: str) -> None:
    """Compare the rows of a table, in any order."""
    variants = [field.name for field in table.schema().fields if str(field.field_type) == "variant"]
    found, expected = (texts(rows.sort_by(key), variants) for rows in (table.scan().to_arrow(), expected))
    for column in expected.schema.names:
        # Arrow's comparison takes NaN for different; Python has no days beyond the year 9999.
        same = found[column].equals(expected[column])
        assert same or plain(found.select([column]), [column]) == plain(expected.select([column]), [column]), column


def texts(rows: pa.Table, variants: list[str]) -> pa.Table:
    """Give variants as texts: those that were shredded may have other bytes."""
    for name in variants:
        rows = rows.set_column(rows.schema.names.index(name), name, variant.to_json(rows[name]))
    return rows
