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

__all__ = ["Lock", "Patience", "locked"]

_ACQUIRED, _WAITING = 1, 2
_EXCLUSIVE, _TABLE = 3, 2
#: After how long a metastore gives up a lock that it hears nothing of (hive.txn.timeout), by default.
_SILENT_SECONDS = 300


class Patience(NamedTuple):
    """How a lock is waited for."""

    #: Seconds between two looks, at first and at most.
    first: float = 0.1
    longest: float = 60.0
    #: Looks at most; ``None`` for no limit but the time.
    looks: int | None = None
    #: Seconds at most.
    total: float = 180.0
    #: Seconds between two signs of life. A metastore gives a lock up after five minutes without.
    beat: float = 60.0


class Lock:
    """A lock that is held."""

    def __init__(self, table: str) -> None:
        self._table = table
        self._lost: Exception | None = None
        self._alive = time.monotonic()

    def live(self) -> None:
        """Note that the metastore has heard that the lock is held."""
        self._alive = time.monotonic()

    @property
    def lost(self) -> Exception | None:
        """Why the lock is lost, or may be: without a sign of life the metastore gives it up."""
        if self._lost is None and (silent := time.monotonic() - self._alive) > _SILENT_SECONDS:
            return TimeoutError(f"the metastore has not heard of it for {silent:.0f} seconds")
        return self._lost

    def lose(self, error: Exception) -> None:
        """Note that the metastore has given the lock up."""
        self._lost = error

    def require(self) -> None:
        """Raise `CommitFailedException` if the lock is lost: another commit may be under way."""
        if (lost := self.lost) is not None:
            raise CommitFailedException(f"the lock of {self._table} was lost: {lost}") from lost


@contextmanager
def locked(
    metastore: Metastore, connection: Connection, database: str, table: str, patience: Patience
) -> Iterator[Lock]:
    """Hold the lock of a table.

    Raises
    ------
    CommitFailedException
        If it cannot be had: nothing was changed.

    """
    name = f"{database}.{table}"
    try:
        number = _acquire(connection, database, table, patience)
    except (StorageError, CommitStateUnknownException) as error:
        raise CommitFailedException(f"the lock of {name} cannot be had: {error}") from error
    lock, done = Lock(name), threading.Event()
    beating = threading.Thread(
        target=_beat, args=(metastore, number, lock, done, patience.beat), daemon=True, name=f"lock of {name}"
    )
    try:
        beating.start()
        yield lock
    finally:
        done.set()
        # The connection of the commit may be broken, and there may be no other: one of both will do.
        if not _give_up(connection, number):
            with suppress(StorageError), metastore.open() as another:
                _give_up(another, number)


def _acquire(connection: Connection, database: str, table: str, patience: Patience) -> int:
    made = protocol()
    part = made.LockComponent(type=_EXCLUSIVE, level=_TABLE, dbname=database, tablename=table)
    request = made.LockRequest(component=[part], user=_user(), hostname=socket.gethostname(), agentInfo="icefield")
    answer = connection.ask("lock", request)
    number = int(answer.lockid)
    try:
        state = _await(connection, answer, patience)
    except BaseException:
        _give_up(connection, number)
        raise
    if state != _ACQUIRED:
        _give_up(connection, number)
        what = (
            "is locked by another program" if state == _WAITING else f"was not locked: {answer.errorMessage or state}"
        )
        raise CommitFailedException(f"{database}.{table} {what}")
    return number


def _await(connection: Connection, answer: Any, patience: Patience) -> int:
    """Return the state of a lock once it is no longer waited for, or no longer to be waited for."""
    state, wait, looks = int(answer.state), patience.first, 0
    until = time.monotonic() + patience.total
    while state == _WAITING and (patience.looks is None or looks < patience.looks) and time.monotonic() + wait < until:
        time.sleep(wait)
        looks, wait = looks + 1, min(wait * 1.5, patience.longest)
        state = int(connection.ask("check_lock", protocol().CheckLockRequest(lockid=answer.lockid)).state)
    return state


def _give_up(connection: Connection, number: int) -> bool:
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


def _beat(metastore: Metastore, number: int, lock: Lock, done: threading.Event, seconds: float) -> None:
    """Send a heartbeat of the lock at regular intervals, until it is given back."""
    while not done.wait(seconds):
        try:
            with metastore.open() as connection:
                connection.ask("heartbeat", protocol().HeartbeatRequest(lockid=number))
            lock.live()
        except RefusedError as error:
            lock.lose(error)
            return
        except (StorageError, CommitStateUnknownException):
            continue  # the next one may come in time
