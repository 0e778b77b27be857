"""The jobs of one write: how they are found, waited for, and whether they had attempts that lost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from icefield.spark.sessions.session import is_classic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.status import SparkJobInfo, SparkStageInfo

__all__ = ["Jobs"]

#: Seconds to wait for the tasks of a failed job: Spark kills Python workers some four seconds after it stops them.
_LAST_TASKS = 10
#: Seconds in which Spark records the end of a job that has given its results; mostly it has by then.
_RECORDED = 2


class Jobs:
    """The jobs that a thread starts under a tag of their own."""

    def __init__(self, spark: SparkSession, tag: str) -> None:
        self._spark = spark
        self._tag = tag

    @contextmanager
    def tagged(self) -> Iterator[None]:
        """Tag the jobs that this thread starts meanwhile; the user's own groups and tags stay."""
        if is_classic(self._spark):
            context = self._spark.sparkContext
            add, remove = context.addJobTag, context.removeJobTag
        else:
            add, remove = self._spark.addTag, self._spark.removeTag
        add(self._tag)
        try:
            yield
        finally:
            remove(self._tag)

    def cancel(self) -> None:
        """Stop the jobs; `wait` waits for their last tasks."""
        with suppress(Exception):  # the error that is the reason is on its way to the caller
            if is_classic(self._spark):
                self._spark.sparkContext.cancelJobsWithTag(self._tag)
            else:
                self._spark.interruptTag(self._tag)

    def wait(self) -> None:
        """Wait until the jobs have ended with all their tasks.

        A job fails with the first task that fails for good; the others write on until Spark has stopped them. Through
        Spark Connect the tasks cannot be seen: they are interrupted, and have the time that Spark gives to workers.
        """
        with suppress(Exception):  # the error of the job itself is on its way to the caller
            if not is_classic(self._spark):
                self._spark.interruptTag(self._tag)
                time.sleep(_LAST_TASKS / 2)
                return
            until = time.monotonic() + _LAST_TASKS
            while time.monotonic() < until and self._are_active():
                time.sleep(0.05)

    def lost_some(self) -> bool:
        """Return whether some tasks had attempts that failed or were too late, after all of them have ended.

        Through Spark Connect failures of tasks cannot be seen, and the answer tells only whether there may be two
        attempts at a time.
        """
        speculates = str(self._spark.conf.get("spark.speculation", "false")).lower() == "true"
        if not is_classic(self._spark):
            return speculates
        self._settle()
        if not speculates and not any(stage.numFailedTasks or stage.currentAttemptId for stage in self._stages()):
            return False
        self.wait()
        return True

    def _settle(self) -> None:
        """Wait until Spark has recorded how the tasks ended, which it does beside handing over their results."""
        until = time.monotonic() + _RECORDED
        while any(job.status == "RUNNING" for job in self._infos()) and time.monotonic() < until:
            time.sleep(0.005)

    def _infos(self) -> Iterator[SparkJobInfo]:
        context = self._spark.sparkContext
        tracker = context.statusTracker()
        jobs = context._jsc.sc().statusTracker().getJobIdsForTag(self._tag)  # noqa: SLF001
        return (job for job in map(tracker.getJobInfo, jobs) if job is not None)

    def _stages(self) -> Iterator[SparkStageInfo]:
        tracker = self._spark.sparkContext.statusTracker()
        stages = (tracker.getStageInfo(stage) for job in self._infos() for stage in job.stageIds)
        return (stage for stage in stages if stage is not None)

    def _are_active(self) -> bool:
        running = any(job.status == "RUNNING" for job in self._infos())
        return running or any(stage.numActiveTasks > 0 for stage in self._stages())
