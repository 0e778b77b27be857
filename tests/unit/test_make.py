"""`make test-golden` sums what its runners count, whatever they leave out."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize(
    ("rust", "python", "code", "summary"),
    [
        ("ok. 5 passed; 0 failed", "3 passed", 0, "8 passed, 0 failed, 0 skipped, 0 refused (unsupported)"),
        ("ok. 5 passed; 0 failed; 2 ignored", "1 skipped", 0, "5 passed, 0 failed, 3 skipped, 0 refused (unsupported)"),
        ("ok. 5 passed\n2 of the passed refused", "1 passed, 4 refused\n4 refused (unsupported): t 4", 0,
         "4 passed, 0 failed, 0 skipped, 6 refused (unsupported)"),
        ("FAILED. 4 passed; 1 failed", "3 passed", 2, "7 passed, 1 failed, 0 skipped, 0 refused (unsupported)"),
    ],
)  # fmt: skip
def test_the_summary_of_the_golden_runners(tmp_path: Path, rust: str, python: str, code: int, summary: str) -> None:
    if shutil.which("make") is None:
        pytest.skip("no make")
    (tmp_path / "rust").write_text(f"{rust}\n")
    (tmp_path / "python").write_text(f"{python}\n")
    for name, answer in (("cargo", "rust"), ("pytest", "python")):
        runner = tmp_path / name
        runner.write_text(f"#!/bin/sh\ncat {tmp_path}/{answer}; ! grep -q FAILED {tmp_path}/{answer}\n")
        runner.chmod(0o755)
    # All that the target wants is there.
    for name in ("environment", "extension", "java"):
        (tmp_path / name).touch()
    stamps = f"STAMPS={tmp_path}"
    command = [
        "make",
        "--no-print-directory",
        "test-golden",
        stamps,
        f"PYTEST={tmp_path}/pytest",
    ]
    # The suite may be run by make itself, whose flags are not for this one.
    outer = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL"}
    environment = {name: value for name, value in os.environ.items() if name not in outer}
    environment["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, summary), done.stderr
