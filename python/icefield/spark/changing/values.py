"""New values of columns: how they are given, and how they become values of the table's types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

import pyspark.sql.functions as F  # noqa: N812
from pyspark.sql import types as st

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from icefield.schema import Schema

__all__ = ["converted", "defaults", "value_column"]


def value_column(value: object) -> Column:
    """Return a value as a column: text is Spark SQL, other values of Python stand for themselves."""
    return F.expr(value) if isinstance(value, str) else F.lit(value)


def converted(rows: DataFrame, wanted: st.StructType, others: Iterable[str]) -> DataFrame:
    """Return rows with columns in the wanted types, as Spark stores values into a table, and other columns as they are.

    Fields of structs are found by name. A number that does not fit is an error of the task, a text for a number one of
    the plan; both are Spark's own.
    """
    as_they_are = [rows.schema[name] for name in others]
    columns = [st.StructField(field.name, _nullable(field.dataType)) for field in wanted.fields]
    return rows.to(st.StructType([*columns, *as_they_are]))


def _nullable(kind: st.DataType) -> st.DataType:
    """Return a type all of whose parts may be null: what must not be null is checked where rows are written."""
    whole = st.StructType([st.StructField("x", kind)]).toNullable()
    return whole.fields[0].dataType


def defaults(schema: Schema) -> dict[str, Column]:
    """Return what columns have in rows that are written without them, where it is not null."""
    found = {}
    for field in schema.fields:
        value = field.write_default
        if value is not None:
            # A uuid is text to Spark.
            found[field.name] = F.lit(str(value) if isinstance(value, UUID) else value)
    return found
