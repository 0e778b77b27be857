"""Plans of the loopback REST server: what the library plans by the manifests, as the protocol has it."""

from __future__ import annotations

import json
import math
from typing import Any

from icefield._core import Storage, TableState
from icefield.expressions import And, from_json
from icefield.scan import DataScan
from worlds.servers.rest import Answer, Asked, Server, error


class Plans:
    """Answers the routes of scan planning for the tables of a server."""

    def __init__(self, server: Server, *, asks: bool = True) -> None:
        self.server = server
        #: How often a plan is submitted before it is completed.
        self.submitted = 0
        #: The most files in an answer; the others are in plan tasks.
        self.page = 0
        #: What is added to each plan that is complete.
        self.more: dict[str, Any] = {}
        #: A filter of the server, which hides rows.
        self.policy: dict[str, Any] | None = None
        self.sends_residuals = True
        #: Whether delete files are named by their paths, as Java's server does: of vectors in one file the last one is.
        self.names_paths = False
        #: Ids of plans that are not cancelled, with how often they were asked for.
        self.open: dict[str, int] = {}
        self._made: dict[str, dict[str, Any]] = {}
        self._tasks: dict[str, dict[str, Any]] = {}
        server.instead.append(self.answer)
        if asks:
            server.with_table = {"config": {"scan-planning-mode": "server"}}

    def answer(self, asked: Asked) -> Answer | None:
        names = asked.names
        if names[-1] == "plan" and asked.method == "POST":
            return self._planned(asked)
        if names[-2] == "plan":
            return self._polled(asked, names[-1])
        if names[-1] == "tasks":
            found = self._tasks.get(asked.body["plan-task"])
            return error(404, "NoSuchPlanTaskException") if found is None else (200, found, {})
        return None

    def _planned(self, asked: Asked) -> Answer:
        names = asked.names
        where, metadata = self.server.tables[tuple(names[2].split("\x1f")), names[4]]
        body = asked.body
        assert body["use-snapshot-schema"] or body["snapshot-id"] == metadata.current_snapshot_id
        wanted = from_json(json.dumps(body["filter"])) if "filter" in body else None
        if self.policy is not None:
            own = from_json(json.dumps(self.policy))
            wanted = own if wanted is None else And(wanted, own)
        scan = DataScan(
            TableState.of(Storage(), where, metadata),
            row_filter=wanted,
            case_sensitive=body["case-sensitive"],
            snapshot_id=body["snapshot-id"] if body["use-snapshot-schema"] else None,
        )
        tasks = list(scan.plan_files())
        size = self.page or max(len(tasks), 1)
        pages = [self._page(tasks[start : start + size]) for start in range(0, len(tasks), size)]
        number = len(self._made)
        named = {f"{number}-{at}": page for at, page in enumerate(pages[1:])}
        self._tasks.update(named)
        complete = {"status": "completed", **(pages[0] if pages else {}), **self.more}
        if named:
            complete["plan-tasks"] = list(named)
        plan_id = f"plan {number}/ü"
        self._made[plan_id] = complete
        self.open[plan_id] = 0
        if self.submitted:
            return 200, {"status": "submitted", "plan-id": plan_id}, {}
        return 200, {**complete, "plan-id": plan_id}, {}

    def _polled(self, asked: Asked, plan_id: str) -> Answer:
        if plan_id not in self.open:
            return error(404, "NoSuchPlanIdException")
        if asked.method == "DELETE":
            del self.open[plan_id]
            return 204, None, {}
        self.open[plan_id] += 1
        if self.open[plan_id] < self.submitted:
            return 200, {"status": "submitted"}, {}
        return 200, self._made[plan_id], {}

    def _page(self, tasks: list[Any]) -> dict[str, Any]:
        def name(delete: Any) -> tuple[str, int | None]:
            return delete.file_path, None if self.names_paths else delete.content_offset

        known = {(one.file_path, one.content_offset): one for task in tasks for one in task.delete_files}
        deletes = list(known.values())
        places = {name(delete): place for place, delete in enumerate(deletes)}
        made = []
        for task in tasks:
            one: dict[str, Any] = {"data-file": {"content": "data", **_file(task.file)}}
            if task.delete_files:
                one["delete-file-references"] = [places[name(delete)] for delete in task.delete_files]
            if self.sends_residuals:
                one["residual-filter"] = json.loads(task.residual.to_json())
            made.append(one)
        found: dict[str, Any] = {"file-scan-tasks": made}
        if deletes:
            found["delete-files"] = [
                {"content": str(delete.content).lower().replace("_", "-"), **_file(delete)} for delete in deletes
            ]
        return found


def _special(value: Any) -> Any:
    """The value, as Java writes numbers that JSON does not have."""
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _file(file: Any) -> dict[str, Any]:
    known = {
        "file-path": file.file_path,
        "file-format": str(file.file_format).lower(),
        "spec-id": file.spec_id,
        "partition": [_special(value) for value in file.partition],
        "record-count": file.record_count,
        "file-size-in-bytes": file.file_size_in_bytes,
        "first-row-id": file.first_row_id,
        "equality-ids": list(file.equality_ids or []) or None,
        "referenced-data-file": file.referenced_data_file,
        "content-offset": file.content_offset,
        "content-size-in-bytes": file.content_size_in_bytes,
    }
    return {name: value for name, value in known.items() if value is not None}
