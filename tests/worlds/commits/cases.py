"""The cases of ``golden/commits``: sequences of operations on virtual files, and what the Java library made of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from worlds.golden import GOLDEN, ROOT

Json = dict[str, Any]

#: Where the cases lie: in the set that ``ICEFIELD_GOLDEN`` names, else in ours.
FOLDER = GOLDEN / "commits"
OURS = ROOT / "tests/data/golden/commits"


def cases(folder: Path = FOLDER) -> list[Json]:
    """List all cases of a folder."""
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl.gz")) for line in gzip.open(path, "rt")]


def operations(case: Json) -> Iterator[Json]:
    """List every operation of a case, those within transactions too."""
    for operation in [*case["steps"], *case.get("race", []), case["operation"]]:
        yield operation
        yield from operation.get("ops", [])
