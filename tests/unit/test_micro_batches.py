"""A table as a stream, for engines: offsets, batches, and what cannot be read on."""

from __future__ import annotations

import pickle
from pathlib import Path

import pyarrow as pa
import pytest

import icefield as ice
from icefield.micro_batches import StreamOffset

START = StreamOffset(-1, -1)


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    catalog = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("s", pa.string())]))
    for ids in ([1, 2], [3], [4, 5]):
        made.append(pa.table({"id": ids, "s": [f"s{n}" for n in ids]}))
    return made


def batches(table: ice.Table, start: StreamOffset = START, **limits: int) -> list[tuple[StreamOffset, list[int]]]:
    stream, found = table.micro_batches(), []
    while (end := stream.latest(start, **limits)) != start:
        found.append((end, stream.scan(start, end).to_arrow()["id"].to_pylist()))
        start = end
    return found


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, [[1, 2, 3, 4, 5]]),
        ({"max_files": 1}, [[1, 2], [3], [4, 5]]),
        ({"max_files": 2}, [[1, 2, 3], [4, 5]]),
        ({"max_rows": 3}, [[1, 2, 3], [4, 5]]),
        ({"max_rows": 1}, [[1, 2], [3], [4, 5]]),
        ({"max_files": 2, "max_rows": 2}, [[1, 2], [3, 4, 5]]),
    ],
)
def test_batches(table: ice.Table, limits: dict[str, int], expected: list[list[int]]) -> None:
    found = batches(table, **limits)
    assert [ids for _, ids in found] == expected
    assert batches(table, found[0][0], **limits) == found[1:]


def test_a_batch_is_a_scan(table: ice.Table) -> None:
    stream = table.micro_batches()
    end = stream.latest(START, max_files=2)
    scan = stream.scan(START, end, selected_fields="s")
    assert scan.count() == 3
    assert [batch.to_pylist() for batch in scan.to_arrow_batch_reader() if batch] != []
    rows = [row for task in scan.tasks() for row in task.rows(table.storage).to_pyarrow().read_all()["s"].to_pylist()]
    assert rows == scan.to_arrow()["s"].to_pylist() == ["s1", "s2", "s3"]
    assert len(scan.plan_files()) == 2
    assert pickle.loads(pickle.dumps(scan)).to_arrow() == scan.to_arrow()
    assert "micro-batch from -1:-1 to" in repr(scan)
    with pytest.raises(ice.errors.InvalidArgumentError, match="read whole"):
        scan.filter("s = 's1'")
    assert stream.scan(end, end).to_arrow().num_rows == 0


def test_what_comes_later_is_seen_after_a_refresh(table: ice.Table) -> None:
    stream = table.micro_batches()
    end = stream.latest(START)
    table.append(pa.table({"id": [6], "s": ["s6"]}))
    assert stream.latest(end) == end
    assert [ids for _, ids in batches(table, end)] == [[6]]


def test_a_stream_ends_at_a_snapshot(table: ice.Table) -> None:
    second = table.snapshots()[1].snapshot_id
    stream = table.micro_batches()
    end = stream.latest(START, last_snapshot_id=second)
    assert end == StreamOffset(second, 1)
    assert stream.latest(end, last_snapshot_id=second) == end
    assert stream.latest(START, last_snapshot_id=-1) == START


def test_offsets_are_those_of_java(table: ice.Table) -> None:
    end = table.micro_batches().latest(START)
    document = {"version": 1, "snapshot_id": end.snapshot_id, "position": 1, "scan_all_files": False}
    assert end.to_dict() == document
    assert StreamOffset.from_dict(document) == end


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "has version 1, not 2"),
        ({"position": None}, "invalid offset"),
        ({"position": 1.0}, "invalid offset"),
        ({"snapshot_id": True}, "invalid offset"),
        ({"scan_all_files": True}, "invalid offset"),
    ],
)
def test_odd_offsets(change: dict[str, object], message: str) -> None:
    document = {"version": 1, "snapshot_id": 7, "position": 1, "scan_all_files": False}
    with pytest.raises(ice.errors.InvalidArgumentError, match=message):
        StreamOffset.from_dict({**document, **change})


@pytest.mark.parametrize(
    ("start", "limits", "message"),
    [
        (StreamOffset(5, 0), {}, "snapshot 5, the snapshot was expired or removed"),
        (StreamOffset(5, -3), {}, "invalid position -3"),
        (START, {"max_files": 0}, "must be positive, got 0"),
        (START, {"max_rows": -1}, "-1"),
        (START, {"last_snapshot_id": 5}, "snapshot 5, the snapshot was expired or removed"),
    ],
)
def test_what_cannot_be_read(table: ice.Table, start: StreamOffset, limits: dict[str, int], message: str) -> None:
    with pytest.raises(ice.errors.InvalidArgumentError, match=message):
        table.micro_batches().latest(start, **limits)


def test_a_branch_that_is_not_there(table: ice.Table) -> None:
    with pytest.raises(ice.errors.InvalidArgumentError, match='no branch "b"'):
        table.micro_batches(branch="b").initial()
