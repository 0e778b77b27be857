"""The workflows: what runs is pinned, and a tag publishes what was tested and nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github"
FILES = sorted([*FOLDER.glob("workflows/*.yml"), *FOLDER.glob("actions/*/action.yml")])
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FOLDER.glob("workflows/*.yml")}
JOBS: dict[str, dict[str, Any]] = WORKFLOWS["wheels"]["jobs"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_actions_of_others_are_pinned_to_commits(path: Path) -> None:
    used = re.findall(r"uses: (.+)", path.read_text(encoding="utf-8"))
    loose = [
        name for name in used if not name.startswith("./") and not re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", name)
    ]
    assert loose == []
    assert [name for name in used if name.startswith("./") and not (ROOT / name).exists()] == []


@pytest.mark.parametrize("name", list(WORKFLOWS))
def test_jobs_end_and_may_read_only(name: str) -> None:
    workflow = WORKFLOWS[name]
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    assert [job for job, what in jobs.items() if "uses" not in what and "timeout-minutes" not in what] == []
    assert {job for job, what in jobs.items() if "permissions" in what} <= {"release"}


def test_the_toolchain_is_the_oldest_that_is_allowed() -> None:
    oldest = re.search(r'^rust-version = "(.+)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert oldest is not None
    found = set()
    for path in FILES:
        found |= set(re.findall(r'(?:RUSTUP_TOOLCHAIN|rust-toolchain): "(.+)"', path.read_text(encoding="utf-8")))
    assert found == {f"{oldest[1]}.0"}


def test_a_tag_publishes_what_was_tested() -> None:
    release = JOBS["release"]
    assert release["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert set(release["needs"]) == {"test", "try", "sdist"}
    assert JOBS["test"]["uses"] == "./.github/workflows/test.yml"
    assert "workflow_call" in WORKFLOWS["test"][True]  # YAML takes "on" for a truth value
    assert JOBS["try"]["needs"] == "wheel"
    # Nothing is made between the trial and the release: what is published are the files that were tried.
    assert not any("maturin" in str(step) for step in [*JOBS["try"]["steps"], *release["steps"]])
    tried = [step for step in JOBS["try"]["steps"] if ".ci/test_wheel.py dist" in step.get("run", "")]
    assert len(tried) == 2
    assert any(".ci/test_wheel.py" in step.get("run", "") for step in JOBS["sdist"]["steps"])


def test_each_wheel_is_tried_on_its_platform() -> None:
    built = {wheel["name"] for wheel in JOBS["wheel"]["strategy"]["matrix"]["include"]}
    matrix = JOBS["try"]["strategy"]["matrix"]
    assert set(matrix["name"]) == built
    assert all(f'"{name}": ' in JOBS["try"]["runs-on"] for name in built)
    versions = {*matrix["python"], *(more["python"] for more in matrix["include"])}
    classified = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert versions == set(classified)


def test_wheels_have_the_licences_of_what_is_compiled_in() -> None:
    for job in ("wheel", "sdist"):
        steps = [str(step) for step in JOBS[job]["steps"]]
        licences = next(place for place, step in enumerate(steps) if "third_party_licences.py" in step)
        made = next(place for place, step in enumerate(steps) if "maturin-action" in step)
        assert licences < made
