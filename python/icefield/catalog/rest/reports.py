"""Reports about scans and commits, as the protocol has them, sent in the background."""

from __future__ import annotations

import json
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from icefield._core import __version__
from icefield.errors import InvalidArgumentError, NotInstalledError
from icefield.scan.options import expression_of

if TYPE_CHECKING:
    from icefield.metadata import TableMetadata
    from icefield.scan import DataScan

__all__ = ["Report", "Reports", "commit_report", "log_report", "reporter_named", "scan_report"]

#: A report in JSON, and what takes one.
Report: TypeAlias = Mapping[str, Any]
Reporter: TypeAlias = Callable[[Report], object]

#: Reports that wait to be sent; more are left out.
_WAITING = 100
#: How long the end of a catalog waits for its reports, in seconds.
_PATIENCE = 2.0
#: How long the thread waits for another report, in seconds.
_IDLE = 30.0
_NANOS = "nanoseconds"
_LOGGER = logging.getLogger("icefield")
#: What Java calls the metrics of a scan that have other names here.
_OTHER_NAMES = {"deletion_vectors": "dvs"}
#: Of icefield alone.
_OWN = ("cached_manifests", "manifest_bytes_read")
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


def log_report(report: Report) -> None:
    """Log a report; ``metrics-reporter-impl=icefield.catalog.rest.log_report`` does so."""
    _LOGGER.info("%s", json.dumps(report, ensure_ascii=False))


def reporter_named(name: str) -> Reporter:
    """Return what ``metrics-reporter-impl`` names: a function of a report, or a class without arguments that makes one.

    Raises
    ------
    InvalidArgumentError
        If that is no callable of Python.
    NotInstalledError
        If its module is not installed.

    """
    what = f"the property metrics-reporter-impl={name!r}"
    module, _, attribute = name.rpartition(".")
    if not module:
        raise InvalidArgumentError(f"{what}: expected the full name of a function, such as 'package.module.function'")
    try:
        found = getattr(import_module(module), attribute)
        made = found() if isinstance(found, type) else found
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{what}: {error}") from error
    except (AttributeError, TypeError) as error:
        raise InvalidArgumentError(f"{what}: {error}") from error
    if not callable(made):
        raise InvalidArgumentError(f"{what}: {made!r} is not callable")
    reporter: Reporter = made
    return reporter


def scan_report(name: str, scan: DataScan, counts: Mapping[str, int], nanoseconds: int) -> Report | None:
    """Return the report of a planned scan; None of a table without a snapshot, which has nothing to plan."""
    snapshot = scan.snapshot()
    if snapshot is None:
        return None
    projected = scan.projection()
    filtered = True if scan.row_filter is None else json.loads(expression_of(scan.row_filter).to_json())
    metrics = {
        _OTHER_NAMES.get(key, key).replace("_", "-"): _counter(value, "bytes" if key.endswith("_bytes") else "count")
        for key, value in counts.items()
        if key not in _OWN
    }
    metrics["total-planning-duration"] = _timer(nanoseconds)
    return {
        "report-type": "scan-report",
        "table-name": name,
        "snapshot-id": snapshot.snapshot_id,
        "filter": without_values(filtered),
        "schema-id": projected.schema_id,
        "projected-field-ids": [field.field_id for field in projected.fields],
        "projected-field-names": [field.name for field in projected.fields],
        "metrics": metrics,
        "metadata": _made_by(),
    }


def without_values(found: Any) -> Any:
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
            made[key] = without_values(value) if key in ("left", "right", "child") else value
    return made


def _hidden(value: object) -> str:
    kinds = {bool: "boolean", int: "int", float: "float", str: "string"}
    return f"({kinds.get(type(value), 'value')})"


def commit_report(
    name: str, metadata: TableMetadata, updates: Iterable[Mapping[str, Any]], attempts: int, nanoseconds: int
) -> Report | None:
    """Return the report of a commit; None of one without a new snapshot."""
    added = [update["snapshot"] for update in updates if update.get("action") == "add-snapshot"]
    if not added:
        return None
    snapshot = metadata.snapshot_by_id(int(added[-1]["snapshot-id"]))
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
    return {"count": 1, "time-unit": _NANOS, "total-duration": nanoseconds}


class Reports:
    """Sends reports from a thread of its own, so that no scan and no commit waits for them or fails by them."""

    def __init__(self, send: Callable[[tuple[str, ...], Report], object]) -> None:
        self._send = send
        self._starting = threading.Lock()
        self._waiting: queue.Queue[tuple[tuple[str, ...], Report]] = queue.Queue(_WAITING)
        #: The process of the thread: a child has none.
        self._process: int | None = None

    def add(self, table: tuple[str, ...], report: Report) -> None:
        """Send a report soon."""
        with self._starting:
            if self._process != os.getpid():
                self._process, self._waiting = os.getpid(), queue.Queue(_WAITING)
                threading.Thread(target=self._work, args=(self._waiting,), daemon=True).start()
            try:
                self._waiting.put_nowait((table, report))
            except queue.Full:
                _LOGGER.debug("a report about %s is left out: too many wait", ".".join(table))

    def finish(self) -> None:
        """Wait a short time for the reports that are not sent yet."""
        end = time.monotonic() + _PATIENCE
        while self._process == os.getpid() and self._waiting.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.005)

    def _work(self, waiting: queue.Queue[tuple[tuple[str, ...], Report]]) -> None:
        while True:
            try:
                table, report = waiting.get(timeout=_IDLE)
            except queue.Empty:
                with self._starting:
                    # A thread for each catalog ever used would be too many; the next report starts another.
                    if waiting.empty():
                        if self._waiting is waiting:
                            self._process = None
                        return
                continue
            try:
                self._send(table, report)
            except Exception as error:  # noqa: BLE001 - a report is never worth an error
                _LOGGER.info("the report about %s was not sent: %s", ".".join(table), error)
            finally:
                waiting.task_done()
