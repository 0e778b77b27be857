"""Tables of as many delete files as data files: their plans and tasks do not take the product of both."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).with_name("many_deletes.py")
MIB = 1 << 20


def planned(kind: str, count: int) -> dict[str, Any]:
    """Plan a table in a process of its own."""
    command = [sys.executable, str(SCRIPT), kind, str(count)]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return answer


@pytest.mark.parametrize(
    ("kind", "count", "most"),
    [
        ("partition", 10_000, 500),
        ("everywhere", 2_500, 350),
        ("partitions", 2_500, 350),
        ("positions", 2_500, 350),
        ("bounds", 2_500, 400),
    ],
)
def test_as_many_deletes_as_files_are_planned_in_little_memory(kind: str, count: int, most: int) -> None:
    answer = planned(kind, count)
    assert answer["files"] == answer["in tasks"] == count
    assert answer["links"] == answer["in columns"] == answer["streamed"]
    # Half of the deletes are newer than half of the files.
    among = count * count // (20 if kind == "partitions" else 1)
    assert among * (0.25 if kind == "bounds" else 0.4) < answer["links"] < among * 0.6
    assert answer["peak"] < most * MIB, answer
    # Each delete file once.
    assert answer["packed"] < count * 60, answer
