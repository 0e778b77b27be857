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


# The granularity is that of position delete files: neither copies nor vectors have one.
WAYS = [
    (2, "copy-on-write", "file"),
    (2, "merge-on-read", "file"),
    (2, "merge-on-read", "partition"),
    (3, "copy-on-write", "file"),
    (3, "merge-on-read", "file"),
]


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
@pytest.mark.parametrize(("version", "mode", "granularity"), WAYS)
def test_java_reads_what_our_changes_leave(
    catalog: ice.catalog.Catalog, java: Java, version: int, mode: Any, granularity: str, form: str
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


@pytest.mark.parametrize("form", ["parquet", "orc", "avro"])
@pytest.mark.parametrize("version", [2, 3])
def test_java_reads_merges_and_streams_of_upserts(
    catalog: ice.catalog.Catalog, java: Java, version: int, form: str
) -> None:
    name = f"m_{version}_{form}"
    properties = {"format-version": str(version), "write.format.default": form}
    partition = ["bucket(2, id)"]
    table = catalog.create_table(f"db.{name}", schema=SCHEMA, partition_by=partition, properties=properties)

    def agree() -> None:
        java.sql(f"REFRESH TABLE {CATALOG}.db.{name}")
        theirs = java.rows(f"SELECT id, v, s FROM {CATALOG}.db.{name}").sort_by("id").to_pylist()
        assert theirs == table.scan().to_arrow().sort_by("id").to_pylist()

    table.append(rows(0, 30)).append(rows(30, 30))
    merge = table.merge(rows(20, 50), "id", mode="merge-on-read").when_matched_update({"v": 77}, "source.v = 3")
    done = merge.when_matched_delete("target.v = 2").when_not_matched_insert_all().execute()
    assert min(done.rows_updated, done.rows_deleted, done.rows_inserted) > 0
    agree()
    with table.upsert_stream("id") as stream:
        stream.upsert(rows(5, 10).set_column(2, "s", pa.array(["stream"] * 10))).delete(pa.table({"id": [5, 29, 999]}))
        stream.commit()
        agree()
        stream.upsert(rows(5, 1)).upsert(rows(100, 2)).delete(pa.table({"id": [100]}))
    agree()
    assert {file["content"] for file in table.inspect.files().to_pylist()} >= {0, 2}
    # Java's deletes beside ours.
    java.sql(f"DELETE FROM {CATALOG}.db.{name} WHERE s = 'stream'")
    table.refresh()
    agree()
