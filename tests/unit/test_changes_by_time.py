"""Changelogs between two moments: the snapshots that the Java library reads for the same options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice

pytest.importorskip("pyspark")
from icefield.spark.tables.opening import SourceOptions

FIRST_MS = 1_900_000_000_000


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    """Give a table of four appends, a second apart; the last one lies on a branch beside the third."""
    catalog = ice.load_catalog("c", type="sql", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "w"))
    catalog.create_namespace("db")
    made = catalog.create_table("db.t", schema=pa.schema([("id", pa.int64())]))
    for number in range(3):
        made.append(pa.table({"id": [number]}))
        if number == 1:
            made.manage_snapshots().create_branch(made.snapshots()[1].snapshot_id, "side").commit()
    made.append(pa.table({"id": [3]}), branch="side")
    document = json.loads(Path(made.metadata_location.removeprefix("file://")).read_text())
    times = {snapshot["snapshot-id"]: FIRST_MS + 1000 * n for n, snapshot in enumerate(document["snapshots"])}
    for entry in (*document["snapshots"], *document["snapshot-log"]):
        entry["timestamp-ms"] = times[entry["snapshot-id"]]
    document["last-updated-ms"] = FIRST_MS + 3000
    changed = tmp_path / "00009-changed.metadata.json"
    changed.write_text(json.dumps(document))
    return ice.Table.from_metadata(str(changed))


ALL: list[Any] = [None, None]


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [
        (-5, None, ALL),
        (0, None, [0, None]),
        (1, None, [0, None]),
        (1000, None, [1, None]),
        (1001, None, [1, None]),
        (2000, None, [2, None]),
        (2001, None, None),
        (None, -1, None),
        (None, 0, [None, 0]),
        (None, 1999, [None, 1]),
        (None, 9999, [None, 2]),
        (-9, -1, None),
        (-9, 1500, [None, 1]),
        (0, 999, None),
        (0, 1000, [0, 1]),
        (1, 999, None),
        (999, 2000, [0, 2]),
        (1000, 1999, None),
        (2001, 9999, None),
    ],
)
def test_moments_mean_snapshots(
    table: ice.Table, start: int | None, end: int | None, wanted: list[int | None] | None
) -> None:
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    between = table.metadata.snapshots_between(
        start_timestamp_ms=None if start is None else FIRST_MS + start,
        end_timestamp_ms=None if end is None else FIRST_MS + end,
    )
    assert between == (None if wanted is None else tuple(None if n is None else ids[n] for n in wanted))


def options(**more: Any) -> SourceOptions:
    named = {name.replace("_", "-"): str(value) for name, value in more.items()}
    return SourceOptions.of({"path": "db.t", **named})


def read(table: ice.Table, **more: Any) -> list[int]:
    return sorted(options(**more).scan(table, "changes", None).to_arrow()["id"].to_pylist())


def test_rows_of_changelogs(table: ice.Table) -> None:
    ids = [snapshot.snapshot_id for snapshot in table.snapshots()]
    assert read(table, start_timestamp=FIRST_MS) == [1, 2]
    assert read(table, start_timestamp=FIRST_MS, end_timestamp=FIRST_MS + 1000) == [1]
    assert read(table, start_timestamp=FIRST_MS + 2001) == []
    assert read(table, start_snapshot_id=ids[0], end_timestamp=FIRST_MS + 1500) == [1]
    assert read(table, start_timestamp=FIRST_MS + 1, end_snapshot_id=ids[1]) == [1]
    assert read(table, start_timestamp=FIRST_MS, branch="side") == [1, 3]


@pytest.mark.parametrize(
    ("message", "what", "more"),
    [
        ("start timestamp 5 must be before end timestamp 5", "changes", {"start_timestamp": 5, "end_timestamp": 5}),
        (
            "cannot set both start-snapshot",
            "changes",
            {"start_snapshot_id": 1, "start_timestamp": 1},
        ),
        ("cannot set both end-snapshot", "changes", {"end_snapshot_id": 1, "end_timestamp": 1}),
        ("apply only to changelogs", None, {"start_timestamp": 1}),
        ("apply only to changelogs", None, {"start_snapshot_id": 1, "end_timestamp": 1}),
        ("expected an integer", "changes", {"start_timestamp": "yesterday"}),
        ("pass either the option of one snapshot", "changes", {"start_timestamp": 1, "snapshot_id": 1}),
    ],
)
def test_options_that_do_not_go_together(
    table: ice.Table, message: str, what: str | None, more: dict[str, Any]
) -> None:
    with pytest.raises(ice.InvalidArgumentError, match=message):
        options(**more).scan(table, what, None)


def test_snapshots_before_the_oldest_that_is_there(table: ice.Table, tmp_path: Path) -> None:
    document = json.loads(Path(table.metadata_location.removeprefix("file://")).read_text())
    first = document["snapshots"].pop(0)["snapshot-id"]
    document["snapshot-log"] = [entry for entry in document["snapshot-log"] if entry["snapshot-id"] != first]
    expired = tmp_path / "00010-expired.metadata.json"
    expired.write_text(json.dumps(document))
    with pytest.raises(ice.InvalidArgumentError, match="older ones have been expired"):
        ice.Table.from_metadata(str(expired)).metadata.snapshots_between(start_timestamp_ms=FIRST_MS + 999)


@pytest.mark.parametrize("end", ["start", "end"])
def test_one_end_is_a_snapshot_or_a_time(table: ice.Table, end: str) -> None:
    message = f"pass only one of {end}_snapshot_id and {end}_timestamp_ms"
    with pytest.raises(ice.InvalidArgumentError, match=message):
        table.metadata.snapshots_between(**{f"{end}_snapshot_id": 1, f"{end}_timestamp_ms": 1})
