"""Locks of tables in a metastore."""

from __future__ import annotations

import getpass
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from icefield.catalog.hive.client import RefusedError, protocol
from icefield.errors import CommitFailedException, CommitStateUnknownException, StorageError

if TYPE_CHECKING:
    from icefield.catalog.hive.client import Connection, Metastore

__all__ = ["Lock", "LockTimes", "locked"]

_ACQUIRED, _WAITING = 1, 2
_EXCLUSIVE, _TABLE = 3, 2
#: After how long without a heartbeat a metastore drops a lock (hive.txn.timeout), by default.
_EXPIRY_SECONDS = 300


class LockTimes(NamedTuple):
    """How long to wait for a lock, and how often to renew it; all times in seconds."""

    #: The first wait between two checks of whether the lock is granted, and the longest.
    min_wait: float = 0.1
    max_wait: float = 60.0
    #: The largest number of checks; ``None`` for no limit but the time.
    retries: int | None = None
    #: The longest time until the lock is granted.
    timeout: float = 180.0
    #: The time between two heartbeats. A metastore drops a lock after five minutes without one.
    heartbeat_interval: float = 60.0


class Lock:
    """A lock that is held."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._lost: Exception | None = None
        self._renewed = time.monotonic()

    def renew(self) -> None:
        """Note that the metastore has taken a heartbeat."""
        self._renewed = time.monotonic()

    @property
    def lost(self) -> Exception | None:
        """Why the lock is lost, or may be: without heartbeats the metastore drops it."""
        if self._lost is None and (silent := time.monotonic() - self._renewed) > _EXPIRY_SECONDS:
            return TimeoutError(f"the metastore has not heard of it for {silent:.0f} seconds")
        return self._lost

    def lose(self, error: Exception) -> None:
        """Note that the metastore has dropped the lock."""
        self._lost = error

    def require(self) -> None:
        """Raise `CommitFailedException` if the lock is lost: another commit may be under way."""
        if (lost := self.lost) is not None:
            raise CommitFailedException(f"the lock of {self._table} was lost: {lost}") from lost


@contextmanager
def locked(metastore: Metastore, connection: Connection, database: str, table: str, times: LockTimes) -> Iterator[Lock]:
    """Hold the lock of a table.

    Raises
    ------
    CommitFailedException
        If it cannot be had: nothing was changed.

    """
    name = f"{database}.{table}"
    try:
        number = _acquire(connection, database, table, times)
    except (StorageError, CommitStateUnknownException) as error:
        raise CommitFailedException(f"the lock of {name} cannot be had: {error}") from error
    lock, released = Lock(name), threading.Event()
    heartbeats = threading.Thread(
        target=_send_heartbeats,
        args=(metastore, number, lock, released, times.heartbeat_interval),
        daemon=True,
        name=f"lock of {name}",
    )
    try:
        heartbeats.start()
        yield lock
    finally:
        released.set()
        # The connection of the commit may be broken; then another one releases the lock, if it can be opened.
        if not _release(connection, number):
            with suppress(StorageError), metastore.open() as another:
                _release(another, number)


def _acquire(connection: Connection, database: str, table: str, times: LockTimes) -> int:
    made = protocol()
    part = made.LockComponent(type=_EXCLUSIVE, level=_TABLE, dbname=database, tablename=table)
    request = made.LockRequest(component=[part], user=_user(), hostname=socket.gethostname(), agentInfo="icefield")
    answer = connection.ask("lock", request)
    number = int(answer.lockid)
    try:
        state = _await(connection, answer, times)
    except BaseException:
        _release(connection, number)
        raise
    if state != _ACQUIRED:
        _release(connection, number)
        what = (
            "is locked by another program" if state == _WAITING else f"was not locked: {answer.errorMessage or state}"
        )
        raise CommitFailedException(f"{database}.{table} {what}")
    return number


def _await(connection: Connection, answer: Any, times: LockTimes) -> int:
    """Return the state of a lock once it is granted or refused, or after the time to wait for it."""
    state, wait, checks = int(answer.state), times.min_wait, 0
    until = time.monotonic() + times.timeout
    while state == _WAITING and (times.retries is None or checks < times.retries) and time.monotonic() + wait < until:
        time.sleep(wait)
        checks, wait = checks + 1, min(wait * 1.5, times.max_wait)
        state = int(connection.ask("check_lock", protocol().CheckLockRequest(lockid=answer.lockid)).state)
    return state


def _release(connection: Connection, number: int) -> bool:
    """Release a lock, and return whether the metastore answered; without an answer the lock expires later."""
    with suppress(StorageError, CommitStateUnknownException):
        connection.ask("unlock", protocol().UnlockRequest(lockid=number))
        return True
    return False


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user whose number the system does not know, as in containers
        return "icefield"


def _send_heartbeats(metastore: Metastore, number: int, lock: Lock, released: threading.Event, seconds: float) -> None:
    """Send heartbeats of a lock until it is released."""
    while not released.wait(seconds):
        try:
            with metastore.open() as connection:
                connection.ask("heartbeat", protocol().HeartbeatRequest(lockid=number))
            lock.renew()
        except RefusedError as error:
            lock.lose(error)
            return
        except (StorageError, CommitStateUnknownException):
            continue  # the next one may come in time
