"""A panic, wherever it happens on the Rust side, is an exception that ``except Exception`` catches; the table stays."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import icefield as ice
from icefield.errors import InternalError


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_panic_is_an_exception_of_ours(tmp_path):
    script = Path(__file__).with_name("panicking_entries.py")
    run = subprocess.run([sys.executable, script, tmp_path], check=False, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    met = json.loads(run.stdout.splitlines()[-1])
    if not met["load"]:
        pytest.skip("this build has no hook to panic at a step of the storage: it is not one for development")
    assert {way for way, words in met.items() if not words} == set()
    for way, words in met.items():
        for step, said in enumerate(words):
            assert said.startswith(("InternalError: ", "CorruptDataError: ", "ArrowInvalid: ")), (way, step, said)
    # Each way reads the metadata first, on the caller's own thread.
    assert {words[0] for way, words in met.items() if way != "create"} == {
        "InternalError: this is a defect of icefield, please report it: fault at step 0"
    }
    table = ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/catalog.db").load_table("db.t")
    # The appends and the new columns of the processes that met no panic, and nothing of the others.
    assert len(table.snapshots()) == 3
    assert [field.name for field in table.schema().fields] == ["id", "place", "more"]
    assert table.scan().count() == table.scan().to_arrow().num_rows == 12


def test_a_defect_is_one_of_our_exceptions():
    assert issubclass(InternalError, ice.errors.IcefieldError)
