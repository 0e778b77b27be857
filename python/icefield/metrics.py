"""Reports about scans and commits, and what takes them.

A report is a dict of the REST protocol (``ReportMetricsRequest``), with the metrics of the Java library under the same
names. The catalog property ``metrics-reporter-impl`` names what takes them: a function, a class, an entry point in the
group ``icefield.metrics_reporters``, or one of Java's two reporters.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from icefield._core import __version__
from icefield.errors import InvalidArgumentError, NotInstalledError, UnsupportedFeatureError
from icefield.scan.options import expression_of

if TYPE_CHECKING:
    from icefield.metadata import TableMetadata
    from icefield.scan import DataScan

__all__ = ["InMemoryMetricsReporter", "LoggingMetricsReporter", "MetricsReporter", "Report", "Reporter"]

#: A report as JSON.
Report: TypeAlias = Mapping[str, Any]

#: The group of entry points.
GROUP = "icefield.metrics_reporters"

_PROPERTY = "metrics-reporter-impl"
_LOGGER = logging.getLogger("icefield")
#: What Java calls the metrics of a scan that have other names here.
_OTHER_NAMES = {"deletion_vectors": "dvs"}
#: What Java calls the metrics of a commit, by the entries of a summary.
_OF_SUMMARY = {
    "added-data-files": "added-data-files",
    "deleted-data-files": "removed-data-files",
    "total-data-files": "total-data-files",
    "added-delete-files": "added-delete-files",
    "added-equality-delete-files": "added-equality-delete-files",
    "added-position-delete-files": "added-positional-delete-files",
    "added-dvs": "added-dvs",
    "removed-position-delete-files": "removed-positional-delete-files",
    "removed-dvs": "removed-dvs",
    "removed-equality-delete-files": "removed-equality-delete-files",
    "removed-delete-files": "removed-delete-files",
    "total-delete-files": "total-delete-files",
    "added-records": "added-records",
    "deleted-records": "removed-records",
    "total-records": "total-records",
    "added-files-size": "added-files-size-bytes",
    "removed-files-size": "removed-files-size-bytes",
    "total-files-size": "total-files-size-bytes",
    "added-position-deletes": "added-positional-deletes",
    "removed-position-deletes": "removed-positional-deletes",
    "total-position-deletes": "total-positional-deletes",
    "added-equality-deletes": "added-equality-deletes",
    "removed-equality-deletes": "removed-equality-deletes",
    "total-equality-deletes": "total-equality-deletes",
    "manifests-kept": "manifests-kept",
    "manifests-created": "manifests-created",
    "manifests-replaced": "manifests-replaced",
    "entries-processed": "manifest-entries-processed",
}


class MetricsReporter(ABC):
    """Takes reports; a class of your own may derive from it, or have its methods, or be a plain function."""

    def initialize(self, properties: Mapping[str, str]) -> None:  # noqa: B027 - most need none
        """Take the properties of the catalog, before the first report."""

    @abstractmethod
    def report(self, report: Report) -> None:
        """Take a report, in the thread that planned or committed; what this raises is logged, and changes nothing."""


#: What takes reports.
Reporter: TypeAlias = MetricsReporter | Callable[[Report], object]


class LoggingMetricsReporter(MetricsReporter):
    """Logs reports as JSON, by the logger ``icefield`` at the level INFO."""

    def report(self, report: Report) -> None:
        """Log a report."""
        if _LOGGER.isEnabledFor(logging.INFO):
            _LOGGER.info("%s", json.dumps(report, ensure_ascii=False))


class InMemoryMetricsReporter(MetricsReporter):
    """Keeps all reports, for tests.

    Examples
    --------
    >>> from icefield.metrics import InMemoryMetricsReporter
    >>> reporter = InMemoryMetricsReporter()
    >>> reporter.scan_report() is None
    True

    """

    def __init__(self) -> None:
        #: The reports, the oldest first.
        self.reports: list[Report] = []

    def report(self, report: Report) -> None:
        """Keep a report."""
        self.reports.append(report)

    def scan_report(self) -> Report | None:
        """Return the last report about a scan; None without one."""
        return self._last("scan-report")

    def commit_report(self) -> Report | None:
        """Return the last report about a commit; None without one."""
        return self._last("commit-report")

    def _last(self, kind: str) -> Report | None:
        return next((one for one in reversed(self.reports) if one["report-type"] == kind), None)


_OF_JAVA: dict[str, type[MetricsReporter]] = {
    "org.apache.iceberg.metrics.InMemoryMetricsReporter": InMemoryMetricsReporter,
    "org.apache.iceberg.metrics.LoggingMetricsReporter": LoggingMetricsReporter,
}


def reporter_of(properties: Mapping[str, str]) -> Reporter | None:
    """Return what the properties of a catalog name to take reports; None if they name nothing.

    Raises
    ------
    InvalidArgumentError
        If that is no function and no reporter.
    NotInstalledError
        If its module is not installed.
    UnsupportedFeatureError
        If it is a class of Java without a counterpart here.

    """
    name = properties.get(_PROPERTY)
    if not name:
        return None
    what = f"the property {_PROPERTY}={name!r}"
    found = _named(name, what)
    try:
        made = found() if isinstance(found, type) else found
    except TypeError as error:
        raise InvalidArgumentError(f"{what}: {error}") from error
    takes_reports(made, what)
    if callable(initialize := getattr(made, "initialize", None)):
        initialize(properties)
    reporter: Reporter = made  # type: ignore[assignment]
    return reporter


def takes_reports(found: object, what: str) -> Callable[[Report], object]:
    """Return the function of a reporter.

    Raises
    ------
    InvalidArgumentError
        If it has none.

    """
    report: Callable[[Report], object] | None = getattr(found, "report", None)
    if callable(report):
        return report
    if not callable(found):
        raise InvalidArgumentError(
            f"{what}: {found!r} is neither callable nor has a method report, as icefield.metrics.MetricsReporter"
        )
    return found


def _named(name: str, what: str) -> object:
    if own := _OF_JAVA.get(name):
        return own
    if name.startswith("org.apache.iceberg."):
        raise UnsupportedFeatureError(f"{what} is a Java class: name one of Python")
    module, _, attribute = name.replace(":", ".").rpartition(".")
    if not module:
        # It takes long to import.
        from importlib.metadata import entry_points

        installed = {entry.name: entry for entry in entry_points(group=GROUP)}
        if name in installed:
            return installed[name].load()
        raise InvalidArgumentError(
            f"{what}: expected the full name of a function or class, such as package.module.function, or an entry "
            f"point in the group {GROUP}"
        )
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{what}: {error}") from error
    except AttributeError as error:
        raise InvalidArgumentError(f"{what}: {error}") from error


def scan_report(name: str, scan: DataScan, counts: Mapping[str, int], nanoseconds: int) -> Report | None:
    """Return the report of a planned scan; None of a table without a snapshot, which has nothing to plan."""
    snapshot = scan.snapshot()
    if snapshot is None:
        return None
    projected = scan.projection()
    filtered = True if scan.row_filter is None else json.loads(expression_of(scan.row_filter).to_json())
    metrics = {
        _OTHER_NAMES.get(key, key).replace("_", "-"): _counter(value, "bytes" if "_bytes" in key else "count")
        for key, value in counts.items()
    }
    metrics["total-planning-duration"] = _timer(nanoseconds)
    return {
        "report-type": "scan-report",
        "table-name": name,
        "snapshot-id": snapshot.snapshot_id,
        "filter": _without_values(filtered),
        "schema-id": projected.schema_id,
        "projected-field-ids": [field.field_id for field in projected.fields],
        "projected-field-names": [field.name for field in projected.fields],
        "metrics": metrics,
        "metadata": _made_by(),
    }


def _without_values(found: Any) -> Any:
    """Return a filter with the types of its values in place of them: they may be confidential."""
    if not isinstance(found, dict):
        return found
    made: dict[str, object] = {}
    for key, value in found.items():
        if key == "value":
            made[key] = _hidden(value)
        elif key == "values":
            made[key] = [_hidden(one) for one in value]
        else:
            made[key] = _without_values(value) if key in ("left", "right", "child") else value
    return made


def _hidden(value: object) -> str:
    kinds = {bool: "boolean", int: "int", float: "float", str: "string"}
    return f"({kinds.get(type(value), 'value')})"


def commit_report(
    name: str, metadata: TableMetadata, snapshot_id: int, attempts: int, nanoseconds: int
) -> Report | None:
    """Return the report of a committed snapshot; None if the table does not have it any more."""
    snapshot = metadata.snapshot_by_id(snapshot_id)
    if snapshot is None or snapshot.summary is None:
        return None
    summary = {str(key): str(value) for key, value in dict(snapshot.summary).items()}
    metrics = {
        named: _counter(int(summary[key]), "bytes" if named.endswith("-bytes") else "count")
        for key, named in _OF_SUMMARY.items()
        if summary.get(key, "").isascii() and summary.get(key, "").isdigit()
    }
    metrics["total-duration"] = _timer(nanoseconds)
    metrics["attempts"] = _counter(attempts, "count")
    return {
        "report-type": "commit-report",
        "table-name": name,
        "snapshot-id": snapshot.snapshot_id,
        "sequence-number": snapshot.sequence_number or 0,
        "operation": summary.get("operation", ""),
        "metrics": metrics,
        "metadata": _made_by(),
    }


def _made_by() -> dict[str, str]:
    return {"iceberg-version": f"icefield {__version__}"}


def _counter(value: int, unit: str) -> dict[str, object]:
    return {"unit": unit, "value": value}


def _timer(nanoseconds: int) -> dict[str, object]:
    return {"count": 1, "time-unit": "nanoseconds", "total-duration": nanoseconds}
