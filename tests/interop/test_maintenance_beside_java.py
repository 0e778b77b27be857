"""Maintenance by Java's procedures and by ours on the same tables: the same orphans, the same numbers."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice
from icefield.procedures import call

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

CATALOG = "upkeep"
DAY = 86_400


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory, java: Java) -> ice.Catalog:
    folder = tmp_path_factory.mktemp(CATALOG)
    database = folder / "catalog.db"
    made = ice.load_catalog(CATALOG, uri=f"sqlite:///{database}", warehouse=str(folder))
    made.create_namespace("db")
    java.catalog(CATALOG, database, folder)
    return made


def test_orphans(catalog: ice.Catalog, java: Java) -> None:
    schema = pa.schema({"id": pa.int64(), "_day": pa.string()})
    table = catalog.create_table("db.t", schema, partition_spec=["_day"], properties={"format-version": "2"})
    rows = pa.table({"id": [1, 2], "_day": ["a", "b"]}, schema=schema)
    table.append(rows)
    java.sql(f"INSERT INTO {CATALOG}.db.t VALUES (3, 'a')")
    java.sql(f"DELETE FROM {CATALOG}.db.t WHERE id = 1")
    table.refresh()
    table.maintenance.compute_table_stats()
    folder = Path(table.location().removeprefix("file://"))
    for name in (
        "x",
        "data/x.parquet",
        "data/_day=a/x",
        "data/_x/y",
        "data/.x",
        "metadata/x.avro",
        "metadata/_x",
        "new",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"orphan")
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "new":
            os.utime(path, (time.time() - 9 * DAY,) * 2)
    theirs = java.rows(f"CALL {CATALOG}.system.remove_orphan_files(table => 'db.t', dry_run => true)")
    ours = call(catalog, "remove_orphan_files", table="db.t", dry_run=True)

    def names(found: pa.Table) -> set[Path]:
        assert found.column_names == ["orphan_file_location"]
        return {Path("/" + path.removeprefix("file:").lstrip("/")) for path in found[0].to_pylist()}

    expected = {folder / name for name in ("x", "data/x.parquet", "data/_day=a/x", "metadata/x.avro")}
    assert names(ours) == names(theirs) == expected
    assert names(call(catalog, "remove_orphan_files", table="db.t")) == expected
    gone = java.rows(f"CALL {CATALOG}.system.remove_orphan_files(table => 'db.t')")
    assert gone.num_rows == 0
    assert java.rows(f"SELECT count(*) AS n FROM {CATALOG}.db.t")["n"].to_pylist() == [2]


def test_distinct_values(catalog: ice.Catalog, java: Java) -> None:
    count = 20_000
    rows = pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "few": pa.array([number % 7 for number in range(count)], pa.int32()),
            "text": [f"name {number % 9000}" if number % 3 else None for number in range(count)],
            "flag": [number % 2 == 0 for number in range(count)],
            "real": [number / 4 for number in range(count)],
            "day": pa.array([number % 400 for number in range(count)], pa.int32()).cast(pa.date32()),
            "at": pa.array([number % 6000 for number in range(count)], pa.timestamp("us", "UTC")),
            "bin": [str(number % 5).encode() for number in range(count)],
        }
    )
    table = catalog.create_table("db.n", rows.schema, properties={"format-version": "2"})
    table.append(rows)
    done = table.maintenance.compute_table_stats()
    assert done is not None
    own = java.do("sketches", table=f"{CATALOG}.db.n")
    exact = {name: len(set(rows[name].drop_null().to_pylist())) for name in rows.column_names}
    ids = {name: str(table.schema().find_field(name).field_id) for name in rows.column_names}
    for name, number in exact.items():
        # Three times the standard error of a sketch of 4,096 hashes.
        assert done.distinct[name] == pytest.approx(number, rel=0.05 if number > 4096 else 0), name
        assert int(own[ids[name]]) == done.distinct[name], name
    answer = java.rows(f"CALL {CATALOG}.system.compute_table_stats('db.n')")
    assert answer.column_names == call(catalog, "compute_table_stats", table="db.n").column_names
    java.rows(f"CALL {CATALOG}.system.compute_table_stats('db.n')")
    [file] = json.loads(table.refresh().metadata_json())["statistics"]
    theirs = {blob["fields"][0]: int(blob["properties"]["ndv"]) for blob in file["blob-metadata"]}
    for name, number in done.distinct.items():
        assert theirs[int(ids[name])] == pytest.approx(number, rel=0.1 if exact[name] > 4096 else 0), name
    assert table.fsck("footers").findings == []


@pytest.mark.parametrize(("version", "file_format"), [(1, "parquet"), (2, "avro"), (3, "parquet")])
def test_partition_statistics(java: Java, catalog: ice.Catalog, version: int, file_format: str) -> None:
    """Both count the same for each snapshot, from the file that the other wrote for the one before."""
    mode = "copy-on-write" if version == 1 else "merge-on-read"
    properties = {"format-version": str(version), "write.format.default": file_format, "write.delete.mode": mode}
    rows = pa.table({"id": list(range(20)), "day": [None if n % 4 == 0 else "abc"[n % 3] for n in range(20)]})
    location = ""
    for step in range(4):
        name = f"db.p{version}_{step}"
        if step == 0:
            table = catalog.create_table(
                name, rows.schema, partition_by=["day", "bucket[2](id)"], properties=properties
            )
        else:
            table = catalog.register_table(name, location)
        table.append(rows)
        table.delete(f"id in ({step}, {step + 5})")
        if step == 2:
            table.delete("day = 'c'")
        twin = catalog.register_table(f"{name}_twin", table.metadata_location)
        done = table.maintenance.compute_partition_stats()
        assert done is not None
        [path] = java.rows(f"CALL {CATALOG}.system.compute_partition_stats('{name}_twin')")[0].to_pylist()
        assert path.endswith(file_format)
        assert done.path.endswith(file_format)
        twin.refresh()
        ours, theirs = (one.inspect.partition_statistics() for one in (table, twin))
        assert ours is not None
        assert theirs is not None
        assert ours.num_rows > 4
        unknown = ["total_record_count"]
        if version == 3:
            assert ours["total_record_count"].null_count == 0
        assert ours.drop(unknown).to_pylist() == theirs.drop(unknown).to_pylist()
        location = (twin if step % 2 else table).metadata_location
    assert table.fsck("files").findings == []
