"""Reports about scans and commits, sent in the background."""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from icefield.metrics import Report

__all__ = ["Reports"]

#: Reports that wait to be sent; more are left out.
_WAITING = 100
#: How long the end of a catalog waits for its reports, in seconds.
_CLOSE_TIMEOUT = 2.0
#: How long the thread waits for another report, in seconds.
_IDLE = 30.0
_LOGGER = logging.getLogger("icefield")


class Reports:
    """Sends reports from a thread of its own, so that no scan and no commit waits for them or fails because of them."""

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
        end = time.monotonic() + _CLOSE_TIMEOUT
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
