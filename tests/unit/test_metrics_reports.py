"""Reports about scans and commits of every kind of catalog: what they say, who takes them, what cannot fail by them."""

from __future__ import annotations

import logging
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.metrics import InMemoryMetricsReporter, LoggingMetricsReporter, MetricsReporter
from worlds.servers.rest import served

ROWS = pa.table({"id": [1, 2, 3], "region": ["eu", "us", "us"]})
MEMORY = "org.apache.iceberg.metrics.InMemoryMetricsReporter"
KINDS = ["in-memory", "sql", "hadoop", "rest"]


@contextmanager
def opened(kind: str, folder: Path, **properties: str) -> Iterator[ice.Catalog]:
    if kind == "rest":
        with served(folder) as server, ice.load_catalog("c", uri=server.uri, **properties) as catalog:
            catalog.create_namespace("n")
            yield catalog
        return
    own = {"uri": f"sqlite:///{folder}/catalog.db"} if kind == "sql" else {}
    with ice.load_catalog("c", type=kind, warehouse=str(folder), **own, **properties) as catalog:
        catalog.create_namespace("n")
        yield catalog


def kept(catalog: ice.Catalog) -> InMemoryMetricsReporter:
    reporter = catalog.metrics_reporter
    assert isinstance(reporter, InMemoryMetricsReporter)
    return reporter


def count(value: int, unit: str = "count") -> dict[str, object]:
    return {"unit": unit, "value": value}


def check_form(report: Mapping[str, Any]) -> None:
    """What the REST specification says of ScanReport, CommitReport and their metrics."""
    common = {"report-type", "table-name", "snapshot-id", "metrics", "metadata"}
    own = {
        "scan-report": {"filter", "schema-id", "projected-field-ids", "projected-field-names"},
        "commit-report": {"sequence-number", "operation"},
    }[report["report-type"]]
    assert set(report) == common | own
    for metric in report["metrics"].values():
        if "unit" in metric:
            assert set(metric) == {"unit", "value"}
            assert metric["unit"] in ("count", "bytes")
            assert isinstance(metric["value"], int)
        else:
            assert set(metric) == {"count", "time-unit", "total-duration"}
            assert metric["time-unit"] == "nanoseconds"
            assert metric["total-duration"] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_catalog_reports(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path, **{"metrics-reporter-impl": MEMORY}) as catalog:
        reporter = kept(catalog)
        own = {"format-version": "3", "write.delete.mode": "merge-on-read"}
        table = catalog.create_table("n.t", ROWS.schema, partition_by="region", properties=own)
        assert reporter.reports == []
        table = table.append(ROWS)
        table.update_properties({"owner": "me"})
        table = table.refresh()
        table.delete("id = 3")
        table = table.refresh()
        append, delete = reporter.reports
        reporter.reports.clear()
        size = sum(table.inspect.data_files()["file_size_in_bytes"].to_pylist())
        assert (append["table-name"], append["operation"]) == ("c.n.t", "append")
        assert (append["snapshot-id"], append["sequence-number"]) == (table.snapshots()[0].snapshot_id, 1)
        expected = {
            "added-data-files": count(2),
            "total-data-files": count(2),
            "added-records": count(3),
            "added-files-size-bytes": count(size, "bytes"),
            "attempts": count(1),
        }
        assert expected.items() <= append["metrics"].items()
        assert (delete["snapshot-id"], delete["operation"]) == (table.snapshots()[1].snapshot_id, "delete")
        assert delete["metrics"].items() >= {"added-dvs": count(1), "added-positional-deletes": count(1)}.items()

        # Every way to read plans once.
        ways: list[Callable[[ice.DataScan], object]] = [
            lambda scan: scan.to_arrow(),
            lambda scan: scan.to_arrow_batch_reader().read_all(),
            lambda scan: scan.plan_files(),
            lambda scan: scan.tasks(),
            lambda scan: scan.plan_tasks(),
            lambda scan: scan.plan_batches().read_all(),
            lambda scan: scan.count(),
            pa.table,
        ]
        for way in ways:
            way(table.scan("region = 'us' and id in (2, 9)", ("id",)))
            (scan,) = reporter.reports
            reporter.reports.clear()
            assert (scan["table-name"], scan["snapshot-id"]) == ("c.n.t", table.snapshots()[1].snapshot_id)
            assert (scan["projected-field-names"], scan["projected-field-ids"]) == (["id"], [1])
            (vector,) = table.inspect.delete_files()["content_size_in_bytes"].to_pylist()
            expected = {
                "result-data-files": count(1),
                "result-delete-files": count(1),
                "skipped-data-files": count(1),
                "indexed-delete-files": count(1),
                "dvs": count(1),
                "total-data-manifests": count(1),
                "total-delete-manifests": count(1),
                "total-delete-file-size-in-bytes": count(vector, "bytes"),
            }
            assert expected.items() <= scan["metrics"].items()
            # Values may be confidential.
            assert scan["filter"]["right"] == {"type": "in", "term": "id", "values": ["(int)", "(int)"]}
            check_form(scan)
        check_form(append)
        check_form(delete)


def test_each_snapshot_of_a_transaction_and_each_attempt_is_reported(tmp_path: Path) -> None:
    with opened("sql", tmp_path, **{"metrics-reporter-impl": MEMORY}) as catalog:
        reporter = kept(catalog)
        with catalog.create_table_transaction("n.t", ROWS.schema) as creation:
            creation.append(ROWS)
        with catalog.load_table("n.t").transaction() as transaction:
            transaction.append(ROWS)
            transaction.delete("id = 1")
        table = catalog.load_table("n.t")
        reported = [report["snapshot-id"] for report in reporter.reports]
        assert reported == [snapshot.snapshot_id for snapshot in table.snapshots()]
        stale = catalog.load_table("n.t")
        table.update_properties({"commit.retry.min-wait-ms": "1"})
        reporter.reports.clear()
        swap = catalog._swap  # type: ignore[attr-defined]
        lost = []

        def losing(identifier: Any, base: str, new: str) -> None:
            if not lost:
                lost.append(new)
                raise ice.errors.CommitFailedException("another commit was first")
            swap(identifier, base, new)

        catalog._swap = losing  # type: ignore[attr-defined]
        stale.append(ROWS)
        assert [report["metrics"]["attempts"]["value"] for report in reporter.reports] == [2]


TAKEN: list[Mapping[str, Any]] = []
GIVEN: list[Mapping[str, str]] = []


def take(report: Mapping[str, Any]) -> None:
    TAKEN.append(report)


class Reporter(MetricsReporter):
    def initialize(self, properties: Mapping[str, str]) -> None:
        GIVEN.append(properties)

    def report(self, report: Mapping[str, Any]) -> None:
        TAKEN.append(report)


class Bare:
    """As a class that knows nothing of icefield."""

    def report(self, report: Mapping[str, Any]) -> None:
        TAKEN.append(report)


BARE = Bare()


class Failing:
    def __call__(self, report: Mapping[str, Any]) -> None:
        raise ZeroDivisionError(report["report-type"])


@pytest.mark.parametrize(
    "name",
    [f"{__name__}.take", f"{__name__}:take", f"{__name__}.Reporter", f"{__name__}.Bare", f"{__name__}.BARE", "ours"],
)
def test_what_takes_reports(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def installed(group: str) -> list[EntryPoint]:
        return [EntryPoint("ours", f"{__name__}:Reporter", group)]

    monkeypatch.setattr("importlib.metadata.entry_points", installed)
    TAKEN.clear()
    GIVEN.clear()
    with opened("sql", tmp_path, **{"metrics-reporter-impl": name, "owner": "me"}) as catalog:
        table = catalog.create_table("n.t", ROWS.schema).append(ROWS)
        assert table.scan().count() == 3
        assert [report["report-type"] for report in TAKEN] == ["commit-report", "scan-report"]
        assert [properties["owner"] for properties in GIVEN] == ["me"] * (name.endswith("Reporter") or name == "ours")
        # What a worker unpickles reports by the catalog that it opens, and reads where that has no reporter.
        assert pickle.loads(pickle.dumps(table.scan())).count() == 3
        assert pickle.loads(pickle.dumps(table)).scan().count() == 3
        catalog.metrics_reporter = None
        assert catalog.load_table("n.t").append(ROWS).scan().count() == 6
    assert len(TAKEN) == 3


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nodots", "an entry point in the group"),
        ("no.such.module", "No module named"),
        ("os.nosuch", "has no attribute 'nosuch'"),
        ("os.sep", "neither callable nor has a method report"),
        ("org.apache.iceberg.metrics.MyReporter", "is a Java class"),
    ],
)
def test_what_takes_none(name: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ice.IcefieldError, match=says), opened("sql", tmp_path, **{"metrics-reporter-impl": name}):
        pass


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_fails_by_a_reporter(kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with opened(kind, tmp_path, **{"metrics-reporter-impl": f"{__name__}.Failing"}) as catalog:
        assert catalog.create_table("n.t", ROWS.schema).append(ROWS).scan().to_arrow().num_rows == 3
    for what in ("commit", "scan"):
        assert f"the report about n.t failed: {what}-report" in caplog.text


def test_a_worker_without_the_reporter_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = SimpleNamespace(take=take)
    monkeypatch.setitem(sys.modules, "only_here", module)
    with opened("sql", tmp_path, **{"metrics-reporter-impl": "only_here.take"}) as catalog:
        sent = pickle.dumps(catalog.create_table("n.t", ROWS.schema).append(ROWS))
    monkeypatch.delitem(sys.modules, "only_here")
    table: ice.Table = pickle.loads(sent)
    assert table.append(ROWS).scan().count() == 6


def test_only_the_user_names_what_runs(tmp_path: Path) -> None:
    """A server's configuration, and properties of tables, which others write, name nothing that is imported."""
    TAKEN.clear()
    named = {"metrics-reporter-impl": f"{__name__}.take"}
    with served(tmp_path) as server:
        server.namespaces["n",] = {}
        server.config["overrides"] = named
        server.config["defaults"] = named
        with ice.load_catalog("c", uri=server.uri) as catalog:
            catalog.create_table("n.t", ROWS.schema, properties=named).append(ROWS).scan().count()
            assert catalog.metrics_reporter is None
    assert TAKEN == []


def test_reports_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    named = {"metrics-reporter-impl": "org.apache.iceberg.metrics.LoggingMetricsReporter"}
    with opened("in-memory", tmp_path, **named) as catalog:
        assert isinstance(catalog.metrics_reporter, LoggingMetricsReporter)
        table = catalog.create_table("n.t", ROWS.schema).append(ROWS)
        assert caplog.text == ""
        with caplog.at_level(logging.INFO, "icefield"):
            table.append(ROWS).scan().count()
    assert caplog.text.count('"report-type": "commit-report"') == 1
    assert caplog.text.count('"report-type": "scan-report"') == 1
