"""Streams of a table: batches, limits, restarts, and what a stream cannot tell.

A query of Spark takes seconds to start, so what depends on the reader alone is asked of the reader, as Spark asks it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.importorskip("icefield.spark")

from icefield.spark import spark_schema
from icefield.spark.reads import streaming

#: Before 4.2 Spark tells no limits.
LIMITED = streaming.STREAM_READER is not streaming._Unlimited
NO_LIMITS = "PySpark 4.1 and earlier tell streams no limits"


class Query:
    """A stream of ``db.t`` into a folder, a checkpoint beside it."""

    def __init__(self, spark: SparkSession, options: dict[str, str], folder: Path) -> None:
        self.spark, self.options, self.folder = spark, options, folder
        self.batches: list[list[int]] = []

    def run(self, **options: Any) -> list[list[int]]:
        """Read what there is and give the ids of each batch; goes on where an earlier run ended."""
        self.batches = []
        reader = self.spark.readStream.format("icefield").options(**self.options)
        for name, value in options.items():
            reader = reader.option(name.replace("_", "-"), str(value))

        def keep(batch: Any, _: int) -> None:
            self.batches.append(sorted(row.id for row in batch.collect()))

        writer = reader.load("db.t").writeStream.foreachBatch(keep)
        writer = writer.option("checkpointLocation", str(self.folder / "checkpoint"))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return [batch for batch in self.batches if batch]

    def ids(self, **options: Any) -> list[int]:
        """Read what there is, as `run`, and give the ids, batch after batch."""
        return [row for batch in self.run(**options) for row in batch]

    def offsets(self) -> list[dict[str, Any]]:
        """Give the offsets in the checkpoint, oldest first."""
        files = sorted((self.folder / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
        return [json.loads(file.read_text().splitlines()[-1]) for file in files]


@pytest.fixture
def query(spark: SparkSession, options: dict[str, str], tmp_path: Path) -> Query:
    return Query(spark, options, tmp_path)


@pytest.fixture
def table(catalog: ice.Catalog) -> ice.Table:
    return catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("s", pa.string())]))


def append(table: ice.Table, *ids: int) -> None:
    table.append(pa.table({"id": pa.array(ids, pa.int64()), "s": [f"s{n}" for n in ids]}))


def test_a_query_goes_on_where_it_ended(query: Query, table: ice.Table) -> None:
    append(table, 1, 2)
    append(table, 3)
    assert query.ids() == [1, 2, 3]
    assert query.run() == []
    append(table, 4)
    append(table, 5, 6)
    assert query.ids() == [4, 5, 6]
    snapshot = table.refresh().current_snapshot().snapshot_id
    assert query.offsets()[-1] == {"version": 1, "snapshot_id": snapshot, "position": 1, "scan_all_files": False}


def test_an_empty_table_is_waited_for(query: Query, table: ice.Table) -> None:
    assert query.run() == []
    append(table, 1)
    assert query.run() == [[1]]


class Asked:
    """A reader that is asked for batches as Spark asks it."""

    def __init__(self, options: dict[str, str], table: ice.Table, **more: Any) -> None:
        given = {name.replace("_", "-"): str(value) for name, value in more.items()}
        self.options = {"path": "db.t", **options, **given}
        self.schema = spark_schema(table.schema())
        self.reader = streaming.STREAM_READER(self.options, self.schema, None)
        self.offset = self.reader.initialOffset()

    def batches(self) -> list[list[int]]:
        """Read batch after batch until nothing is new."""
        found = []
        while (end := self._latest()) != self.offset:
            batches = [
                batch for partition in self.reader.partitions(self.offset, end) for batch in self.reader.read(partition)
            ]
            found.append(sorted(row["id"] for batch in batches for row in batch.to_pylist()))
            self.offset = end
        return [batch for batch in found if batch]

    def _latest(self) -> dict[str, int]:
        if LIMITED:
            found: dict[str, int] = self.reader.latestOffset(self.offset, self.reader.getDefaultReadLimit())
            return found
        return self.reader.latestOffset()


def resident() -> int:
    """Return the memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is told by /proc")
def test_idle_triggers_cost_no_memory(options: dict[str, str], table: ice.Table) -> None:
    """A thousand triggers without new rows plan nothing; one metadata kept by each would be 200 MB."""
    with table.transaction() as changes:
        changes.set_properties({f"note-{number}": "x" * 1000 for number in range(200)})
    append(table, 1, 2)
    asked = Asked(options, table)
    assert asked.batches() == [[1, 2]]
    for _ in range(100):
        assert asked.batches() == []
    before = resident()
    for _ in range(1000):
        assert asked.batches() == []
        assert asked.reader.partitions(asked.offset, asked.offset) == []
    assert resident() - before < 32 * 1024**2
    append(table, 3)
    assert asked.batches() == [[3]]


LIMITS: list[tuple[dict[str, int], list[list[int]]]] = [
    ({}, [[1, 2, 3, 4, 5, 6, 7]]),
    ({"streaming_max_files_per_micro_batch": 1}, [[1, 2], [3], [4, 5, 6], [7]]),
    ({"streaming_max_files_per_micro_batch": 3}, [[1, 2, 3, 4, 5, 6], [7]]),
    # The file that reaches the limit is still read.
    ({"streaming_max_rows_per_micro_batch": 1}, [[1, 2], [3], [4, 5, 6], [7]]),
    ({"streaming_max_rows_per_micro_batch": 3}, [[1, 2, 3], [4, 5, 6], [7]]),
    (
        {"streaming_max_files_per_micro_batch": 2, "streaming_max_rows_per_micro_batch": 3},
        [[1, 2, 3], [4, 5, 6], [7]],
    ),
    (
        {"streaming_max_files_per_micro_batch": 2, "streaming_max_rows_per_micro_batch": 100},
        [[1, 2, 3], [4, 5, 6, 7]],
    ),
]


@pytest.mark.parametrize(("limits", "expected"), LIMITS)
def test_limits(options: dict[str, str], table: ice.Table, limits: dict[str, int], expected: list[list[int]]) -> None:
    for ids in ([1, 2], [3], [4, 5, 6], [7]):
        append(table, *ids)
    asked = Asked(options, table, **limits)
    assert asked.batches() == expected
    append(table, 8)
    assert asked.batches() == [[8]]


@pytest.mark.parametrize(
    "limits", [{"streaming_max_files_per_micro_batch": 2}, {"streaming_max_rows_per_micro_batch": 3}]
)
def test_a_restart_goes_on_within_the_limits(options: dict[str, str], table: ice.Table, limits: dict[str, int]) -> None:
    """After a restart Spark asks a new reader for the last batch, from its end to its end, before anything else.

    That call looks empty. Before PySpark 4.2 it alone says where the next batch begins.
    """
    for ids in ([1, 2], [3], [4, 5, 6], [7]):
        append(table, *ids)
    first = Asked(options, table, **limits)
    end = first._latest()
    batch = first.reader.partitions(first.offset, end)
    read = [row["id"] for part in batch for rows in first.reader.read(part) for row in rows.to_pylist()]
    assert read == [1, 2, 3]
    again = Asked(options, table, **limits)
    assert again.reader.partitions(end, end) == []
    again.offset = end
    assert again.batches() == ([[4, 5, 6, 7]] if "streaming_max_files_per_micro_batch" in limits else [[4, 5, 6], [7]])
    append(table, 8)
    assert again.batches() == [[8]]


@pytest.mark.skipif(not LIMITED, reason=NO_LIMITS)
def test_a_query_that_ends_has_limited_batches(query: Query, table: ice.Table) -> None:
    for ids in ([1, 2], [3], [4]):
        append(table, *ids)
    assert query.run(streaming_max_files_per_micro_batch=1) == [[1, 2], [3], [4]]


@pytest.mark.skipif(not LIMITED, reason=NO_LIMITS)
def test_a_query_that_ends_reads_nothing_that_comes_later(options: dict[str, str], table: ice.Table) -> None:
    append(table, 1)
    append(table, 2)
    asked = Asked(options, table, streaming_max_files_per_micro_batch=1)
    asked.reader.prepareForTriggerAvailableNow()
    append(table, 3)
    assert asked.batches() == [[1], [2]]
    from pyspark.sql.streaming.datasource import ReadMaxBytes

    # Asked for all there is, it is not limited.
    limit = streaming.ReadAllAvailable()
    fresh = Asked(options, table, streaming_max_files_per_micro_batch=1)
    assert fresh.reader.latestOffset(fresh.offset, limit) == Asked(options, table)._latest()
    with pytest.raises(ice.errors.InvalidArgumentError, match="cannot be limited by ReadMaxBytes"):
        fresh.reader.latestOffset(fresh.offset, ReadMaxBytes(10))


def test_from_a_moment(options: dict[str, str], table: ice.Table) -> None:
    append(table, 1)
    append(table, 2)
    second = table.refresh().current_snapshot()
    append(table, 3)
    assert Asked(options, table, stream_from_timestamp=second.timestamp_ms).batches() == [[2, 3]]
    assert Asked(options, table, stream_from_timestamp=second.timestamp_ms + 3_600_000).batches() == []


def test_a_branch(options: dict[str, str], table: ice.Table) -> None:
    append(table, 1)
    table.refresh().manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "b").commit()
    table.append(pa.table({"id": [2], "s": ["b"]}), branch="b")
    append(table, 3)
    assert Asked(options, table, branch="b").batches() == [[1, 2]]


def test_columns_of_the_user(spark: SparkSession, options: dict[str, str], table: ice.Table, tmp_path: Path) -> None:
    append(table, 1, 2)
    stream = spark.readStream.format("icefield").options(**options).schema("s string").load("db.t")
    writer = stream.writeStream.format("memory").queryName("texts").option("checkpointLocation", str(tmp_path / "c"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert sorted(tuple(row) for row in spark.table("texts").collect()) == [("s1",), ("s2",)]


def test_an_unfinished_batch_is_planned_again(query: Query, table: ice.Table) -> None:
    """Spark logs the offsets of a batch before it runs, and after a restart asks for them, whatever came since."""
    append(table, 1)
    assert query.run() == [[1]]
    append(table, 2)
    assert query.run() == [[2]]
    commits = query.folder / "checkpoint" / "commits"
    last = max(commits.glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    append(table, 3)
    batches = query.run()
    # Spark 4.0 ends after the batch that was unfinished.
    assert batches in ([[2], [3]], [[2]])
    assert batches + query.run() == [[2], [3]]


def expired(table: ice.Table, snapshot_id: int) -> None:
    """Take a snapshot out of the metadata."""
    table.refresh().commit([], [{"action": "remove-snapshots", "snapshot-ids": [snapshot_id]}])


def test_an_expired_start_is_named(query: Query, table: ice.Table) -> None:
    append(table, 1)
    first = table.refresh().current_snapshot().snapshot_id
    assert query.run() == [[1]]
    append(table, 2)
    expired(table, first)
    with pytest.raises(Exception, match=f"cannot load current offset at snapshot {first}, the snapshot was expired"):
        query.run()


def with_operation(table: ice.Table, operation: str) -> int:
    """Add a snapshot of the current one's manifests with an operation."""
    table.refresh()
    document = json.loads(table.metadata_json())
    current = next(one for one in document["snapshots"] if one["snapshot-id"] == document["current-snapshot-id"])
    sequence = {"sequence-number": document["last-sequence-number"] + 1} if "sequence-number" in current else {}
    snapshot_id = current["snapshot-id"] % 1_000_000_000 + len(document["snapshots"])
    added = {
        **current,
        **sequence,
        "snapshot-id": snapshot_id,
        "parent-snapshot-id": current["snapshot-id"],
        "timestamp-ms": current["timestamp-ms"] + 1,
        "summary": {"operation": operation},
    }
    reference = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
    updates = [{"action": "add-snapshot", "snapshot": added}, {"action": "set-snapshot-ref", **reference}]
    table.commit([], updates)
    return snapshot_id


@pytest.mark.parametrize(
    ("operation", "option"),
    [("delete", "streaming_skip_delete_snapshots"), ("overwrite", "streaming_skip_overwrite_snapshots")],
)
def test_other_snapshots_are_refused_or_skipped(
    options: dict[str, str], table: ice.Table, operation: str, option: str
) -> None:
    append(table, 1)
    asked, skipping = Asked(options, table), Asked(options, table, **{option: "true"})
    assert asked.batches() == skipping.batches() == [[1]]
    snapshot_id = with_operation(table, operation)
    append(table.refresh(), 2)
    name = option.replace("_", "-")
    expected = f"cannot process {operation} snapshot: {snapshot_id}, to ignore {operation}s, set {name}=true"
    with pytest.raises(ice.errors.InvalidArgumentError, match=expected):
        asked.batches()
    assert skipping.batches() == [[2]]


def test_compactions_are_passed_over(options: dict[str, str], table: ice.Table) -> None:
    append(table, 1)
    asked = Asked(options, table)
    assert asked.batches() == [[1]]
    with_operation(table, "replace")
    assert asked.batches() == []
    append(table.refresh(), 2)
    assert asked.batches() == [[2]]


def test_a_table_that_was_rolled_back(options: dict[str, str], table: ice.Table) -> None:
    append(table, 1)
    first = table.refresh().current_snapshot().snapshot_id
    append(table, 2)
    asked = Asked(options, table)
    assert asked.batches() == [[1, 2]]
    table.refresh().manage_snapshots().rollback_to_snapshot(first).commit()
    with pytest.raises(ice.errors.InvalidArgumentError, match="is not an ancestor of snapshot"):
        asked.batches()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"snapshot_id": 1}, "a stream has no option snapshot-id"),
        ({"start_snapshot_id": 1}, "a stream has no option start-snapshot-id"),
        ({"streaming_max_files_per_micro_batch": 0}, "expected a positive integer, got 0"),
        ({"streaming_skip_delete_snapshots": "perhaps"}, "expected true or false, got 'perhaps'"),
        ({"stream_from_timestamp": "yesterday"}, "'yesterday'"),
    ],
)
def test_wrong_options(options: dict[str, str], table: ice.Table, given: dict[str, Any], message: str) -> None:
    append(table, 1)
    with pytest.raises(ice.errors.InvalidArgumentError, match=message):
        Asked(options, table, **given).batches()


def test_columns_that_changed(options: dict[str, str], table: ice.Table) -> None:
    """A query has the columns of its start, for as long as the table has them."""
    append(table, 1)
    asked = Asked(options, table)
    assert asked.batches() == [[1]]
    table.refresh().update_schema().add_column("more", "int").commit()
    table.append(pa.table({"id": [2], "s": ["x"], "more": pa.array([5], pa.int32())}))
    assert asked.batches() == [[2]]
    table.refresh().update_schema().rename_column("s", "t").commit()
    table.refresh().update_schema().add_column("s", "string").commit()
    append(table.refresh(), 3)
    with pytest.raises(ice.errors.ValidationError, match="column s became another column"):
        asked.batches()
