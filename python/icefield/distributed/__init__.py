"""Reads, writes and changes of rows that an engine distributes over workers, planned and committed in one place.

`icefield.spark` uses this module only; so can Ray, Dask, or a pool of processes. Everything that is sent pickles, and
no plan or task contains credentials: those are in the `Storage`, which is sent separately.

Reading: `icefield.scan.TableScan.tasks` splits a scan into tasks, and `ReadTask.rows` reads one on a worker. Files
for which `icefield.scan.ScanPlan.obstacles` returns null can be read by an engine's own Parquet reader.

Writing: `icefield.table.Table.new_write` plans a write, a `TaskWriter` writes the rows of one task, and
`icefield.table.Table.commit_files` commits what all tasks wrote, in one snapshot. Nothing is visible before that;
`WritePlan.discard` deletes the files of a failed write, `WritePlan.discard_lost` those of attempts that lost.

Changes of rows: `icefield.table.Table.new_row_change` plans a delete, update, merge or overwrite.
`RowChangePlan.tasks` reads the rows with their places, ``_file`` and ``_pos``; the engine decides which rows go, and
sends all rows of a file to one `RowRemover`. New rows go to a `TaskWriter` of `RowChangePlan.write`; from version 3 on
they keep the id in their column ``_row_id``, if they were in the table before. `icefield.table.Table.commit_rows`
commits both in one snapshot, with the checks that `icefield.table.Table.delete` and the others make; the result is
the same as theirs.

Compaction: `icefield.table.maintenance.Maintenance.new_compaction` plans it, `rewrite_files` rewrites the files of a
task on a worker, and `icefield.table.maintenance.Maintenance.commit_compaction` commits any of the results in one
snapshot.
"""

from __future__ import annotations

from icefield._core import ArrowStream, EngineRead, ReadTask, Storage
from icefield.distributed.compaction import CompactionPlan, rewrite_files
from icefield.distributed.reads import InspectTask
from icefield.distributed.rows import RowChangePlan, RowRemover
from icefield.distributed.writes import (
    Committed,
    FilesLeft,
    TaskWriter,
    WritePlan,
    WrittenFiles,
    made_before,
)

__all__ = [
    "ArrowStream",
    "Committed",
    "CompactionPlan",
    "EngineRead",
    "FilesLeft",
    "InspectTask",
    "ReadTask",
    "RowChangePlan",
    "RowRemover",
    "Storage",
    "TaskWriter",
    "WritePlan",
    "WrittenFiles",
    "made_before",
    "rewrite_files",
]
