"""The cases of a long list that ``make test`` takes, the same in each run.

These are lists of which other tests hold all (filters of golden tables are those of Rust's runner), or of which many
cases are of one kind. Nothing is left out with ``ICEFIELD_ALL_CASES``, by which ``make test-golden`` and
``make test-random`` run, and of another golden set (``ICEFIELD_GOLDEN``).
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

ALL_CASES = "ICEFIELD_ALL_CASES" in os.environ or "ICEFIELD_GOLDEN" in os.environ

T = TypeVar("T")


def sample(cases: Iterable[T], one_of: int, kind: Callable[[T], Hashable] = lambda _: None) -> list[T]:
    """Return the first of each ``one_of`` cases of a kind, so that each kind is there; or all cases."""
    if ALL_CASES:
        return list(cases)
    seen: defaultdict[Hashable, int] = defaultdict(int)
    taken = []
    for case in cases:
        number = seen[kind(case)]
        seen[kind(case)] += 1
        if number % one_of == 0:
            taken.append(case)
    return taken
