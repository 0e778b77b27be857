"""Names that differ in letter case only, which Spark takes for one name unless ``spark.sql.caseSensitive`` is set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pyspark.sql.functions as F  # noqa: N812
from pyspark.sql import types as st

from icefield.errors import ValidationError
from icefield.spark.columns.names import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from icefield.schema import Schema
    from icefield.types import NestedField, Type

__all__ = ["is_case_sensitive", "named_as_table", "refuse_alike"]


def is_case_sensitive(spark: SparkSession) -> bool:
    """Return whether names that differ in letter case only are two for a session."""
    return str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true"


def named_as_table(df: DataFrame, schema: Schema) -> DataFrame:
    """Return rows whose columns and nested fields have the names of a table, where these differ in letter case only.

    Raises
    ------
    ValidationError
        If two of their names are the same name of the table.

    """
    if is_case_sensitive(df.sparkSession):
        return df
    types = {field.name: field.field_type for field in schema.fields}
    given = df.schema.fields
    names = _names_in_table([field.name for field in given], types, "")
    nested = {}
    for field, name in zip(given, names, strict=True):
        kind = _renamed(field.dataType, types[name], name) if name in types else field.dataType
        if kind != field.dataType:
            nested[field.name] = F.col(quoted(field.name)).cast(kind)
    for name, column in nested.items():
        df = df.withColumn(name, column)
    other = {field.name: name for field, name in zip(given, names, strict=True) if field.name != name}
    return df.withColumnsRenamed(other) if other else df


def _names_in_table(given: Sequence[str], known: Iterable[str], path: str) -> list[str]:
    """Return the names of the table for names of the rows."""
    own: dict[str, list[str]] = {}
    for name in known:
        own.setdefault(name.lower(), []).append(name)
    found = []
    for name in given:
        alike = own.get(name.lower(), [])
        found.append(alike[0] if len(alike) == 1 else name)
    for name in found:
        others = sorted({one for one, named in zip(given, found, strict=True) if named == name})
        if len(others) > 1:
            listed = " and ".join(path + one for one in others)
            raise ValidationError(f"columns {listed} of the data: the names differ in letter case only, rename one")
    return found


def _renamed(kind: st.DataType, like: Type, path: str) -> st.DataType:
    """Return a type of Spark with the names of fields that a type of the table has."""
    if isinstance(kind, st.StructType) and like.is_struct:
        types: Mapping[str, Type] = {field.name: field.field_type for field in like.fields}
        fields = []
        for field, name in zip(kind.fields, _names_in_table(kind.names, types, f"{path}."), strict=True):
            child = _renamed(field.dataType, types[name], f"{path}.{name}") if name in types else field.dataType
            fields.append(st.StructField(name, child, field.nullable, field.metadata))
        return st.StructType(fields)
    if isinstance(kind, st.ArrayType) and like.element_type is not None:
        return st.ArrayType(_renamed(kind.elementType, like.element_type, f"{path}.element"), kind.containsNull)
    if isinstance(kind, st.MapType) and like.key_type is not None and like.value_type is not None:
        key = _renamed(kind.keyType, like.key_type, f"{path}.key")
        value = _renamed(kind.valueType, like.value_type, f"{path}.value")
        return st.MapType(key, value, kind.valueContainsNull)
    return kind


def refuse_alike(before: Schema, after: Schema) -> None:
    """Refuse new columns of a table that differ from another in letter case only.

    Raises
    ------
    ValidationError
        It names the new column, and the other one.

    """
    _refuse_alike(before.fields, after.fields, "")


def _refuse_alike(before: Sequence[NestedField], after: Sequence[NestedField], path: str) -> None:
    old = {field.field_id: field for field in before}
    for field in after:
        known = old.get(field.field_id)
        if known is not None:
            _refuse_alike(known.field_type.fields, field.field_type.fields, f"{path}{field.name}.")
            continue
        alike = [one.name for one in after if one is not field and one.name.lower() == field.name.lower()]
        if alike:
            raise ValidationError(
                f'column {path}{field.name}: the table has "{alike[0]}": the names differ in letter case only, '
                "rename the column"
            )
