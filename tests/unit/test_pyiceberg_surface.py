"""The public names of PyIceberg and ours, compared by introspection: each difference is a decision, written down."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"

COMPARE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from make_migration import DELIBERATE, MISSING, PAGE, by_pattern, page
found, unknown = by_pattern()
unused = [pattern for pattern in (*DELIBERATE, *MISSING) if pattern not in found]
print(json.dumps([unknown, unused, PAGE.read_text(encoding="utf-8") == page() if not unknown else True]))
"""


def test_each_difference_from_pyiceberg_has_a_reason() -> None:
    # In a process of its own: nothing else that is imported can change what is seen.
    done = subprocess.run([sys.executable, "-c", COMPARE, str(DOCS)], capture_output=True, text=True, check=True)
    unknown, unused, up_to_date = json.loads(done.stdout)
    assert unknown == [], "say why in docs/pyiceberg_differences.py, then make docs"
    assert unused == [], "of these nothing is other any more"
    assert up_to_date, "docs/migration.md is not up to date: make docs"


class Color(Enum):
    RED = "red"


def wanted(a: int, b: str = "x", *, c: None = None) -> None: ...


def renamed(a: int, other: str = "x", *, c: None = None) -> None: ...


def swapped(b: str = "x", a: int = 0, *, c: None = None) -> None: ...


def defaulted(a: int, b: str = "y", *, c: None = None) -> None: ...


def longer(a: int, b: str = "x", more: int = 0, *, c: None = None, d: int = 1) -> None: ...


def needing(a: int, b: str = "x", *, c: None = None, d: int) -> None: ...


def without(a: int, b: str = "x") -> None: ...


class Wanted:
    def method(self) -> None: ...

    @property
    def value(self) -> int:
        return 1


Wanted.__module__ = "pyiceberg.example"


class Turned:
    @property
    def method(self) -> int:
        return 1

    def value(self) -> int:
        return 1


class Empty: ...


@pytest.mark.parametrize(
    ("ours", "what"),
    [
        (wanted, []),
        (longer, []),
        (renamed, ["no parameter b"]),
        (swapped, ["a is not the 1. argument"]),
        (defaulted, ["b is 'y' by default, not 'x'"]),
        (needing, ["d is needed"]),
        (without, ["no parameter c"]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_differences_of_signatures_are_seen(
    ours: Callable[..., None], what: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import pyiceberg_surface

    assert [problem for _, problem in pyiceberg_surface._of_thing("f", wanted, ours)] == what


@pytest.mark.parametrize(
    ("ours", "what"),
    [
        (Wanted, {}),
        (Turned, {"C.method": "not a method", "C.value": "a method"}),
        (Empty, {"C.method": "missing", "C.value": "missing"}),
        (wanted, {"C": "not a class"}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_differences_of_classes_are_seen(ours: object, what: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import pyiceberg_surface

    assert dict(pyiceberg_surface._of_thing("C", Wanted, ours)) == what


def test_an_enum_and_its_text_are_the_same_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS))
    import pyiceberg_surface

    same = pyiceberg_surface._same_default
    assert (same(Color.RED, "red"), same(Color.RED, "blue"), same({}, None), same(1, None)) == (
        True,
        False,
        True,
        False,
    )
