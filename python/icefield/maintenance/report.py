"""What a run of maintenance did to each table."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from icefield._outputs.layout import counted, size_of
from icefield._outputs.printable import printable

__all__ = ["MaintenanceReport", "TaskReport", "TaskState"]

#: ``"planned"`` is what a dry run would do; ``"skipped"`` a task that the table does not allow.
TaskState: TypeAlias = Literal["done", "planned", "not due", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What became of a task of a table."""

    #: The table, as ``namespace.name``.
    table: str
    #: The task, by its name in the policy; empty if the table could not be loaded.
    task: str
    #: Whether it was done.
    state: TaskState
    #: What was done, or why not.
    message: str
    #: Number of files that were replaced or deleted, or would be.
    files: int = 0
    #: Their bytes.
    bytes: int = 0
    #: Number of files that were written; in a dry run the expected one, where that is known.
    added_files: int = 0
    #: Number of commits.
    commits: int = 0
    #: How long it took.
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class MaintenanceReport:
    """What a run of maintenance did, task by task."""

    #: The tasks, in the order in which they were done.
    tasks: list[TaskReport] = field(default_factory=list)
    #: Whether nothing was changed, because of ``dry_run``.
    dry_run: bool = False
    #: Patterns of the policies that no table matches.
    unmatched: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no task failed."""
        return not self.failures

    @property
    def failures(self) -> list[TaskReport]:
        """The tasks that failed."""
        return [one for one in self.tasks if one.state == "failed"]

    def to_json(self) -> str:
        """Return the report as JSON: an object with ``ok``, ``dry_run``, ``tasks`` and ``unmatched``."""
        return json.dumps({"ok": self.ok, **asdict(self)})

    def __repr__(self) -> str:
        made = [one for one in self.tasks if one.state in {"done", "planned"}]
        tables = counted(len({one.table for one in self.tasks}), "table")
        verb = "planned" if self.dry_run else "done"
        files, size = counted(sum(one.files for one in made), "file"), size_of(sum(one.bytes for one in made))
        head = f"{tables}: {counted(len(made), 'task')} {verb}, {files} of {size}, {len(self.failures)} failed"
        lines = [f"{one.state} {one.table} {one.task}: {one.message}" for one in self.tasks if one.state != "not due"]
        return printable("\n  ".join([f"MaintenanceReport({head})", *lines]), keep="\n")
