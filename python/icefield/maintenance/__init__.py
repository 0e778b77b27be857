"""Maintenance of many tables by a policy, for cron and Airflow: `icefield maintain CONFIG` and `run`.

A policy lists tasks for some tables, and when they are due. The table alone shows whether a task is due, so a second
run right after the first finds nothing to do.
"""

from __future__ import annotations

from icefield.maintenance.policy import MaintenanceConfig, Policy, load
from icefield.maintenance.report import MaintenanceReport, TaskReport
from icefield.maintenance.runs import run

__all__ = [
    "MaintenanceConfig",
    "MaintenanceReport",
    "Policy",
    "TaskReport",
    "load",
    "run",
]
