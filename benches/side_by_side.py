"""Runs peers interleaved in one process and prints one Markdown table: times, rates, ratios, and the floor.

Every bench of this folder is a question (``transforms.py``, ``append.py``, ``plan.py``, …) that builds its data, lets
each peer answer once, asserts that the answers agree, and then calls :func:`measure` for the times. Peers take turns
within a round, so that a slow minute of the machine hits all of them; the figure is the best of the rounds.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter


@dataclass(frozen=True, slots=True)
class Target:
    """Our time shall be at most ``share`` of a peer's: 1.05 allows a little more, 0.1 asks for ten times its speed."""

    peer: str
    share: float

    def verdict(self, row: Row, ours: str) -> str:
        """Say the target, and whether it is met."""
        wanted = f"at most {self.share:g} of {self.peer}"
        if self.share < 1:
            wanted = f"{1 / self.share:g} times as fast as {self.peer}"
        if self.peer not in row.seconds:
            return f"{wanted}: no answer to compare with"
        reached = row.seconds[ours] / row.seconds[self.peer]
        if reached <= self.share:
            return f"{wanted}: met"
        return f"{wanted}: **missed** ({1 / reached if self.share < 1 else reached:.2f})"


@dataclass(frozen=True, slots=True)
class Row:
    """One question and the best time of each peer in seconds; a peer that cannot answer is absent."""

    question: str
    seconds: dict[str, float]
    amount: float | None = None
    targets: Sequence[Target] = ()


def measure(
    question: str,
    peers: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 5,
    amount: float | None = None,
    targets: Sequence[Target] = (),
    warm: bool = False,
    before: Callable[[str], object] | None = None,
) -> Row:
    """Time each peer ``rounds`` times, interleaved, and keep the best.

    Parameters
    ----------
    question
        What is asked; the first column of the table.
    peers
        Name to a function without arguments; the answers were compared before.
    rounds
        Turns of each peer.
    amount
        How many things (values, rows) one call handles, for rates.
    targets
        What the times are held to.
    warm
        Each turn has a call before the one that is timed, so that caches and the allocator hold what the peer itself
        left there, and not what the one before it did: for questions of milliseconds.
    before
        Called with the name of a peer before each of its turns; its time does not count.

    """
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, run in peers.items():
            if before is not None:
                before(name)
            gc.collect()
            if warm:
                run()
            started = perf_counter()
            run()
            elapsed = perf_counter() - started
            best[name] = min(best.get(name, elapsed), elapsed)
    return Row(question, best, amount, targets)


def report(
    title: str, rows: Sequence[Row], *, ours: str = "icefield", floor: str | None = None, unit: str = ""
) -> None:
    """Print the table; ratios are peer's time over ours (above 1: we are faster), the floor's ours over its time.

    Parameters
    ----------
    title
        Heading.
    rows
        What :func:`measure` gave.
    ours
        The peer that the ratios are about.
    floor
        The name among the peers that no one can beat (a copy, the decompression alone, …).
    unit
        With amounts: the unit of the rates, in millions a second (``"values"``).

    """
    names = _in_order(name for row in rows for name in row.seconds)
    others = [name for name in names if name not in (ours, floor)]
    heads = [title, *(f"{name} {'M ' + unit + '/s' if unit else 's'}" for name in names)]
    heads += [f"faster than {name}" for name in others] + ([f"times the floor ({floor})"] if floor else [])
    judged = any(row.targets for row in rows)
    heads += ["target"] if judged else []
    print("| " + " | ".join(heads) + " |")
    print("| --- |" + " ---: |" * (len(heads) - 1 - judged) + " --- |" * judged)
    for row in rows:
        cells = [row.question, *(_figure(row, name, unit) for name in names)]
        cells += [_ratio(row.seconds.get(name), row.seconds.get(ours)) for name in others]
        cells += [_ratio(row.seconds.get(ours), row.seconds.get(floor))] if floor else []
        cells += ["; ".join(target.verdict(row, ours) for target in row.targets) or "–"] if judged else []
        print("| " + " | ".join(cells) + " |", flush=True)


def _in_order(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _figure(row: Row, name: str, unit: str) -> str:
    seconds = row.seconds.get(name)
    if seconds is None:
        return "–"
    if unit and row.amount is not None:
        return f"{row.amount / seconds / 1e6:,.0f}"
    return f"{seconds:.3f}"


def _ratio(upper: float | None, lower: float | None) -> str:
    return "–" if upper is None or lower is None else f"{upper / lower:.2f}"
