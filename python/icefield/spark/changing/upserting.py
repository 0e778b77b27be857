"""Upserts: merges by a key, in which null is a key, and rows are changed only where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

import pyspark.sql.functions as F  # noqa: N812
from pyspark.sql import types as st

from icefield.errors import InvalidArgumentError, ValidationError
from icefield.spark.changing.conditions import TARGET
from icefield.spark.changing.merging import COUNT, SOURCE, Merge, MergeRules
from icefield.spark.changing.planned import ChangeOptions, Target, column_of
from icefield.spark.columns.letter_case import named_as_table
from icefield.spark.columns.names import quoted, quoted_path
from icefield.spark.columns.types import spark_schema
from icefield.spark.tables.opening import keywords_of
from icefield.table import UpsertResult
from icefield.table.rows.merging import SchemaMode, written_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from icefield.schema import Schema
    from icefield.spark.writes.distributing import Distribution
    from icefield.table import Table
    from icefield.table.rows import Isolation, RowMode

__all__ = ["upsert"]


def upsert(
    df: DataFrame,
    table: Table | str,
    join_cols: str | Iterable[str] | None = None,
    *,
    when_matched_update_all: bool = True,
    when_not_matched_insert_all: bool = True,
    branch: str | None = None,
    snapshot_properties: Mapping[str, str] | None = None,
    mode: RowMode | None = None,
    isolation: Isolation | None = None,
    distribution: Distribution | None = None,
    schema_mode: SchemaMode = "subset",
    memory_limit: int | None = None,
    idempotency_key: str | None = None,
    dry_run: bool = False,
    catalog: str | None = None,
    **properties: str,
) -> UpsertResult:
    """Update the rows whose key the table has, where they differ, and append the others, in one snapshot.

    Columns that the rows lack keep their values in updated rows. In a key, null equals null and NaN equals NaN. A row
    that has a column of type variant, or of a map that is nested, counts as different.

    Parameters
    ----------
    df
        The rows; they are computed once. A key must not occur twice.
    table
        A table, which is refreshed, or ``"namespace.name"`` in ``catalog``.
    join_cols
        The columns of the key; by default the identifier fields of the schema.
    when_matched_update_all, when_not_matched_insert_all
        Whether to update rows, and whether to append rows.
    branch, snapshot_properties, schema_mode, idempotency_key, catalog, **properties
        As for `icefield.spark.append`.
    distribution
        As for `icefield.spark.update`.
    mode, isolation
        As for `icefield.Table.upsert`.
    memory_limit
        Bytes that a task may take, about; 512 MiB by default. The join has Spark's own memory.
    dry_run
        Only count the rows.

    Raises
    ------
    InvalidArgumentError
        If there is no key, or a key occurs twice in the rows.
    ValidationException, CommitFailedException, CommitStateUnknownException, TableReplacedError
        As for `icefield.spark.delete`.

    """
    options = ChangeOptions(
        branch=branch,
        snapshot_properties=snapshot_properties,
        mode=mode,
        isolation=isolation,
        distribution=distribution,
        memory_limit=memory_limit,
        idempotency_key=idempotency_key,
        dry_run=dry_run,
    )
    evolves = written_columns(schema_mode)["evolve"]
    spark = df.sparkSession
    target = Target.of(spark, table, options, catalog, properties, keywords_of(upsert))
    if target.made_before:
        return UpsertResult(0, 0)
    schema = target.table.schema()
    names = [field.name for field in schema.fields]
    given = [join_cols] if isinstance(join_cols, str) else list(join_cols or ())
    key = [column_of(name, names, spark, "upsert: the key") for name in given]
    key = key or sorted(schema.identifier_field_names())
    if not key:
        raise InvalidArgumentError(
            "upsert: there is no key: name its columns (join_cols), or set identifier fields of the schema"
        )
    rows = named_as_table(df, schema)
    if missing := [name for name in key if name not in rows.columns]:
        raise ValidationError(f"column {missing[0]}: is a column of the key, and the data lack it")
    twice = f"upsert: a key ({', '.join(key)}) occurs twice in the rows: nothing was changed"
    rules = MergeRules(schema_mode, "error", null_safe=True, twice=twice, what="upsert")
    builder = Merge(_counted(rows, key), lambda: target, key, rules)
    if when_matched_update_all:
        builder.when_matched_update_all(_differs(rows, schema, key, evolves=evolves))
    if when_not_matched_insert_all:
        builder.when_not_matched_insert_all()
    if not (when_matched_update_all or when_not_matched_insert_all):
        return UpsertResult(0, 0)
    done = builder.execute()
    return UpsertResult(
        done.rows_updated,
        done.rows_inserted,
        done.files_removed,
        done.files_rewritten,
        done.files_marked,
        done.bytes_rewritten,
        done.files_added,
        done.bytes_added,
        done.bytes_removed,
    )


def _counted(rows: DataFrame, key: list[str]) -> DataFrame:
    """Return one row for each key, and how many rows have it."""
    whole = F.struct(*(F.col(quoted(name)) for name in rows.columns))
    grouped = rows.groupBy(*(F.col(quoted(name)) for name in key)).agg(
        F.first(whole).alias("_icefield_row"), F.count(F.lit(1)).alias(COUNT)
    )
    columns = (F.col(f"_icefield_row.{quoted(name)}").alias(name) for name in rows.columns)
    return grouped.select(*columns, F.col(COUNT))


def _differs(rows: DataFrame, schema: Schema, key: list[str], *, evolves: bool) -> Column:
    """Return whether a row of the source has another value than the row of the table, or one for a new column."""
    types = {field.name: field.dataType for field in spark_schema(schema).fields}
    each = [
        _differ(field.name, field.dataType, types[field.name])
        if field.name in types
        else F.col(quoted_path([SOURCE, field.name])).isNotNull()
        for field in rows.schema.fields
        if field.name not in key and (evolves or field.name in types)
    ]
    return reduce(or_, each, F.lit(False))


def _differ(name: str, given: st.DataType, kind: st.DataType) -> Column:
    mine, other = F.col(quoted_path([TARGET, name])), F.col(quoted_path([SOURCE, name]))
    is_map = isinstance(kind, st.MapType) and not _is_unordered(kind.valueType) and not _is_unordered(kind.keyType)
    if _fields(given) != _fields(kind) or (_is_unordered(kind) and not is_map):
        # Spark compares structs by the places of their fields, and nothing that has a map in it.
        return F.lit(True)
    if is_map:
        mine, other = (F.sort_array(F.map_entries(side)) for side in (mine, other))
    return ~mine.eqNullSafe(other)


def _fields(kind: st.DataType) -> list[object]:
    """Return the names of the fields of a type in their order, and those inside of them."""
    if isinstance(kind, st.StructType):
        return [(field.name, _fields(field.dataType)) for field in kind.fields]
    return [_fields(part) for part in _parts(kind)]


def _parts(kind: st.DataType) -> list[st.DataType]:
    """Return the types in a type."""
    if isinstance(kind, st.StructType):
        return [field.dataType for field in kind.fields]
    if isinstance(kind, st.MapType):
        return [kind.keyType, kind.valueType]
    return [kind.elementType] if isinstance(kind, st.ArrayType) else []


def _is_unordered(kind: st.DataType) -> bool:
    """Return whether Spark cannot compare values of a type."""
    is_one = isinstance(kind, st.MapType) or kind.typeName() == "variant"
    return is_one or any(map(_is_unordered, _parts(kind)))
