"""Scans that the server plans: asked for, waited for, and fetched in pieces ("Scan Planning" of the REST protocol)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from icefield.catalog.rest.protocol import endpoints
from icefield.catalog.rest.protocol.errors import Meanings, error_of, is_success
from icefield.errors import CorruptDataError, IcefieldError, NoSuchTableError, RESTError
from icefield.scan import Served

if TYPE_CHECKING:
    from icefield._core import Scan, Storage
    from icefield._inputs.identifiers import Identifier
    from icefield.catalog.rest.client import Client
    from icefield.catalog.rest.protocol.endpoints import Route
    from icefield.catalog.rest.protocol.messages import Reply
    from icefield.scan import DataScan

__all__ = ["ServerPlanner", "is_planned_by_server"]

#: How long to wait for a plan, and between two questions for it; in seconds.
_LONGEST = 300.0
_PAUSES = (0.1, 10.0)
#: More pieces than any plan has.
_MOST_TASKS = 1_000_000

_Page = dict[str, Any]


def is_planned_by_server(client: Client, properties: Mapping[str, str]) -> bool:
    """Return whether ``scan-planning-mode`` says that the server plans the scans of a table.

    Raises
    ------
    UnsupportedFeatureError
        If it says so, and the server has no route for it.
    RESTError
        If it is neither ``client`` nor ``server``.

    """
    mode = properties.get("scan-planning-mode", "client").lower()
    if mode == "client":
        return False
    if mode != "server":
        raise RESTError(f"scan-planning-mode={mode!r}: expected client or server", None)
    client.config.endpoints.require(endpoints.PLAN_SCAN, "planning scans, which scan-planning-mode=server asks for")
    return True


class ServerPlanner:
    """Plans the scans of a table by its server.

    Parameters
    ----------
    client
        Asks the server.
    name
        The table.
    storage_of
        Returns the storage with the credentials of an answer; None if it has none.

    """

    def __init__(self, client: Client, name: Identifier, storage_of: Callable[[_Page], Storage | None]) -> None:
        self._client, self._name, self._storage_of = client, name, storage_of

    def __call__(self, scan: DataScan, core: Scan, stats: tuple[str, ...]) -> Served:
        """Plan a scan.

        Raises
        ------
        RESTError
            If the server fails to plan it, or takes more than five minutes.
        CorruptDataError
            If its tasks do not fit the table.

        """
        if core.snapshot_id is None:
            return Served(core, scan._state.storage)  # noqa: SLF001 - an empty table
        body = core.plan_request(stats_fields=list(stats) or None, min_rows=scan.limit)
        plan_id: str | None = None
        try:
            reply = self._asked(endpoints.PLAN_SCAN, {}, body)
            answer = reply.json()
            plan_id = _text(answer, "plan-id", reply)
            reply, answer = self._complete(reply, answer, plan_id)
            pages = [_without_bounds(page) for page in (answer, *self._fetched(reply, answer))]
            storage = self._storage_of(answer) or scan._state.storage  # noqa: SLF001
        finally:
            if plan_id is not None:
                self._cancel(plan_id)
        try:
            return Served(core.planned_by_server(pages, storage), storage)
        except CorruptDataError as error:
            raise CorruptDataError(f"{reply.asked}: {error}", error.file, error.place, error.offset) from error

    def _asked(self, route: Route, more: dict[str, str], body: object = None) -> Reply:
        names: dict[str, str | Identifier] = {"namespace": self._name[:-1], "table": self._name[-1], **more}
        reply = self._client.send(route, names, body=body)
        if not is_success(reply):
            raise error_of(reply, self._meanings(route))
        return reply

    def _meanings(self, route: Route) -> Meanings:
        table = ".".join(self._name)
        if route == endpoints.PLAN_SCAN:
            return {404: lambda text: NoSuchTableError(f"table {table} does not exist: {text}")}
        return {404: lambda text: RESTError(f"the server no longer knows the plan of a scan of {table}: {text}", 404)}

    def _complete(self, reply: Reply, answer: _Page, plan_id: str | None) -> tuple[Reply, _Page]:
        """Wait until the plan is complete; return the answer that has it."""
        deadline = time.monotonic() + _LONGEST
        pause, most = _PAUSES
        while (status := answer.get("status")) == "submitted":
            if not plan_id:
                raise RESTError(f"{reply.asked}: the plan is submitted, and has no plan-id", reply.status)
            self._client.config.endpoints.require(endpoints.FETCH_PLAN, "waiting for the plan of a scan")
            if time.monotonic() + pause > deadline:
                raise RESTError(f"{reply.asked}: the plan is not complete after {_LONGEST:.0f} s", reply.status)
            time.sleep(pause)
            pause = min(2 * pause, most)
            reply = self._asked(endpoints.FETCH_PLAN, {"plan-id": plan_id})
            answer = reply.json()
        if status == "completed":
            return reply, answer
        if status == "cancelled":
            raise RESTError(f"{reply.asked}: the plan of the scan was cancelled on the server", reply.status)
        if status == "failed":
            raise RESTError(f"{reply.asked}: the server failed to plan the scan: {_reason(answer)}", reply.status)
        raise RESTError(f"{reply.asked}: status is {status!r}, which is not a status of a plan", reply.status)

    def _fetched(self, reply: Reply, answer: _Page) -> list[_Page]:
        """Return the pages of all plan tasks, and of those that they name."""
        pages: list[_Page] = []
        open_tasks = _texts(answer, "plan-tasks", reply)
        seen = set(open_tasks)
        while open_tasks:
            if len(seen) > _MOST_TASKS:
                raise RESTError(f"{reply.asked}: the plan has more than {_MOST_TASKS} plan tasks", reply.status)
            self._client.config.endpoints.require(endpoints.FETCH_TASKS, "fetching the tasks of a plan")
            reply = self._asked(endpoints.FETCH_TASKS, {}, {"plan-task": open_tasks.pop(0)})
            page = reply.json()
            for task in _texts(page, "plan-tasks", reply):
                if task in seen:
                    raise RESTError(f"{reply.asked}: the server sends the same plan task again and again", reply.status)
                seen.add(task)
                open_tasks.append(task)
            pages.append(page)
        return pages

    def _cancel(self, plan_id: str) -> None:
        """Cancel the plan, so that the server frees what it keeps."""
        with suppress(IcefieldError):
            if self._client.config.endpoints.offer(endpoints.CANCEL_PLAN):
                self._asked(endpoints.CANCEL_PLAN, {"plan-id": plan_id})


def _without_bounds(page: _Page) -> _Page:
    """Return scan tasks without the bounds of columns.

    Java's server writes them as the digits of their bytes, the protocol has values: of texts nobody can tell which.
    No row depends on them.
    """
    tasks, deletes = page.get("file-scan-tasks"), page.get("delete-files")
    files = [task.get("data-file") for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    files += deletes if isinstance(deletes, list) else []
    for file in files:
        if isinstance(file, dict):
            file.pop("lower-bounds", None)
            file.pop("upper-bounds", None)
    return page


def _reason(answer: _Page) -> str:
    error = answer.get("error")
    message, kind = (error.get("message"), error.get("type")) if isinstance(error, dict) else (None, None)
    return f"{message or 'it gave no reason'}{f' ({kind})' if kind else ''}"


def _text(answer: _Page, name: str, reply: Reply) -> str | None:
    found = answer.get(name)
    if found is not None and not isinstance(found, str):
        raise RESTError(f"{reply.asked}: {name} is not a text", reply.status)
    return found


def _texts(answer: _Page, name: str, reply: Reply) -> list[str]:
    found = answer.get(name) or []
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise RESTError(f"{reply.asked}: {name} is not a list of texts", reply.status)
    return found
