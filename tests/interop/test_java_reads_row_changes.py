"""Java reads the rows that our deletes, updates and upserts leave, deletes some beside them, and we read the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

CATALOG = "changed"
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.int32()), ("s", pa.string())])


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    columns = [list(ids), [None if at % 5 == 0 else at % 7 for at in ids], [f"s{at % 3}" for at in ids]]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory, java: Java) -> ice.catalog.Catalog:
    folder = tmp_path_factory.mktemp("changed")
    ours = ice.load_catalog(CATALOG, uri=f"sqlite:///{folder}/catalog.db", warehouse=str(folder))
    ours.create_namespace("db")
    java.catalog(CATALOG, Path(folder) / "catalog.db", folder)
    return ours


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("granularity", ["file", "partition"])
def test_java_reads_what_our_changes_leave(
    catalog: ice.catalog.Catalog, java: Java, version: int, mode: Any, form: str, granularity: str
) -> None:
    name = f"t_{version}_{mode[:4]}_{form}_{granularity}"
    properties = {
        "format-version": str(version),
        "write.format.default": form,
        "write.delete.granularity": granularity,
        "write.delete.mode": mode,
        "write.update.mode": mode,
        "write.merge.mode": mode,
    }
    table = catalog.create_table(f"db.{name}", schema=SCHEMA, partition_by=["s"], properties=properties)
    lineage = ", _row_id, _last_updated_sequence_number" if version == 3 else ""
    columns = (*SCHEMA.names, *lineage.split(", ")[1:])

    def agree() -> None:
        java.sql(f"REFRESH TABLE {CATALOG}.db.{name}")
        theirs = java.rows(f"SELECT id, v, s{lineage} FROM {CATALOG}.db.{name}").sort_by("id").to_pylist()
        assert theirs == table.scan(selected_fields=columns).to_arrow().sort_by("id").to_pylist()

    table.append(rows(0, 30)).append(rows(30, 30))
    table.delete("v = 3")
    agree()
    table.delete("v IN (1, 2) AND id > 20")
    agree()
    table.update({"v": 100, "s": "s9"}, "v = 4")
    agree()
    assert table.upsert(rows(50, 20), ["id"]).rows_inserted > 0
    agree()
    # Java's own deletes beside ours, and ours beside Java's.
    java.sql(f"DELETE FROM {CATALOG}.db.{name} WHERE id % 10 = 7")
    table.refresh()
    assert not [at for at in table.scan().to_arrow()["id"].to_pylist() if at % 10 == 7]
    agree()
    table.delete("id >= 58 AND v IS NULL")
    agree()
    table.overwrite(rows(1000, 3), "s = 's1'")
    agree()
    java.sql(f"UPDATE {CATALOG}.db.{name} SET v = 55 WHERE s = 's9'")
    table.refresh()
    table.dynamic_partition_overwrite(rows(2000, 2))
    agree()
    assert table.scan().count() == table.scan().to_arrow().num_rows
