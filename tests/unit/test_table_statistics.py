"""Distinct values by theta sketches: numbers, columns, snapshots, and what is refused."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError
from icefield.metadata import BlobMetadata, PartitionStatisticsFile, StatisticsFile
from icefield.procedures import call


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made.create_namespace("db")
    return made


ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 3, None], pa.int64()),
        "text": ["a", "a", "", None, "ü"],
        "dec": pa.array(
            [Decimal("1.00"), Decimal("1.00"), Decimal("-2.50"), None, Decimal("0.00")], pa.decimal128(9, 2)
        ),
        "none": pa.array([None] * 5, pa.int32()),
        "inner": [{"x": 1}, {"x": 1}, {"x": 2}, None, {"x": None}],
        "many": [[1], [2], [3], [4], [5]],
    }
)


def test_numbers(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    assert table.maintenance.compute_table_stats() is None
    table.append(ROWS)
    first = table.current_snapshot()
    table.delete("id = 1")
    assert first is not None
    # The empty text is not counted, as in DataSketches.
    done = table.maintenance.compute_table_stats()
    assert done is not None
    assert done.distinct == {"id": 2, "text": 2, "dec": 3, "none": 0}
    before = table.maintenance.compute_table_stats(["id", "inner.x"], snapshot_id=first.snapshot_id)
    assert before is not None
    assert before.distinct == {"id": 3, "inner.x": 2}
    files = {one["snapshot-id"]: one for one in json.loads(table.metadata_json())["statistics"]}
    assert len(files) == 2
    assert files[first.snapshot_id]["statistics-path"] == before.path
    assert [blob["type"] for blob in files[first.snapshot_id]["blob-metadata"]] == ["apache-datasketches-theta-v1"] * 2
    again = call(catalog, "compute_table_stats", table="db.t", columns="id")
    assert again.column_names == ["statistics_file"]
    assert table.refresh().fsck("rows").findings == []


@pytest.mark.parametrize(
    ("columns", "match"), [(["many"], "column many is of type"), (["inner"], "primitive types"), (["gone"], "gone")]
)
def test_what_is_refused(catalog: ice.Catalog, columns: list[str], match: str) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    location = table.metadata_location
    with pytest.raises((InvalidArgumentError, ice.errors.ValidationError), match=match):
        table.maintenance.compute_table_stats(columns)
    with pytest.raises(InvalidArgumentError, match="77"):
        table.maintenance.compute_table_stats(snapshot_id=77)
    assert table.refresh().metadata_location == location


def file_of(snapshot_id: int, path: str = "s3://bucket/stats.puffin") -> StatisticsFile:
    return StatisticsFile(snapshot_id, path, 400, 40, [BlobMetadata("example", snapshot_id, 1, [1, 2], {"ndv": "7"})])


def test_files_are_set_and_removed(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    first, last = (one.snapshot_id for one in table.snapshots())
    partitions = PartitionStatisticsFile(first, "s3://bucket/partitions.parquet", 70)
    with table.update_statistics() as update:
        update.set_statistics(file_of(first)).set_statistics(file_of(last)).set_partition_statistics(partitions)
    assert table.metadata.statistics == [file_of(first), file_of(last)]
    assert table.metadata.partition_statistics == [partitions]
    # The metadata file has them, and what a newer writer has stored of them is what the text of the file says.
    found = ice.TableMetadata.from_json(table.metadata_json())
    assert (found.statistics, found.partition_statistics) == (table.metadata.statistics, [partitions])
    other = StatisticsFile(last, "s3://bucket/other.puffin", 1, 1, (), "a2V5")
    table.update_statistics().set_statistics(other).remove_statistics(first).remove_partition_statistics(first).commit()
    assert table.refresh().metadata.statistics == [StatisticsFile(last, "s3://bucket/other.puffin", 1, 1, [], "a2V5")]
    assert table.metadata.partition_statistics == []


def test_files_of_a_transaction_and_of_a_branch(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    with table.transaction() as transaction:
        transaction.append(ROWS)
        new = transaction.metadata.current_snapshot()
        assert new is not None
        transaction.update_statistics().set_statistics(file_of(new.snapshot_id)).commit()
    assert [one.snapshot_id for one in table.metadata.statistics] == [new.snapshot_id]
    with table.branch("audit") as audit:
        audit.append(ROWS)
        staged = audit.current_snapshot()
        assert staged is not None
        audit.update_statistics().set_statistics(file_of(staged.snapshot_id)).commit()
    assert {one.snapshot_id for one in table.refresh().metadata.statistics} == {new.snapshot_id, staged.snapshot_id}


def test_files_that_are_refused(catalog: ice.Catalog) -> None:
    table = catalog.create_table("db.t", ROWS.schema)
    table.append(ROWS)
    location, snapshot = table.metadata_location, table.current_snapshot()
    assert snapshot is not None
    known = snapshot.snapshot_id
    partitions = PartitionStatisticsFile(77, "s3://bucket/partitions.parquet", 70)
    for change, error, words in [
        (lambda update: update.set_statistics(file_of(77)), InvalidArgumentError, "there is no snapshot 77"),
        (lambda update: update.set_partition_statistics(partitions), InvalidArgumentError, "there is no snapshot 77"),
        (lambda update: update.set_statistics("s3://x"), ice.errors.ArgumentTypeError, "expected a StatisticsFile"),
        (lambda update: update.set_statistics(partitions), ice.errors.ArgumentTypeError, "expected a StatisticsFile"),
        (
            lambda update: update.set_partition_statistics(file_of(known)),
            ice.errors.ArgumentTypeError,
            "expected a PartitionStatisticsFile",
        ),
        (lambda update: update.remove_statistics(known), InvalidArgumentError, f"{known} has no statistics file"),
        (lambda update: update.remove_partition_statistics(known), InvalidArgumentError, "no partition statistics"),
    ]:
        with pytest.raises(error, match=words):
            change(table.update_statistics())
    assert table.refresh().metadata_location == location
