"""What the README and the guides to Spark show, run as a reader pastes it: Python in a fresh folder, then commands."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import functions

ROOT = Path(__file__).parents[2]
ASSERTIONS = """
assert table.scan("distance = 1401").count() == 2
counts = df.count(), then.count(), old.count(), added.count()
assert counts == (2, 3, 3, 2 + 3), counts
assert table.refresh().scan().count() == 3 + 2 + 3
assert table.scan("day IS NULL").count() == 0
"""
#: What the guides build on beside the table of the README, and that they worked.
BEFORE_GUIDES = """
import icefield, icefield.spark
table = table.refresh()
last, ms = table.current_snapshot().snapshot_id, table.snapshots()[0].timestamp_ms
path, batches = "checkpoint", []
fn = lambda frame, number: batches.append(frame.count())
table.manage_snapshots().create_tag(first, "audited").commit()
"""
AFTER_GUIDES = """
assert explained.files.num_rows == sum(explained.counts.values()) > 0
[query] = spark.streams.active or [None]
if query is not None:
    assert query.awaitTermination(600)
assert sum(batches) == 3 + 2 + 3, batches
spark.stop()
"""


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return [block for block in found if ">>> " not in block]  # those are run by tests/unit/test_docs.py


SQL = blocks("docs/spark-sql.md", "python")


#: What a reader's session has by default are 200 tasks for a few rows, which took most of the time.
DEFAULTS = """
spark.sql.shuffle.partitions 2
spark.ui.enabled false
spark.ui.showConsoleProgress false
"""


def run(folder: Path, *command: str) -> str:
    """Run a command in a folder; its workers start there too, so that relative locations mean the same to them."""
    settings = folder.with_name(f"{folder.name}-conf")
    settings.mkdir(exist_ok=True)
    (settings / "spark-defaults.conf").write_text(DEFAULTS)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    environment["SPARK_CONF_DIR"] = str(settings)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_block_runs(tmp_path: Path) -> None:
    first, *others = blocks("docs/spark.md", "python")
    python = [*blocks("README.md", "python"), first]
    if hasattr(functions, "arrow_udf"):  # what is about it is in a block of another name
        others += blocks("docs/spark.md", "py")
    guides = [BEFORE_GUIDES, *blocks("docs/reading.md", "python"), *others, *SQL, AFTER_GUIDES]
    install, *shell = blocks("README.md", "sh")
    assert (len(python), len(guides) > 5, install) == (3, True, "pip install icefield\n")
    assert shell
    printed = run(tmp_path, sys.executable, "-c", "\n".join([*python, ASSERTIONS, *guides]))
    assert "1 skipped" in printed

    bash = shutil.which("bash")
    assert bash is not None
    for block in shell:
        # A reader has the command on the path.
        printed = run(tmp_path, bash, "-euc", block.replace("icefield ", f"{sys.executable} -m icefield.cli "))
        for text in ("overwrite", "main", "2013-02-05", "2475"):
            assert text in printed
