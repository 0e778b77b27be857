"""The extras of `pyproject.toml`: one names all others, and errors name those that exist."""

from __future__ import annotations

import re
from pathlib import Path

from icefield._optional import _EXTRAS

ROOT = Path(__file__).parents[2]
SECTION = (ROOT / "pyproject.toml").read_text().split("[project.optional-dependencies]\n")[1].split("\n[")[0]
EXTRAS = re.findall(r"^([\w-]+) = \[", SECTION, re.MULTILINE)


def test_all_names_every_other_extra() -> None:
    listed = re.search(r'^all = \["icefield\[(.+)\]"\]$', SECTION, re.MULTILINE)
    assert listed is not None
    assert sorted([*listed[1].split(","), "all"]) == sorted(EXTRAS)


def test_errors_name_extras_that_exist() -> None:
    assert set(_EXTRAS.values()) <= set(EXTRAS) - {"all"}
