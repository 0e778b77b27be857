"""The summary of skipped tests, and what fails a run of CI."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"
TESTS = """
import pytest
@pytest.mark.parametrize("table", ["t-1", "t-2"])
def test_golden(table): pytest.skip("refused: deletes")
def test_lacking(): pytest.skip("the set lacks x")
def test_npm(): pytest.skip("no npm")
"""


def run(folder: Path, **extra: str) -> tuple[int, str]:
    shutil.copy(CONFTEST, folder)
    (folder / "test_some.py").write_text(TESTS)
    environment = {
        name: value for name, value in os.environ.items() if name not in ("CI", "ICEFIELD_GOLDEN", "ICEFIELD_MAY_SKIP")
    }
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    done = subprocess.run(
        command, cwd=folder, env=environment | extra, capture_output=True, text=True, timeout=300, check=False
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    ("extra", "code"),
    [({}, 0), ({"CI": "true"}, 1), ({"CI": "true", "ICEFIELD_MAY_SKIP": "no docker; no npm"}, 0)],
)
def test_an_unexpected_skip_fails_in_ci(tmp_path: Path, extra: dict[str, str], code: int) -> None:
    found, text = run(tmp_path, **extra)
    assert found == code, text
    assert "skipped (1): no npm" in text
    assert "skipped (1): the set lacks x" in text
    assert "2 refused (unsupported): t 2" in text
    assert ("unexpected skip in CI: test_some.py::test_npm: no npm" in text) == (code == 1)


@pytest.mark.parametrize(("stored", "code"), [(1, 1), (2, 0), (3, 0)])
def test_more_refusals_than_stored_fail(tmp_path: Path, stored: int, code: int) -> None:
    (tmp_path / "golden").mkdir()
    (tmp_path / "golden" / "refused.json").write_text(f'{{"python": {{"t": {stored}}}}}')
    found, text = run(tmp_path)
    assert found == code, text
    assert ("t: 2 scans refused, 1 in refused.json" in text) == (code == 1)
    assert run(tmp_path, ICEFIELD_GOLDEN="elsewhere")[0] == 0, "another set has other numbers"


def test_marks_are_refused_where_the_makefile_does_not_run_them(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = spark\n interop\n")
    (tmp_path / "catalog").mkdir()
    text = "import pytest\n@pytest.mark.{}\ndef test_one(): pass\n"
    (tmp_path / "catalog" / "test_interop.py").write_text(text.format("interop"))
    (tmp_path / "test_some.py").write_text("def test_one(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "."]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    for mark, code in (("", 0), ("spark", 4)):
        if mark:
            (tmp_path / "catalog" / "test_spark.py").write_text(text.format(mark))
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
    assert "catalog/test_spark.py::test_one: tests with the mark spark are run in ['spark'] only" in done.stderr
