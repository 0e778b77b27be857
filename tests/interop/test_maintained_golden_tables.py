"""Java's procedures and ours on the golden tables: the same files chosen, the same rows and counts after each call.

A table is unpacked where its metadata says that it is; Java runs several procedures one after the other, the table is
unpacked again, and ours run. ``make test-random`` takes all tables, `SAMPLE` are always compared.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.errors import IcefieldError
from icefield.procedures import call
from worlds import golden
from worlds.encoding import encoded_table
from worlds.sample import ALL_CASES

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

CATALOG = "kept"
BASE = Path(golden.BASE)
MANY = ALL_CASES or int(os.environ.get("ICEFIELD_RANDOM_CASES", "0")) >= 1000
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))
SAMPLE = (
    "del_pos_partition",
    "del_eq_partitioned",
    "del_mixed",
    "dv_partitioned",
    "part_evo_v2",
    "hist_refs",
    "v3_lineage_mor",
)
TABLES = golden.names() if MANY else [name for name in golden.names() if name in SAMPLE]
DONE: Counter[str] = Counter()
#: What Java refused, by procedure.
REFUSED: defaultdict[str, list[str]] = defaultdict(list)
#: Names of all files of the tables as they were unpacked.
GOLDEN_FILES: set[str] = set()

REWRITE_ALL = {"rewrite-all": "true"}
#: Calls in any order: the procedure and its arguments.
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("rewrite_position_delete_files", {"options": REWRITE_ALL}),
    ("rewrite_data_files", {"options": {"min-input-files": "2"}}),
    ("rewrite_data_files", {"options": {"delete-file-threshold": "1", "rewrite-job-order": "files-desc"}}),
    ("rewrite_data_files", {"options": REWRITE_ALL, "sort_order": "KEY DESC NULLS LAST"}),
    ("rewrite_manifests", {}),
    ("compute_table_stats", {}),
    ("compute_partition_stats", {}),
]
#: Vectors stay as they are in ours (docs/differences.md, "Commits").
OF_VERSION_2 = {"rewrite_position_delete_files"}
#: Calls after those.
LAST: list[tuple[str, dict[str, Any]]] = [
    ("expire_snapshots", {"retain_last": 1, "older_than": "TIMESTAMP '2100-01-01 00:00:00'"}),
    ("remove_orphan_files", {"dry_run": True}),
    ("remove_orphan_files", {}),
]
#: Distinct values that a sketch counts exactly.
SKETCH = 4096
ORPHANS = ("left", "data/left.parquet", "metadata/left-m0.avro")
#: Columns of answers that depend on the writer of files, or on their names.
OF_WRITERS = ("added_bytes_count", "rewritten_bytes_count", "statistics_file", "partition_statistics_file")
#: Entries of summaries that do not depend on sizes of files or on the engine, which may count entries of manifests.
COUNTS = ("added-", "deleted-", "changed-", "removed-dvs", "total-records", "total-data-files")


@pytest.fixture(scope="module", autouse=True)
def _base() -> Iterator[None]:
    with golden.base():
        yield


def unpacked(name: str) -> str:
    """Unpack a table again, with orphans; return its metadata file."""
    shutil.rmtree(BASE / name, ignore_errors=True)
    folder = golden.unpack(name, BASE)
    GOLDEN_FILES.update(path.name for path in folder.rglob("*"))
    for orphan in ORPHANS:
        path = folder / orphan
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"left")
        os.utime(path, (0, 0))
    facts = golden.facts(name)
    table = ice.Table.from_metadata(str(folder / facts["metadata_file"]))
    return f"{table.location()}/{facts['metadata_file']}"


@pytest.mark.parametrize("name", TABLES)
def test_both_do_the_same(catalog: ice.Catalog, java: Java, name: str) -> None:
    rng = Random(f"{SEED} {name}")
    calls = [one for one in CALLS if golden.facts(name)["format_version"] < 3 or one[0] not in OF_VERSION_2]
    chosen = rng.sample(calls, len(calls) if MANY else 3)
    # Both have the same manifests of deletes before a compaction, and may not after it.
    chosen.sort(key=lambda one: one[0] != "rewrite_manifests")
    calls = [*chosen, *LAST]
    forget_all(catalog)
    table = catalog.register_table(f"db.j_{name}", unpacked(name))
    key = golden.facts(name)["key"]

    def by_java(procedure: str, arguments: dict[str, Any]) -> pa.Table:
        return java.rows(statement(f"db.j_{name}", procedure, arguments))

    theirs = [done(table, lambda one=one: by_java(*with_key(one, key)), one[0]) for one in calls]
    forget_all(catalog)
    table = catalog.register_table(f"db.i_{name}", unpacked(name))

    def by_us(procedure: str, arguments: dict[str, Any]) -> pa.Table:
        given = dict(arguments)
        if "older_than" in given:
            given["older_than"] = "2100-01-01T00:00:00Z"
        return call(catalog, procedure, table=f"db.i_{name}", **given)

    for one, expected in zip(calls, theirs, strict=True):
        if "refused" in expected:
            REFUSED[one[0]].append(f"{name}: {expected['refused']}")
            if expected["changed"]:
                # It failed after its commit, and nothing is known about what would be right then.
                return
            continue
        found = done(table, lambda one=one: by_us(*with_key(one, key)), one[0])
        assert "refused" not in found, (name, one, found)
        if one[0] == "expire_snapshots":
            check_expired(found.pop("answer"), expected.pop("answer"))
        assert alike(found.pop("distinct"), expected.pop("distinct")), (name, one)
        for about, value in expected.items():
            assert found.get(about) == value, (name, one, about)
        DONE[one[0]] += 1
        DONE["changed"] += bool(expected["removed"] or expected["added"])
    assert [one for one in table.fsck("rows").findings if one.check != "metadata-log-missing"] == []
    check_read(java, table, name)
    catalog.drop_table(f"db.i_{name}")
    DONE["tables"] += 1


def forget_all(catalog: ice.Catalog) -> None:
    """Drop what a test that failed has left: its files are gone, and no orphans are removed beside such a table."""
    for table in catalog.list_tables("db"):
        catalog.drop_table(table)


def check_read(java: Java, table: ice.Table, name: str) -> None:
    """Compare the rows that Java reads of what we made."""
    try:
        found = java.rows(f"SELECT * FROM {CATALOG}.db.i_{name}")
    except RuntimeError as error:
        # Spark has no times and geometries, for example.
        REFUSED["SELECT"].append(f"{name}: {error}"[:400])
    else:
        assert sorted(map(repr, encoded_table(found))) == rows_of(table)


def alike(ours: list[tuple[list[int], int]], theirs: list[tuple[list[int], int]]) -> bool:
    """Compare numbers of distinct values: beyond the size of a sketch, Java's depend on the order of its tasks."""
    return [fields for fields, _ in ours] == [fields for fields, _ in theirs] and all(
        own == pytest.approx(other, rel=0.05 if other > SKETCH else 0)
        for (_, own), (_, other) in zip(ours, theirs, strict=True)
    )


def check_expired(ours: dict[str, list[int]], theirs: dict[str, list[int]]) -> None:
    """Compare what an expiry deleted: we keep files as long as the snapshot that removed them (docs/differences.md)."""
    for column, (count,) in theirs.items():
        if column in ("deleted_manifest_files_count", "deleted_manifest_lists_count"):
            assert ours[column] == [count], column
        else:
            assert ours[column][0] <= count, column


def with_key(one: tuple[str, dict[str, Any]], key: str) -> tuple[str, dict[str, Any]]:
    """Sort by the key of the table."""
    procedure, arguments = one
    order = arguments.get("sort_order")
    return procedure, arguments if order is None else {**arguments, "sort_order": order.replace("KEY", key)}


def statement(table: str, procedure: str, arguments: dict[str, Any]) -> str:
    given = [f"table => '{table}'"]
    for argument, value in arguments.items():
        if isinstance(value, dict):
            text = "map({})".format(", ".join(f"'{key}', '{of}'" for key, of in value.items()))
        elif isinstance(value, str) and not value.startswith("TIMESTAMP"):
            text = f"'{value}'"
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
        given.append(f"{argument} => {text}")
    return f"CALL {CATALOG}.system.{procedure}({', '.join(given)})"


def rows_of(table: ice.Table) -> list[str]:
    return sorted(map(repr, encoded_table(table.scan().to_arrow())))


def done(table: ice.Table, run: Callable[[], pa.Table], procedure: str) -> dict[str, Any]:
    """Run a procedure, and say what it answered and what it made of the table."""
    before, snapshots = files_of(table), {one.snapshot_id for one in table.snapshots()}
    location = table.metadata_location
    try:
        answer = run()
    except (RuntimeError, IcefieldError) as error:
        changed = table.refresh().metadata_location != location
        return {"refused": f"{type(error).__name__}: {error}"[:400], "changed": changed}
    after = files_of(table.refresh())
    if procedure == "rewrite_data_files":
        # Which old delete files a commit drops depends on the last sequence number, and vectors of removed data files
        # go with these in ours only (docs/differences.md).
        before, after = ({file for file in files if file[2] == 0} for files in (before, after))
    gone, new = (one - other for one, other in ((before, after), (after, before)))
    named = {column: answer[column].to_pylist() for column in answer.column_names if column not in OF_WRITERS}
    if "orphan_file_location" in named:
        named["orphan_file_location"] = sorted(path.rpartition(":")[2] for path in named["orphan_file_location"])
    return {
        "answer": named,
        "removed": sorted(described(file, with_path=True) for file in gone),
        "added": sorted(described(file, with_path=False) for file in new),
        "summaries": [summary(one, procedure) for one in table.snapshots() if one.snapshot_id not in snapshots],
        "distinct": distinct_values(table),
        "partitions": partitions(table),
        "rows": rows_of(table),
        "references": sorted((ref, one.snapshot_id in snapshots) for ref, one in table.refs().items()),
    }


def files_of(table: ice.Table) -> set[tuple[Any, ...]]:
    """List the live files: path, place in a Puffin file, content, format, spec, partition, rows, sequence number."""
    if table.current_snapshot() is None:
        return set()
    found = set()
    # Readable bounds may be of days that Python does not have.
    for entry in table.inspect.entries().drop_columns("readable_metrics").to_pylist():
        if entry["status"] == 2:
            continue
        file = entry["data_file"]
        fixed = [file[name] for name in ("content", "file_format", "spec_id", "record_count")]
        place = (file["file_path"], file.get("content_offset"))
        found.add((*place, *fixed, repr(file.get("partition")), entry["sequence_number"]))
    return found


def described(file: tuple[Any, ...], *, with_path: bool) -> str:
    """Describe a file as both writers do: paths of golden files are theirs, others are names of one writer."""
    path = Path(file[0]).name
    return repr((path if with_path and path in GOLDEN_FILES else "", *file[2:]))


def summary(snapshot: Any, procedure: str) -> tuple[Any, dict[str, str]]:
    entries = {} if snapshot.summary is None else dict(snapshot.summary.additional_properties)
    counts = (*COUNTS, "manifests-", "total-") if procedure == "rewrite_manifests" else COUNTS
    kept = {key: value for key, value in entries.items() if key.startswith(counts) and "size" not in key}
    return snapshot.operation, kept


def distinct_values(table: ice.Table) -> list[tuple[list[int], int]]:
    statistics = json.loads(table.metadata_json()).get("statistics", ())
    return [
        (blob["fields"], int(blob["properties"]["ndv"]))
        for one in statistics
        if table.current_snapshot() is not None and one["snapshot-id"] == table.current_snapshot().snapshot_id
        for blob in one["blob-metadata"]
    ]


def partitions(table: ice.Table) -> list[str]:
    found = table.inspect.partition_statistics() if table.spec().fields else None
    if found is None:
        return []
    names = [name for name in found.column_names if name.endswith("_count") and name != "total_record_count"]
    return sorted(map(repr, encoded_table(found.select(["partition", *names]))))


def test_procedures_were_called_and_changed_tables() -> None:
    assert DONE["tables"] >= (60 if MANY else 6), (DONE, REFUSED)
    assert DONE["changed"] >= DONE["tables"], DONE
