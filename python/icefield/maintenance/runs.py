"""Runs of maintenance: all tables of the policies, one after the other."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from time import monotonic
from typing import TYPE_CHECKING

from icefield.catalog import load_catalog
from icefield.errors import IcefieldError
from icefield.maintenance.policy import TASKS, MaintenanceConfig, is_pattern, load
from icefield.maintenance.report import MaintenanceReport, TaskReport
from icefield.maintenance.tasks import RUNNERS
from icefield.table.maintenance.orphans import other_tables_loaded_once

if TYPE_CHECKING:
    from pathlib import Path

    from icefield.catalog import Catalog
    from icefield.maintenance.policy import Policy

__all__ = ["run"]


def run(
    config: str | Path | Mapping[str, object] | MaintenanceConfig,
    *,
    catalog: Catalog | None = None,
    tables: Sequence[str] = ("*",),
    dry_run: bool = False,
    on_task: Callable[[TaskReport], object] | None = None,
) -> MaintenanceReport:
    """Do the maintenance that is due.

    A task that fails does not stop the others. A further run does what failed, and what is due again; that is seen in
    the tables alone, so a run may be repeated, and two runs at the same time do no harm: one of them fails with a
    conflict.

    Parameters
    ----------
    config
        The policies: a YAML file, what such a file has, or what `load` returns.
    catalog
        The catalog; by default the one that the configuration names, or else the configured one.
    tables
        Only these tables of the policies: names, or patterns as in policies.
    dry_run
        Change nothing, and report what would be done, with files and bytes.
    on_task
        Called after each task.

    Returns
    -------
    MaintenanceReport
        What was done; ``ok`` is false if a task failed.

    Raises
    ------
    InvalidArgumentError
        If the configuration is wrong; nothing was done.

    Examples
    --------
    >>> from icefield import maintenance
    >>> report = maintenance.run("maintenance.yaml", dry_run=True)  # doctest: +SKIP
    >>> report.failures  # doctest: +SKIP
    []

    """
    policies = config if isinstance(config, MaintenanceConfig) else load(config)
    opened = load_catalog(policies.catalog) if catalog is None else catalog
    names, unmatched = _tables_of_policies(opened, policies)
    reports: list[TaskReport] = []
    with other_tables_loaded_once():
        for name in names:
            policy = policies.policy_of(".".join(name))
            if policy is None or not any(fnmatchcase(".".join(name), one) for one in tables):
                continue
            for report in _of_table(opened, name, policy, dry_run=dry_run):
                reports.append(report)
                if on_task is not None:
                    on_task(report)
    return MaintenanceReport(reports, dry_run, unmatched)


def _tables_of_policies(catalog: Catalog, config: MaintenanceConfig) -> tuple[list[tuple[str, ...]], list[str]]:
    """Return the tables of the policies, and the patterns that no table matches."""
    given = list(dict.fromkeys(one for policy in config.policies for one in policy.tables))
    patterns = [one for one in given if is_pattern(one)]
    # Names are taken as they are, so that a table that is missing is an error of that table.
    found = {one: tuple(one.split(".")) for one in given if not is_pattern(one)}
    if patterns:
        found |= {".".join(name): name for name in _all_tables(catalog, ())}
    unmatched = [one for one in patterns if not any(fnmatchcase(name, one) for name in found)]
    return [found[name] for name in sorted(found)], unmatched


def _all_tables(catalog: Catalog, below: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for namespace in catalog.list_namespaces(below):
        yield from (tuple(name) for name in catalog.list_tables(namespace))
        yield from _all_tables(catalog, namespace)


def _of_table(catalog: Catalog, name: tuple[str, ...], policy: Policy, *, dry_run: bool) -> Iterator[TaskReport]:
    shown = ".".join(name)
    try:
        table = catalog.load_table(name)
    except (IcefieldError, OSError) as error:
        yield TaskReport(shown, "", "failed", str(error))
        return
    for task in (one for one in TASKS if one in policy.tasks):
        begin = monotonic()
        try:
            with warnings.catch_warnings():
                # Files that could not be deleted are in the outcome.
                warnings.simplefilter("ignore", RuntimeWarning)
                done = RUNNERS[task](catalog, table, policy.tasks[task], dry_run)
        except (IcefieldError, OSError) as error:
            yield TaskReport(shown, task, "failed", str(error), seconds=monotonic() - begin)
            continue
        yield TaskReport(
            shown,
            task,
            done.state,
            done.message,
            done.files,
            done.bytes,
            done.added_files,
            done.commits,
            round(monotonic() - begin, 3),
        )
