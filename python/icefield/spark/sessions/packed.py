"""Tasks on their way to the executors."""

from __future__ import annotations

import pickle
from array import array
from collections.abc import Iterable
from typing import Generic, TypeVar

__all__ = ["PackedTasks"]

T = TypeVar("T")


class PackedTasks(Generic[T]):
    """Tasks as bytes, of which each Spark task makes its own: all of them travel to each executor.

    As objects, n of them would be made by each of n Spark tasks, which takes minutes for some thousands.
    """

    __slots__ = ("_data", "_ends")

    def __init__(self, tasks: Iterable[T]) -> None:
        data, ends = bytearray(), array("Q", [0])
        for task in tasks:
            data += pickle.dumps(task)
            ends.append(len(data))
        # Two objects, however many tasks there are.
        self._data, self._ends = bytes(data), ends.tobytes()

    def __len__(self) -> int:
        return len(self._ends) // 8 - 1

    def __getitem__(self, place: int) -> T:
        """Return a task, made now."""
        start, end = array("Q", self._ends[8 * place : 8 * place + 16])
        task: T = pickle.loads(self._data[start:end])  # noqa: S301 - written by __init__, in the same closure
        return task
