"""What an overwrite by ``format("icefield")`` replaces: rows that a filter matches, or the partitions of the new rows.

The options are those of Java's connector, which has no option for the filter; ``overwrite-filter`` is our own.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from icefield.distributed import RowRemover
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError, ValidationException
from icefield.expressions import AlwaysTrue
from icefield.spark.columns.letter_case import refuse_alike
from icefield.table.snapshots import ancestors_of

if TYPE_CHECKING:
    import pyarrow as pa

    from icefield.distributed import ReadTask, RowChangePlan, WrittenFiles
    from icefield.spark.tables.opening import SourceOptions
    from icefield.spark.writes.writing import Write
    from icefield.table import Table
    from icefield.table.rows import Isolation

__all__ = ["Overwrite", "merge_schema", "require_branch"]

#: Bytes that all workers of an overwrite may take together, about.
_MEMORY = 512 << 20


@dataclass(frozen=True)
class Overwrite:
    """What is replaced; without a plan, the partitions that the new rows are in."""

    plan: RowChangePlan | None
    #: Tasks of files in which some rows stay.
    tasks: tuple[ReadTask, ...] = ()
    isolation: Isolation | None = None
    #: Whether nothing happens without rows: all rows of a table without partitions are in one, which only rows replace.
    needs_rows: bool = False

    @classmethod
    def of(cls, options: SourceOptions, table: Table) -> Overwrite:
        """Plan an overwrite by its options."""
        mode = options.given.get("overwrite-mode", "static").lower()
        isolation = options.given.get("isolation-level")
        row_filter = options.given.get("overwrite-filter")
        if mode not in {"static", "dynamic"}:
            raise InvalidArgumentError(f"option overwrite-mode: expected static or dynamic, got {mode!r}")
        if isolation is not None and isolation.lower() not in {"serializable", "snapshot"}:
            raise InvalidArgumentError(f"option isolation-level: expected serializable or snapshot, got {isolation!r}")
        level = cast("Isolation | None", isolation and isolation.lower())
        if mode == "dynamic" and row_filter is not None:
            raise InvalidArgumentError("option overwrite-filter does not apply to overwrite-mode=dynamic")
        branch = options.branch or "main"
        _validate(options, table, branch, row_filter)
        if mode == "dynamic" and any(not one.transform.is_void for one in table.spec().fields):
            return cls(None, isolation=level)
        plan = table.new_row_change(
            "overwrite",
            row_filter,
            exact=True,
            isolation=level,
            branch=branch,
            properties=options.write_properties(table),
        )
        tasks = tuple(plan.tasks([], whole_files=True, parallelism=os.cpu_count()))
        return cls(plan, tasks, level, mode == "dynamic")

    def removed(self, write: Write) -> list[WrittenFiles]:
        """Remove the rows of the tasks, in this process, on all its processors."""
        plan, memory = self.plan, write.settings.memory_limit or _MEMORY
        if plan is None or not self.tasks:
            return []
        workers = min(len(self.tasks), os.cpu_count() or 1)

        def taken_out(worker: int) -> WrittenFiles | None:
            limit = memory // workers
            with RowRemover(plan, write.storage, task=worker, memory_limit=limit) as remover:
                for task in self.tasks[worker::workers]:
                    remover.remove(task.rows(write.storage, memory_limit=limit))
            return remover.written

        with ThreadPoolExecutor(workers) as pool:
            return [written for written in pool.map(taken_out, range(workers)) if written is not None]


def require_branch(plan: RowChangePlan, branch: str) -> None:
    """Refuse to commit to another branch than the one that was planned for."""
    if plan.branch != branch:
        raise UnsupportedFeatureError(
            f"the session writes to the branch {branch!r} (spark.wap.branch), which Spark does not pass on when an "
            f"overwrite is planned: pass it as the option branch={branch}"
        )


def merge_schema(table: Table, schema: pa.Schema) -> None:
    """Add the columns of rows that a table lacks, and widen types, before the rows are written, as in Java.

    Required columns stay required: Spark calls most columns nullable, whatever they hold. New columns that differ from
    others in letter case only are refused: a data source cannot find out whether the session treats them as one.
    """
    before = table.schema()
    wider = table.new_write(widened_by=schema).schema
    refuse_alike(before, wider)
    with table.update_schema() as change:
        change.union_by_name(wider)


def _validate(options: SourceOptions, table: Table, branch: str, row_filter: str | None) -> None:
    """Refuse to overwrite what other commits have changed since a snapshot, if both options of Java are given."""
    since = options.number("validate-from-snapshot-id")
    isolation = options.given.get("isolation-level")
    if since is None or isolation is None:
        # As in Java, where the snapshot counts only together with a level.
        return
    newer = []
    for snapshot in ancestors_of(table.snapshot_by_name(branch), table.metadata):
        if snapshot.snapshot_id == since:
            break
        newer.append(snapshot)
    else:
        raise ValidationException(f"validate-from-snapshot-id={since}: the history of {branch} has no such snapshot")
    for snapshot in newer:
        operation = "" if snapshot.summary is None else str(snapshot.summary.operation.value)
        if operation == "replace" or (operation == "append" and isolation.lower() == "snapshot"):
            continue
        if operation == "append" and options.given.get("overwrite-mode", "static").lower() == "static":
            added = table.incremental_append_scan(
                row_filter=AlwaysTrue() if row_filter is None else row_filter,
                from_snapshot_id_exclusive=snapshot.parent_snapshot_id,
                to_snapshot_id_inclusive=snapshot.snapshot_id,
                branch=branch,
            )
            if not len(added.plan_files()):
                continue
        raise ValidationException(
            f"snapshot {snapshot.snapshot_id} ({operation}) was committed after validate-from-snapshot-id={since} and "
            "may have changed what is overwritten: read the table again"
        )
