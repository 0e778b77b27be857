"""Reports about scans and commits: what is in them, that nothing waits for them, and who else gets them."""

from __future__ import annotations

import logging
import pickle
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import icefield as ice
from icefield.catalog.rest import reports
from icefield.catalog.rest.reports import Reports
from worlds.servers.rest import Asked, Breaks, Server, error, served

ROWS = pa.table({"id": [1, 2], "region": ["eu", "us"]})
#: What `take` was called with.
TAKEN: list[Mapping[str, Any]] = []


def take(report: Mapping[str, Any]) -> None:
    TAKEN.append(report)


def fail(report: Mapping[str, Any]) -> None:
    raise RuntimeError(report["report-type"])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    TAKEN.clear()
    with served(tmp_path) as made:
        made.namespaces["n",] = {}
        yield made


def sent(server: Server) -> list[Asked]:
    return server.of("POST", "/metrics")


def test_reports_are_those_of_java(server: Server) -> None:
    with ice.load_catalog("c", uri=server.uri) as catalog:
        table = catalog.create_table("n.t", ROWS.schema, partition_by="region").append(ROWS)
        table.delete("id = 1")
        table.scan("region = 'us' AND id IN (2, 8)", ("id",)).plan_files()
        table.update_properties({"k": "v"})
    append, delete, scan = (one.body for one in sent(server))
    assert (append["report-type"], append["table-name"], append["operation"]) == ("commit-report", "c.n.t", "append")
    assert append["metrics"]["added-data-files"] == {"unit": "count", "value": 2}
    assert append["metrics"]["added-files-size-bytes"]["unit"] == "bytes"
    assert append["metrics"]["attempts"] == {"unit": "count", "value": 1}
    assert append["metrics"]["total-duration"]["time-unit"] == "nanoseconds"
    assert (append["snapshot-id"], append["sequence-number"]) == (table.snapshots()[0].snapshot_id, 1)
    assert (delete["operation"], delete["metrics"]["removed-data-files"]["value"]) == ("delete", 1)
    assert (scan["report-type"], scan["projected-field-names"], scan["projected-field-ids"]) == (
        "scan-report",
        ["id"],
        [1],
    )
    assert scan["snapshot-id"] == table.snapshots()[1].snapshot_id
    # Values may be confidential.
    assert scan["filter"] == {
        "type": "and",
        "left": {"type": "eq", "term": "region", "value": "(string)"},
        "right": {"type": "in", "term": "id", "values": ["(int)", "(int)"]},
    }
    assert scan["metrics"]["result-data-files"] == {"unit": "count", "value": 1}
    assert scan["metrics"]["total-file-size-in-bytes"]["unit"] == "bytes"
    assert scan["metrics"]["total-planning-duration"]["total-duration"] > 0


def test_attempts_are_counted(server: Server) -> None:
    with ice.load_catalog("c", uri=server.uri) as catalog:
        table = catalog.create_table("n.t", ROWS.schema, properties={"commit.retry.min-wait-ms": "1"})
        server.script(error(409, "CommitFailedException"), method="POST", ends="/tables/t")
        table.append(ROWS)
    [report] = sent(server)
    assert report.body["metrics"]["attempts"]["value"] == 2


@pytest.mark.parametrize("where", ["catalog", "server", "endpoints"])
def test_reports_that_nobody_wants_are_not_sent(server: Server, where: str) -> None:
    given = {"rest-metrics-reporting-enabled": "false"}
    if where == "server":
        server.config["overrides"] = given
    if where == "endpoints":
        server.config["endpoints"] = ["POST /v1/{prefix}/namespaces/{namespace}/tables"]
    with ice.load_catalog("c", uri=server.uri, **(given if where == "catalog" else {})) as catalog:
        catalog.create_table("n.t", ROWS.schema).append(ROWS).scan().plan_files()
    assert sent(server) == []


@pytest.mark.parametrize("answer", [error(500, "x"), error(404, "x"), Breaks()], ids=["500", "404", "no answer"])
def test_reports_that_fail_are_logged(server: Server, answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "icefield"), ice.load_catalog("c", uri=server.uri) as catalog:
        server.script(answer, answer, ends="/metrics")
        assert catalog.create_table("n.t", ROWS.schema).append(ROWS).scan().count() == 2
    assert caplog.text.count("the report about n.t was not sent") == 2
    assert len(sent(server)) == 2


def test_nothing_waits_for_a_slow_server(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("icefield.catalog.rest.reports._CLOSE_TIMEOUT", 0.05)
    held: list[float] = []

    def hold(asked: Asked) -> None:
        if asked.path.endswith("/metrics"):
            held.append(time.monotonic())
            while held and time.monotonic() < held[0] + 120:
                time.sleep(0.01)

    server.instead.append(hold)
    with ice.load_catalog("c", uri=server.uri) as catalog:
        table = catalog.create_table("n.t", ROWS.schema)
        for _ in range(3):
            table.append(ROWS)
        assert table.scan().count() == 6
        began = time.monotonic()
    assert time.monotonic() - began < 60
    held.clear()


def test_another_reporter(server: Server) -> None:
    with ice.load_catalog("c", uri=server.uri, **{"metrics-reporter-impl": f"{__name__}.take"}) as catalog:
        table = catalog.create_table("n.t", ROWS.schema).append(ROWS)
        table.scan("id > 1").plan_files()
        assert pickle.loads(pickle.dumps(table.scan())).count() == 2
    assert [one["report-type"] for one in TAKEN] == ["commit-report", "scan-report"]
    assert [one.body for one in sent(server)] == TAKEN


def test_a_reporter_that_fails_changes_nothing(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with ice.load_catalog("c", uri=server.uri, **{"metrics-reporter-impl": f"{__name__}.fail"}) as catalog:
        assert catalog.create_table("n.t", ROWS.schema).append(ROWS).scan().count() == 2
    assert "the report about n.t failed: commit-report" in caplog.text
    assert len(sent(server)) == 2


def test_reports_are_logged(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    reporter = "icefield.metrics.LoggingMetricsReporter"
    named = {"metrics-reporter-impl": reporter, "rest-metrics-reporting-enabled": "false"}
    with caplog.at_level(logging.INFO, "icefield"), ice.load_catalog("c", uri=server.uri, **named) as catalog:
        catalog.create_table("n.t", ROWS.schema).append(ROWS)
    assert '"report-type": "commit-report"' in caplog.text
    assert sent(server) == []


def test_the_thread_ends_when_there_is_nothing_to_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "_IDLE", 0.01)
    taken: list[object] = []
    sends = Reports(lambda table, report: taken.append((table, report)))
    before = threading.active_count()
    for number in range(3):
        sends.add(("n", "t"), {"number": number})
        sends.finish()
        end = time.monotonic() + 60
        while threading.active_count() > before and time.monotonic() < end:
            time.sleep(0.001)
        assert threading.active_count() == before
    assert taken == [(("n", "t"), {"number": number}) for number in range(3)]
