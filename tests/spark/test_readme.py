"""What the README shows, run as it stands: its Python from top to bottom, then its commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_every_block_runs(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The session's own folder is elsewhere, as a cluster's would be: locations of a catalog do not depend on it.
    monkeypatch.chdir(tmp_path)
    python, shell = blocks("python"), blocks("sh")
    assert len(python) >= 2
    assert shell
    names: dict[str, Any] = {}
    for block in python:
        exec(compile(block, "README.md", "exec"), names)
    assert names["scan"].count() == 2
    assert names["old"].count() == 3
    assert names["table"].refresh().scan().count() == 3 + 2 + 3

    for command in shell:
        script = command.replace("icefield ", f"{sys.executable} -m icefield.cli ")
        bash = shutil.which("bash")
        assert bash is not None
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(
            [bash, "-euc", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        for text in ("nyc", "month(time), bucket(8, carrier)", "to read", '"carrier": "UA"'):
            assert text in done.stdout
