"""Rows in, rows out: appends from every kind of frame, scans to every kind of frame."""

import json
from datetime import datetime, timezone

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError, MissingFileError, UnsupportedFeatureError, ValidationError

ROWS = pa.table(
    {
        "id": pa.array(range(100), pa.int64()),
        "name": [None if number % 7 == 0 else f"n{number}" for number in range(100)],
        "day": pa.array([18_000 + number // 10 for number in range(100)], pa.date32()),
        "nested": pa.array([{"x": number / 2, "tags": ["a"] * (number % 3)} for number in range(100)]),
    }
)


@pytest.fixture(params=["file", "memory"])
def catalog(request, tmp_path):
    if request.param == "memory":
        opened = ice.load_catalog("m", type="in-memory")
    else:
        opened = ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh"))
    opened.create_namespace("a")
    with opened:
        yield opened


@pytest.fixture(params=[1, 2, 3])
def table(request, catalog):
    table = catalog.create_table("a.t", ROWS, partition_by="day", properties={"format-version": request.param})
    table.append(ROWS.slice(0, 50))
    return table.append(ROWS.slice(50), snapshot_properties={"who": "me"})


def test_what_is_appended_is_read(table):
    assert table.scan().to_arrow().sort_by("id").to_pylist() == ROWS.to_pylist()
    assert table.scan().count() == 100
    first, second = table.snapshots()
    assert second.parent_snapshot_id == first.snapshot_id
    assert (second.operation, second.summary["added-records"], second.summary["who"]) == ("append", "50", "me")
    assert table.current_snapshot() == second
    assert [entry.snapshot_id for entry in table.history()] == [first.snapshot_id, second.snapshot_id]
    assert table.refs()["main"].snapshot_id == second.snapshot_id


@pytest.mark.parametrize(
    ("row_filter", "expected"),
    [
        ("id >= 90", pc.field("id") >= 90),
        ("day = '2019-04-15'", pc.field("day") == pa.scalar(18_001, pa.date32())),
        ("name IS NULL AND id < 30", pc.field("name").is_null() & (pc.field("id") < 30)),
        ("nested.x > 48.0", pc.field("nested", "x") > 48.0),
        ("id IN (1, 2, 300)", pc.field("id").isin([1, 2, 300])),
        ("id > 1000", pc.field("id") > 1000),
    ],
)
def test_filters_are_exact(table, row_filter, expected):
    scan = table.scan(row_filter=row_filter)
    assert scan.to_arrow().sort_by("id").to_pylist() == ROWS.filter(expected).to_pylist()
    assert scan.count() == ROWS.filter(expected).num_rows


def test_columns_limits_and_plans(table):
    scan = table.scan("id >= 90", selected_fields=("name", "id"), limit=3)
    assert scan.to_arrow().column_names == ["name", "id"]
    assert scan.to_arrow().num_rows == 3
    assert scan.projection().column_names == ["name", "id"]
    plan = scan.plan_files()
    assert len(plan) == 1
    assert plan.report["skipped_data_files"] == 9
    assert plan.files[0]["record_count"] == 10
    assert scan.plan_tasks().num_rows == 1
    assert "1 to read, 9 skipped" in scan.explain()
    assert table.scan(selected_fields="nested.x").to_arrow().schema.field("nested").type.num_fields == 1


def test_time_travel(table):
    first, second = table.snapshots()
    assert table.scan(snapshot_id=first.snapshot_id).count() == 50
    assert table.scan(ref="main").count() == 100
    assert table.scan(as_of=second.timestamp_ms).count() == 100
    assert table.scan(as_of=datetime.now(timezone.utc)).count() == 100
    with pytest.raises(InvalidArgumentError, match="no snapshot 1 "):
        table.scan(snapshot_id=1)
    with pytest.raises(InvalidArgumentError, match="no branch or tag"):
        table.scan(ref="none")
    with pytest.raises(InvalidArgumentError, match="no snapshot at"):
        table.scan(as_of=1)


def test_a_branch_that_an_append_makes_begins_at_the_current_snapshot(catalog):
    rows = ROWS.slice(0, 10)
    table = catalog.create_table("a.t", ROWS).append(rows, branch="early")
    assert (table.scan(ref="early").count(), table.current_snapshot()) == (10, None)
    table.append(rows).append(rows, branch="audit").append(rows, branch="audit")
    assert (table.scan(ref="audit").count(), table.scan(ref="early").count(), table.scan().count()) == (30, 10, 10)
    assert table.snapshot_by_name("audit").summary["total-records"] == "30"
    with pytest.raises(InvalidArgumentError, match="the name of the branch is empty"):
        table.append(rows, branch="")


def test_times_that_are_none_are_refused(catalog):
    table = catalog.create_table("a.t", pa.schema([("at", pa.time64("us"))]))
    for wrong in (-1, 86_400_000_000):
        with pytest.raises(ValidationError, match=f"column at: row 1 is {wrong} microseconds from midnight"):
            table.append(pa.table({"at": pa.array([0, wrong], pa.int64()).view(pa.time64("us"))}))
    assert table.snapshots() == []


def test_every_frame_out(table):
    scan = table.scan(selected_fields=("id", "name"))
    assert isinstance(scan.to_pandas(), pd.DataFrame)
    assert scan.to_polars().height == 100
    assert pl.DataFrame(scan).height == 100
    assert scan.to_duckdb("t").sql("SELECT count(*) FROM t").fetchall() == [(100,)]
    reader = scan.to_arrow_batch_reader()
    assert sum(batch.num_rows for batch in reader) == 100


FRAMES = {
    "pyarrow": lambda rows: rows,
    "reader": lambda rows: rows.to_reader(max_chunksize=7),
    "batch": lambda rows: rows.to_batches()[0],
    "polars": pl.from_arrow,
    "pandas": lambda rows: rows.to_pandas(types_mapper=pd.ArrowDtype),
    "duckdb": lambda rows: duckdb.connect().from_arrow(rows),
}


@pytest.mark.parametrize("frame", FRAMES)
def test_every_frame_in(catalog, frame):
    rows = ROWS.select(["id", "name", "day"])
    table = catalog.create_table("a.t", rows)
    table.append(FRAMES[frame](rows.select(["name", "day", "id"])))
    assert table.scan().to_arrow().sort_by("id").to_pylist() == rows.to_pylist()


def test_what_does_not_fit_leaves_the_table_as_it_is(catalog):
    table = catalog.create_table("a.t", pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())]))
    before = table.metadata_location
    for rows, problem in [
        (pa.table({"id": ["x"], "name": ["y"]}), "id"),
        (pa.table({"name": ["y"]}), "id"),
        (pa.table({"id": [1], "name": ["y"], "more": [1]}), "more"),
        (pa.table({"id": pa.array([None], pa.int64()), "name": ["y"]}), "id"),
    ]:
        with pytest.raises(ValidationError, match=problem):
            table.append(rows)
    with pytest.raises(ValidationError, match="name"):
        table.append(pa.table({"id": [1]}), schema_mode="strict")
    with pytest.raises(InvalidArgumentError, match="schema_mode"):
        table.append(pa.table({"id": [1]}), schema_mode="any")
    with pytest.raises(TypeError, match="expected rows"):
        table.append([{"id": 1}])
    assert table.refresh().metadata_location == before
    assert [path for path, _ in table.storage.list(table.location()) if path.endswith(".parquet")] == []
    table.append(pa.table({"id": [1]}), schema_mode="subset")
    assert table.scan().to_arrow().to_pylist() == [{"id": 1, "name": None}]


def test_a_stream_that_fails_leaves_nothing(catalog):
    table = catalog.create_table("a.t", ROWS)

    def batches():
        yield ROWS.to_batches()[0]
        raise OSError("the source is gone")

    with pytest.raises(ice.IcefieldError, match="the source is gone"):
        table.append(pa.RecordBatchReader.from_batches(ROWS.schema, batches()))
    assert table.refresh().current_snapshot() is None
    assert [path for path, _ in table.storage.list(table.location()) if path.endswith(".parquet")] == []


def test_wrong_columns_are_told_when_the_scan_is_made(table):
    with pytest.raises(ice.IcefieldError, match="nope"):
        table.scan("nope > 1")
    with pytest.raises(ice.IcefieldError, match="nope"):
        table.scan(selected_fields=("nope",))
    with pytest.raises(ice.IcefieldError):
        table.scan("id >")


def test_a_file_that_vanished(table):
    path = table.scan().plan_files().files[0]["file_path"]
    table.storage.delete(path)
    with pytest.raises(MissingFileError, match=r"\.parquet"):
        table.scan().to_arrow()


def test_without_a_catalog(table):
    alone = ice.Table.from_metadata(table.metadata_location)
    assert alone.scan().count() == 100
    with pytest.raises(UnsupportedFeatureError):
        alone.append(ROWS)


def test_pyiceberg_reads_and_appends(tmp_path):
    from pyiceberg.catalog.sql import SqlCatalog

    uri = f"sqlite:///{tmp_path}/c.db"
    ours = ice.load_catalog("c", uri=uri, warehouse=str(tmp_path))
    ours.create_namespace("a")
    table = ours.create_table("a.t", ROWS, partition_by="day")
    table.append(ROWS)
    theirs = SqlCatalog("c", uri=uri, warehouse=f"file://{tmp_path}")
    loaded = theirs.load_table("a.t")
    assert loaded.scan().to_arrow().sort_by("id").to_pylist() == ROWS.to_pylist()
    assert loaded.scan(row_filter="id < 10").to_arrow().num_rows == 10
    loaded.append(loaded.scan(row_filter="id < 10").to_arrow())
    assert table.refresh().scan().count() == 110
    assert json.loads(table.metadata_json())["snapshots"][1]["parent-snapshot-id"] == table.snapshots()[0].snapshot_id
    theirs.engine.dispose()


def test_no_manifest_is_without_a_file(catalog):
    schema = pa.schema([("p", pa.int64())])
    properties = {"commit.manifest.target-size-bytes": "1"}
    table = catalog.create_table("a.tiny", schema, partition_by=["p"], properties=properties)
    table.append(pa.table({"p": [1]}))
    table.append(pa.table({"p": list(range(260))}))
    # As in the Java library, the size is looked at after every 250 files.
    manifests = table.inspect.manifests()
    assert manifests["added_data_files_count"].to_pylist() == [250, 10, 1]
    assert table.current_snapshot().summary["manifests-created"] == "2"
    assert table.scan().count() == 261
