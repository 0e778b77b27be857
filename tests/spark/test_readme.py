"""What the README shows, run as a reader pastes it: its Python in a fresh folder, then its commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ASSERTIONS = """
assert table.scan("distance = 1401").count() == 2
counts = df.count(), then.count(), old.count(), added.count()
assert counts == (2, 3, 3, 2 + 3), counts
assert table.refresh().scan().count() == 3 + 2 + 3
assert table.scan("day IS NULL").count() == 0
"""


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def run(folder: Path, *command: str) -> str:
    """Run a command in a folder; its workers start there too, so that relative locations mean the same to them."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_block_runs(tmp_path: Path) -> None:
    python = [*blocks("README.md", "python"), blocks("docs/spark.md", "python")[0]]
    install, *shell = blocks("README.md", "sh")
    assert (len(python), install) == (3, "pip install icefield\n")
    assert shell
    printed = run(tmp_path, sys.executable, "-c", "\n".join([*python, ASSERTIONS]))
    assert "1 skipped" in printed

    bash = shutil.which("bash")
    assert bash is not None
    for block in shell:
        # A reader has the command on the path.
        printed = run(tmp_path, bash, "-euc", block.replace("icefield ", f"{sys.executable} -m icefield.cli "))
        for text in ("overwrite", "main", "2013-02-05", "2475"):
            assert text in printed
