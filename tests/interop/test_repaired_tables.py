"""Java reads a table whose wrong manifests were repaired: the rows that wrong bounds had hidden are there again."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.manifests import DataFile

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

CATALOG = "repaired"
ROWS = pa.table({"id": pa.array([5, 6, 7, 8], pa.int64()), "name": ["e", "f", None, "g"]})
MAPS = ("column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory, java: Java) -> ice.catalog.Catalog:
    folder = tmp_path_factory.mktemp("repaired")
    ours = ice.load_catalog(CATALOG, uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    ours.create_namespace("db")
    java.catalog(CATALOG, Path(folder) / "catalog.db", folder)
    return ours


@pytest.mark.parametrize("form", ["parquet", "orc"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_hidden_rows_are_back(catalog: ice.catalog.Catalog, java: Java, version: int, form: str) -> None:
    properties = {"format-version": str(version), "write.format.default": form}
    source = catalog.create_table(f"db.source_{version}_{form}", ROWS.schema, properties=properties)
    source.append(ROWS)
    (described,) = source.inspect.files().to_pylist()
    fields: dict[str, Any] = {key: dict(value) if key in MAPS else value for key, value in described.items() if value}
    given = {key: value for key, value in fields.items() if key not in {"content", "readable_metrics", "first_row_id"}}
    given["upper_bounds"][1] = struct.pack("<q", 6)
    given["file_size_in_bytes"] += 1
    name = f"db.table_{version}_{form}"
    table = catalog.create_table(name, ROWS.schema, properties=properties)
    table.append(ROWS)
    table.update_snapshot().fast_append().append_data_file(DataFile(**given)).commit()
    assert table.scan("id = 8").count() == 1
    done = table.maintenance.repair()
    assert {"file-size", "file-upper-bound"} <= {one.check for one in done.corrections}
    assert done.left == []
    assert table.refresh().scan("id = 8").count() == 2
    java.sql(f"REFRESH TABLE {CATALOG}.{name}")
    assert java.rows(f"SELECT id FROM {CATALOG}.{name} WHERE id = 8").num_rows == 2
    theirs = java.rows(f"SELECT id, name FROM {CATALOG}.{name} ORDER BY id, name").to_pylist()
    assert theirs == sorted([*ROWS.to_pylist(), *ROWS.to_pylist()], key=lambda row: row["id"])
    assert (
        java.rows(
            f"SELECT * FROM {CATALOG}.{name}.entries WHERE status = 0 AND snapshot_id = {done.snapshot_id}"
        ).num_rows
        == 0
    )
