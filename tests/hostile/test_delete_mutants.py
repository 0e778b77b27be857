"""Delete files of golden tables, damaged at random: formats with checksums never read as other rows, none crashes.

``ICEFIELD_RANDOM_CASES`` damages each file more often (5,000: 10,000 times), ``ICEFIELD_RANDOM_SEED`` in other places.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = max(int(os.environ.get("ICEFIELD_RANDOM_CASES", "0")) * 2, 4)
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))


@pytest.mark.skipif(sys.platform == "win32", reason="measures memory as Unix does")
def test_damaged_delete_files_are_read_or_refused(tmp_path: Path) -> None:
    program = Path(__file__).with_name("delete_mutants.py")
    command = [sys.executable, str(program), str(tmp_path), str(CASES), str(SEED)]
    paths = os.pathsep.join(filter(None, [str(program.parents[1]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": paths}
    timeout = 300 + 20 * CASES
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=timeout, env=environment)
    last = (tmp_path / "mutant.name").read_text() if (tmp_path / "mutant.name").exists() else "none"
    assert done.returncode == 0, f"{last} (in {tmp_path}): {done.stderr[-3000:]}"
    answer = json.loads(done.stdout)
    assert not answer["wrong"]
    assert set(answer["outcomes"]) == {"PARQUET", "ORC", "AVRO", "PUFFIN"}
    for kind, outcome in answer["outcomes"].items():
        assert outcome["refused"] > 0, kind
    assert answer["outcomes"]["PUFFIN"]["other rows"] == 0
