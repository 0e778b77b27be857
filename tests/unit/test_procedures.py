"""The procedures of Java's connector, called in Python and on the command line."""

from __future__ import annotations

import datetime as dt
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import icefield as ice
from icefield.cli.commands import icefield
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.procedures import PROCEDURES, call

UTC = dt.timezone.utc
ROWS = pa.table({"id": [1, 2]})


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    made = ice.load_catalog("own", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made.create_namespace("db")
    table = made.create_table("db.t", ROWS, properties={"write.wap.enabled": "true"})
    for _ in range(3):
        table.append(ROWS)
    return made


@pytest.mark.parametrize("procedure", ["compute_table_stats", "compute_partition_stats"])
def test_a_table_without_rows_has_no_statistics(catalog: ice.Catalog, procedure: str) -> None:
    catalog.create_table("db.none", ROWS, partition_by=["id"])
    found = call(catalog, procedure, table="db.none")
    assert (found.num_rows, found.num_columns) == (0, 1)


def ids(catalog: ice.Catalog) -> list[int]:
    return [one.snapshot_id for one in catalog.load_table("db.t").snapshots()]


def rows(catalog: ice.Catalog, procedure: str, *positional: object, **named: object) -> list[tuple[Any, ...]]:
    found = call(catalog, procedure, *positional, **named)
    assert found.column_names == [one.name for one in PROCEDURES[procedure].columns]
    return [tuple(row.values()) for row in found.to_pylist()]


def test_current_snapshot_and_branches(catalog: ice.Catalog) -> None:
    first, second, third = ids(catalog)
    table = catalog.load_table("db.t")
    assert rows(catalog, "rollback_to_snapshot", "db.t", first) == [(third, first)]
    assert rows(catalog, "set_current_snapshot", table="own.db.t", snapshot_id=third) == [(first, third)]
    at = dt.datetime.fromtimestamp(table.snapshot_by_id(second).timestamp_ms / 1000, UTC) + dt.timedelta(milliseconds=1)
    [(before, now)] = rows(catalog, "rollback_to_timestamp", ("db", "t"), at.isoformat())
    assert (before, now in {first, second}) == (third, True)
    rows(catalog, "set_current_snapshot", "`db`.`t`", third)
    assert [row[0] for row in rows(catalog, "ancestors_of", "db.t")] == [third, second, first]
    assert rows(catalog, "ancestors_of", "db.t", first) == [(first, table.snapshot_by_id(first).timestamp_ms)]
    table.refresh().manage_snapshots().create_branch(first, "b").commit()
    assert rows(catalog, "fast_forward", "db.t", "b", "main") == [("b", first, third)]
    assert rows(catalog, "set_current_snapshot", "db.t", ref="b") == [(third, third)]


def test_staged_snapshots_are_published(catalog: ice.Catalog) -> None:
    table = catalog.load_table("db.t")
    for wap_id in ("one", "two"):
        table.append(ROWS, snapshot_properties={"wap.id": wap_id})
    staged = {one.summary["wap.id"]: one.snapshot_id for one in table.snapshots() if "wap.id" in one.summary}
    current = rows(catalog, "publish_changes", "db.t", "one")[0]
    assert (current[0], catalog.load_table("db.t").current_snapshot().snapshot_id) == (staged["one"], current[1])
    picked = rows(catalog, "cherrypick_snapshot", "db.t", staged["two"])[0]
    assert (picked[0], catalog.load_table("db.t").scan().count()) == (staged["two"], 10)
    with pytest.raises(InvalidArgumentError, match=r"no snapshot with wap\.id='three'"):
        call(catalog, "publish_changes", "db.t", "three")


def test_files(catalog: ice.Catalog, tmp_path: Path) -> None:
    assert rows(catalog, "rewrite_manifests", "db.t") == [(3, 1)]
    assert rows(catalog, "rewrite_manifests", table="db.t", use_caching=True) == [(0, 0)]
    table = catalog.load_table("db.t")
    table.overwrite(ROWS)
    table.append(ROWS)  # an expiry keeps files that the oldest kept snapshot removed
    [counts] = rows(catalog, "expire_snapshots", "db.t", older_than=dt.datetime.now(UTC), retain_last=1)
    assert counts[:3] == (3, 0, 0)
    assert (counts[4], len(ids(catalog))) == (5, 1)
    folder = tmp_path / "others" / "deep"
    folder.mkdir(parents=True)
    pq.write_table(ROWS, folder / "a.parquet")
    pq.write_table(ROWS, folder / "_hidden.parquet")
    assert rows(catalog, "add_files", "db.t", f"parquet.`{tmp_path}/others`") == [(1, 1)]
    assert catalog.load_table("db.t").scan().count() == 6
    with pytest.raises(InvalidArgumentError, match="already"):
        call(catalog, "add_files", "db.t", f"parquet.`{tmp_path}/others`")
    assert rows(catalog, "snapshot", f"parquet.`{tmp_path}/others`", "db.taken", properties={"a": "b"}) == [(1,)]
    taken = catalog.load_table("db.taken")
    assert (taken.scan().count(), taken.properties["gc.enabled"], taken.properties["a"]) == (2, "false", "b")
    with pytest.raises(InvalidArgumentError, match="must not be the folder"):
        call(catalog, "snapshot", f"parquet.`{tmp_path}/others`", "db.more", location=f"{tmp_path}/others/")
    with pytest.raises(UnsupportedFeatureError, match="source_table 'db.t' is not supported"):
        call(catalog, "snapshot", "db.t", "db.more")
    location = catalog.load_table("db.t").metadata_location
    current = catalog.load_table("db.t").current_snapshot().snapshot_id
    assert rows(catalog, "register_table", table="db.again", metadata_file=location) == [(current, 6, 3)]
    empty = catalog.create_table("db.empty", ROWS)
    assert rows(catalog, "register_table", "db.more", empty.metadata_location) == [(None, None, None)]


def test_rewritten_manifests_have_neighbouring_partitions(
    catalog: ice.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not by the property, with which each group would be cut again.
    monkeypatch.setattr("icefield.procedures.files._TARGET_SIZE", 8000)
    table = catalog.create_table("db.parts", ROWS, partition_by=["id"])
    for _ in range(3):
        table.append(pa.table({"id": range(12)}))
    before = table.inspect.manifests()["length"].to_pylist()
    expected = -(-sum(before) // 8000)
    assert rows(catalog, "rewrite_manifests", "db.parts") == [(3, expected)]
    found = catalog.load_table("db.parts").inspect.manifests()["partition_summaries"].to_pylist()
    bounds = sorted((int(one[0]["lower_bound"]), int(one[0]["upper_bound"])) for one in found)
    assert all(upper <= lower for (_, upper), (lower, _) in pairwise(bounds)), bounds
    assert (bounds[0][0], bounds[-1][1]) == (0, 11)


WRONG = [
    ("nosuch", {}, "unknown procedure 'nosuch'; known: add_files"),
    ("rolback_to_snapshot", {}, "did you mean rollback_to_snapshot?"),
    ("fast_forward", {"table": "db.t", "branch": "b"}, "parameter 'to' is missing; it is fast_forward(table table,"),
    ("ancestors_of", {"tabel": "db.t"}, "unknown parameter 'tabel'; did you mean table?; it is ancestors_of("),
    ("ancestors_of", {"table": "db.t", "snapshot_id": True}, "parameter 'snapshot_id': expected long, got True"),
    ("ancestors_of", {"table": "db.t", "snapshot_id": 1 << 63}, "expected long"),
    ("ancestors_of", {"table": "db.t", "snapshot_id": 5}, "the table has no snapshot 5"),
    ("ancestors_of", {"table": "db..t"}, "parameter 'table': expected table, got 'db..t'"),
    ("ancestors_of", {"table": 3}, "parameter 'table': expected table, got 3"),
    ("rollback_to_timestamp", {"table": "db.t", "timestamp": "2024-01-01T00:00:00"}, "has no time zone"),
    ("rollback_to_timestamp", {"table": "db.t", "timestamp": dt.datetime(2024, 1, 1)}, "has no time zone"),  # noqa: DTZ001
    ("set_current_snapshot", {"table": "db.t"}, "pass either snapshot_id or ref"),
    ("expire_snapshots", {"table": "db.t", "retain_last": "x"}, "parameter 'retain_last': expected int"),
    ("expire_snapshots", {"table": "db.t", "max_concurrent_deletes": 0}, "must be positive, got 0"),
    ("expire_snapshots", {"table": "db.t", "stream_results": "yes"}, "expected boolean, got 'yes'"),
    ("rewrite_manifests", {"table": "db.t", "spec_id": 9}, "no partition spec 9"),
    ("add_files", {"table": "db.t", "source_table": "parquet.`/nosuch`"}, "no data files in /nosuch"),
]  # fmt: skip
REFUSED = [
    ("migrate", {"table": "a.t"}, "catalog.migrate(name, folder) and snapshot make tables of folders"),
    ("create_changelog_view", {"table": "db.t"}, "icefield.spark.session(...).sql"),
    ("add_files", {"table": "db.t", "source_table": "db.hive"}, "pass a folder, as in 'parquet.`/data/t`'"),
    ("add_files", {"table": "db.t", "source_table": "x", "partition_filter": "a=1"}, "partition_filter is not"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "arguments", "message"),
    [
        *((InvalidArgumentError, *case) for case in WRONG),
        *((UnsupportedFeatureError, *case) for case in REFUSED),
    ],
    ids=[f"{name}-{message[:40]}" for name, _, message in (*WRONG, *REFUSED)],
)
def test_mistakes(
    catalog: ice.Catalog, kind: type[Exception], name: str, arguments: dict[str, object], message: str
) -> None:
    before = catalog.load_table("db.t").metadata_location
    with pytest.raises(kind) as caught:
        call(catalog, name, **arguments)
    assert message in str(caught.value)
    assert catalog.load_table("db.t").metadata_location == before


def test_the_command(catalog: ice.Catalog) -> None:
    def run(*arguments: str, code: int = 0) -> str:
        uri = catalog.properties["uri"]
        done = CliRunner().invoke(icefield, ["--uri", str(uri), "call", *arguments], catch_exceptions=False)
        assert done.exit_code == code, done.output
        return done.output

    listed = {row["procedure"] for row in json.loads(run("--json"))}
    assert listed == set(PROCEDURES)
    found = json.loads(run("ancestors_of", "table=db.t", "--json"))
    assert [row["snapshot_id"] for row in found] == ids(catalog)[::-1]
    first, _, third = ids(catalog)
    assert "not confirmed: call rollback_to_snapshot of db.t" in run(
        "rollback_to_snapshot", "table=db.t", f"snapshot_id={first}", code=2
    )
    moved = run("rollback_to_snapshot", "table=db.t", f"snapshot_id={first}", "--yes", "--json")
    assert json.loads(moved) == [{"previous_snapshot_id": third, "current_snapshot_id": first}]
    counts = run("expire_snapshots", "table=db.t", f"snapshot_ids={third}", "-y", "--json")
    assert json.loads(counts)[0]["deleted_manifest_lists_count"] == 1
