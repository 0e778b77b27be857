"""Maintenance of many tables by a policy, for cron and Airflow: `icefield maintain CONFIG` and `run`.

A policy lists tasks for some tables, and when they are due. The table alone shows whether a task is due, so a second
run right after the first finds nothing to do.
"""

from __future__ import annotations

from icefield.maintenance.policy import TASKS, MaintenanceConfig, Policy, Settings, load
from icefield.maintenance.report import MaintenanceReport, TaskReport, TaskState
from icefield.maintenance.runs import run
from icefield.maintenance.tasks import LAST_ORPHAN_REMOVAL

__all__ = [
    "LAST_ORPHAN_REMOVAL",
    "TASKS",
    "MaintenanceConfig",
    "MaintenanceReport",
    "Policy",
    "Settings",
    "TaskReport",
    "TaskState",
    "load",
    "run",
]
