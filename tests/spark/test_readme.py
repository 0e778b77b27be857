"""What the README shows, run as a reader pastes it: its Python in a fresh folder, then its commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()
ASSERTIONS = """
assert scan.count() == 2
assert old.count() == 3
assert table.refresh().scan().count() == 3 + 2 + 3
assert table.scan("time IS NULL").count() == 0
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def run(folder: Path, *command: str) -> str:
    """Run a command in a folder; its workers start there too, so that relative locations mean the same to them."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_block_runs(tmp_path: Path) -> None:
    python, shell = blocks("python"), blocks("sh")
    assert len(python) >= 2
    assert shell
    printed = run(tmp_path, sys.executable, "-c", "\n".join([*python, ASSERTIONS]))
    assert "1 skipped" in printed

    bash = shutil.which("bash")
    assert bash is not None
    for block in shell:
        # A reader has the command on the path.
        printed = run(tmp_path, bash, "-euc", block.replace("icefield ", f"{sys.executable} -m icefield.cli "))
        for text in ("nyc", "month(time), bucket(8, carrier)", "to read", '"carrier": "UA"'):
            assert text in printed
