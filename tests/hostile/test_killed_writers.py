"""A process killed anywhere in an append leaves a table that reads as before or as after, and can be written."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import icefield as ice

BEFORE, AFTER = [1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7]
WHEN = {"before the swap": BEFORE, "in the transaction": BEFORE, "after the swap": AFTER}


def ids(table):
    return sorted(table.scan().to_arrow()["id"].to_pylist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_table_reads_as_before_or_after(tmp_path):
    script = Path(__file__).with_name("killed_writers.py")
    run = subprocess.run([sys.executable, script, tmp_path], check=False, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    ended = json.loads(run.stdout.splitlines()[-1])
    steps = [point for point in ended if point.isdecimal()]
    if ended["0"][1] == 0:
        pytest.skip("this build has no hook to die at a step of the storage: it is not one for development")
    # Three data files, each created, written and closed; a manifest, a manifest list, the metadata.
    assert len(steps) > 9
    assert ended.pop(steps[-1])[1] == 0
    assert {signal_ for _, signal_ in ended.values()} == {signal.SIGKILL}
    for point, (folder, _) in ended.items():
        uri = f"sqlite:///{tmp_path / folder}/catalog.db"
        table = ice.load_catalog("c", uri=uri).load_table("db.t")
        expected = WHEN.get(point, BEFORE)
        assert ids(table) == expected, point
        assert len(table.snapshots()) == 1 + (expected == AFTER), point
        table.append(table.scan(row_filter="id = 1").to_arrow())
        assert ids(table) == sorted([1, *expected]), point
