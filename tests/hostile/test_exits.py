"""A program that ends while another thread is inside a call of ours that calls Python ends without a crash."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("exiting_programs.py")


@pytest.mark.parametrize("what", ["append", "commit", "write"])
def test_programs_end_in_the_middle_of_a_call(tmp_path, what):
    run = subprocess.run(
        [sys.executable, SCRIPT, what, tmp_path], check=False, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout == "ends\n"
    # What was written for a commit that never came is gone.
    if what == "append":
        assert [path.name for path in tmp_path.rglob("*.parquet")] == []
