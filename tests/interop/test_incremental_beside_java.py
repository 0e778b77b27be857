"""Appends and changelogs of tables of Java's, read as Java reads them.

Where it refuses, over delete files, the law: the rows before and the changes are the rows after, as Java reads both.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import IcefieldError

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

CATALOG = "incremental"
HISTORIES = int(os.environ.get("ICEFIELD_RANDOM_CASES", "200")) // 50
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
PARTITIONS = {1: "bucket(3, id)", 2: "days(at)", 3: "truncate(1, s)"}


def history(java: Java, name: str, version: int, how: str) -> None:
    """Write a table by every operation that leaves no delete files behind; merge-on-read deletes follow at its end."""
    java.sql(
        f"CREATE TABLE {name} (id bigint, s string, at timestamp) USING iceberg PARTITIONED BY ({PARTITIONS[version]}) "
        f"TBLPROPERTIES ('format-version'='{version}', 'write.delete.mode'='copy-on-write', {how})"
    )

    def insert(first: int, last: int, column: str = "s") -> None:
        values = ", ".join(
            f"({n}, '{'abc'[n % 3]}{n}', timestamp '2024-01-0{1 + n % 4} 10:00:00')" for n in range(first, last)
        )
        java.sql(f"INSERT INTO {name} (id, {column}, at) VALUES {values}")

    insert(0, 12)
    insert(12, 20)
    java.sql(f"DELETE FROM {name} WHERE id IN (3, 15)")
    java.sql(f"ALTER TABLE {name} RENAME COLUMN s TO t") if version != 3 else None
    insert(20, 26, "s" if version == 3 else "t")
    java.sql(f"CALL {CATALOG}.system.rewrite_manifests(table => '{name.partition('.')[2]}', use_caching => false)")
    java.sql(
        f"CALL {CATALOG}.system.rewrite_data_files(table => '{name.partition('.')[2]}', "
        "options => map('rewrite-all', 'true'))"
    )
    java.sql(f"INSERT OVERWRITE {name} SELECT * FROM {name} WHERE id < 5")
    java.sql(f"DELETE FROM {name} WHERE id >= 0")
    insert(30, 34, "s" if version == 3 else "t")


@pytest.mark.parametrize("version", [1, 2, 3])
def test_ranges_are_read_as_java_reads_them(catalog: ice.catalog.Catalog, java: Java, version: int) -> None:
    name = f"db.t{version}"
    how = "'commit.manifest.min-count-to-merge'='2'" if version == 2 else "'a'='b'"
    history(java, f"{CATALOG}.{name}", version, how)
    table = catalog.load_table(name)
    made: list[int | None] = [None, *(snapshot.snapshot_id for snapshot in table.snapshots())]
    kinds = [snapshot.operation for snapshot in table.snapshots()]
    assert {"append", "overwrite", "replace", "delete"} <= set(kinds), kinds
    compared: Counter[str] = Counter()
    spans = [*itertools.pairwise(made), *((start, made[-1]) for start in made[:-2])]
    if version == 2:
        spans += [*zip(made, made[2:], strict=False), *zip(made, made[4:], strict=False)]
    for start, end in spans:
        span = {"from_snapshot_id_exclusive": start, "to_snapshot_id_inclusive": end}
        if start is not None:  # Java has no range of appends without a start.
            check(table.incremental_append_scan(**span), java, name, "", span, compared)
        check(table.incremental_changelog_scan(**span), java, name, ".changes", span, compared)
    without_start = sum(start is None for start, _ in spans)
    assert compared["ranges"] == 2 * len(spans) - without_start
    assert compared["rows"] > 100


def check(
    scan: ice.incremental.IncrementalScan,
    java: Java,
    name: str,
    what: str,
    span: dict[str, Any],
    compared: Counter[str],
) -> None:
    """Compare the rows of a range."""
    options = {
        "start-snapshot-id": span["from_snapshot_id_exclusive"],
        "end-snapshot-id": span["to_snapshot_id_inclusive"],
    }
    theirs = java.read(f"{CATALOG}.{name}{what}", **{key: str(value) for key, value in options.items() if value})
    ours = scan.to_arrow()
    assert ours.column_names == theirs.column_names
    assert tuples(ours) == tuples(theirs), (what, span)
    assert scan.count() == ours.num_rows
    compared.update(ranges=1, rows=ours.num_rows)


def tuples(table: pa.Table) -> list[tuple[str, ...]]:
    """Give the rows sorted; instants without their zone, which Spark's Arrow names and ours may not."""
    return sorted(tuple(str(value) for value in row.values()) for row in table.to_pylist())


def test_java_refuses_changelogs_over_delete_files(catalog: ice.catalog.Catalog, java: Java) -> None:
    java.sql(
        f"CREATE TABLE {CATALOG}.db.d (id bigint) USING iceberg "
        "TBLPROPERTIES ('format-version'='2', 'write.delete.mode'='merge-on-read')"
    )
    java.sql(f"INSERT INTO {CATALOG}.db.d SELECT id FROM range(0, 10, 1, 1)")
    java.sql(f"DELETE FROM {CATALOG}.db.d WHERE id = 3")
    java.sql(f"INSERT INTO {CATALOG}.db.d VALUES (10)")
    table = catalog.load_table("db.d")
    first, deleted, last = (snapshot.snapshot_id for snapshot in table.snapshots())
    with pytest.raises(RuntimeError, match="Delete files are currently not supported in changelog scans"):
        java.read(f"{CATALOG}.db.d.changes")
    read = table.incremental_changelog_scan
    after_first = read(from_snapshot_id_exclusive=first)
    assert tuples(after_first.to_arrow()) == [
        ("10", "INSERT", "1", str(last)),
        ("3", "DELETE", "0", str(deleted)),
    ]
    assert read().count() == 12
    # The delete file is still there in the last snapshot.
    assert tuples(read(from_snapshot_id_exclusive=deleted).select("id").to_arrow()) == [("10",)]
    for start, end in ((first, last), (deleted, last)):
        options = {"start-snapshot-id": str(start), "end-snapshot-id": str(end)}
        theirs = java.read(f"{CATALOG}.db.d", **options)
        ours = table.incremental_append_scan(from_snapshot_id_exclusive=start, to_snapshot_id_inclusive=end)
        assert tuples(ours.to_arrow()) == tuples(theirs) == [("10",)]
    only_first = read(to_snapshot_id_inclusive=first)
    assert tuples(only_first.to_arrow()) == tuples(
        java.read(f"{CATALOG}.db.d.changes", **{"end-snapshot-id": str(first)})
    )


def statement(rng: Random, name: str, version: int, next_id: int) -> tuple[str, int]:
    """Make a random statement, and the least id that is free after it. Ids are unique."""
    text, modulus = rng.choice(("'a'", "'b'", "NULL")), rng.randrange(2, 7)
    some = f"id % {modulus} = {rng.randrange(modulus)}"
    first, count = rng.randrange(next_id + 1), rng.randrange(1, 8)
    rows = f"(SELECT id, cast({text} AS string) AS s, cast(id % 3 AS int) AS n FROM range({first}, {first + count}))"
    merge = (
        f"MERGE INTO {name} t USING {rows} u ON t.id = u.id WHEN MATCHED AND u.n = 0 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET s = u.s WHEN NOT MATCHED THEN INSERT *"
    )
    procedure = rng.choice(
        ("rewrite_data_files", "rewrite_manifests", "rewrite_position_delete_files")[: 3 if version == 2 else 2]
    )
    more = {
        "rewrite_data_files": ", options => map('rewrite-all', 'true')",
        "rewrite_manifests": ", use_caching => false",
        "rewrite_position_delete_files": ", options => map('rewrite-all', 'true')",
    }[procedure]
    made, weight = rng.choices(
        [
            (f"INSERT INTO {name} SELECT id, {text}, cast(id % 3 AS int) FROM range({next_id}, {next_id + 20})", 20),
            (f"DELETE FROM {name} WHERE {some}", 0),
            (f"UPDATE {name} SET s = {text} WHERE {some}", 0),
            (merge, max(0, first + count - next_id)),
            (f"CALL {CATALOG}.system.{procedure}(table => '{name.partition('.')[2]}'{more})", 0),
        ],
        [2, 3, 3, 3, 1],
    )[0]
    return made, next_id + weight


@pytest.mark.parametrize("number", range(HISTORIES))
def test_random_histories_over_delete_files(catalog: ice.catalog.Catalog, java: Java, number: int) -> None:
    rng = Random(SEED + number)
    version, name = 2 + number % 2, f"{CATALOG}.db.random{number}"
    mode = "merge-on-read" if number % 4 < 3 else "copy-on-write"
    partition = rng.choice(("", "PARTITIONED BY (n)", "PARTITIONED BY (bucket(2, id))"))
    granularity = rng.choice(("file", "partition"))
    java.sql(
        f"CREATE TABLE {name} (id bigint, s string, n int) USING iceberg {partition} TBLPROPERTIES ("
        f"'format-version'='{version}', 'write.delete.granularity'='{granularity}', 'write.delete.mode'='{mode}', "
        f"'write.update.mode'='merge-on-read', 'write.merge.mode'='{mode}', 'commit.manifest.min-count-to-merge'='3')"
    )
    log, next_id = [], 0
    for place in range(7):
        if place < 2:
            last = next_id + 20
            made, next_id = f"INSERT INTO {name} SELECT id, 'a', 0 FROM range({next_id}, {last})", last
        else:
            made, next_id = statement(rng, name, version, next_id)
        log.append(made)
        java.sql(made)
    table = catalog.load_table(f"db.random{number}")
    snapshots = [snapshot.snapshot_id for snapshot in table.snapshots()]
    read_by_java = (java.read(name, versionAsOf=str(snapshot)) for snapshot in snapshots)
    states = [Counter[tuple[str, ...]](), *(Counter(tuples(rows)) for rows in read_by_java)]
    read = table.incremental_changelog_scan
    for start, end in itertools.combinations(range(len(states)), 2):
        span = {
            "from_snapshot_id_exclusive": snapshots[start - 1] if start else None,
            "to_snapshot_id_inclusive": snapshots[end - 1],
        }
        before, after = states[start], states[end]
        differ = ((before - after) + (after - before)).total()
        for options in ({}, {"net_changes": True}, {"identifier_columns": ["id"]}, {"compute_updates": version == 3}):
            found = read(**span, **options).to_arrow()
            added = Counter[tuple[str, ...]]()
            for row in found.to_pylist():
                *values, change_type, _, _ = row.values()
                added[tuple(map(str, values))] += 1 if change_type in ("INSERT", "UPDATE_AFTER") else -1
            added.update(before)
            assert +added == after, (log, start, end, options)
            assert not -added, (log, start, end, options)
            if "net_changes" in options:
                assert found.num_rows == differ, (log, start, end)


def test_wrong_ranges_are_refused_by_both(catalog: ice.catalog.Catalog, java: Java) -> None:
    java.sql(f"CREATE TABLE {CATALOG}.db.w (id bigint) USING iceberg")
    java.sql(f"INSERT INTO {CATALOG}.db.w VALUES (1)")
    java.sql(f"INSERT INTO {CATALOG}.db.w VALUES (2)")
    table = catalog.load_table("db.w")
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots())
    for start, end in ((second, first), (first, first), (1, second), (first, 1)):
        with pytest.raises(RuntimeError):
            java.read(f"{CATALOG}.db.w", **{"start-snapshot-id": str(start), "end-snapshot-id": str(end)})
        with pytest.raises(IcefieldError):
            table.incremental_append_scan(from_snapshot_id_exclusive=start, to_snapshot_id_inclusive=end)
