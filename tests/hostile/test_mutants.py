"""Files of every format, damaged at random: each is read or refused with an error of ours, within 512 MiB.

``ICEFIELD_RANDOM_CASES`` damages each file more often, ``ICEFIELD_RANDOM_SEED`` in other places.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CASES = max(int(os.environ.get("ICEFIELD_RANDOM_CASES", "0")) // 20, 40)
SEED = int(os.environ.get("ICEFIELD_RANDOM_SEED", "20201121"))


@pytest.mark.skipif(sys.platform == "win32", reason="measures memory as Unix does")
def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("mutants.py")), str(tmp_path), str(CASES), str(SEED)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=300 + CASES)
    last = (tmp_path / "mutant.name").read_text() if (tmp_path / "mutant.name").exists() else "none"
    assert done.returncode == 0, f"{last} (kept in {tmp_path / 'mutant'}): {done.stderr[-3000:]}"
    answer = json.loads(done.stdout)
    assert not answer["wrong"]
    assert len(answer["outcomes"]) == 17
    # The damage is such that most of it is seen.
    assert sum(outcome["refused"] for outcome in answer["outcomes"].values()) > 4 * CASES, answer["outcomes"]
