"""Partition statistics: counts of random histories, later snapshots, formats and versions, and what is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import InvalidArgumentError
from icefield.procedures import call

SCHEMA = pa.schema([("id", pa.int64()), ("day", pa.string()), ("size", pa.float64())])
SHARED = (
    "spec_id", "data_record_count", "data_file_count", "total_data_file_size_in_bytes", "position_delete_record_count",
    "equality_delete_record_count", "equality_delete_file_count",
)  # fmt: skip


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made.create_namespace("db")
    return made


def created(catalog: ice.Catalog, version: int, name: str = "db.t", **properties: str) -> ice.Table:
    mode = "merge-on-read" if version > 1 else "copy-on-write"
    properties |= {"format-version": str(version), "write.delete.mode": mode}
    return catalog.create_table(name, SCHEMA, partition_by="day", properties=properties)


def rows(ids: range, days: list[str | None]) -> pa.Table:
    return pa.table(
        {"id": list(ids), "day": [days[n % len(days)] for n in ids], "size": [n / 2 for n in ids]}, schema=SCHEMA
    )


def check(table: ice.Table) -> pa.Table:
    """Compare the statistics with the metadata table `partitions`, and with the rows."""
    found = table.inspect.partition_statistics()
    assert found is not None
    counted = table.inspect.partitions()
    names = {"record_count": "data_record_count", "file_count": "data_file_count"}
    counted = counted.rename_columns([names.get(name, name) for name in counted.column_names])
    expected = {
        json.dumps([one["spec_id"], one["partition"]], default=str): [one[name] for name in SHARED]
        for one in counted.to_pylist()
    }
    alive = [one for one in found.to_pylist() if any(one[name] for name in SHARED[1:])]
    assert {
        json.dumps([one["spec_id"], one["partition"]], default=str): [one[name] for name in SHARED] for one in alive
    } == expected
    rows_of = table.scan().to_arrow().group_by("day").aggregate([("id", "count")]).to_pylist()
    per_day = {one["day"]: one["id_count"] for one in rows_of}
    for one in alive:
        exact = one["equality_delete_record_count"] == 0 and one["position_delete_file_count"] == 0
        assert one["total_record_count"] == (per_day.get(one["partition"]["day"], 0) if exact else None)
    return found


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_random_histories(catalog: ice.Catalog, version: int, file_format: str) -> None:
    table = created(catalog, version, **{"write.format.default": file_format})
    assert table.maintenance.compute_partition_stats() is None
    assert table.inspect.partition_statistics() is None
    drawn = random.Random(version)
    fresh = created(catalog, version, "db.fresh", **{"write.format.default": file_format})
    for step in range(6):
        days = drawn.sample(["a", "b", "ü", "", None], 3)
        table.append(rows(range(step * 10, step * 10 + 9), days))
        if version > 1 and drawn.random() < 0.7:
            table.delete(f"id in {tuple(range(drawn.randrange(4), 60, 4))}")
        if drawn.random() < 0.3:
            table.delete("day = 'a'")
        if drawn.random() < 0.3:
            table.rewrite_manifests()
        if drawn.random() < 0.6:
            before = table.metadata_location
            done = table.maintenance.compute_partition_stats()
            assert done is not None
            assert done.path.endswith(f".{file_format}")
            assert done.bytes == Path(done.path.removeprefix("file://")).stat().st_size
            assert done.partitions is not None
            assert check(table).num_rows == done.partitions
            assert table.metadata_location != before
            again = table.maintenance.compute_partition_stats()
            assert again == type(done)(done.path, done.bytes, None)
    assert table.fsck("files").findings == []
    assert fresh.maintenance.compute_partition_stats() is None


def test_tables_that_change(catalog: ice.Catalog) -> None:
    """Specs and format versions change between two computations; the second starts from the first one's file."""
    table = created(catalog, 2)
    table.append(rows(range(12), ["a", "b", None]))
    table.delete("id = 1")
    first = table.maintenance.compute_partition_stats()
    found = check(table)
    assert first is not None
    assert "dv_count" not in found.column_names
    assert found["partition"].to_pylist() == [{"day": None}, {"day": "a"}, {"day": "b"}]
    assert found["total_record_count"].to_pylist() == [4, 4, None]
    table.transaction().upgrade_table_version(3).commit_transaction()
    with table.update_spec() as change:
        change.add_field("id", "bucket[2]", "part")
    table.append(rows(range(20, 26), ["a"]))
    table.delete("id = 20")
    second = table.maintenance.compute_partition_stats()
    assert second is not None
    found = table.inspect.partition_statistics()
    assert found is not None
    assert [one["day"] for one in found["partition"].to_pylist()] == [None, "a", "a", "a", "b"]
    assert found["spec_id"].to_pylist()[:2] == [0, 0]
    assert sum(found["dv_count"].to_pylist()) == 1
    assert sum(found["data_record_count"].to_pylist()) == 18


@pytest.mark.parametrize("damage", ["gone", "empty", "another"])
def test_a_wrong_earlier_file_is_not_used(catalog: ice.Catalog, damage: str) -> None:
    table = created(catalog, 2)
    table.append(rows(range(12), ["a", "b"]))
    first = table.maintenance.compute_partition_stats()
    other = created(catalog, 2, "db.other")
    other.append(rows(range(2), ["a", "c"]))
    fewer = other.maintenance.compute_partition_stats()
    assert first is not None
    assert fewer is not None
    path, another = (Path(done.path.removeprefix("file://")) for done in (first, fewer))
    path.write_bytes(another.read_bytes() if damage == "another" else b"")
    if damage == "gone":
        path.unlink()
    table.delete("day = 'b'")
    table.append(rows(range(3), ["b"]))
    assert table.maintenance.compute_partition_stats() is not None
    check(table)


@pytest.mark.parametrize("argument", [77, "unpartitioned"])
def test_what_is_refused(catalog: ice.Catalog, argument: object) -> None:
    table = catalog.create_table("db.u", SCHEMA) if argument == "unpartitioned" else created(catalog, 2)
    table.append(rows(range(3), ["a"]))
    location = table.metadata_location
    number = argument if isinstance(argument, int) else None
    with pytest.raises(InvalidArgumentError, match="not partitioned|77"):
        table.maintenance.compute_partition_stats(snapshot_id=number)
    with pytest.raises(InvalidArgumentError, match="not partitioned|77"):
        table.inspect.partition_statistics(number)
    assert table.refresh().metadata_location == location


def test_expiry_removes_statistics(catalog: ice.Catalog) -> None:
    table = created(catalog, 2)
    table.append(rows(range(4), ["a", "b"]))
    done = call(catalog, "compute_partition_stats", table="db.t")
    assert done.column_names == ["partition_statistics_file"]
    [path] = done[0].to_pylist()
    table.refresh().append(rows(range(4), ["a", "b"]))
    assert table.maintenance.remove_orphans(dry_run=True, older_than="0s", allow_recent=True).files == []
    table.expire_snapshots(older_than="0s", retain_last=1)
    assert not Path(path.removeprefix("file://")).exists()
    assert json.loads(table.metadata_json()).get("partition-statistics", []) == []


def test_a_branch_has_its_own(catalog: ice.Catalog) -> None:
    table = created(catalog, 3)
    table.append(rows(range(10), ["a", "b"]))
    table.maintenance.compute_partition_stats()
    main = table.current_snapshot()
    assert main is not None
    table.manage_snapshots().create_branch(main.snapshot_id, "side").commit()
    table.append(rows(range(10, 16), ["b", "c"]), branch="side")
    table.delete("id = 10", branch="side")
    side = table.snapshot_by_name("side")
    assert side is not None
    assert table.inspect.partition_statistics(ref="side") is None
    done = table.maintenance.compute_partition_stats(snapshot_id=side.snapshot_id)
    assert done is not None
    assert done.partitions == 3

    def counted(ref: str) -> dict[str, tuple[int, int]]:
        found = table.inspect.partition_statistics(ref=ref)
        assert found is not None
        columns = (found[name].to_pylist() for name in ("partition", "data_record_count", "total_record_count"))
        return {partition["day"]: (data, total) for partition, data, total in zip(*columns, strict=True)}

    assert counted("side") == {"a": (5, 5), "b": (8, 7), "c": (3, 3)}
    assert counted("main") == {"a": (5, 5), "b": (5, 5)}
    assert table.branch("side").inspect.partition_statistics().to_pylist() == (
        table.inspect.partition_statistics(ref="side").to_pylist()
    )
    assert table.fsck("files").findings == []
