"""Reports of ours that Java reads, and those of both about the same scans."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import icefield as ice
from icefield.expressions import parse
from icefield.metrics import InMemoryMetricsReporter

if TYPE_CHECKING:
    from .conftest import Java

pytestmark = pytest.mark.interop

#: Metrics that Java does not have.
OURS = ("cached-manifests", "manifest-bytes-read")


def test_reports_are_those_of_java(java: Java, tmp_path: Path) -> None:
    where = {"uri": f"sqlite:///{tmp_path}/reports.db", "warehouse": str(tmp_path)}
    catalog = ice.load_catalog("reports", **where)
    reporter = catalog.metrics_reporter = InMemoryMetricsReporter()
    catalog.create_namespace("db")
    rows = pa.table({"id": range(30), "region": ["eu", "us", "jp"] * 10})
    own = {"format-version": "3", "write.delete.mode": "merge-on-read", "commit.manifest-merge.enabled": "false"}
    table = catalog.create_table("db.t", rows.schema, partition_by="region", properties=own)
    for _ in range(3):
        table = table.append(rows)
    table.delete("id < 3")
    with table.refresh().upsert_stream(["id", "region"]) as stream:
        stream.upsert(rows.slice(7, 4))
    table = table.refresh()
    java.catalog("reports", tmp_path / "reports.db", tmp_path)
    commit = reporter.commit_report()
    assert commit is not None
    for filter in ("region = 'eu'", "id > 25", "id = 2 and region = 'jp'", "id > 1000"):
        table.scan(filter).plan_files()
        scan = reporter.scan_report()
        assert scan is not None
        read = java.do("reports", scan=json.dumps(scan), commit=json.dumps(commit))
        for ours, again in zip((scan, commit), map(json.loads, read), strict=True):
            assert again.pop("report-type", ours["report-type"]) == ours["report-type"]
            # Java leaves out metrics that it does not know.
            metrics = {name: value for name, value in ours["metrics"].items() if name not in OURS}
            assert again == {**{name: ours[name] for name in again}, "metrics": metrics}
        theirs = json.loads(java.do("scan_report", table="reports.db.t", filter=parse(filter).to_json()))
        counts = [
            {name: one for name, one in report["metrics"].items() if "unit" in one and name not in OURS}
            for report in (theirs, scan)
        ]
        assert counts[0] == counts[1], filter
        for name in ("snapshot-id", "schema-id", "projected-field-ids", "projected-field-names"):
            assert theirs[name] == scan[name]
