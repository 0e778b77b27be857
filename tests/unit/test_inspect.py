"""Metadata tables through the public API: what each says of a table of three commits, at any of its snapshots."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import icefield as ice


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    """Make a table of three appends, one of two partitions, and a tag on the second snapshot."""
    catalog = ice.load_catalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    schema = pa.schema([("id", pa.int64()), ("s", pa.string()), ("n", pa.struct([("x", pa.int32())]))])
    made = catalog.create_table("db.t", schema=schema, partition_by=["s"])
    for first, texts in ((0, ["a", "b"]), (2, ["a"]), (3, ["b"])):
        ids = list(range(first, first + len(texts)))
        nested = pa.array([{"x": n} for n in ids], schema.field("n").type)
        made.append(pa.table({"id": ids, "s": texts, "n": nested}, schema=schema))
    made.manage_snapshots().create_tag(made.snapshots()[1].snapshot_id, "second").commit()
    return made


COLUMNS = {
    "snapshots": ["committed_at", "snapshot_id", "parent_id", "operation", "manifest_list", "summary"],
    "history": ["made_current_at", "snapshot_id", "parent_id", "is_current_ancestor"],
    "refs": [
        "name", "type", "snapshot_id", "max_reference_age_in_ms", "min_snapshots_to_keep", "max_snapshot_age_in_ms"
    ],
    "entries": [
        "status", "snapshot_id", "sequence_number", "file_sequence_number", "data_file", "readable_metrics"
    ],
    "partitions": [
        "partition", "spec_id", "record_count", "file_count", "total_data_file_size_in_bytes",
        "position_delete_record_count", "position_delete_file_count", "equality_delete_record_count",
        "equality_delete_file_count", "last_updated_at", "last_updated_snapshot_id",
    ],
    "position_deletes": ["file_path", "pos", "row", "partition", "spec_id", "delete_file_path"],
    "metadata_log_entries": [
        "timestamp", "file", "latest_snapshot_id", "latest_schema_id", "latest_sequence_number"
    ],
    "files": [
        "content", "file_path", "file_format", "spec_id", "partition", "record_count", "file_size_in_bytes",
        "column_sizes", "value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds",
        "key_metadata", "split_offsets", "equality_ids", "sort_order_id", "first_row_id", "referenced_data_file",
        "content_offset", "content_size_in_bytes", "readable_metrics",
    ],
    "manifests": [
        "content", "path", "length", "partition_spec_id", "added_snapshot_id", "added_data_files_count",
        "existing_data_files_count", "deleted_data_files_count", "added_delete_files_count",
        "existing_delete_files_count", "deleted_delete_files_count", "partition_summaries",
    ],
}  # fmt: skip
COLUMNS["all_entries"] = COLUMNS["entries"]
COLUMNS["all_manifests"] = [*COLUMNS["manifests"], "reference_snapshot_id", "key_metadata"]
COLUMNS |= dict.fromkeys(
    ["data_files", "delete_files", "all_files", "all_data_files", "all_delete_files"], COLUMNS["files"]
)


@pytest.mark.parametrize("name", ice.inspect.InspectTable.names)
def test_every_table_has_its_columns(table: ice.Table, name: str) -> None:
    found: pa.Table = getattr(table.inspect, name)()
    assert found.column_names == [field.name for field in table.inspect.schema(name).fields]
    assert found.column_names == COLUMNS[name]
    assert table.inspect.stream(name).read_all().equals(found)
    for column in found.column_names:
        alone = table.inspect.stream(name, selected_fields=column).read_all()
        assert alone.equals(found.select([column])), column


def test_what_the_metadata_tells(table: ice.Table) -> None:
    inspect, snapshots = table.inspect, table.snapshots()
    ids = [snapshot.snapshot_id for snapshot in snapshots]
    assert inspect.snapshots()["snapshot_id"].to_pylist() == ids
    assert dict(inspect.snapshots()["summary"][2].as_py())["added-records"] == "1"
    assert inspect.history()["is_current_ancestor"].to_pylist() == [True] * 3
    assert dict(zip(*(inspect.refs()[name].to_pylist() for name in ("name", "type")), strict=True)) == {
        "main": "BRANCH",
        "second": "TAG",
    }
    log = inspect.metadata_log_entries()
    assert log["file"].to_pylist()[-1] == table.metadata_location
    assert log["latest_snapshot_id"].to_pylist() == [None, *ids, ids[-1]]


def test_at_any_snapshot(table: ice.Table) -> None:
    inspect = table.inspect
    first, second, third = table.snapshots()
    assert [inspect.files(one.snapshot_id).num_rows for one in (first, second, third)] == [2, 3, 4]
    assert inspect.files(ref="second").equals(inspect.files(second.snapshot_id))
    assert inspect.data_files(as_of=third.timestamp_ms).num_rows == 4
    assert inspect.delete_files().num_rows == inspect.position_deletes().num_rows == 0
    assert inspect.manifests(first.snapshot_id)["partition_summaries"].to_pylist() == [
        [{"contains_null": False, "contains_nan": False, "lower_bound": "a", "upper_bound": "b"}]
    ]
    counts = {
        row["partition"]["s"]: (row["record_count"], row["last_updated_snapshot_id"])
        for row in inspect.partitions(second.snapshot_id).to_pylist()
    }
    assert counts == {"a": (2, second.snapshot_id), "b": (1, first.snapshot_id)}
    assert inspect.all_manifests()["reference_snapshot_id"].value_counts().to_pylist() == [
        {"values": one.snapshot_id, "counts": count} for one, count in ((first, 1), (second, 2), (third, 3))
    ]


def test_filters_and_nested_columns(table: ice.Table) -> None:
    inspect = table.inspect
    wanted = ["readable_metrics.id.upper_bound", "partition"]
    found = inspect.stream("files", selected_fields=wanted, row_filter="partition.s = 'a'").read_all()
    assert found.column_names == ["readable_metrics", "partition"]
    assert sorted(row["readable_metrics"]["id"]["upper_bound"] for row in found.to_pylist()) == [0, 2]
    assert found.schema.field("readable_metrics").type.num_fields == 1
    # A filter on a column that is not given out, by the name that a nested column has.
    paths = inspect.stream(
        "files", selected_fields="file_path", row_filter="readable_metrics.n.x.lower_bound >= 3"
    ).read_all()
    assert paths.column_names == ["file_path"]
    assert paths.num_rows == 1
    assert inspect.partitions(row_filter="record_count > 5").num_rows == 0
    entries = inspect.entries().to_pylist()
    assert pc.sum(inspect.entries()["status"]).as_py() == len(entries) == 4


def test_what_cannot_be_asked(table: ice.Table) -> None:
    inspect = table.inspect
    for refused, message in (
        (lambda: inspect.stream("filez"), "there is no metadata table 'filez'|\"filez\""),
        (
            lambda: inspect.stream("all_files", snapshot_id=1),
            "cannot select a snapshot in the metadata table all_files",
        ),
        (lambda: inspect.files(1), "the table has no snapshot 1"),
        (lambda: inspect.stream("files", selected_fields="nope"), "there is no column"),
        (lambda: inspect.stream("files", row_filter="nope = 1"), "nope"),
    ):
        with pytest.raises(ice.InvalidArgumentError, match=message):
            refused()


def test_a_table_without_snapshots(tmp_path: Path) -> None:
    catalog = ice.load_catalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    inspect = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())])).inspect
    rows = {name: getattr(inspect, name)().num_rows for name in inspect.names}
    assert rows.pop("metadata_log_entries") == 1
    assert set(rows.values()) == {0}
    # Unpartitioned: no table has the column.
    assert "partition" not in inspect.files().column_names + inspect.partitions().column_names


def test_a_stream_reads_no_further_than_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFIELD_THREADS", "2")
    catalog = ice.load_catalog("local", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    rows = pa.table({"id": [1]})
    made = catalog.create_table("db.t", rows.schema, properties={"commit.manifest-merge.enabled": "false"})
    for _ in range(40):
        made.append(rows)
    # No thread comes as far as the last manifest while the first few are wanted.
    last = made.inspect.manifests()["path"][-1].as_py()
    made.storage.delete(last)
    for name in ("files", "entries", "data_files"):
        stream = made.inspect.stream(name, selected_fields=["file_path"] if name != "entries" else ["status"])
        for _ in range(10):
            assert stream.read_next_batch().num_rows == 1
        with pytest.raises(ice.errors.MissingFileError, match=f"{Path(last).name}: not found"):
            stream.read_all()
