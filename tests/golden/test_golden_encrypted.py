"""Golden tables written again as encrypted ones: nothing of their rows in the storage, and the same rows read back."""

from __future__ import annotations

from pathlib import Path

import pytest

import icefield as ice
from icefield.encryption import MemoryKeys
from icefield.expressions import AlwaysTrue
from worlds.golden import names, open_table, plain

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


#: Every fourth table, which has all kinds of columns and histories among them.
SAMPLE = list(enumerate(names()[::4]))


@pytest.mark.parametrize(("number", "name"), SAMPLE)
def test_rows_written_again_encrypted(number: int, name: str, catalog: ice.Catalog, scratch: Path) -> None:
    source = open_table(name, scratch)
    try:
        expected = source.scan().to_arrow()
    except ice.UnsupportedFeatureError as error:
        pytest.skip(f"refused: {error}")
    properties = {
        "format-version": "3",
        "encryption.key-id": "key",
        "encryption.data-key-length": "16" if number % 4 < 2 else "32",
        "write.format.default": "parquet" if number % 2 else "avro",
    }
    table = catalog.create_table(f"db.{name}", source.schema(), properties=properties).append(expected)
    # As another process reads it: without what this one knows of the files.
    catalog.register_table(f"db.{name}_again", table.metadata_location)
    found = catalog.load_table(f"db.{name}_again").scan().to_arrow()
    for column in expected.schema.names:
        # Arrow's comparison takes NaN for different; Python has no days beyond the year 9999.
        same = found[column].equals(expected[column])
        assert same or plain(found.select([column]), [column]) == plain(expected.select([column]), [column]), column
    for path, _ in table.storage.list(table.location()):
        if not path.endswith(".metadata.json"):
            head = Path(path.removeprefix("file://")).read_bytes()[:4]
            assert head == (b"PARE" if path.endswith(".parquet") else b"AGS1"), path
    if expected.num_rows and "variant" not in str(source.schema()):
        table.delete(AlwaysTrue(), mode="merge-on-read")
        assert table.refresh().scan().count() == 0
        assert table.refresh().scan(snapshot_id=table.snapshots()[0].snapshot_id).count() == expected.num_rows
