"""New values of columns: how they are given, and how they become values of the table's types."""

from __future__ import annotations

import datetime as dt
from collections.abc import Container, Iterable, Mapping
from typing import TYPE_CHECKING
from uuid import UUID

import pyspark.sql.functions as F  # noqa: N812
from pyspark.sql import types as st

from icefield.errors import ValidationError
from icefield.schema import Schema
from icefield.spark.columns.letter_case import is_case_sensitive
from icefield.spark.columns.types import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from icefield.types import NestedField

__all__ = ["converted", "default_column", "defaults", "value_column"]


def value_column(value: object) -> Column:
    """Return a value as a column: text is Spark SQL, other values of Python stand for themselves."""
    return F.expr(value) if isinstance(value, str) else F.lit(value)


def converted(
    rows: DataFrame,
    wanted: st.StructType,
    others: Iterable[str],
    *,
    called: Mapping[str, str] | None = None,
    may_lack: Container[str] = (),
) -> DataFrame:
    """Return rows with columns in the wanted types, as Spark stores values into a table, and other columns as they are.

    Fields of structs are found by name. Spark raises the errors itself: for a number that does not fit
    in the task, for text in place of a number in the plan.

    Parameters
    ----------
    rows, wanted, others
        The rows, the columns that are converted, and the names of the others.
    called
        What columns are called in errors, where not by their own names.
    may_lack
        Columns whose structs may lack optional fields, which are null then.

    Raises
    ------
    ValidationError
        If a struct has a field that the table's struct lacks, or lacks one of its fields: Spark would drop the
        field, or make it null.

    """
    given = rows.schema
    is_exact = is_case_sensitive(rows.sparkSession)
    for field in wanted.fields:
        path = (called or {}).get(field.name, field.name)
        _check_fields(
            given[field.name].dataType, field.dataType, path, may_lack=field.name in may_lack, is_exact=is_exact
        )
    as_they_are = [given[name] for name in others]
    columns = [st.StructField(field.name, _nullable(field.dataType)) for field in wanted.fields]
    return rows.to(st.StructType([*columns, *as_they_are]))


def _check_fields(given: st.DataType, wanted: st.DataType, path: str, *, may_lack: bool, is_exact: bool) -> None:
    """Check the names of fields at any depth; that types fit is checked by Spark."""

    def check(mine: st.DataType, other: st.DataType, name: str) -> None:
        _check_fields(mine, other, f"{path}.{name}", may_lack=may_lack, is_exact=is_exact)

    if isinstance(given, st.StructType) and isinstance(wanted, st.StructType):
        known = {field.name if is_exact else field.name.lower(): field for field in wanted.fields}
        for field in given.fields:
            found = known.pop(field.name if is_exact else field.name.lower(), None)
            if found is None:
                raise ValidationError(
                    f"column {path}.{field.name}: not in the table, whose {path} has the fields "
                    f"{', '.join(wanted.names)}: leave it out, or add it to the table"
                )
            check(field.dataType, found.dataType, found.name)
        missing = [field for field in known.values() if not (may_lack and field.nullable)]
        if missing:
            raise ValidationError(
                f"column {path}.{missing[0].name}: missing in the new value: give all fields, or change some by "
                "Column.withField"
            )
    elif isinstance(given, st.ArrayType) and isinstance(wanted, st.ArrayType):
        check(given.elementType, wanted.elementType, "element")
    elif isinstance(given, st.MapType) and isinstance(wanted, st.MapType):
        check(given.keyType, wanted.keyType, "key")
        check(given.valueType, wanted.valueType, "value")


def _nullable(kind: st.DataType) -> st.DataType:
    """Return a type all of whose parts may be null: what must not be null is checked where rows are written."""
    whole = st.StructType([st.StructField("x", kind)]).toNullable()
    return whole.fields[0].dataType


def defaults(schema: Schema) -> dict[str, Column]:
    """Return the defaults of columns in rows that lack them, where they are not null."""
    found = {}
    for field in schema.fields:
        if field.write_default is not None:
            found[field.name] = default_column(field)
    return found


def default_column(field: NestedField) -> Column:
    """Return the default of a column in rows that lack it, in its Spark type."""
    value, kind = field.write_default, str(field.field_type)
    if kind in {"timestamp_ns", "timestamptz_ns"} and value is not None:
        value = value // 1000  # Spark has microseconds
    if value is None:
        column = F.lit(None)
    elif kind == "date":
        column = F.date_from_unix_date(F.lit(value))
    elif kind.startswith("timestamptz"):
        column = F.timestamp_micros(F.lit(value))
    elif kind.startswith("timestamp"):
        since = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)  # noqa: DTZ001 - a time without a zone
        column = F.lit(since.isoformat(" ", "microseconds")).cast("timestamp_ntz")
    elif kind == "time":
        since = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=value)  # noqa: DTZ001 - a time of the day
        # As text, because literals of times are not in all versions of Spark that have the type.
        column = F.lit(since.time().isoformat("microseconds")).cast(spark_schema(Schema(field)).fields[0].dataType)
    elif isinstance(value, bytes | bytearray):
        column = F.lit(bytearray(value))
    else:
        # A uuid is text to Spark.
        column = F.lit(str(value) if isinstance(value, UUID) else value)
    return column
