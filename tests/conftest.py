"""Skipped tests are summarised by reason, and refused scans counted apart; with ``CI`` set an unexpected skip fails.

``pytest`` loads this file before it starts workers, so that the summary is there with ``-n`` too.
"""

from __future__ import annotations

import gc
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

REFUSED = "refused: "
#: The folders in which the Makefile runs the tests of a mark: elsewhere nobody would run them.
FOLDERS = {"spark": {"spark"}, "interop": {"interop", "catalog"}}
#: How many scans of each table of the repository's own golden set refuse, by runner.
NUMBERS = Path(__file__).parent / "golden" / "refused.json"
#: Reasons to skip that are right everywhere.
PERMITTED = [
    r"the set lacks ",
    r"this golden set has no ",
    r"the specifications are not beside the repository",
    r"the data source and SQL are the same writer",
]
#: Reasons that are right on some machines: the rest of CI must have what the tests need.
if sys.platform == "win32":
    PERMITTED += ["forks$", "a script of bash$"]
#: More of them, separated by semicolons, for jobs that leave something out on purpose.
PERMITTED += [re.escape(own.strip()) for own in os.environ.get("ICEFIELD_MAY_SKIP", "").split(";") if own.strip()]


def reason(report: Any) -> str:
    """Return why a test was skipped."""
    return report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else str(report.longrepr)


def permitted(text: str) -> bool:
    """Say whether a test may be skipped for this reason in CI."""
    return any(re.match(pattern, text) for pattern in PERMITTED)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse marks by which a test would be left out of `make test`."""
    for mark, folders in FOLDERS.items():
        for item in items:
            if item.get_closest_marker(mark) and item.path.relative_to(Path(__file__).parent).parts[0] not in folders:
                raise pytest.UsageError(f"{item.nodeid}: tests with the mark {mark} are run in {sorted(folders)} only")


def pytest_collection_finish() -> None:
    """Keep the collected tests out of the garbage collector: `gc.collect()` would walk all of them."""
    gc.collect()
    gc.freeze()


def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    if report.skipped and reason(report).startswith(REFUSED):
        return "refused", "r", "REFUSED"
    return None


def refused(terminalreporter: Any) -> Counter[str]:
    """Count the refused scans of each table."""
    reports = terminalreporter.stats.get("refused", [])
    return Counter(report.nodeid.partition("[")[2].rstrip("]").partition("-")[0] for report in reports)


def unexpected(terminalreporter: Any) -> list[str]:
    """List what fails a run that nothing else failed: skips without permission in CI, and more refusals than stored."""
    found = []
    if os.environ.get("CI"):
        skips = terminalreporter.stats.get("skipped", [])
        found = [f"{report.nodeid}: {reason(report)}" for report in skips if not permitted(reason(report))]
        found = [f"unexpected skip in CI: {line}" for line in found]
    if "ICEFIELD_GOLDEN" not in os.environ and NUMBERS.exists():
        stored = json.loads(NUMBERS.read_text())["python"]
        for table, count in sorted(refused(terminalreporter).items()):
            if count > stored.get(table, 0):
                found.append(f"{table}: {count} scans refused, {stored.get(table, 0)} in {NUMBERS.name}")
    return found


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.exitstatus == pytest.ExitCode.OK and reporter is not None and unexpected(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say why tests were skipped, and which tables refused how often."""
    reasons = Counter(reason(report) for report in terminalreporter.stats.get("skipped", []))
    for text, count in reasons.most_common():
        terminalreporter.write_line(f"skipped ({count}): {text}")
    tables = refused(terminalreporter)
    if tables:
        listed = ", ".join(f"{table} {count}" for table, count in sorted(tables.items()))
        terminalreporter.write_line(f"{sum(tables.values())} refused (unsupported): {listed}")
    for line in unexpected(terminalreporter):
        terminalreporter.write_line(line, red=True)
