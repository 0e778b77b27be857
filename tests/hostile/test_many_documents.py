"""Documents that are each within their budget and too many together: what an operation holds at a time is bounded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice

TRIED = """
import json, sys
import icefield as ice

table = ice.Table.from_metadata(sys.argv[1])
attempts = {
    "all_files": lambda: len(table.inspect.all_files()),
    "all_entries": lambda: len(table.inspect.all_entries()),
    "partitions": lambda: len(table.inspect.partitions()),
    "files": lambda: len(table.inspect.files()),
    "appends": lambda: len(table.incremental_append_scan().plan_files().to_arrow()),
    "scan": lambda: len(table.scan().to_arrow()),
}
answers = {}
for name, attempt in attempts.items():
    try:
        answers[name] = attempt()
    except ice.IcefieldError as error:
        answers[name] = f"{type(error).__name__}: {error}"
print(json.dumps(answers))
"""


@pytest.fixture
def table(tmp_path: Path) -> ice.Table:
    catalog = ice.load_catalog("c", type="in-memory", warehouse=str(tmp_path / "wh"))
    catalog.create_namespace("a")
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string())])
    table = catalog.create_table("a.t", schema, partition_by="identity(name)")
    for number in range(6):
        table.append(pa.table({"id": [1, 2], "name": [f"{number}-{n}" * 100 for n in range(2)]}, schema=schema))
    return table


def attempts(table: ice.Table, **environment: str) -> dict[str, Any]:
    command = [sys.executable, "-c", TRIED, table.metadata_location]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_operations_are_bounded(table: ice.Table) -> None:
    whole = attempts(table)
    assert whole == {"all_files": 12, "all_entries": 12, "partitions": 12, "files": 12, "appends": 12, "scan": 12}
    bounded = attempts(table, ICEFIELD_OPERATION_MEMORY="1KiB")
    refused = {
        name for name, answer in bounded.items() if "raise this limit with ICEFIELD_OPERATION_MEMORY" in str(answer)
    }
    # What reads manifest by manifest needs no memory for all of them, and 16 bytes are allowed for each that is stored.
    assert refused == {"all_files", "all_entries", "appends"}
    assert all(str(bounded[name]).startswith("CorruptDataError") for name in refused)
    assert all(bounded[name] == 12 for name in bounded.keys() - refused)


def test_the_limit_is_a_number_of_bytes(table: ice.Table) -> None:
    with pytest.raises(subprocess.CalledProcessError) as raised:
        attempts(table, ICEFIELD_OPERATION_MEMORY="much")
    assert "ICEFIELD_OPERATION_MEMORY: expected a number of bytes" in raised.value.stderr
