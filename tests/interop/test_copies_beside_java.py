"""Copies of tables by Java's `rewrite_table_path` and by ours: the same files and metadata; Java reads our copies."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.procedures import call

if TYPE_CHECKING:
    from conftest import Java

pytestmark = pytest.mark.interop

CATALOG = "copies"
SCHEMA = pa.schema({"id": pa.int64(), "p": pa.string()})
FILES = (
    "SELECT status, snapshot_id, sequence_number, file_sequence_number, data_file.content, data_file.file_path, "
    "data_file.file_format, data_file.record_count, data_file.partition, data_file.equality_ids FROM {}.all_entries "
    "ORDER BY snapshot_id, file_path, status, sequence_number"
)


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table([list(ids), ["a" if one % 2 else "b" for one in ids]], SCHEMA)


def local(location: str) -> Path:
    return Path("/" + location.removeprefix("file:").lstrip("/"))


def plan(file_list: str, prefixes: tuple[str, ...]) -> dict[str, str]:
    """Read a list of files: source by target, staged ones without their staging location."""
    found = {}
    for line in local(file_list).read_text(encoding="utf-8").splitlines():
        source, target = line.split(",")
        for prefix in prefixes:
            source = f"staged/{source.removeprefix(prefix).lstrip('/')}" if source.startswith(prefix) else source
        found[target] = source
    return found


def copied(file_list: str) -> None:
    for line in local(file_list).read_text(encoding="utf-8").splitlines():
        source, target = map(local, line.split(","))
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("version", [2, 3])
def test_the_same_files_and_metadata(catalog: ice.Catalog, java: Java, tmp_path: Path, version: int) -> None:
    name = f"db.t{version}"
    properties = {
        "format-version": str(version),
        "write.delete.mode": "merge-on-read",
        "write.metadata.compression-codec": "none",
    }
    # Java writes file:/ for file:///, and its procedure takes one spelling only.
    location = f"file:{tmp_path}/source"
    table = catalog.create_table(name, SCHEMA, location, partition_by="p", properties=properties)
    target = f"file:{tmp_path}/copy"
    start = ""
    for step in range(2):
        table.append(rows(step * 100, 40))
        table.delete(f"id >= {step * 100} AND id < {step * 100 + 7}")
        java.sql(f"INSERT INTO {CATALOG}.{name} SELECT id + 50, p FROM {CATALOG}.{name} WHERE id >= {step * 100 + 30}")
        java.sql(f"DELETE FROM {CATALOG}.{name} WHERE id % 10 = {step}")
        with table.refresh().upsert_stream(["id", "p"]) as stream:
            stream.delete(rows(step * 100 + 19, 1))
        arguments = {"source_prefix": table.location(), "target_prefix": target} | (
            {"start_version": start} if start else {}
        )
        given = ", ".join(f"{key} => '{value}'" for key, value in {"table": name, **arguments}.items())
        staging = [f"file:{tmp_path}/{who}-{step}" for who in ("ours", "theirs")]
        [ours] = call(catalog, "rewrite_table_path", table=name, staging_location=staging[0], **arguments).to_pylist()
        answer = java.rows(f"CALL {CATALOG}.system.rewrite_table_path({given}, staging_location => '{staging[1]}')")
        [theirs] = answer.to_pylist()
        assert ours | {"file_list_location": ""} == theirs | {"file_list_location": ""}
        plans = [plan(one["file_list_location"], tuple(staging)) for one in (ours, theirs)]
        assert plans[0] == plans[1]
        for place in {source for source in plans[0].values() if source.endswith(".json")}:
            both = [document(local(f"{folder}/{place.removeprefix('staged/')}")) for folder in staging]
            assert both[0] == both[1], place
        # Java's own copy first, then ours over it.
        entries = []
        for who, done in (("theirs", theirs), ("ours", ours)):
            copied(done["file_list_location"])
            copy = f"db.copy_{version}_{who}_{step}"
            metadata = f"{target}/metadata/{done['latest_version']}"
            java.rows(f"CALL {CATALOG}.system.register_table('{copy}', '{metadata}')")
            entries.append(java.rows(FILES.format(f"{CATALOG}.{copy}")).to_pylist())
        assert entries[0] == entries[1]
        assert {local(entry["file_path"]).is_relative_to(tmp_path) for entry in entries[1]} == {True}
        mine = ice.Table.from_metadata(metadata)
        assert mine.fsck("rows").findings == []
        for snapshot in table.snapshots():
            expected = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().sort_by("id").to_pylist()
            read = java.rows(f"SELECT * FROM {CATALOG}.{copy} VERSION AS OF {snapshot.snapshot_id} ORDER BY id")
            assert read.to_pylist() == expected
            assert mine.scan(snapshot_id=snapshot.snapshot_id).to_arrow().sort_by("id").to_pylist() == expected
        start = ours["latest_version"]
