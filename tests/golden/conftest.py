"""Scans that are not built yet are counted apart from parts that a set lacks."""

from __future__ import annotations

from collections import Counter
from typing import Any


def reason(report: Any) -> str:
    """Give why a test was skipped."""
    return report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""


def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    if report.skipped and reason(report).startswith("refused: "):
        return "refused", "r", "REFUSED"
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which tables refused, and how often."""
    refused = terminalreporter.stats.get("refused", [])
    tables = Counter(report.nodeid.partition("[")[2].rstrip("]").partition("-")[0] for report in refused)
    if refused:
        listed = ", ".join(f"{table} {count}" for table, count in sorted(tables.items()))
        terminalreporter.write_line(f"{len(refused)} refused (unsupported): {listed}")
