"""Which batch of which streaming query made a snapshot, so that a batch that Spark runs again is not made again.

Spark gives a streaming query an id, which is kept in its checkpoint, and numbers its batches (epochs) from 0. After a
restart it runs the last batch again unless its end was recorded. So both numbers are in the summary of the snapshot, by
the names of Java's connector, and in the idempotency key, which the commit itself looks for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from icefield.distributed.writes import WRITE_ID
from icefield.errors import InvalidArgumentError
from icefield.spark.sessions.session import is_classic
from icefield.table.snapshots import ancestors_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from icefield.table import Table

__all__ = ["QUERY_ID", "LastEpoch", "Once", "epoch", "last_epoch", "may_have_write", "once"]

#: What Spark calls the id of a query among the properties of its jobs.
QUERY_ID = "sql.streaming.queryId"
#: Entries of a snapshot's summary, as in Java.
_QUERY, _EPOCH = "spark.sql.streaming.queryId", "spark.sql.streaming.epochId"


class Once(TypedDict):
    """Keywords of a change that is made once."""

    idempotency_key: str
    snapshot_properties: dict[str, str]


def once(batch: DataFrame, batch_id: int, name: str = "") -> dict[str, Any]:
    """Return the keywords that make a change of ``foreachBatch`` once, however often Spark runs the batch.

    Parameters
    ----------
    batch, batch_id
        The arguments of the function that is given to ``foreachBatch``.
    name
        Makes keys different where one batch changes a table several times: a key is used only once.

    Returns
    -------
    dict
        ``idempotency_key`` and ``snapshot_properties``, for changes of `icefield.spark` and of `icefield.Table`.

    Raises
    ------
    InvalidArgumentError
        If no streaming query of this process has the batch: through Spark Connect, pass a key of your own.

    Examples
    --------
    >>> def keep(batch, batch_id):  # doctest: +SKIP
    ...     ice_spark.upsert(batch, table, "id", **ice_spark.once(batch, batch_id))

    """
    spark = batch.sparkSession
    query_id = spark.sparkContext.getLocalProperty(QUERY_ID) if is_classic(spark) else None
    if not query_id:
        raise InvalidArgumentError(
            "once: this is not the function of a foreachBatch, or it runs through Spark Connect, which does not tell "
            "the id of the query: pass idempotency_key='NAME-OF-THE-QUERY/BATCH' yourself"
        )
    return {**epoch(query_id, batch_id, name)}


def epoch(query_id: str, epoch_id: int, name: str = "") -> Once:
    """Return the keywords that make the change of an epoch of a query once."""
    key = f"spark/{query_id}/{epoch_id}" + (f"/{name}" if name else "")
    return Once(idempotency_key=key, snapshot_properties={_QUERY: query_id, _EPOCH: str(epoch_id)})


class LastEpoch(NamedTuple):
    """An epoch of a query that was committed."""

    number: int
    #: The write of icefield whose files it has, if any.
    write_id: str | None


def last_epoch(table: Table, branch: str, query_id: str) -> LastEpoch | None:
    """Return the last epoch of a query in the history of a branch, by any writer."""
    for snapshot in ancestors_of(table.snapshot_by_name(branch), table.metadata):
        summary = snapshot.summary
        if summary is None or summary.get(_QUERY) != query_id:
            continue
        number = summary.get(_EPOCH) or ""
        if number.isdecimal():
            return LastEpoch(int(number), summary.get(WRITE_ID))
    return None


def may_have_write(table: Table, branch: str, write_id: str, number: int, last: LastEpoch) -> bool:
    """Return whether the table may have the files of a write of an epoch: the last committed one, or one before.

    The snapshots that have not expired say so; there is always one of the last epoch.
    """
    known = (snapshot.summary for snapshot in table.snapshots())
    if any(summary is not None and summary.get(WRITE_ID) == write_id for summary in known):
        return True
    *_, oldest = ancestors_of(table.snapshot_by_name(branch), table.metadata)
    return number < last.number and oldest.parent_snapshot_id is not None
