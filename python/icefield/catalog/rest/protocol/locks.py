"""Locks that a fork does not leave held."""

from __future__ import annotations

import os
import threading

__all__ = ["ProcessLock"]


class ProcessLock:
    """A lock of one process.

    A child begins with its own: the thread of its parent that held the lock at the fork, perhaps during a request, is
    not there to release it.
    """

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    def __enter__(self) -> None:
        # One operation, so that two threads get the same lock.
        self._locks.setdefault(os.getpid(), threading.Lock()).acquire()

    def __exit__(self, *_: object) -> None:
        self._locks[os.getpid()].release()

    def __reduce__(self) -> tuple[object, ...]:
        return ProcessLock, ()
