"""Short documents that would become large: a typed error, soon, and within 256 MiB of memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BOMBS = Path(__file__).with_name("bombs.py")
MIB = 1 << 20


def run(folder: Path, *names: str, **environment: str) -> dict[str, Any]:
    """Read the documents in a process of its own."""
    command = [sys.executable, str(BOMBS), str(folder), *names]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_no_bomb_goes_off(tmp_path: Path) -> None:
    answers = run(tmp_path)
    assert len(answers) > 20
    wrong = {
        name: answer
        for name, answer in answers.items()
        if answer["ended"] != 0
        or answer["kind"] not in {"CorruptDataError", "UnsupportedFeatureError"}
        or answer["peak"] > 256 * MIB
        or answer["seconds"] > 1
        or answer["length"] > answer["most"]
    }
    assert not wrong
    for name, answer in answers.items():
        # These are no more than what a file of their length may hold.
        if name not in {"members", "footer", "schema of a manifest"}:
            assert "ICEFIELD_DOCUMENT_MEMORY" in answer["message"], (name, answer)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_the_limit_can_be_raised_and_lowered(tmp_path: Path) -> None:
    def message(limit: str) -> str:
        answer = run(tmp_path, "numbers of 2 MB", ICEFIELD_DOCUMENT_MEMORY=limit)["numbers of 2 MB"]
        assert answer["kind"] in {"CorruptDataError", "InvalidArgumentError"}
        return str(answer["message"])

    # Read as a whole, it is no table metadata.
    assert "are required in format version 2" in message("8GiB")
    assert "1048576 bytes of memory" in message("1MiB")
    assert "expected a number of bytes such as 4294967296 or 4GiB, got 'lots'" in message("lots").replace('"', "'")
