"""INSERT: the columns of a query as those of a table, appended or in place of rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as st

from icefield.errors import ValidationError
from icefield.expressions import AlwaysTrue, And, EqualTo, IsNull
from icefield.spark.changing.overwriting import write
from icefield.spark.names import quoted
from icefield.spark.sql.grammar.statements import Insert
from icefield.spark.types import spark_schema
from icefield.spark.writing import append

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from icefield.expressions import Expression
    from icefield.spark.sql.catalogs import Target
    from icefield.spark.sql.grammar.text import Name
    from icefield.spark.sql.running import Run
    from icefield.table import Table

__all__ = ["insert", "written_branch"]

#: Numbers in the order in which each holds the values of those before.
_NUMBERS = ("tinyint", "smallint", "int", "bigint", "decimal", "float", "double")


def insert(run: Run, parsed: Insert, target: Target) -> None:
    """Write the rows of a query into a table or a branch of it."""
    table, branch = written_branch(run, parsed.name, target)
    frame = aligned(run, parsed, table, run.query(parsed.query))
    if not parsed.overwrite:
        append(frame, table, branch=branch)
    elif parsed.replace_where is not None:
        write(frame, table, "overwrite", filter=run.text(parsed.replace_where), branch=branch)
    elif _is_dynamic(run, parsed, table):
        write(frame, table, "dynamic", branch=branch)
    else:
        write(frame, table, "overwrite", filter=_replaced(run, parsed, table), branch=branch)


def _is_dynamic(run: Run, parsed: Insert, table: Table) -> bool:
    """Return whether the partitions that the rows are in are replaced, as Spark decides it."""
    mode = str(run.spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static")).lower()
    static = [piece for _, piece in parsed.partition if piece is not None]
    partitioned = [field for field in table.spec().fields if not field.transform.is_void]
    return mode == "dynamic" and len(partitioned) > len(static)


def _replaced(run: Run, parsed: Insert, table: Table) -> Expression:
    """Return the filter of the rows that INSERT OVERWRITE replaces: those of the given partition values, or all."""
    wanted = spark_schema(table.schema()).fields
    found: Expression = AlwaysTrue()
    for name, piece in parsed.partition:
        if piece is not None:
            column = _column(run, wanted, str(name), name.start)
            [value] = run.constants([piece], [column.dataType])
            one = IsNull(column.name) if value is None else EqualTo(column.name, value)
            found = one if isinstance(found, AlwaysTrue) else And(found, one)
    return found


def written_branch(run: Run, name: Name, target: Target) -> tuple[Table, str | None]:
    """Return the table that a statement changes, and the branch that its name selects.

    Raises
    ------
    InvalidArgumentError
        If the name is that of a metadata table, a tag or a snapshot; with line and column.

    """
    with run.at(name.start):
        chosen = run.names.selected(target)
    if chosen.metadata is not None or chosen.timestamp_ms is not None or isinstance(chosen.as_of, int):
        raise run.statement.error(name.start, f"{name} can only be read")
    if chosen.as_of is None:
        return chosen.table, None
    reference = chosen.table.refs().get(chosen.as_of)
    if reference is not None and reference.snapshot_ref_type == "tag":
        raise run.statement.error(name.start, f"{chosen.as_of} is a tag, which cannot be written to")
    return chosen.table, chosen.as_of


def aligned(run: Run, parsed: Insert, table: Table, frame: DataFrame) -> DataFrame:
    """Rename and cast the columns of a query to those of the table, as Spark's store assignment does."""
    wanted = spark_schema(table.schema()).fields
    static = _static(run, parsed, table, wanted)
    if parsed.by_name:
        return _by_name(run, parsed, frame, wanted, static)
    names = _named_columns(run, parsed, wanted) or [one.name for one in wanted if one.name not in static]
    given = frame.columns
    if len(given) != len(names):
        raise run.statement.error(
            parsed.query.start,
            f"the query has {len(given)} columns ({', '.join(given)}), expected {len(names)}: {', '.join(names)}",
        )
    # PySpark parses the names of columns, and those of a query may be the same.
    numbered = frame.toDF(*(f"c{n}" for n in range(len(given))))
    kinds = dict(zip(names, numbered.schema.fields, strict=True))
    fields = {one.name: one for one in wanted}
    columns = [
        assigned(F.col(kinds[name].name), kinds[name].dataType, fields[name].dataType, name).alias(name)
        for name in names
    ]
    return numbered.select(*columns, *(column.alias(name) for name, column in static.items()))


def _static(run: Run, parsed: Insert, table: Table, wanted: Sequence[st.StructField]) -> dict[str, Column]:
    """Return the values of PARTITION as columns of the table."""
    found: dict[str, Column] = {}
    identity = {field.source_id for field in table.spec().fields if field.transform.is_identity}
    for name, piece in parsed.partition:
        column = _column(run, wanted, name.parts[0] if len(name.parts) == 1 else str(name), name.start)
        if table.schema().find_field(column.name).field_id not in identity:
            raise run.statement.error(
                name.start, f"{column.name} is no partition column: only those of identity can be given"
            )
        if piece is not None:
            [value] = run.constants([piece], [column.dataType])
            found[column.name] = F.lit(value).cast(column.dataType)
    return found


def _column(run: Run, wanted: Sequence[st.StructField], name: str, at: int) -> st.StructField:
    for one in wanted:
        if one.name == name or (not run.case_sensitive and one.name.lower() == name.lower()):
            return one
    raise run.statement.error(at, f"the table has no column {name}; it has {', '.join(one.name for one in wanted)}")


def _named_columns(run: Run, parsed: Insert, wanted: Sequence[st.StructField]) -> list[str]:
    names: list[str] = []
    for column in parsed.columns:
        name = _column(run, wanted, str(column), column.start).name
        if name in names:
            raise run.statement.error(column.start, f"column {name} stands twice")
        names.append(name)
    return names


def _by_name(
    run: Run, parsed: Insert, frame: DataFrame, wanted: Sequence[st.StructField], static: dict[str, Column]
) -> DataFrame:
    columns = []
    for one in frame.schema.fields:
        field = _column(run, wanted, one.name, parsed.query.start)
        columns.append(assigned(F.col(quoted(one.name)), one.dataType, field.dataType, field.name).alias(field.name))
    return frame.select(*columns, *(column.alias(name) for name, column in static.items()))


def assigned(column: Column, given: st.DataType, wanted: st.DataType, name: str) -> Column:
    """Return a column as the type of the table, as Spark's ANSI store assignment has it.

    Raises
    ------
    ValidationError
        If values of the one type are not stored in columns of the other.

    """
    if given == wanted or isinstance(given, st.NullType):
        return column.cast(wanted)
    if not isinstance(wanted, st.AtomicType) or not isinstance(given, st.AtomicType):
        # Of nested types the append itself says what does not fit.
        return column.cast(wanted) if type(given) is type(wanted) else _misfit(given, wanted, name)
    source, target = _family(given), _family(wanted)
    if source == target == "number":
        return column.cast(wanted) if _holds(given, wanted) else _checked(column, wanted, name)
    if target in {"string", source} or {source, target} == {"date", "timestamp"}:
        return column.cast(wanted)
    return _misfit(given, wanted, name)


def _misfit(given: st.DataType, wanted: st.DataType, name: str) -> Column:
    raise ValidationError(
        f"column {name!r}: {given.simpleString()} is not stored as {wanted.simpleString()}; use CAST in the query"
    )


def _family(kind: st.DataType) -> str:
    if isinstance(kind, st.NumericType):
        return "number"
    if isinstance(kind, st.TimestampType | st.TimestampNTZType):
        return "timestamp"
    if isinstance(kind, st.StringType | st.CharType | st.VarcharType):
        return "string"
    return kind.typeName()


def _holds(given: st.DataType, wanted: st.DataType) -> bool:
    """Return whether a type of numbers holds all those of another, or loses digits only."""
    if isinstance(given, st.DecimalType) and isinstance(wanted, st.DecimalType):
        return wanted.precision - wanted.scale >= given.precision - given.scale and wanted.scale >= given.scale
    if isinstance(wanted, st.DecimalType) or isinstance(given, st.DecimalType):
        return isinstance(wanted, st.FloatType | st.DoubleType)
    return _NUMBERS.index(given.simpleString()) < _NUMBERS.index(wanted.simpleString())


def _checked(column: Column, wanted: st.DataType, name: str) -> Column:
    """Return a column as a type that may be too small for a value, which then fails the statement."""
    stored = column.try_cast(wanted)
    text = F.concat(
        F.lit(f"column {name}: the value "), column.cast("string"), F.lit(f" does not fit {wanted.simpleString()}")
    )
    return F.when(column.isNull() | stored.isNotNull(), stored).otherwise(F.raise_error(text).cast(wanted))
