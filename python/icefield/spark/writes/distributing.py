"""How rows are brought together for the tasks that write them: by partition, by range, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, TypeAlias

import pyspark.sql.functions as F  # noqa: N812

from icefield.errors import InvalidArgumentError
from icefield.spark.columns.types import readable_columns
from icefield.spark.sessions.settings import write_defaults
from icefield.spark.writes.keys import PartitionKey, with_keys

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from icefield.table import Table
    from icefield.transforms import Transform

__all__ = ["Distribution", "distributed", "distribution_of", "free_names", "has_all_keys", "is_small", "partition_keys"]

#: How rows are brought together for the tasks that write them.
Distribution: TypeAlias = Literal["hash", "range", "none"]

_KEY = "_icefield_key_"
#: Files that a task keeps open at once.
_OPEN_FILES = 64


def distribution_of(spark: SparkSession, table: Table, distribution: str | None) -> str:
    """Return how rows are brought together, by the session's setting or the table's property if nothing is given.

    Raises
    ------
    InvalidArgumentError
        If there is no such distribution.

    """
    own = table.properties.get("write.distribution-mode", "hash")
    mode = distribution or write_defaults(spark).distribution or own
    if mode not in {"hash", "range", "none"}:
        raise InvalidArgumentError(f"expected the distribution 'hash', 'range' or 'none', got {mode!r}")
    return mode


def free_names(columns: Iterable[str], number: int) -> list[str]:
    """Return names of columns, of which no column has one or a name that begins with one."""
    taken, prefix = [column.lower() for column in columns], _KEY
    while any(column.startswith(prefix) for column in taken):
        prefix = f"_{prefix}"
    return [f"{prefix}{place}" for place in range(number)]


def distributed(df: DataFrame, table: Table, distribution: str | None = None) -> tuple[DataFrame, bool]:
    """Group the rows by partition; also return whether each task's rows are sorted by partition."""
    mode = distribution_of(df.sparkSession, table, distribution)
    keys = partition_keys(df, table) if mode != "none" else []
    order = _order(df, table) if mode == "range" else []
    if not keys and not order:
        return df, False
    names = free_names(df.columns, len(keys) + len(order))
    keyed = with_keys(df, [*keys, *(key for key, _ in order)], names)
    partitions, sorted_by = names[: len(keys)], names[len(keys) :]
    # No number of partitions: Spark then joins small ones to what is worth a task.
    if mode == "range":
        directions = [_directed(name, direction) for name, (_, direction) in zip(sorted_by, order, strict=True)]
        shuffled = keyed.repartitionByRange(*partitions, *directions)
    else:
        shuffled = keyed.repartition(*names)
    if not has_all_keys(df, table) or is_small(table):
        # A task can keep a file open for each of so few partitions, and that costs less than to sort its rows.
        return shuffled.drop(*names), False
    return shuffled.sortWithinPartitions(*partitions).drop(*names), True


def is_small(table: Table) -> bool:
    """Return whether the partition spec itself limits the number of partitions to a few."""
    partitions = 1
    for field in table.spec().fields:
        if field.transform.num_buckets is not None:
            partitions *= field.transform.num_buckets + 1  # one for null
        elif not field.transform.is_void:
            return False
    return partitions <= _OPEN_FILES


def partition_keys(df: DataFrame, table: Table) -> list[PartitionKey]:
    """Return the partition values to add; none for a source column that is nested, missing or of another type."""
    key_of = _key_maker(df, table)
    keys = (key_of(field.transform, field.source_id) for field in table.spec().fields)
    return [key for key in keys if key is not None]


def has_all_keys(df: DataFrame, table: Table) -> bool:
    """Return whether rows with the same partition values have the same keys, and some have others.

    A column that the rows lack is the same in all of them.
    """
    key_of, schema, found = _key_maker(df, table), table.schema(), 0
    for field in table.spec().fields:
        if key_of(field.transform, field.source_id) is not None:
            found += 1
            continue
        name = None if field.source_id is None else schema.find_column_name(field.source_id)
        is_constant = field.transform.is_void or name is None or name.split(".")[0] not in df.columns
        if not is_constant:
            return False
    return found > 0


def _order(df: DataFrame, table: Table) -> list[tuple[PartitionKey, str]]:
    """Return the sort keys of the table and their directions, up to the first that Spark cannot compute."""
    key_of = _key_maker(df, table)
    keys = ((key_of(field.transform, field.source_id), field) for field in table.sort_order().fields)
    found = takewhile(lambda pair: pair[0] is not None, keys)
    return [(key, f"{field.direction} {field.null_order}") for key, field in found if key is not None]


def _directed(name: str, direction: str) -> Column:
    column = F.col(name)
    directed = {
        "asc nulls-first": column.asc_nulls_first,
        "asc nulls-last": column.asc_nulls_last,
        "desc nulls-first": column.desc_nulls_first,
        "desc nulls-last": column.desc_nulls_last,
    }
    return directed[direction]()


def _key_maker(df: DataFrame, table: Table) -> Callable[[Transform, int | None], PartitionKey | None]:
    """Return a function from a transform of a column to its key; None if nested, missing or of another type."""
    schema = table.schema()
    types = {field.name: field.dataType.simpleString() for field in readable_columns(schema).fields}
    given = {field.name: field.dataType.simpleString() for field in df.schema.fields}

    def key_of(transform: Transform, source_id: int | None) -> PartitionKey | None:
        name = None if source_id is None else schema.find_column_name(source_id)
        if transform.is_void or name is None or name not in given:
            return None
        is_taken = transform.is_identity or given[name] == types.get(name)
        return PartitionKey(transform, name, given[name]) if is_taken else None

    return key_of
