"""Write, audit, publish: what ``spark.wap.id`` and ``spark.wap.branch`` of a session mean for tables that enable them.

As in Java: with ``write.wap.enabled=true`` an id stages the snapshot of a write, so that no branch refers to it, and a
branch is written to and, once it exists, read. An explicit branch overrides that of the session.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark import TaskContext

from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from icefield.table import Table

__all__ = ["read_branch", "session_audit", "task_audit", "write_target"]

_ID, _BRANCH = "spark.wap.id", "spark.wap.branch"


def session_audit(spark: SparkSession) -> dict[str, str]:
    """Return the values that the session sets."""
    found = {name: spark.conf.get(name, None) for name in (_ID, _BRANCH)}
    return {name: value for name, value in found.items() if value is not None}


def task_audit() -> dict[str, str]:
    """Return the values that the session of this task set."""
    context = TaskContext.get()
    found = {} if context is None else {name: context.getLocalProperty(name) for name in (_ID, _BRANCH)}
    return {name: value for name, value in found.items() if value is not None}


def write_target(table: Table, branch: str | None, audit: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the branch to write to, and the summary entries of a staged snapshot.

    Raises
    ------
    InvalidArgumentError
        If the session sets both an id and a branch.

    """
    if not _enabled(table):
        return branch or "main", {}
    session_branch = _branch(audit) if branch is None else None
    summary = {"wap.id": audit[_ID]} if _ID in audit else {}
    return branch or session_branch or "main", summary


def read_branch(table: Table, audit: Mapping[str, str]) -> str | None:
    """Return the branch to read where none is named: the session's, if it exists."""
    branch = _branch(audit) if _enabled(table) else None
    return branch if branch is not None and table.snapshot_by_name(branch) is not None else None


def _enabled(table: Table) -> bool:
    return table.properties.get("write.wap.enabled", "false").strip().lower() == "true"


def _branch(audit: Mapping[str, str]) -> str | None:
    if {_ID, _BRANCH} <= set(audit):
        raise InvalidArgumentError(
            f"the session sets both {_ID}={audit[_ID]} and {_BRANCH}={audit[_BRANCH]}: unset one of them"
        )
    return audit.get(_BRANCH)
