"""The commit of a change of rows, which data sources make in a process that needs nothing else of this package."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from icefield.errors import CommitStateUnknownException
from icefield.spark.writes.writing import known_loss, warn_of_left

if TYPE_CHECKING:
    from icefield.distributed import Committed, RowChangePlan, WrittenFiles
    from icefield.table import Table

__all__ = ["commit"]


def commit(
    table: Table,
    plan: RowChangePlan,
    removed: list[WrittenFiles],
    added: list[WrittenFiles],
    summary: Mapping[str, str],
    idempotency_key: str | None,
    lost_some: Callable[[], bool],
) -> Committed:
    """Commit what tasks did; files that are not the table's then are deleted.

    Parameters
    ----------
    table, plan, removed, added, summary, idempotency_key
        As `icefield.Table.commit_rows` takes them.
    lost_some
        Whether there were attempts at tasks whose results are not among these, so that files may be left.

    """
    storage, files = table.storage, [*removed, *added]
    try:
        done = table.commit_rows(plan, removed, added, summary, idempotency_key=idempotency_key)
    except CommitStateUnknownException:
        raise
    except Exception:
        warn_of_left(plan.write_id, lambda: plan.discard(storage, files))
        raise
    lost = known_loss(lost_some)
    if done.files_taken and lost:
        warn_of_left(plan.write_id, lambda: plan.discard_lost(storage, files))
    elif not done.files_taken and (files or lost):
        warn_of_left(plan.write_id, lambda: plan.discard(storage, files, search=lost))
    return done
